"""The choice of a mechanism by public numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..accounting import Budget, PrivacyEvent, PureEvent
from ..mechanisms import DiscreteLaplaceMechanism, Mechanism, NoNoise, l1_mechanism, l2_mechanism, pure_share
from ..release.estimates import combination
from ..sensitivity import group_sensitivity


@dataclass(frozen=True)
class Sensitivity:
    """The sensitivity of a vector to one record, in both norms, and whether the vector holds integers."""

    l1: float
    l2: float
    size: int
    integers: bool = False


def pure_mechanism(budget: Budget, share: float, moves: Sensitivity, rows: int) -> tuple[Mechanism, PrivacyEvent]:
    """Return Laplace noise for a share of epsilon."""
    if budget.epsilon == math.inf:
        return NoNoise(group_sensitivity(moves.l2, rows)), PureEvent(math.inf)
    part = pure_share(budget.epsilon, share)
    most = group_sensitivity(moves.l1, rows)
    if moves.integers:
        return DiscreteLaplaceMechanism(part, most, moves.size), PureEvent(part)
    return l1_mechanism(part, most, moves.size), PureEvent(part)


def norm_mechanism(budget: Budget, share: float, moves: Sensitivity, rows: int) -> tuple[Mechanism, PrivacyEvent]:
    """Return noise for the L2 norm and a share of the budget, which is Gaussian if delta is positive."""
    if budget.epsilon == math.inf:
        return pure_mechanism(budget, share, moves, rows)
    mechanism, event = l2_mechanism(*budget, share, group_sensitivity(moves.l2, rows), moves.size)
    return mechanism, event


def mechanisms(budget: Budget, share: float, moves: Sensitivity, rows: int) -> list[tuple[Mechanism, PrivacyEvent]]:
    """Return the mechanisms for a share of the budget: Gaussian if delta is positive, else both with delta=0."""
    if budget.delta > 0 and budget.epsilon < math.inf:
        return [norm_mechanism(budget, share, moves, rows)]
    return [pure_mechanism(budget, share, moves, rows), norm_mechanism(budget, share, moves, rows)]


def quietest(budget: Budget, share: float, moves: Sensitivity, rows: int) -> tuple[Mechanism, PrivacyEvent]:
    """Return the mechanism for a share of the budget with the least noise in a coordinate."""
    return min(mechanisms(budget, share, moves, rows), key=lambda found: combination(found[0], 1.0).variance)


def with_and_without_delta(budget: Budget, build: Callable[[Budget], Any], cost: Callable[[Any], float]) -> Any:
    """Build a plan with delta and a plan without delta, and return the plan with the smaller cost."""
    budgets = [Budget(budget.epsilon, 0.0)] + [budget] * (budget.delta > 0)
    return min(map(build, budgets), key=cost)
