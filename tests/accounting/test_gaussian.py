"""The Gaussian mechanism's privacy curve and its inversions.

Oracles: the definition in decimal arithmetic (tests/accounting/precise.py), and dp_accounting.
"""

import decimal
import math
from decimal import Decimal

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy import integrate, special, stats

from skdp.accounting import (
    bounded_range_epsilon,
    bounded_range_mu,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    gaussian_noise_multiplier,
    pure_dp_mu,
)
from tests.accounting import precise

KNOWN = {0.1: 30.7496, 0.5: 7.0318, 1.0: 3.7306, 2.0: 1.9938, 4.0: 1.0812, 8.0: 0.6002}


def test_the_oracle_agrees_with_scipy():
    for x in (-8.0, -1.0, 0.0, 0.3, 2.0, 10.0, 30.0):
        assert float(precise.normal_tail(x)) == pytest.approx(stats.norm.sf(x), rel=1e-13)
    assert float(precise.PI) == math.pi
    # Its two routes agree where both are good.
    with decimal.localcontext(decimal.Context(prec=110)):
        for x in (Decimal(5), Decimal(7)):
            assert abs(precise.by_series(x) / precise.by_fraction(x) - 1) < Decimal("1e-70")


@pytest.mark.parametrize("mu", [1e-9, 1e-4, 0.03, 0.5, 1.0, 1.0001, 3.0, 20.0])
def test_curve_against_its_definition(mu):
    # Epsilons from far left to far right of the mean of the privacy loss.
    for x in (-30.0, -6.0, -1.01, -1.0, -0.99, -0.3, 0.0, 0.5, 2.0, 6.0, 12.0, 30.0):
        epsilon = mu**2 / 2 + x * mu
        exact = float(precise.gaussian_delta(epsilon, mu))
        got = float(gaussian_delta(epsilon, mu))
        # What a few roundings of x do to the tail is granted; for negative epsilon there is cancellation.
        relative = 2e-13 + 1e-14 * x * x if epsilon >= 0 else 1e-7
        assert got == pytest.approx(exact, rel=relative, abs=1e-300), (epsilon, mu)


@pytest.mark.parametrize("mu", [0.05, 0.7, 4.0])
def test_curve_against_quadrature_of_the_privacy_loss(mu):
    # E[(1 - exp(epsilon - G))_+] for the loss G ~ N(mu^2/2, mu^2).
    for epsilon in (-1.0, 0.0, 0.1, 1.0, 3.0):
        low = max(epsilon, mu**2 / 2 - 12 * mu)
        high = max(mu**2 / 2 + 12 * mu, epsilon)
        value, _ = integrate.quad(
            lambda g, e=epsilon: -math.expm1(e - g) * stats.norm.pdf(g, mu**2 / 2, mu), low, high, epsabs=1e-14
        )
        assert float(gaussian_delta(epsilon, mu)) == pytest.approx(value, rel=1e-8, abs=1e-13)


def test_curve_at_its_limits():
    assert gaussian_delta([0.0, 1.0, -1.0], 0.0) == pytest.approx([0, 0, 1 - math.exp(-1)])
    assert gaussian_delta([0.0, 1.0, 1e6], math.inf).tolist() == [1, 1, 1]
    assert gaussian_delta([math.inf, -math.inf], 1.0).tolist() == [0, 1]
    assert gaussian_delta(math.inf, math.inf) == 0
    assert gaussian_delta(1e5, 1.0) == 0
    assert gaussian_delta(0.0, 1e3) == 1
    assert gaussian_delta(np.zeros((3, 1)), np.ones(4)).shape == (3, 4)


def test_curve_decreases_in_epsilon_and_increases_in_mu():
    epsilon, mu = np.linspace(-3, 20, 401), np.geomspace(1e-3, 30, 301)
    table = gaussian_delta(epsilon[:, None], mu[None, :])
    assert np.all(np.diff(table, axis=0) <= 1e-14)
    assert np.all(np.diff(table, axis=1) >= -1e-14)


@pytest.mark.parametrize(("epsilon", "multiplier"), KNOWN.items())
def test_known_multipliers(epsilon, multiplier):
    assert gaussian_noise_multiplier(epsilon, 1e-5) == pytest.approx(multiplier, abs=5.1e-5)
    # Never above the classical formula, which is proved for epsilon up to 1.
    if epsilon <= 1:
        assert multiplier < math.sqrt(2 * math.log(1.25e5)) / epsilon


