"""What users say about the columns of X: which are categorical, how many categories they have, what bounds the others.

All of it is public. Messages name the parameter and its value.
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
    """Return the number of categories of each categorical column; their sum is at most `most`."""
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


def positions_of(
    groups: Iterable[tuple[str, Sequence[Any]]], n_features: int, names: NDArray | None, named: bool = True
) -> list[list[int]]:
    """Return the positions of the columns that each parameter names; a column may occur once."""
    # Without `named`, the names of X are unknown, and a name stands for any column that is left: for a plan, it does
    # not matter which.
    groups = list(groups)
    known = {} if names is None else {name: i for i, name in enumerate(names)}
    taken = {column for _, columns in groups for column in columns if not isinstance(column, str)}
    free = iter([i for i in range(n_features) if i not in taken])
    found: list[list[int]] = []
    for parameter, columns in groups:
        positions = []
        for column in columns:
            place = (known.get(column) if named else next(free, None)) if isinstance(column, str) else column
            if place is None or place >= n_features:
                raise ValueError(f"{parameter} names the column {column!r}, which X does not have")
            positions.append(int(place))
        found.append(positions)
    used = [place for positions in found for place in positions]
    if len(set(used)) < len(used):
        raise ValueError(f"a column may occur once only in {' and '.join(parameter for parameter, _ in groups)}")
    return found


def bounds_of_columns(
    bounds: Any, n_features: int, used: NDArray[np.intp], numeric: NDArray[np.intp]
) -> tuple[Array, Array]:
    """Return lower and upper bounds of shape (n_features,), which are 0 and 1 for columns that are not in `used`."""
    # `bounds` may be two numbers, or two sequences for all columns, for the numeric ones (`used` is among them), or for
    # those in `used`.
    lower, upper = np.zeros(n_features), np.ones(n_features)
    if len(used) == 0:
        return lower, upper
    pair = check_bounds(bounds, "bounds", "the numeric features")
    for columns in (used, numeric):
        if pair[0].ndim and len(pair[0]) == len(columns) and np.all(np.isin(used, columns)):
            everywhere = np.zeros(n_features), np.ones(n_features)
            for end, given in zip(everywhere, pair, strict=True):
                end[columns] = given
            pair = everywhere
            break
    for end, given in zip((lower, upper), columns_of(pair, "bounds", n_features), strict=True):
        end[used] = given[used]
    return lower, upper
