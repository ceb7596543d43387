"""Noisy gradient descent: clipped sums against their definition, exactness, steps, penalties, courses that compose."""

import math
import tracemalloc
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import special
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge

from skdp import BudgetAccountant, DPSGDClassifier, DPSGDRegressor
from skdp.accounting import GaussianEvent, SampledGaussianEvent
from skdp.release.estimator import Records
from skdp.release.session import Progress
from skdp.sensitivity import ExactTotal, clip_rows
from skdp.solvers import clipped_gradients
from skdp.solvers.clipped_gradients import ClippedGradients
from skdp.solvers.losses import Hinge, Huber, HuberHinge, LogLoss, OneVsRest, SoftmaxLogLoss
from tests.linear_model.data import blobs

NORM = 2.0


def margin_cost(phi):
    """The cost of one record under a binary loss, or one-vs-rest."""

    def cost(weights, x, target):
        z = weights @ x
        if len(z) == 1:
            return phi(z[0] * (1 if target == 1 else -1))
        return sum(phi(own if target == k else -own) for k, own in enumerate(z))

    return cost


def rounded(m, h=0.5):
    """The hinge with a rounded kink."""
    return 0.0 if m >= 1 + h else 1 - m if m <= 1 - h else (1 + h - m) ** 2 / (4 * h)


def softmax_cost(weights, x, target):
    z = weights @ x
    return special.logsumexp(z) - z[target]


def squared_cost(weights, x, target):
    return (weights[0] @ x - target) ** 2 / 2


def huber_cost(weights, x, target, c=0.5):
    r = abs(weights[0] @ x - target)
    return r**2 / 2 if r <= c else c * r - c**2 / 2


CASES = {
    "log_loss": (LogLoss(), margin_cost(lambda m: np.logaddexp(0, -m)), 2),
    "hinge": (Hinge(), margin_cost(lambda m: max(0.0, 1 - m)), 2),
    "rounded hinge": (HuberHinge(), margin_cost(rounded), 2),
    "multinomial": (SoftmaxLogLoss(4), softmax_cost, 4),
    "hinge, one-vs-rest": (OneVsRest(Hinge(), 3), margin_cost(lambda m: max(0.0, 1 - m)), 3),
    "rounded hinge, one-vs-rest": (OneVsRest(HuberHinge(), 3), margin_cost(rounded), 3),
    "squared": (Huber(16.0), squared_cost, 0),
    "huber": (Huber(0.5), huber_cost, 0),
}
every_loss = pytest.mark.parametrize("case", CASES)


def problem(case, n_rows=30, n_columns=4, seed=0):
    """Rows, targets, and weights with entries of few bits."""
    derivative, cost, n_classes = CASES[case]
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns)) * rng.uniform(0.1, 2, size=(n_rows, 1))
    targets = rng.integers(n_classes, size=n_rows) if n_classes else rng.uniform(-1, 1, size=n_rows)
    return derivative, cost, X, targets, rng.normal(size=(derivative.outputs, n_columns))


def sums(derivative, X, targets, max_norm, whole=False):
    return ClippedGradients(clip_rows(X, NORM), targets, derivative, max_norm, whole)


@every_loss
@pytest.mark.parametrize("max_norm", [0.3, 1e3])
def test_sum_is_that_of_clipped_numerical_gradients(case, max_norm):
    derivative, cost, X, targets, weights = problem(case)
    gradients = sums(derivative, X, targets, max_norm)
    point = gradients.at(weights)
    clipped = clip_rows(X, NORM).array
    expected = np.zeros_like(point)
    h = 1e-6
    for x, target in zip(clipped, targets, strict=True):
        own = np.zeros_like(point)
        for at in np.ndindex(point.shape):
            step = np.zeros_like(point)
            step[at] = h
            own[at] = (cost(point + step, x, target) - cost(point - step, x, target)) / (2 * h)
        expected += own * min(1, max_norm / max(np.linalg.norm(own), 1e-12))
    np.testing.assert_allclose(gradients.total(point), expected, atol=3e-4)
    some = np.array([1, 4, 5, 29])
    np.testing.assert_array_equal(
        gradients.total(point, some), sum(gradients.total(point, some[i : i + 1]) for i in range(4))
    )


