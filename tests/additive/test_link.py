"""Links of additive regression: curves add up to predictions, or to their square roots."""

import numpy as np
import pytest
from sklearn.metrics import r2_score

from skdp import DPAdditiveRegressor
from skdp.additive import _regressor
from skdp.solvers.calibration import Line
from tests.difficult import difficult

BOUNDS = (0.0, 1.0)


def amounts(n=6000, seed=0):
    """Return columns, and skewed amounts whose deviations grow with their size."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    return X, 10 * np.exp(2 * X[:, 0] + X[:, 1] + 0.3 * rng.standard_normal(n))


def fitted(X, y, bounds_y, epsilon=3.0, delta=1e-6, seed=0):
    return DPAdditiveRegressor(epsilon=epsilon, delta=delta, bounds=BOUNDS, bounds_y=bounds_y, random_state=seed).fit(
        X, y
    )


def sums(model, X):
    return model.contributions(X).sum(axis=1) + model.intercept_


@pytest.mark.parametrize(
    ("change", "bounds_y", "delta", "link"),
    [
        (lambda y: y, (0, 400), 1e-6, "sqrt"),
        # The range of the targets may be negative.
        (lambda y: y - 200, (-200, 200), 1e-6, "identity"),
        # Most targets are in the upper half of their range.
        (lambda y: 400 - y, (0, 400), 1e-6, "identity"),
        # Roots of targets far from 0 are nearly a line.
        (lambda y: y + 1000, (1000, 1400), 1e-6, "identity"),
        (lambda y: y, (0, 400), 0.0, "identity"),
    ],
)
def test_link_follows_from_released_numbers(change, bounds_y, delta, link):
    X, y = amounts()
    model = fitted(X, change(y), bounds_y, delta=delta)
    assert model.link_ == link
    released = model._targets.range
    expected = sums(model, X)
    if link == "sqrt":
        assert released.lower >= 0
        expected = np.maximum(expected, 0.0) ** 2 + model.offset_
    else:
        assert model.offset_ == 0
    np.testing.assert_allclose(model.predict(X), np.clip(expected, released.lower, released.upper))


def test_narrow_bounds_far_from_zero():
    X, _ = amounts(500)
    y = np.ones(500)
    model = fitted(X, y, (1.0, 1.0 + 2.0**-35))
    assert model.link_ == "identity"
    assert np.isfinite(model.predict(X)).all()


def test_nothing_but_the_range_and_the_mean_decides(monkeypatch):
    """Other records with the same released range and mean have the same link."""
    X, y = amounts()
    seen = []
    original = _regressor.TargetRange.located

    def located(self, session, targets, bounds):
        seen.append(original(self, session, targets, bounds))
        return seen[0]

    monkeypatch.setattr(_regressor.TargetRange, "located", located)
    first = fitted(X, y, (0, 400))
    second = fitted(X, 400 - y, (0, 400), seed=1)
    assert seen[1].mean[0] > 0 > seen[0].mean[0]
    assert first.link_ == second.link_ == "sqrt"


def test_roots_pay_for_skewed_amounts(monkeypatch):
    X, y = amounts(12_000)
    train, test = slice(0, 6000), slice(6000, None)
    found, original = [], _regressor.Targets
    for roots in (True, False):
        with monkeypatch.context() as patch:
            patch.setattr(_regressor, "Targets", lambda released, _, roots=roots: original(released, roots))
            models = [fitted(X[train], y[train], (0, 800), 1.0, seed=seed) for seed in range(3)]
        found.append(np.mean([r2_score(y[test], model.predict(X[test])) for model in models]))
    assert found[0] > found[1] + 0.01


@pytest.mark.parametrize("roots", [True, False])
def test_the_last_release_corrects_predictions(monkeypatch, roots):
    """The line maps predictions in units of half the range from its middle."""
    X, y = amounts(2000)
    models = []
    original = _regressor.Targets
    monkeypatch.setattr(_regressor, "Targets", lambda released, _: original(released, roots))
    for line in (Line(), Line(0.5, 0.25)):
        monkeypatch.setattr(_regressor.Calibration, "line", lambda *args, line=line, **options: line)
        models.append(fitted(X, y, (0, 400)))
    whole = models[0]._targets.range
    one, other = (model.predict(X) for model in models)
    expected = whole.centre + whole.half * (0.5 * (one - whole.centre) / whole.half + 0.25)
    # Predictions that were clipped before the correction are left out.
    inside = (sums(models[0], X) > 0) & (one > whole.lower) & (one < whole.upper)
    assert inside.mean() > 0.5
    np.testing.assert_allclose(other[inside], np.clip(expected, whole.lower, whole.upper)[inside])
    ratio = models[1].noise_std(X)[inside] / models[0].noise_std(X)[inside]
    np.testing.assert_allclose(ratio, 0.5, rtol=1e-6)


def test_sums_of_the_last_release_are_of_predictions(monkeypatch):
    X, y = amounts(2000)
    seen = []

    def line(self, session, predictions, targets, window, **options):
        seen.append((predictions, targets, window))
        return Line()

    monkeypatch.setattr(_regressor.Calibration, "line", line)
    model = fitted(X, y, (0, 400))
    (predictions, targets, window), whole = seen[0], model._targets.range
    assert model.link_ == "sqrt"
    np.testing.assert_allclose(whole.centre + whole.half * predictions, model.predict(X))
    np.testing.assert_allclose(whole.centre + whole.half * targets, np.clip(y, whole.lower, whole.upper))
    assert np.all(np.abs(predictions - window.centre) <= window.half * (1 + 1e-9))


def test_deviations_of_predictions_have_the_slope_of_the_square():
    X, y = amounts()
    model = fitted(X, y, (0, 400))
    assert model.link_ == "sqrt"
    scores, deviations = sums(model, X), model.noise_std(X)
    by_sums = deviations / (2 * scores)
    model._targets = _regressor.Targets(model._targets.range, False)
    np.testing.assert_allclose(by_sums, model.noise_std(X))


def test_targets_without_visible_signal_are_predicted_by_their_mean():
    """The mean of the scores was -.026: the square of the mean root is less than the mean."""
    table = difficult("heavy_tailed_target", 4500)
    X, y, scores = np.clip(table.X, *table.bounds), table.target, []
    for seed in range(10, 20):
        model = DPAdditiveRegressor(
            epsilon=1.0, delta=1e-6, bounds=table.bounds, bounds_y=table.target_bounds, random_state=seed
        )
        scores.append(model.fit(X[:3000], y[:3000]).score(X[3000:], y[3000:]))
        assert model.link_ == "sqrt"
    assert np.mean(scores) > -0.013
