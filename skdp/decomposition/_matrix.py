r"""Principal components of one noisy matrix of second moments (Analyze Gauss; Dwork, Talwar, Thakurta and Zhang 2014).

The second moments of the rows are released once, with the sum and number of rows. Components, variances and the mean
are computed from the release. `fit` is that of :mod:`skdp.release.estimator`, which calls `_measure` here. Of
``components_``, `fit_matrix` has the formula, and :mod:`skdp.decomposition._exponential` with ``solver="bingham"``.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ..accounting import PrivacyCost
from ..checks.params import Checked, OneOf, Rules
from ..mechanisms import l2_mechanism, within_reach
from ..release.estimator import Records, Shape
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem
from ..sensitivity import centred_moments_l2, pack_symmetric, row_sum_l2, unpack_symmetric
from ._base import (
    Array,
    PrivatePCA,
    Sums,
    fitted_components,
    norm_of_moments,
    number_of_components,
    postprocess_components,
    postprocess_variances,
    public_centre,
    second_moments,
    within_ball,
)
from ._exponential import CENTRE_COUNT, CENTRE_SHARE, MEAN, VARIANCE_SHARE, fit_exponential, fixed_cost, release_mean
from ._exponential import plan as exponential_plan

MOMENTS = "second moments, sum and number of rows"

#: Weight of the sum of rows in the joint release, as a multiple of their norm, and of their number, as a multiple of
#: its square: if the mean comes from the release, if rows were centred before, and without a mean.
SUM_WEIGHT, COUNT_WEIGHT = 0.6, 0.25
AGAIN_WEIGHT = 0.4
LONE_COUNT_WEIGHT = 0.125

#: With delta = 0, the matrix is used from so many records on, times n_features^2 / (n_components epsilon).
MATRIX_FROM = 10.0


def weights_of(parameters: Checked) -> tuple[float, float]:
    """Return the weight of the sum of rows, and the contribution of a record to the last number of the release."""
    # Each is 0 if the release does not hold it.
    norm = norm_of_moments(parameters)
    if parameters.center != "private":
        return 0.0, LONE_COUNT_WEIGHT * norm**2 if parameters.expected_n is None else 0.0
    if parameters.centered_norm is None:
        return SUM_WEIGHT * norm, COUNT_WEIGHT * norm**2
    # The mean is released first, so that the rows have a smaller norm in their second moments.
    return AGAIN_WEIGHT * norm, 0.0


def plan(parameters: Checked, n_features: int) -> PrivacyGuarantee:
    """Return the release of a fit by a noisy matrix, after that of the mean if rows are centred first."""
    number_of_components(parameters, n_features)
    public_centre(parameters, n_features)
    sum_weight, count_weight = weights_of(parameters)
    size = n_features * (n_features + 1) // 2 + (sum_weight > 0) * n_features + (count_weight > 0)
    moments = centred_moments_l2(norm_of_moments(parameters), sum_weight, count_weight)
    # Labels, sensitivities, lengths, shares of the budget, and theorems.
    queries = [(MOMENTS, moments, size, 1.0, 5)]
    if parameters.center == "private" and parameters.centered_norm is not None:
        mean = row_sum_l2(parameters.data_norm, CENTRE_COUNT * parameters.data_norm)
        queries = [(MEAN, mean, n_features + 1, CENTRE_SHARE, 4), (MOMENTS, moments, size, 1 - CENTRE_SHARE, 5)]
    epsilon, delta = parameters.epsilon, parameters.delta
    made = [l2_mechanism(epsilon, delta, share, sensitivity, length) for _, sensitivity, length, share, _ in queries]
    mechanisms, events = zip(*made, strict=True)
    releases = [
        Release(label, mechanism, share, Theorem("PCA", theorem))
        for (label, _, _, share, theorem), mechanism in zip(queries, mechanisms, strict=True)
    ]
    return PrivacyGuarantee(epsilon, delta, events, tuple(releases))


def pack(sums: Sums, sum_weight: float, count_weight: float) -> Array:
    """List the sums, weighted, as one vector."""
    vectors = [pack_symmetric(sums.gram, math.sqrt(2))]
    if sum_weight:
        vectors.append(sum_weight * sums.total)
    if count_weight:
        vectors.append(np.array([count_weight * sums.count]))
    return np.concatenate(vectors)


def unpack(released: Array, n_features: int, sum_weight: float, count_weight: float, count: float | None) -> Sums:
    """Return the released sums. The number of rows is `count` if that is known, and at least 1."""
    size = n_features * (n_features + 1) // 2
    gram = unpack_symmetric(released[:size], n_features, math.sqrt(2))
    total = np.zeros(n_features)
    if sum_weight:
        total = released[size : size + n_features] / sum_weight
    if count is None:
        count = max(float(released[-1]) / count_weight, 1.0)
    return Sums(gram, total, count)


def postprocess_moments(sums: Sums, norm: float) -> tuple[Array, Array]:
    """Return the mean, within the ball that contains all rows, and the second moments about it."""
    mean = within_ball(sums.total / sums.count, norm)
    return mean, sums.gram - sums.count * np.outer(mean, mean)


class DPPCA(PrivatePCA):
    r"""Differentially private principal components from one noisy matrix of second moments.

    The mean, all components and the variances along them come from one release. Use this analysis if `delta` is
    positive.

    Parameters
    ----------
    n_components : int, default=None
        Number of components. If None, there is one for each column.
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        In [0, 1), far below one over the number of records. If 0, the fit is pure epsilon-DP, and much less accurate.
    schema : Schema, default=None
        Declaration of the columns of X, in place of `data_norm`. Explicit parameters override it.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.
    center : {"none", "private"} or array-like of shape (n_features,), default="private"
        Vector that is subtracted from rows: nothing, the private mean, or a public vector.
    solver : {"auto", "matrix", "bingham"}, default="auto"
        ``"matrix"`` is the noisy matrix. ``"bingham"`` draws components as :class:`ExpMechPCA` does. ``"auto"`` takes
        the matrix if delta is positive or `expected_n` is large.
    whiten : bool, default=False
        Whether `transform` divides coordinates by their standard deviations, at least a thousandth of `data_norm`.
    expected_n : float, default=None
        Publicly known, approximate number of records. If None, the number is part of the release.
    data_norm : float
        Public clipping bound: the largest L2 norm of a row, after a public `center` is subtracted. Longer rows are
        scaled down to it.
    centered_norm : float, default=None
        Clipping bound of centred rows, with ``center="private"``. Set it if most rows are much shorter than `data_norm`
        after the mean is subtracted. The mean then takes a fifth of the budget.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal directions (:ref:`formula <pca-directions>`), by decreasing variance. The largest entry of each is
        positive.
    mean_ : ndarray of shape (n_features,)
        Vector that is subtracted: zeros, the public vector, or the private mean.
    explained_variance_ : ndarray of shape (n_components,)
        Noisy variances along the components. Without centring, these are mean squares.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Variances as fractions of the total variance.
    singular_values_ : ndarray of shape (n_components,)
        Square roots of the noisy sums of squares along the components.
    noise_variance_ : float
        Noisy mean variance along the remaining directions.
    n_components_ : int
        Number of components.
    solver_ : str
        Solver that was used. ``"auto"`` chooses it by public numbers.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    ExpMechPCA : Components drawn one after the other, by the exponential mechanism.

    Notes
    -----
    **Privacy.** A record :math:`x` with :math:`\|x\|\le R` adds :math:`(x x^\top, s x, c)` to the second moments and to
    the weighted sum and number of rows, of norm :math:`\sqrt{R^4 + s^2 R^2 + c^2}` with the Frobenius norm (:ref:`PCA,
    theorem 5 <pca-theorem-5>`). The noise is a symmetric Gaussian matrix, or that of the L2 mechanism if `delta` is 0.
    The rest is post-processing. The result of `transform` on the fitted rows is a function of these rows, and not
    private.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPPCA, Schema
    >>> k = np.arange(5000)
    >>> height = 170 + 15 * np.sin(k)
    >>> weight = height - 100 + 15 * np.cos(3 * k)
    >>> schema = Schema({"height": (120, 220), "weight": (20, 120)})
    >>> pca = DPPCA(1, epsilon=1, delta=1e-6, schema=schema, random_state=0)
    >>> pca = pca.fit({"height": height, "weight": weight})
    >>> pca.explained_variance_ratio_.round(1)
    array([0.9])
    """

    _parameter_rules: ClassVar[Rules] = {"solver": OneOf(("auto", "matrix", "bingham"))}
    _public = PrivatePCA._public | {"solver_"}

    def __init__(
        self,
        n_components: int | None = None,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        center: Any = "private",
        solver: str = "auto",
        whiten: bool = False,
        expected_n: float | None = None,
        data_norm: float | None = None,
        centered_norm: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.center = center
        self.solver = solver
        self.whiten = whiten
        self.expected_n = expected_n
        self.data_norm = data_norm
        self.centered_norm = centered_norm

    def _check_together(self, parameters: Checked) -> None:
        super()._check_together(parameters)
        parameters.variance_share = VARIANCE_SHARE

    def _plan(self, parameters: Checked, shape: Shape) -> tuple[PrivacyGuarantee, str]:
        solver = parameters.solver
        if solver == "auto":
            matrix = parameters.delta > 0 or not parameters.private
            if not matrix and parameters.expected_n is not None:
                k = number_of_components(parameters, shape.n_features)
                matrix = parameters.expected_n > MATRIX_FROM * shape.n_features**2 / (k * parameters.epsilon)
            solver = "matrix" if matrix else "bingham"
        make = plan if solver == "matrix" else exponential_plan
        return make(parameters, shape.n_features), solver

    def _measure(self, session: ReleaseSession, records: Records, parameters: Checked, solver: str) -> dict[str, Any]:
        fit = fit_matrix if solver == "matrix" else fit_exponential
        return fit(session, records.X, parameters) | {"solver_": solver}

    def _cost_of(self, parameters: Checked) -> PrivacyCost | None:
        if parameters.solver == "auto" and parameters.delta == 0 and parameters.expected_n is not None:
            return None
        if parameters.n_components is None and self._plan(parameters, Shape(1))[1] == "bingham":
            return None
        return fixed_cost(parameters, lambda parameters, n: self._plan(parameters, Shape(n))[0])


def fit_matrix(session: ReleaseSession, X: Array, parameters: Checked) -> dict[str, Any]:
    """Release noisy second moments, and return the fitted attributes."""
    n_features = X.shape[1]
    k, norm, weights = number_of_components(parameters, n_features), norm_of_moments(parameters), weights_of(parameters)
    centre, count = public_centre(parameters, n_features), parameters.expected_n
    if parameters.center == "private":
        # An approximate number would be enough for variances, but not for the mean.
        count = None
        if parameters.centered_norm is not None:
            centre, count = release_mean(session, X, parameters.data_norm, parameters.private)
    sums = second_moments(X, centre, norm, parameters.private)
    value = within_reach(session.mechanism(MOMENTS), pack(sums, *weights))
    released = unpack(session.release(MOMENTS, value), n_features, *weights, count)

    gram, count = released.gram, released.count
    if parameters.center == "private":
        shift, gram = postprocess_moments(released, norm)
        centre = centre + shift
        count = count - 1 if count >= 2 else count
    values, vectors = np.linalg.eigh(gram)
    top = np.maximum(values[::-1][:k], 0.0)
    variances = postprocess_variances(top, float(values.sum() - top.sum()), count, n_features)
    return fitted_components(postprocess_components(vectors.T[::-1][:k]), centre, parameters, variances)