@every_loss
@pytest.mark.parametrize("block_rows", [64, 67, 100, 333])
def test_a_record_adds_the_same_bits_wherever_it_stands(case, block_rows, monkeypatch):
    monkeypatch.setattr(clipped_gradients, "_BLOCK_ENTRIES", block_rows * 4)
    monkeypatch.setattr(clipped_gradients, "_SAMPLE_ENTRIES", block_rows * 4)
    derivative, _, X, targets, weights = problem(case, n_rows=601)
    point = sums(derivative, X, targets, 0.3).at(weights)
    rng = np.random.default_rng(1)
    whole = sums(derivative, X, targets, 0.3).total(point)
    order = rng.permutation(len(X))
    np.testing.assert_array_equal(sums(derivative, X[order], targets[order], 0.3).total(point), whole)
    # Blocks that are stored by columns.
    for own in (slice(None), order):
        np.testing.assert_array_equal(sums(derivative, X[own], targets[own], 0.3, whole=True).total(point), whole)
    for out in (0, 1, 63, 64, 300, 600):
        alone = sums(derivative, X[[out]], targets[[out]], 0.3).total(point)
        rest = sums(derivative, np.delete(X, out, 0), np.delete(targets, out), 0.3).total(point)
        np.testing.assert_array_equal(whole - rest, alone)


@every_loss
def test_contribution_reaches_the_claim_and_does_not_pass_it(case):
    derivative, _, X, targets, weights = problem(case, n_rows=300, seed=3)
    # Far off, where derivatives are large, for records of all sizes.
    X[:100] *= 1e6
    X[100:150] *= 1e-200
    most = 0.0
    for size in (0.1, 1.0, 100.0):
        for max_norm in (1e-3, 0.05):
            gradients = sums(derivative, X.copy(), targets, max_norm)
            point = gradients.at(size * weights)
            for i in range(0, 300, 7):
                own = np.linalg.norm(gradients.total(point, np.array([i])))
                assert own <= max_norm
                most = max(most, own / max_norm)
    assert most >= 0.99


@pytest.mark.parametrize("function", [np.exp, np.tanh, np.sqrt, np.trunc], ids=lambda f: f.__name__)
def test_elementwise_functions_do_not_see_the_position(function):
    rng = np.random.default_rng(0)
    values = np.concatenate([np.abs(rng.normal(size=12)) * s for s in (1e-8, 0.1, 1, 20)] + [[0.0, 700, 1e-310]])
    values = np.concatenate([values, -values]) if function is not np.sqrt else values
    alone = np.array([function(np.array([v]))[0] for v in values])
    for length in range(1, 41):
        for offset in (0, 1, 3):
            order = rng.permutation(len(values))[:length]
            space = np.empty(length + offset)
            space[offset:] = values[order]
            function(space[offset:], out=space[offset:])
            assert np.array_equal(space[offset:].view(np.int64), alone[order].view(np.int64))


def test_sums_of_many_records_are_exact(monkeypatch):
    monkeypatch.setattr(clipped_gradients, "EXACT_ROWS", 64)
    derivative, _, X, targets, weights = problem("log_loss", n_rows=1000)
    gradients = sums(derivative, X, targets, 0.3)
    point = gradients.at(weights)
    parts = [gradients.total(point, np.arange(start, min(start + 50, 1000))) for start in range(0, 1000, 50)]
    exact = [[sum(int(v * 2.0**60) for v in column)] for column in np.stack(parts)[:, 0].T]
    for lattice in (2.0**-5, 2.0**-15, 2.0**-25, 2.0**-35):
        total = gradients.total(point, lattice=lattice)[0]
        unit = int(lattice * 2**60)
        assert [int(v / lattice) for v in total] == [(2 * value + unit) // (2 * unit) for (value,) in exact]


def test_without_noise_patience_finds_the_minimum():
    X, y = blobs(2, 300, 4, seed=1)
    X, y = X / 4, y
    alpha = 1e-2
    model = DPSGDClassifier(
        epsilon=np.inf, data_norm=2.0, alpha=alpha, n_steps=6000, classes=[0, 1], expected_n=300, average=0.1
    ).fit(X, y)
    reference = LogisticRegression(C=1 / (alpha * 300), tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-4)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, atol=1e-4)


