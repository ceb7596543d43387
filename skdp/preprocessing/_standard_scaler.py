r"""Standardisation by private means and variances.

The number of records, and for each feature the sums of :math:`v` and of :math:`a(v^2 - 1/2)`, are released once and
jointly, where :math:`v \in [-1, 1]` is the clipped and scaled value. Means and variances are computed from the release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from ..checks.params import Checked, Real, Rules, check_positive, columns_of
from ..mechanisms import Mechanism
from ..release.counts import (
    AT_BOUND_SHARE,
    class_sums_mechanism,
    in_real_units,
    largest_value,
    moment_bits,
    moment_weight,
    noise_scale,
    record_moments,
    warn_at_bounds,
)
from ..release.estimator import Records, RowsMixin, Shape
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem
from ..release.units import Unit
from ..schema.declared import scaled
from ..schema.encoding import norm_of_entries
from ..sensitivity import sum_over_rows
from ._bounds import Array, NumericTransformer, by_rows, inner_range

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


@dataclass(frozen=True, eq=False)
class Estimate:
    """The means and variances from the release, in units of half the bounds' distance, relative to their middle."""

    count: float
    means: Array
    variances: Array


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


def _postprocess_sums(sums: Array, mechanism: Mechanism) -> Estimate:
    """Return means and variances. If there are fewer records than noise, values count as evenly spread."""
    d = (len(sums) - 1) // 2
    noise, weight = noise_scale(mechanism), moment_weight(mechanism)
    count = max(float(sums[0]), 0.0)
    if count < max(2 * noise, 0.5):
        return Estimate(count, np.zeros(d), np.full(d, _EVEN))
    means = np.clip(sums[1 : 1 + d] / count, -1.0, 1.0)
    variances = sums[1 + d :] / (weight * count) + 0.5 - means**2
    if noise > 0:
        # The errors of the mean square, and of the square of the mean. The noise of the count is smaller.
        error = noise / count * np.sqrt(1 / weight**2 + 4 * means**2)
        variances = _expected_variances(variances, error)
    return Estimate(count, means, np.clip(variances, _LEAST_VARIANCE, 1.0))


def _expected_variances(noisy: Array, error: Array) -> Array:
    """Return exponentials of the expected logarithms of variances up to 1, given noisy ones and a flat prior."""
    # They have the normal distribution around the noisy variances, truncated at 0 and 1. Therefore a feature with
    # little variance is not scaled up to a large feature of noise. Farther out, its tails underflow.
    noisy = np.clip(noisy, -5 * error, 1 + 5 * error)
    below, above = ndtr(-noisy / error), ndtr((1 - noisy) / error)
    quantiles = noisy + error * ndtri(below + _MIDPOINTS[:, None] * (above - below))
    return np.exp(np.log(np.clip(quantiles, _LEAST_VARIANCE, 1.0)).mean(axis=0))


def _warn_at_bounds(shape: Shape, bounds: tuple[Array, Array], sums: Array, mechanism: Mechanism) -> None:
    """Warn of features whose mean is nearly a bound, by the released number of records and sums."""
    share = 1 - 2 * AT_BOUND_SHARE
    names: Any = range(shape.n_features) if shape.names is None else shape.names
    excess = np.array([[-1.0], [1.0]]) * sums[1 : 1 + shape.n_features] - share * sums[0]
    warn_at_bounds(names, bounds, excess, [noise_scale(mechanism) * math.hypot(1, share)] * 2)


class DPStandardScaler(OneToOneFeatureMixin, RowsMixin, NumericTransformer):
    r"""Standardise features by differentially private means and variances.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1). If 0, the fit is pure epsilon-DP, and the noise grows with the number of
        features. Otherwise, the noise is Gaussian, and grows with the square root of this number. Choose a value far
        below one over the expected number of records.
    bounds : tuple (lower, upper)
        Public bounds of the features: numbers, or one for each column. In `fit`, values beyond are clipped. A warning
        names columns whose released mean is nearly a bound other than 0.
    clip : float, default=3.0
        Standardised values are clipped to [-clip, clip], so that later steps have bounds.
    rows_per_group : int, default=None
        Public limit on the number of rows of one group, such as a person. Further rows of a group are left out at
        random. The guarantee is then for all rows of a group together, and the noise is `rows_per_group` times as
        large. If None, the guarantee is for one row.
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `bounds` and `rows_per_group`. A parameter that is set
        takes precedence over the schema. X is then the table. All of its columns must be declared as `Number`, with
        ``missing="error"``. 0.02 of the budget is spent on a warning about columns with most numbers beyond the bounds.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.

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
        Bound on the L2 norm of transformed rows: `clip` times the square root of the number of columns. The norm of
        most rows is only about this square root. Therefore models that clip rows are often more accurate with a
        slightly larger norm than that.
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
    (:ref:`preprocessing, theorem 1 <preprocessing-theorem-1>`). The rest is post-processing. The guarantee covers
    neither an error for values that are not finite nor the time that `fit` takes.

    The logarithm of a variance is its expected value, given the noisy variance, between 0 and the variance of values at
    both bounds. If the noisy number of records is less than twice its noise, features count as evenly spread between
    their bounds.

    References
    ----------
    .. [1] C. Dwork and A. Smith, "Differential Privacy for Statistics: What We Know and What We Want to Learn", Journal
       of Privacy and Confidentiality 1, 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skdp.preprocessing import DPStandardScaler
    >>> X, _ = load_iris(return_X_y=True)
    >>> scaler = DPStandardScaler(epsilon=1.0, delta=1e-5, bounds=([4, 2, 1, 0], [8, 5, 7, 3]), random_state=0)
    >>> scaler.fit_transform(X).shape
    (150, 4)
    >>> scaler.data_norm_.__round__(3)
    6.0
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
        bounds: Any = None,
        clip: float = 3.0,
        rows_per_group: int | None = None,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.clip = clip
        self.rows_per_group = rows_per_group
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state

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
            _warn_at_bounds(records.shape, bounds, sums, mechanism)
        estimate = _postprocess_sums(sums, mechanism)
        scale = half * np.sqrt(estimate.variances)
        return {
            "mean_": centre + half * estimate.means,
            "scale_": scale,
            "var_": scale**2,
            "n_samples_estimate_": estimate.count,
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
        return by_rows(lambda rows: (rows - self.mean_) / self.scale_, X, X.shape[1], within)

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
