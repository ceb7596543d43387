"""Sums over Poisson samples: the three statements about their privacy loss, and the noise that a budget asks for."""

import math
from collections import Counter

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant
from scipy import special, stats

from skdp import BudgetAccountant
from skdp.accounting import (
    GaussianEvent,
    PrivacyCost,
    SampledGaussianEvent,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    sampled_gaussian_mu,
)
from skdp.accounting._compound import MOST_MU
from skdp.accounting._events import compose_events
from skdp.accounting._record import record_from_row, record_to_row
from tests.accounting.contour import contour_delta


def one_step_delta(epsilon, rate, mu):
    """The larger delta of the two directions of one step, from the densities."""
    phi = stats.norm.cdf
    # (1 - q) + q exp(mu x - mu^2 / 2) = exp(epsilon), and the same with -epsilon for the other direction.
    cuts = [
        (math.log((math.exp(e) - 1 + rate) / rate) + mu * mu / 2) / mu if math.exp(e) > 1 - rate else -math.inf
        for e in (epsilon, -epsilon)
    ]
    remove = (1 - rate - math.exp(epsilon)) * phi(-cuts[0]) + rate * phi(mu - cuts[0])
    add = phi(cuts[1]) - math.exp(epsilon) * ((1 - rate) * phi(cuts[1]) + rate * phi(cuts[1] - mu))
    return max(remove, add, 0.0)


