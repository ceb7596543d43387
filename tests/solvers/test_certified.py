"""The solver: what it certifies is true, whatever the data, and it always gets there."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize

from skdp.exceptions import CertificateError
from skdp.sensitivity import clip_rows
from skdp.solvers import certified
from skdp.solvers.certified import Objective, certified_minimizer
from skdp.solvers.losses import HuberHinge, LogLoss, MultinomialLogLoss
from tests.linear_model.data import blobs

LOSSES = {"log_loss": LogLoss(), "huber": HuberHinge(), "multinomial": MultinomialLogLoss(4)}


def objective(loss, n_rows=400, C=1.0, norm=2.0, seed=0, linear_scale=0.0, n_features=5):
    X, y = blobs(getattr(loss, "n_classes", 2), n_rows, n_features, seed)
    rows = clip_rows(X, norm, 0.3 * norm)
    linear = linear_scale * np.random.default_rng(seed).normal(size=(loss.outputs, n_features + 1))
    return Objective(rows, y, loss, C, 1.0, linear)


def exact_huber_gradient(problem, theta):
    """The gradient in rational arithmetic."""
    h = Fraction(1, 2)
    w = [Fraction(float(v)) for v in theta[0]]
    total = [Fraction(float(b)) + v for b, v in zip(problem.linear[0], w, strict=True)]
    for row, sign in zip(problem.rows.array, problem.target[:, 0], strict=True):
        x = [Fraction(float(v)) for v in row]
        margin = int(sign) * sum(a * b for a, b in zip(x, w, strict=True))
        slope = -int(sign) * min(Fraction(1), max(Fraction(0), (1 + h - margin) / (2 * h)))
        total = [t + Fraction(problem.C) * slope * v for t, v in zip(total, x, strict=True)]
    return total


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("C", [1e-4, 0.1, 10.0, 1e4])
@pytest.mark.parametrize("linear_scale", [0.0, 50.0])
def test_certificate_is_reached(name, C, linear_scale):
    problem = objective(LOSSES[name], C=C, linear_scale=linear_scale * C)
    tau = 1e-6 * C * problem.loss.lipschitz * problem.norm
    theta = certified_minimizer(problem, tau, 100)
    gradient, error = problem.precise_gradient(theta)
    assert np.linalg.norm(gradient) + error <= tau


@pytest.mark.parametrize("name", LOSSES)
def test_agrees_with_scipy(name):
    problem = objective(LOSSES[name], C=0.5, linear_scale=1.0)

    def fun(flat):
        theta = flat.reshape(problem.shape)
        z = problem.predictor(theta)
        return problem.value(theta, z), problem.gradient(theta, z).ravel()

    start = np.zeros(np.prod(problem.shape))
    reference = optimize.minimize(fun, start, jac=True, method="BFGS", options={"gtol": 1e-7}).x
    theta = certified_minimizer(problem, 1e-7, 100)
    np.testing.assert_allclose(theta.ravel(), reference, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_error_bound_of_the_gradient_holds_in_exact_arithmetic(seed):
    problem = objective(HuberHinge(), n_rows=700, C=0.7, seed=seed, linear_scale=0.3)
    theta = certified_minimizer(problem, 1e-5, 100)
    truth = exact_huber_gradient(problem, theta)
    for method in (problem.certified_gradient, problem.precise_gradient):
        gradient, error = method(theta)
        distance = float(sum((Fraction(float(g)) - t) ** 2 for g, t in zip(gradient[0], truth, strict=True))) ** 0.5
        assert distance <= error
    # The bound is of use: far below the tolerance that it certifies.
    assert problem.certified_gradient(theta)[1] < 1e-8
    assert problem.precise_gradient(theta)[1] < problem.certified_gradient(theta)[1]


def test_precise_gradient_survives_cancellation():
    # Scores of 1e12 that cancel to order 1: plain doubles lose them, pairs of doubles do not.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    X = np.column_stack([X, -X[:, 0] - X[:, 1] + 1e-9 * rng.normal(size=300)])
    rows = clip_rows(X, 1.0)
    problem = Objective(rows, (rng.random(300) < 0.5).astype(int), HuberHinge(), 1.0, 1.0, np.zeros((1, 3)))
    theta = 1e9 * np.ones((1, 3))
    truth = np.array([float(t) for t in exact_huber_gradient(problem, theta)])
    precise = np.linalg.norm(problem.precise_gradient(theta)[0] - truth)
    plain = np.linalg.norm(problem.certified_gradient(theta)[0] - truth)
    assert precise < 1e-3 * plain


@pytest.mark.parametrize("name", LOSSES)
def test_precise_search_finishes_where_doubles_cannot_certify(name, monkeypatch):
    problem = objective(LOSSES[name], n_rows=200)
    tau = 1e-6
    monkeypatch.setattr(Objective, "certified_gradient", lambda self, theta: (np.zeros(self.shape), np.inf))
    theta = certified_minimizer(problem, tau, 100)
    gradient, error = problem.precise_gradient(theta)
    assert np.linalg.norm(gradient) + error <= tau


@pytest.mark.parametrize("name", LOSSES)
def test_last_resort_does_not_need_newton(name, monkeypatch):
    problem = objective(LOSSES[name], n_rows=100, C=0.05)
    monkeypatch.setattr(certified, "_newton", lambda objective, goal, max_iter: np.full(objective.shape, 3.0))
    monkeypatch.setattr(Objective, "newton_solver", lambda self, z: lambda g: 5 * g)
    tau = 1e-6
    theta = certified_minimizer(problem, tau, 2)
    gradient, error = problem.precise_gradient(theta)
    assert np.linalg.norm(gradient) + error <= tau


@pytest.mark.parametrize("max_iter", [1, 2])
def test_few_newton_steps_do_not_loosen_the_certificate(max_iter):
    problem = objective(LogLoss(), n_rows=150, C=0.2)
    theta = certified_minimizer(problem, 1e-6, max_iter)
    np.testing.assert_allclose(theta, certified_minimizer(problem, 1e-6, 100), atol=3e-6)


def test_iterative_and_dense_newton_steps_agree(monkeypatch):
    problem = objective(MultinomialLogLoss(5), C=0.3)
    dense = certified_minimizer(problem, 1e-7, 100)
    monkeypatch.setattr(certified, "_SMALL", 0)
    monkeypatch.setattr(certified, "DENSE_LIMIT", 0)
    np.testing.assert_allclose(certified_minimizer(problem, 1e-7, 100), dense, atol=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_start_from_a_part_of_the_rows_changes_nothing(name, monkeypatch):
    problem = objective(LOSSES[name], n_rows=40_000, C=0.01)
    quick = certified_minimizer(problem, 1e-7, 100)
    monkeypatch.setattr(certified, "_COARSE_RATIO", 10**9)
    np.testing.assert_allclose(certified_minimizer(problem, 1e-7, 100), quick, atol=2e-7)


@pytest.mark.parametrize("name", LOSSES)
def test_no_rows(name):
    loss = LOSSES[name]
    linear = np.arange(3.0 * loss.outputs).reshape(loss.outputs, 3)
    rows = clip_rows(np.empty((0, 3)), 1.0)
    problem = Objective(rows, np.empty(0, dtype=int), loss, 1.0, 1.0, linear)
    np.testing.assert_allclose(certified_minimizer(problem, 1e-9, 100), -linear, atol=1e-9)


def test_separable_data_with_little_regularisation():
    X = np.array([[1.0], [-1.0]])
    problem = Objective(clip_rows(X, 1.0), np.array([1, 0]), LogLoss(), 1e6, 1.0, np.zeros((1, 1)))
    theta = certified_minimizer(problem, 1.0, 100)[0, 0]
    # 2 C sigma(-w) = w
    root = optimize.brentq(lambda w: 2e6 / (1 + np.exp(w)) - w, 0, 50)
    assert theta == pytest.approx(root, abs=1.0)


def test_a_tolerance_that_no_arithmetic_proves_is_refused_with_a_fixed_message():
    problem = objective(LogLoss(), n_rows=100)
    with pytest.raises(CertificateError, match="larger tol"):
        certified_minimizer(problem, 1e-16, 3)


def test_a_failed_factorisation_is_not_an_exception(monkeypatch):
    problem = objective(MultinomialLogLoss(4), C=0.3)
    expected = certified_minimizer(problem, 1e-7, 100)

    def fail(*args, **kwargs):
        raise certified.linalg.LinAlgError

    monkeypatch.setattr(certified.linalg, "cho_factor", fail)
    np.testing.assert_allclose(certified_minimizer(problem, 1e-7, 100), expected, atol=1e-6)


class MarginLoss(LogLoss):
    """The logistic loss of a margin less 8."""

    def value(self, z, target):
        return super().value(z - 8 * target, target)

    def derivative(self, z, target):
        return super().derivative(z - 8 * target, target)

    def bends(self, z, target):
        return super().bends(z - 8 * target, target)


def beyond_the_margin(loss, C, share=0.0):
    """A problem whose loss is almost linear at the start, where its curvature is a few thousandths of the largest."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, size=(500, 3))
    y = (X[:, 0] + 0.3 * rng.standard_normal(500) > share).astype(int)
    return Objective(clip_rows(X, 2.0, 0.5), y, loss, C, 1.0, np.zeros((1, 4)))