def test_without_noise_patience_finds_the_minimum_of_three_classes():
    X, y = blobs(3, 300, 4, seed=1)
    X = X / 4
    alpha = 1e-2
    model = DPSGDClassifier(
        epsilon=np.inf, data_norm=2.0, alpha=alpha, n_steps=6000, classes=[0, 1, 2], expected_n=300, average=0.1
    ).fit(X, y)
    reference = LogisticRegression(C=1 / (alpha * 300), tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), reference.predict_proba(X), atol=1e-4)


def test_without_noise_patience_finds_the_ridge_solution():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) / 3
    y = X @ [1.0, -2.0, 0.5] + 3 + 0.1 * rng.normal(size=200)
    alpha = 1e-2
    model = DPSGDRegressor(
        epsilon=np.inf, data_norm=3.0, bounds_y=(-3, 9), alpha=alpha, n_steps=6000, expected_n=200, average=0.1
    ).fit(X, y)
    reference = Ridge(alpha=alpha * 200).fit(X, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-4)
    assert model.intercept_ == pytest.approx(reference.intercept_, abs=1e-4)


def test_l1_penalty_leaves_zeros_and_matches_the_reference():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6)) / 3
    y = (X[:, 0] - X[:, 1] + 0.1 * rng.logistic(size=400) > 0).astype(int)
    common = {"epsilon": np.inf, "data_norm": 2.0, "classes": [0, 1], "expected_n": 400, "penalty": "l1"}
    model = DPSGDClassifier(**common, alpha=0.02, n_steps=4000, average=False).fit(X, y)
    assert np.all(model.coef_[0, 2:] == 0)
    assert np.all(model.coef_[0, :2] != 0)
    everything = DPSGDClassifier(**common, alpha=10.0).fit(X, y)
    assert not np.any(everything.coef_)


@pytest.mark.parametrize("schedule", ["constant", "invscaling", "cosine"])
def test_schedules_learn(schedule):
    X, y = blobs(2, 500, 5)
    model = DPSGDClassifier(epsilon=5, data_norm=3.0, learning_rate=schedule, classes=[0, 1], random_state=0).fit(X, y)
    assert model.score(X, y) > 0.8


def test_iterates_stay_finite_however_long_the_steps():
    X, y = blobs(2, 50, 3)
    for penalty in ("l2", "l1"):
        model = DPSGDClassifier(
            data_norm=3.0, eta0=1e30, alpha=1e6, momentum=0.9999, penalty=penalty, classes=[0, 1], random_state=0
        ).fit(X, y)
        assert np.all(np.isfinite(model.coef_))


@every_loss
def test_gradients_are_numbers_wherever_they_are_taken(case):
    derivative, _, X, targets, weights = problem(case)
    gradients = sums(derivative, X, targets, 0.3)
    for bad in (np.nan, np.inf, -1e308):
        weights[:, 1] = bad
        for row in range(5):
            assert np.linalg.norm(gradients.total(gradients.at(weights), np.array([row]))) <= 0.3


def test_predictors_are_those_of_integers():
    # Rows and weights whose bits are all in use: one bit more, and doubles would round.
    rng = np.random.default_rng(0)
    for n_columns in (100, 5000):
        X = np.full((3, n_columns), NORM / math.sqrt(n_columns)) * rng.uniform(0.8, 1, size=(3, n_columns))
        X[1] = np.abs(X[1])
        gradients = sums(LogLoss(), X.copy(), np.zeros(3, dtype=int), 0.3)
        point = gradients.at(rng.uniform(0.5, 1, size=(1, n_columns)))
        rows = gradients._integer_rows(np.arange(3)) * gradients._row_step
        seen = rows @ point[0]
        exact = [sum(Fraction(a) * Fraction(b) for a, b in zip(row, point[0], strict=True)) for row in rows.tolist()]
        assert [Fraction(value) for value in seen.tolist()] == exact
        # The weights are integers of that many bits, whatever they were.
        bits = 53 - 20 - math.ceil(math.log2(n_columns))
        assert np.abs(point).max() <= 1
        assert not np.any(np.fmod(point, 2.0**-bits))


