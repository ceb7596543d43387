"""The rules of composition, against dp_accounting, against each other, and against an adversary."""

import contextlib
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.rdp import RdpAccountant, rdp_privacy_accountant
from scipy import optimize

from skdp.accounting import (
    Budget,
    BudgetAccountant,
    GaussianEvent,
    ObjectiveEvent,
    PrivacyCost,
    binary_log_loss,
    gaussian_epsilon,
    gaussian_mu,
    pure_dp_mu,
)
from skdp.accounting._budget import renyi_budget, renyi_limit
from skdp.accounting._composition import Composition, Rest
from skdp.exceptions import BudgetError
from tests.accounting.adversary import two_step_delta
from tests.accounting.costs import approximate_cost, gaussian_cost, objective_cost, pure_cost


def admitted(accountant, cost, most=10_000):
    """How many times a cost is admitted."""
    for count in range(most):
        try:
            accountant.charge(cost)
        except BudgetError:
            return count
    return most


# Several tests exceed what warnings are about; test_late_settling looks at these.
pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.BudgetWarning")

# ---------------------------------------------------------------- the Renyi rule's order and budget


@pytest.mark.parametrize("delta", [1e-12, 1e-5, 1e-2])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 8.0])
def test_renyi_budget_converts_to_the_ceiling(epsilon, delta):
    order, divergence = renyi_budget(epsilon, delta)
    assert order > 1
    # The conversion, once more, with dp_accounting's own.
    theirs, _ = rdp_privacy_accountant.compute_epsilon([order], [divergence], delta)
    assert theirs == pytest.approx(epsilon, rel=1e-9)
    assert theirs <= epsilon * (1 + 1e-12)
    # The twin whose budget is 1 % larger is refused.
    assert rdp_privacy_accountant.compute_epsilon([order], [1.01 * divergence + 1e-4 * epsilon], delta)[0] > epsilon


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_renyi_order_admits_most_gaussian_noise(epsilon):
    order, divergence = renyi_budget(epsilon, 1e-5)
    best = divergence / order
    for other in 1 + np.geomspace(0.01, 1e5, 3000):
        budget = epsilon - math.log1p(-1 / other) + (math.log(1e-5) + math.log(other)) / (other - 1)
        assert budget / other <= best * (1 + 1e-5)


def test_known_orders_and_budgets():
    known = [(0.1, 125, 4.3e-4), (0.5, 31.8, 0.00851), (1, 17.8, 0.0306)]
    known += [(2, 10.2, 0.108), (4, 6.1, 0.373), (8, 3.87, 1.23)]
    for epsilon, order, rho in known:
        got, divergence = renyi_budget(epsilon, 1e-5)
        assert got == pytest.approx(order, rel=0.02)
        assert divergence / got == pytest.approx(rho, rel=0.01)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (0.1, 1e-9), (4.0, 1e-3)])
def test_renyi_bound_on_delta_holds_pointwise(epsilon, delta):
    # (1 - exp(eps - L))_+ <= c exp((order - 1) (L - eps)), with equality at one L: the filter's proof rests on it.
    order, divergence = renyi_budget(epsilon, delta)
    constant = math.exp(math.log(delta) + (order - 1) * (epsilon - divergence))
    loss = epsilon + np.linspace(-30, 30, 100_001) / (order - 1)
    slack = constant * np.exp((order - 1) * (loss - epsilon)) - np.maximum(-np.expm1(epsilon - loss), 0)
    assert slack.min() >= -1e-12
    assert slack.min() <= 1e-6


# ---------------------------------------------------------------- sums, against dp_accounting's composition


