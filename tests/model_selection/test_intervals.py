"""Intervals of private scores hold as often as they say, and broken ones are refused.

The false-alarm probability of each test of coverage is 1e-9, by the Clopper–Pearson interval of the coverage in `RUNS`
runs. Intervals may be wider than needed, so that only the upper end of this interval is compared.
"""

import math

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import average_precision_score, roc_auc_score

from skdp import BudgetAccountant
from skdp.model_selection import Evaluation, _scoring, private_score
from skdp.model_selection._scoring import gradient_of, make_table
from skdp.release.estimates import Law
from skdp.stats import Estimate
from tests.statistics import clopper_pearson

RUNS, ERROR = 150, 1e-9


@pytest.fixture(autouse=True)
def _exact(monkeypatch):
    """Ask models for all rows at once, which takes less time. Their predictions are exact."""
    monkeypatch.setattr(_scoring, "is_exact", lambda model: True)


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose estimated probability is the first column."""

    classes_ = np.array([0, 1])

    def fit(self, X, y):
        return self

    def predict(self, X):
        return (X[:, 0] > 0.5).astype(int)

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])


class Line(RegressorMixin, BaseEstimator):
    """A regressor that predicts the first column."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return X[:, 0]


def drawn(rng, n):
    """Records whose estimated probability is right, in the middle of one of ten bins."""
    X = (rng.integers(0, 10, size=(n, 1)) + 0.5) / 10
    return X, (rng.random(n) < X[:, 0]).astype(int)


METRICS = {
    "accuracy": {},
    "balanced_accuracy": {"label_weights": {0: 1.0, 1: 3.0}},
    "neg_log_loss": {},
    "roc_auc": {},
    "average_precision": {},
    "f1": {},
    "f1_macro": {},
    "recall": {},
    "recall_macro": {},
}


def truth(metric, options):
    """The score of the population: of the exact table of probabilities, without any noise."""
    p = (np.arange(10) + 0.5) / 10
    X, y = np.repeat(p, 20_000)[:, None], np.concatenate([np.arange(20_000) < 20_000 * each for each in p]).astype(int)
    return float(private_score(Given(), X, y, metric=metric, epsilon=math.inf, **options))


def coverage(metric, n, epsilon, delta, options, expected=None, of="total"):
    rng, hits = np.random.default_rng(n), 0
    expected = truth(metric, options) if expected is None else expected
    for _ in range(RUNS):
        X, y = drawn(rng, n)
        found = private_score(Given(), X, y, metric=metric, epsilon=epsilon, delta=delta, **options)
        if of == "noise":
            expected = float(private_score(Given(), X, y, metric=metric, epsilon=math.inf, **options))
        low, high = found.confidence_interval(of=of)
        hits += low <= expected <= high
    return clopper_pearson(hits, RUNS, ERROR)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("n", "epsilon", "delta"), [(2000, 0.5, 0.0), (5000, 0.1, 1e-5), (200, 5.0, 0.0)])
@pytest.mark.parametrize("of", ["total", "noise"])
def test_intervals_hold(metric, n, epsilon, delta, of):
    assert coverage(metric, n, epsilon, delta, METRICS[metric], of=of)[1] >= 0.95


class Flat(Given):
    """Estimates between 1/2 and those of the other classifier."""

    def predict_proba(self, X):
        return super().predict_proba((X + 0.5) / 2)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(("metric", "baseline"), [("accuracy", 1), ("accuracy", Flat()), ("neg_log_loss", Flat())])
@pytest.mark.parametrize(("n", "epsilon", "delta"), [(2000, 0.1, 1e-5), (200, 5.0, 0.0)])
def test_intervals_of_differences_to_a_baseline_hold(metric, baseline, n, epsilon, delta):
    assert coverage(metric, n, epsilon, delta, {"baseline": baseline})[1] >= 0.95


def test_intervals_of_differences_between_numbers_hold():
    rng, hits = np.random.default_rng(0), 0
    for _ in range(RUNS):
        # The errors of the model are rare and large, and the errors of the baseline are 0.2.
        X = np.full((400, 1), 0.5)
        y = np.where(rng.random(400) < 0.05, 1.0, 0.5)
        found = private_score(Line(), X, y, baseline=0.7, bounds_y=(0, 1), epsilon=2.0)
        low, high = found.confidence_interval()
        hits += low <= 0.95 * 0.2 + 0.05 * (0.3 - 0.5) <= high
    assert clopper_pearson(hits, RUNS, ERROR)[1] >= 0.95


