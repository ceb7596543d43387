"""Bounds on attacks are those of closed forms, of another library, and of attacks that reach them."""

import math
import re
import warnings
from statistics import NormalDist

import numpy as np
import pytest

from skdp import BudgetAccountant, DPNaiveBayes, DPSGDClassifier, LocalDPNaiveBayes, ObjPertLogReg
from skdp.accounting import (
    FALSE_POSITIVES,
    BoundedRangeEvent,
    GaussianEvent,
    PrivacyCost,
    PureEvent,
    SampledGaussianEvent,
    attack_bounds,
    gaussian_epsilon,
    gaussian_mu,
)

LAW = NormalDist()
RATES = np.array(FALSE_POSITIVES)


def of_events(*events, epsilon, delta=0.0, replaced=False):
    return attack_bounds(epsilon, delta, PrivacyCost(epsilon, delta, events).mu(), events, replaced)


def near(found, expected, tolerance):
    """Tell whether bounds are upper bounds, and nearly reached."""
    numbers = [found.advantage, *found.true_positives]
    assert found.right == (1 + found.advantage) / 2
    for number, exact in zip(numbers, expected, strict=True):
        assert exact * (1 - 1e-9) <= number <= exact * (1 + tolerance)


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-6, 0.05])
def test_gaussian_noise(mu, delta):
    found = of_events(*[GaussianEvent(mu / 2)] * 4, epsilon=gaussian_epsilon(mu, delta) * (1 + 1e-9), delta=delta)
    exact = [2 * LAW.cdf(mu / 2) - 1, *(LAW.cdf(LAW.inv_cdf(rate) + mu) for rate in FALSE_POSITIVES)]
    near(found, exact, 1e-4)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_laplace_noise(epsilon):
    """The likelihood ratio of Laplace laws at distance epsilon is at most exp(epsilon), which small rates reach."""
    found = of_events(PureEvent(epsilon), epsilon=epsilon)
    expected = np.minimum(np.exp(epsilon) * RATES, 1 - np.exp(-epsilon) * (1 - RATES))
    near(found, [math.tanh(epsilon / 2), *expected], 1e-4)
    # The best test of level f is for large answers. Its power is exp(epsilon) f as long as that is below 1/2.
    quantile = -np.log(2 * RATES)
    power = np.where(quantile > epsilon, np.exp(epsilon - quantile) / 2, 1 - np.exp(quantile - epsilon) / 2)
    assert np.all(power <= np.array(found.true_positives) * (1 + 1e-9))
    assert found.true_positives[2] == pytest.approx(power[2], rel=1e-3)


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 3.0])
def test_a_record_that_is_replaced_moves_gaussian_noise_twice(mu):
    epsilon = gaussian_epsilon(mu, 1e-6) * (1 + 1e-9)
    found = attack_bounds(epsilon, 1e-6, mu, (GaussianEvent(mu),), replaced=True)
    near(found, [2 * LAW.cdf(mu) - 1, *(LAW.cdf(LAW.inv_cdf(rate) + 2 * mu) for rate in FALSE_POSITIVES)], 1e-4)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_a_record_that_is_replaced_moves_laplace_noise_twice(epsilon):
    """Laws at distance 2 epsilon differ by 1 - exp(-epsilon), which is less than for any law with this epsilon."""
    found = of_events(PureEvent(epsilon), epsilon=epsilon, replaced=True)
    assert found.advantage == pytest.approx(-math.expm1(-epsilon), rel=1e-9)
    assert found.advantage < math.tanh(epsilon)
    # Two steps of the best attacks on one record.
    one = np.minimum(np.exp(epsilon) * RATES, 1 - np.exp(-epsilon) * (1 - RATES))
    near(found, [found.advantage, *np.minimum(np.exp(epsilon) * one, 1 - np.exp(-epsilon) * (1 - one))], 1e-9)


