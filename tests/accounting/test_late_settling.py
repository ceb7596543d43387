"""The rule "auto" while it is open, what it settles on, and what a budget says of charges that use much of it."""

import contextlib
import functools
import math
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, stats

from skdp import BudgetAccountant, ObjPertLogReg, allocate
from skdp.accounting import (
    BoundedRangeEvent,
    Budget,
    GaussianEvent,
    PrivacyCost,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    renyi_budget,
)
from skdp.accounting._composition import Composition, Rest
from skdp.exceptions import BudgetError, BudgetWarning
from tests.accounting.adversary import conditional_delta, two_step_delta
from tests.accounting.costs import approximate_cost, gaussian_cost, objective_cost, pure_cost

DELTA = 1e-6
SMALL = PrivacyCost(0.05, 1e-9, (GaussianEvent(gaussian_mu(0.05, 1e-9)),))


def most(before, cost, rule="auto", epsilon=1.0, delta=DELTA):
    """How many equal charges are admitted after some others."""
    accountant = BudgetAccountant(epsilon, delta, composition=rule)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BudgetWarning)
        for one in before:
            accountant.charge(one)
    low, high = 0, 2000
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if accountant._after([(cost, middle)]) is not None else (low, middle - 1)
    return low


@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 436), (0.2, 350)])
def test_a_pure_charge_at_the_start_leaves_what_its_sum_leaves(epsilon, count):
    assert most([pure_cost(epsilon)], SMALL) == count >= most([pure_cost(epsilon)], SMALL, "rdp")
    # As many as fit into a budget that is smaller by the epsilon, and has the same delta.
    assert most([], SMALL, "mixed", epsilon=1 - epsilon) == count >= 0.98 * most([], SMALL, "gdp", epsilon=1 - epsilon)
    # The sum of epsilons would have admitted 20 at most.
    assert count > 20 * (1 - epsilon)


def test_the_rule_is_open_until_an_event_does_not_suit_the_sum():
    accountant = BudgetAccountant(1.0, DELTA)
    for epsilon in (0.1, 0.2, 0.1):
        accountant.charge(pure_cost(epsilon))
        assert accountant.composition == "auto"
    assert accountant.total() == Budget(0.4, 0.0)
    assert accountant.remaining() == Budget(0.6, DELTA)
    with pytest.raises(BudgetError):
        accountant.charge(gaussian_cost(gaussian_mu(0.6, DELTA) * (1 + 1e-6), DELTA))
    assert accountant.composition == "auto"
    accountant.charge(gaussian_cost(0.01, DELTA))
    assert accountant.composition == "mixed"
    # A higher order proves slightly less than the Gaussian parameter.
    assert 0.99 < accountant.total().epsilon / (0.4 + gaussian_epsilon(0.01, DELTA)) <= 1
    assert accountant.total().delta == DELTA
    left = accountant.remaining()
    with pytest.raises(BudgetError):
        accountant.charge(gaussian_cost(gaussian_mu(*left) * (1 + 1e-6), DELTA))
    accountant.charge(gaussian_cost(gaussian_mu(*left), DELTA))
    assert accountant.total().epsilon == pytest.approx(1.0, abs=0.01)
    assert accountant.total().epsilon <= 1.0
    # No pure event fits by the sum any more, since there are others.
    with pytest.raises(BudgetError):
        accountant.charge(pure_cost(0.01))


@pytest.mark.parametrize(
    ("cost", "rule"),
    [(SMALL, "gdp"), (objective_cost(0.6, 0.04, DELTA), "rdp"), (approximate_cost(0.1, 1e-7), "basic")],
)
@pytest.mark.filterwarnings("ignore::skdp.exceptions.BudgetWarning")
def test_the_first_other_event_settles_the_rule_by_its_smallest_part_of_the_rest(cost, rule):
    accountant = BudgetAccountant(1.0, DELTA)
    accountant.charge(pure_cost(0.1))
    accountant.charge(cost)
    first = accountant.composition
    if first == "mixed":
        first = "gdp" if accountant._store.state().rest.mu > 0 else "rdp"
    assert first == rule
    # Second route: what each rule says of a budget that is smaller by a tenth.
    order, divergence = renyi_budget(0.9, DELTA)
    parts = {
        "basic": max(cost.epsilon / 0.9, cost.delta / DELTA),
        "gdp": (cost.mu() / gaussian_mu(0.9, DELTA)) ** 2,
        "rdp": cost.rdp(order) / divergence,
    }
    assert min(parts, key=parts.get) == rule