def composed_delta(epsilon, rate, mu, n_steps, points=2**16, reach=16.0):
    """The same after several steps, in the direction of removal, by a plain convolution of rounded losses."""
    interval = 2 * reach / points
    x = np.linspace(-12, 12 + mu, 400_001)
    mixture = (1 - rate) * stats.norm.pdf(x) + rate * stats.norm.pdf(x - mu)
    loss = np.log1p(rate * np.expm1(mu * x - mu * mu / 2))
    masses = np.bincount(np.rint(loss / interval).astype(int) + points // 2, mixture * (x[1] - x[0]), points)
    transform = np.fft.rfft(np.fft.ifftshift(masses)) ** n_steps
    law = np.fft.fftshift(np.fft.irfft(transform, points))
    losses = (np.arange(points) - points // 2) * interval
    return float(np.sum(law * np.maximum(-np.expm1(epsilon - losses), 0.0)))


def test_a_delta_below_those_that_are_left_out_is_refused():
    with pytest.raises(ValueError, match="delta must be 0, or at least 1e-30"):
        BudgetAccountant(36.0, 1e-120, composition="gdp")


@pytest.mark.parametrize("rate", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("mu", [1.0, 3.0])
def test_what_gdp_admits_at_the_least_delta_has_that_delta(rate, mu):
    # The far tail of a rare sample is heavier than that of its Gaussian parameter, below any other delta.
    event = SampledGaussianEvent(rate, mu, 1)
    for delta in (1e-30, 1e-20, 1e-10):
        epsilon = gaussian_epsilon(event.mu(), delta)
        BudgetAccountant(epsilon * (1 + 1e-6) + 1e-6, delta, composition="gdp").charge(
            PrivacyCost(epsilon, delta, (event,))
        )
        removal = rate * float(gaussian_delta(math.log1p(math.expm1(epsilon) / rate), mu))
        assert removal <= delta * (1 + 1e-9)


@pytest.mark.parametrize("rate", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
def test_one_step_has_the_curve_of_its_densities(rate, mu):
    loss = SampledGaussianEvent(rate, mu, 1).privacy_loss_distribution(1e-3)
    for epsilon in (0.05, 0.5, 2.0):
        exact = one_step_delta(epsilon, rate, mu)
        assert exact * (1 - 1e-9) - 1e-14 <= loss.get_delta_for_epsilon(epsilon) <= exact * 1.01 + 1e-9
        assert one_step_delta(epsilon, rate, 0.8 * mu) < exact or exact < 1e-12


@pytest.mark.parametrize(("rate", "mu", "n_steps"), [(0.1, 0.5, 20), (0.02, 1.0, 200), (0.5, 0.1, 100)])
def test_steps_compose(rate, mu, n_steps):
    loss = SampledGaussianEvent(rate, mu, n_steps).privacy_loss_distribution(1e-3)
    for epsilon in (0.2, 1.0):
        direct = composed_delta(epsilon, rate, mu, n_steps)
        assert direct > 1e-9
        assert direct * (1 - 2e-3) <= loss.get_delta_for_epsilon(epsilon) <= direct * 1.02
        # The broken twin: one step too few.
        assert composed_delta(epsilon, rate, mu, n_steps // 2) < 0.9 * direct


def renyi(order, rate, mu):
    """Divergences of one step in both directions, by the trapezoidal rule on logarithms."""
    # A spacing that is a power of two, so that it is exact.
    spacing = 2.0**-12
    x = np.arange(-60 / spacing, (60 + order * mu) / spacing) * spacing
    normal = -x * x / 2 - 0.5 * math.log(2 * math.pi)
    ratio = np.logaddexp(math.log1p(-rate), math.log(rate) + mu * x - mu * mu / 2)
    both = (special.logsumexp(normal + a * ratio) + math.log(spacing) for a in (order, 1 - order))
    return [value / (order - 1) for value in both]


@pytest.mark.parametrize("rate", [1e-3, 0.05, 0.5])
@pytest.mark.parametrize("mu", [0.1, 1.0])
@pytest.mark.parametrize("order", [1.3, 2.0, 7.31, 20.37, 64.0])
def test_renyi_divergence(rate, mu, order):
    event = SampledGaussianEvent(rate, mu, 3)
    remove, add = renyi(order, rate, mu)
    assert add <= remove * (1 + 1e-9) + 1e-13
    assert event.rdp(order) >= 3 * remove * (1 - 1e-9)
    assert event.rdp(order) <= 3 * remove * (1 + 1e-8) + 3e-12


@pytest.mark.parametrize("rate", [0.01, 0.7])
@pytest.mark.parametrize("order", [2.0, 5.0, 33.0, 300.0])
def test_renyi_divergence_against_dp_accounting(rate, order):
    accountant = RdpAccountant([order]).compose(dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(2.0)))
    assert SampledGaussianEvent(rate, 0.5, 1).rdp(order) == pytest.approx(float(accountant.rdp[0]), rel=1e-8)


def test_far_orders_do_without_sampling():
    assert SampledGaussianEvent(0.1, 3.0, 2).rdp(1e5) == 2 * 1e5 * 9 / 2
    assert SampledGaussianEvent(0.1, 3.0, 1).rdp(5000.0) < 5000 * 9 / 2


def test_full_batches_are_gaussian():
    event = SampledGaussianEvent(1.0, 0.03, 100)
    assert event.mu() == pytest.approx(0.3)
    assert event.rdp(5.0) == pytest.approx(5 * 0.09 / 2)
    delta = event.privacy_loss_distribution(1e-3).get_delta_for_epsilon(1.0)
    assert delta == pytest.approx(float(gaussian_delta(1.0, 0.3)), rel=1e-3)


@pytest.mark.parametrize(("rate", "mu", "n_steps"), [(0.2, 0.6, 4), (0.1, 0.5, 20), (0.02, 1.0, 200), (0.5, 0.1, 100)])
@pytest.mark.sample(every=4)
def test_gdp_parameter(rate, mu, n_steps):
    event = SampledGaussianEvent(rate, mu, n_steps)
    assert event.mu() < 0.8 * mu * math.sqrt(n_steps)
    steps = np.linspace(0.05, 4, 30) * event.mu()
    # The plain convolution is good to about 1e-11.
    direct = np.array([composed_delta(epsilon, rate, mu, n_steps) for epsilon in steps])
    assert np.all(direct * (1 - 1e-3) - 1e-11 <= gaussian_delta(steps, event.mu()))
    # The broken twin: half as much.
    assert not np.all(direct * (1 - 1e-3) - 1e-11 <= gaussian_delta(steps, event.mu() / 2))


def one_step_log_delta(epsilon, rate, mu):
    """Logarithm of one step's delta when a record is removed, far into the tail."""
    above = np.expm1(epsilon) + rate
    cut = (np.log(above / rate) + mu * mu / 2) / mu
    first, second = math.log(rate) + special.log_ndtr(mu - cut), np.log(above) + special.log_ndtr(-cut)
    return first + np.log(-np.expm1(second - first))


@pytest.mark.parametrize(("rate", "mu"), [(0.1, 0.3), (0.5, 1.0), (0.01, 0.5)])
def test_gdp_parameter_holds_far_into_the_tail(rate, mu):
    event = SampledGaussianEvent(rate, mu, 1)
    epsilons = np.linspace(0.01, 12 * mu, 400)
    exact = one_step_log_delta(epsilons, rate, mu)
    relevant = exact > math.log(1e-39)
    assert exact.min() < math.log(1e-25)
    assert event.mu() < mu

    def gaussian_log_delta(m):
        first = special.log_ndtr(m / 2 - epsilons / m)
        return first + np.log(-np.expm1(epsilons + special.log_ndtr(-m / 2 - epsilons / m) - first))

    assert np.all((exact <= gaussian_log_delta(event.mu()))[relevant])
    # The broken twin: less than the tail asks for.
    assert not np.all((exact <= gaussian_log_delta(0.7 * event.mu()))[relevant])


def test_gdp_parameter_where_nothing_better_is_known():
    assert SampledGaussianEvent(0.3, 0.0, 5).mu() == 0
    assert SampledGaussianEvent(0.9, 60.0, 3).mu() == pytest.approx(60 * math.sqrt(3))


def test_a_gaussian_filter_admits_sampled_steps():
    """After a Gaussian release, which settles "auto" on Gaussian-DP composition."""
    accountant = BudgetAccountant(3.0, 1e-5)
    accountant.charge(PrivacyCost(1.0, 1e-5, (GaussianEvent(gaussian_mu(1.0, 1e-5)),)))
    mu = sampled_gaussian_mu(1.0, 1e-5, 0.1, 500)
    for _ in range(4):
        accountant.charge(PrivacyCost(1.0, 1e-5, (SampledGaussianEvent(0.1, mu, 500),)))
    assert accountant.total().epsilon <= 3.0


@pytest.mark.parametrize("arguments", [(0.0, 1.0, 1), (1.1, 1.0, 1), (0.5, -1.0, 1), (0.5, math.inf, 1), (0.5, 1.0, 0)])
def test_bad_events(arguments):
    with pytest.raises(ValueError, match="must"):
        SampledGaussianEvent(*arguments)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize(("rate", "n_steps"), [(0.01, 1000), (0.2, 200), (0.1, 1), (0.9, 30)])
def test_calibration_is_safe_and_close(epsilon, rate, n_steps):
    delta = 1e-5
    mu = sampled_gaussian_mu(epsilon, delta, rate, n_steps)
    fine = gaussian_mu(epsilon, delta) / math.sqrt(n_steps) / 100

    def delta_of(value):
        events = Counter([SampledGaussianEvent(rate, value, n_steps)])
        return compose_events(events, fine).get_delta_for_epsilon(epsilon)

    assert delta_of(mu) <= delta
    assert delta_of(mu * 1.001) > delta, "more than a thousandth of the noise is wasted"


def test_full_batches_in_closed_form():
    for epsilon in (0.1, 3.0):
        mu = sampled_gaussian_mu(epsilon, 1e-6, 1.0, 50)
        assert mu == pytest.approx(gaussian_mu(epsilon, 1e-6) / math.sqrt(50), rel=1e-12)
        assert mu <= gaussian_mu(epsilon, 1e-6) / math.sqrt(50)
        # Against dp_accounting, at a rate that differs from 1 by nothing that counts.
        almost = sampled_gaussian_mu(epsilon, 1e-6, 1 - 1e-9, 50)
        assert almost == pytest.approx(mu, rel=1e-3)


def test_other_releases_take_their_part():
    epsilon, delta, rate, n_steps = 1.0, 1e-5, 0.05, 100
    other = 0.5 * gaussian_mu(epsilon, delta)
    mu = sampled_gaussian_mu(epsilon, delta, rate, n_steps, other)
    assert mu < 0.95 * sampled_gaussian_mu(epsilon, delta, rate, n_steps)
    cost = PrivacyCost(epsilon, delta, (GaussianEvent(other), SampledGaussianEvent(rate, mu, n_steps)))
    assert cost.privacy_loss_distribution().get_delta_for_epsilon(epsilon) <= delta
    with pytest.raises(ValueError, match="nothing"):
        sampled_gaussian_mu(epsilon, delta, rate, n_steps, gaussian_mu(epsilon, delta))


@pytest.mark.parametrize(("delta", "rate", "n_steps"), [(1e-26, 0.1, 50), (1e-5, 1e-4, 2_000_000)])
def test_divergences_take_over_where_distributions_do_not_reach(delta, rate, n_steps):
    mu = sampled_gaussian_mu(1.0, delta, rate, n_steps)
    assert mu > 2 * gaussian_mu(1.0, delta) / math.sqrt(n_steps)
    event = SampledGaussianEvent(rate, mu, n_steps)
    for order in np.arange(2.0, 200.0):
        bound = event.rdp(order) + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
        if bound <= 1.0:
            break
    else:
        raise AssertionError("no order proves the guarantee")


@pytest.mark.parametrize(
    "arguments",
    [
        (1.0, 1e-5, 1.6e-6, 2),
        (1.0, 1e-5, 1e-8, 100),
        (1.0, 0.5, 2.0**-48, 1),
        (50.0, 0.9, 0.1, 10),
        (1e4, 1e-300, 0.1, 1000),
        (1e-6, 1e-300, 0.5, 10),
        (1.0, 1e-10, 0.001, 10**6),
        (1.0, 1e-5, 0.5, 10**7),
        (1.0, 1 - 1e-9, 0.1, 1000),
    ],
)
def test_calibration_ends_for_all_parameters(arguments):
    epsilon, delta, rate, n_steps = arguments
    mu = sampled_gaussian_mu(*arguments)
    alone = gaussian_mu(epsilon, delta) / math.sqrt(n_steps)
    assert alone * (1 - 1e-12) <= mu <= max(MOST_MU, alone)
    assert SampledGaussianEvent(rate, mu, n_steps)._least_delta(epsilon) <= delta


def test_rare_records_are_hidden_too():
    """Delta alone would let a record that is sampled with probability delta be seen as it is."""
    assert sampled_gaussian_mu(1.0, 1e-5, 1e-6, 5) == MOST_MU


def test_many_steps_and_a_small_delta_are_calibrated_by_the_distribution():
    epsilon, delta, rate, n_steps = 1.0, 1e-10, 0.001, 50_000
    mu = sampled_gaussian_mu(epsilon, delta, rate, n_steps)
    exact = max(contour_delta(rate, mu, n_steps, epsilon, 8.0, removed) for removed in (True, False))
    assert 0.98 * delta <= exact <= delta


@pytest.mark.parametrize("rate", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("mu", [0.2, 3.0])
def test_least_delta_of_one_step(rate, mu):
    for epsilon in (0.05, 0.5, 2.0):
        phi = stats.norm.cdf
        cut = (math.log((math.expm1(epsilon) + rate) / rate) + mu * mu / 2) / mu
        removal = (1 - rate - math.exp(epsilon)) * phi(-cut) + rate * phi(mu - cut)
        assert SampledGaussianEvent(rate, mu, 1)._least_delta(epsilon) == pytest.approx(removal, rel=1e-6, abs=2e-12)
        assert SampledGaussianEvent(rate, mu, 5)._least_delta(epsilon) >= removal * (1 - 1e-6) - 2e-12
    assert SampledGaussianEvent(rate, mu, 1)._least_delta(1000.0) == 0


def test_a_cost_that_states_too_little_is_refused():
    mu = sampled_gaussian_mu(1.0, 1e-5, 0.1, 1)
    PrivacyCost(1.0, 1e-5, (SampledGaussianEvent(0.1, mu, 1),))
    for event in (SampledGaussianEvent(0.1, 1.5 * mu, 1), SampledGaussianEvent(1.0, 100.0, 10)):
        with pytest.raises(ValueError, match="guarantee"):
            PrivacyCost(1.0, 1e-5, (event,))


def test_a_ledger_keeps_it(tmp_path):
    cost = PrivacyCost(1.0, 1e-5, (SampledGaussianEvent(0.1, 0.3, 40),))
    BudgetAccountant(3.0, 1e-5, ledger=tmp_path / "budget.db").charge(cost, label="fit", estimator="Test")
    (record,) = BudgetAccountant(3.0, 1e-5, ledger=tmp_path / "budget.db").records
    assert record.cost == cost
    assert record_from_row(record_to_row(record)).cost == cost


def test_the_renyi_filter_admits_more_of_them_than_their_sum():
    mu = sampled_gaussian_mu(1.0, 1e-5, 0.05, 200)
    cost = PrivacyCost(1.0, 1e-5, (SampledGaussianEvent(0.05, mu, 200),))
    accountant = BudgetAccountant(3.0, 1e-5)
    for _ in range(4):
        accountant.charge(cost)
    assert accountant.total().epsilon <= 3.0
