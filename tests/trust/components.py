"""Principal components: rows that are all alike, and one more of them.

With many, directions are all but certain to be close to that of the rows. The one more record is told best by
directions orthogonal to it, which it makes rarer by all that it may: so these are the history.
"""

import contextlib
from dataclasses import replace
from functools import partial

import numpy as np

from skdp import DPPCA, ExpMechPCA
from skdp.decomposition import _base, _exponential, _matrix
from skdp.mechanisms import BinghamMechanism
from tests.trust.redrawn import BY_RUNS, FEW_RUNS, half_noise, redrawn, row_count_kept, unseen_without_runs
from tests.trust.subjects import PURE, RUNS_AT_3, Subject, replaced


def exponential(epsilon, delta, **parameters):
    return ExpMechPCA(**{"n_components": 2, "epsilon": epsilon, "delta": delta, "data_norm": 1.0, **parameters})


def matrix(epsilon, delta, **parameters):
    return DPPCA(**{"epsilon": epsilon, "delta": delta, "data_norm": 1.0, "solver": "matrix", **parameters})


def bingham(epsilon, delta, **parameters):
    return DPPCA(
        **{"n_components": 2, "epsilon": epsilon, "delta": delta, "data_norm": 1.0, "centered_norm": 0.5}
        | {"solver": "bingham", **parameters}
    )


def alike(model, d=6, sharpness=None, norm=1.0):
    """Rows that are alike, of which so many make the exponent of the first component what it is to be.

    If a delta is granted, what hardly ever happens does not count.
    """
    sharpness = sharpness or (0.2 if model.delta else 60.0)
    mechanisms = [release.mechanism for release in model.privacy_plan(n_features=d).releases]
    draw = next(m for m in mechanisms if isinstance(m, BinghamMechanism))
    row = norm * np.eye(d)[:1]
    n = int(np.ceil(sharpness * draw.scale / draw.sensitivity))
    return (np.repeat(row, n, axis=0),), (np.repeat(row, n + 1, axis=0),)


def many(model):
    """In more dimensions, each draw says more of the exponent."""
    return alike(model, d=30, sharpness=150.0)[0]


def lone(model, d=3, norm=1.0):
    return (np.zeros((0, d)),), (norm * np.eye(d)[:1],)


def orthogonal(number, label, mechanism, value):
    """The first mean is what it is, with half of the norm of the rows; directions are orthogonal to the rows."""
    if isinstance(mechanism, BinghamMechanism):
        return np.linalg.eigh(value)[1][:, 0]
    if label == _exponential.MEAN:
        return value * np.append(np.full(len(value) - 1, 0.5), 1.0)
    return None


def unclipped():
    return replaced(_base, "clip_rows", lambda clip: lambda rows, norm: clip(rows, 1e9))


def all_for_each():
    """Each component has the exponent of the whole budget, and states its share."""

    def greedy(whole):
        def plan(parameters, n_features):
            found = whole(parameters, n_features)
            n = sum(isinstance(release.mechanism, BinghamMechanism) for release in found.releases)

            def spent(mechanism):
                return replace(mechanism, epsilon=n * mechanism.epsilon)

            releases = [
                replace(r, mechanism=spent(r.mechanism)) if isinstance(r.mechanism, BinghamMechanism) else r
                for r in found.releases
            ]
            return replace(found, releases=tuple(releases))

        return plan

    return planned(greedy)


@contextlib.contextmanager
def planned(change):
    with replaced(_exponential, "plan", change), replaced(_matrix, "exponential_plan", change):
        yield


def forgets(names, *positions):
    """Sensitivities that leave out what the arguments at some positions stand for."""

    def change(whole):
        return lambda *given: whole(*(0.0 if i in positions else value for i, value in enumerate(given)))

    return replaced_where_used(names, change)


@contextlib.contextmanager
def replaced_where_used(names, change):
    with contextlib.ExitStack() as stack:
        for module in (_exponential, _matrix):
            for name in names:
                if hasattr(module, name):
                    stack.enter_context(replaced(module, name, change))
        yield


def true_count():
    """The mean of the rows in place of their sum, with noise for a hundredth of it."""

    def divided(whole):
        def sums(X, norm, private):
            total, count = whole(X, norm, private)
            return total / max(count, 1) * 100, count

        return sums

    return replaced_where_used(("row_sums",), divided)


