r"""Linear classifiers by objective perturbation.

Released: the minimiser of :math:`C \sum_i \ell(\theta x_i; y_i) + \|\theta\|^2/2 + \langle b, \theta\rangle` for noise
:math:`b`, found to a certified residual :math:`\tau`, plus a little noise that hides the residual (Chaudhuri and others
2011; Kifer, Smith and Thakurta 2012; Iyengar and others 2019). The constants are those of the user guide's theorems,
for add-or-remove-one.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..accounting import (
    GAUSSIAN_RATIO,
    GaussianEvent,
    ObjectiveCurve,
    ObjectiveEvent,
    PrivacyEvent,
    PureEvent,
    binary_log_loss,
    gaussian_mu,
    gaussian_noise_multiplier,
    huber_hinge,
    huber_price,
    multinomial_log_loss,
    multinomial_price,
)
from ..mechanisms import GammaMechanism, GaussianMechanism, Mechanism, NoNoise, pure_share
from ..release.session import PrivacyGuarantee, Release, ReleaseSession
from ..release.theorems import Theorem
from ..sensitivity import ClippedRows, solver_slack_sensitivity
from ._logistic import LARGEST_KAPPA, Array, Geometry, Parameters, PrivateLinearClassifier, PrivateLinearModel, solve
from ._losses import LogLoss, MultinomialLogLoss

# What the noise that hides the solver's residual takes: of mu as a multiple of the Gaussian mechanism's, of epsilon.
_SLACK_MU = 0.02
_SLACK_EPSILON = 0.005

#: C R_a^2 under C="auto" is this over the noise multiplier, within the limit below.
_AUTOMATIC = 3.0

# Kappa is rounded up before it is compared with the noise.
_BELOW = 1 - 2.0**-30

# The objective's noise is rounded more finely than a release, because its rounding adds to the residual.
_OBJECTIVE_BITS = 36

#: Bits to which the curve's kappa is rounded up.
KAPPA_BITS = 40

_OBJECTIVE = "objective"
_SOLUTION = "solution"


def objective_mu(parameters: Parameters, beside: float) -> float:
    """Return the GDP parameter that is left for the objective: all squares add up to that of the whole budget."""
    # Rounded down, so that an empty budget of the same size admits the fit.
    return gaussian_mu(parameters.epsilon, parameters.delta) * math.sqrt(1 - _SLACK_MU**2 - beside) * (1 - 2.0**-40)


def largest_kappa(parameters: Parameters, geometry: Geometry, beside: float) -> float:
    """Return the limit on C R_a^2 that keeps the determinant's price at nothing, or at a small part of epsilon."""
    epsilon = parameters.epsilon
    if isinstance(geometry.loss, LogLoss) and parameters.delta > 0 and parameters.private:
        free = GAUSSIAN_RATIO * objective_mu(parameters, beside) * _BELOW
        # Theorem 2 admits more for a small delta, but leaves less to releases beside.
        return free if beside else max(free, 0.9 * epsilon)
    if isinstance(geometry.loss, LogLoss):
        return 0.9 * epsilon
    if isinstance(geometry.loss, MultinomialLogLoss):
        return 0.24 * epsilon if parameters.delta == 0 else 0.1 * epsilon
    return 0.1 * epsilon / geometry.n_problems


def effective_weight(parameters: Parameters, geometry: Geometry, beside: float = 0.0) -> float:
    """Return C, or the public formula for it, within what the guarantee admits."""
    most = largest_kappa(parameters, geometry, beside) / geometry.norm**2
    if parameters.C is not None:
        return min(parameters.C, most)
    most = min(most, LARGEST_KAPPA / geometry.norm**2)
    if not parameters.private:
        return most
    if parameters.delta > 0:
        multiplier = gaussian_noise_multiplier(parameters.epsilon, parameters.delta)
    else:
        multiplier = math.sqrt(geometry.size + 1) / parameters.epsilon
    wanted = _AUTOMATIC / (multiplier * geometry.norm * geometry.joint_lipschitz)
    return min(wanted, most)


def gaussian_curve(geometry: Geometry, C: float) -> ObjectiveCurve:
    """Return the privacy curve that holds for this loss (theorems 2 to 4, and 6 to 8)."""
    # Kappa is rounded up to 40 bits, so that it does not depend on how the product of its factors is rounded.
    mantissa, exponent = math.frexp(C * geometry.norm**2)
    kappa = math.ldexp(math.ceil(mantissa * 2.0**KAPPA_BITS), exponent - KAPPA_BITS)
    if isinstance(geometry.loss, LogLoss):
        return binary_log_loss(kappa)
    if isinstance(geometry.loss, MultinomialLogLoss):
        return multinomial_log_loss(kappa, geometry.loss.n_classes)
    return huber_hinge(kappa, geometry.loss.curvature, geometry.n_problems)


