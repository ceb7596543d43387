r"""Logistic regression by the functional mechanism (Zhang et al. 2012): a linear rule from noisy second moments.

The second-order Taylor expansion of the log loss depends on the data through the second moments of features and labels.
These moments are released once, with noise (see ``moments_l2``). The rule is that of least squares,
except for scale and threshold. Scale and threshold come from linear discriminant analysis, whose class frequencies,
means and pooled covariance are functions of the same moments. `discriminant_rule` computes ``coef_`` from them.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from ..checks.params import Checked, OneOf, Or, Real, Rules, columns_of
from ..release.estimator import GroupsMixin, LabelsMixin, Records, Shape
from ..release.session import PrivacyGuarantee, ReleaseSession
from ..release.units import Unit
from ..solvers.linear_descent import LinearRule, LogOdds
from ..solvers.moments import (
    CLASS_WEIGHTS,
    MOMENTS,
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

#: The mean of a class is reliable if the class has so many standard deviations of the noise in its number of records.
_RELIABLE = 3.0

#: The smallest factor of coefficients. Ranks do not depend on the factor, and small scores are close to the prior.
_LEAST_KEPT = 2.0**-4


def encoded_labels(codes: NDArray[np.intp], n_classes: int) -> Array:
    """Return targets of L1 norm 1. Two classes are -1 and 1 in one column; more classes are one-hot."""
    if n_classes == 2:
        return np.where(codes[:, None] == 1, 1.0, -1.0)
    return (codes[:, None] == np.arange(n_classes)).astype(np.float64)


def class_sums(gram: Array, cross: Array, constant: float) -> Array:
    """Return the sums of rows by class, of shape (n_columns, n_classes), from released moments."""
    if cross.shape[1] > 1:
        return cross
    # The last column of the Gram matrix holds the sum of all rows.
    whole = gram[:, -1:] / constant
    return np.hstack([whole - cross, whole + cross]) / 2


def taylor_rule(gram: Array, sums: Array, alpha: float, constant: float) -> tuple[Array, Array]:
    """Minimise the log loss's Taylor polynomial at 0, plus a ridge."""
    # To second order, log(sum_k exp(u_k)) is log(K) + mean(u) + |u - mean(u)|^2 / (2 K) for K classes. Therefore the
    # minimiser is K times the least-squares solution for one-hot targets less their mean.
    n_classes = sums.shape[1]
    centred = sums - sums.mean(axis=1, keepdims=True)
    solution = n_classes * Spectrum.of(gram).solve(centred, alpha)
    return solution[:-1].T, constant * solution[-1]


def shrunk_share(gram: Array, sums: Array, alpha: float, noise: Noise) -> float:
    """Return the factor by which scores are shrunk to the prior, from the part of them that exceeds the noise."""
    # Along an eigenvector of the covariance, the squared noise has a known mean. The square root of the part was tried:
    # the part itself is the factor for squared errors, and it is too small for labels.
    n_classes = sums.shape[1]
    count = max(float(gram[-1, -1]), 0.0) + 2 * noise.scale / noise.count
    means = gram[:-1, -1:] / count if count else np.zeros((len(gram) - 1, 1))
    centred = sums - sums.mean(axis=1, keepdims=True)
    spectrum = Spectrum.of(gram[:-1, :-1] - means @ gram[-1:, :-1])
    square = ((spectrum.vectors.T @ (centred[:-1] - means @ centred[-1:])) ** 2).sum(axis=1)
    # Two classes have one vector of cross moments, which is half of the difference of their sums.
    of_noise = noise.cross**2 * (n_classes - 1 if n_classes > 2 else 0.5)
    explained = np.divide(
        1.0, spectrum.positive + alpha, out=np.zeros_like(square), where=spectrum.positive + alpha > 0
    )
    total = float(explained @ square)
    return max(math.sqrt(float(explained @ np.maximum(square - of_noise, 0.0)) / total), _LEAST_KEPT) if total else 1.0


