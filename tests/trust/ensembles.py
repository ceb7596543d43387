"""Ensembles over blocks: a record that turns the result of its block.

Blocks are drawn as in any fit: the same seed puts the rows that two data sets share into the same blocks.
"""

import contextlib
import math
from functools import partial

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from skdp import PATEClassifier, SampleAggregate
from skdp.ensemble import _pate, _results, _sample_aggregate
from skdp.mechanisms import GroupChoices
from tests.ensemble.adversaries import MARK, Teacher, Turncoat
from tests.trust.redrawn import BY_RUNS, FEW_RUNS, half_noise, redrawn, row_count_kept, unseen_without_runs
from tests.trust.subjects import APPROXIMATE, PURE, RUNS_AT_3, Subject, replaced


class Fixed(Teacher):
    """A student that learns nothing."""

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


class Corner(RegressorMixin, BaseEstimator):
    """Finds one corner of the bounds, or the opposite one if the record is in the block."""

    def fit(self, X, y):
        self.coef_ = np.full(X.shape[1], 9.0 if np.any(X == MARK) else -9.0)
        return self


# --- PATE -----------------------------------------------------------------------------------------------------------

QUERIES = 4


def votes(epsilon, delta, **parameters):
    return PATEClassifier(
        Turncoat(),
        student=Fixed(),
        epsilon=epsilon,
        delta=delta,
        classes=[0, 1, 2],
        **{"public_X": np.zeros((QUERIES, 1)), "n_teachers": 3, **parameters},
    )


def choices(epsilon, delta, sharpness=1.5, n_answers=2):
    """So many teachers that a class without votes is chosen now and then."""
    n_teachers = math.ceil(2 * sharpness * n_answers / epsilon) + 2
    return votes(epsilon, delta, n_teachers=n_teachers, max_queries=n_answers)


def turned(model):
    """Teachers say 0; with the record, one says 1, to all rows."""
    n = 8 * model.n_teachers
    X, y = np.zeros((n, 1)), np.zeros(n, dtype=int)
    return (X, y), (np.vstack([X, [[MARK]]]), np.append(y, 1))


def all_agree(number, label, mechanism, value):
    """With choices, all are the class that the record votes for."""
    return np.ones(len(value)) if isinstance(mechanism, GroupChoices) else None


def stated(name, function):
    return replaced(_pate, name, lambda whole: function)


def monotone():
    """Scores as if they were counts of records, which only rise."""

    def change(whole):
        def init(self, epsilon, sensitivity, monotone=False, bounded_range=False):
            whole(self, epsilon, sensitivity, True, bounded_range)

        return init

    return replaced(GroupChoices, "__init__", change)


def every_choice_spends_all(module):
    return replaced(module, "pure_share", lambda whole: lambda epsilon, share: epsilon)


# --- sample and aggregate -------------------------------------------------------------------------------------------


def mean(epsilon, delta, **parameters):
    parameters = parameters or {"bounds": (-1, 1)}
    return SampleAggregate(
        Corner(), attributes=("coef_",), epsilon=epsilon, delta=delta, **{"n_blocks": 2, **parameters}
    )


def corners(model, rows=24):
    X = np.full((rows, 3), 0.25)
    return (X, np.zeros(rows)), (np.vstack([X, np.full((1, 3), MARK)]), np.zeros(rows + 1))


def largest(X):
    return X.max(axis=0)


# Cells on either side of the one that holds the median if the record is there, but for the two ends.
BESIDE = 20
CELLS = 2 * BESIDE + 3


def median(epsilon, delta, n_columns=2):
    model = SampleAggregate(
        largest, aggregator="median", bounds=(0, CELLS), grid_size=CELLS, epsilon=epsilon, delta=delta
    )
    return model.set_params(n_blocks=2 * gap(model, n_columns, 3.0) + 2)


def gap(model, n_columns, sharpness):
    """Difference of scores that makes a cell so much rarer, in units of the exponent."""
    return math.ceil(sharpness * model.privacy_plan(n_features=n_columns).releases[0].mechanism.scale)


