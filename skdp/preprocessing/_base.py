"""What the transformers here share: how rows are read, and that they are mapped one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from .._data import FLOATS, check_quietly, validate_quietly

Array = NDArray[np.float64]

# Rows that are mapped at once.
_ROWS = 4096


def by_rows(mapping: Callable[[Array], NDArray], X: NDArray, n_columns: int) -> NDArray:
    """Return what a mapping makes of blocks of rows, computed in double precision, in the type of `X`."""
    out = np.empty((len(X), n_columns), dtype=X.dtype)
    for start in range(0, len(X), _ROWS):
        rows = slice(start, start + _ROWS)
        with np.errstate(over="ignore", under="ignore"):
            out[rows] = mapping(np.asarray(X[rows], dtype=np.float64))
    return out


def norm_of_entries(largest: Any, n_columns: int) -> float:
    """Return a bound on the L2 norm of rows whose entries are at most `largest` in size, rounded up."""
    return float(np.linalg.norm(np.broadcast_to(largest, (n_columns,)))) * (1 + 2.0**-40)


class NumericTransformer(TransformerMixin, BaseEstimator):
    """Reads finite dense rows of floating-point numbers, any number of them, and keeps their type."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _rows(self, X: Any, *, reset: bool) -> NDArray:
        rows: NDArray = validate_quietly(self, X, dtype=list(FLOATS), ensure_min_samples=0, reset=reset)
        return rows

    def _transformed_rows(self, X: Any, n_columns: int | None = None) -> NDArray:
        """Read rows that were transformed."""
        rows: NDArray = check_quietly(X, dtype=list(FLOATS), ensure_min_samples=0)
        if n_columns is not None and rows.shape[1] != n_columns:
            raise ValueError(f"X has {rows.shape[1]} columns, and there are {n_columns} after the transformation")
        return rows


class PublicTransformer(NumericTransformer):
    """Learns nothing from the data but the number and the names of their columns."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def _check(self, n_features: int) -> Any:
        """Check parameters for so many columns, and return what follows from them."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check parameters, and note number and names of the columns. Nothing is learned from values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite rows; there may be none.
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
    """Return a pair of finite numbers in increasing order."""
    try:
        low, high = (float(end) for end in value)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"{name} must be a pair of finite numbers, the lower one first, got {value!r}")
    return low, high