@pytest.mark.parametrize("k", [1, 2, 7, 30])
def test_gaussian_events_compose_as_dp_accounting_says(k):
    mu, delta = 0.15, 1e-5
    pld = privacy_loss_distribution.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-4)
    theirs = pld.self_compose(k).get_epsilon_for_delta(delta)
    accountant = BudgetAccountant(8.0, delta, composition="gdp")
    for _ in range(k):
        accountant.charge(gaussian_cost(mu))
    total = accountant.total()
    assert total.delta == delta
    # Theirs rounds losses up by 1e-4 an event; ours is exact.
    assert total.epsilon == pytest.approx(gaussian_epsilon(mu * math.sqrt(k), delta), rel=1e-9)
    assert theirs - 1e-4 * k - 1e-6 <= total.epsilon <= theirs + 1e-6
    # The twin that adds mu where squares are to be added is far off.
    assert k == 1 or gaussian_epsilon(mu * k, delta) > 1.3 * theirs


@pytest.mark.parametrize("k", [1, 2, 7, 30])
def test_renyi_sums_are_those_of_dp_accounting(k):
    mu, delta = 0.15, 1e-5
    accountant = BudgetAccountant(8.0, delta, composition="rdp")
    order, _ = renyi_budget(8.0, delta)
    theirs = RdpAccountant(orders=[order]).compose(dp_event.GaussianDpEvent(1 / mu), k).get_epsilon(delta)
    for _ in range(k):
        accountant.charge(gaussian_cost(mu))
    accountant.charge(pure_cost(0.0))
    # As long as the sum of deltas is within the ceiling, the sum of epsilons is a statement as well.
    expected = theirs if k > 1 else min(theirs, gaussian_epsilon(mu, delta))
    assert accountant.total().epsilon == pytest.approx(expected, rel=1e-6)
    assert accountant.total().epsilon >= expected * (1 - 1e-12)


@pytest.mark.parametrize("k", [1, 5, 20])
def test_renyi_total_is_above_the_exact_one(k):
    accountant = BudgetAccountant(4.0, 1e-5, composition="rdp")
    for _ in range(k):
        accountant.charge(gaussian_cost(0.15))
    assert accountant.total().epsilon >= gaussian_epsilon(0.15 * math.sqrt(k), 1e-5) * (1 - 1e-9)


def test_basic_sums_are_those_of_dp_accounting():
    from dp_accounting.pld import common

    accountant = BudgetAccountant(3.0, 1e-3, composition="basic")
    pld = privacy_loss_distribution.from_privacy_parameters(common.DifferentialPrivacyParameters(0.4, 1e-4))
    for _ in range(5):
        accountant.spend(0.4, 1e-4)
    total = accountant.total()
    assert total == Budget(2.0, 5e-4)
    assert pld.self_compose(5).get_delta_for_epsilon(total.epsilon) <= total.delta
    # With one event forgotten the sum would be no bound.
    assert pld.self_compose(5).get_delta_for_epsilon(1.6) > total.delta


@pytest.mark.parametrize("k", [3, 10])
def test_pure_events_under_gdp_are_above_their_exact_composition(k):
    from dp_accounting.pld import common

    pld = privacy_loss_distribution.from_privacy_parameters(common.DifferentialPrivacyParameters(0.1, 0.0))
    exact = pld.self_compose(k).get_epsilon_for_delta(1e-5)
    total = gaussian_epsilon(math.sqrt(k) * pure_dp_mu(0.1), 1e-5)
    accountant = BudgetAccountant(3.0, 1e-5, composition="gdp")
    for _ in range(k):
        accountant.charge(pure_cost(0.1))
    # Nothing but pure events: their sum is the better statement.
    assert accountant.total() == (pytest.approx(0.1 * k), 0.0)
    assert exact <= min(total, 0.1 * k) + 1e-3
    accountant.charge(gaussian_cost(0.01))
    assert accountant.total().epsilon >= exact
    assert accountant.total().epsilon <= total * 1.01


# ---------------------------------------------------------------- how much is admitted


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (0.3, 1e-7), (6.0, 1e-4)])
@pytest.mark.parametrize("k", [1, 4, 9, 100])
def test_gdp_admits_exactly_what_fits(epsilon, delta, k):
    whole = gaussian_mu(epsilon, delta)
    mu = whole / math.sqrt(k)
    for factor, count in ((1 - 1e-14, k), (1 + 1e-9, k - 1)):
        accountant = BudgetAccountant(epsilon, delta, composition="gdp")
        assert admitted(accountant, gaussian_cost(mu * factor, delta)) == count