@pytest.mark.parametrize("C", [1e3, 1e6, 1e9])
@pytest.mark.parametrize("share", [0.0, 0.97, 3.0])
def test_newton_gets_out_of_where_the_loss_is_almost_linear(C, share, monkeypatch):
    def slow(*args):
        pytest.fail("the slow search was needed")

    monkeypatch.setattr(certified, "_precise_search", slow)
    certified_minimizer(beyond_the_margin(MarginLoss(), C, share), 1e-6 * C, 100)


def test_precise_search_gets_out_of_there_as_well(monkeypatch):
    monkeypatch.setattr(certified, "_newton", lambda objective, goal, max_iter: np.zeros(objective.shape))
    monkeypatch.setattr(certified, "_DESCENT_STEPS", 0)
    problem, tau = beyond_the_margin(MarginLoss(), 1e6), 1.0
    gradient, error = problem.precise_gradient(certified_minimizer(problem, tau, 1))
    assert np.linalg.norm(gradient) + error <= tau


def test_the_last_resort_takes_a_public_number_of_steps(monkeypatch):
    problem = beyond_the_margin(MarginLoss(), 1e6)
    monkeypatch.setattr(certified, "_newton", lambda objective, goal, max_iter: np.zeros(objective.shape))
    monkeypatch.setattr(Objective, "newton_solver", lambda self, z: lambda g: -g)
    monkeypatch.setattr(certified, "_DESCENT_STEPS", 50)
    calls, precise = [], Objective.precise_gradient

    def counted(self, theta):
        calls.append(1)
        return precise(self, theta)

    monkeypatch.setattr(Objective, "precise_gradient", counted)
    with pytest.raises(CertificateError, match="larger tol or a smaller C"):
        certified_minimizer(problem, 1.0, 100)
    assert len(calls) == 2 * (1 + 100) + 50


@pytest.mark.parametrize("n_rows", [1000, 5000])
def test_memory_of_a_step_grows_with_the_classes_and_not_with_their_pairs(n_rows):
    """By products with directions for few rows, and with a matrix for many."""
    n_classes = 60
    problem = objective(MultinomialLogLoss(n_classes), n_rows=n_rows, n_features=2)
    assert problem.has_matrix == (n_rows == 5000)
    theta = np.zeros(problem.shape)
    z = problem.predictor(theta)
    gradient = problem.gradient(theta, z)
    tracemalloc.start()
    try:
        problem.newton_solver(z)(gradient)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # The entries of all pairs of classes would be about 30 times as many numbers as the probabilities.
    assert peak < 12 * 8 * n_rows * n_classes
