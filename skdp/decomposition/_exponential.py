r"""Principal components by the exponential mechanism (Chaudhuri, Sarwate and Sinha 2013; Amin and others 2019).

The releases are the mean if it is private, each component, drawn from the unit sphere orthogonal to earlier ones
(:mod:`skdp.mechanisms.bingham`), and the variances along the components.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..accounting import BoundedRangeEvent, PrivacyCost, PrivacyEvent, PureEvent, gaussian_mu, renyi_budget
from ..checks.params import Checked, Real, Rules, shown
from ..mechanisms import (
    BinghamMechanism,
    GaussianMechanism,
    Mechanism,
    NoNoise,
    coordinate_variance,
    l1_mechanism,
    l2_mechanism,
    pure_share,
    within_reach,
)
from ..release.estimator import Records, Shape
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem
from ..sensitivity import energies_l1, energies_l2, row_sum_l2
from ._base import (
    Array,
    PrivatePCA,
    fitted_components,
    norm_of_moments,
    number_of_components,
    postprocess_components,
    postprocess_variances,
    public_centre,
    row_sums,
    second_moments,
    within_ball,
)

#: Part of the budget that a private mean takes.
CENTRE_SHARE = 0.2

#: Default part of the budget for the variances.
VARIANCE_SHARE = 0.1

#: Weight of the number of records. In the release of the mean, it is a multiple of the norm of rows. In the release of
#: the variances, it is a multiple of the square of that norm, for the L2 norm and for the L1 norm.
CENTRE_COUNT = 0.5
VARIANCE_COUNT_L2 = 0.5
VARIANCE_COUNT_L1 = 0.25

# More columns than the number at which the choice between mechanisms changes, for any reasonable epsilon.
_MANY = 10**9

MEAN = "sum of the rows and their number"
COMPONENT = "component {}"
VARIANCES = "variances along the components"


def number_of_draws(parameters: Checked, n_components: int) -> int:
    """Return the number of components that are charged."""
    # Without `n_components`, the last component follows from the others. With `n_components`, all are charged, so that
    # the cost does not depend on the number of columns.
    free = n_components > 1 or parameters.center == "private" or parameters.variance_share > 0
    return n_components - (parameters.n_components is None and free)


def weight_of_count(parameters: Checked, delta: float) -> float:
    """Return the contribution of a record to the last number of the variances' release, for noise with this delta."""
    if parameters.variance_share == 0 or parameters.expected_n is not None or parameters.center == "private":
        # The number of records is not released together with the variances.
        return 0.0
    return (VARIANCE_COUNT_L2 if delta > 0 else VARIANCE_COUNT_L1) * norm_of_moments(parameters) ** 2


#: Epsilon, delta, and the part of them for a release, in the order of the arguments of `l2_mechanism`.
Portion = tuple[float, float, float]


def split(
    epsilon: float, delta: float, parameters: Checked, draws: int
) -> tuple[float, Portion, Portion, tuple[float, float, float]]:
    """Divide the budget, from public numbers only."""
    # Return the epsilon of a component, the portions of the mean and of the variances, and the shares of the budget of
    # the mean, a component and the variances.
    centre = CENTRE_SHARE if parameters.center == "private" else 0.0
    variances = parameters.variance_share
    if draws == 0:
        centre = centre / (centre + variances)
        variances = 1.0 - centre
    component = (1 - centre - variances) / max(draws, 1)
    shares = (centre, component, variances)
    # Either the epsilons are added up, and only the mean may use delta, or the concentrated-DP parameters are added up,
    # which is better for many components. The rule with the larger epsilon of a component is used.
    if delta > 0 and epsilon < math.inf:
        order, divergence = renyi_budget(epsilon, delta)
        rho = divergence / order * (1 - 1e-9)
        concentrated = math.sqrt(8 * rho * component)
        if concentrated > component * epsilon or draws == 0:
            # If no component is drawn, all releases are Gaussian, and compose by their own parameters.
            factor = 2 * rho / gaussian_mu(epsilon, delta) ** 2 if draws else 1.0
            return concentrated, (epsilon, delta, centre * factor), (epsilon, delta, variances * factor), shares
    epsilons = [pure_share(epsilon, share) for share in shares]
    return epsilons[1], (epsilons[0], delta, 1.0), (epsilons[2], 0.0, 1.0), shares