def test_renyi_admits_less_gaussian_noise_and_more_objective_perturbation():
    def count(rule, cost):
        return admitted(BudgetAccountant(1.0, 1e-5, composition=rule), cost)

    assert count("rdp", gaussian_cost(0.03)) < count("gdp", gaussian_cost(0.03))
    assert count("gdp", gaussian_cost(0.03)) < 1.3 * count("rdp", gaussian_cost(0.03))
    assert count("rdp", objective_cost(0.6, 0.08)) > count("gdp", objective_cost(0.6, 0.08)) > 0


@pytest.mark.parametrize("rule", ["gdp", "rdp"])
def test_small_gaussian_events_fit_more_often_than_their_sum_says(rule):
    cost = gaussian_cost(0.05)
    assert admitted(BudgetAccountant(1.0, 1e-5, composition=rule), cost) > 2 / cost.epsilon


@pytest.mark.parametrize("rule", ["gdp", "rdp"])
def test_pure_events_fit_as_far_as_their_sum_too(rule):
    # Under the parameter alone, .9 would not fit: its mu is far beyond the ceiling's.
    accountant = BudgetAccountant(1.0, 1e-5, composition=rule)
    assert pure_dp_mu(0.9) > gaussian_mu(1.0, 1e-5)
    accountant.charge(pure_cost(0.9))
    accountant.charge(pure_cost(0.1))
    assert accountant.total() == Budget(1.0, 0.0)
    with pytest.raises(BudgetError):
        accountant.charge(pure_cost(1e-3))
    # A Gaussian event no longer fits: that branch holds for pure events alone.
    with pytest.raises(BudgetError):
        accountant.charge(gaussian_cost(1e-3))


@pytest.mark.parametrize("rule", ["gdp", "rdp"])
def test_after_a_gaussian_event_pure_ones_are_held_to_the_rule(rule):
    accountant = BudgetAccountant(1.0, 1e-5, composition=rule)
    accountant.charge(gaussian_cost(0.05))
    with pytest.raises(BudgetError):
        accountant.charge(pure_cost(0.9))
    assert admitted(accountant, pure_cost(0.01)) > 10


def test_many_small_pure_events_fit_beyond_their_sum():
    accountant = BudgetAccountant(1.0, 1e-5, composition="rdp")
    assert admitted(accountant, pure_cost(0.01)) > 300
    assert 0.99 < accountant.total().epsilon <= 1


@pytest.mark.parametrize("rule", ["gdp", "rdp"])
def test_bare_pairs_do_not_compose_under_these_rules(rule):
    accountant = BudgetAccountant(1.0, 1e-5, composition=rule)
    with pytest.raises(BudgetError, match="composition='basic'"):
        accountant.spend(0.1, 1e-6)
    assert len(accountant) == 0


# ---------------------------------------------------------------- the choice of a rule


def first_rule(accountant):
    """The rule in force, or that which has most of delta."""
    rest = accountant._store.state().rest
    return accountant.composition if accountant.composition != "mixed" else "gdp" if rest.mu > 0 else "rdp"


