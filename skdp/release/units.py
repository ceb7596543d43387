r"""The unit of privacy: one record, or all records of one group.

If a person has several records, they are a group. At most a public number of records of each group counts. They are
drawn at random, and the others are left out. Theorem (user guide, "Units", theorem 1): if one record moves a released
statistic by at most :math:`\Delta`, then adding or removing all records of one group moves it by at most
:math:`m\Delta`, for the same draws in all other groups.

The draws of one group must not depend on another group. Each row has a random priority, and the rows of lowest priority
in their group count. The priorities are independent and identically distributed, and do not depend on other rows or on
the order of rows. Identifiers are only compared for equality, and each is read separately. NumPy would convert a list
to a type that holds all entries, and one group would then determine whether two other groups are distinguished.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import Relation
from ..checks.data import is_sequence, label_key
from ..checks.params import check_integer
from ..mechanisms import BitStream, NoiseSource
from ..parts.arrays import PartedArray, chosen, rowwise
from .session import PrivacyGuarantee
from .weights import kept

#: Largest number of rows of a group that may count.
MOST_ROWS_PER_GROUP = 10**6

_MISSING = "groups holds missing values. Leave out records whose group is unknown"

_MERGED = (
    "groups holds floating-point numbers that are too large to tell integers apart, so that different groups may have "
    "become one: pass identifiers as integers or as text"
)


@dataclass(frozen=True)
class Unit:
    """The unit of neighbouring data sets: one record (None), or a group of which `rows_per_group` records count."""

    rows_per_group: int | None = None

    @classmethod
    def of(cls, rows_per_group: object) -> Unit:
        """Check the parameter `rows_per_group`, an integer or None, and return the unit."""
        if rows_per_group is None:
            return cls()
        return cls(check_integer(rows_per_group, "rows_per_group", least=1, most=MOST_ROWS_PER_GROUP))

    @property
    def rows(self) -> int:
        """Largest number of records of one unit."""
        return 1 if self.rows_per_group is None else self.rows_per_group

    def stated(self, plan: PrivacyGuarantee, where: str = "") -> PrivacyGuarantee:
        """Return the plan with a statement of this unit, for which its sensitivities must hold."""
        # `where` names the part in which the number of records is limited, if it is not limited everywhere.
        if self.rows_per_group is None:
            return plan
        count = ("1 counts" if self.rows == 1 else f"{self.rows} count") + (where and f" in {where}")
        return replace(plan, relation=Relation.ADD_OR_REMOVE_GROUP, limit=f"of which at most {count}")

    def numbers(self, groups: Any, X: Any) -> Any:
        """Validate groups against the user's rows. Return numbers, or None if the unit is one record."""
        # In parts, the groups themselves are returned. They have numbers only where all of them are.
        if self.rows_per_group is None:
            if groups is not None:
                raise ValueError(
                    "rows_per_group must be set if groups are given. It is the largest number of records of a group "
                    "that count"
                )
            return None
        if groups is None:
            raise ValueError("groups must be given if rows_per_group is set: the group of each row")
        if isinstance(groups, PartedArray):
            return rowwise(_checked_groups, groups)
        check_index(X, groups)
        return group_numbers(groups)

    def members(self, numbers: Any, X: Any, y: Any = None, known: Any = None) -> tuple[Any, Any, Any]:
        """Return the `known` rows, their targets, and their groups by numbers. Nothing is drawn."""
        if numbers is not None and not isinstance(numbers, PartedArray) and len(numbers) != X.shape[0]:
            raise ValueError("X and groups must have the same number of rows")
        members = numbers
        if known is not None and (isinstance(known, PartedArray) or not known.all()):
            X, y, members = rows_at(X, known), rows_at(y, known), rows_at(members, known)
        return X, y, members

    def counted(
        self,
        source: NoiseSource,
        members: Any,
        X: Any,
        y: Any = None,
        probabilities: Any = None,
    ) -> tuple[Any, Any]:
        """Return the rows that count, in their order: all, or a few of each group, drawn at random."""
        # With `probabilities`, each of these rows is kept with its probability.
        if members is not None:
            X, y, probabilities = self.drawn(source, members, X, y, probabilities)
        if probabilities is not None:
            X, y = with_coins(probabilities, source.stream("weights of records"), X, y)
        return X, y

    def drawn(self, source: NoiseSource, members: Any, *arrays: Any) -> tuple[Any, ...]:
        """Return a few rows of each group, drawn at random, in their order."""
        stream = source.stream("rows that count")
        if isinstance(members, PartedArray):
            return chosen(members, lambda groups: drawn_rows(group_numbers(groups), self.rows, stream), *arrays)
        rows = drawn_rows(members, self.rows, stream)
        return tuple(rows_at(array, rows) for array in arrays)


