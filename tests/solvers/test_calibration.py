"""Corrections of descents: the line of a regression, from its last release, and the powers of probabilities."""

import math

import numpy as np
import pytest
from scipy import special
from scipy.sparse import csr_array

from skdp.accounting import gaussian_mu
from skdp.linear_model import DPSGDClassifier, DPSGDRegressor
from skdp.neural_network import DPMLPRegressor
from skdp.solvers.calibration import (
    LABEL,
    SHARE,
    Calibration,
    Line,
    RowPowers,
    Window,
    chosen_line,
    weights_in_cells,
    with_mean,
)


def test_a_record_moves_the_weights_by_one_at_most():
    rng = np.random.default_rng(0)
    corners = np.array([-1.0, 0.0, 1.0, -np.inf, np.inf, np.nan, 1e300, 5e-324])
    f = np.concatenate([np.repeat(corners, 8), rng.uniform(-1.5, 1.5, 200)])
    t = np.concatenate([np.tile(corners, 8), rng.uniform(-1.5, 1.5, 200)])
    whole = weights_in_cells(f, t)
    moves = []
    for k in range(len(f)):
        moved = whole - weights_in_cells(np.delete(f, k), np.delete(t, k))
        assert np.all(moved >= 0)
        moves.append([np.abs(moved).sum(), np.linalg.norm(moved)])
    np.testing.assert_array_equal(np.max(moves, axis=0), [1.0, 1.0])


def test_sums_do_not_depend_on_the_order():
    rng = np.random.default_rng(1)
    f, t = rng.uniform(-1, 1, (2, 5000))
    np.testing.assert_array_equal(weights_in_cells(f, t), weights_in_cells(f[::-1], t[::-1]))


def test_without_noise_the_line_is_that_of_least_squares():
    rng = np.random.default_rng(2)
    f = rng.uniform(-0.5, 0.5, 3000)
    t = np.clip(1.7 * f - 0.1 + 0.05 * rng.normal(size=3000), -1, 1)
    line = chosen_line(weights_in_cells(f, t), 0.0)
    np.testing.assert_allclose([line.slope, line.shift], np.polyfit(f, t, 1), rtol=1e-3)


def test_a_line_is_shifted_to_the_mean_as_far_as_it_is_known():
    rng = np.random.default_rng(4)
    f = rng.uniform(-0.5, 0.5, 3000)
    weights = weights_in_cells(f, f + 0.04)
    line = Line(0.7, 0.1)
    gap = np.mean(f + 0.04 - (0.7 * f + 0.1))
    # Without noise, the mean of the predictions is that of the targets.
    assert with_mean(line, weights, 0.0, -0.9, 1e100).shift == pytest.approx(0.1 + gap, abs=1e-5)
    # With much noise, and no other estimate, the line stays.
    assert with_mean(line, weights, 1e6, 0.0, 1e100).shift == pytest.approx(0.1, abs=1e-3)
    # An exact mean of the targets leaves the noise in the predictions, and none if predictions are constant.
    mean = np.mean(f) + 0.04
    noisy = [
        [with_mean(flat, weights + 20 * rng.normal(size=6), 20.0, *known).shift for _ in range(400)]
        for flat in (Line(0.0, 0.1), line)
        for known in ((mean, 1e-9), (0.0, 1e100))
    ]
    deviations = np.std(noisy, axis=1)
    assert deviations[0] < 0.1 * deviations[1]
    assert deviations[2] < 0.9 * deviations[3]
    for found, expected in zip(np.mean(noisy, axis=1), (mean - 0.1, mean - 0.1, gap, gap), strict=True):
        # A part of the shift is kept for the noise.
        assert 0.2 * abs(expected) < (found - 0.1) * np.sign(expected) < 1.2 * abs(expected)


def test_noise_that_leaves_the_matter_open_keeps_the_predictions():
    rng = np.random.default_rng(3)
    f = rng.uniform(-0.5, 0.5, 300)
    weights = weights_in_cells(f, f + 0.05)
    assert chosen_line(weights, 100.0) == Line()
    # Predictions without signal are dropped for the mean.
    weights = weights_in_cells(f, np.full(300, 0.6))
    line = chosen_line(weights, 1.0)
    assert (line.slope, line.shift) == pytest.approx((0.0, 0.6), abs=0.02)