@pytest.mark.parametrize(
    ("first", "rule"),
    [
        (gaussian_cost(0.01), "gdp"),
        (gaussian_cost(0.2, 5e-6), "gdp"),
        (objective_cost(0.6, 0.08), "rdp"),
        (objective_cost(0.05, 0.02), "gdp"),
        (approximate_cost(0.1, 1e-6), "basic"),
        (pure_cost(0.01), "rdp"),
    ],
)
def test_auto_gives_most_of_delta_to_the_rule_of_which_the_first_event_uses_least(first, rule):
    accountant = BudgetAccountant(1.0, 1e-5)
    assert accountant.composition == "auto"
    # Second route: what each rule alone says is used.
    order, divergence = renyi_budget(1.0, 1e-5)
    parts = {
        "basic": max(first.epsilon, first.delta / 1e-5),
        "gdp": (first.mu() / gaussian_mu(1.0, 1e-5)) ** 2,
        "rdp": first.rdp(order) / divergence,
    }
    assert min(parts, key=parts.get) == rule
    accountant.charge(first)
    assert first_rule(accountant) == rule
    # Whatever comes later, the rule stays.
    for later in (gaussian_cost(0.001), pure_cost(0.001), approximate_cost(0.001, 1e-9), objective_cost(0.01, 0.001)):
        with contextlib.suppress(BudgetError):
            accountant.charge(later)
        assert first_rule(accountant) == rule


def test_a_refused_first_event_decides_nothing():
    accountant = BudgetAccountant(1.0, 1e-5)
    with pytest.raises(BudgetError):
        accountant.charge(gaussian_cost(5.0))
    assert accountant.composition == "auto"
    accountant.check(0.1, 1e-6)
    assert accountant.composition == "auto"
    accountant.spend(0.1, 1e-6)
    assert accountant.composition == "basic"


@pytest.mark.parametrize("rule", ["auto", "basic", "gdp", "rdp"])
def test_without_delta_the_rule_is_basic(rule):
    accountant = BudgetAccountant(1.0, composition=rule)
    assert accountant.composition == "basic"
    with pytest.raises(BudgetError):
        accountant.charge(gaussian_cost(0.001))


# ---------------------------------------------------------------- what fits next, what is spent


@pytest.mark.parametrize("rule", ["gdp", "rdp", "basic", "mixed", "auto"])
@pytest.mark.parametrize("spent", [0.0, 0.05, 0.2])
def test_what_remains_fits_and_no_more(rule, spent):
    accountant = BudgetAccountant(1.0, 1e-5, composition=rule)
    if spent:
        accountant.charge(gaussian_cost(spent, 1e-6))
    left = accountant.remaining()
    if accountant.composition in ("gdp", "rdp", "mixed"):
        mu = gaussian_mu(left.epsilon, left.delta)
        with pytest.raises(BudgetError):
            accountant.charge(gaussian_cost(mu * (1 + 1e-6)))
        accountant.charge(gaussian_cost(mu * (1 - 1e-9)))
    else:
        with pytest.raises(BudgetError):
            accountant.spend(left.epsilon * (1 + 1e-6), left.delta)
        accountant.spend(left.epsilon, left.delta)
    assert accountant.remaining().epsilon <= 2e-2


@pytest.mark.parametrize("rule", ["gdp", "rdp", "basic"])
@pytest.mark.sample(every=4)
def test_total_never_exceeds_the_ceiling_and_never_falls(rule):
    rng = np.random.default_rng(3)
    accountant = BudgetAccountant(2.0, 1e-5, composition=rule)
    before = 0.0
    refused = 0
    for _ in range(300):
        cost = [
            gaussian_cost(float(rng.uniform(0.001, 0.1)), 1e-6),
            pure_cost(float(rng.uniform(1e-5, 0.05))),
            objective_cost(0.05, float(rng.uniform(0.001, 0.05)), 1e-7),
        ][rng.integers(3)]
        try:
            accountant.charge(cost)
        except BudgetError:
            refused += 1
        total = accountant.total()
        assert before <= total.epsilon <= 2.0 + 1e-9
        assert total.delta <= 1e-5
        before = total.epsilon
    assert refused > 10
    assert before > 1.5


def test_total_under_gdp_takes_the_better_of_two_statements():
    # An event whose GDP parameter is far above what its pair says.
    accountant = BudgetAccountant(1.0, 1e-5, composition="gdp")
    cost = PrivacyCost(0.01, 1e-6, (ObjectiveEvent(binary_log_loss(0.05), 0.1),))
    assert gaussian_epsilon(cost.mu(), 1e-5) > 0.1
    accountant.charge(cost)
    assert accountant.total() == Budget(0.01, 1e-5)


