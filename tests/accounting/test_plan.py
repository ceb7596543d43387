"""Budgets for a declared list: what fits, what is admitted, what is refused, and why choices after the fact are not."""

import math
from collections import Counter

import pytest

from skdp import DPPCA, BudgetAccountant, DPStandardScaler, ObjPertLogReg, OutputPertLogReg, make_private_pipeline
from skdp.accounting import (
    BoundedRangeEvent,
    Budget,
    GaussianEvent,
    PrivacyCost,
    PureEvent,
    SampledGaussianEvent,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
)
from skdp.accounting._composition import as_costs
from skdp.exceptions import BudgetError
from tests.accounting.adversary import two_step_delta
from tests.accounting.costs import approximate_cost, gaussian_cost, objective_cost, pure_cost

DELTA = 1e-5


def test_each_entry_is_admitted_once_in_any_order():
    entries = [gaussian_cost(0.1), pure_cost(0.1), gaussian_cost(0.1), objective_cost(0.1, 0.1)]
    accountant = BudgetAccountant(1.0, DELTA, plan=entries)
    assert accountant.composition == "plan"
    assert Counter(accountant.planned) == Counter(entries)
    for number in (3, 0, 1, 2):
        accountant.charge(entries[number])
        with pytest.raises(BudgetError, match="carried out already"):
            accountant.charge(entries[3])
    assert accountant.planned == ()
    assert len(accountant) == 4


def test_a_subset_may_be_carried_out():
    accountant = BudgetAccountant(1.0, DELTA, plan=[gaussian_cost(0.1), pure_cost(0.1)])
    accountant.charge(pure_cost(0.1))
    assert accountant.planned == (gaussian_cost(0.1),)


@pytest.mark.parametrize(
    "other", [gaussian_cost(0.1 * (1 + 1e-9)), gaussian_cost(0.05), pure_cost(1e-3), approximate_cost(0.1, 1e-6)]
)
def test_anything_outside_the_plan_is_refused(other):
    accountant = BudgetAccountant(1.0, DELTA, plan=[gaussian_cost(0.1)])
    with pytest.raises(BudgetError, match="is not in it"):
        accountant.charge(other)
    with pytest.raises(BudgetError):
        accountant.spend(1e-5)
    with pytest.raises(BudgetError):
        accountant.check(0.0, 1e-9)
    assert len(accountant) == 0
    assert accountant.total() == accountant.remaining() == Budget(0.0, 0.0)


def test_a_plan_that_is_too_dear_is_refused_before_anything_is_charged():
    mu = gaussian_mu(1.0, DELTA)
    BudgetAccountant(1.0, DELTA, plan=[gaussian_cost(mu / 2 * (1 - 1e-9))] * 4)
    with pytest.raises(BudgetError, match="the plan costs"):
        BudgetAccountant(1.0, DELTA, plan=[gaussian_cost(mu / 2 * (1 + 1e-6))] * 4)


def test_the_total_is_the_whole_lists_as_soon_as_one_entry_was_charged():
    accountant = BudgetAccountant(1.0, DELTA, plan=[gaussian_cost(0.1)] * 4)
    accountant.charge(gaussian_cost(0.1))
    total = accountant.total()
    assert total.delta == DELTA
    assert total.epsilon == pytest.approx(gaussian_epsilon(0.2, DELTA), rel=1e-3)
    assert total.epsilon >= gaussian_epsilon(0.2, DELTA) * (1 - 1e-9)
    accountant.charge(gaussian_cost(0.1))
    assert accountant.total() == total


def test_pure_plans_are_sums_of_decimal_numbers():
    accountant = BudgetAccountant(1.0, plan=[pure_cost(0.1)] * 10)
    for _ in range(10):
        accountant.charge(pure_cost(0.1))
    assert accountant.total() == Budget(1.0, 0.0)
    with pytest.raises(BudgetError, match="the plan costs"):
        BudgetAccountant(1.0, plan=[pure_cost(0.1)] * 11)
    with pytest.raises(BudgetError, match="the plan costs"):
        BudgetAccountant(1.0, plan=[gaussian_cost(0.01)])


