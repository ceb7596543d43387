r"""Which sequence of events stays within a budget when each event may be chosen after seeing earlier outputs.

Three rules, each valid for adaptively chosen events:

**basic**: :math:`\sum \varepsilon_i \le \varepsilon` and :math:`\sum \delta_i \le \delta` (Rogers and others 2016).

**gdp**: :math:`\sum \mu_i^2 \le \mu^2` with :math:`\delta_G(\varepsilon; \mu) = \delta` (Smith and Thakurta 2022;
Koskela, Tobaben and Honkela 2023). Lossless for Gaussian noise.

**rdp**: :math:`\sum \rho_i(\alpha) \le B(\alpha)` at one order :math:`\alpha` fixed in advance, with
:math:`\varepsilon = B + \log\frac{\alpha-1}{\alpha} - \frac{\log\delta + \log\alpha}{\alpha - 1}` (Feldman and Zrnic
2021; conversion of Canonne, Kamath and Steinke 2020). Nearly lossless for what is almost Gaussian, as objective
perturbation.

Under "gdp" and "rdp", a sequence of pure events is admitted as well while :math:`\sum \varepsilon_i \le \varepsilon`.
That "or" costs nothing: a path that ends under the pure rule has a privacy loss of at most :math:`\varepsilon` for
certain and adds nothing to delta; the other paths coincide with those of the filter run by itself, which add at most
delta.

**auto** takes the rule of which the first event uses the smallest part. The first event is chosen before any output
is seen, so that the choice of rule is not adaptive. Choosing later would not be valid: two rules joined by "or" give
away up to the sum of their deltas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from scipy import optimize

from ..exceptions import BudgetError
from ._budget import Budget
from ._events import PrivacyCost
from ._gaussian import gaussian_epsilon, gaussian_mu
from ._state import Exact, PartKey, State, Sums, decimal, dyadic, floor_decimal

RULES = ("auto", "basic", "gdp", "rdp")


@dataclass(frozen=True)
class Composition:
    """A filter: the rule by which adaptively chosen events add up, with its ceiling.

    Attributes
    ----------
    ceiling : Budget
        What is never exceeded.
    rule : {"auto", "basic", "gdp", "rdp"}
        How events compose.
    mu : float
        GDP parameter of the ceiling; 0 where the rule is "basic" for good.
    order, divergence : float
        Order of the Rényi rule, and the divergence that it admits.
    unit : {"record", "group"}
        Whose presence the ceiling is about.
    """

    ceiling: Budget
    rule: str
    mu: float = 0.0
    order: float = 2.0
    divergence: float = 0.0
    unit: str = "record"

    @classmethod
    def of(cls, epsilon: float, delta: float, rule: str) -> Composition:
        """Make one; with ``delta = 0``, or without a ceiling, the rule is "basic" whatever is asked."""
        ceiling = Budget(epsilon, delta)
        if delta == 0 or not math.isfinite(epsilon):
            return cls(ceiling, "basic")
        return cls(ceiling, rule, gaussian_mu(epsilon, delta), *renyi_budget(epsilon, delta))

    def start(self) -> State:
        return State(rule=None if self.rule == "auto" else self.rule)

    def admit(self, state: State, cost: PrivacyCost, part: PartKey | None = None) -> State:
        """Return the state with `cost` added, or raise BudgetError if that would exceed the ceiling."""
        sums = self._sums(cost)
        after = state.add(sums, part)
        seen = after.seen(part)
        if after.rule is None and sums == Sums():
            return after
        if after.rule is None:
            # Not adaptive: nothing has been released yet.
            after = replace(after, rule=min(RULES[1:], key=lambda rule: self._part(seen, rule)))
        rule = str(after.rule)
        if not self._admitted(seen, rule):
            raise BudgetError(self._refusal(state, cost, rule, part))
        return after

    def after(
        self, state: State, costs: Sequence[tuple[PrivacyCost, int]], part: PartKey | None = None
    ) -> State | None:
        """Return the state after all of these, in this order, each as often as its number says, or None."""
        try:
            state = self.admit(state, costs[0][0], part)
        except BudgetError:
            return None
        counts = [costs[0][1] - 1, *(count for _, count in costs[1:])]
        for (cost, _), count in zip(costs, counts, strict=True):
            state = state.add(self._sums(cost).times(count), part)
        return state if self._admitted(state.seen(part), str(state.rule)) else None

    def settle(self, state: State, rule: str) -> State:
        """Return the state with the rule decided, which is not adaptive as long as it is open."""
        if state.rule not in (None, rule):
            raise BudgetError(f"the accountant has settled on {state.rule!r} composition")
        return replace(state, rule=rule)

    def _admitted(self, sums: Sums, rule: str) -> bool:
        return self._within(sums, rule) or (sums.delta == 0 and self._within(sums, "basic"))

    def _sums(self, cost: PrivacyCost) -> Sums:
        return Sums(
            epsilon=decimal(cost.epsilon),
            delta=decimal(cost.delta),
            mu_squared=dyadic(cost.mu()) ** 2,
            rdp=dyadic(cost.rdp(self.order)),
        )

    def _sum_and_limit(self, sums: Sums, rule: str) -> list[tuple[Exact, Exact]]:
        if rule == "gdp":
            return [(sums.mu_squared, dyadic(self.mu) ** 2)]
        if rule == "rdp":
            return [(sums.rdp, dyadic(self.divergence))]
        ceiling = self.ceiling
        if ceiling.epsilon == math.inf:
            return []
        return [(sums.epsilon, decimal(ceiling.epsilon)), (sums.delta, decimal(ceiling.delta))]

    def _within(self, sums: Sums, rule: str) -> bool:
        return all(total <= limit for total, limit in self._sum_and_limit(sums, rule))

    def _part(self, sums: Sums, rule: str) -> float:
        """Which part of the budget `rule` says is used."""
        return max(float(s / limit) if limit > 0 else math.inf for s, limit in self._sum_and_limit(sums, rule))

    def _refusal(self, state: State, cost: PrivacyCost, rule: str, part: PartKey | None) -> str:
        left = self.remaining(state, 1, part)
        # Other releases may cost more than a Gaussian one with the same epsilon and delta.
        of = "" if rule == "basic" else " for a Gaussian release"
        message = (
            f"the budget (epsilon={self.ceiling.epsilon:g}, delta={self.ceiling.delta:g}) does not admit a "
            f"further (epsilon={cost.epsilon:g}, delta={cost.delta:g}) under {rule!r} composition; "
            f"(epsilon={left.epsilon:.6g}, delta={left.delta:.6g}) remains{of}"
        )
        if rule != "basic":
            pure = self.remaining_pure(state, part)
            message += f", and epsilon={pure:.6g} for one without delta"
        if rule != "basic" and math.isfinite(cost.epsilon) and not math.isfinite(cost.rdp(self.order)):
            message += (
                f". A bare (epsilon, delta) charge with delta > 0 cannot be composed under {rule!r}, only one with "
                'delta=0 can; a budget that is made as BudgetAccountant(..., composition="basic") admits it'
            )
        return message

    def used(self, state: State, part: PartKey | None = None) -> float:
        """Which part of the budget the rule in force says is used."""
        return self._part(state.seen(part), str(state.rule))

    def total(self, state: State, part: PartKey | None = None) -> Budget:
        """The least pair that is proved for what has been admitted."""
        sums = state.seen(part)
        basic = Budget(float(sums.epsilon), float(sums.delta))
        if state.rule in (None, "basic") or sums.delta == 0:
            return basic
        delta = self.ceiling.delta
        if state.rule == "gdp":
            epsilon = gaussian_epsilon(math.sqrt(float(sums.mu_squared)) * (1 + 1e-15), delta)
        else:
            used = float(sums.rdp) * (1 + 1e-15)
            epsilon = max(0.0, self.ceiling.epsilon - (self.divergence - used))
        if sums.delta <= decimal(delta):
            epsilon = min(epsilon, basic.epsilon)
        # Sums that are bounded one by one, over several parts, may say more than was admitted for any record.
        return Budget(min(epsilon, self.ceiling.epsilon), delta)

    def remaining(self, state: State, k: int = 1, part: PartKey | None = None) -> Budget:
        """The largest event of which `k` are still admitted; under "gdp" and "rdp", the largest Gaussian one.

        Under those, a pure event is admitted up to the pure sum as well, as long as all before it were pure.
        """
        if not math.isfinite(self.ceiling.epsilon):
            return self.ceiling
        sums = state.seen(part)
        if state.rule in (None, "basic"):
            return Budget(
                floor_decimal(max(decimal(self.ceiling.epsilon) - sums.epsilon, Fraction(0)) / k),
                floor_decimal(max(decimal(self.ceiling.delta) - sums.delta, Fraction(0)) / k),
            )
        ((used, limit),) = self._sum_and_limit(sums, str(state.rule))
        left = float(max(limit - used, Fraction(0)) / k) * (1 - 1e-15)
        mu = math.sqrt(left if state.rule == "gdp" else 2 * left / self.order)
        return Budget(gaussian_epsilon(mu, self.ceiling.delta) if mu > 0 else 0.0, self.ceiling.delta)

    def remaining_pure(self, state: State, part: PartKey | None = None) -> float:
        """Return about the largest epsilon of an event without delta that is still admitted."""
        low, high = 0.0, self.ceiling.epsilon
        if not math.isfinite(high):
            return high
        for _ in range(40):
            middle = (low + high) / 2
            seen = state.add(self._sums(PrivacyCost.of_pair(middle, 0.0)), part).seen(part)
            low, high = (middle, high) if self._admitted(seen, str(state.rule or "basic")) else (low, middle)
        return low


def renyi_budget(epsilon: float, delta: float) -> tuple[float, float]:
    """Return the order at which a Rényi filter admits most Gaussian noise, and the divergence that it admits.

    Parameters
    ----------
    epsilon : float
        Ceiling, positive and finite.
    delta : float
        Ceiling, in (0, 1).

    Returns
    -------
    order : float
        Greater than 1.
    divergence : float
        Largest sum of Rényi divergences; 0 if no order leaves any.
    """

    def budget(order: float) -> float:
        return epsilon - math.log1p(-1 / order) + (math.log(delta) + math.log(order)) / (order - 1)

    def lost(log_excess: float) -> float:
        order = 1 + math.exp(log_excess)
        return -budget(order) / order

    found = optimize.minimize_scalar(lost, bounds=(-7.0, 25.0), method="bounded", options={"xatol": 1e-6})
    order = 1 + float(f"{math.exp(found.x):.4g}")
    return order, max(0.0, budget(order) * (1 - 1e-12))
