r"""Privacy budgets, neighbouring relations, and the curves that turn epsilon and delta into noise.

The exact privacy curve of the Gaussian mechanism. Noise of standard deviation :math:`\sigma` on a query of L2
sensitivity :math:`\Delta` is :math:`(\varepsilon, \delta)`-DP exactly when :math:`\delta \ge \delta_G(\varepsilon;
\mu)` with :math:`\mu = \Delta/\sigma` and

.. math:: \delta_G(\varepsilon; \mu) = \Phi(\mu/2 - \varepsilon/\mu) - e^\varepsilon \Phi(-\mu/2 - \varepsilon/\mu)

(Balle and Wang 2018, theorem 8); it is then also :math:`\mu`-GDP (Dong, Roth and Su 2022).

Let :math:`x = \varepsilon/\mu - \mu/2`, :math:`y = x + \mu`, and let :math:`R = (1-\Phi)/\varphi` be Mills' ratio. For
small :math:`\mu`, the difference loses all digits. The identity :math:`e^\varepsilon \varphi(y) = \varphi(x)`
transforms it into

.. math:: \delta_G = \varphi(x) (R(x) - R(y)) = \varphi(x) \int_x^y (1 - t R(t))\, dt,

whose integrand is positive. This form is accurate to a few units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from ..checks.params import as_float, real_number, shown, warn
from ..exceptions import BudgetError, PrivacyAssumptionWarning

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)
# For mu up to 1, so many nodes are enough for the identity above, to a few units in the last place.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)

#: Factor of sums and products of bounds, which is more than their rounding errors.
UP = 1 + 2.0**-50

#: Relative margin by which calibrated noise exceeds the computed root. The curve is evaluated to about
#: 1e-13, so that this margin puts every rounding error on the safe side.
SAFETY = 1e-10

#: Deltas that Gaussian-DP parameters of other events leave out, and the least delta of a budget. It is so much larger
#: that a million such events change it by less than a part in a thousand.
NEGLIGIBLE_DELTA, LEAST_DELTA = 1e-40, 1e-30

#: The possible units of privacy: one record, or all records of one group.
UNITS = ("record", "group")

#: Below this, noise scales would lose their precision.
MIN_EPSILON = 2.0**-20

#: From here on, a delta is remarked on.
_LARGE_DELTA = 0.01

#: Above this, a finite epsilon means no more than ``inf``.
MAX_EPSILON = 1e9

#: The answer is this close to the largest epsilon, relative to it.
_TOLERANCE = 2e-4

#: Above these, a power law of the cost is not trusted.
_SLOPES = (0.8, 3.0)


def _mills(t: NDArray) -> NDArray:
    return np.sqrt(np.pi / 2) * special.erfcx(t / np.sqrt(2))


def gaussian_delta(epsilon: ArrayLike, mu: ArrayLike) -> NDArray:
    r"""Return the smallest delta for which a mu-GDP Gaussian mechanism is (epsilon, delta)-DP, for any real epsilon.

    References
    ----------
    .. [1] B. Balle and Y.-X. Wang, "Improving the Gaussian Mechanism for Differential Privacy",
       ICML 2018, theorem 8.
    """
    eps, mu_ = np.broadcast_arrays(np.asarray(epsilon, float), np.asarray(mu, float))
    positive = (mu_ > 0) & np.isfinite(mu_) & np.isfinite(eps)
    m = np.where(positive, mu_, 1.0)
    e = np.where(positive, eps, 0.0)
    with np.errstate(all="ignore"):
        x = e / m - m / 2
        y = e / m + m / 2
        t = x[..., None] + m[..., None] * (_NODES + 1) / 2
        integral = m / 2 * ((1 - t * _mills(t)) @ _WEIGHTS)
        by_quadrature = np.exp(-0.5 * x**2 - _HALF_LOG_2PI + np.log(integral))
        # exp(e) Phi(-y) = phi(x) R(y) for y > 0; for y <= 0, e is negative and nothing overflows.
        second = np.where(
            y > 0,
            np.exp(-0.5 * x**2 - _HALF_LOG_2PI) * _mills(np.maximum(y, 0.0)),
            np.exp(np.minimum(e, 0.0)) * special.ndtr(-y),
        )
        by_difference = special.ndtr(-x) - second
    delta = np.where((m <= 1.0) & (x > -1.0), by_quadrature, by_difference)
    # For large mu and x > -1, the two terms differ by a factor of at least R(x)/R(x + 1): no cancellation.
    at_zero = np.maximum(0.0, -np.expm1(np.minimum(eps, 0.0)))
    at_infinity = np.where(eps == np.inf, 0.0, 1.0)
    delta = np.where(positive, delta, np.where(mu_ > 0, at_infinity, at_zero))
    return np.clip(delta, 0.0, 1.0)


@lru_cache(maxsize=4096)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu, rounded down, for which the Gaussian mechanism is (epsilon, delta)-DP, with delta > 0."""
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be at least 0, got {shown(epsilon)}")
    if not (0 < delta < 1):
        raise ValueError(f"delta must lie in (0, 1), got {shown(delta)}")
    if epsilon == np.inf:
        return float(epsilon)

    def excess(log_mu: float) -> float:
        value = float(gaussian_delta(epsilon, np.exp(log_mu)))
        return (np.log(value) if value > 0 else -1e4) - np.log(delta)

    low, high = np.log(1e-290), np.log(1e8)
    root = optimize.brentq(excess, low, high, xtol=1e-14, rtol=1e-14, maxiter=500)
    mu = float(np.exp(root)) * (1 - SAFETY)
    while float(gaussian_delta(epsilon, mu)) > delta:
        mu *= 1 - SAFETY
    return mu


