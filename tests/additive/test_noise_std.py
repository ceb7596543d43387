"""Standard deviations of scores: against those over many fits, for every way to find the curves."""

import itertools

import numpy as np
import pytest

from skdp import DPAdditiveClassifier, DPAdditiveRegressor
from tests.trust.choices import choosing

# Bins do not vary with the noise of counts.
EDGES = {"bin_edges": dict.fromkeys(range(3), np.linspace(0, 1, 7))}
TABLE = {"n_bins": 6, "epsilon": 3.0, "delta": 1e-5, "interactions": None, **EDGES}


def rows(n=4000):
    rng = np.random.default_rng(0)
    # Few records have large values of the last column.
    X = rng.random((n, 3)) ** [1, 1, 4]
    score = 3 * X[:, 0] - 2 * (X[:, 1] > 0.5) + rng.logistic(size=n) / 2
    return X, score


CLASSES = {
    "two": {"classes": [0, 1]},
    "three": {"classes": [0, 1, 2]},
    "named pair": {"classes": [0, 1], "interactions": [(0, 1)]},
    "pure": {"classes": [0, 1], "delta": 0.0, "epsilon": 6.0},
}


@pytest.mark.sample(every=6)
@pytest.mark.parametrize("parameters", CLASSES.values(), ids=CLASSES.keys())
def test_scores_of_classes_move_by_so_much(parameters):
    X, score = rows()
    y = np.digitize(score, [0.5, 1.5][: len(parameters["classes"]) - 1])
    fits = []
    for seed in range(40):
        # The same tables in all fits.
        places = itertools.count(2, 3)
        with choosing(lambda mechanism, scores, own, places=places: next(places) % (len(scores) - 1)):
            fits.append(DPAdditiveClassifier(**{**TABLE, **parameters}, random_state=seed).fit(X, y))
    check(fits, X[:500], [own.decision_function(X[:500]) for own in fits])


@pytest.mark.sample(every=6)
@pytest.mark.parametrize("parameters", [{}, {"interactions": [(0, 1)]}], ids=["columns", "pair"])
def test_predictions_of_numbers_move_by_so_much(parameters):
    X, score = rows()
    common = {**TABLE, **parameters, "bounds_y": (-4, 6)}
    fits = [DPAdditiveRegressor(**common, random_state=seed).fit(X, score) for seed in range(40)]
    check(fits, X[:500], [own.predict(X[:500]) for own in fits])


def check(fits, X, scores):
    actual = np.std(scores, axis=0, ddof=1)
    estimates = [own.noise_std(X) for own in fits[:5]]
    for estimate in estimates:
        assert estimate.shape == actual.shape
        assert np.all(estimate > 0)
        # Forty fits tell a standard deviation to 11 %. Counts are noisy too, and the curvature is an estimate.
        # Shrinkage and the cells of tables vary with the noise as well, and estimates take them as given.
        assert 0.6 < np.sqrt(np.mean(actual**2) / np.mean(estimate**2)) < 2
    if actual.ndim == 1:
        # Rows in rare cells move more than others.
        assert np.corrcoef(actual.ravel(), np.mean(estimates, axis=0).ravel())[0, 1] > 0


def test_rows_in_blocks_are_those_at_once(monkeypatch):
    from skdp.additive import _base

    X, score = rows(1000)
    model = DPAdditiveClassifier(**TABLE, classes=[0, 1], random_state=0).fit(X, score > 0)
    whole = model.noise_std(X)
    monkeypatch.setattr(_base, "_ROWS", 100)
    np.testing.assert_allclose(model.noise_std(X), whole, rtol=1e-12)
    assert model.noise_std(X[:0]).shape == (0,)
    without = DPAdditiveClassifier(**{**TABLE, "epsilon": np.inf}, classes=[0, 1]).fit(X, score > 0)
    np.testing.assert_array_equal(without.noise_std(X[:5]), 0.0)


def test_without_noise_columns_of_one_value_have_none():
    X = np.zeros((50, 2))
    model = DPAdditiveRegressor(epsilon=np.inf, bounds=(-1, 1), bounds_y=(-1, 1), n_bins=8, random_state=0)
    np.testing.assert_array_equal(model.fit(X, X[:, 0]).noise_std(X[:5]), 0.0)
