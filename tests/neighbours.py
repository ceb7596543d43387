"""Neighbouring data sets, and what goes into the releases of a fit to them."""

from functools import partial

import numpy as np

from skdp.mechanisms import TangentPlaneMechanism
from tests.estimators import VARIANTS, data_for, declared, is_local, is_search, needs_y
from tests.trust.transcripts import transcript


def perturbs_objective(estimator):
    """Whether a perturbed objective is minimised."""
    if type(estimator).__name__ == "DPAdditiveClassifier":
        return estimator.delta == 0
    return type(estimator).__name__ == "ObjPertLogReg"


# The minimiser itself moves further than the noise on top of it is made for; the objective's noise covers that. In a
# search fits of the same releases follow each other; local estimators release each record by itself.
COMPARED = [
    estimator
    for estimator in VARIANTS
    if not perturbs_objective(estimator) and not is_search(estimator) and not is_local(estimator)
]

# One block's teacher or result has a say in all groups, each of which has a budget of its own.
IN_ALL_GROUPS = ("PATEClassifier", "SampleAggregate")


def numbers(value, mechanism):
    """Return what goes into a release as numbers: of a function, its values all over its ball."""
    if not isinstance(mechanism, TangentPlaneMechanism):
        return np.array(value, dtype=float)
    points = np.random.default_rng(1).normal(size=(500, mechanism.n_parameters))
    points *= mechanism.radius / np.linalg.norm(points, axis=1)[:, None]
    return value.values(np.vstack([points, points / 2, 0 * points[:1]]) @ value.frame)


def scores_moved(difference, monotone=True):
    """Return the largest change of a score of a group; where all move one way, it bounds their range as well."""
    return max(np.ptp(difference, axis=1).max() / (1 if monotone else 2), np.abs(difference).max())


def range_moved(difference):
    """Return the range of what is added: of a function, by its values at points, or of a quadratic form on vectors."""
    return np.ptp(difference) if difference.ndim == 1 else np.abs(np.linalg.eigvalsh(difference)).max()


MOVED = {
    "L1": lambda difference: np.abs(difference).sum(),
    "L2": np.linalg.norm,
    "score": scores_moved,
    # Counts of the cells of each column's grid.
    "score range": lambda difference: np.abs(difference).sum(axis=1).max(),
    "range": range_moved,
}


def inputs(estimator, data, n_most, forced=None, read=numbers):
    """Return the transcript of a fit, with what goes into each release as `read` reads it.

    With `forced`, the transcript of a neighbour, the same values come out. No data set has more rows than `n_most`.
    """

    def sample(mechanism, rows, n_rows, number):
        # The record that may be added is the last one: samples are the same but for it, which is always in.
        if number == 0:
            sample.rng = np.random.default_rng(0)
        if rows is None:
            return None
        rows = np.flatnonzero(sample.rng.random(n_most) < mechanism.rate)
        return np.append(rows[rows < min(n_most - 1, n_rows)], np.arange(n_most - 1, n_rows))

    return transcript(estimator, data, forced, numbers=read, sample=sample)


def inputs_of_both(estimator, data, other, read=numbers):
    """Return the transcripts of fits to two data sets that get the same values out."""
    n_most = max(len(data[0]), len(other[0]))
    first = inputs(estimator, data, n_most, read=read)
    return first, inputs(estimator, other, n_most, first, read=read)


def records(X, y, rng):
    """Yield what may be added: ordinary, at a corner, far beyond it, tiny."""
    for size in (1.0, 5.0, 1e3, 1e300, 1e-310):
        sign = rng.choice([-1.0, 1.0], size=(1, X.shape[1]))
        yield size * sign, y[:1]
        yield size * sign, y[-1:]
    yield np.zeros((1, X.shape[1])), y[:1]


def most_moved(estimator, epsilon, form=np.asarray, sizes=(0, 1, 60)):
    """Return the largest change of what goes into each release, as a part of its sensitivity; rows are in a `form`."""
    rng = np.random.default_rng(0)
    most = {}
    for n_rows in sizes:
        X, y = data_for(estimator, n_rows=max(n_rows, 2), seed=n_rows)
        X, y = X[:n_rows], (y[:n_rows] if n_rows else y[:0])
        pool = data_for(estimator, n_rows=50)
        model = declared(estimator, epsilon=epsilon, random_state=3)
        without = inputs(model, (form(X), y)[: 1 + needs_y(model)], n_rows + 1)
        for row, label in records(*pool, rng):
            data = (form(np.concatenate([X, row])), np.concatenate([y, label]))[: 1 + needs_y(model)]
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
    return most