# The log-odds of the label, and the estimate of a model, as functions of a normal variable.
MODELS = {
    "calibrated": lambda z: (1.5 * z, 1.5 * z),
    "near 1/2": lambda z: (1.5 * z, 0.02 * z),
    "near 0 and 1": lambda z: (1.5 * z, 12 * z),
    "rare label": lambda z: (1.5 * z - 4, 1.5 * z - 4),
    "eight estimates": lambda z: (1.5 * z, np.floor(2 * z.clip(-2, 1.99))),
}


def population(model, rng, n):
    odds, estimate = MODELS[model](rng.normal(size=n))
    return expit(estimate), (rng.random(n) < expit(odds)).astype(int)


@pytest.mark.sample(every=5)
@pytest.mark.parametrize(
    ("metric", "reference"), [("roc_auc", roc_auc_score), ("average_precision", average_precision_score)]
)
@pytest.mark.parametrize(
    ("model", "n", "epsilon", "delta"),
    [*[(model, 2000, 0.5, 0.0) for model in MODELS], ("near 1/2", 20_000, 1.0, 1e-6), ("rare label", 20_000, 1.0, 0.0)],
)
def test_intervals_of_areas_hold_for_any_estimates(model, metric, reference, n, epsilon, delta):
    rng = np.random.default_rng(n)
    p, y = population(model, rng, 500_000)
    expected, hits, widths = reference(y, p), 0, []
    for _ in range(RUNS):
        p, y = population(model, rng, n)
        low, high = private_score(
            Given(), p[:, None], y, metric=metric, epsilon=epsilon, delta=delta
        ).confidence_interval()
        hits += low <= expected <= high
        widths.append(high - low)
    assert clopper_pearson(hits, RUNS, ERROR)[1] >= 0.95
    if model != "rare label":
        assert np.mean(widths) < (0.15 if n == 2000 else 0.05)


@pytest.mark.parametrize("metric", ["accuracy", "roc_auc"])
def test_intervals_that_forget_the_noise_are_refused(metric, monkeypatch):
    def silent(mechanism, own):
        return Law(normal=1e-9)

    monkeypatch.setattr(_scoring, "combination", silent)
    monkeypatch.setattr("skdp.release.estimates.combination", silent)
    assert coverage(metric, 1000, 0.02, 0.0, METRICS[metric])[1] < 0.93


@pytest.mark.parametrize("metric", ["accuracy", "f1"])
def test_intervals_of_noise_alone_do_not_cover_the_population(metric):
    expected = truth(metric, {})
    rng, hits = np.random.default_rng(0), 0
    for _ in range(RUNS):
        found = private_score(Given(), *drawn(rng, 300), metric=metric, epsilon=20.0)
        low, high = found.confidence_interval(of="noise")
        hits += low <= expected <= high
    assert clopper_pearson(hits, RUNS, ERROR)[1] < 0.93


def test_intervals_hold_if_the_records_of_a_group_are_equal():
    expected, rng, hits = truth("accuracy", {}), np.random.default_rng(2), 0
    for _ in range(RUNS):
        X, y = drawn(rng, 300)
        twice, groups = np.arange(300).repeat(4), np.arange(300).repeat(4)
        found = private_score(Given(), X[twice], y[twice], groups=groups, rows_per_group=4, epsilon=5.0)
        low, high = found.confidence_interval()
        hits += low <= expected <= high
    assert clopper_pearson(hits, RUNS, ERROR)[1] >= 0.95
    assert found.privacy_.unit == "group"


