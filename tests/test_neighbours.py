"""What one record changes in what goes into each release, as `fit` computes it: no more than the noise is made for.

Both neighbours are given the same released values, so that what is compared follows them. This sees what audits of
single statistics do not: a statistic of unreleased data, or one in other units than its mechanism's.
"""

from functools import partial

import numpy as np
import pytest

from skdp.mechanisms import TangentPlaneMechanism
from tests.estimators import VARIANTS, data_for, declared, is_local, is_search, name_of, needs_y
from tests.trust.transcripts import transcript

# The minimiser itself moves further than the noise on top of it is made for; the objective's noise covers that. In a
# search fits of the same releases follow each other; local estimators release each record by itself.
COMPARED = [
    estimator
    for estimator in VARIANTS
    if type(estimator).__name__ not in ("ObjPertLogReg", "ObjPertSVC")
    and not is_search(estimator)
    and not is_local(estimator)
]

# One block's teacher or result has a say in all groups, each of which has a budget of its own.
IN_ALL_GROUPS = ("PATEClassifier", "SampleAggregate")


def scores_moved(difference, monotone=True):
    """Return the largest change of a score of a group; where all move one way, it bounds their range as well."""
    return max(np.ptp(difference, axis=1).max() / (1 if monotone else 2), np.abs(difference).max())


def range_moved(difference):
    """Return the range of what is added: of a function, by its values at points, or of a quadratic form on vectors."""
    return np.ptp(difference) if difference.ndim == 1 else np.abs(np.linalg.eigvalsh(difference)).max()


def numbers(value, mechanism):
    """Return what goes into a release as numbers: of a function, its values all over its ball."""
    if not isinstance(mechanism, TangentPlaneMechanism):
        return np.array(value, dtype=float)
    points = np.random.default_rng(1).normal(size=(500, mechanism.n_parameters))
    points *= mechanism.radius / np.linalg.norm(points, axis=1)[:, None]
    return value.values(np.vstack([points, points / 2, 0 * points[:1]]) @ value.frame)


MOVED = {
    "L1": lambda difference: np.abs(difference).sum(),
    "L2": np.linalg.norm,
    "score": scores_moved,
    # Counts of the cells of each column's grid.
    "score range": lambda difference: np.abs(difference).sum(axis=1).max(),
    "range": range_moved,
}


def inputs(estimator, data, n_most, forced=None):
    """Return what goes into each release; with `forced`, a transcript of a neighbour, where the same values get out."""

    def sample(mechanism, rows, n_rows, number):
        # The record that may be added is the last one: samples are the same but for it, which is always in.
        if number == 0:
            sample.rng = np.random.default_rng(0)
        if rows is None:
            return None
        rows = np.flatnonzero(sample.rng.random(n_most) < mechanism.rate)
        return np.append(rows[rows < n_most - 1], np.arange(n_most - 1, n_rows))

    return transcript(estimator, data, forced, numbers=numbers, sample=sample)


def records(X, y, rng):
    """Yield what may be added: ordinary, at a corner, far beyond it, tiny."""
    for size in (1.0, 5.0, 1e3, 1e300, 1e-310):
        sign = rng.choice([-1.0, 1.0], size=(1, X.shape[1]))
        yield size * sign, y[:1]
        yield size * sign, y[-1:]
    yield np.zeros((1, X.shape[1])), y[:1]


@pytest.mark.parametrize("estimator", COMPARED, ids=name_of)
@pytest.mark.parametrize("epsilon", [0.5, 30.0])
def test_no_release_moves_by_more_than_it_says(estimator, epsilon):
    rng = np.random.default_rng(0)
    most = {}
    for n_rows in (0, 1, 60):
        X, y = data_for(estimator, n_rows=max(n_rows, 2), seed=n_rows)
        X, y = X[:n_rows], (y[:n_rows] if n_rows else y[:0])
        pool = data_for(estimator, n_rows=50)
        model = declared(estimator, epsilon=epsilon, random_state=3)
        without = inputs(model, (X, y)[: 1 + needs_y(model)], n_rows + 1)
        for row, label in records(*pool, rng):
            data = (np.concatenate([X, row]), np.concatenate([y, label]))[: 1 + needs_y(model)]
            with_it = inputs(model, data, n_rows + 1, without)
            assert without.keys() == with_it.keys()
            for name, release in without.items():
                mechanism, difference = release.mechanism, with_it[name].value - release.value
                if mechanism.norm == "score" and type(estimator).__name__ not in IN_ALL_GROUPS:
                    assert (difference != 0).any(axis=1).sum() <= 1
                moved = MOVED[mechanism.norm]
                if not getattr(mechanism, "monotone", True):
                    moved = partial(moved, monotone=False)
                part = moved(difference) / mechanism.sensitivity
                most[name] = max(most.get(name, 0.0), part)
    assert max(most.values()) <= 1 + 1e-9, most
    assert max(most.values()) > (0.05 if type(estimator).__name__ in IN_ALL_GROUPS else 0.1), most