def with_coins(probabilities: Any, stream: BitStream, X: Any, y: Any) -> tuple[Any, Any]:
    """Keep each record with its probability."""
    if isinstance(probabilities, PartedArray):
        X, y = chosen(probabilities, lambda own: np.flatnonzero(kept(own, stream)), X, y)
        return X, y
    coins = kept(probabilities, stream)
    return rows_at(X, coins), rows_at(y, coins)


#: The default unit of a fit.
ONE_RECORD = Unit()


def rows_at(data: Any, rows: NDArray) -> Any:
    """Return some rows of an array or of a list of columns."""
    if isinstance(data, list):
        return [column[rows] for column in data]
    if isinstance(data, PartedArray):
        return rowwise(rows_at, data, rows)
    return None if data is None else data[rows]


def _has_index(data: Any) -> bool:
    return hasattr(data, "iloc") and hasattr(data, "index")


def check_index(X: Any, groups: Any) -> None:
    """Refuse groups whose index is not that of the rows, because rows are matched by position."""
    if isinstance(X, Mapping):
        # Columns with an index have the same index, or the table is refused later.
        X = next((column for column in X.values() if _has_index(column)), None)
    if not (_has_index(X) and _has_index(groups)):
        return
    try:
        same = bool(X.index.equals(groups.index))
    except Exception:
        same = False
    # It is raised outside the handler, because the original message may show entries.
    if not same:
        raise ValueError(
            "X and groups have different indexes, and rows are matched by position: bring groups into the order of X, "
            "as groups.loc[X.index] does, or pass groups.to_numpy() if it is in that order"
        )


def group_numbers(groups: Any) -> NDArray[np.intp]:
    """Return a number for each row. Numbers are equal if the groups are equal, and have no other meaning."""
    if is_sequence(groups):
        array = np.fromiter(groups, dtype=object, count=len(groups))
    else:
        if np.ma.is_masked(groups):
            raise ValueError(_MISSING)
        array = np.asarray(groups)
    if array.ndim != 1:
        raise ValueError("groups must be one-dimensional, with the group of each row")
    if array.dtype.kind == "f" and np.any(np.abs(array) >= _exact_up_to(array.dtype)):
        raise ValueError(_MERGED)
    if array.dtype.kind in "biufUS":
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise ValueError(_MISSING)
        return np.unique(array, return_inverse=True)[1].astype(np.intp)
    if array.dtype.kind not in "OT":
        raise TypeError("groups must hold numbers or text")
    entries = array.tolist()
    if any(
        issubclass(type(group), float | np.floating) and abs(float(group)) >= _exact_up_to(type(group))
        for group in entries
    ):
        raise ValueError(_MERGED)
    keys = [label_key(group) for group in entries]
    kinds = {kind for kind, _ in keys}
    if "missing" in kinds:
        raise ValueError(_MISSING)
    if not kinds <= {"text", "bytes", "number"}:
        raise TypeError("groups must hold numbers or text")
    numbers: dict[Any, int] = {}
    return np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), dtype=np.intp, count=len(keys))


def _exact_up_to(dtype: Any) -> float:
    """Return the smallest number from which on integers of a floating-point type are merged."""
    return 2.0 ** (np.finfo(dtype).nmant + 1)


def _checked_groups(groups: Any) -> NDArray:
    """Return the groups of a part, and raise an error if they cannot be compared."""
    group_numbers(groups)
    return np.asarray(groups)


def drawn_rows(members: NDArray[np.intp], most: int, stream: BitStream) -> NDArray[np.intp]:
    """Draw `most` rows of each group uniformly, or all if there are not more, and return increasing positions."""
    # Priorities are 64-bit words. Two words of a group are equal with probability 2**-64.
    order = np.lexsort((stream.words(len(members)), members))
    sorted_members = members[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = sorted_members[1:] != sorted_members[:-1]
    place = np.arange(len(order))
    rank = place - np.maximum.accumulate(np.where(first, place, 0))
    return np.sort(order[rank < most])
