"""What is known about single events: Gaussian-DP parameters and Renyi divergences."""

import decimal
import math
from decimal import Decimal

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant
from scipy import stats

from skdp.accounting import (
    ApproximateEvent,
    BoundedRangeEvent,
    GaussianEvent,
    ObjectiveEvent,
    PrivacyCost,
    PureEvent,
    binary_log_loss,
    bounded_range_epsilon,
    gaussian_delta,
    gaussian_mu,
    pure_dp_mu,
)

ORDERS = [1.0001, 1.5, 2.0, 10.0, 17.8, 125.0, 5000.0]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("epsilon", [2.0**-20, 1e-3, 0.1, 1.0, 4.0])
def test_pure_event_has_the_divergence_of_randomised_response(epsilon, order):
    # Direct: outputs of probability e^eps/(1+e^eps) and 1/(1+e^eps), and the other way round; logarithms throughout.
    heads, tails = -np.logaddexp(0, -epsilon), -np.logaddexp(0, epsilon)
    both = np.logaddexp(order * heads + (1 - order) * tails, order * tails + (1 - order) * heads)
    direct = both / (order - 1)
    # For small epsilon the direct sum cancels; the expansion is order epsilon^2 / 2.
    got = PureEvent(epsilon).rdp(order)
    assert got == pytest.approx(direct, rel=1e-6, abs=1e-11)
    assert got <= min(epsilon, order * epsilon**2 / 2) * (1 + 1e-9) + 1e-12
    if epsilon * order < 1e-3:
        assert got == pytest.approx(order * epsilon**2 / 2, rel=1e-3, abs=1e-12)


def test_pure_event_dominates_laplace_noise():
    # Laplace noise is epsilon-DP, so that randomised response has at least its divergence.
    for epsilon in (0.1, 1.0, 3.0):
        for order in (1.5, 2.0, 8.0):
            a = order
            laplace = math.log(
                a / (2 * a - 1) * math.exp((a - 1) * epsilon) + (a - 1) / (2 * a - 1) * math.exp(-a * epsilon)
            ) / (a - 1)
            assert laplace <= PureEvent(epsilon).rdp(order)
            assert laplace > PureEvent(0.7 * epsilon).rdp(order)


@pytest.mark.parametrize("order", [1.5, 2.0, 17.8])
@pytest.mark.parametrize("mu", [0.05, 1.0])
def test_gaussian_event_against_dp_accounting(mu, order):
    accountant = RdpAccountant(orders=[order]).compose(dp_event.GaussianDpEvent(1 / mu))
    assert GaussianEvent(mu).rdp(order) == pytest.approx(float(accountant._rdp[0]), rel=1e-12)
    assert GaussianEvent(mu).mu() == mu


def test_limits():
    assert PureEvent(0.0).rdp(2.0) == 0
    assert PureEvent(0.0).mu() == 0
    assert PureEvent(math.inf).rdp(2.0) == math.inf
    assert PureEvent(math.inf).mu() == math.inf
    assert PureEvent(500.0).rdp(1e4) == pytest.approx(500.0, rel=1e-3)
    assert ApproximateEvent(0.1, 1e-6).rdp(2.0) == math.inf
    assert ApproximateEvent(0.1, 1e-6).mu() == math.inf
    assert PureEvent(0.3).mu() == pure_dp_mu(0.3)


def test_objective_event_asks_its_curve():
    curve = binary_log_loss(0.4)
    event = ObjectiveEvent(curve, 0.2)
    assert event.mu() == curve.gdp(0.2)
    assert event.rdp(5.0) == curve.rdp(5.0, 0.2)


def test_events_are_frozen_values():
    assert GaussianEvent(0.1) == GaussianEvent(0.1) != GaussianEvent(0.2)
    assert PureEvent(0.1) != ApproximateEvent(0.1, 0.0)
    with pytest.raises(AttributeError):
        PureEvent(0.1).epsilon = 0.0


def test_cost_adds_up_its_events():
    cost = PrivacyCost(2.0, 1e-5, (GaussianEvent(0.3), PureEvent(0.1), ObjectiveEvent(binary_log_loss(0.1), 0.2)))
    squares = sum(event.mu() ** 2 for event in cost.events)
    assert cost.mu() == pytest.approx(math.sqrt(squares), rel=1e-12)
    assert cost.mu() ** 2 >= squares
    divergence = sum(event.rdp(4.0) for event in cost.events)
    assert cost.rdp(4.0) == pytest.approx(divergence, rel=1e-12)
    assert cost.rdp(4.0) >= divergence
    assert not cost.pure
    assert PrivacyCost(1.0, 0.0, (PureEvent(1.0),)).pure
    assert PrivacyCost(1.0, 1e-5, (GaussianEvent(0.1), ApproximateEvent(0.1, 1e-6))).mu() == math.inf


