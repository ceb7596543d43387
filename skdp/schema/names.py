"""Declarations of users about the columns of X: categorical columns, numbers of categories, and bounds of the others.

All of them are public. Messages name the parameter and its value.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks.params import check_bounds, check_integer, columns_of, is_list
from ..checks.values import shown

Array = NDArray[np.float64]


def named_columns(value: Any, name: str) -> tuple[int | None, tuple[Any, ...]]:
    """Return the length of a mask, or None without a mask, and the columns by position or by name."""
    message = f"{name} must be a sequence of positions or names of columns, or a mask"
    if value is None:
        return None, ()
    if isinstance(value, str | bytes):
        raise ValueError(message)
    # With dtype object, a position among names stays a number.
    array = np.asarray(value, dtype=object)
    if array.ndim != 1:
        raise ValueError(message)
    entries = array.tolist()
    if entries and all(isinstance(entry, bool | np.bool_) for entry in entries):
        return len(entries), tuple(i for i, entry in enumerate(entries) if entry)
    return None, tuple(column_name(entry, name) for entry in entries)


def column_name(value: Any, name: str) -> Any:
    """Return the position or name of a column, or refuse the value."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 0:
        raise ValueError(f"{name} must hold positions, from 0, or names of columns, got {shown(value)}")
    return int(value)


def check_n_categories(value: Any, n_columns: int, most: int) -> tuple[int, ...]:
    """Return the number of categories of each categorical column. Their sum is at most `most`."""
    if value is None:
        if n_columns == 0:
            return ()
        raise ValueError(
            "n_categories must be given: the number of categories of each categorical feature, from its code book. "
            "Categories are coded 0, 1, ... They are never read from the data, because that would be a release"
        )
    one_by_one = is_list(value)
    counts = list(value) if one_by_one else [value] * max(n_columns, 1)
    checked = tuple(check_integer(count, "n_categories", least=1) for count in counts)
    if not one_by_one:
        checked = checked[:n_columns]
    if len(checked) != n_columns:
        raise ValueError(
            f"n_categories must have one entry for each of the {n_columns} categorical features, got {len(checked)}"
        )
    if sum(checked) > most:
        raise ValueError(f"n_categories must add up to at most {most}")
    return checked


def check_pairs(value: Any) -> tuple[tuple[Any, Any], ...]:
    """Return the pairs of columns that `interactions` names."""
    if value is None:
        return ()
    if not is_list(value) or not all(is_list(pair) and len(pair) == 2 for pair in value):
        raise ValueError("interactions must be a list of pairs of columns, by position or name")
    return distinct_pairs((column_name(a, "interactions"), column_name(b, "interactions")) for a, b in value)


def distinct_pairs(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, Any], ...]:
    """Return pairs of different columns, or refuse them."""
    found = tuple(pairs)
    if any(a == b for a, b in found) or len({frozenset(pair) for pair in found}) < len(found):
        raise ValueError("interactions must be pairs of different columns, each pair once")
    return found


def positions_of(
    groups: Sequence[tuple[str, Sequence[Any]]], n_features: int, names: NDArray | None, named: bool = True
) -> dict[Any, int]:
    """Return the position of each column that a parameter names. A column may occur once."""
    # Without `named`, the names of X are unknown, and a name stands for any column that is left, because a plan does
    # not depend on which.
    known = {} if names is None else {name: i for i, name in enumerate(names)}
    taken = {column for _, columns in groups for column in columns if not isinstance(column, str)}
    free = iter([i for i in range(n_features) if i not in taken])
    found: dict[Any, int] = {}
    for parameter, columns in groups:
        for column in columns:
            place = (known.get(column) if named else next(free, None)) if isinstance(column, str) else column
            if place is None or place >= n_features:
                raise ValueError(f"{parameter} names the column {column!r}, which X does not have")
            found[column] = int(place)
    if len(set(found.values())) < len(found):
        raise ValueError(f"a column may occur once only in {' and '.join(name for name, used in groups if used)}")
    return found


def bounds_of_columns(
    bounds: Any, n_features: int, used: NDArray[np.intp], numeric: NDArray[np.intp]
) -> tuple[Array, Array]:
    """Return lower and upper bounds of the columns in `used`."""
    # `bounds` may be two numbers, or two sequences for all columns, for the numeric ones (`used` is among them), or for
    # those in `used`.
    if len(used) == 0:
        return np.empty(0), np.empty(0)
    lower, upper = check_bounds(bounds, "bounds", "the numeric features")
    if lower.ndim and len(lower) in (len(used), len(numeric)):
        own = slice(None) if len(lower) == len(used) else np.searchsorted(numeric, used)
    else:
        lower, upper = columns_of((lower, upper), "bounds", n_features)
        own = used
    return lower[own], upper[own]