def plan(parameters: Checked, n_features: int) -> PrivacyGuarantee:
    """Return all releases of a fit, in order."""
    k, norm = number_of_components(parameters, n_features), norm_of_moments(parameters)
    public_centre(parameters, n_features)
    draws = number_of_draws(parameters, k)
    # Without privacy, the parameters of the mechanisms have no effect. The mechanisms only state their sensitivity.
    epsilon, delta = (parameters.epsilon, parameters.delta) if parameters.private else (1.0, 0.0)
    epsilon_of_draw, of_mean, of_variances, (centre, component, variances) = split(epsilon, delta, parameters, draws)
    releases: list[Release] = []
    events: list[PrivacyEvent] = []

    def add(label: str, mechanism: Mechanism, event: PrivacyEvent, share: float, theorem: int) -> None:
        if not parameters.private:
            mechanism, event = NoNoise(mechanism.sensitivity), PureEvent(math.inf)
        releases.append(Release(label, mechanism, share, Theorem("PCA", theorem)))
        events.append(event)

    if parameters.center == "private":
        add(MEAN, *_mean_mechanism(parameters.data_norm, of_mean, n_features + 1), centre, 4)
    for i in range(draws):
        draw = BinghamMechanism(epsilon_of_draw, norm**2)
        add(COMPONENT.format(i + 1), draw, BoundedRangeEvent(epsilon_of_draw), component, 1)
    if variances > 0:
        size = k + (k < n_features) + (weight_of_count(parameters, of_variances[1]) > 0)
        add(VARIANCES, *_variance_mechanism(parameters, of_variances, size), variances, 3)
    return PrivacyGuarantee(parameters.epsilon, parameters.delta, tuple(events), tuple(releases))


def fixed_cost(parameters: Checked, plan_of: Callable[[Any, int], PrivacyGuarantee]) -> PrivacyCost | None:
    """Return the cost of a plan if it does not depend on the number of columns, else None."""
    # A private mean has pure noise for few columns, and Gaussian noise for many. With d columns, the variance of pure
    # noise is d + 1 times the square of a scale, and that of Gaussian noise is less than 2000 + epsilon times that
    # square, for any delta.
    if parameters.vector is not None:
        return plan_of(parameters, len(parameters.vector)).cost
    few, many = (plan_of(parameters, max(parameters.n_components or 1, columns)).cost for columns in (1, _MANY))
    return few if few == many else None


def _mean_mechanism(norm: float, portion: Portion, size: int) -> tuple[Mechanism, PrivacyEvent]:
    """Return Gaussian noise, or that of the pure L2 mechanism if its noise is smaller or delta is 0."""
    sensitivity = row_sum_l2(norm, CENTRE_COUNT * norm)
    epsilon, delta, share = portion
    pure = l2_mechanism(epsilon, 0.0, share, sensitivity, size)
    if delta == 0:
        return pure
    gaussian = l2_mechanism(epsilon, delta, share, sensitivity, size)
    # A part of a joint budget is compared as such. With a budget of its own, both mechanisms have the same guarantee.
    return gaussian if share < 1 or coordinate_variance(gaussian[0]) < coordinate_variance(pure[0]) else pure


def _variance_mechanism(parameters: Checked, portion: Portion, size: int) -> tuple[Mechanism, PrivacyEvent]:
    epsilon, delta, share = portion
    norm, weight = norm_of_moments(parameters), weight_of_count(parameters, delta)
    if delta > 0:
        return l2_mechanism(epsilon, delta, share, energies_l2(norm, weight), size)
    return l1_mechanism(epsilon * share, energies_l1(norm, weight), size), PureEvent(epsilon * share)


def postprocess_mean(released: Array, norm: float) -> tuple[Array, float]:
    """Return the mean, within the ball that contains all rows, and the number of records, at least 1."""
    count = max(float(released[-1]) / (CENTRE_COUNT * norm), 1.0)
    return within_ball(released[:-1] / count, norm), count