@pytest.mark.parametrize(("sure_by", "least", "most"), [(3.0, 0.0, 0.006), (2.0, 0.02, 1.0)])
def test_noise_rarely_replaces_good_predictions(sure_by, least, most):
    rng = np.random.default_rng(4)
    f = rng.uniform(-0.3, 0.3, 400)
    weights = weights_in_cells(f, f + rng.normal(scale=0.1, size=400))
    lines = [chosen_line(weights + 70 * rng.normal(size=6), 70.0, sure_by=sure_by) for _ in range(2000)]
    # The squared error of the predictions is 0.01. That of these lines is three times as large, or more.
    far = [np.mean((line.shift + (line.slope - 1) * f) ** 2) > 0.02 for line in lines]
    assert least <= np.mean(far) <= most


def test_a_window_is_within_the_bounds_of_targets():
    assert Window.of(-3.0, 0.5) == Window(-0.25, 0.75)
    assert Window.of(0.2, 5.0) == Window(0.6, 0.4)
    # Predictions beyond the bounds say nothing of where those of other records are.
    assert Window.of(2.0, 3.0) == Window()
    assert Window.of(0.5, 0.5).half > 0


def test_in_a_window_less_noise_hides_that_predictions_follow_nothing():
    rng = np.random.default_rng(5)
    f = rng.uniform(-0.1, 0.1, 3000)
    targets = rng.uniform(-0.1, 0.1, 3000)
    window = Window.of(-0.1, 0.1)
    near = weights_in_cells((f - window.centre) / window.half, targets)
    far = weights_in_cells(f, targets)
    assert chosen_line(far, 8.0) == Line()
    assert chosen_line(near, 8.0, window).slope < 0.3 * window.half


@pytest.mark.parametrize("window", [Window(), Window(0.3, 0.4)])
def test_lines_of_a_window_are_lines_of_predictions(window):
    given = []

    class WithoutNoise:
        def release(self, label, values):
            given.append(values)
            return values

    rng = np.random.default_rng(6)
    f = rng.uniform(0.0, 0.6, 3000)
    plan = Calibration.of(1e6, 1e-6)
    for slope, shift in ((1.0, 0.0), (0.0, 0.2), (0.5, -0.3)):
        line = plan.line(WithoutNoise(), f, slope * f + shift, window)
        assert (line.slope, line.shift) == pytest.approx((slope, shift), abs=0.01)
        assert np.abs(given[-1]).sum() <= 3000


def test_what_it_costs():
    common = {"epsilon": 0.8, "bounds_y": (0, 1)}
    for expected_n in (None, 500):
        plan = DPSGDRegressor(**common, data_norm=1.0, batch_size=1.0, expected_n=expected_n).privacy_plan(n_features=3)
        last = plan.releases[-1]
        assert (last.label, last.share) == (LABEL, SHARE)
        assert last.mechanism.scale * math.sqrt(SHARE) * gaussian_mu(0.8, 1e-5) == pytest.approx(1, rel=1e-3)
        whole = math.hypot(*(event.noise_mu for event in plan.events))
        assert whole == pytest.approx(gaussian_mu(0.8, 1e-5), rel=1e-6)


def test_several_targets_have_lines_of_their_own_and_the_noise_of_all():
    given = []

    class WithoutNoise:
        def release(self, label, values):
            given.append(values)
            return values

    rng = np.random.default_rng(4)
    predictions = rng.uniform(-0.5, 0.5, (3000, 3))
    targets = np.column_stack([predictions[:, 0], 0.5 - 0.3 * predictions[:, 1], 0.5 * predictions[:, 2]])
    plan = Calibration.of(1e6, 1e-6, 3)
    lines = plan.lines(WithoutNoise(), predictions, targets)
    assert [(line.slope, line.shift) for line in lines] == [
        pytest.approx(line, abs=0.01) for line in ((1.0, 0.0), (0.0, 0.5), (0.5, 0.0))
    ]
    # A record whose predictions and targets are all at a corner attains the sensitivity.
    corner = np.ones((1, 3))
    plan.lines(WithoutNoise(), corner, corner)
    moved = np.linalg.norm(given[-1])
    assert moved == pytest.approx(math.sqrt(3))
    assert moved <= plan.release.sensitivity <= moved * 1.001


def test_networks_have_it_too():
    common = {"epsilon": 0.8, "data_norm": 1.0, "bounds_y": ([0, 0], [1, 2]), "batch_size": 1.0}
    last = DPMLPRegressor(**common).privacy_plan(n_features=3).releases[-1]
    assert (last.label, last.share, last.mechanism.size) == (LABEL, SHARE, 12)
    assert last.mechanism.scale * math.sqrt(SHARE / 2) * gaussian_mu(0.8, 1e-5) == pytest.approx(1, rel=1e-3)
    plan = DPMLPRegressor(**{**common, "epsilon": math.inf}).privacy_plan(n_features=3)
    assert LABEL not in [release.label for release in plan.releases]


