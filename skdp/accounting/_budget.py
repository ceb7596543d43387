"""Privacy budgets, neighbouring relations, and the largest epsilon at which a budget admits a fit."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, NamedTuple, Self

from ..checks.messages import as_float, shown, warn
from ..exceptions import BudgetError, PrivacyAssumptionWarning
from ._curves import LEAST_DELTA


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
    >>> budget.charge(PrivacyCost.of_pair(0.5, 0.0), relation=Relation.REPLACE_RECORD)
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

    @classmethod
    def of_unit(cls, unit: str) -> Relation:
        """Return the relation that adds or removes one unit.

        Parameters
        ----------
        unit : {"record", "group"}
            The unit.

        Returns
        -------
        relation : Relation
        """
        return cls.ADD_OR_REMOVE_GROUP if unit == "group" else cls.ADD_OR_REMOVE_RECORD


#: The possible units of privacy: one record, or all records of one group.
UNITS = ("record", "group")

#: Below this, noise scales would lose their precision.
MIN_EPSILON = 2.0**-20

#: From here on, a delta is remarked on.
_LARGE_DELTA = 0.01

#: Above this, a finite epsilon means no more than ``inf``.
MAX_EPSILON = 1e9


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
            if isinstance(value, bool) or not isinstance(value, numbers.Real):
                raise TypeError(f"{name} must be a real number, got {shown(value)}")
            if not 0 <= value <= most:
                raise ValueError(f"{name} must lie in [0, {most:g}], got {shown(value)}")
        return super().__new__(cls, as_float(epsilon), as_float(delta))

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> Self:  # type: ignore[override]
        return cls(*iterable)

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
    """Return `epsilon` as a float, or raise an error that explains the problem.

    Parameters
    ----------
    epsilon : object
        Value from the user.
    allow_zero : bool, default=False
        Whether 0 is valid, as for a charge.

    Returns
    -------
    epsilon : float
        Positive, or 0 if allowed, possibly infinite.
    """
    if isinstance(epsilon, bool) or not isinstance(epsilon, numbers.Real):
        raise TypeError(f"epsilon must be a real number, got {shown(epsilon)}")
    value = as_float(epsilon)
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
    """Return `delta` as a float in [0, 1), or raise an error that explains the problem.

    Parameters
    ----------
    delta : object
        Value from the user.

    Returns
    -------
    delta : float
        Value of the parameter.
    """
    if isinstance(delta, bool) or not isinstance(delta, numbers.Real):
        raise TypeError(f"delta must be a real number, got {shown(delta)}")
    value = as_float(delta)
    if not 0 <= value < 1 or delta < 0:
        raise ValueError(f"delta must lie in [0, 1), got {shown(delta)}")
    if 0 < value < LEAST_DELTA:
        raise ValueError(f"delta must be 0, or at least {LEAST_DELTA:g}, got {shown(delta)}")
    return value or 0.0


def warn_of_delta(delta: float) -> None:
    """Warn of a delta that is far too large for a guarantee.

    Parameters
    ----------
    delta : float
        In [0, 1).
    """
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
    "accountant.spend, and fit without an accountant, with delta=0 (user guide, Units)"
)


def check_same_unit(charged: str, counted: str, who: str = "") -> None:
    """Refuse a charge whose guarantee is about another unit than the budget.

    A fit that counts single records has no guarantee for a group, which may have any number of records. A fit that
    counts groups of one row has a weaker guarantee for single records, because a further row may replace it.

    Parameters
    ----------
    charged : str
        Unit of the charge.
    counted : str
        Unit of the budget.
    who : str
        Name of the class or function that charges, or empty.
    """
    if charged == counted:
        return
    of_whom = f"the charge of {who}" if who else "the charge"
    message = f"this budget is about one {counted}, and {of_whom} about one {charged}. "
    if counted == "record":
        raise BudgetError(message + 'Fits with rows_per_group need BudgetAccountant(..., unit="group")')
    raise BudgetError(message + GROUP_SUPPORT_HINT)


#: The answer is this close to the largest epsilon, relative to it.
_TOLERANCE = 2e-4

#: Above these, a power law of the cost is not trusted.
_SLOPES = (0.8, 3.0)


def largest_epsilon(portion: Callable[[float], float | None], ceiling: float, first: float) -> float | None:
    """Return approximately the largest admitted epsilon.

    Parameters
    ----------
    portion : callable
        Portion of the remaining budget that a fit with this epsilon uses. It is at most 1 if the fit is admitted,
        infinite if it is refused, and NaN if it is admitted but the portion is not known. None if no cost is known for
        this epsilon, for instance because it is too small to be divided among the releases of a fit.
    ceiling : float
        Ceiling on epsilon. A fit with a larger epsilon can be admitted if its delta is smaller than that of the budget.
    first : float
        First value to try, so that a simple answer is exact.

    Returns
    -------
    epsilon : float or None
        An admitted epsilon, 0 if none is admitted, and None if no cost is known.
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
