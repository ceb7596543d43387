"""Theorem 5 of the guide on additive models: records with weights, margins and scores, against the Gaussian curve.

The densities of minimisers are known, so that the delta of two neighbouring data sets is an integral, on a line or in
the plane. The proof is not used. Data sets come from fixed seeds: a few records or many, agreeing or not, and a record
that is added, which may be many times as long as the norm R. Rounding of the integrals is far below the tolerance.
"""

import math

import numpy as np
import pytest
from scipy.special import expit

from skdp.accounting import gaussian_delta

pytestmark = pytest.mark.theorem

RATIO = 3.7


def weight(length, q, gradient=True, curvature=True):
    """The weight of a record, for a norm R of 1."""
    bounds = [1.0, 1 / length if gradient else 1.0, q / length**2 if curvature else 1.0]
    return min(bounds)


def noise_of(theta, records, ridge):
    """The noise for which each point is the minimiser, and the second derivatives, for noise of variance 1.

    A record is a tuple of its features, its weight times C, its margin and how many records are like it.
    """
    dim = theta.shape[1]
    b = -ridge * theta
    H = np.tile(ridge * np.eye(dim), (len(theta), 1, 1))
    for x, c, margin, count in records:
        u = expit(margin - theta @ x)
        b = b + count * c * u[:, None] * x
        H = H + (count * c * u * (1 - u))[:, None, None] * np.outer(x, x)
    return b, H


def centre(records, ridge, dim):
    """The minimiser without noise."""
    theta = np.zeros((1, dim))
    for _ in range(200):
        b, H = noise_of(theta, records, ridge)
        step = np.linalg.solve(H[0], b[0])
        theta = theta + step / max(1.0, np.abs(step).max() / 2)
    return theta[0]


def line_deltas(records, added, ridge, epsilons, points=40_001):
    """Delta of the neighbours on a line, when the record is added and when it is removed."""
    # By the noise, in which the law without the record is normal. The grid of coefficients follows it.
    b = np.linspace(-10.5, 10.5, points)[:, None]
    low, high = np.full_like(b, -1e5 / ridge), np.full_like(b, 1e5 / ridge)
    for _ in range(80):
        theta = (low + high) / 2
        beyond = noise_of(theta, records, ridge)[0] > b
        low, high = np.where(beyond, theta, low), np.where(beyond, high, theta)
    theta = (low + high) / 2
    (b0, H0), (b1, H1) = (noise_of(theta, own, ridge) for own in (records, [*records, added]))
    logs = [-0.5 * (b0**2).sum(axis=1) + np.log(H0[:, 0, 0]), -0.5 * (b1**2).sum(axis=1) + np.log(H1[:, 0, 0])]
    volume = np.abs(np.gradient(b[:, 0])) / H0[:, 0, 0] / math.sqrt(2 * math.pi)
    return deltas(logs, volume, epsilons)


def plane_deltas(records, added, ridge, epsilons, points=700):
    """Delta of the neighbours in the plane."""
    ends = [centre(own, ridge, 2) for own in (records, [*records, added])]
    reach = 8.5 / ridge
    axes = [np.linspace(min(e[k] for e in ends) - reach, max(e[k] for e in ends) + reach, points) for k in range(2)]
    theta = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    logs = []
    for own in (records, [*records, added]):
        b, H = noise_of(theta, own, ridge)
        logs.append(-0.5 * (b**2).sum(axis=1) + np.linalg.slogdet(H)[1])
    volume = math.prod(axis[1] - axis[0] for axis in axes) / (2 * math.pi)
    laws = [np.exp(log).sum() * volume for log in logs]
    assert all(abs(law - 1) < 1e-3 for law in laws), "the grid holds both laws"
    return deltas(logs, volume, epsilons)


def deltas(logs, volume, epsilons):
    p, q = (np.exp(log) * volume for log in logs)
    found = [np.maximum(b - math.exp(e) * a, 0).sum() for a, b in ((p, q), (q, p)) for e in epsilons]
    return np.reshape(found, (2, len(epsilons)))


def problem(rng, dim, q, mu):
    """Noise of variance 1 and R = 1, so that C is mu; the ridge is the least that the theorem admits."""
    ridge = q * mu / (RATIO * mu)
    records = []
    for _ in range(rng.integers(0, 6)):
        x = rng.standard_normal(dim)
        x *= np.exp(rng.uniform(-2, 2)) / np.linalg.norm(x)
        count = int(np.exp(rng.uniform(0, 7))) + 1
        records.append((x, mu * weight(np.linalg.norm(x), q), rng.uniform(-4, 6), count))
    x = rng.standard_normal(dim)
    length = float(rng.choice([0.3, 1.0, math.sqrt(q), q, 2 * q, 6 * q]))
    x *= length / np.linalg.norm(x)
    return records, (x, mu * weight(length, q), rng.uniform(-4, 6), 1), ridge


@pytest.mark.parametrize("q", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("seed", range(12))
def test_on_a_line(seed, q):
    rng = np.random.default_rng([seed, int(10 * q)])
    mu = float(np.exp(rng.uniform(-3, 0.7)))
    epsilons = mu * np.linspace(0, 4, 20)
    found = line_deltas(*problem(rng, 1, q, mu), epsilons)
    assert np.all(found <= gaussian_delta(epsilons, mu) * (1 + 1e-5) + 1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_in_the_plane(seed):
    rng = np.random.default_rng(seed)
    mu, q = float(np.exp(rng.uniform(-1.5, 0.7))), float(rng.choice([1.0, 1.5, 2.0]))
    epsilons = mu * np.linspace(0, 3, 8)
    found = plane_deltas(*problem(rng, 2, q, mu), epsilons)
    assert np.all(found <= gaussian_delta(epsilons, mu) * (1 + 1e-3) + 1e-5)


def test_long_records_without_weights_refute_the_curve():
    mu, q = 0.27, 2.0
    epsilons = mu * np.linspace(0, 3, 10)
    crowd = [(np.array([-0.3]), mu, 5.0, 300)]
    length = 3.0
    for gradient, refuted in ((True, False), (False, True)):
        added = (np.array([length]), mu * weight(length, q, gradient, gradient), 5.0, 1)
        found = line_deltas(crowd, added, q / RATIO, epsilons)
        assert np.any(found > gaussian_delta(epsilons, mu) * 1.5) == refuted


def test_gradients_and_curvatures_have_to_be_bounded_separately():
    # A record with a bounded gradient, whose curvature is not, is worse than a Gaussian mechanism of its own gradient.
    mu = 0.27
    epsilons = mu * np.array([0.3, 0.6, 0.9, 1.2])
    length = 5.0
    worst = {}
    for curvature in (True, False):
        added = (np.array([-length]), mu * weight(length, 1.0, True, curvature), 0.0, 1)
        excess = 0.0
        for place in (0.02, 0.05, 0.1):
            found = line_deltas([(np.array([place]), mu, 0.0, 200)], added, 1 / RATIO, epsilons)
            excess = max(excess, np.max(found[0] / gaussian_delta(epsilons, mu)))
        worst[curvature] = excess
    assert worst[True] <= 1 + 1e-6
    assert worst[False] > 1.05
