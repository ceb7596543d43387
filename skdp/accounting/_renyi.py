"""The Rényi divergence that an (epsilon, delta) ceiling admits."""

from __future__ import annotations

import math

from scipy import optimize


def renyi_budget(epsilon: float, delta: float) -> tuple[float, float]:
    """Return the order at which a Rényi filter admits most Gaussian noise, and the admitted divergence.

    Parameters
    ----------
    epsilon : float
        Ceiling on epsilon, positive and finite.
    delta : float
        Ceiling on delta, in (0, 1).

    Returns
    -------
    order : float
        Greater than 1.
    divergence : float
        Largest sum of Rényi divergences. It is 0 if no order admits any.
    """

    def lost(log_excess: float) -> float:
        order = 1 + math.exp(log_excess)
        return -_budget(order, epsilon, delta) / order

    found = optimize.minimize_scalar(lost, bounds=(-7.0, 25.0), method="bounded", options={"xatol": 1e-6})
    order = 1 + float(f"{math.exp(found.x):.4g}")
    return order, renyi_limit(order, epsilon, delta)


def renyi_limit(order: float, epsilon: float, delta: float) -> float:
    """Return the largest sum of Rényi divergences of this order that is (epsilon, delta)-DP, or 0, rounded down."""
    # The terms cancel if epsilon is small, for instance at the end of a budget.
    rounding = 2.0**-50 * (epsilon + (2 - math.log(delta) + math.log(order)) / (order - 1))
    return max(0.0, _budget(order, epsilon, delta) * (1 - 1e-12) - rounding)


def _budget(order: float, epsilon: float, delta: float) -> float:
    return epsilon - math.log1p(-1 / order) + (math.log(delta) + math.log(order)) / (order - 1)
