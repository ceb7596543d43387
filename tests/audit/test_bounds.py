"""Bounds against definitions, slow computations, and laws for which they must hold."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from skdp.audit import epsilon_lower_bound, mu_lower_bound, one_run_epsilon, one_run_p_value
from skdp.audit._bounds import epsilons, mus, proportion_limits
from tests.auditing import clopper_pearson

# All counts of 40 runs on each data set.
PAIRS = np.indices((41, 41)).reshape(2, -1)


def probabilities(runs, p, q):
    return binom.pmf(PAIRS[0], runs, p) * binom.pmf(PAIRS[1], runs, q)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (1.0, 0.0), (3.0, 0.0), (1.0, 0.05)])
def test_false_alarms_are_no_more_than_stated(epsilon, delta):
    """Exactly: the probability, over both counts, that the bound is more than the truth, for pairs that attain it."""
    runs, error = 40, 0.05
    for q in (0.02, 0.1, 0.25):
        p = math.exp(epsilon) * q + delta
        if p > 1:
            continue
        wrong = epsilons(*PAIRS, runs, delta, error) > epsilon
        assert probabilities(runs, p, q)[wrong].sum() <= error


def test_false_alarms_of_mu():
    runs, error, mu = 40, 0.05, 1.0
    for t in (-1.0, 0.0, 0.8):
        p, q = norm.sf(t - mu), norm.sf(t)
        wrong = mus(*PAIRS, runs, error) > mu
        assert probabilities(runs, p, q)[wrong].sum() <= error


def test_limits_against_those_of_the_library_s_own_tests():
    for successes, runs in [(0, 30), (7, 30), (30, 30)]:
        expected = clopper_pearson(successes, runs, 1e-3)
        np.testing.assert_allclose(proportion_limits(successes, runs, 1e-3), expected, rtol=1e-12)


def test_each_limit_has_half_of_the_error():
    (low, _), (_, high) = (clopper_pearson(hits, 30, 0.5e-3) for hits in (26, 2))
    assert epsilon_lower_bound(26, 2, 30, delta=0.1, error=1e-3) == pytest.approx(math.log((low - 0.1) / high))
    assert mu_lower_bound(26, 2, 30, error=1e-3) == pytest.approx(norm.ppf(low) - norm.ppf(high))


def test_bounds_come_close():
    assert epsilon_lower_bound(500_000, round(500_000 * math.exp(-1)), 10**6) == pytest.approx(1, abs=0.02)
    p, q = norm.sf([-0.5, 0.5])
    assert mu_lower_bound(round(1e6 * p), round(1e6 * q), 10**6) == pytest.approx(1, abs=0.02)


def test_nothing_is_proved_by_nothing():
    assert epsilon_lower_bound(0, 0, 100) == 0
    assert epsilon_lower_bound(100, 100, 100) == 0
    assert epsilon_lower_bound(10, 0, 100, delta=0.5) == 0
    assert mu_lower_bound(0, 100, 100) == 0
    assert mu_lower_bound(100, 0, 100) > 2.5


def slow_p_value(m, r, v, epsilon, delta):
    right = 1 / (1 + math.exp(-epsilon))
    below, worst = 0.0, 0.0
    for i in range(1, v + 1):
        below += binom.pmf(v - i, r, right)
        worst = max(worst, below / i)
    return min(1.0, binom.sf(v - 1, r, right) + 2 * m * delta * worst)


@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-2])
def test_p_value_against_its_definition(delta):
    for m, r, v in [(10, 10, 10), (50, 20, 17), (200, 100, 70), (30, 30, 0)]:
        for epsilon in (0.0, 0.3, 2.0):
            found = one_run_p_value(m, r, v, epsilon=epsilon, delta=delta)
            assert found == pytest.approx(slow_p_value(m, r, v, epsilon, delta), rel=1e-9)


def test_one_run_bound_inverts_the_p_value():
    for delta in (0.0, 1e-6):
        found = one_run_epsilon(300, 200, 170, delta=delta)
        assert one_run_p_value(300, 200, 170, epsilon=found, delta=delta) <= 0.05
        assert one_run_p_value(300, 200, 170, epsilon=found + 1e-5, delta=delta) > 0.05
    assert one_run_epsilon(100, 100, 50) == 0
    assert one_run_epsilon(5000, 5000, 5000) > 6


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_one_run_bound_holds_for_randomised_response(epsilon):
    """Each coin is told with the probability that the claim allows: the number of right guesses is binomial."""
    m, error = 100, 0.05
    right = 1 / (1 + math.exp(-epsilon))
    wrong = sum(binom.pmf(v, m, right) for v in range(m + 1) if one_run_epsilon(m, m, v, error=error) > epsilon)
    assert 0.01 < wrong <= error


def test_delta_costs():
    # With probability delta a mechanism may tell everything.
    assert one_run_p_value(100, 100, 100, epsilon=0.1, delta=0.01) > 0.01
    assert one_run_p_value(100, 100, 100, epsilon=0.1) < 1e-20


COUNTS = {"n_canaries": 10, "n_guesses": 10, "n_correct": 9}


@pytest.mark.parametrize(
    ("bound", "wrong"),
    [
        *((bound, {"hits": hits}) for bound in (epsilon_lower_bound, mu_lower_bound) for hits in (-1, 11, 1.5)),
        *((bound, {"other_hits": 11}) for bound in (epsilon_lower_bound, mu_lower_bound)),
        *((bound, {"n_runs": 0}) for bound in (epsilon_lower_bound, mu_lower_bound)),
        *((bound, {"error": e}) for bound in (epsilon_lower_bound, mu_lower_bound, one_run_epsilon) for e in (0, 2.0)),
        *((bound, {"delta": -1.0}) for bound in (epsilon_lower_bound, one_run_epsilon, one_run_p_value)),
        *((one_run_p_value, {"epsilon": epsilon}) for epsilon in (-800.0, math.nan, "1")),
        *((bound, {"n_guesses": 11}) for bound in (one_run_epsilon, one_run_p_value)),
        *((bound, {"n_correct": -1}) for bound in (one_run_epsilon, one_run_p_value)),
    ],
    ids=lambda value: value.__name__ if callable(value) else str(value),
)
def test_refusals(bound, wrong):
    right = {"hits": 5, "other_hits": 5, "n_runs": 10}
    if bound in (one_run_epsilon, one_run_p_value):
        right = COUNTS | ({"epsilon": 1.0} if bound is one_run_p_value else {})
    bound(**right)
    with pytest.raises((ValueError, TypeError), match="hits" if "other_hits" in wrong else next(iter(wrong))):
        bound(**(right | wrong))


def test_extremes_that_are_allowed():
    assert np.isfinite(one_run_p_value(10, 10, 10, epsilon=800.0))
    assert one_run_p_value(10, 10, 10, epsilon=math.inf) == 1
    # Without a warning.
    assert epsilon_lower_bound(10, 0, 10, error=1e-100) == 0
    assert epsilon_lower_bound(1000, 0, 1000, error=1e-100) > 0