@pytest.mark.parametrize("delta", [1e-15, 1e-12, 1e-9, 1e-5, 1e-2, 0.5, 0.9])
@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 1e-4, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0])
def test_mu_is_on_the_safe_side_and_close(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    assert precise.gaussian_delta(epsilon, mu) <= Decimal(delta)
    # The twin that is 1e-6 too large is caught.
    assert precise.gaussian_delta(epsilon, mu * (1 + 1e-6)) > Decimal(delta)
    # The noise multiplier, as it is used, is its reciprocal.
    multiplier = gaussian_noise_multiplier(epsilon, delta)
    with decimal.localcontext(decimal.Context(prec=60)):
        assert precise.gaussian_delta(epsilon, 1 / Decimal(multiplier)) <= Decimal(delta)


@pytest.mark.parametrize("delta", [1e-15, 1e-5, 0.5])
@pytest.mark.parametrize("mu", [1e-6, 0.01, 0.2681, 1.0, 5.0, 40.0])
def test_epsilon_inverts_the_curve_from_above(mu, delta):
    epsilon = gaussian_epsilon(mu, delta)
    assert precise.gaussian_delta(epsilon, mu) <= Decimal(delta)
    if epsilon > 0:
        assert precise.gaussian_delta(epsilon * (1 - 1e-6), mu) > Decimal(delta)
        # There and back.
        assert gaussian_mu(epsilon, delta) == pytest.approx(mu, rel=1e-6)
    else:
        assert precise.gaussian_delta(0, mu) <= Decimal(delta)


def test_epsilon_at_its_limits():
    assert gaussian_epsilon(0.0, 1e-5) == 0
    assert gaussian_epsilon(math.inf, 1e-5) == math.inf
    assert gaussian_epsilon(1e-6, 1e-5) == 0
    assert gaussian_epsilon(1.0, 0.9) == 0


@pytest.mark.parametrize("mu", [0.05, 0.2681, 1.0, 3.0])
@pytest.mark.sample(every=3)
def test_dp_accounting_agrees_and_never_says_less(mu):
    pld = privacy_loss_distribution.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-4)
    for epsilon in (0.0, 0.1, 0.5, 1.0, 3.0):
        ours, theirs = float(gaussian_delta(epsilon, mu)), pld.get_delta_for_epsilon(epsilon)
        assert ours <= theirs + 1e-14
        assert theirs <= float(gaussian_delta(epsilon - 2e-4, mu)) + 1e-9
        assert not float(gaussian_delta(epsilon, 1.1 * mu)) <= theirs + 1e-14 or theirs < 1e-12
    for delta in (1e-3, 1e-5):
        ours, theirs = gaussian_epsilon(mu, delta), pld.get_epsilon_for_delta(delta)
        assert ours * (1 - 1e-9) <= theirs <= ours + 1e-3


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, math.nan])
def test_delta_out_of_range(delta):
    for function in (gaussian_mu, gaussian_epsilon, gaussian_noise_multiplier):
        with pytest.raises(ValueError, match=r"delta must lie in \(0, 1\)"):
            function(1.0, delta)


@pytest.mark.parametrize("epsilon", [-0.1, math.nan])
def test_epsilon_out_of_range(epsilon):
    for function in (gaussian_mu, gaussian_noise_multiplier):
        with pytest.raises(ValueError, match="epsilon must be at least 0"):
            function(epsilon, 1e-5)


def test_without_privacy_there_is_no_noise():
    assert gaussian_mu(math.inf, 1e-5) == math.inf
    assert gaussian_noise_multiplier(math.inf, 1e-5) == 0