def test_sums_of_ten_thousand_records_are_those_of_integers():
    # Derivatives and rows at their largest: more than 2**13 of them are more than a double holds.
    n_rows = 20_001
    X = np.random.default_rng(0).uniform(0.999, 1, size=(n_rows, 1)) * NORM
    gradients = sums(LogLoss(), X, np.zeros(n_rows, dtype=int), 10.0)
    point = gradients.at(np.array([[1.0]]))
    unit = gradients._unit * gradients._row_step
    parts = [int(gradients.total(point, np.array([i]))[0, 0] / unit) for i in range(n_rows)]
    for end in (8192, 8193, 20_001):
        exact = sum(parts[:end])
        for bits in (0, 3, 20, 40):
            seen = gradients.total(point, np.arange(end), unit * 2.0**bits)[0, 0]
            nearest = (exact + (1 << bits >> 1)) >> bits
            if end > 8192 and nearest < 2**53:
                assert int(seen / unit) == nearest << bits
            else:
                assert seen / unit == pytest.approx(exact, rel=2.0**-52)


def test_exact_totals_against_integers():
    rng = np.random.default_rng(0)
    for size in (1, 2**20, 2**40, 2**53):
        values = rng.integers(-size, size + 1, size=(200, 5))
        values[:, 0] = -size
        total = ExactTotal(5)
        for row in values:
            total.add(row.astype(np.float64))
        exact = [sum(int(v) for v in column) for column in values.T]
        for bits in [*range(-3, 130), 1023, 1024, 5000]:
            seen = total.nearest(bits)
            for got, whole in zip(seen.tolist(), exact, strict=True):
                wanted = whole if bits <= 0 else (whole + (1 << (bits - 1))) >> bits
                assert int(got) == wanted if abs(wanted) < 2**53 else got == pytest.approx(wanted, rel=2.0**-52)


# --- extreme parameters ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", [8192, 8193, 20_000])
def test_no_clipping_norm_asks_for_more_than_there_is_depending_on_the_rows(n_rows):
    X, y = np.ones((n_rows, 1)), np.ones(n_rows, dtype=int)
    for max_norm in (1e-30, 1e-5, 1e5, 1e25, 1e100):
        for epsilon in (1e-6, 1.0, 50.0):
            model = DPSGDClassifier(
                epsilon=epsilon, data_norm=1.0, max_grad_norm=max_norm, expected_n=1e4, n_steps=2, classes=[0, 1]
            )
            assert np.all(np.isfinite(model.fit(X, y).coef_))
    sensitivity = model.privacy_.releases[-1].sensitivity
    assert sensitivity == pytest.approx(math.hypot(1, 0.3))


EXTREMES = [
    {"data_norm": 1e-100, "expected_n": 1e100, "max_grad_norm": 1e-100, "eta0": 1e30, "alpha": 1e100, "epsilon": 10},
    {"data_norm": 1e-100, "expected_n": 1, "eta0": 1e-30, "epsilon": 1e-5},
    {"data_norm": 1e100, "expected_n": 1, "eta0": 1e30, "alpha": 0.0, "momentum": 0.9999},
    {"data_norm": 1e100, "max_grad_norm": 1e-100, "alpha": 1e100, "penalty": "l1", "eta0": 1e30},
    {"data_norm": 1e100, "max_grad_norm": 1e-100, "alpha": 1e-100, "penalty": "elasticnet"},
]


@pytest.fixture
def sums_are_numbers(monkeypatch):
    whole = ClippedGradients.total

    def total(self, *args, **kwargs):
        out = whole(self, *args, **kwargs)
        assert np.all(np.isfinite(out))
        return out

    monkeypatch.setattr(ClippedGradients, "total", total)


