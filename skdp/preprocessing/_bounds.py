"""Clipping and scaling by public numbers, and the base of all transformers, which map rows one by one.

Therefore neighbouring data sets stay neighbours. Public numbers use no budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..checks.data import FLOATS, check_quietly, validate_quietly
from ..checks.params import (
    Bounds,
    By,
    Rules,
    anything,
    check_data_norm,
    check_parameters,
    columns_of,
    real_numbers,
    shown,
)
from ..checks.silence import DiscreetMethods
from ..release.mixin import all_or_nothing
from ..schema.encoding import TakesSchema, norm_of_entries
from ..sensitivity import clip_rows, short_blocks

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


class BoundsScaler(OneToOneFeatureMixin, PublicTransformer):
    r"""Clip each feature to public bounds, and scale the bounds to a range.

    Parameters
    ----------
    bounds : tuple (lower, upper)
        Public bounds of the features: numbers, or one for each column. Values beyond are clipped, without a warning.
    feature_range : tuple (low, high), default=(-1, 1)
        Range to which the bounds are mapped. Numbers from -1e100 to 1e100.
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `bounds`. X is then the table. All of its columns must be
        declared as `Number`, with ``missing="error"``.

    Attributes
    ----------
    data_norm_ : float
        Bound on the L2 norm of transformed rows, for the `data_norm` of a later step.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    DPStandardScaler : Scales by private means and variances.
    private_bounds : Private bounds, if no public bounds are known.

    Notes
    -----
    **Privacy.** Each row is mapped separately by public numbers. Therefore neighbouring data sets stay neighbours, and
    no budget is used. Nothing is learned from values.

    Examples
    --------
    >>> from skdp.preprocessing import BoundsScaler
    >>> BoundsScaler(([0, 0], [10, 100])).fit_transform([[5, 100], [12, -3]]).tolist()
    [[0.0, 1.0], [1.0, -1.0]]
    """

    _parameter_rules: ClassVar[Rules] = {
        "bounds": Bounds("the features"),
        "feature_range": check_range,
        "schema": anything,
    }

    def __init__(self, bounds: Any = None, *, feature_range: Any = (-1, 1), schema: Any = None) -> None:
        self.bounds = bounds
        self.feature_range = feature_range
        self.schema = schema

    def _check(self, n_features: int) -> tuple[Array, Array, float, float]:
        parameters = check_parameters(self, ("bounds",))
        return *columns_of(parameters.bounds, "bounds", n_features), *parameters.feature_range

    @property
    def data_norm_(self) -> float:
        """Bound on the L2 norm of transformed rows."""
        check_is_fitted(self, "n_features_in_")
        _, _, low, high = self._check(self.n_features_in_)
        return norm_of_entries(max(abs(low), abs(high)), self.n_features_in_)

    def transform(self, X: Any) -> NDArray:
        """Clip and scale rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite rows.

        Returns
        -------
        scaled : ndarray of shape (n_samples, n_features)
            Values within `feature_range`, also after rounding. Rows in single precision stay in single precision.
        """
        X = self._rows(X, reset=False)
        lower, upper, low, high = self._check(X.shape[1])
        within = inner_range(low, high, X.dtype)
        if within[0] > within[1]:
            raise ValueError(
                f"feature_range {self.feature_range!r} holds no number in single precision: choose another one, or "
                "pass X in double precision"
            )

        def scale(rows: Array) -> Array:
            shares = (np.clip(rows, lower, upper) - lower) / (upper - lower)
            return low + shares * (high - low)

        return by_rows(scale, X, X.shape[1], within)

    def inverse_transform(self, X: Any) -> NDArray:
        """Undo the scaling. Clipped values stay clipped.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Scaled rows.

        Returns
        -------
        original : ndarray of shape (n_samples, n_features)
            Values within the bounds, except for rounding, if `X` is within `feature_range`.
        """
        X = self._transformed_rows(X)
        lower, upper, low, high = self._check(X.shape[1])
        return by_rows(lambda rows: lower + (rows - low) / (high - low) * (upper - lower), X, X.shape[1])


class NormClipper(OneToOneFeatureMixin, PublicTransformer):
    """Scale rows down to a public L2 norm. Shorter rows are not changed.

    Private models with a parameter `data_norm` do this themselves. Use this step for models without this parameter, or
    for rows of a part of the columns.

    Parameters
    ----------
    data_norm : float
        Public clipping bound: the largest L2 norm of a row. Must be strictly positive.

    Attributes
    ----------
    data_norm_ : float
        Same as `data_norm`.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    BoundsScaler : Bounds each feature separately.

    Notes
    -----
    **Privacy.** Each row is mapped separately by public numbers. Therefore neighbouring data sets stay neighbours, and
    no budget is used. Nothing is learned from values.

    Examples
    --------
    >>> from skdp.preprocessing import NormClipper
    >>> NormClipper(1.0).fit_transform([[3, 4], [0.3, 0.4]]).round(3).tolist()
    [[0.6, 0.8], [0.3, 0.4]]
    """

    _parameter_rules: ClassVar[Rules] = {"data_norm": By(check_data_norm)}

    def __init__(self, data_norm: float | None = None) -> None:
        self.data_norm = data_norm

    def _check(self, n_features: int) -> float:
        return check_parameters(self).data_norm

    @property
    def data_norm_(self) -> float:
        """Bound on the L2 norm of transformed rows."""
        return check_parameters(self).data_norm

    def transform(self, X: Any) -> NDArray:
        """Clip rows to the norm.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite rows.

        Returns
        -------
        clipped : ndarray of shape (n_samples, n_features)
            Rows of L2 norm at most `data_norm`, also after rounding to single precision. Rows in single precision stay
            in single precision.
        """
        X = self._rows(X, reset=False)
        norm = self._check(X.shape[1])
        return by_rows(lambda rows: towards_zero(clip_rows(rows, norm).array, X.dtype), X, X.shape[1])