@pytest.mark.parametrize("parameters", [{"loss": "huber"}, {"fit_intercept": False}, {"epsilon": math.inf}])
def test_it_is_for_squared_errors_with_an_intercept_and_noise(parameters):
    plan = DPSGDRegressor(data_norm=1.0, bounds_y=(0, 1), **parameters).privacy_plan(n_features=3)
    assert LABEL not in [release.label for release in plan.releases]


# --- powers of probabilities -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 5])
def test_powers_of_rows_are_those_of_the_guide(n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4)) * (rng.random((50, 4)) < 0.5) * np.logspace(-200, 200, 50)[:, None]
    scores = rng.normal(size=50 if n_classes == 2 else (50, n_classes))
    logits = RowPowers(2.0, 0.6, 0.7, n_classes, 300.0).logits(X, scores)
    np.testing.assert_array_equal(logits, RowPowers(2.0, 0.6, 0.7, n_classes, 300.0).logits(csr_array(X), scores))
    for row, score, logit in zip(X, scores, logits, strict=True):
        length = math.hypot(min(math.hypot(*row), 2.0), 0.6)
        power = (1 - 2 / n_classes * max(0.0, 0.72 - 0.7 / length)) / (1 + 2 / n_classes * 45 / 300)
        np.testing.assert_allclose(logit, power * score)
        alone = RowPowers(2.0, 0.6, 0.7, n_classes, 300.0).logits(row[None], score[None])
        np.testing.assert_array_equal(alone[0], logit)
    # Rows of zeros and no constant feature have no gradient that is clipped.
    np.testing.assert_array_equal(RowPowers(2.0, 0.0, 0.7, n_classes, math.inf).logits(0 * X, scores), scores)


def logistic(n_classes, n=20_000, seed=0):
    """Rows of norm 1, and labels of a logistic model of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    p = special.softmax(X @ rng.normal(scale=1.5, size=(6, n_classes)), axis=1)
    return X, (rng.random((n, 1)) > np.cumsum(p[:, :-1], axis=1)).sum(axis=1), p


@pytest.mark.parametrize(("n_classes", "largest", "before"), [(2, 0.01, 0.07), (4, 0.04, 0.06)])
def test_probabilities_are_calibrated_under_clipping(n_classes, largest, before):
    """The mean distance from the true probabilities. Without powers, it is at least `before`."""
    X, y, p = logistic(n_classes)
    model = DPSGDClassifier(epsilon=3.0, data_norm=1.0, classes=range(n_classes), random_state=0).fit(X, y)
    scores = model.decision_function(X)
    plain = special.softmax(np.column_stack([0 * scores, scores]) if n_classes == 2 else scores, axis=1)
    found = model.predict_proba(X)
    errors = [float(np.abs(one - p).mean()) for one in (found, plain)]
    assert errors[0] < largest
    assert errors[1] > before
    np.testing.assert_array_equal(found.argmax(axis=1), model.predict(X))
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(found))


def test_without_clipping_and_noise_probabilities_are_those_of_the_scores():
    X, y, _ = logistic(2, 500)
    model = DPSGDClassifier(epsilon=math.inf, data_norm=1.0, classes=[0, 1], n_steps=5).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X)[:, 1], special.expit(model.decision_function(X)))
    # A bound that clips changes them without noise, too.
    model.set_params(max_grad_norm=0.1).fit(X, y)
    assert np.all(np.abs(model.predict_proba(X)[:, 1] - 0.5) < np.abs(special.expit(model.decision_function(X)) - 0.5))


def test_powers_follow_from_public_numbers_and_the_released_count():
    X, y, _ = logistic(2, 500)
    words = {"data_norm": 1.0, "classes": [0, 1], "n_steps": 2, "random_state": 0}
    declared = DPSGDClassifier(expected_n=400, **words).fit(X, y)._powers
    clip = 0.3 * math.hypot(1.0, 0.3)
    mu = gaussian_mu(1.0, 1e-5)
    assert declared == RowPowers(1.0, pytest.approx(0.3), pytest.approx(clip), 2, pytest.approx(400 * mu))
    # Of no records, only noise is released.
    released = DPSGDClassifier(**words).fit(X[:0], y[:0])._powers
    assert released.evidence >= mu