@pytest.mark.parametrize("parameters", EXTREMES)
@pytest.mark.parametrize("model", [DPSGDClassifier, DPSGDRegressor])
def test_sums_are_numbers_whatever_the_parameters(model, parameters, sums_are_numbers):
    norm = parameters["data_norm"]
    for n_rows in (0, 1, 3):
        X = np.full((n_rows, 2), norm)
        for loss in ("huber", "squared_error") if model is DPSGDRegressor else ("log_loss", "hinge", "huber"):
            rest = {"bounds_y": (-1e100, 1e-100)} if model is DPSGDRegressor else {"classes": [0, 1, 2]}
            for seed in range(3):
                fitted = model(fit_intercept=False, loss=loss, random_state=seed, n_steps=20, **rest, **parameters)
                fitted.fit(X, np.ones(n_rows, dtype=int)).partial_fit(X, np.ones(n_rows, dtype=int))
                assert np.all(np.isfinite(fitted.coef_))


def test_threshold_that_is_lost_in_rounding_is_refused():
    with pytest.raises(ValueError, match="huber_threshold must be at least"):
        DPSGDRegressor(data_norm=1.0, bounds_y=(-1e100, 1e100), loss="huber", huber_threshold=1e-100).fit(
            np.ones((1, 1)), [1.0]
        )


@every_loss
def test_a_huge_clipping_norm_and_tiny_weights(case):
    derivative, _, X, targets, weights = problem(case)
    gradients = sums(derivative, X, targets, 1e100)
    for size in (0.0, 1e-320, 1e-300, 1e-100):
        point = gradients.at(size * weights)
        assert np.all(np.isfinite(point))
        assert np.all(np.isfinite(gradients.total(point)))


@pytest.mark.parametrize(
    "model",
    [
        DPSGDClassifier(data_norm=1.0, loss=loss, classes=list(range(n_classes)))
        for loss in ("log_loss", "hinge", "huber")
        for n_classes in (2, 3)
    ]
    + [
        DPSGDRegressor(data_norm=1.0, bounds_y=bounds, loss=loss)
        for loss in ("squared_error", "huber")
        for bounds in ((-1, 1), (-1e100, 1e100), (0, 1e-100))
    ],
)
def test_no_entry_makes_arithmetic_raise_whatever_the_user_has_set(model):
    tiny = np.array([0.0, 5e-324, 1e-310, 1e-200, 1.0, 1e200, np.finfo(float).max])
    rows = np.column_stack([tiny, tiny[::-1]])
    for n_rows in (0, 1, 7):
        X, y = rows[:n_rows], tiny[:n_rows].astype(float)
        if isinstance(model, DPSGDClassifier):
            y = np.arange(n_rows) % 3
        with np.errstate(all="raise"), warnings.catch_warnings():
            warnings.simplefilter("error")
            for row in range(n_rows):
                model.set_params(n_steps=5).fit(X[row : row + 1], y[row : row + 1])
            model.set_params(n_steps=5).fit(X, y).partial_fit(X, y)
        assert np.all(np.isfinite(model.coef_))


@pytest.mark.parametrize(("n_rows", "n_columns", "epsilon", "least"), [(50, 5, 1.0, 0.0), (500, 5, 0.1, 0.4)])
def test_regression_with_few_records_is_no_worse_than_the_mean(n_rows, n_columns, epsilon, least):
    scores = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, size=(n_rows + 500, n_columns))
        direction = rng.normal(size=n_columns)
        y = X @ (3 * direction / np.linalg.norm(direction)) + 0.3 * rng.normal(size=len(X))
        model = DPSGDRegressor(epsilon=epsilon, data_norm=np.sqrt(n_columns), bounds_y=(-6, 6), random_state=seed)
        scores.append(model.fit(X[:n_rows], y[:n_rows]).score(X[n_rows:], y[n_rows:]))
    assert np.mean(scores) >= least, scores