@pytest.mark.parametrize(
    ("epsilon", "delta", "events"),
    [
        (100.0, 0.5, ()),
        (1.0, 0.0, ()),
        (1.0, 0.0, (GaussianEvent(0.1),)),
        (1.0, 0.0, (PureEvent(0.5), PureEvent(0.6))),
        (1.0, 1e-5, (PureEvent(1.1),)),
        (1.0, 1e-5, (GaussianEvent(0.3),)),
        (1.0, 1e-5, (GaussianEvent(0.2), GaussianEvent(0.2))),
        (1.0, 0.0, (PureEvent(0.5), PureEvent(0.5 + 1e-10))),
        # One event alone that the pair does not cover, among others.
        (1.0, 1e-5, (GaussianEvent(0.3), PureEvent(0.1))),
        (1.0, 1e-5, (GaussianEvent(0.1), PureEvent(1.1))),
        (1.0, 1e-5, (ApproximateEvent(0.5, 1e-4),)),
        (1.0, 1e-5, (ApproximateEvent(1.2, 1e-6), GaussianEvent(0.1))),
        # Concentrated DP: 20 * 0.2**2 / 8 = 0.1, and no more than 0.02 are within the pair.
        (1.0, 1e-5, (BoundedRangeEvent(0.2),) * 20),
    ],
)
def test_a_cost_cannot_state_less_than_its_events_prove(epsilon, delta, events):
    with pytest.raises(ValueError, match="do not have the guarantee"):
        PrivacyCost(epsilon, delta, events)


def test_a_cost_may_state_what_its_events_prove():
    PrivacyCost(0.0, 0.0, ())
    PrivacyCost(1.0, 0.0, (PureEvent(0.1),) * 10)
    PrivacyCost(1.0, 1e-5, (GaussianEvent(gaussian_mu(1.0, 1e-5)),))
    PrivacyCost(math.inf, 0.0, (PureEvent(math.inf),))
    # More than 1 by their sum.
    PrivacyCost(1.0, 1e-5, (BoundedRangeEvent(0.08),) * 20)


@pytest.mark.parametrize("bad", [math.nan, -0.1, -math.inf])
def test_events_refuse_what_is_no_parameter(bad):
    for make in (GaussianEvent, PureEvent, lambda value: ApproximateEvent(value, 1e-6)):
        with pytest.raises(ValueError, match="must be at least 0"):
            make(bad)
    with pytest.raises(ValueError, match="delta must lie"):
        ApproximateEvent(0.1, bad)
    with pytest.raises(ValueError, match="noise_mu"):
        ObjectiveEvent(binary_log_loss(0.1), bad)


def test_a_cost_consists_of_events():
    with pytest.raises(TypeError, match="PrivacyEvent"):
        PrivacyCost(1.0, 0.0, (0.1,))


@pytest.mark.parametrize(
    ("event", "delta"),
    [
        (GaussianEvent(0.4), lambda t: float(gaussian_delta(t, 0.4))),
        (PureEvent(0.7), lambda t: max(0.0, (math.exp(0.7) - math.exp(t)) / (1 + math.exp(0.7)))),
        (ApproximateEvent(0.3, 1e-3), lambda t: 1e-3 if t >= 0.3 else math.inf),
    ],
)
def test_distributions_dominate_tightly(event, delta):
    distribution = event.privacy_loss_distribution(1e-4)
    for t in (0.05, 0.2, 0.3, 0.5, 1.0):
        found = distribution.get_delta_for_epsilon(t)
        if math.isfinite(delta(t)):
            assert delta(t) * (1 - 1e-9) <= found <= delta(t) * 1.001 + 1e-4
    assert GaussianEvent(0.0).privacy_loss_distribution(1e-4).get_delta_for_epsilon(0.0) == 0