def discriminant_rule(
    gram: Array, sums: Array, alpha: float, constant: float, least: float, factor: float
) -> tuple[Array, Array]:
    """Return the linear discriminant rule in the space of the least-squares scores."""
    # Without noise and ridge, this rule is discriminant analysis itself (Hastie, Tibshirani and Buja 1994). `least` is
    # a floor for the number of records in a class, and `factor` a factor of the coefficients.
    directions = taylor_rule(gram, sums, alpha, constant)[0]
    if len(directions) == 2:
        directions = directions[1:] - directions[:1]
    frequencies = np.maximum(sums[-1] / constant, least)
    n = frequencies.sum()
    # The mean of a rare class is shrunk to that of all records.
    added = np.maximum(_RELIABLE * least - frequencies, 0.0)
    mean = np.clip(sums[:-1].sum(axis=1, keepdims=True) / n, -1.0, 1.0)
    means = np.clip((sums[:-1] + added * mean) / (frequencies + added), -1.0, 1.0)
    scatter = gram[:-1, :-1] - (means * frequencies) @ means.T
    # The ridge belongs to the covariance that the directions were computed with.
    within = (trimmed(directions @ scatter @ directions.T) + alpha * directions @ directions.T) / n
    means = directions @ means
    centre = (means @ frequencies / n)[:, None]
    coef = factor * Spectrum.of(within).solve(means - centre)
    return coef.T @ directions, np.log(frequencies / n) - np.einsum("jk,jk->k", coef, (means + centre) / 2)


def in_original_units(coef: Array, intercept: Array, features: Scaling) -> tuple[Array, Array]:
    """Return coefficients and intercepts for unscaled data. Two classes share one row."""
    if len(coef) == 2:
        coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    coef = coef / features.half
    return coef, intercept - coef @ features.centre