# --- courses --------------------------------------------------------------------------------------------------------


def test_courses_compose():
    X, y = blobs(2, 200, 3)
    accountant = BudgetAccountant(epsilon=10, delta=1e-3, composition="basic")
    model = DPSGDClassifier(epsilon=0.5, data_norm=3.0, classes=[0, 1], accountant=accountant, n_steps=20)
    for call in range(1, 4):
        model.partial_fit(X, y)
        assert model.privacy_.epsilon == pytest.approx(0.5 * call)
        assert model.privacy_.delta == pytest.approx(1e-5 * call)
        assert len(model.privacy_.events) == 2 * call
        assert sum(release.share for release in model.privacy_.releases) == pytest.approx(1)
        assert accountant.total() == pytest.approx((0.5 * call, 1e-5 * call))
    # All events together prove more than the pairs do.
    assert model.privacy_.privacy_loss_distribution().get_epsilon_for_delta(1e-5) < 1.0
    mu = model.privacy_.cost.mu()
    assert mu == pytest.approx(np.sqrt(3) * model.privacy_plan(n_features=3).cost.mu())
    model.fit(X, y)
    assert model.privacy_ == model.privacy_plan(n_features=3)
    assert len(accountant) == 4
    assert accountant.total()[0] == pytest.approx(2.0)


def test_a_course_goes_on_from_where_the_last_one_ended():
    X, y = blobs(3, 300, 4, seed=2)
    common = {"epsilon": np.inf, "data_norm": 3.0, "classes": [0, 1, 2], "expected_n": 300, "average": False}
    once = DPSGDClassifier(**common, momentum=0.0, n_steps=60).fit(X, y)
    twice = DPSGDClassifier(**common, momentum=0.0, n_steps=30).partial_fit(X, y).partial_fit(X, y)
    np.testing.assert_allclose(twice.coef_, once.coef_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(twice.intercept_, once.intercept_, rtol=1e-5, atol=1e-7)
    regressor = {"epsilon": np.inf, "data_norm": 3.0, "bounds_y": (0, 5), "expected_n": 300, "average": False}
    once = DPSGDRegressor(**regressor, momentum=0.0, n_steps=60).fit(X, y)
    twice = DPSGDRegressor(**regressor, momentum=0.0, n_steps=30).partial_fit(X, y).partial_fit(X, y)
    np.testing.assert_allclose(twice.predict(X), once.predict(X), atol=1e-5)


@pytest.mark.sample(every=4)
def test_courses_whose_deltas_promise_nothing_are_refused_before_the_charge():
    X, y = blobs(2, 60, 3)
    accountant = BudgetAccountant(epsilon=100, delta=0.99, composition="basic")
    for model in (
        DPSGDClassifier(delta=0.4, data_norm=3.0, classes=[0, 1], n_steps=3),
        DPSGDRegressor(delta=0.4, data_norm=3.0, bounds_y=(0, 1), n_steps=3),
    ):
        model.partial_fit(X, y).partial_fit(X, y)
        coef = model.coef_
        with pytest.raises(ValueError, match="delta of all courses"):
            model.set_params(accountant=accountant).partial_fit(X, y)
        assert len(accountant) == 0
        assert model.coef_ is coef
        assert model.privacy_.delta == 0.8
        assert model.privacy_.cost.delta == 0.8
        assert model.privacy_.privacy_loss_distribution().get_delta_for_epsilon(model.privacy_.epsilon) < 0.8
        model.set_params(accountant=None).fit(X, y)


def test_a_course_that_fails_is_paid_for_and_leaves_the_model_and_its_guarantee(monkeypatch):
    X, y = blobs(2, 60, 3)
    accountant = BudgetAccountant(epsilon=10, delta=1e-3, composition="basic")
    model = DPSGDClassifier(data_norm=3.0, n_steps=3, classes=[0, 1], accountant=accountant).partial_fit(X, y)
    coef, guarantee = model.coef_, model.privacy_

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ClippedGradients, "total", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X, y)
    assert model.coef_ is coef
    assert model.privacy_ is guarantee
    assert len(accountant) == 2
    assert model.partial_fit(X, y).privacy_.epsilon == 2
    assert accountant.total()[0] == pytest.approx(3.0)


