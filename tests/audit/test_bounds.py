"""Bounds against definitions, slow computations, and laws for which they must hold."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from skdp.audit import epsilon_lower_bound, mu_lower_bound, one_run_epsilon, one_run_p_value
from skdp.audit._bounds import proportion_limits
from tests.auditing import clopper_pearson


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (1.0, 0.0), (3.0, 0.0), (1.0, 0.05)])
def test_false_alarms_are_no_more_than_stated(epsilon, delta):
    """Exactly: the probability, over both counts, that the bound is more than the truth, for pairs that attain it."""
    runs, error = 40, 0.05
    for q in (0.02, 0.1, 0.25):
        p = math.exp(epsilon) * q + delta
        if p > 1:
            continue
        wrong = sum(
            binom.pmf(hits, runs, p) * binom.pmf(other, runs, q)
            for hits in range(runs + 1)
            for other in range(runs + 1)
            if epsilon_lower_bound(hits, other, runs, delta=delta, error=error) > epsilon
        )
        assert wrong <= error


def test_false_alarms_of_mu():
    runs, error, mu = 40, 0.05, 1.0
    for t in (-1.0, 0.0, 0.8):
        p, q = norm.sf(t - mu), norm.sf(t)
        wrong = sum(
            binom.pmf(hits, runs, p) * binom.pmf(other, runs, q)
            for hits in range(runs + 1)
            for other in range(runs + 1)
            if mu_lower_bound(hits, other, runs, error=error) > mu
        )
        assert wrong <= error


def test_limits_against_those_of_the_library_s_own_tests():
    for successes, runs in [(0, 30), (7, 30), (30, 30)]:
        expected = clopper_pearson(successes, runs, 1e-3)
        np.testing.assert_allclose(proportion_limits(successes, runs, 1e-3), expected, rtol=1e-12)


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


def test_refusals():
    with pytest.raises(ValueError, match="n_correct"):
        one_run_p_value(10, 11, 3, epsilon=1.0)
    assert np.isfinite(one_run_p_value(10, 10, 10, epsilon=800.0))
