"""The constants that privacy rests on, held against the functions they are about."""

import numpy as np
import pytest

from skdp.solvers.losses import HuberHinge, LogLoss, MultinomialLogLoss

LOSSES = [LogLoss(), HuberHinge(), MultinomialLogLoss(3), MultinomialLogLoss(6)]
IDS = ["log_loss", "huber", "multinomial-3", "multinomial-6"]


def scores_and_targets(loss, n_rows=200, spread=3.0, seed=0):
    rng = np.random.default_rng(seed)
    n_classes = getattr(loss, "n_classes", 2)
    return spread * rng.normal(size=(n_rows, loss.outputs)), loss.encode(rng.integers(n_classes, size=n_rows))


def second_derivative(loss, z, target):
    bends = loss.bends(z, target)
    return np.stack([loss.bend_along(bends, np.tile(output, (len(z), 1))) for output in np.eye(loss.outputs)], axis=1)


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
def test_derivative_is_that_of_the_value(loss):
    z, target = scores_and_targets(loss)
    derivative, step = loss.derivative(z, target), 1e-6
    for k in range(loss.outputs):
        shift = np.zeros(loss.outputs)
        shift[k] = step
        difference = (loss.value(z + shift, target) - loss.value(z - shift, target)) / (2 * step)
        np.testing.assert_allclose(derivative[:, k], difference, atol=1e-8)


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
def test_second_derivative_is_that_of_the_derivative(loss):
    z, target = scores_and_targets(loss, seed=1)
    full, step = second_derivative(loss, z, target), 1e-6
    for k in range(loss.outputs):
        shift = np.zeros(loss.outputs)
        shift[k] = step
        difference = (loss.derivative(z + shift, target) - loss.derivative(z - shift, target)) / (2 * step)
        np.testing.assert_allclose(full[:, k, :], difference, atol=1e-7)


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
@pytest.mark.parametrize("spread", [0.1, 1.0, 30.0])
def test_lipschitz_constant_holds_and_is_attained(loss, spread):
    z, target = scores_and_targets(loss, n_rows=5000, spread=spread, seed=2)
    norms = np.linalg.norm(loss.derivative(z, target), axis=1)
    assert norms.max() <= loss.lipschitz * (1 + 1e-12)
    if spread == 30.0:
        assert norms.max() >= 0.99 * loss.lipschitz


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
@pytest.mark.parametrize("spread", [0.1, 1.0, 30.0])
def test_curvature_bound_holds(loss, spread):
    z, target = scores_and_targets(loss, n_rows=2000, spread=spread, seed=3)
    eigenvalues = np.linalg.eigvalsh(second_derivative(loss, z, target))
    assert eigenvalues.max() <= loss.curvature * (1 + 1e-12)
    assert eigenvalues.min() >= -1e-12


def test_curvature_bound_is_attained():
    assert second_derivative(LogLoss(), np.zeros((1, 1)), np.ones((1, 1)))[0, 0, 0] == 0.25
    assert second_derivative(HuberHinge(), np.ones((1, 1)), np.ones((1, 1)))[0, 0, 0] == 1.0
    loss = MultinomialLogLoss(3)
    z = (np.array([[20.0, 20.0, -40.0]])) @ loss.basis
    assert np.linalg.eigvalsh(second_derivative(loss, z, loss.encode(np.array([0])))).max() > 0.4999


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
def test_extreme_scores_stay_finite(loss):
    z = np.full((4, loss.outputs), 1e6) * np.array([1, -1, 1e3, -1e3])[:, None]
    target = loss.encode(np.array([0, 1, 0, 1]))
    for value in (loss.value(z, target), loss.derivative(z, target), second_derivative(loss, z, target)):
        assert np.all(np.isfinite(value))


def test_log_loss_slope_and_curvature_are_tied():
    # What theorem 2 of the user guide rests on: curvature = u (1 - u) for u = |slope|.
    loss = LogLoss()
    z, target = scores_and_targets(loss)
    u = np.abs(loss.derivative(z, target)[:, 0])
    np.testing.assert_allclose(second_derivative(loss, z, target)[:, 0, 0], u * (1 - u), atol=1e-15)


def test_multinomial_trace_and_shift_are_tied():
    # What theorem 1 rests on for K > 2: trace = 2 q - t^2, with q = 1 - p_y and t the norm of the derivative.
    loss = MultinomialLogLoss(4)
    z, target = scores_and_targets(loss)
    trace = np.trace(second_derivative(loss, z, target), axis1=1, axis2=2)
    logits = z @ loss.basis.T
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    q = 1 - (p * target).sum(axis=1)
    t = np.linalg.norm(loss.derivative(z, target), axis=1)
    np.testing.assert_allclose(trace, 2 * q - t**2, atol=1e-12)
    assert np.all(q <= np.minimum(1, t * np.sqrt(3 / 4)) + 1e-12)