def test_exact_composition_admits_what_no_filter_does():
    # Gaussian noise together with randomised responses, and bare pairs among them.
    entries = [gaussian_cost(0.15)] * 2 + [pure_cost(0.08)] * 3 + [approximate_cost(0.05, 1e-7)]
    BudgetAccountant(1.0, DELTA, plan=entries)
    counted = [(entry, count) for entry, count in Counter(entries).items()]
    for rule in ("basic", "gdp", "rdp"):
        assert BudgetAccountant(1.0, DELTA, composition=rule)._after(counted) is None


def test_the_plans_total_is_the_adaptive_worst_case_of_its_entries():
    # Second route: Gaussian then randomised response, in either order, by integration over the first loss.
    mu, response = 0.2, 0.3
    plan = BudgetAccountant(2.0, DELTA, plan=[gaussian_cost(mu), pure_cost(response)])
    plan.charge(pure_cost(response))
    total = plan.total()
    heads = 1 / (1 + math.exp(-response))

    def exact(epsilon):
        up, down = gaussian_delta(epsilon - response, mu), gaussian_delta(epsilon + response, mu)
        return float(heads * up + (1 - heads) * down)

    assert exact(total.epsilon) <= DELTA
    assert exact(total.epsilon * 0.999) > DELTA


def test_plan_or_filter_would_be_a_hole():
    # A plan of Gaussian .1 and a randomised response; as an alternative after the first output, the Gaussian that a
    # filter would admit: each list is exactly (1, 1e-5). Choosing by that output gives away 1.97 times delta.
    first, response, gaussian = 0.1, 0.6702, 0.2487
    for branch in (("pure", response), ("gaussian", gaussian)):
        assert two_step_delta(1.0, first, [branch]) == pytest.approx(DELTA, rel=0.01)
    both = two_step_delta(1.0, first, [("pure", response), ("gaussian", gaussian)])
    assert both == pytest.approx(1.97e-5, rel=0.01)
    accountant = BudgetAccountant(1.0, DELTA, plan=[gaussian_cost(first), pure_cost(0.6700)])
    accountant.charge(gaussian_cost(first))
    with pytest.raises(BudgetError):
        accountant.charge(gaussian_cost(0.2480))


def test_estimators_fit_by_plan():
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 3))
    y = (X[:, 0] > 0).astype(int)
    common = {"delta": DELTA, "data_norm": 2.0, "classes": [0, 1]}
    models = [ObjPertLogReg(epsilon=0.7, **common), OutputPertLogReg(epsilon=0.3, **common)]
    accountant = BudgetAccountant(1.0, DELTA, plan=[model.privacy_plan(n_features=3) for model in models])
    # Their sum would take twice the delta.
    assert accountant.epsilon == 1.0
    for model in reversed(models):
        model.set_params(accountant=accountant).fit(X, y)
    with pytest.raises(BudgetError):
        models[0].fit(X, y)
    with pytest.raises(BudgetError):
        models[1].set_params(epsilon=0.2).fit(X, y)
    assert [record.estimator for record in accountant.records] == ["OutputPertLogReg", "ObjPertLogReg"]


def test_a_plan_without_privacy_fits_no_ceiling_but_inf():
    cost = PrivacyCost(math.inf, 0.0, (PureEvent(math.inf),))
    with pytest.raises(BudgetError):
        BudgetAccountant(10.0, DELTA, plan=[cost])
    accountant = BudgetAccountant(math.inf, plan=[cost])
    accountant.charge(cost)
    assert accountant.total().epsilon == math.inf


@pytest.mark.parametrize("bad", [[], [0.5], [(0.5, 0.0)], ["gaussian"]])
def test_what_is_no_plan(bad):
    with pytest.raises((TypeError, ValueError), match="plan"):
        BudgetAccountant(1.0, DELTA, plan=bad)


def test_a_single_entry_is_no_plan():
    # The steps of a pipeline are not what the pipeline charges.
    pipeline = make_private_pipeline(DPStandardScaler(bounds=(-1, 1)), DPPCA(2, data_norm=2.0), epsilon=0.5)
    for entry in (pipeline, pipeline.steps[0][1], GaussianEvent(0.1), 3):
        with pytest.raises(TypeError, match="plan must be a list"):
            BudgetAccountant(5.0, DELTA, plan=entry)


