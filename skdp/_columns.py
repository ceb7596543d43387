"""What users say about the columns of X: which are categorical, how many categories they have, what bounds the others.

All of it is public. Messages name the parameter and its value.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._params import check_bounds, check_integer, columns_of, is_list
from ._values import shown

Array = NDArray[np.float64]


def named_columns(value: Any, name: str) -> tuple[int | None, tuple[Any, ...]]:
    """Return the length of a mask, if it is one, and columns by position or by name.

    Parameters
    ----------
    value : object
        What a user passed: None, positions, names, or a mask.
    name : str
        The parameter's name.

    Returns
    -------
    mask_length : int or None
    columns : tuple of int and str
    """
    message = f"{name} must be a sequence of positions or names of columns, or a mask"
    if value is None:
        return None, ()
    if isinstance(value, str | bytes):
        raise ValueError(message)
    # As objects, so that a position among names stays one.
    array = np.asarray(value, dtype=object)
    if array.ndim != 1:
        raise ValueError(message)
    entries = array.tolist()
    if entries and all(isinstance(entry, bool | np.bool_) for entry in entries):
        return len(entries), tuple(i for i, entry in enumerate(entries) if entry)
    return None, tuple(column_name(entry, name) for entry in entries)


def column_name(value: Any, name: str) -> Any:
    """Return a column's position or name.

    Parameters
    ----------
    value : object
        What a user passed.
    name : str
        The parameter's name.

    Returns
    -------
    column : int or str
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 0:
        raise ValueError(f"{name} must hold positions, from 0, or names of columns, got {shown(value)}")
    return int(value)


def check_n_categories(value: Any, n_columns: int, most: int) -> tuple[int, ...]:
    """Return the numbers of categories of the categorical columns.

    Parameters
    ----------
    value : object
        What a user passed: a number for all, or one for each.
    n_columns : int
        Number of categorical columns.
    most : int
        Limit of their sum.

    Returns
    -------
    n_categories : tuple of int
    """
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
    """Return the positions of columns that parameters name, each column once.

    Parameters
    ----------
    groups : iterable of (str, sequence)
        Names of parameters, and the columns that each holds.
    n_features : int
        Number of columns.
    names : ndarray or None
        Names of the columns.
    named : bool, default=True
        Whether `names` are known. Otherwise names stand for any columns that are left: for a plan, it does not matter
        which.

    Returns
    -------
    positions : list of list of int
        For each parameter.
    """
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
    """Return lower and upper bounds of the columns in `used`, in the places of all columns; elsewhere 0 and 1.

    Parameters
    ----------
    bounds : object
        What a user passed: a pair of numbers, or of sequences for all columns, for the numeric ones, or for those used.
    n_features : int
        Number of columns.
    used : ndarray of int
        Columns that need bounds.
    numeric : ndarray of int
        Columns that are not categorical, these among them.

    Returns
    -------
    lower, upper : ndarray of shape (n_features,)
    """
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