def test_distribution_of_a_cost_is_that_of_its_events():
    cost = PrivacyCost(1.0, 1e-4, (GaussianEvent(0.1), GaussianEvent(0.1), PureEvent(0.2)))
    found = cost.privacy_loss_distribution()
    one = GaussianEvent(0.1 * math.sqrt(2)).privacy_loss_distribution(1e-4)
    expected = one.compose(PureEvent(0.2).privacy_loss_distribution(1e-4))
    for t in (0.1, 0.3, 0.6):
        assert found.get_delta_for_epsilon(t) == pytest.approx(expected.get_delta_for_epsilon(t), rel=1e-3)
    with pytest.raises(ValueError, match="epsilon=inf"):
        PrivacyCost(math.inf, 0.0, (PureEvent(math.inf),)).privacy_loss_distribution()


def test_pythagoras_is_what_gaussian_events_compose_by():
    # Two releases of one record's value, seen together, by the likelihood ratio of the pair.
    rng = np.random.default_rng(0)
    mus = np.array([0.3, 0.4])
    noise = rng.standard_normal((400_000, 2))
    loss = (noise * mus + mus**2 / 2).sum(axis=1)
    sample = np.maximum(-np.expm1(0.2 - loss), 0)
    error = sample.std() / math.sqrt(sample.size)
    cost = PrivacyCost(0.2, 0.2, tuple(GaussianEvent(m) for m in mus))
    # Five standard errors: false-alarm probability 6e-7.
    assert abs(sample.mean() - float(gaussian_delta(0.2, cost.mu()))) < 5 * error
    # The broken twin adds the parameters' squares only in part.
    assert abs(sample.mean() - float(gaussian_delta(0.2, 0.4))) > 5 * error


@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("distance", [1e-13, 1e-9, 1e-5, 1e-2])
def test_pure_divergence_next_to_order_one(epsilon, distance):
    # The textbook's form subtracts two nearly equal logarithms there: 47 % too little at (0.1, 1 + 1e-13).
    order = 1 + distance
    with decimal.localcontext(prec=80):
        e, a = decimal.Decimal(epsilon), decimal.Decimal(order)
        heads = 1 / (1 + (-e).exp())
        tails = 1 - heads
        exact = (heads**a * tails ** (1 - a) + tails**a * heads ** (1 - a)).ln() / (a - 1)
        found = decimal.Decimal(PureEvent(epsilon).rdp(order))
        assert exact <= found <= exact * (1 + decimal.Decimal("1e-9"))


def test_events_of_a_cost_are_kept_as_a_tuple():
    events = [PureEvent(0.5)]
    cost = PrivacyCost(0.5, 0.0, events)
    events.append(PureEvent(9.0))
    assert cost.events == (PureEvent(0.5),)
    assert hash(cost) == hash(PrivacyCost(0.5, 0.0, (PureEvent(0.5),)))


def bounded_range_pairs(epsilon):
    """Pairs of two outcomes whose losses are `epsilon` apart: the probabilities of the first, under both."""
    a = np.linspace(-12 - epsilon, 12 + epsilon, 4001)
    return 1 / (1 + np.exp(-a - epsilon / 2)), 1 / (1 + np.exp(-a + epsilon / 2))


@pytest.mark.parametrize("epsilon", [2.0**-20, 0.01, 0.3, 1.0, 4.0, 20.0])
def test_bounded_range_event_covers_all_pairs_of_that_range(epsilon):
    event = BoundedRangeEvent(epsilon)
    p, q = bounded_range_pairs(epsilon)
    inside = (p < 1 - 1e-12) & (q > 1e-12)
    worst = np.max(stats.norm.ppf(p[inside]) - stats.norm.ppf(q[inside]))
    assert worst <= event.mu() * (1 + 1e-9)
    assert worst >= (0.999 if epsilon < 10 else 0.9) * event.mu()
    assert event.mu() < PureEvent(epsilon).mu()
    for order in (1.5, 2.0, 10.0, 100.0):
        with np.errstate(divide="ignore"):
            sums = np.logaddexp(
                order * np.log(p) + (1 - order) * np.log(q), order * np.log1p(-p) + (1 - order) * np.log1p(-q)
            )
        worst = np.max(sums[inside]) / (order - 1)
        # The direct sum has an error of its own.
        assert worst <= event.rdp(order) * (1 + 1e-9) + 1e-12
        assert event.rdp(order) <= PureEvent(epsilon).rdp(order)
    assert event.rdp(2.0) == min(epsilon**2 / 4, PureEvent(epsilon).rdp(2.0))


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 4.0])
def test_bounded_range_profile_is_the_largest_of_all_pairs(epsilon):
    event = BoundedRangeEvent(epsilon)
    p, q = bounded_range_pairs(epsilon)
    t = np.linspace(-1.2 * epsilon, 1.2 * epsilon, 49)
    both = np.maximum(p - np.exp(t)[:, None] * q, 0) + np.maximum(1 - p - np.exp(t)[:, None] * (1 - q), 0)
    np.testing.assert_allclose(event._profile(t), both.max(axis=1), atol=1e-5)
    assert np.all(both.max(axis=1) <= event._profile(t) + 1e-12)
    distribution = event.privacy_loss_distribution(1e-3)
    for at, delta in zip(t, event._profile(t), strict=True):
        assert delta - 1e-12 <= distribution.get_delta_for_epsilon(at) <= delta + 1e-3
    assert distribution.get_delta_for_epsilon(epsilon + 1e-3) <= 1e-14