def gaussian_noise_multiplier(epsilon: float, delta: float) -> float:
    """Return the smallest noise multiplier, rounded up, that is (epsilon, delta)-DP.

    Examples
    --------
    >>> round(gaussian_noise_multiplier(1.0, 1e-5), 4)
    3.7306
    """
    return 1.0 / gaussian_mu(epsilon, delta)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the smallest epsilon, rounded up, for which a mu-GDP Gaussian mechanism is (epsilon, delta)-DP."""
    if not (0 < delta < 1):
        raise ValueError(f"delta must lie in (0, 1), got {shown(delta)}")
    if mu == np.inf:
        return np.inf
    if float(gaussian_delta(0.0, mu)) <= delta:
        return 0.0

    def excess(epsilon: float) -> float:
        value = float(gaussian_delta(epsilon, mu))
        return (np.log(value) if value > 0 else -1e4) - np.log(delta)

    # The privacy loss is N(mu^2/2, mu^2), and delta_G(eps) <= P(loss > eps).
    high = mu**2 / 2 - mu * float(special.ndtri_exp(np.log(delta))) + 1e-300
    root = optimize.brentq(excess, 0.0, high * 1.01, xtol=1e-300, rtol=1e-14, maxiter=500)
    epsilon = root * (1 + SAFETY)
    while float(gaussian_delta(epsilon, mu)) > delta:
        epsilon *= 1 + SAFETY
    return float(epsilon)


def pure_dp_mu(epsilon: float) -> float:
    r"""Return the mu for which every epsilon-DP mechanism is mu-GDP, rounded up.

    The trade-off curve of :math:`\varepsilon`-DP has its kink where both error rates are
    :math:`1/(1+e^\varepsilon)`; the curve of :math:`\mu`-GDP through that point,
    :math:`\mu = -2\Phi^{-1}(1/(1+e^\varepsilon))`, lies below it everywhere by convexity.
    """
    if epsilon == np.inf:
        return np.inf
    if epsilon < 1:
        # The same formula by 1 - 2/(1+e^epsilon) = tanh(epsilon/2), which keeps its digits near 0.
        return float(np.sqrt(8) * special.erfinv(np.tanh(epsilon / 2))) * (1 + SAFETY)
    return float(-2 * special.ndtri_exp(special.log_expit(-epsilon))) * (1 + SAFETY)


def bounded_range_mu(epsilon: float) -> float:
    """Return the mu for which every epsilon-bounded-range mechanism is mu-GDP, rounded up: that of epsilon/2-DP."""
    # Theorem 5 of the page *Trees*: the loss that takes only the two ends of its interval dominates all others.
    return pure_dp_mu(epsilon / 2)


def bounded_range_epsilon(mu: float) -> float:
    """Return the largest epsilon for which every epsilon-bounded-range mechanism is mu-GDP, rounded down."""
    # The log-odds of Phi(mu/2), through the two tails.
    half = float(special.log_ndtr(mu / 2) - special.log_ndtr(-mu / 2))
    if mu < 1e-3:
        # The same formula to second order, which keeps its digits near 0.
        half = 2 * mu / np.sqrt(2 * np.pi) * (1 - 1e-6)
    return 2 * half * (1 - 4 * SAFETY)


def renyi_budget(epsilon: float, delta: float) -> tuple[float, float]:
    """Return the order at which a Rényi filter admits most Gaussian noise, and the divergence, or 0, that it admits."""

    def lost(log_excess: float) -> float:
        order = 1 + math.exp(log_excess)
        return -_budget(order, epsilon, delta) / order

    minimum = optimize.minimize_scalar(lost, bounds=(-7.0, 25.0), method="bounded", options={"xatol": 1e-6})
    order = 1 + float(f"{math.exp(minimum.x):.4g}")
    return order, renyi_limit(order, epsilon, delta)


def renyi_limit(order: float, epsilon: float, delta: float) -> float:
    """Return the largest sum of Rényi divergences of this order that is (epsilon, delta)-DP, or 0, rounded down."""
    # The terms cancel if epsilon is small, for instance at the end of a budget.
    rounding = 2.0**-50 * (epsilon + (2 - math.log(delta) + math.log(order)) / (order - 1))
    return max(0.0, _budget(order, epsilon, delta) * (1 - 1e-12) - rounding)


def _budget(order: float, epsilon: float, delta: float) -> float:
    return epsilon - math.log1p(-1 / order) + (math.log(delta) + math.log(order)) / (order - 1)


class Relation(StrEnum):
    """The neighbouring relation of a guarantee or a charge.

    The values are text, for ledgers and JSON. Charges with different relations add up to a statement about the
    *contents* of one record. A release with the relation ``ADD_OR_REMOVE_RECORD`` compares the data with and without
    the record. A release with the relation ``REPLACE_RECORD`` compares the record with any other row in its place. A
    charge about groups adds up with other charges about groups only.

    Examples
    --------
    >>> from skdp import BudgetAccountant
    >>> from skdp.accounting import PrivacyCost, Relation
    >>> budget = BudgetAccountant(epsilon=1.0)
    >>> budget.charge(
    ...     PrivacyCost.of_pair(0.5, 0.0), relation=Relation.REPLACE_RECORD
    ... )
    >>> print(budget.records[0].relation)
    replace one record; their number is public
    """

    ADD_OR_REMOVE_RECORD = "add or remove one record"
    ADD_OR_REMOVE_GROUP = "add or remove all records of one group"
    REPLACE_RECORD = "replace one record; their number is public"

    @property
    def unit(self) -> str:
        """Unit of the relation: "record" or "group"."""
        return "group" if self is Relation.ADD_OR_REMOVE_GROUP else "record"


def relation_of(unit: str) -> Relation:
    """Return the relation that adds or removes one unit."""
    return Relation.ADD_OR_REMOVE_GROUP if unit == "group" else Relation.ADD_OR_REMOVE_RECORD


class _Pair(NamedTuple):
    """The fields of a budget."""

    epsilon: float
    delta: float


class Budget(_Pair):
    """An (epsilon, delta) pair.

    Budgets are compared as guarantees, which are partially ordered. ``a <= b`` is true if neither epsilon nor delta of
    ``a`` exceeds that of ``b``. For two budgets, both comparisons can be false.

    Parameters
    ----------
    epsilon : float
        At least 0, possibly infinite.
    delta : float
        In [0, 1].

    Examples
    --------
    >>> from skdp.accounting import Budget
    >>> Budget(3, 0.1) <= Budget(4, 0.1)
    True
    >>> Budget(4, 0.02) >= Budget(3, 0.1), Budget(4, 0.02) <= Budget(3, 0.1)
    (False, False)
    """

    __slots__ = ()

    def __new__(cls, epsilon: float, delta: float) -> Self:
        """Make a pair of two numbers in their ranges."""
        for name, value, most in (("epsilon", epsilon, math.inf), ("delta", delta, 1.0)):
            real_number(value, name)
            if not 0 <= value <= most:
                raise ValueError(f"{name} must lie in [0, {most:g}], got {shown(value)}")
        return super().__new__(cls, as_float(epsilon), as_float(delta))

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> Self:  # type: ignore[override]
        return cls(*iterable)

    def _replaced(self) -> Budget:
        """Return the guarantee for one replaced record, which is one removal and one addition."""
        # It is (2 epsilon, (1 + exp(epsilon)) delta), by group privacy.
        if self.delta == 0 or self.epsilon == math.inf:
            return Budget(2 * self.epsilon, self.delta)
        return Budget(2 * self.epsilon, min(1.0, (1 + math.exp(min(self.epsilon, 700.0))) * self.delta))

    def __le__(self, other: object) -> bool:
        if not (isinstance(other, tuple) and len(other) == 2):
            return NotImplemented
        return bool(self[0] <= other[0] and self[1] <= other[1])

    def __ge__(self, other: object) -> bool:
        if not (isinstance(other, tuple) and len(other) == 2):
            return NotImplemented
        return bool(self[0] >= other[0] and self[1] >= other[1])

    def __lt__(self, other: object) -> bool:
        return NotImplemented if (below := self.__le__(other)) is NotImplemented else below and self != other

    def __gt__(self, other: object) -> bool:
        return NotImplemented if (above := self.__ge__(other)) is NotImplemented else above and self != other


def check_epsilon(epsilon: object, *, allow_zero: bool = False) -> float:
    """Return a positive `epsilon`, or 0 if allowed, as a float. It can be infinite."""
    value = real_number(epsilon, "epsilon")
    if allow_zero and value == 0:
        return 0.0
    if not value > 0:
        raise ValueError(f"epsilon must be positive, got {shown(epsilon)}")
    if value < MIN_EPSILON:
        raise ValueError(f"epsilon is too small, got {shown(epsilon)}; the least is 2**-20, about 1e-6")
    if MAX_EPSILON < value < math.inf:
        raise ValueError(f"epsilon is too large, got {shown(epsilon)}; the most is 1e9, or inf for no privacy")
    return value


def check_delta(delta: object) -> float:
    """Return `delta` as a float in [0, 1), or raise an error that explains the problem."""
    value = real_number(delta, "delta")
    if not 0 <= value < 1 or delta < 0:  # type: ignore[operator]
        raise ValueError(f"delta must lie in [0, 1), got {shown(delta)}")
    if 0 < value < LEAST_DELTA:
        raise ValueError(f"delta must be 0, or at least {LEAST_DELTA:g}, got {shown(delta)}")
    return value or 0.0


def warn_of_delta(delta: float) -> None:
    """Warn of a delta that is far too large for a guarantee."""
    if delta >= _LARGE_DELTA:
        warn(
            f"delta={delta:g} admits a mechanism that publishes each record with this probability. Choose a delta far "
            "below one over the number of records, such as 1e-6 (user guide, Choose epsilon and delta)",
            PrivacyAssumptionWarning,
        )


#: Advice for an error: a guarantee for one record does not cover all records of a group.
GROUP_SUPPORT_HINT = (
    "Set rows_per_group, and pass groups. An estimator without rows_per_group can be fitted to at most k rows of each "
    "group, if k is public and the choice of a group's rows depends on that group alone: charge k * epsilon by "
    "accountant.spend, and fit without an accountant, with delta=0; the guide has the rule for other deltas (Multiple "
    "rows per person)"
)


def check_same_unit(charged: str, counted: str, who: str = "") -> None:
    """Refuse a charge by `who` whose guarantee is about another unit than the budget.

    A fit that counts single records has no guarantee for a group, which may have any number of records. A fit that
    counts groups of one row has a weaker guarantee for single records, because a further row may replace it.
    """
    if charged == counted:
        return
    of_whom = f"the charge of {who}" if who else "the charge"
    message = f"this budget is about one {counted}, and {of_whom} about one {charged}. "
    if counted == "record":
        raise BudgetError(message + 'Fits with rows_per_group need BudgetAccountant(..., unit="group")')
    raise BudgetError(message + GROUP_SUPPORT_HINT)


def largest_epsilon(portion: Callable[[float], float | None], ceiling: float, first: float) -> float | None:
    """Return about the largest admitted epsilon, 0 if none is admitted, and None if no cost is known.

    `portion` returns the portion of the remaining budget that a fit with an epsilon uses: at most 1 if the fit is
    admitted, infinite if it is refused, and NaN if it is admitted but the portion is not known. It returns None if no
    cost is known for this epsilon, for instance because it is too small to be divided among the releases of a fit. A
    fit with an epsilon above the `ceiling` can be admitted if its delta is smaller than that of the budget. `first` is
    tried first, so that a simple answer is exact.
    """
    if ceiling == math.inf:
        return ceiling
    low, high = MIN_EPSILON, math.inf
    known: list[tuple[float, float]] = []
    best, refused = 0.0, False
    guess = min(max(first, MIN_EPSILON), MAX_EPSILON)
    while high > low * (1 + _TOLERANCE):
        used = portion(guess)
        if used == math.inf:
            high, refused = guess, True
        else:
            low = guess
            if used is not None:
                best = guess
                known = [*known[-1:], (guess, used)]
        if low >= MAX_EPSILON:
            break
        guess = _next(known, low, high)
    return best if best or refused else None


def _next(known: list[tuple[float, float]], low: float, high: float) -> float:
    """Return the next value to try: where a power law would use all of the rest, or the middle."""
    middle = math.sqrt(low * high) if high < math.inf else 2 * low
    if not known or known[-1][0] < low:
        # Half of a value that is too large is often too small.
        return float(f"{max(middle, high / 2 if high < math.inf else middle):.9g}")
    epsilon, used = known[-1]
    if not 0 < used <= 1:
        return float(f"{middle:.9g}")
    slope = 2.0
    if len(known) == 2 and 0 < known[0][1] < used and known[0][0] < epsilon:
        slope = math.log(used / known[0][1]) / math.log(epsilon / known[0][0])
    slope = min(max(slope, _SLOPES[0]), _SLOPES[1])
    guess = epsilon * max(used ** (-1 / slope) * (1 - _TOLERANCE / 4), 1 + 0.9 * _TOLERANCE)
    creeps = len(known) == 2 and epsilon < known[0][0] * (1 + _TOLERANCE)
    if creeps or not low < guess < high / (1 + _TOLERANCE / 4):
        guess = middle
    return float(f"{guess:.9g}")