def test_small_pure_events_settle_on_divergences_with_what_the_sum_has_left():
    cost = PrivacyCost(0.0138, 0.0, (BoundedRangeEvent(0.0138),))
    assert most([], cost) >= 1000
    accountant = BudgetAccountant(1.0, DELTA)
    accountant.charge(pure_cost(0.1))
    accountant.charge(cost)
    assert accountant.composition == "mixed"
    # By their sum, 65 would fit.
    assert most([pure_cost(0.1)], cost) > 800


def test_what_was_pure_on_parts_is_taken_off_at_its_largest():
    accountant = BudgetAccountant(1.0, DELTA)
    accountant.charge(pure_cost(0.1))
    with accountant.parallel(by=["a", "b"], parts=["a", "b"]) as parts:
        parts["a"].accountant.charge(pure_cost(0.3))
        parts["b"].accountant.charge(pure_cost(0.1))
        assert parts["b"].accountant.remaining() == Budget(0.8, DELTA)
        parts["b"].accountant.charge(gaussian_cost(0.01, DELTA))
        # Which part settles the rule must not matter to a record of any other.
        for name in ("a", "b"):
            left = parts[name].accountant.remaining()
            assert left.epsilon <= 0.6
            with pytest.raises(BudgetError):
                parts[name].accountant.charge(gaussian_cost(gaussian_mu(*left) * (1 + 1e-6), DELTA))
        # Records of the first part have seen pure events only, and may go on by their sum.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BudgetWarning)
            parts["a"].accountant.charge(pure_cost(0.6))
    assert accountant.total().epsilon <= 1.0


def test_a_ledger_keeps_what_the_rule_was_given(tmp_path):
    path = tmp_path / "budget.db"
    accountant = BudgetAccountant(1.0, DELTA, ledger=path)
    accountant.charge(pure_cost(0.1))
    accountant.charge(SMALL)
    again = BudgetAccountant(1.0, DELTA, ledger=path)
    assert again._store.state() == accountant._store.state()
    assert again._store.state().rest.pure == Fraction(1, 10)
    assert again.total() == accountant.total()
    assert again._after([(SMALL, 435)]) is not None
    assert again._after([(SMALL, 436)]) is None


def test_an_allocation_takes_what_pure_charges_left():
    accountant = BudgetAccountant(1.0, DELTA)
    accountant.charge(pure_cost(0.25))
    model = ObjPertLogReg(data_norm=1.0, classes=[0, 1])
    allocate(model, epsilon=0.75, delta=DELTA, accountant=accountant)
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (50, 2))
    model.fit(X, X[:, 0] > 0)
    assert accountant.total().epsilon == pytest.approx(1.0, abs=1e-3)
    assert accountant.total().epsilon <= 1.0


# ---------------------------------------------------------------- adversaries


@pytest.mark.parametrize(("epsilon", "first"), [(1.0, 0.1), (1.0, 0.5), (3.0, 1.0)])
def test_no_adversary_exceeds_delta_by_choosing_after_a_pure_event(epsilon, first):
    # Randomised response, and then whatever of the admitted events gives away most, for each answer by itself.
    delta = 1e-5
    left = epsilon - first
    order, divergence = renyi_budget(left, delta)
    response = optimize.brentq(lambda e: divergence - pure_cost(e).rdp(order), 1e-9, 10)
    branches = [("gaussian", gaussian_mu(left, delta)), ("pure", response), ("pure", left)]
    for branch in branches:
        accountant = BudgetAccountant(epsilon, delta)
        accountant.charge(pure_cost(first))
        kind, parameter = branch
        if branch == branches[1]:
            accountant._settle("rdp")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BudgetWarning)
            accountant.charge(
                gaussian_cost(parameter, delta) if kind == "gaussian" else pure_cost(parameter * (1 - 1e-9))
            )
    heads = 1 / (1 + math.exp(-first))

    def attained(options):
        return sum(
            weight * max(float(conditional_delta(epsilon, np.array(loss), branch)) for branch in options)
            for weight, loss in ((heads, first), (1 - heads, -first))
        )

    assert attained(branches) <= delta * (1 + 1e-9)
    assert attained(branches) >= 0.5 * delta
    # The broken twin does not take the first event off the ceiling.
    assert attained([("gaussian", gaussian_mu(epsilon, delta))]) > 2 * delta


