r"""Clipping and scaling by public numbers or by private means and variances, and the base of all transformers.

Rows are mapped one by one. Therefore neighbouring data sets stay neighbours. Public numbers use no budget. For private
numbers, the number of records, and for each feature the sums of :math:`v` and of :math:`a(v^2 - 1/2)`, are released
once and jointly, where :math:`v \in [-1, 1]` is the clipped and scaled value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..checks.data import FLOATS, check_quietly, validate_quietly
from ..checks.params import (
    Bounds,
    By,
    Checked,
    Real,
    Rules,
    anything,
    check_data_norm,
    check_parameters,
    check_positive,
    columns_of,
    real_numbers,
    shown,
)
from ..checks.silence import DiscreetMethods
from ..mechanisms import Mechanism
from ..release.counts import (
    AT_BOUND_SHARE,
    bound_parts,
    class_sums_mechanism,
    in_real_units,
    largest_value,
    moment_bits,
    moment_weight,
    noise_scale,
    record_moments,
    warn_of_mismatch,
)
from ..release.estimator import Records, RowsMixin, Shape
from ..release.mixin import all_or_nothing
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem
from ..release.units import Unit
from ..schema.declared import scaled
from ..schema.encoding import TakesSchema, norm_of_entries
from ..sensitivity import by_column, clip_rows, short_blocks, sum_over_rows

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
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `bounds`. X is then the table. All of its columns must be
        declared as `Number`, with ``missing="error"``.
    feature_range : tuple (low, high), default=(-1, 1)
        Range to which the bounds are mapped. Numbers from -1e100 to 1e100.

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
    >>> from skdp import BoundsScaler, Number, Schema
    >>> schema = Schema({"age": Number(0, 100, missing="error")})
    >>> BoundsScaler(schema=schema).fit_transform({"age": [25, 120]}).tolist()
    [[-0.5], [1.0]]
    """

    _parameter_rules: ClassVar[Rules] = {
        "bounds": Bounds("the features"),
        "feature_range": check_range,
        "schema": anything,
    }

    def __init__(self, bounds: Any = None, *, schema: Any = None, feature_range: Any = (-1, 1)) -> None:
        self.bounds = bounds
        self.schema = schema
        self.feature_range = feature_range

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
                f"feature_range {self.feature_range!r} holds no number in single precision: pass X in double precision"
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


# Number of entries of a block of rows. With their squares, they stay in a cache.
_ENTRIES = 2**16

_SUMS = "number of records, sums and sums of squares"

_THEOREM = Theorem("Preprocessing", 1)

#: Variance of values that are spread evenly between the bounds, in units of half their distance.
_EVEN = 1 / 3

#: The smallest variance, in the same units.
_LEAST_VARIANCE = 1e-12

#: Number of quantiles that represent a distribution.
_MIDPOINTS = (np.arange(64) + 0.5) / 64


def make_plan(parameters: Checked, n_features: int) -> PrivacyGuarantee:
    """Return the one release."""
    epsilon, delta, unit = parameters.epsilon, parameters.delta, Unit(parameters.rows_per_group)
    mechanism, event = class_sums_mechanism(epsilon, delta, 1, n_features, 1 + 2 * n_features, unit.rows)
    return unit.stated(PrivacyGuarantee(epsilon, delta, (event,), (Release(_SUMS, mechanism, 1.0, _THEOREM),)))


