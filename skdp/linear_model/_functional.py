r"""Linear regression by the functional mechanism (Zhang et al. 2012), which is sufficient statistics perturbation.

The squared loss is a polynomial of the coefficients, and the coefficients of this polynomial are the second moments
:math:`(X^\top X, X^\top y)`. These moments are released once, with noise (see ``moments_l2`` for their
sensitivity). `Units.coefficients` computes ``coef_`` from the release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ..checks.data import of_valid_rows
from ..checks.params import Checked, Or, Real, Rules, check_boolean
from ..mechanisms import BitStream
from ..release.estimator import GroupsMixin, ManyTargetsMixin, Records, Shape
from ..release.session import PrivacyGuarantee, ReleaseSession
from ..release.units import Unit
from ..sensitivity import row_products, short_blocks, with_data
from ..solvers.moments import (
    MOMENTS,
    REGRESSION_WEIGHTS,
    RIDGE,
    Array,
    Geometry,
    Moments,
    Noise,
    Spectrum,
    noise_of,
    plan,
    trimmed,
    warn_of_columns,
)
from ..solvers.regularised import Scaling
from ..solvers.target_range import Located, TargetRange

# Multiples of the ridge: for an almost unpenalised intercept, and for the coefficients of features with it. With the
# last one, these coefficients are zeros.
_SPARED = 2.0**-6
_MULTIPLES = (1.0, 8.0, 64.0, 2.0**20)

# Another ridge is used if it is better than the default by so many standard deviations.
_SURE_BY = 1.0

# The solution is shrunk towards the mean of the targets as if the gain were larger, by this part of its noise.
_SPARED_NOISE = 0.25


@dataclass(frozen=True, eq=False)
class Prediction:
    """Hold a ridge solution, the inverse of its matrix, and the parts of its estimated squared error."""

    # The inverse is in the basis of the eigenvectors of the Gram matrix.
    square: float  # The squared lengths of predictions of rows, w'Gw.
    product: float  # The products of predictions with targets, w'b.
    solution: Array
    inverse: Array

    @property
    def loss(self) -> float:
        return self.square - 2 * self.product


def predicted_loss(spectrum: Spectrum, cross: Array, penalty: Array, noise: Noise) -> Prediction:
    r"""Estimate the squared error of a ridge solution, minus that of zeros, from released moments.

    The ridge is positive, and differs in the last column only. The released moments underestimate the error of a
    solution that follows their noise. Let :math:`E` be Gaussian noise in the Gram matrix, and :math:`e` in the cross
    moments. By Stein's lemma, :math:`\mathbb{E}\,e^\top w = \tau^2 \operatorname{tr} M`, where :math:`M` is the inverse
    of the penalised matrix, and :math:`-\mathbb{E}\,w^\top E w = \sigma^2 (\operatorname{diag}(M)^\top L\,w^2 +
    w^\top(M\circ L)w)` in the basis of the eigenvectors, where :math:`L` holds the divided differences of the positive
    part of the eigenvalues. Less noise is corrected by less.
    """
    values, vectors, positive = spectrum.values, spectrum.vectors, spectrum.positive
    ridge, last = penalty[0], vectors[-1]
    # By the Sherman-Morrison formula, the inverse is diagonal in the basis of the eigenvectors, plus `multiple` times
    # the products of `factor`.
    diagonal = 1 / (positive + ridge)
    factor = last * diagonal
    multiple = (ridge - penalty[-1]) / (penalty[-1] * (last @ factor) + positive @ (last * factor))
    turned = multiple * np.outer(factor, factor)
    turned[np.diag_indices_from(turned)] += diagonal
    right = vectors.T @ cross
    w = turned @ right
    solution = vectors @ w

    divided = spectrum.divided
    flattery = np.diag(turned) @ divided @ (w**2).sum(axis=1) + np.sum((turned * divided) * (w @ w.T))
    # The derivative of the last coefficients by the last entry of the Gram matrix.
    moved = -((last @ turned) * last) @ divided @ (last[:, None] * w)
    flattery += 2 * (1 - noise.count**-2) * float(moved @ solution[-1])
    trace = float(np.trace(turned)) - (1 - noise.total**-2) * float(last @ turned @ last)
    square = float(np.sum(values[:, None] * w**2)) + noise.scale**2 * float(flattery)
    product = float(np.sum(right * w)) - cross.shape[1] * noise.cross**2 * trace
    return Prediction(square, product, solution, turned)


def _spread_between(one: Prediction, other: Prediction, noise: Noise) -> float:
    """Return the standard deviation of the error in the difference between two predicted losses."""
    first, second = one.solution, other.solution
    squares, shift = first @ first.T - second @ second.T, first - second
    squares[-1, -1] /= noise.count
    shift[-1] /= noise.total
    # The solutions follow the noise. The noise adds a term of the variance `added` to their equations, and the inverse
    # times this term to the solutions.
    added = first.shape[1] * noise.cross**2 + noise.scale**2 * float(np.sum(first**2)) / 2
    return math.hypot(
        noise.scale * float(np.linalg.norm(squares)),
        2 * noise.cross * float(np.linalg.norm(shift)),
        2 * added * float(np.linalg.norm(one.inverse - other.inverse)),
    )


def chosen_penalty(gram: Array, cross: Array, alpha: float, noise: Noise) -> Array:
    """Choose the ridge of each column, the intercept last, by post-processing of the released moments."""
    # The default ridge shrinks the intercept too. If the features carry little signal, an almost unpenalised intercept
    # with smaller coefficients, or with zeros, is better. It is used if its predicted error is clearly less.
    best = standard = np.full(len(gram), alpha)
    spectrum = Spectrum.of(gram)
    default = predicted_loss(spectrum, cross, standard, noise)
    least = default.loss
    for multiple in _MULTIPLES:
        penalty = np.full(len(gram), alpha * multiple)
        penalty[-1] = alpha * _SPARED
        other = predicted_loss(spectrum, cross, penalty, noise)
        bound = other.loss + _SURE_BY * _spread_between(default, other, noise)
        if bound < least:
            best, least = penalty, bound
    return best


def mean_solution(gram: Array, cross: Array, noise: Noise, constant: float, located: Located) -> Array:
    """Return the solution that predicts the mean of the targets, from both releases that hold it."""
    count = max(float(gram[-1, -1]) / constant**2, located.count / 2)
    mean = located.mean_with(cross[-1] / (constant * count), noise.cross / (noise.total * constant * count))
    return np.vstack([np.zeros((len(gram) - 1, len(mean))), mean / constant])


def shrunk_share(gram: Array, cross: Array, penalty: Array, noise: Noise, start: Array) -> float:
    """Return the part, from 0 to 1, of the difference between the solution and `start` that exceeds the noise."""
    # The part minimises the predicted error, which is a quadratic function of it.
    ridge = predicted_loss(Spectrum.of(gram), cross, penalty, noise)
    moved = gram @ start
    mixed, squared, product = (float(np.sum(one)) for one in (ridge.solution * moved, start * moved, start * cross))
    constant = Prediction(squared, product, start, np.zeros_like(gram))
    gain = ridge.product - product - mixed + squared
    gain += _SPARED_NOISE / 2 * _spread_between(ridge, constant, noise)
    square = ridge.square - 2 * mixed + squared
    return min(max(gain, 0.0) / square, 1.0) if square > 0 else float(gain > 0)


def _clipped(values: NDArray, lower: Any, upper: Any) -> Array:
    if not np.isfinite(values).all():
        # A clipped infinity would be finite.
        raise FloatingPointError("a row is not finite")
    return np.clip(values, lower, upper, dtype=np.float64)


@dataclass(frozen=True)
class Units:
    """Hold the public numbers that map released moments to coefficients."""

    features: Scaling
    geometry: Geometry

    def coefficients(
        self, moments: Array, penalty: Array, targets: Scaling, start: Array, share: float
    ) -> tuple[Array, Array]:
        """Return coefficients and intercepts, in the units of the data, of which a share of the way from `start`."""
        gram, cross = np.split(moments, [len(moments)], axis=1)
        if np.all(penalty == penalty[0]):
            ridge = Spectrum.of(gram).solve(cross, penalty[0])
        else:
            ridge = Spectrum.of(trimmed(gram) + np.diag(penalty)).solve(cross)
        solution = start + share * (ridge - start)
        d = len(self.features.half)
        coef = solution[:d].T / self.features.half * targets.half[:, None]
        constant = self.geometry.constant
        shift = constant * solution[d] if constant else np.zeros(len(targets.half))
        return coef, targets.centre + targets.half * shift - coef @ self.features.centre


@dataclass(frozen=True, eq=False)
class Design:
    """The public facts about a fit, besides its parameters."""

    geometry: Geometry
    features: Scaling
    targets: Scaling
    target_range: TargetRange


class FunctionalMechLinReg(MultiOutputMixin, RegressorMixin, GroupsMixin, ManyTargetsMixin, BaseEstimator):
    r"""Differentially private linear regression by the functional mechanism.

    The second moments of features and targets are released once, with noise, and the coefficients are computed from
    them. Features and targets are first centred and scaled by public bounds. The coefficients are then converted back.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        In [0, 1), far below one over the number of records. If 0, the fit is pure epsilon-DP, and the noise is several
        times as large for more than a few features.
    schema : Schema, default=None
        Declaration of the columns of X, in place of `bounds`, `bounds_y`, `data_norm` and `rows_per_group`. Explicit
        parameters override it.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.
    alpha : float, default=None
        Ridge penalty, in units of the scaled features, non-negative. If None, it is half of the expected largest
        eigenvalue of the noise, unless the released moments show that another penalty has less error
        (:doc:`/user_guide/functional_mechanism_algorithm`).
    fit_intercept : bool, default=True
        Whether to fit an intercept. If False, features and targets are not centred.
    bounds : tuple (lower, upper)
        Public bounds of the features: numbers, or one for each column. Values beyond are clipped. For one-hot columns,
        use (-1, 1), and the square root of the number of variables for `data_norm`.
    bounds_y : tuple (lower, upper)
        Public bounds of the targets: numbers, or one for each target. Targets beyond are clipped, and predictions are
        within. The bounds may be generous (see :ref:`regression`).
    data_norm : float, default=None
        Public norm, after scaling, beyond which a record has less weight. A smaller norm means less noise. If None, it
        is ``sqrt(n_features / 2)``, which at most halves a weight.
    rows_per_group : int, default=None
        Public limit on the rows of one group, such as a person. Further rows are left out at random. The guarantee is
        then for all rows of a group, with `rows_per_group` times the noise. If None, it is for one row.
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Private coefficients (:ref:`formula <functional-mechanism-regression>`), in the units of the features.
    intercept_ : float or ndarray of shape (n_targets,)
        Private intercept.
    alpha_ : float
        Default penalty, or `alpha`. It does not change if another penalty has less error.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    FunctionalMechLogReg : Classification from the same release.

    Notes
    -----
    **Privacy.** A range of the targets and their mean in it are released first (:ref:`regression, theorem 1
    <regression-theorem-1>`). The moments :math:`(Z^\top Z, Z^\top U)` are then released once, for rows :math:`z` of
    norm at most :math:`R` (scaled features and a constant) and :math:`k` targets in [-1, 1]. With a weight :math:`t` on
    the cross moments, one record moves both together by :math:`R\sqrt{R^2 + t^2 k}`, and by a little more, because the
    number of records and the sums of targets have larger weights (:ref:`functional mechanism, theorem 1
    <functional-mechanism-theorem-1>`). The rest, including the choice of the penalty, is post-processing.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import FunctionalMechLinReg, Schema
    >>> k = np.arange(5000)
    >>> age, smokes = 18 + k % 72, np.where(k % 5 < 2, "yes", "no")
    >>> cost = 200 + 10 * age + 500 * (smokes == "yes") + 100 * np.sin(k)
    >>> columns = {"age": (18, 90), "smokes": ["no", "yes"]}
    >>> schema = Schema(columns, target=(0, 3000))
    >>> model = FunctionalMechLinReg(
    ...     epsilon=1, delta=1e-6, schema=schema, random_state=0
    ... )
    >>> model = model.fit({"age": age, "smokes": smokes}, cost)
    >>> people = {"age": [30, 70], "smokes": ["no", "yes"]}
    >>> model.predict(people).round(-2)
    array([ 500., 1400.])
    """

    _counts_outside = ("numbers",)
    _parameter_rules: ClassVar[Rules] = {
        "data_norm": Or(None, Real(1e-6)),
        "alpha": Or(None, Real(zero=True)),
        "fit_intercept": check_boolean,
    }
    _takes_parts = True
    _fixes_cost = True
    _released = frozenset({"coef_", "intercept_", "alpha_", "_moments", "_penalty", "_range", "_start", "_share"})
    _public = frozenset({"_units"})
    _takes_sparse = True

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        alpha: float | None = None,
        fit_intercept: bool = True,
        bounds: Any = None,
        bounds_y: Any = None,
        data_norm: float | None = None,
        rows_per_group: int | None = None,
        max_weight: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.bounds = bounds
        self.bounds_y = bounds_y
        self.data_norm = data_norm
        self.rows_per_group = rows_per_group
        self.max_weight = max_weight

    def _plan(self, parameters: Checked, shape: Shape) -> tuple[PrivacyGuarantee, Design]:
        n_features, n_targets, centred = shape.n_features, shape.n_targets or 1, parameters.fit_intercept
        geometry = Geometry.of(
            n_features,
            n_targets,
            parameters.data_norm,
            parameters.fit_intercept,
            one_hot=False,
            private=parameters.private,
            weights=REGRESSION_WEIGHTS,
        )
        features = Scaling.of(parameters.bounds, "bounds", n_features, centred)
        targets = Scaling.of(parameters.bounds_y, "bounds_y", n_targets, centred)
        unit = Unit(parameters.rows_per_group)
        target_range = TargetRange.of(parameters.epsilon, parameters.delta, n_targets, unit.rows)
        guarantee = plan(parameters.epsilon, parameters.delta, geometry, unit, 1 - target_range.share)
        return target_range.and_then(guarantee), Design(geometry, features, targets, target_range)

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Checked, design: Design
    ) -> dict[str, Any]:
        geometry = design.geometry
        located = design.target_range.located(session, records.y, design.targets, parameters.fit_intercept)
        targets = located.targets
        start, share = np.zeros((geometry.n_columns, design.target_range.n_targets)), 1.0
        moments = Moments(records.X, records.y, design.features, targets.columns, geometry, parameters.private)
        mechanism = session.mechanism(MOMENTS)
        noise = noise_of(mechanism, geometry)
        gram, cross = moments.release(session)
        warn_of_columns(self._undeclared(), gram, geometry.constant, noise, mechanism)
        alpha = RIDGE * noise.largest_eigenvalue if parameters.alpha is None else parameters.alpha
        penalty = np.full(geometry.n_columns, alpha)
        if geometry.constant and parameters.alpha is not None:
            penalty[-1] = 0.0
        elif geometry.constant and parameters.private:
            penalty = chosen_penalty(gram, cross, alpha, noise)
            start = mean_solution(gram, cross, noise, geometry.constant, located)
            share = shrunk_share(gram, cross, np.maximum(penalty, noise.scale), noise, start)

        released = np.hstack([gram, cross])
        units = Units(design.features, geometry)
        coef, intercept = units.coefficients(released, penalty, targets, start, share)
        is_flat = records.shape.n_targets is None
        return {
            "coef_": coef[0] if is_flat else coef,
            "intercept_": float(intercept[0]) if is_flat else intercept,
            "alpha_": alpha,
            "_moments": released,
            "_penalty": penalty,
            "_range": targets,
            "_start": start,
            "_share": share,
            "_units": units,
        }

    def _coef_with_other_noise(self, stream: BitStream) -> Array:
        """Return the coefficients for released moments with further noise of the same size."""
        geometry, mechanism = self._units.geometry, self.privacy_.releases[-1].mechanism
        noise = geometry.unpack(mechanism.release(np.zeros(geometry.size), stream))
        rule = self._units.coefficients(self._moments + noise, self._penalty, self._range, self._start, self._share)
        return rule[0].reshape(self.coef_.shape)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the predicted targets of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features. They are clipped to `bounds`, as in `fit`. The predictions are clipped to the released range of
            the targets.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predictions.
        """
        check_is_fitted(self, "coef_")
        predicted: Array = self._range.clipped(of_valid_rows(self._products, self, X) + self.intercept_)
        return predicted if self.coef_.ndim == 2 else predicted[:, 0]

    def _products(self, X: Any) -> Array:
        """Return the products of rows, clipped to the bounds, with the coefficients."""
        lower, upper = self._units.features.lower, self._units.features.upper
        coef = np.atleast_2d(self.coef_).T
        if issparse(X) and np.all((lower <= 0) & (upper >= 0)):
            return row_products(with_data(X, _clipped(X.data, lower[X.indices], upper[X.indices])), coef)
        # If the bounds do not contain 0, centred rows have no zeros. Therefore blocks of sparse rows are made dense.
        lower, upper = (side[0] if np.all(side == side[0]) else side for side in (lower, upper))
        out = np.empty((X.shape[0], coef.shape[1]))
        for block in short_blocks(*X.shape):
            rows = X[block].toarray() if issparse(X) else X[block]
            inside = rows.min() >= np.max(lower) and rows.max() <= np.min(upper)
            out[block] = row_products(rows if inside else _clipped(rows, lower, upper), coef)
        return out
