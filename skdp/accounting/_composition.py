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
from dataclasses import dataclass, replace
from fractions import Fraction

from scipy import optimize

from ..exceptions import BudgetError
from ._budget import Budget
from ._events import PrivacyCost
from ._gaussian import gaussian_epsilon, gaussian_mu

RULES = ("auto", "basic", "gdp", "rdp")

Exact = Fraction | float


def _decimal(value: float) -> Exact:
    """The number that a user typed: ten charges of 0.1 make 1."""
    return Fraction(repr(float(value))) if math.isfinite(value) else value


def _dyadic(value: float) -> Exact:
    """The number that a computation gave."""
    return Fraction(value) if math.isfinite(value) else value


@dataclass(frozen=True)
class Spent:
    """Exact running sums over the events admitted so far; a sum with an infinite term is a float.

    Attributes
    ----------
    epsilon, delta : Fraction or float
        Sums of the events' epsilons and deltas, as decimal numbers.
    mu_squared : Fraction or float
        Sum of the events' squared GDP parameters.
    rdp : Fraction or float
        Sum of the events' Rényi divergences at the order in use.
    rule : str or None
        The rule in force; None before the first event under "auto".
    """

    epsilon: Exact = Fraction(0)
    delta: Exact = Fraction(0)
    mu_squared: Exact = Fraction(0)
    rdp: Exact = Fraction(0)
    rule: str | None = None


class Composition:
    """The rule by which events add up, with its ceiling.

    Parameters
    ----------
    epsilon, delta : float
        The ceiling.
    rule : {"auto", "basic", "gdp", "rdp"}
        How events compose. With ``delta = 0``, or without a ceiling, it is "basic" whatever is asked.
    """

    def __init__(self, epsilon: float, delta: float, rule: str) -> None:
        self.ceiling = Budget(epsilon, delta)
        self.rule = rule
        self.mu = 0.0
        self.order, self.divergence = 2.0, 0.0
        if delta == 0 or not math.isfinite(epsilon):
            self.rule = "basic"
        else:
            self.mu = gaussian_mu(epsilon, delta)
            self.order, self.divergence = renyi_budget(epsilon, delta)

    def start(self) -> Spent:
        return Spent(rule=None if self.rule == "auto" else self.rule)

    def admit(self, spent: Spent, cost: PrivacyCost) -> Spent:
        """Return the sums with `cost` added, or raise BudgetError if that would exceed the ceiling."""
        after = replace(
            spent,
            epsilon=spent.epsilon + _decimal(cost.epsilon),
            delta=spent.delta + _decimal(cost.delta),
            mu_squared=spent.mu_squared + _dyadic(cost.mu()) ** 2,
            rdp=spent.rdp + _dyadic(cost.rdp(self.order)),
        )
        if after.rule is None:
            after = replace(after, rule=min(RULES[1:], key=lambda rule: self._part(after, rule)))
        basic = self._within(after, "basic")
        if not (self._within(after, str(after.rule)) or (basic and after.delta == 0)):
            raise BudgetError(self._refusal(spent, cost, str(after.rule)))
        return after

    def _sum_and_limit(self, spent: Spent, rule: str) -> list[tuple[Exact, Exact]]:
        if rule == "gdp":
            return [(spent.mu_squared, _dyadic(self.mu) ** 2)]
        if rule == "rdp":
            return [(spent.rdp, _dyadic(self.divergence))]
        ceiling = self.ceiling
        if ceiling.epsilon == math.inf:
            return []
        return [(spent.epsilon, _decimal(ceiling.epsilon)), (spent.delta, _decimal(ceiling.delta))]

    def _within(self, spent: Spent, rule: str) -> bool:
        return all(total <= limit for total, limit in self._sum_and_limit(spent, rule))

    def _part(self, spent: Spent, rule: str) -> float:
        """Which part of the budget `rule` says is used."""
        return max(float(s / limit) if limit > 0 else math.inf for s, limit in self._sum_and_limit(spent, rule))

    def _refusal(self, spent: Spent, cost: PrivacyCost, rule: str) -> str:
        left = self.remaining(spent)
        message = (
            f"the budget (epsilon={self.ceiling.epsilon:g}, delta={self.ceiling.delta:g}) does not admit a "
            f"further (epsilon={cost.epsilon:g}, delta={cost.delta:g}) under {rule!r} composition; "
            f"(epsilon={left.epsilon:.6g}, delta={left.delta:.6g}) remains"
        )
        if rule != "basic" and math.isfinite(cost.epsilon) and not math.isfinite(cost.rdp(self.order)):
            message += (
                f". A bare (epsilon, delta) charge with delta > 0 cannot be composed under {rule!r}; "
                'BudgetAccountant(..., composition="basic") admits it'
            )
        return message

    def total(self, spent: Spent) -> Budget:
        """The least pair that is proved for what has been admitted."""
        basic = Budget(float(spent.epsilon), float(spent.delta))
        if spent.rule in (None, "basic") or spent.delta == 0:
            return basic
        delta = self.ceiling.delta
        if spent.rule == "gdp":
            epsilon = gaussian_epsilon(math.sqrt(float(spent.mu_squared)) * (1 + 1e-15), delta)
        else:
            used = float(spent.rdp) * (1 + 1e-15)
            epsilon = max(0.0, self.ceiling.epsilon - (self.divergence - used))
        if spent.delta <= _decimal(delta):
            epsilon = min(epsilon, basic.epsilon)
        return Budget(epsilon, delta)

    def remaining(self, spent: Spent) -> Budget:
        """The largest single event that is still admitted; under "gdp" and "rdp", the largest Gaussian one.

        Under those, a pure event is admitted up to the pure sum as well, as long as all before it were pure.
        """
        if not math.isfinite(self.ceiling.epsilon):
            return self.ceiling
        if spent.rule in (None, "basic"):
            return Budget(
                float(max(_decimal(self.ceiling.epsilon) - spent.epsilon, Fraction(0))),
                float(max(_decimal(self.ceiling.delta) - spent.delta, Fraction(0))),
            )
        ((used, limit),) = self._sum_and_limit(spent, str(spent.rule))
        left = float(max(limit - used, Fraction(0))) * (1 - 1e-15)
        mu = math.sqrt(left if spent.rule == "gdp" else 2 * left / self.order)
        return Budget(gaussian_epsilon(mu, self.ceiling.delta) if mu > 0 else 0.0, self.ceiling.delta)


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