def release_mean(session: ReleaseSession, X: Array, norm: float, private: bool) -> tuple[Array, float]:
    """Release the sum of the rows, scaled down to `norm`, and their number, and return the mean and the number."""
    total, rows = row_sums(X, norm, private)
    value = within_reach(session.mechanism(MEAN), np.append(total, CENTRE_COUNT * norm * rows))
    return postprocess_mean(session.release(MEAN, value), norm)


def deflated(gram: Array, basis: Array, direction: Array) -> tuple[Array, Array]:
    """Remove a direction from the Gram matrix and the basis, by the reflection that maps it to the first axis."""
    # The basis is a function of released directions only. It is changed in place.
    u = direction.copy()
    u[0] += math.copysign(1.0, u[0])
    beta = 2 / (u @ u)
    image = gram @ u
    # (I - beta u u') G (I - beta u u') = G - (u p' + p u'), which is exactly symmetric despite rounding.
    p = beta * image - (beta**2 / 2 * (u @ image)) * u
    reflected = np.outer(u[1:], p[1:])
    reflected += np.outer(p[1:], u[1:])
    np.subtract(gram[1:, 1:], reflected, out=reflected)
    left = basis[:, 1:]
    left -= np.outer(basis @ u, beta * u[1:])
    return reflected, left


def release_components(session: ReleaseSession, gram: Array, draws: int, n_components: int, private: bool) -> Array:
    """Release the components one after the other, each orthogonal to earlier ones."""
    d = len(gram)
    basis = np.eye(d)
    components = np.empty((n_components, d))
    for i in range(n_components):
        if i < draws:
            value = gram if private else np.linalg.eigh(gram)[1][:, -1]
            direction = session.release(COMPONENT.format(i + 1), value)
        else:
            # One dimension is left.
            direction = np.ones(1)
        direction = direction / np.linalg.norm(direction)
        components[i] = basis @ direction
        if i + 1 < n_components:
            gram, basis = deflated(gram, basis, direction)
    return postprocess_components(components)


def release_variances(session: ReleaseSession, gram: Array, components: Array, count: float, weight: float) -> Array:
    """Release the energies along the components, the remaining energy, and the number of records if it has a weight."""
    energies = ((components @ gram) * components).sum(axis=1)
    values = [energies]
    if len(components) < len(gram):
        values.append(np.array([np.trace(gram) - energies.sum()]))
    if weight:
        values.append(np.array([weight * count]))
    return session.release(VARIANCES, within_reach(session.mechanism(VARIANCES), np.concatenate(values)))