def test_bounded_range_events_compose_to_less_than_pure_ones():
    # Ten at 0.15 are (1, 1e-5)-DP by concentrated DP; the distribution says so too, and pure events do not.
    distribution = PrivacyCost(1.5, 0.0, (BoundedRangeEvent(0.15),) * 10).privacy_loss_distribution(1e-3)
    assert distribution.get_epsilon_for_delta(1e-5) <= 1.0
    assert (
        PrivacyCost(1.5, 0.0, (PureEvent(0.15),) * 10).privacy_loss_distribution(1e-3).get_epsilon_for_delta(1e-5) > 1.3
    )


def test_bounded_range_cost_is_pure():
    with pytest.raises(ValueError, match="guarantee"):
        PrivacyCost(0.2, 0.0, (BoundedRangeEvent(0.15),) * 2)
    assert BoundedRangeEvent(0.5) != PureEvent(0.5)


def test_a_bounded_range_is_held_to_its_own_profile():
    # Alone, beside Gaussian noise, and several together; treated as randomised response, each would be refused.
    delta = 0.01
    width = bounded_range_epsilon(gaussian_mu(0.3, delta))
    assert width > 0.3
    event = BoundedRangeEvent(width * (1 - 1e-9))
    PrivacyCost(0.3, delta, (event,))
    with pytest.raises(ValueError, match="do not have the guarantee"):
        PrivacyCost(0.3, delta, (PureEvent(event.epsilon),))
    part = gaussian_mu(0.3, delta) / math.sqrt(2) * (1 - 1e-9)
    PrivacyCost(0.3, delta, (BoundedRangeEvent(bounded_range_epsilon(part)), GaussianEvent(part)))
    PrivacyCost(0.3, delta, (BoundedRangeEvent(bounded_range_epsilon(part)),) * 2)
    for factor in (1.05, 2.0):
        with pytest.raises(ValueError, match="do not have the guarantee"):
            PrivacyCost(0.3, delta, (BoundedRangeEvent(width * 2 * factor),))
        with pytest.raises(ValueError, match="do not have the guarantee"):
            PrivacyCost(0.3, delta, (BoundedRangeEvent(width * 2 * factor), GaussianEvent(0.001)))


# log((exp(a e) + exp((1 - a) e)) / (1 + exp(e))) / (a - 1) for these very doubles, by mpmath 1.4.1 at 60 digits.
RESPONSES = [
    (271.0, 1 + 2.0**-8, 271.0),
    (1e4, 1 + 2.0**-13, 1e4),
    (1.25, 1.9, 1.0031348188080529),
    (0.5, 40.0, 0.4878441798927177),
]


@pytest.mark.parametrize(("epsilon", "order", "exact"), RESPONSES)
def test_the_divergence_of_randomised_response_is_rounded_up(epsilon, order, exact):
    found = PureEvent(epsilon).rdp(order)
    assert exact <= found <= exact * (1 + 1e-11)
    assert found <= epsilon


def test_divergences_near_order_one_are_not_below_those_of_exact_arithmetic():
    for epsilon in (271.0, 300.5, 700.25, 5000.0, 1e7):
        for order in (1 + 1.5 / epsilon, 1 + 1 / 64, 1.5):
            with decimal.localcontext(decimal.Context(prec=60, Emin=decimal.MIN_EMIN)):
                e, a = Decimal(epsilon), Decimal(order)
                # Relative to exp(a e): the terms that are left out are below 1e-100.
                exact = a * e - e - (1 + (-e).exp()).ln()
                assert Decimal(PureEvent(epsilon).rdp(order)) >= exact / (a - 1)