@pytest.mark.parametrize("rule", ["gdp", "rdp", "basic", "mixed", "auto"])
@pytest.mark.parametrize("k", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("spent", [0.0, 0.1])
def test_what_remains_for_k_events_fits_k_times_and_no_more(rule, k, spent):
    accountant = BudgetAccountant(1.0, 1e-5, composition=rule)
    if spent:
        accountant.charge(gaussian_cost(spent, 1e-6))
    left = accountant.remaining(k)
    if accountant.composition in ("gdp", "rdp", "mixed"):
        # As an estimator would: noise is calibrated to the pair.
        cost = gaussian_cost(gaussian_mu(*left), left.delta)
        larger = gaussian_cost(gaussian_mu(*left) * (1 + 1e-6), left.delta)
    else:
        cost, larger = (approximate_cost(left.epsilon * f, left.delta) for f in (1, 1 + 1e-9))
    for _ in range(k - 1):
        accountant.charge(cost)
    with pytest.raises(BudgetError):
        accountant.charge(larger)
    accountant.charge(cost)
    assert accountant.remaining().epsilon < 2e-2


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "2", None])
def test_remaining_wants_a_positive_integer(bad):
    with pytest.raises((TypeError, ValueError), match="k must be"):
        BudgetAccountant(1.0).remaining(bad)


def test_remaining_takes_numpy_integers():
    assert BudgetAccountant(1.0).remaining(np.int64(4)) == Budget(0.25, 0.0)


@pytest.mark.parametrize("rule", ["gdp", "rdp", "basic", "auto"])
def test_admission_of_many_at_once_is_that_of_one_after_another(rule):
    rng = np.random.default_rng(11)
    answers = set()
    for _ in range(60):
        costs = [
            (
                [gaussian_cost(0.05, 1e-7), pure_cost(0.02), approximate_cost(0.01, 1e-8), objective_cost(0.05, 0.02)][
                    rng.integers(4)
                ],
                int(rng.integers(1, 12)),
            )
            for _ in range(rng.integers(1, 4))
        ]
        after = BudgetAccountant(1.0, 1e-5, composition=rule)._after(costs)
        one_by_one = BudgetAccountant(1.0, 1e-5, composition=rule)
        try:
            for cost, count in costs:
                for _ in range(count):
                    one_by_one.charge(cost)
            refused = False
        except BudgetError:
            refused = True
        assert (after is None) is refused
        assert refused or after == one_by_one.total()
        answers.add(refused)
    assert answers == {True, False}


# ---------------------------------------------------------------- adversaries


@pytest.mark.parametrize(
    ("epsilon", "first", "attained"), [(1.0, 0.2, 1.71e-5), (2.0, 0.3, 1.90e-5)], ids=["epsilon 1", "epsilon 2"]
)
@pytest.mark.sample(every=2)
def test_natural_filter_is_broken_by_an_adversary_and_ours_is_not(epsilon, first, attained):
    # The natural filter goes on while the exact composition of what happened is within (epsilon, 1e-5). Each of two
    # continuations is, with nothing to spare; but the adversary chooses after having seen the first output.
    delta = 1e-5
    second = math.sqrt(gaussian_mu(epsilon, delta) ** 2 - first**2)
    response = optimize.brentq(lambda e: two_step_delta(epsilon, first, [("pure", e)]) - delta, 1e-3, epsilon)
    if epsilon == 1.0:
        assert second == pytest.approx(0.1785, abs=1e-4)
        assert response == pytest.approx(0.3026, abs=1e-4)
    branches = [("gaussian", second), ("pure", response)]
    for branch in branches:
        assert two_step_delta(epsilon, first, [branch]) == pytest.approx(delta, rel=1e-4)
    assert two_step_delta(epsilon, first, branches) == pytest.approx(attained, rel=0.01)
    # Ours never admits both continuations.
    costs = [gaussian_cost(second * (1 - 1e-9)), pure_cost(response)]
    for rule in ("auto", "basic", "gdp", "rdp", "mixed"):
        fits = []
        for cost in costs:
            accountant = BudgetAccountant(epsilon, delta, composition=rule)
            try:
                accountant.charge(gaussian_cost(first, 5e-6 if rule == "basic" else delta))
                accountant.charge(cost)
                fits.append(True)
            except BudgetError:
                fits.append(False)
        assert not all(fits), rule
        if rule == "gdp":
            assert fits == [True, False]