def test_a_plan_has_no_other_composition_and_no_parts():
    with pytest.raises(ValueError, match="composition"):
        BudgetAccountant(1.0, DELTA, plan=[pure_cost(0.1)], composition="gdp")
    with pytest.raises(ValueError, match="plan"):
        BudgetAccountant(1.0, DELTA, plan=[pure_cost(0.1)]).parallel(["a"], ["a"])


def test_costs_are_found_in_guarantees():
    model = OutputPertLogReg(data_norm=1.0, classes=[0, 1], delta=DELTA)
    guarantee = model.privacy_plan(n_features=2)
    assert as_costs([guarantee, guarantee.cost]) == (guarantee.cost,) * 2
    assert isinstance(guarantee.cost.events[0], GaussianEvent)


def test_rounding_of_many_small_events_is_on_the_safe_side():
    # Convolutions of floating-point numbers lose mass in proportion to the number of events; exact for Gaussian ones.
    n, delta = 20_000, 1e-9
    mu = gaussian_mu(1.0, delta) / math.sqrt(n + 1)
    entries = [gaussian_cost(mu, 1e-12)] * n + [pure_cost(1e-6)]
    plan = BudgetAccountant(2.0, delta, plan=entries)
    for entry in entries[:3]:
        plan.charge(entry)
    assert plan.total().epsilon >= gaussian_epsilon(mu * math.sqrt(n), delta)


def test_a_delta_below_the_rounding_is_not_computed_with():
    entries = [gaussian_cost(0.01, 1e-16), pure_cost(0.01)]
    plan = BudgetAccountant(5.0, 1e-14, plan=entries)
    assert plan.total() == Budget(0.0, 0.0)
    plan.charge(entries[0])
    assert plan.total().epsilon >= gaussian_epsilon(0.01, 1e-14)


@pytest.mark.parametrize("epsilon", [200.0, 2e4])
def test_plans_of_any_size_are_composed(epsilon):
    entries = [pure_cost(epsilon / 4), gaussian_cost(0.5), pure_cost(epsilon / 4)]
    plan = BudgetAccountant(epsilon, DELTA, plan=entries)
    plan.charge(entries[0])
    assert plan.total().epsilon <= epsilon


# Delta at epsilon 3.51 of a million steps with rate .001 and mu .5, by the Bromwich integral of the moment generating
# function at 34 digits (mpmath 1.4.1, abscissa 13.5, heights to 16, 321 nodes; 121 nodes to 12 agree to ten digits).
MANY_STEPS, MANY_STEPS_DELTA = SampledGaussianEvent(1e-3, 0.5, 10**6), 1.0576834724e-11


def test_rounding_is_allowed_for_by_steps():
    cost = PrivacyCost(4.5, 1e-9, (MANY_STEPS,))
    # One event, and less delta than its rounding errors: the numerical composition is of no use.
    with pytest.raises(BudgetError, match="the plan costs"):
        BudgetAccountant(3.51, 1e-11, plan=[cost])
    plan = BudgetAccountant(4.0, 1e-11, plan=[cost])
    plan.charge(cost)
    assert 3.51 < plan.total().epsilon < 3.7
    # The same on any lattice: the rounding errors of the transform are covered.
    for interval in (1e-4, 2e-5):
        found = cost.privacy_loss_distribution(interval).get_delta_for_epsilon(3.51)
        assert MANY_STEPS_DELTA <= found <= 1.25 * MANY_STEPS_DELTA


# ---------------------------------------------------------------- what filters admit, and counts of kinds


def test_a_plan_admits_what_divergences_admit():
    # Pure events far beyond their sum, of which the numerical composition rounds each one up.
    event = BoundedRangeEvent(0.0138)
    cost = PrivacyCost(0.0138, 0.0, (event,))
    assert BudgetAccountant(1.0, 1e-6, composition="rdp")._after([(cost, 1000)]) is not None
    plan = BudgetAccountant(1.0, 1e-6, plan=[(cost, 1000)])
    plan.charge(cost)
    assert plan.total() == Budget(plan.total().epsilon, 1e-6) <= Budget(1.0, 1e-6)
    assert len(plan.planned) == 999
    with pytest.raises(BudgetError, match="the plan costs"):
        BudgetAccountant(1.0, 1e-6, plan=[(cost, 1300)])