def cells(mu, number=6):
    """Probabilities and losses of a Gaussian mechanism of which only a cell is seen."""
    edges = np.concatenate([[-np.inf], np.linspace(-2.5, 2.5 + mu, number - 1), [np.inf]])
    first, second = np.diff(stats.norm.cdf(edges - mu)), np.diff(stats.norm.cdf(edges))
    return [(float(p), math.log(p / q)) for p, q in zip(first, second, strict=True)]


def response(epsilon, weight=1.0):
    heads = 1 / (1 + math.exp(-epsilon))
    return [(weight * heads, epsilon), (weight * (1 - heads), -epsilon)]


def best_attack(rule, menu, steps):
    """The largest delta at the ceiling's epsilon, over all strategies that choose by outputs, and the order and end."""
    ceiling = rule.ceiling

    @functools.cache
    def continuations(state):
        found = []
        for cost, outcomes in menu:
            with contextlib.suppress(BudgetError):
                found.append((rule.admit(state, cost), outcomes))
        return found

    @functools.cache
    def value(state, loss, left):
        best = 1.0 if loss == math.inf else max(0.0, -math.expm1(ceiling.epsilon - loss))
        if left == 0 or loss == math.inf:
            return best
        for after, outcomes in continuations(state):
            best = max(best, sum(p * value(after, round(loss + more, 9), left - 1) for p, more in outcomes))
        return best

    return value(rule.start(), 0.0, steps)


def test_no_strategy_exceeds_delta():
    # All adaptive strategies of three steps, by dynamic programming over states and losses.
    delta = 1e-3
    menu = [(pure_cost(e), response(e)) for e in (0.2, 0.5)]
    menu += [(gaussian_cost(mu, delta), cells(mu)) for mu in (0.2, 0.35)]
    menu.append((approximate_cost(0.2, delta / 3), [(delta / 3, math.inf), *response(0.2, 1 - delta / 3)]))
    rule = Composition.of(1.0, delta, "auto")
    attained = best_attack(rule, menu, 3)
    assert 0.9 * delta <= attained <= delta

    class Forgetful(Composition):
        """The broken twin: it settles late, and does not take the sum off epsilon."""

        def settle(self, state, rule, first="gdp"):
            settled = super().settle(state, rule, first)
            if settled.rest is None:
                return settled
            forgotten = super().settle(self.start(), rule, first).rest or Rest(
                0, self.mu, self.orders, self.divergences
            )
            return replace(settled, rest=forgotten)

    assert best_attack(Forgetful(**vars(rule)), menu, 2) > 5 * delta


def test_a_sum_of_pure_events_cannot_be_set_apart_after_a_gaussian_event():
    # Why the sum ends when the rule is settled on. Let later pure events be taken off epsilon, too. After a Gaussian
    # event, an analyst would choose between more Gaussian noise, and a randomised response that was paid for by less.
    epsilon, delta, first = 1.0, 1e-5, 0.2
    whole = gaussian_mu(epsilon, delta)
    # With so much less of epsilon, the first event alone is just within the rule.
    response = epsilon - gaussian_epsilon(first, delta)
    branches = [("gaussian", math.sqrt(whole**2 - first**2)), ("pure", response)]
    assert float(gaussian_delta(epsilon - response, first)) <= delta
    assert two_step_delta(epsilon, first, branches[:1]) == pytest.approx(delta, rel=1e-4)
    assert two_step_delta(epsilon, first, branches[1:]) <= delta
    assert two_step_delta(epsilon, first, branches) == pytest.approx(1.32e-5, rel=0.02)
    accountant = BudgetAccountant(epsilon, delta)
    accountant.charge(gaussian_cost(first, delta))
    with pytest.raises(BudgetError):
        accountant.charge(pure_cost(response))


