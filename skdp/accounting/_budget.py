"""Privacy budgets, which are pairs of epsilon and delta, and checks of their values."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

from ..checks.values import as_float, shown
from ..checks.warn import warn
from ..exceptions import BudgetError, PrivacyAssumptionWarning
from ._gaussian import LEAST_DELTA

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
