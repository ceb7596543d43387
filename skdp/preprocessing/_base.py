"""The base of the transformers of this package, which read rows and map them one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from ..checks.data import FLOATS, check_quietly, validate_quietly
from ..checks.messages import shown
from ..checks.params import real_numbers
from ..checks.silence import DiscreetMethods
from ..release.mixin import all_or_nothing
from ..schema.mixin import TakesSchema
from ..sensitivity import short_blocks

Array = NDArray[np.float64]

# Limits of ranges, and the least distance of their ends, so that differences, ratios and squares are finite and normal.
_MOST, _LEAST_WIDTH = 1e100, 1e-100


def by_rows(
    mapping: Callable[[Array], NDArray], X: NDArray, n_columns: int, within: tuple[Any, Any] | None = None
) -> NDArray:
    """Apply a mapping to blocks of rows in double precision. Return the type of `X`, clipped to `within`."""
    out = np.empty((len(X), n_columns), dtype=X.dtype)
    # A warning would disclose values.
    with np.errstate(all="ignore"):
        for rows in short_blocks(len(X), max(X.shape[1], n_columns)):
            mapped = mapping(np.asarray(X[rows], dtype=np.float64)).astype(X.dtype, copy=False)
            if within is None:
                out[rows] = mapped
            else:
                np.clip(mapped, *within, out=out[rows])
    return out


def inner_range(low: float, high: float, dtype: np.dtype) -> tuple[Any, Any]:
    """Return the smallest and largest number of a type between two doubles. The first is larger if there is none."""
    with np.errstate(over="ignore", under="ignore"):
        least, largest = np.array([low, high]).astype(dtype)
        if float(least) < low:
            least = np.nextafter(least, dtype.type(np.inf))
        if float(largest) > high:
            largest = np.nextafter(largest, dtype.type(-np.inf))
    return least, largest


def towards_zero(values: Array, dtype: np.dtype) -> NDArray:
    """Round to a type, so that no entry grows."""
    rounded = values.astype(dtype)
    return np.where(np.abs(rounded) > np.abs(values), np.nextafter(rounded, dtype.type(0)), rounded)


class NumericTransformer(TakesSchema, DiscreetMethods, TransformerMixin, BaseEstimator):
    """Read any number of finite dense rows of floating-point numbers, and keep their type."""

    _schema_form = "values"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _rows(self, X: Any, *, reset: bool) -> NDArray:
        return validate_quietly(self, X, dtype=list(FLOATS), ensure_min_samples=0, reset=reset)

    def _transformed_rows(self, X: Any, n_columns: int | None = None) -> NDArray:
        """Read transformed rows."""
        rows: NDArray = check_quietly(X, dtype=list(FLOATS), ensure_min_samples=0)
        if n_columns is not None and rows.shape[1] != n_columns:
            raise ValueError(f"X has {rows.shape[1]} columns, and there are {n_columns} after the transformation")
        return rows


class PublicTransformer(NumericTransformer):
    """Base of transformers that learn only the number and the names of the columns."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def _check(self, n_features: int) -> Any:
        """Check parameters for a number of columns, and return derived values."""
        raise NotImplementedError

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Check parameters, and store the number and names of the columns. Values of X are not used.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite rows. There may be none.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The transformer.
        """
        self._check(self._rows(X, reset=True).shape[1])
        return self


def check_range(value: Any, name: str) -> tuple[float, float]:
    """Return a pair of numbers in increasing order, within limits."""
    ends = real_numbers(value)
    low, high = (math.nan, math.nan) if ends is None or ends.shape != (2,) else ends.tolist()
    if not (low >= -_MOST and high <= _MOST and high - low >= _LEAST_WIDTH):
        raise ValueError(
            f"{name} must be a pair of numbers in [{-_MOST:g}, {_MOST:g}], the lower one first, at least "
            f"{_LEAST_WIDTH:g} apart, got {shown(value)}"
        )
    return low, high