def undivided():
    """The mean and the moments each have the noise of the whole budget, and state their shares."""

    def greedy(whole):
        def mechanism(epsilon, delta, share, *rest):
            return whole(epsilon, delta, 1.0, *rest)[0], whole(epsilon, delta, share, *rest)[1]

        return mechanism

    return replaced(_matrix, "l2_mechanism", greedy)


drawn = partial(redrawn, draws=40, history=orthogonal, evidence=many)

#: Claims that a subject has if it says nothing else.
BOTH = (*PURE, (1.0, 1e-5))

SUBJECTS = [
    Subject(
        "ExpMechPCA",
        exponential,
        alike,
        claims=PURE,
        reading=drawn,
        runs=FEW_RUNS,
        mutants={
            "row count kept": (partial(row_count_kept, ExpMechPCA), BY_RUNS),
            "half the noise": half_noise,
            "no clip": (unclipped, {"pair": partial(alike, norm=2.0)}),
            "budget not divided": all_for_each,
        },
        survives=unseen_without_runs("row count kept", PURE, FEW_RUNS),
    ),
    Subject(
        "ExpMechPCA, with a delta",
        exponential,
        alike,
        claims=((1.0, 1e-5),),
        reading=drawn,
        # Directions that tell the whole claim are too rare to count.
        floor=0.6,
        runs={},
        mutants={"half the noise": half_noise, "budget not divided": all_for_each},
    ),
    Subject(
        "ExpMechPCA, many components",
        partial(exponential, n_components=6),
        partial(alike, d=8),
        claims=((1.0, 1e-5),),
        reading=drawn,
        # Losses of a direction are spread less than those of two outcomes, which the accounting allows for.
        floor=0.45,
        runs={},
        mutants={
            "half the noise": half_noise,
            "budget not divided": all_for_each,
        },
        survives={"half the noise": "directions of rows that are alike tell half of the claim if a delta is granted"},
    ),
    Subject(
        # With one column, nothing is drawn: all of the budget is for the variance.
        "ExpMechPCA, variances",
        partial(exponential, n_components=None),
        partial(lone, d=1),
        claims=((0.1, 0.0), (3.0, 0.0), (1.0, 1e-5)),
        reading=partial(redrawn, draws=500),
        runs={(3.0, 0.0): RUNS_AT_3},
        run_floor={(3.0, 0.0): 0.1},
        mutants={
            "no clip": (unclipped, {"pair": partial(lone, d=1, norm=2.0)}),
            "count forgotten": partial(forgets, ("energies_l1", "energies_l2"), 1),
        },
    ),
    Subject(
        # And here for the mean.
        "ExpMechPCA, mean",
        partial(exponential, n_components=None, center="private", variance_share=0.0),
        partial(lone, d=1),
        claims=((0.1, 0.0), (3.0, 0.0), (1.0, 1e-5)),
        reading=partial(redrawn, draws=700),
        runs={},
        mutants={
            "no clip": (unclipped, {"pair": partial(lone, d=1, norm=2.0)}),
            "count forgotten": partial(forgets, ("row_sum_l2",), 1),
            "division by the true count": true_count,
        },
    ),
    Subject(
        "DPPCA, exponential",
        bingham,
        alike,
        claims=((0.1, 0.0), (3.0, 0.0), (1.0, 1e-5)),
        reading=drawn,
        # As above, if a delta is granted.
        floor=0.6,
        runs={},
        mutants={
            "half the noise": half_noise,
            "no clip": (unclipped, {"pair": partial(alike, norm=2.0)}),
        },
    ),
    Subject(
        "DPPCA, matrix",
        matrix,
        lone,
        reading=partial(redrawn, draws=150),
        runs=FEW_RUNS,
        mutants={
            "row count kept": (partial(row_count_kept, DPPCA), BY_RUNS),
            "no clip": (unclipped, {"pair": partial(lone, norm=2.0)}),
            "sum and count forgotten": partial(forgets, ("centred_moments_l2",), 1, 2),
        },
        survives=unseen_without_runs("row count kept", BOTH, FEW_RUNS),
    ),
    Subject(
        "DPPCA, matrix of centred rows",
        partial(matrix, centered_norm=0.5),
        lone,
        claims=((0.1, 0.0), (3.0, 0.0), (1.0, 1e-5)),
        reading=partial(redrawn, draws=150, history=orthogonal),
        runs={},
        mutants={
            "no clip": (unclipped, {"pair": partial(lone, norm=2.0)}),
            "budget not divided": undivided,
            "division by the true count": true_count,
        },
    ),
]