def ends(model, n_columns=2, sharpness=None):
    """Half of the blocks say the left end, and one of these says the right end with the record.

    Cells from there to the middle are less of a median then, and cells beyond the middle more.
    """
    n = model.n_blocks
    beyond = gap(model, n_columns, sharpness or (1.0 if model.delta else 3.0))
    cells = np.repeat([0, BESIDE + 1, CELLS - 1], [n // 2, beyond, n - n // 2 - beyond])
    X = np.repeat(cells[:, None] + 0.5, n_columns, axis=1)
    return (X,), (np.vstack([X, np.full((1, n_columns), CELLS - 0.5)]),)


def beyond_the_middle(number, label, mechanism, value):
    return np.full(len(value), BESIDE + 2)


def in_turn(subject, epsilon, delta, **options):
    """Read with rows in blocks one after the other, as by a draw that may be."""
    labels = replaced(
        _sample_aggregate, "block_labels", lambda whole: lambda n_rows, n_blocks, stream: np.arange(n_rows) % n_blocks
    )
    with labels:
        return redrawn(subject, epsilon, delta, **options)


def radius_for_diameter():
    return replaced(_results, "blocks_l2", lambda whole: lambda k, d: whole(k, d) / 2)


def one_number():
    return replaced(_results, "blocks_l2", lambda whole: lambda k, d: whole(1, 1))


def unclipped():
    return replaced(_results.Region, "clip", lambda whole: lambda self, moves: moves)


@contextlib.contextmanager
def true_blocks():
    """Divide by the number of blocks that do not fail, for a public number that most fail of."""
    factor = 1.0

    def counted(whole):
        def over(compute, X, y, n_blocks, *rest):
            nonlocal factor
            results = whole(compute, X, y, n_blocks, *rest)
            factor = n_blocks / max(sum(result is not None for result in results), 1)
            return results

        return over

    def divided(whole):
        return lambda self, result: (factor * whole(self, result)).astype(np.int64)

    with (
        replaced(_sample_aggregate, "over_blocks", counted),
        replaced(_results.Region, "steps", divided),
    ):
        yield


def undivided(n_columns):
    """Each number has the exponent of the whole budget."""
    return replaced(
        _sample_aggregate, "bounded_range_epsilon", lambda whole: lambda mu: whole(math.sqrt(n_columns) * mu)
    )


#: Claims that a subject has if it says nothing else.
BOTH = (*PURE, (1.0, 1e-5))

SUBJECTS = [
    Subject(
        "PATEClassifier",
        votes,
        turned,
        claims=APPROXIMATE,
        reading=partial(redrawn, draws=60),
        runs={},
        mutants={
            "one for each row": partial(stated, "votes_l2", math.sqrt),
            "number of queries forgotten": partial(stated, "votes_l2", lambda n: math.sqrt(2)),
        },
    ),
    Subject(
        "PATEClassifier, choices",
        choices,
        turned,
        claims=PURE,
        reading=partial(redrawn, draws=200, history=all_agree),
        floor=0.85,
        runs=FEW_RUNS,
        mutants={
            "row count kept": (partial(row_count_kept, PATEClassifier), BY_RUNS),
            "half the noise": half_noise,
            "scores that only rise": monotone,
            "budget not divided": partial(every_choice_spends_all, _pate),
        },
        survives=unseen_without_runs("row count kept", PURE, FEW_RUNS),
    ),
    Subject(
        "SampleAggregate, box",
        mean,
        corners,
        reading=partial(redrawn, draws=100),
        runs=FEW_RUNS,
        mutants={
            "row count kept": (partial(row_count_kept, SampleAggregate), BY_RUNS),
            "no clip": unclipped,
            "radius for diameter": radius_for_diameter,
            "number of results forgotten": one_number,
            "division by true blocks": (
                true_blocks,
                {"make": partial(mean, bounds=(-1, 1), n_blocks=40), "pair": partial(corners, rows=0)},
            ),
        },
        survives=unseen_without_runs("row count kept", BOTH, FEW_RUNS),
    ),
    Subject(
        "SampleAggregate, ball",
        partial(mean, radius=1.0),
        corners,
        claims=((0.1, 0.0), (3.0, 0.0), (1.0, 1e-5)),
        reading=partial(redrawn, draws=100),
        runs={(3.0, 0.0): RUNS_AT_3},
        run_floor={(3.0, 0.0): 0.05},
        mutants={"no clip": unclipped, "radius for diameter": radius_for_diameter},
    ),
    Subject(
        "SampleAggregate, median",
        median,
        ends,
        claims=PURE,
        reading=partial(in_turn, draws=400, history=beyond_the_middle),
        # The fewer cells, the more are chosen beyond the middle anyhow.
        floor=0.8,
        runs={},
        mutants={
            "half the noise": half_noise,
            "scores that only rise": monotone,
            "budget not divided": partial(every_choice_spends_all, _sample_aggregate),
        },
    ),
    Subject(
        "SampleAggregate, median of many numbers",
        partial(median, n_columns=10),
        partial(ends, n_columns=10),
        claims=((1.0, 1e-5),),
        reading=partial(in_turn, draws=25, evidence=lambda model: ends(model, 10, 3.0)[0]),
        # As of directions: losses are spread over more than two outcomes.
        floor=0.6,
        runs={},
        mutants={
            "half the noise": half_noise,
            "scores that only rise": monotone,
            "budget not divided": partial(undivided, 10),
        },
    ),
]