def pure_price(geometry: Geometry, C: float, epsilon: float) -> float:
    """Return what the determinant adds to an objective noise of `epsilon` (theorem 1)."""
    kappa = C * geometry.norm**2
    if isinstance(geometry.loss, LogLoss):
        return 0.0 if kappa <= epsilon else math.log1p(kappa / 4)
    if isinstance(geometry.loss, MultinomialLogLoss):
        return 0.0 if 4 * kappa <= epsilon else multinomial_price(kappa, geometry.loss.n_classes)
    return huber_price(kappa, geometry.loss.curvature, geometry.n_problems)


def plan(parameters: Parameters, geometry: Geometry, C: float, beside: float = 0.0) -> PrivacyGuarantee:
    """Plan the two releases: the noise of the objective, and the solution."""
    # The part `beside` of the budget (of the squared GDP parameter, or of epsilon) is left to other releases. Theorem 5
    # counts them with the noise of the solution, and the events do not include them.
    epsilon, delta = parameters.epsilon, parameters.delta
    sensitivity = C * geometry.lipschitz
    tau = geometry.joint(parameters.tol * sensitivity)
    events: tuple[PrivacyEvent, ...]
    event: PrivacyEvent
    objective: Mechanism
    solution: Mechanism
    number = 1
    if not parameters.private:
        objective, solution = NoNoise(sensitivity), NoNoise(solver_slack_sensitivity(1.0, tau))
        events, slack_share = (PureEvent(epsilon),), 0.0
    elif delta > 0:
        curve = gaussian_curve(geometry, C)
        mu_solution = _SLACK_MU * gaussian_mu(epsilon, delta)
        mu_left = objective_mu(parameters, beside)
        mu_objective, event = curve.noise_of_mu(mu_left), GaussianEvent(mu_left)
        is_log_loss = isinstance(geometry.loss, LogLoss)
        number = 6 if is_log_loss else 7
        if not is_log_loss or mu_objective == 0:
            # Rounded up, where there is anything beside.
            rest = math.hypot(_SLACK_MU, math.sqrt(beside) * (1 + 2.0**-40)) if beside else _SLACK_MU
            mu_curve, _ = curve.calibrate(epsilon, delta, rest)
            if mu_curve > mu_objective:
                mu_objective, event = mu_curve, ObjectiveEvent(curve, mu_curve)
                number = 2 if is_log_loss else 3 if isinstance(geometry.loss, MultinomialLogLoss) else 4
        objective = GaussianMechanism(mu_objective, sensitivity, geometry.size, _OBJECTIVE_BITS)
        slack = solver_slack_sensitivity(1.0, tau + objective.rounding)
        solution = GaussianMechanism(mu_solution, slack, geometry.size)
        events = event, GaussianEvent(mu_solution)
        slack_share = mu_solution**2 / (mu_objective**2 + mu_solution**2)
    else:
        own = pure_share(epsilon, 1 - beside)
        noise_epsilon = pure_share(own, 1 - _SLACK_EPSILON)
        noise_epsilon -= pure_price(geometry, C, noise_epsilon)
        joint = C * geometry.joint_lipschitz
        objective = GammaMechanism(noise_epsilon, joint, geometry.size, _OBJECTIVE_BITS)
        slack = solver_slack_sensitivity(1.0, tau + objective.rounding)
        solution = GammaMechanism(pure_share(own, _SLACK_EPSILON), slack, geometry.size)
        events, slack_share = (PureEvent(own),), _SLACK_EPSILON
    releases = (
        Release(_OBJECTIVE, objective, (1 - beside) * (1 - slack_share), Theorem("Objective perturbation", number)),
        Release(_SOLUTION, solution, (1 - beside) * slack_share, Theorem("Objective perturbation", 5)),
    )
    return PrivacyGuarantee(epsilon, delta, events, releases)


def release_minimiser(
    session: ReleaseSession,
    minimise: Callable[[Array, float], Array],
    parameters: Parameters,
    geometry: Geometry,
    C: float,
) -> Array:
    """Release the noise of the objective, and its minimiser, certified to a residual."""
    tau = parameters.tol * C * geometry.lipschitz
    b = session.release(_OBJECTIVE, np.zeros(geometry.size))
    return session.release(_SOLUTION, minimise(b, tau).ravel())


class ObjectivePerturbation(PrivateLinearModel):
    """A linear classifier whose objective is perturbed."""

    _weight = staticmethod(effective_weight)
    _plan_of = staticmethod(plan)

    @staticmethod
    def _release(
        session: ReleaseSession,
        rows: ClippedRows,
        codes: NDArray[np.intp],
        parameters: Parameters,
        geometry: Geometry,
        C: float,
    ) -> Array:
        def minimise(b: Array, tau: float) -> Array:
            return solve(rows, codes, geometry, C, b, tau, parameters.max_iter)

        return release_minimiser(session, minimise, parameters, geometry, C)