@pytest.mark.parametrize("seed", [0, 4])
def test_whatever_the_order_of_charges_each_rule_keeps_its_own_limit(seed):
    # Second route: sums of doubles, over the events since the rule was settled on.
    rng = np.random.default_rng(seed)
    accountant = BudgetAccountant(2.0, 1e-5)
    kinds = [lambda: pure_cost(float(rng.uniform(1e-5, 0.3))), lambda: gaussian_cost(float(rng.uniform(0.001, 0.1)))]
    admitted = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BudgetWarning)
        for _ in range(40):
            cost = kinds[rng.choice(2, p=[0.6, 0.4])]()
            rule = accountant.composition
            try:
                accountant.charge(cost)
            except BudgetError:
                continue
            admitted.append((rule, cost))
            total = accountant.total()
            assert total.epsilon <= 2.0
            assert total.delta <= 1e-5
    rule = accountant.composition
    assert rule == "mixed"
    # The event that settled the rule belongs to it.
    start = sum(before == "auto" for before, _ in admitted) - 1
    pure = math.fsum(cost.epsilon for _, cost in admitted[:start])
    assert all(cost.pure for _, cost in admitted[:start])
    rest = [cost for _, cost in admitted[start:]]
    order, _ = renyi_budget(2.0 - pure, 1e-5)
    within = [math.fsum(cost.mu() ** 2 for cost in rest) <= gaussian_mu(2.0 - pure, 0.9e-5) ** 2 * (1 + 1e-9)]
    for factor in (2, 5, 15):
        higher = 1 + factor * (order - 1)
        # Second route: the conversion is solved for the epsilon of the sum, with a thirtieth of delta.
        spent = math.fsum(cost.rdp(higher) for cost in rest)
        offset = math.log1p(-1 / higher) - (math.log(1e-5 / 30) + math.log(higher)) / (higher - 1)
        within.append(spent + offset <= (2.0 - pure) * (1 + 1e-9))
    assert any(within)
    assert len(rest) > 5


# ---------------------------------------------------------------- totals and warnings


@pytest.mark.parametrize("rule", ["auto", "rdp", "gdp"])
def test_totals_of_pure_events_are_within_the_ceiling(rule):
    # 48 charges of a tenth: 4.8 by their sum.
    accountant = BudgetAccountant(3.0, 1e-5, composition=rule)
    admitted = 0
    for _ in range(48):
        try:
            accountant.charge(pure_cost(0.1))
            admitted += 1
        except BudgetError:
            break
        total = accountant.total()
        assert total <= Budget(3.0, 1e-5)
        assert total.delta == 0 or total.epsilon < 0.1 * admitted
    assert admitted > 30
    text = accountant.to_text(last=1)
    assert f"epsilon={0.1 * admitted:.6g} without delta" in text


def test_a_bare_pair_that_settles_an_open_budget_is_warned_of():
    accountant = BudgetAccountant(1.0, 1e-5)
    # Nothing is charged if the warning is an error.
    with pytest.raises(BudgetWarning, match="'basic' composition"):
        accountant.spend(0.1, 1e-7)
    assert len(accountant) == 0
    with pytest.warns(BudgetWarning, match="'basic' composition.*The charge is made, unless"):
        accountant.spend(0.1, 1e-7)
    assert len(accountant) == 1
    # Once is enough, and who has chosen the rule is not warned.
    accountant.spend(0.1, 1e-7)
    BudgetAccountant(1.0, 1e-5, composition="basic").spend(0.1, 1e-7)
    # Where little is left, it does not matter how it is counted.
    BudgetAccountant(1.0, 1e-5).spend(1.0, 1e-5)


def test_a_charge_that_uses_much_more_than_its_share_is_warned_of():
    accountant = BudgetAccountant(1.0, DELTA, composition="gdp")
    accountant.charge(SMALL)
    with pytest.warns(BudgetWarning, match=r"uses 28% of this budget under 'gdp'.*Another composition"):
        accountant.charge(pure_cost(0.1))
    accountant = BudgetAccountant(1.0, 1e-5)
    accountant.charge(PrivacyCost(0.5, 1e-6, (GaussianEvent(gaussian_mu(0.5, 1e-6)),)))
    with pytest.warns(BudgetWarning, match=r"under 'mixed'.*uses no delta, even if delta was passed.*releases first"):
        accountant.charge(pure_cost(0.1))
    # Several rules side by side need no warning, in either order.
    for order in ([pure_cost(0.1), SMALL], [SMALL, pure_cost(0.1)]):
        accountant = BudgetAccountant(1.0, DELTA)
        for cost in order:
            accountant.charge(cost)
        assert len(accountant) == 2
