"""What users say about the columns of X, checked."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._params import check_bounds, check_integer, columns_of
from ._structure import Columns

Array = NDArray[np.float64]

# Tables of places have one entry for each tree and category.
_MOST_CATEGORIES = 2**16


@dataclass(frozen=True)
class ColumnParameters:
    """The parameters about columns, checked as far as that goes without their number.

    Parameters
    ----------
    mask_length : int or None
        If a mask was given, its length.
    categorical : tuple
        Positions or names.
    n_categories : tuple of int
        Of these.
    bounds : tuple of ndarray or None
        Lower and upper.
    """

    mask_length: int | None
    categorical: tuple[Any, ...]
    n_categories: tuple[int, ...]
    bounds: tuple[Array, Array] | None


def check_columns(bounds: Any, categorical_features: Any, n_categories: Any) -> ColumnParameters:
    """Check the parameters that say what the columns are."""
    mask_length, categorical = _named(categorical_features)
    return ColumnParameters(
        mask_length,
        categorical,
        _check_n_categories(n_categories, len(categorical)),
        None if bounds is None else check_bounds(bounds, "bounds", "the numeric features"),
    )


def _named(value: Any) -> tuple[int | None, tuple[Any, ...]]:
    message = "categorical_features must be a sequence of positions or names of columns, or a mask"
    if value is None:
        return None, ()
    if isinstance(value, str | bytes):
        raise ValueError(message)
    array = np.asarray(value)
    if array.ndim != 1:
        raise ValueError(message)
    if array.dtype.kind == "b":
        return len(array), tuple(np.flatnonzero(array).tolist())
    names = array.tolist()
    for name in names:
        good = isinstance(name, str) or (isinstance(name, numbers.Integral) and int(name) >= 0)
        if not good:
            raise ValueError(f"categorical_features must hold positions, from 0, or names of columns, got {name!r}")
    if len(set(names)) < len(names):
        raise ValueError("categorical_features must not hold a column twice")
    return None, tuple(names)


def _check_n_categories(value: Any, n_columns: int) -> tuple[int, ...]:
    if value is None:
        if n_columns == 0:
            return ()
        raise ValueError(
            "n_categories must be given: the number of categories of each categorical feature, from its code book. "
            "Categories are coded 0, 1, ... They are never read from the data, because that would be a release"
        )
    counts = [value] * n_columns if np.ndim(value) == 0 else np.asarray(value).tolist()
    if np.ndim(value) == 0:
        check_integer(value, "n_categories", least=1)
    checked = tuple(check_integer(count, "n_categories", least=1) for count in counts)
    if len(checked) != n_columns:
        raise ValueError(
            f"n_categories must have one entry for each of the {n_columns} categorical features, got {len(checked)}"
        )
    if sum(checked) > _MOST_CATEGORIES:
        raise ValueError(f"n_categories must add up to at most {_MOST_CATEGORIES}")
    return checked


def columns_for(parameters: ColumnParameters, n_features: int, names: NDArray | None, named: bool = True) -> Columns:
    """Return what each of `n_features` columns is.

    Without `named`, names stand for any columns that are left: for a plan, it does not matter which.
    """
    if parameters.mask_length not in (None, n_features):
        raise ValueError(
            f"categorical_features is a mask of {parameters.mask_length} columns, and there are {n_features}"
        )
    known = {} if names is None else {name: i for i, name in enumerate(names)}
    taken = {name for name in parameters.categorical if not isinstance(name, str)}
    free = iter([i for i in range(n_features) if i not in taken])
    positions = []
    for name in parameters.categorical:
        found = (known.get(name) if named else next(free, None)) if isinstance(name, str) else int(name)
        if found is None or found >= n_features:
            raise ValueError(f"categorical_features names the column {name!r}, which X does not have")
        positions.append(found)
    if len(set(positions)) < len(positions):
        raise ValueError("categorical_features must not hold a column twice")
    n_categories = np.zeros(n_features, dtype=np.intp)
    n_categories[positions] = parameters.n_categories
    numeric = np.flatnonzero(n_categories == 0)
    lower, upper = np.zeros(n_features), np.maximum(n_categories - 1.0, 0.0)
    if len(numeric):
        bounds = check_bounds(parameters.bounds, "bounds", "the numeric features")
        if not (bounds[0].ndim and len(bounds[0]) == len(numeric)):
            bounds = tuple(end[numeric] for end in columns_of(bounds, "bounds", n_features))  # type: ignore[assignment]
        lower[numeric], upper[numeric] = bounds
    return Columns(lower, upper, n_categories)