@pytest.mark.parametrize(("epsilon", "delta"), [(1e9, 1e-5), (0.0, 1e-20)])
def test_mu_beyond_the_bracket(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    assert 0.99 * delta <= float(gaussian_delta(epsilon, mu)) <= delta


def pure_trade_off(epsilon, alpha):
    """Least type-2 error of a test of size alpha against an epsilon-DP mechanism."""
    return np.maximum(0, np.maximum(1 - np.exp(epsilon) * alpha, np.exp(-epsilon) * (1 - alpha)))


@pytest.mark.parametrize("epsilon", [2.0**-20, 1e-3, 0.1, 0.5, 1.0, 3.0, 10.0, 30.0])
def test_pure_dp_lies_above_the_trade_off_of_its_mu(epsilon):
    mu = pure_dp_mu(epsilon)
    kink = special.expit(-epsilon)
    alpha = np.concatenate([np.linspace(0, 1, 2001), np.geomspace(1e-14, 1, 500), [kink]])

    def gaussian(m):
        return special.ndtr(special.ndtri(1 - alpha) - m)

    slack = 1e-15 + 1e-12 * pure_trade_off(epsilon, alpha)
    assert np.all(pure_trade_off(epsilon, alpha) >= gaussian(mu) - slack)
    # At the kink the two curves touch: the twin with 1 % less is no bound.
    assert np.any(pure_trade_off(epsilon, alpha) < gaussian(0.99 * mu) - slack)


@pytest.mark.parametrize("epsilon", [2.0**-20, 1e-5, 1e-3, 0.1, 1.0, 8.0, 50.0, 700.0])
def test_pure_dp_mu_is_rounded_up(epsilon):
    mu = pure_dp_mu(epsilon)
    # 1 - Phi(mu / 2) <= 1 / (1 + exp(epsilon)), in decimal arithmetic.
    with decimal.localcontext(decimal.Context(prec=110, Emin=decimal.MIN_EMIN)):
        kink = 1 / (1 + Decimal(epsilon).exp())
        assert precise.normal_tail(Decimal(mu) / 2) <= kink
        assert precise.normal_tail(Decimal(mu) / 2 * (1 - Decimal("1e-8"))) > kink


@pytest.mark.parametrize("epsilon", [1.621246337890625e-06, 2.1099504388628124e-06, 2.5269567603296444e-06])
def test_pure_dp_mu_of_tiny_epsilon_is_rounded_up(epsilon):
    with decimal.localcontext(decimal.Context(prec=110)):
        kink = 1 / (1 + Decimal(epsilon).exp())
    assert precise.normal_tail(Decimal(pure_dp_mu(epsilon)) / 2) <= kink


def test_pure_dp_mu_at_its_limits():
    assert pure_dp_mu(0.0) == 0
    assert pure_dp_mu(math.inf) == math.inf
    # For small epsilon it is sqrt(pi/2) epsilon.
    assert pure_dp_mu(1e-4) == pytest.approx(math.sqrt(math.pi / 2) * 1e-4, rel=1e-7)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_pure_dp_delta_is_below_the_gaussian_one_everywhere(epsilon):
    # Second route: randomised response has delta(t) = (e^eps - e^t) / (1 + e^eps) for 0 <= t <= eps.
    t = np.linspace(0, epsilon, 500)
    pure = (np.exp(epsilon) - np.exp(t)) / (1 + np.exp(epsilon))
    assert np.all(pure <= gaussian_delta(t, pure_dp_mu(epsilon)) + 1e-15)
    assert np.any(pure > gaussian_delta(t, 0.99 * pure_dp_mu(epsilon)))


@pytest.mark.parametrize("epsilon", np.logspace(-3, np.log10(30), 15))
def test_bounded_range_by_its_worst_intervals(epsilon):
    # A loss of t or t - epsilon, with E[e^L] = 1 under the second law, and the error rates at the kink.
    t = np.linspace(0, epsilon, 2001)[1:-1]
    c = 1 / np.expm1(epsilon)
    first, second = np.exp(-t) * (1 + c) - c, np.exp(t - epsilon) * (1 + c) - c
    mu = -special.ndtri(first) - special.ndtri(second)
    claim = bounded_range_mu(epsilon)
    assert mu.max() <= claim * (1 + 1e-9)
    assert mu.max() >= claim * (1 - 1e-6)
    assert claim < pure_dp_mu(epsilon)


@pytest.mark.parametrize("mu", np.logspace(-8, 1, 40))
def test_bounded_range_epsilon_is_the_inverse(mu):
    epsilon = bounded_range_epsilon(mu)
    assert bounded_range_mu(epsilon) <= mu
    assert bounded_range_mu(epsilon) == pytest.approx(mu, rel=2e-6)
