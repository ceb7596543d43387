"""How far apart the minimisers of neighbouring data sets are, against minimisers found by bisection."""

import numpy as np
import pytest
from scipy import optimize, special

from skdp.sensitivity import minimizer_sensitivity, solver_slack_sensitivity


def minimiser(v, C, strong_convexity, residual, counts=1.0):
    """Point where the derivative of C sum counts log(1 + exp(-v w)) + lambda w^2 / 2 is `residual`."""

    def derivative(w):
        return strong_convexity * w - C * np.sum(counts * v * special.expit(-v * w)) - residual

    reach = (C * np.sum(counts * np.abs(v)) + abs(residual)) / strong_convexity + 1
    return optimize.brentq(derivative, -reach, reach, xtol=1e-14, rtol=1e-14)


@pytest.mark.parametrize("C", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("strong_convexity", [0.5, 3.0])
@pytest.mark.parametrize("tau", [0.0, 0.1])
def test_bound_holds_and_is_nearly_attained(C, strong_convexity, tau):
    rng = np.random.default_rng(0)
    bound = minimizer_sensitivity(C, 1.0, strong_convexity, tau)
    sets = [rng.uniform(-1, 1, size=n) for n in (0, 1, 5, 50) for _ in range(20)]
    triples = [(v, np.ones(v.size), rng.uniform(-1, 1)) for v in sets]
    # Very many very short records hold the minimiser where the long one contradicts them fully.
    triples.append((np.array([1e-6]), np.array([2e8 * max(1.0, strong_convexity) / min(C, 1.0)]), -1.0))
    worst = 0.0
    for v, counts, added in triples:
        for sign in (-1, 1):
            one = minimiser(v, C, strong_convexity, sign * tau, counts)
            other = minimiser(np.append(v, added), C, strong_convexity, -sign * tau, np.append(counts, 1.0))
            worst = max(worst, abs(one - other))
    assert worst <= bound * (1 + 1e-9)
    assert worst >= 0.8 * bound


def test_solver_slack():
    for strong_convexity in (0.5, 2.0):
        exact = [minimiser(np.array([0.3, -1.0]), 1.0, strong_convexity, r) for r in (0.01, -0.01)]
        bound = solver_slack_sensitivity(strong_convexity, 0.01)
        assert abs(exact[0] - exact[1]) <= bound
        assert solver_slack_sensitivity(strong_convexity, 0.01) == minimizer_sensitivity(0, 1, strong_convexity, 0.01)
    # Without data the bound is attained.
    exact = [minimiser(np.empty(0), 1.0, 2.0, r) for r in (0.01, -0.01)]
    assert abs(exact[0] - exact[1]) == pytest.approx(solver_slack_sensitivity(2.0, 0.01), rel=1e-9)