def test_a_record_that_is_replaced_in_random_mechanisms():
    """Over three random laws, of which the middle one is that without the record."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        laws = rng.dirichlet(np.ones(4), size=3)
        p, q, r = laws
        epsilon = float(np.abs(np.log([p / q, r / q])).max())
        found = of_events(PureEvent(epsilon), epsilon=epsilon, replaced=True)
        assert np.maximum(p - r, 0).sum() <= found.advantage + 1e-12
        for rate, most in zip(FALSE_POSITIVES, found.true_positives, strict=True):
            # The best test takes outcomes by their ratio, and a part of the last one.
            order = np.argsort(-p / r)
            parts = np.clip((rate - np.append(0, np.cumsum(r[order])[:-1])) / r[order], 0, 1)
            assert parts @ p[order] <= most + 1e-12


def test_a_pair_is_attained_by_randomised_response_that_may_tell_all():
    epsilon, delta = 1.0, 0.01
    found = attack_bounds(epsilon, delta, math.inf)
    near(found, [delta + (1 - delta) * math.tanh(0.5), *(delta + math.e * RATES)], 1e-2)


def test_releases_together_are_less_than_their_sum():
    events = [PureEvent(0.5)] * 4
    found = of_events(*events, epsilon=2.0)
    # The number of answers of randomised response that are for the record is a sum of coins.
    p = math.exp(0.5) / (1 + math.exp(0.5))
    with_record = [math.comb(4, k) * p**k * (1 - p) ** (4 - k) for k in range(5)]
    without = with_record[::-1]
    advantage = sum(max(a - b, 0.0) for a, b in zip(with_record, without, strict=True))
    assert advantage <= found.advantage < advantage + 0.01
    assert found.advantage < math.tanh(1.0)
    assert of_events(BoundedRangeEvent(1.0), epsilon=1.0).advantage < math.tanh(0.5)


def test_no_noise_and_no_charge():
    assert attack_bounds(math.inf, 0.0, math.inf) == (1.0, 1.0, (1.0, 1.0, 1.0))
    nothing = BudgetAccountant(epsilon=1.0).attack()
    assert nothing[:2] == (0.0, 0.5)
    assert nothing.true_positives == pytest.approx(FALSE_POSITIVES)


def test_all_charges_together():
    budget = BudgetAccountant(epsilon=3.0, delta=1e-6)
    X, y = np.linspace(-1, 1, 50)[:, None], np.arange(50) % 2
    model = ObjPertLogReg(epsilon=1.0, delta=1e-6, data_norm=1.0, classes=[0, 1], accountant=budget).fit(X, y)
    one = model.privacy_.attack()
    spent = budget.attack()
    assert [spent.advantage, *spent.true_positives] == pytest.approx([one.advantage, *one.true_positives], rel=1e-3)
    model.fit(X, y)
    mu = model.privacy_.cost.mu() * math.sqrt(2)
    assert budget.attack().advantage == pytest.approx(2 * LAW.cdf(mu / 2) - 1, rel=1e-6)
    # Pure charges are added up, if that is better.
    pure = BudgetAccountant(epsilon=3.0)
    DPNaiveBayes(epsilon=1.0, bounds=(-1, 1), classes=[0, 1], accountant=pure).fit(X, y)
    assert pure.attack().advantage == pytest.approx(math.tanh(0.5), rel=1e-9)


def test_replaced_records_of_budgets_and_of_the_local_model():
    budget = BudgetAccountant(epsilon=3.0)
    budget.spend(1.0)
    assert budget.attack(replace_one=True).advantage == pytest.approx(-math.expm1(-1), rel=1e-9)
    assert "of guesses of membership are right" in str(budget.attack())
    assert "of guesses between two values of a known member are right" in str(budget.attack(replace_one=True))
    local = LocalDPNaiveBayes(bounds=(0, 1), classes=[0, 1]).fit(np.zeros((4, 1)), [0, 1, 0, 1]).privacy_
    assert local.attack(replace_one=True) == local.attack()


def test_the_guarantee_prints_the_bounds_rounded_up():
    X, y = np.linspace(-1, 1, 50)[:, None], np.arange(50) % 2
    guarantee = DPSGDClassifier(epsilon=1.0, data_norm=1.0, classes=[0, 1], n_steps=20).fit(X, y).privacy_
    bounds, line = guarantee.attack(), repr(guarantee).splitlines()[2]
    numbers = list(map(float, re.findall(r"[0-9.]+", line.replace("one record", ""))))
    exact = [bounds.right, bounds.advantage, *bounds.true_positives, *FALSE_POSITIVES]
    for shown, number in zip(numbers, exact, strict=True):
        assert number * (1 - 1e-9) <= shown <= number * 1.011
    assert bounds.advantage <= 2 * LAW.cdf(guarantee.cost.mu() / 2) - 1


def test_against_riskcal():
    analysis = pytest.importorskip("riskcal.analysis", reason="riskcal is not installed; `make test-onnx` has it")
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    rates = np.array(FALSE_POSITIVES)
    gaussian, sampled = GaussianEvent(0.7), SampledGaussianEvent(0.1, 0.5, 100)
    of_sampled = pld.from_gaussian_mechanism(2.0, value_discretization_interval=1e-4, sampling_prob=0.1)
    cases = [
        (of_events(gaussian, epsilon=4.0, delta=1e-6), pld.from_gaussian_mechanism(1 / 0.7)),
        (of_events(sampled, epsilon=4.0, delta=1e-6), of_sampled.self_compose(100)),
        (
            of_events(gaussian, sampled, epsilon=6.0, delta=1e-6),
            of_sampled.self_compose(100).compose(pld.from_gaussian_mechanism(1 / 0.7)),
        ),
    ]
    for found, losses in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            advantage = analysis.get_advantage_from_pld(losses)
            powers = 1 - np.asarray(analysis.get_beta_from_pld(losses, alpha=rates))
        assert found.advantage == pytest.approx(advantage, rel=2e-2)
        assert np.array(found.true_positives) == pytest.approx(powers, rel=2e-2)


@pytest.mark.parametrize("pure_first", [True, False])
def test_charges_before_a_rule_is_settled_count(pure_first):
    pure = PrivacyCost(2.0, 0.0, (PureEvent(2.0),))
    gaussian = PrivacyCost(3.0, 1e-6, (GaussianEvent(gaussian_mu(3.0, 1e-6)),))
    budget = BudgetAccountant(epsilon=10.0, delta=1e-5)
    for cost in (pure, gaussian) if pure_first else (gaussian, pure):
        budget.charge(cost)
    # One randomised response has this advantage.
    assert budget.attack().advantage >= math.tanh(1.0)


def test_the_ceiling_bounds_all_releases_before_and_after_they_are_charged():
    for delta in (0.0, 1e-6):
        budget = BudgetAccountant(epsilon=1.0, delta=delta)
        ceiling = budget.attack(ceiling=True)
        assert ceiling == attack_bounds(1.0, delta, math.inf)
        assert ceiling.right == pytest.approx(1 / (1 + math.exp(-1)), rel=1e-5)
        for _ in range(2):
            budget.spend(0.5, 0.0)
            assert budget.attack().right <= ceiling.right == budget.attack(ceiling=True).right
        replaced = budget.attack(replace_one=True, ceiling=True)
        assert replaced == attack_bounds(1.0, delta, math.inf, replaced=True)


def test_nothing_that_is_spent_gives_no_advantage():
    assert attack_bounds(0.0, 0.0, 0.0, (PureEvent(0.0),)).advantage == 0.0
