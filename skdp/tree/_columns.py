"""What users say about the columns of X, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks.params import check_bounds
from ..schema.names import bounds_of_columns, check_n_categories, named_columns, positions_of
from ._structure import Columns

Array = NDArray[np.float64]

# Tables of places have one entry for each tree and category.
_MOST_CATEGORIES = 2**16


@dataclass(frozen=True)
class ColumnParameters:
    """Hold the parameters that describe columns, checked as far as possible without the number of columns."""

    mask_length: int | None
    categorical: tuple[Any, ...]
    n_categories: tuple[int, ...]
    bounds: tuple[Array, Array] | None


def check_columns(bounds: Any, categorical_features: Any, n_categories: Any) -> ColumnParameters:
    """Check the parameters that say what the columns are."""
    mask_length, categorical = named_columns(categorical_features, "categorical_features")
    if len(set(categorical)) < len(categorical):
        raise ValueError("categorical_features must not hold a column twice")
    return ColumnParameters(
        mask_length,
        categorical,
        check_n_categories(n_categories, len(categorical), _MOST_CATEGORIES),
        None if bounds is None else check_bounds(bounds, "bounds", "the numeric features"),
    )


def columns_for(parameters: ColumnParameters, n_features: int, names: NDArray | None, named: bool = True) -> Columns:
    """Return the description of `n_features` columns."""
    # Without `named`, names stand for any columns that are left, because a plan does not depend on them.
    if parameters.mask_length not in (None, n_features):
        raise ValueError(
            f"categorical_features is a mask of {parameters.mask_length} columns, and there are {n_features}"
        )
    (positions,) = positions_of([("categorical_features", parameters.categorical)], n_features, names, named)
    n_categories = np.zeros(n_features, dtype=np.intp)
    n_categories[positions] = parameters.n_categories
    numeric = np.flatnonzero(n_categories == 0)
    lower, upper = bounds_of_columns(parameters.bounds, n_features, numeric, numeric)
    lower[positions], upper[positions] = 0.0, n_categories[positions] - 1.0
    return Columns(lower, upper, n_categories)