@pytest.mark.parametrize("delta", [1e-15, 1e-6])
def test_a_plan_admits_what_the_filters_admit(delta):
    # A delta below the rounding errors leaves the proofs of the filters alone.
    gaussian = GaussianEvent(gaussian_mu(0.05, delta / 1000))
    lists = [
        [(PureEvent(0.1), 1), (gaussian, 100), (PureEvent(0.02), 2)],
        [(PureEvent(0.02), 10), (BoundedRangeEvent(0.05), 20)],
        [(gaussian, 50), (PureEvent(0.3), 1)],
    ]
    for entries in lists:
        costs = [(entry, count) for (event, count) in entries for entry in as_costs([event], delta=delta)]
        for rule in ("basic", "gdp", "rdp", "auto"):
            # The largest part of the list that a filter admits, by whole rounds.
            accountant = BudgetAccountant(1.0, delta, composition=rule)
            if accountant._after(costs) is not None:
                BudgetAccountant(1.0, delta, plan=entries)
    assert BudgetAccountant(1.0, delta)._after([(as_costs([PureEvent(0.1)])[0], 1), (costs[0][0], 50)]) is not None


def test_a_plan_of_counts_is_the_list_written_out():
    model = OutputPertLogReg(epsilon=0.2, delta=1e-7, data_norm=1.0, classes=[0, 1])
    written = [model.privacy_plan(n_features=3)] * 3 + [pure_cost(0.1)] * 2 + [gaussian_cost(0.05, 1e-7)]
    counted = [(model, 3), (PureEvent(0.1), 2), (GaussianEvent(0.05), 1)]
    plans = [BudgetAccountant(2.0, DELTA, plan=plan) for plan in (written, counted)]
    assert [entry.events for entry in plans[0].planned] == [entry.events for entry in plans[1].planned]
    for entry in written:
        cost = getattr(entry, "cost", entry)
        for plan in plans:
            plan.charge(cost)
    assert plans[0].total().epsilon == pytest.approx(plans[1].total().epsilon)
    with pytest.raises(BudgetError, match="carried out already"):
        plans[1].charge(pure_cost(0.1))


def test_a_ledger_keeps_a_plan_of_counts(tmp_path):
    plan = [(PureEvent(0.1), 2), (GaussianEvent(0.05), 3)]
    accountant = BudgetAccountant(2.0, DELTA, ledger=tmp_path / "b.db", plan=plan)
    accountant.charge(pure_cost(0.1))
    again = BudgetAccountant(2.0, DELTA, ledger=tmp_path / "b.db", plan=plan)
    assert len(again.planned) == 4


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "3", None, 10**7])
def test_counts_of_a_plan_are_positive_integers(count):
    with pytest.raises((TypeError, ValueError), match="the number in an entry"):
        BudgetAccountant(1.0, DELTA, plan=[(PureEvent(0.1), count)])


def test_a_budget_is_no_pair_of_an_entry_and_a_number():
    with pytest.raises(TypeError, match="Budget"):
        BudgetAccountant(1.0, DELTA, plan=[Budget(0.5, 1e-6)])


def test_a_plan_takes_estimators_whose_cost_is_known_and_of_its_unit():
    with pytest.raises(ValueError, match=r"privacy_plan\(\.\.\.\)"):
        BudgetAccountant(1.0, DELTA, plan=[(DPPCA(data_norm=1.0), 2)])
    with pytest.raises(BudgetError, match="about one record"):
        BudgetAccountant(1.0, plan=[(DPStandardScaler(bounds=(0, 1), rows_per_group=2, epsilon=0.1), 2)])
    with pytest.raises(BudgetError, match="the plan costs"):
        BudgetAccountant(1.0, plan=[(GaussianEvent(0.01), 2)])