def test_classes_that_are_set_between_courses_are_refused():
    X, y = blobs(2, 60, 3)
    model = DPSGDClassifier(data_norm=3.0, n_steps=3, classes=[0, 1]).partial_fit(X, y)
    model.set_params(classes=[1, 0]).partial_fit(X, y)
    with pytest.raises(ValueError, match="not the same"):
        model.set_params(classes=[0, 1, 2]).partial_fit(X, y)
    model.set_params(classes=None).partial_fit(X, y)
    assert model.set_params(classes=[0, 1, 2]).fit(X, y).coef_.shape == (3, 3)


def test_labels_of_courses():
    X, y = blobs(2, 60, 3)
    model = DPSGDClassifier(data_norm=3.0, n_steps=3)
    with pytest.raises(ValueError, match="first call to partial_fit"):
        model.partial_fit(X, y)
    model.partial_fit(X, y, classes=[0, 1]).partial_fit(X[:5], y[:5]).partial_fit(X[:0], y[:0])
    with pytest.raises(ValueError, match="not the same"):
        model.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :2], y)


@pytest.mark.parametrize("norm", [2.0, 6.0, 100.0])
@pytest.mark.parametrize("form", ["float32", "float64", "by columns"])
def test_memory_mapped_rows_are_not_copied(tmp_path, form, norm):
    X = np.random.default_rng(0).normal(size=(200_000, 20))
    X = np.asfortranarray(X) if form == "by columns" else X.astype(form)
    y = (X[:, 0] > 0).astype(int)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    # All rows are scaled down, or few of them, or none.
    model = DPSGDClassifier(data_norm=norm, classes=[0, 1], n_steps=20, random_state=0)
    expected = clone(model).fit(X, y)
    tracemalloc.start()
    found = clone(model).fit(mapped, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert peak < 60 * len(X)


def test_events():
    model = DPSGDClassifier(data_norm=1.0, classes=[0, 1], batch_size=1.0)
    count, steps = model.privacy_plan(n_features=3).events
    assert isinstance(count, GaussianEvent)
    assert isinstance(steps, GaussianEvent)
    (steps,) = model.set_params(batch_size=10, expected_n=100, n_steps=7).privacy_plan(n_features=3).events
    assert isinstance(steps, SampledGaussianEvent)
    assert (steps.rate, steps.n_steps) == (0.1, 7)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"delta": 0.0}, "delta must be positive"),
        ({"data_norm": None}, "data_norm must be given"),
        ({"batch_size": 10}, "needs expected_n"),
        ({"n_steps": 5, "epochs": 2}, "n_steps and epochs"),
        ({"loss": "exponential"}, "loss must be one of"),
        ({"penalty": "l3"}, "penalty must be one of"),
        ({"momentum": 1.0}, "momentum must lie in"),
        ({"max_grad_norm": "none"}, "max_grad_norm must"),
        ({"learning_rate": "optimal"}, "learning_rate must be one of"),
        ({"average": 2.0}, "average must lie in"),
    ],
)
def test_parameters_are_checked(parameters, message):
    X, y = blobs(2, 20, 3)
    with pytest.raises((ValueError, TypeError), match=message):
        DPSGDClassifier(**{"data_norm": 3.0, "classes": [0, 1], **parameters}).fit(X, y)


def test_default_rate_limits_the_loss_by_sampling():
    model = DPSGDClassifier(data_norm=1.0, classes=[0, 1], expected_n=1e6)
    for epsilon in (0.01, 0.1, 1.0, 3.0, 10.0, 100.0):
        for n_steps in (None, 1, 60, 5000):
            model.set_params(epsilon=epsilon, n_steps=n_steps)
            (sampled,) = model.set_params(batch_size=None).privacy_plan(n_features=2).releases
            (whole,) = model.set_params(batch_size=1.0).privacy_plan(n_features=2).releases
            noise = [release.mechanism.scale / release.mechanism.rate for release in (sampled, whole)]
            assert noise[0] <= (1.07 if epsilon <= 10 else 1.1) * noise[1]
            assert n_steps == 1 or epsilon > 10 or sampled.mechanism.rate < 0.6