class FunctionalMechLogReg(LogOdds, LinearRule, ClassifierMixin, GroupsMixin, LabelsMixin, BaseEstimator):
    r"""Private linear classifier by the functional mechanism, a textbook algorithm (use `ObjPertLogReg` instead).

    The second moments of features and labels are released once, with noise, and a linear rule is computed from them.
    The fit takes one pass over the data, for any number of classes. `ObjPertLogReg` is more accurate.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        In [0, 1), far below one over the number of records. If 0, the fit is pure epsilon-DP, and the noise is several
        times as large for more than a few features.
    schema : Schema, default=None
        Declaration of the columns of X, in place of `bounds`, `data_norm`, `classes` and `rows_per_group`. Explicit
        parameters override it.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.
    alpha : float, default=None
        Ridge penalty, in units of the scaled features, non-negative. If None, it is half of the expected largest
        eigenvalue of the noise, which is a public number.
    calibration : {"lda", "taylor"}, default="lda"
        How scores are converted to log-odds: by linear discriminant analysis of the scores, or by the Taylor polynomial
        of the log loss, which underestimates probabilities far from 1/2.
    bounds : tuple (lower, upper)
        Public bounds of the features: numbers, or one for each column. Values beyond are clipped. For one-hot columns,
        use (-1, 1) together with `data_norm`.
    data_norm : float, default=None
        Public norm, after scaling, beyond which a record has less weight. A smaller norm means less noise. If None, it
        is ``sqrt(n_features / 2)``, which at most halves a weight.
    classes : array-like, default=None
        Public label set. Other rows are left out. If None, the labels in `y` count as public, with a warning.
    rows_per_group : int, default=None
        Public limit on the rows of one group, such as a person. Further rows are left out at random. The guarantee is
        then for all rows of a group, with `rows_per_group` times the noise. If None, it is for one row.
    class_weight : dict or "balanced", default=None
        Public weights of the labels. ``"balanced"`` computes them from 4 % of the budget (see :ref:`weights`).
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Private coefficients (:ref:`formula <functional-mechanism-classification>`), in the units of the features.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Private intercepts.
    classes_ : ndarray of shape (n_classes,)
        Label set, sorted.
    class_weight_ : ndarray of shape (n_classes,)
        Weights of the labels, at most 1, from the released counts. Only with ``class_weight="balanced"``.
    alpha_ : float
        Ridge penalty that was used.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    FunctionalMechLinReg : Regression from the same release.
    ObjPertLogReg : Logistic regression without the quadratic approximation. It is more accurate.

    Notes
    -----
    **Privacy.** The moments :math:`(Z^\top Z, Z^\top U)` are released once, for rows :math:`z` of norm at most
    :math:`R` (scaled features and a constant) and labels :math:`u`, which are -1 or 1 for two classes and one-hot
    otherwise. With a weight :math:`t` on the cross moments, one record moves both together by :math:`R\sqrt{R^2 +
    t^2}`, for every number of classes (:ref:`functional mechanism, theorem 1 <functional-mechanism-theorem-1>`). The
    rest is post-processing.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import FunctionalMechLogReg, Schema
    >>> k = np.arange(5000)
    >>> age, smokes = 18 + k % 72, np.where(k % 5 < 2, "yes", "no")
    >>> ill = age + 16 * (smokes == "yes") + 20 * np.sin(k) > 60
    >>> columns = {"age": (18, 90), "smokes": ["no", "yes"]}
    >>> schema = Schema(columns, target=[False, True])
    >>> model = FunctionalMechLogReg(
    ...     epsilon=1, delta=1e-6, schema=schema, random_state=0
    ... )
    >>> model = model.fit({"age": age, "smokes": smokes}, ill)
    >>> people = {"age": [40, 60], "smokes": ["no", "yes"]}
    >>> model.predict_proba(people)[:, 1].round(1)
    array([0.1, 0.9])
    """

    _counts_outside = ("numbers", "target")
    _parameter_rules: ClassVar[Rules] = {
        "data_norm": Or(None, Real(1e-6)),
        "alpha": Or(None, Real(zero=True)),
        "calibration": OneOf(("lda", "taylor")),
    }
    _takes_parts = True
    _fixes_cost = True
    _released = frozenset({"coef_", "intercept_"})
    _public = frozenset({"alpha_"})
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
        calibration: str = "lda",
        bounds: Any = None,
        data_norm: float | None = None,
        classes: Any = None,
        rows_per_group: int | None = None,
        class_weight: Any = None,
        max_weight: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.alpha = alpha
        self.calibration = calibration
        self.bounds = bounds
        self.data_norm = data_norm
        self.classes = classes
        self.rows_per_group = rows_per_group
        self.class_weight = class_weight
        self.max_weight = max_weight

    def _plan(self, parameters: Checked, shape: Shape) -> tuple[PrivacyGuarantee, Geometry]:
        columns_of(parameters.bounds, "bounds", shape.n_features)
        geometry = Geometry.of(
            shape.n_features,
            1 if shape.n_classes == 2 else shape.n_classes,
            parameters.data_norm,
            fit_intercept=True,
            one_hot=True,
            private=parameters.private,
            weights=CLASS_WEIGHTS,
        )
        return plan(parameters.epsilon, parameters.delta, geometry, Unit(parameters.rows_per_group)), geometry

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Checked, geometry: Geometry
    ) -> dict[str, Any]:
        n_classes = records.shape.n_classes
        features = Scaling.of(parameters.bounds, "bounds", records.shape.n_features, centred=True)
        mechanism = session.mechanism(MOMENTS)
        encoded = partial(encoded_labels, n_classes=n_classes)
        moments = Moments(records.X, records.y, features, encoded, geometry, parameters.private)
        gram, cross = moments.release(session)

        noise = noise_of(mechanism, geometry)
        warn_of_columns(self._undeclared(), gram, geometry.constant, noise, mechanism)
        alpha = RIDGE * noise.largest_eigenvalue if parameters.alpha is None else parameters.alpha
        sums = class_sums(gram, cross, geometry.constant)
        if parameters.calibration == "taylor":
            rule = taylor_rule(gram, sums, alpha, geometry.constant)
        else:
            # A number of records that can be distinguished from that of an empty class.
            least = noise.cross / noise.total / geometry.constant
            if n_classes == 2:
                least = math.hypot(least, noise.scale / noise.count / geometry.constant**2) / 2
            factor = shrunk_share(gram, sums, alpha, noise)
            rule = discriminant_rule(gram, sums, alpha, geometry.constant, max(1.0, least), factor)
        coef, intercept = in_original_units(*rule, features)
        return {"coef_": coef, "intercept_": intercept, "alpha_": alpha}