@pytest.mark.parametrize("rule", ["gdp", "rdp"])
@pytest.mark.parametrize(("epsilon", "first"), [(1.0, 0.05), (1.0, 0.2), (3.0, 0.5)])
@pytest.mark.sample(every=3)
def test_no_adversary_exceeds_delta_with_what_our_filter_admits(rule, epsilon, first):
    # The largest Gaussian and the largest randomised response that are admitted after the first step.
    delta = 1e-5
    order, divergence = renyi_budget(epsilon, delta)

    def left(cost):
        if rule == "gdp":
            return gaussian_mu(epsilon, delta) ** 2 - first**2 - cost.mu() ** 2
        return divergence - GaussianEvent(first).rdp(order) - cost.rdp(order)

    gaussian = optimize.brentq(lambda m: left(gaussian_cost(m, delta)), 1e-9, 10)
    pure = optimize.brentq(lambda e: left(pure_cost(e)), 1e-9, 10)
    for cost in (gaussian_cost(gaussian * (1 - 1e-6)), pure_cost(pure * (1 - 1e-6))):
        accountant = BudgetAccountant(epsilon, delta, composition=rule)
        accountant.charge(gaussian_cost(first))
        accountant.charge(cost)
    branches = [("gaussian", gaussian), ("pure", pure)]
    found = two_step_delta(epsilon, first, branches)
    assert found <= delta * (1 + 1e-4)
    # Teeth: the same adversary wins if the pure event may be as large as for a fixed sequence.
    fixed = optimize.brentq(lambda e: two_step_delta(epsilon, first, [("pure", e)]) - delta, 1e-3, epsilon)
    assert fixed > pure
    if rule == "gdp":
        assert two_step_delta(epsilon, first, [branches[0], ("pure", fixed)]) > 1.05 * delta


def test_two_rules_joined_by_or_would_be_broken():
    # Why "auto" decides once: switching to whichever rule still has room gives away more than delta.
    epsilon, delta, first = 1.0, 1e-5, 0.1
    second = math.sqrt(gaussian_mu(epsilon, delta) ** 2 - first**2)
    response = optimize.brentq(lambda e: two_step_delta(epsilon, first, [("pure", e)]) - delta, 1e-3, epsilon)
    assert two_step_delta(epsilon, first, [("gaussian", second), ("pure", response)]) > 1.9 * delta


@pytest.mark.parametrize(("epsilon", "first"), [(1.0, 0.02), (1.0, 0.1), (3.0, 0.1), (3.0, 0.3)])
@pytest.mark.parametrize("first_rule", ["gdp", "rdp"])
@pytest.mark.sample(every=3)
def test_rules_side_by_side_need_their_shares_of_delta(epsilon, first, first_rule):
    # After the first output, the analyst takes what is best for it: the largest Gaussian or pure event.
    delta = 1e-5

    def branches(rule):
        state = rule.settle(rule.start(), "mixed", first_rule)
        state = rule.admit(state, gaussian_cost(first, delta))
        gaussian = gaussian_mu(*rule.remaining(state))
        pure = rule.remaining_pure(state)
        for cost in (gaussian_cost(gaussian * (1 - 1e-6), delta), pure_cost(pure)):
            rule.admit(state, cost)
        return [("gaussian", gaussian), ("pure", pure)]

    found = branches(Composition.of(epsilon, delta, "auto"))
    assert two_step_delta(epsilon, first, found) <= delta * (1 + 1e-4)

    class Greedy(Composition):
        """The broken twin: each rule gets the whole delta."""

        def settle(self, state, rule, first="gdp"):
            settled = super().settle(state, rule, first)
            orders = settled.rest.orders
            limits = tuple(renyi_limit(order, self.ceiling.epsilon, delta) for order in orders)
            mu = gaussian_mu(*self.ceiling) if settled.rest.mu > 0 else 0.0
            return replace(settled, rest=Rest(settled.rest.pure, mu, orders, limits))

    greedy = branches(Greedy(**vars(Composition.of(epsilon, delta, "auto"))))
    if first_rule == "gdp":
        assert two_step_delta(epsilon, first, greedy) > 1.02 * delta