class ObjPertLogReg(ObjectivePerturbation, PrivateLinearClassifier):
    r"""Differentially private logistic regression by objective perturbation.

    A random linear term is added to the objective of regularised logistic regression, and the minimiser is
    released. It is the library's default classifier: accurate, quick, and without anything to tune.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit, positive. ``inf`` adds no noise and gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1). With 0, the fit is pure epsilon-DP; otherwise the noise is Gaussian,
        and much smaller for many features. Choose it far below one over the number of records.
    data_norm : float
        Largest L2 norm of a row of X, from public knowledge. Longer rows are scaled down to it, silently.
    C : float or "auto", default="auto"
        Weight of the sum of losses against half the squared norm of the coefficients, as in scikit-learn.
        ``"auto"`` takes a formula of public parameters, at most 100 over the squared norm. A number is used as it is
        as far as the proof admits it: ``C_`` is what was used.
    loss : {"log_loss", "huber"}, default="log_loss"
        ``"log_loss"``: logistic regression, multinomial for three classes or more. ``"huber"``: hinge loss with a
        rounded kink (a support vector machine), one-vs-rest for three classes or more, without probabilities.
    fit_intercept : bool, default=True
        Whether to add a constant feature of 0.3 `data_norm`. Its coefficient is regularised, because an intercept
        that is not has no bounded sensitivity.
    tol : float, default=1e-6
        How closely the minimiser is found, as a multiple of what one record can change in the gradient. It is a
        privacy parameter: the residual is certified to stay below it, and the noise that hides it is proportional
        to it.
    max_iter : int, default=100
        Newton steps before the solver turns to a slower search. It does not affect privacy.
    classes : array-like, default=None
        The public label set, of at least two labels. Rows with other labels are left out. With None, the labels
        in `y` are taken to be public, with a warning.
    accountant : BudgetAccountant, default=None
        Budget that is charged before any noise is drawn. ``clone`` shares it.
    random_state : int, RandomState, Generator or None, default=None
        None takes noise from the operating system's cryptographic generator. Anything else makes noise that can
        be reproduced, and subtracted: for tests only.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Private coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Private intercepts; zeros without `fit_intercept`.
    classes_ : ndarray of shape (n_classes,)
        The label set, sorted.
    C_ : float
        The weight that was used.
    privacy_ : PrivacyGuarantee
        The guarantee, with mechanisms, sensitivities and noise scales.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, where X has string names.

    See Also
    --------
    OutputPertLogReg : Perturbs the solution instead; simpler and weaker.

    Notes
    -----
    **Privacy.** Released is the minimiser of the perturbed objective, with a little noise for the solver's
    residual. With rows of norm at most :math:`R_a` (`data_norm`, and the constant feature), the objective's noise is
    calibrated to an L2 sensitivity of :math:`C L`, where :math:`L` is :math:`R_a` for two classes and
    :math:`\sqrt{2} R_a` for the multinomial loss; the Huber hinge has one problem a class. The density of the minimiser
    also carries a determinant, which adds to the privacy loss [1]_, [2]_. For the binary log loss, as long as
    :math:`C R_a^2` stays below epsilon, that addition is nothing at all for ``delta=0``. With a positive `delta`, and
    :math:`C R_a^2` of at most 3.7 times the GDP parameter of the noise, objective perturbation is exactly as private as
    the Gaussian mechanism, also in composition with other releases. This, the price for the other losses, and the
    treatment of the residual [3]_ are proved in the user guide. Not covered: that `fit` raises an error for values
    that are not finite, and how long it takes.

    References
    ----------
    .. [1] K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially Private Empirical Risk Minimization",
       JMLR 12, 2011.
    .. [2] D. Kifer, A. Smith and A. Thakurta, "Private Convex Empirical Risk Minimization and High-dimensional
       Regression", COLT 2012.
    .. [3] R. Iyengar, J. P. Near, D. Song, O. Thakkar, A. Thakurta and L. Wang, "Towards Practical Differentially
       Private Convex Optimization", IEEE S&P 2019.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp.linear_model import ObjPertLogReg
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> public_upper = [40, 50, 250, 3000] + [1] * 6 + [4, 6, 30, 600] + [1] * 6 + [50, 60, 300, 5000] + [1] * 6
    >>> model = ObjPertLogReg(epsilon=1.0, delta=1e-5, data_norm=2.0, classes=[0, 1], random_state=0)
    >>> bool(model.fit(X / public_upper, y).score(X / public_upper, y) > 0.8)
    True
    """