class ExpMechPCA(PrivatePCA):
    r"""Differentially private principal components by the exponential mechanism.

    Each component is drawn from all directions, with a probability that grows exponentially with the variance along it.
    Use this analysis if `delta` is 0. Otherwise, :class:`DPPCA` is more accurate.

    Parameters
    ----------
    n_components : int, default=None
        Number of components. Each uses a part of the budget. If None, there is one for each column.
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1), far below one over the number of records. If 0, the fit is pure
        epsilon-DP. A positive `delta` composes components more tightly, and reduces the noise for five or more.
    schema : Schema, default=None
        Declaration of the columns of X, in place of `data_norm`. Explicit parameters override it.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.
    center : {"none", "private"} or array-like of shape (n_features,), default="none"
        Vector that is subtracted from rows: nothing, a private mean that takes a fifth of the budget, or a public
        vector. Without centring, the first component is close to the direction of the mean.
    whiten : bool, default=False
        Whether `transform` divides coordinates by their standard deviations, at least a thousandth of `data_norm`.
    variance_share : float, default=0.1
        Part of the budget for the variances along the components, in [0, 0.9]. If 0, they are not released.
    expected_n : float, default=None
        Publicly known, approximate number of records. If None, it is released with the variances or the mean.
    data_norm : float
        Public clipping bound: the largest L2 norm of a row, after a public `center` is subtracted. Longer rows are
        scaled down to it.
    centered_norm : float, default=None
        With ``center="private"``, the clipping bound of centred rows. If None, it is `data_norm`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal directions (:ref:`density <pca-directions>`), in the order of the draws. The largest entry of each
        is positive.
    mean_ : ndarray of shape (n_features,)
        Vector that is subtracted: zeros, the public vector, or the private mean.
    explained_variance_ : ndarray of shape (n_components,)
        Noisy variances along the components, in decreasing order. Without centring, these are mean squares.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Variances as fractions of the total variance.
    singular_values_ : ndarray of shape (n_components,)
        Square roots of the noisy sums of squares along the components.
    noise_variance_ : float
        Noisy mean variance along the remaining directions.
    n_components_ : int
        Number of components.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    DPPCA : All components from one noisy matrix of second moments.

    Notes
    -----
    **Privacy.** A record :math:`x` with :math:`\|x\|\le R` adds :math:`(v^\top x)^2 \in [0, R^2]` to the score
    :math:`v^\top S v`. A component with density proportional to :math:`e^{(\varepsilon_i/R^2) v^\top S v}` is
    :math:`\varepsilon_i`-DP and bounded-range (:ref:`PCA, theorem 1 <pca-theorem-1>`; :ref:`theorem 2 <pca-theorem-2>`
    composes components). The sums of squares along the components have the sensitivity :math:`R^2` together
    (:ref:`theorem 3 <pca-theorem-3>`). :ref:`Theorem 4 <pca-theorem-4>` is about a private mean. The result of
    `transform` on the fitted rows is a function of these rows, and not private.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import ExpMechPCA, Schema
    >>> k = np.arange(5000)
    >>> height = 170 + 15 * np.sin(k)
    >>> weight = height - 100 + 15 * np.cos(3 * k)
    >>> schema = Schema({"height": (120, 220), "weight": (20, 120)})
    >>> pca = ExpMechPCA(1, epsilon=1.0, schema=schema, random_state=0)
    >>> pca = pca.fit({"height": height, "weight": weight})
    >>> pca.explained_variance_ratio_.round(1)
    array([0.9])
    """

    _parameter_rules: ClassVar[Rules] = {"variance_share": Real(1e-6, 0.9, zero=True)}

    def __init__(
        self,
        n_components: int | None = None,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        center: Any = "none",
        whiten: bool = False,
        variance_share: float = VARIANCE_SHARE,
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
        self.whiten = whiten
        self.variance_share = variance_share
        self.expected_n = expected_n
        self.data_norm = data_norm
        self.centered_norm = centered_norm

    def _plan(self, parameters: Checked, shape: Shape) -> tuple[PrivacyGuarantee, None]:
        return plan(parameters, shape.n_features), None

    def _measure(self, session: ReleaseSession, records: Records, parameters: Checked, design: None) -> dict[str, Any]:
        return fit_exponential(session, records.X, parameters)

    def _cost_of(self, parameters: Checked) -> PrivacyCost | None:
        return None if parameters.n_components is None else fixed_cost(parameters, plan)

    def _check_together(self, parameters: Checked) -> None:
        super()._check_together(parameters)
        share = parameters.variance_share
        if parameters.center == "private" and CENTRE_SHARE + share > 0.95:
            raise ValueError(
                f"variance_share must be at most {0.95 - CENTRE_SHARE:g} with center='private', got {shown(share)}"
            )
        if parameters.whiten and not share:
            raise ValueError("whiten=True needs variances: variance_share must be positive")


def fit_exponential(session: ReleaseSession, X: Array, parameters: Checked) -> dict[str, Any]:
    """Carry out the releases of a plan, and return the fitted attributes."""
    private, n_features = parameters.private, X.shape[1]
    k = number_of_components(parameters, n_features)
    centre, count = public_centre(parameters, n_features), parameters.expected_n
    if parameters.center == "private":
        centre, estimated = release_mean(session, X, parameters.data_norm, private)
        count = estimated if count is None else count

    sums = second_moments(X, centre, norm_of_moments(parameters), private)
    components = release_components(session, sums.gram, number_of_draws(parameters, k), k, private)
    variances = {}
    if parameters.variance_share:
        gaussian = isinstance(session.mechanism(VARIANCES), GaussianMechanism)
        weight = weight_of_count(parameters, parameters.delta if gaussian else 0.0)
        released = release_variances(session, sums.gram, components, sums.count, weight)
        if count is None:
            count = max(float(released[-1]) / weight, 1.0)
        remaining = float(released[k]) if k < n_features else 0.0
        free = 1.0 if parameters.center == "private" and count >= 2 else 0.0
        variances = postprocess_variances(released[:k], remaining, count - free, n_features)
    return fitted_components(components, centre, parameters, variances)