def record_sums(X: NDArray, centre: Array, half: Array, mechanism: Mechanism) -> Array:
    """Return the number of records, their sums, and their weighted sums of shifted squares."""
    d = len(centre)
    bits = moment_bits(mechanism, d)
    largest = largest_value(bits)

    def block(rows: NDArray) -> NDArray:
        out = np.empty(1 + 2 * d, dtype=np.float64 if bits is None else np.int64)
        # The integers are below 2**37 in all, so that doubles add them exactly.
        sums = np.ones(len(rows)) @ record_moments(scaled(rows, centre, half, largest), bits)
        sums[d:] -= largest / 2 * len(rows)
        out[0], out[1:] = len(rows), sums
        return out

    return in_real_units(sum_over_rows(block, X, block_rows=max(_ENTRIES // d, 128)), 1, d, mechanism)


def _postprocess_sums(sums: Array, mechanism: Mechanism) -> tuple[float, Array, Array]:
    """Return the number of records, means and variances, in units of half the bounds' distance from their middle.

    If there are fewer records than noise, values count as evenly spread.
    """
    d = (len(sums) - 1) // 2
    noise, weight = noise_scale(mechanism), moment_weight(mechanism)
    count = max(float(sums[0]), 0.0)
    if count < max(2 * noise, 0.5):
        return count, np.zeros(d), np.full(d, _EVEN)
    means = np.clip(sums[1 : 1 + d] / count, -1.0, 1.0)
    variances = sums[1 + d :] / (weight * count) + 0.5 - means**2
    if noise > 0:
        # The errors of the mean square, and of the square of the mean. The noise of the count is smaller.
        error = noise / count * np.sqrt(1 / weight**2 + 4 * means**2)
        variances = _expected_variances(variances, error)
    return count, means, np.clip(variances, _LEAST_VARIANCE, 1.0)


def _expected_variances(noisy: Array, error: Array) -> Array:
    """Return exponentials of the expected logarithms of variances up to 1, given noisy ones and a flat prior."""
    # They have the normal distribution around the noisy variances, truncated at 0 and 1. Therefore a feature with
    # little variance is not scaled up to a large feature of noise. Farther out, its tails underflow.
    noisy = np.clip(noisy, -5 * error, 1 + 5 * error)
    below, above = ndtr(-noisy / error), ndtr((1 - noisy) / error)
    quantiles = noisy + error * ndtri(below + _MIDPOINTS[:, None] * (above - below))
    return np.exp(np.log(np.clip(quantiles, _LEAST_VARIANCE, 1.0)).mean(axis=0))


class DPStandardScaler(OneToOneFeatureMixin, RowsMixin, NumericTransformer):
    r"""Standardise features by differentially private means and variances.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        In [0, 1), far below one over the number of records. If 0, the fit is pure epsilon-DP, and the noise grows with
        the number of features. Otherwise, it grows with its square root.
    schema : Schema, default=None
        Declaration of the columns of X, in place of `bounds` and `rows_per_group`, all declared as `Number` with
        ``missing="error"``. Explicit parameters override it.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.
    clip : float, default=3.0
        Standardised values are clipped to [-clip, clip], so that later steps have bounds.
    bounds : tuple (lower, upper)
        Public bounds of the features: numbers, or one for each column. In `fit`, values beyond are clipped. A warning
        names columns whose released mean is nearly a bound other than 0.
    rows_per_group : int, default=None
        Public limit on the rows of one group, such as a person. Further rows are left out at random. The guarantee is
        then for all rows of a group, with `rows_per_group` times the noise. If None, it is for one row.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Noisy means of the clipped features.
    var_ : ndarray of shape (n_features,)
        Noisy variances of the clipped features, increased by the standard deviation of their noise.
    scale_ : ndarray of shape (n_features,)
        Square roots of the variances.
    n_samples_estimate_ : float
        Noisy number of records.
    data_norm_ : float
        Bound on the L2 norm of transformed rows: `clip` times the square root of the number of columns.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    BoundsScaler : Scales by the bounds, which uses no budget.

    Notes
    -----
    **Privacy.** One record adds 1 to the count, and :math:`(v, a(v^2 - 1/2))` for each feature. This moves them
    together by :math:`\sqrt{1 + (1 + a^2/4) d}` in L2 norm and by :math:`1 + (1 + a/2) d` in L1 norm
    (:ref:`preprocessing, theorem 1 <preprocessing-theorem-1>`). With a schema, 0.02 of the budget is spent on a warning
    about columns with most numbers beyond the bounds. The rest is post-processing.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPStandardScaler, Number, Schema
    >>> k = np.arange(5000)
    >>> table = {"age": 18 + k % 72, "visits": k % 7}
    >>> schema = Schema(
    ...     {
    ...         "age": Number(0, 120, missing="error"),
    ...         "visits": Number(0, 50, missing="error"),
    ...     }
    ... )
    >>> scaler = DPStandardScaler(epsilon=1.0, schema=schema, random_state=0)
    >>> scaler.fit(table).mean_.round()
    array([53.,  3.])
    """

    _parameter_rules: ClassVar[Rules] = {"clip": Real()}
    _takes_parts = True
    _counts_outside = ("entries",)
    _fixes_cost = True
    _released = frozenset({"mean_", "var_", "scale_", "n_samples_estimate_"})

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        clip: float = 3.0,
        bounds: Any = None,
        rows_per_group: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.clip = clip
        self.bounds = bounds
        self.rows_per_group = rows_per_group

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Estimate means and variances, and spend epsilon and delta.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite features, clipped to `bounds`. There may be no rows.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), default=None
            Group of each row, as a number or a text. Required with `rows_per_group`, unless `schema` declares it.

        Returns
        -------
        self : object
            The fitted scaler.

        Raises
        ------
        BudgetError
            If the accountant does not admit the fit. Nothing is computed from the data then.
        """
        return self._fit(X, groups=groups)

    def _plan(self, parameters: Checked, shape: Shape) -> tuple[PrivacyGuarantee, tuple[Array, Array]]:
        bounds = columns_of(parameters.bounds, "bounds", shape.n_features)
        return make_plan(parameters, shape.n_features), bounds

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Checked, bounds: tuple[Array, Array]
    ) -> dict[str, Any]:
        lower, upper = bounds
        centre, half = lower / 2 + upper / 2, upper / 2 - lower / 2
        mechanism = session.mechanism(_SUMS)
        sums = session.release(_SUMS, record_sums(records.X, centre, half, mechanism))
        if not self._outside()[0]:
            names: Any = range(len(centre)) if records.shape.names is None else records.shape.names
            deviation = noise_scale(mechanism) * math.hypot(1, 1 - 2 * AT_BOUND_SHARE)
            parts = bound_parts(names, bounds, sums[0], sums[1 : 1 + len(centre)], [deviation] * 2)
            warn_of_mismatch(parts, labels=None)
        count, means, variances = _postprocess_sums(sums, mechanism)
        scale = half * np.sqrt(variances)
        return {
            "mean_": centre + half * means,
            "scale_": scale,
            "var_": scale**2,
            "n_samples_estimate_": count,
        }

    @property
    def data_norm_(self) -> float:
        """Bound on the L2 norm of transformed rows."""
        check_is_fitted(self, "privacy_")
        return norm_of_entries(check_positive(self.clip, "clip"), self._n_columns)

    def transform(self, X: Any) -> NDArray:
        """Standardise and clip rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite rows.

        Returns
        -------
        scaled : ndarray of shape (n_samples, n_features)
            Values within [-clip, clip], also after rounding. Rows in single precision stay in single precision.
        """
        check_is_fitted(self, "privacy_")
        X = self._rows(X, reset=False)
        clip = check_positive(self.clip, "clip")
        within = inner_range(-clip, clip, X.dtype)

        def scaled(rows: Array) -> Array:
            out = np.empty(rows.shape)
            by_column(np.subtract, rows, self.mean_, out)
            by_column(np.divide, out, self.scale_, out)
            return out

        return by_rows(scaled, X, X.shape[1], within)

    def inverse_transform(self, X: Any) -> NDArray:
        """Undo the standardisation. Clipped values stay clipped.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Standardised rows.

        Returns
        -------
        original : ndarray of shape (n_samples, n_features)
            In the units of the features.
        """
        check_is_fitted(self, "privacy_")
        X = self._transformed_rows(X, self._n_columns)
        return by_rows(lambda rows: rows * self.scale_ + self.mean_, X, X.shape[1])