@pytest.mark.parametrize("metric", ["neg_mean_absolute_error", "neg_mean_squared_error"])
def test_intervals_of_losses_are_in_units_of_the_loss(metric):
    rng, hits = np.random.default_rng(3), 0
    power = 1 if metric == "neg_mean_absolute_error" else 2
    for _ in range(RUNS):
        X = rng.uniform(-5, 5, size=(500, 1))
        y = X[:, 0] + rng.uniform(-1, 1, size=500)
        found = private_score(Line(), X, y, metric=metric, bounds_y=(-10, 10), epsilon=1.0)
        low, high = found.confidence_interval()
        hits += low <= -1 / (power + 1) <= high
        assert -(20**power) <= low <= float(found) <= high <= 0
    assert clopper_pearson(hits, RUNS, ERROR)[1] >= 0.95


@pytest.mark.parametrize("metric", ["roc_auc", "average_precision", "f1", "f1_macro", "recall", "recall_macro"])
def test_gradients_are_those_of_differences(metric):
    rng = np.random.default_rng(4)
    table = make_table(metric, Given(), np.array([0, 1]), 6)
    counts = rng.integers(5, 60, size=table.shape).astype(float)
    if table.edges is None:
        counts[1, 2] = 0.0
    found = gradient_of(table, counts)
    for cell in np.ndindex(counts.shape):
        moved = counts.copy()
        moved[cell] += 1e-4
        assert found[cell] == pytest.approx((table.value(moved) - table.value(counts)) / 1e-4, abs=1e-6), cell


def test_the_result_is_an_estimate_with_a_guarantee():
    X, y = drawn(np.random.default_rng(5), 1000)
    budget = BudgetAccountant(5.0)
    found = private_score(Given(), X, y, epsilon=0.5, accountant=budget)
    assert isinstance(found, Evaluation)
    assert isinstance(found, Estimate)
    assert float(found) == found.value
    assert found.privacy_.epsilon == 0.5
    assert budget.records[0].cost == found.privacy_.cost
    low, high = found.confidence_interval()
    narrow = found.confidence_interval(of="noise")
    assert low < narrow[0] < found.value < narrow[1] < high
    assert "standard error" in repr(found)
    assert "0.5" in repr(found)
    table = private_score(Given(), X, y, metric="confusion_matrix", epsilon=0.5)
    low, high = table.confidence_interval()
    assert low.shape == high.shape == table.standard_error.shape == (2, 2)
    assert np.all((low <= table.value) & (table.value <= high))
    with pytest.raises(TypeError):
        float(table)


def test_without_noise_the_interval_is_that_of_a_proportion():
    X, y = drawn(np.random.default_rng(6), 400)
    found = private_score(Given(), X, y, epsilon=math.inf)
    assert found.standard_error == 0
    assert found.confidence_interval(of="noise") == pytest.approx((found.value, found.value))
    # The interval of Wilson, from its own formula.
    z, p, n = 1.959963984540054, found.value, 400
    middle, half = (p + z**2 / (2 * n)) / (1 + z**2 / n), z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    half /= 1 + z**2 / n
    # The sampling error allows for the skewness of the answers. Therefore the interval is slightly wider.
    low, high = found.confidence_interval()
    assert middle - half - 0.005 <= low <= middle - half
    assert middle + half <= high <= middle + half + 0.005


def test_nothing_is_known_of_no_records():
    for metric, options in METRICS.items():
        found = private_score(
            Given(), np.zeros((0, 1)), np.zeros(0, dtype=int), metric=metric, epsilon=math.inf, **options
        )
        low, high = found.confidence_interval()
        assert (low, high) == ((-5.0, 0.0) if metric == "neg_log_loss" else (0.0, 1.0)), metric


def test_intervals_of_many_bins_are_computed_from_a_normal_law():
    X, y = drawn(np.random.default_rng(7), 20_000)
    for mechanism in ({"delta": 0.0}, {"delta": 1e-6}):
        wide, narrow = (
            private_score(Given(), X, y, metric="roc_auc", n_bins=bins, epsilon=1.0, random_state=0, **mechanism)
            for bins in (100, 110)
        )
        # The noise of a bin does not depend on the number of bins.
        assert narrow.standard_error == pytest.approx(wide.standard_error, rel=0.2)
        assert np.allclose(narrow.confidence_interval(), wide.confidence_interval(), atol=0.02)
    many = private_score(Given(), X, y, metric="roc_auc", n_bins=200_000, epsilon=1.0)
    low, high = many.confidence_interval()
    assert 0 <= low <= many.value <= high <= 1