@pytest.mark.parametrize("share", [0.02, 0.1, 1 / 3, 0.5])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (3.0, 1e-6), (10.0, 1e-6)])
def test_a_pure_charge_after_one_with_delta_costs_little_more_than_its_epsilon(share, epsilon, delta):
    # In either order, nearly what plain addition would leave.
    gaussian = gaussian_cost(gaussian_mu(share * epsilon, delta), delta)
    later = BudgetAccountant(epsilon, delta)
    later.charge(gaussian)
    assert first_rule(later) == "gdp"
    left = later._remaining_pure()
    assert 0.7 * (1 - share) * epsilon <= left <= (1 - share) * epsilon
    later.charge(pure_cost(left))
    assert later.total().epsilon <= epsilon
    # "gdp" alone leaves less than half of it.
    alone = BudgetAccountant(epsilon, delta, composition="gdp")
    alone.charge(gaussian)
    assert alone._remaining_pure() < 0.6 * left
    # The price: Gaussian fits lose a hundredth.
    few, many = (BudgetAccountant(epsilon, delta, composition=rule).remaining() for rule in ("mixed", "gdp"))
    assert gaussian_mu(*few) >= 0.985 * gaussian_mu(*many)


def test_a_fit_that_needs_the_whole_budget_gets_it():
    accountant = BudgetAccountant(1.0, 1e-5)
    accountant.charge(gaussian_cost(gaussian_mu(1.0, 1e-5), 1e-5))
    assert accountant.composition in ("basic", "gdp")
    with pytest.raises(BudgetError):
        BudgetAccountant(1.0, 1e-5, composition="mixed").charge(gaussian_cost(gaussian_mu(1.0, 1e-5), 1e-5))


def test_sums_are_exact():
    accountant = BudgetAccountant(1.0)
    for _ in range(10):
        accountant.spend(0.1)
    assert accountant.total() == Budget(1.0, 0.0)
    assert accountant.remaining() == Budget(0.0, 0.0)
    # Floating point would have refused the tenth, or admitted an eleventh of nearly nothing.
    assert math.fsum([0.1] * 3) != 0.3
    assert Fraction("0.1") * 10 == 1
    with pytest.raises(BudgetError):
        accountant.spend(2.0**-20)


def test_what_costs_nothing_leaves_the_rule_open():
    accountant = BudgetAccountant(1.0, 1e-5)
    accountant.charge(PrivacyCost(0.0, 0.0, ()))
    assert accountant.composition == "auto"
    accountant.charge(gaussian_cost(0.1))
    assert first_rule(accountant) == "gdp"
    assert len(accountant) == 2


@pytest.mark.parametrize("rule", ["gdp", "rdp", "basic", "mixed"])
def test_the_total_over_parts_is_never_above_the_ceiling(rule):
    # One part is pure and the other is not: bounds taken one by one say more than either part was charged.
    accountant = BudgetAccountant(1.0, 1e-5, composition=rule)
    with accountant.parallel(by=["a", "b"], parts=["a", "b"]) as parts:
        parts["a"].accountant.charge(pure_cost(1.0))
        while True:
            try:
                parts["b"].accountant.charge(gaussian_cost(0.05, 1e-6))
            except BudgetError:
                break
        assert accountant.total().epsilon <= 1.0
    assert accountant.total().epsilon <= 1.0
    assert accountant.total().delta <= 1e-5