def test_default_rate_with_epochs_or_without_noise():
    model = DPSGDClassifier(data_norm=1.0, classes=[0, 1])
    for parameters in ({"epochs": 10, "epsilon": 1.0}, {"epochs": None, "epsilon": math.inf}):
        assert model.set_params(**parameters).privacy_plan(n_features=2).releases[-1].mechanism.rate == 1


# --- callbacks ------------------------------------------------------------------------------------------------------


def test_callbacks_see_steps_and_what_was_released():
    pytest.importorskip("sklearn.callback")
    X, y = blobs(2, 100, 3)
    seen = []

    class Listener:
        def setup(self, estimator, context):
            seen.append(("setup", None, None, None))

        def teardown(self, estimator, context):
            seen.append(("teardown", None, None, None))

        def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
            seen.append(("begin", X, y, metadata))

        def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
            seen.append((context.task_name, X, y, metadata))
            if context.task_name == "number of records":
                # There is no model yet.
                assert fitted_estimator is None
                return True
            assert fitted_estimator.predict(np.zeros((1, 3))).shape == (1,)
            assert fitted_estimator.coef_.shape == (1, 3)
            assert fitted_estimator.n_steps_ == model.n_steps
            guarantees.append(fitted_estimator.privacy_)
            return True

    guarantees = []
    model = DPSGDClassifier(data_norm=3.0, classes=[0, 1], n_steps=250, random_state=0)
    silent = model.fit(X, y).coef_
    model.set_callbacks(Listener())
    np.testing.assert_array_equal(model.fit(X, y).coef_, silent)
    assert all(private is None for entry in seen for private in entry[1:])
    assert all(guarantee == model.privacy_plan(n_features=3) for guarantee in guarantees)
    names = [entry[0] for entry in seen]
    assert names[0] == "setup"
    assert names[-1] == "teardown"
    assert [name for name in names if name.startswith("steps")][::99] == ["steps 1 to 2", "steps 248 to 250"]
    assert [name for name in names[:-1] if name in ("number of records", "gradients", "fit")] == [
        "number of records",
        "gradients",
        "fit",
    ]
    assert not any("callback" in name and name != "_skl_callbacks" for name in vars(model))
    guarantees.clear()
    model.set_params(n_steps=3).partial_fit(X, y)
    assert guarantees
    assert all(guarantee == model.privacy_ for guarantee in guarantees)
    assert model.privacy_.epsilon == 2


def test_what_callbacks_are_handed_does_not_hold_the_records(monkeypatch):
    handed = []

    def noted(progress, steps, attributes):
        handed.append(attributes)
        return steps

    def held(value):
        yield value
        for cell in getattr(value, "__closure__", None) or ():
            yield from held(cell.cell_contents)

    monkeypatch.setattr(Progress, "phase", noted)
    X, y = blobs(2, 101, 3)
    DPSGDClassifier(data_norm=3.0, classes=[0, 1], n_steps=2, random_state=0).fit(X, y)
    DPSGDRegressor(data_norm=3.0, bounds_y=(0, 1), n_steps=2, random_state=0).fit(X, y)
    values = [value for function in handed for value in held(function)]
    assert len(values) > 10
    assert not any(isinstance(value, Records) or np.shape(value)[:1] == (101,) for value in values)


def test_progress_bar(capsys):
    pytest.importorskip("rich")
    callback = pytest.importorskip("sklearn.callback")
    X, y = blobs(2, 50, 3)
    for model in (
        DPSGDClassifier(data_norm=3.0, classes=[0, 1], n_steps=5),
        DPSGDRegressor(data_norm=3.0, bounds_y=(0, 1), n_steps=5),
    ):
        model.set_callbacks(callback.ProgressBar()).fit(X, y)
        assert "100%" in capsys.readouterr().out
