r"""Objective perturbation: the plan, and the release of a perturbed minimiser.

The release is the minimiser of :math:`C \sum_i \ell(\theta x_i; y_i) + \|\theta\|^2/2 + \langle b, \theta\rangle` for
noise :math:`b`, found to a certified residual :math:`\tau`, plus a little noise that hides the residual (Chaudhuri and
others 2011; Kifer, Smith and Thakurta 2012; Iyengar and others 2019). The constants are those of the user guide's
theorems, for adding or removing one record.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..accounting import (
    GAUSSIAN_RATIO,
    GaussianEvent,
    ObjectiveCurve,
    ObjectiveEvent,
    PrivacyEvent,
    PureEvent,
    binary_log_loss,
    gaussian_mu,
    huber_hinge,
    huber_price,
    multinomial_log_loss,
    multinomial_price,
)
from ..checks.params import Checked
from ..mechanisms import GammaMechanism, GaussianMechanism, Mechanism, NoNoise, coordinate_variance, pure_share
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem
from ..sensitivity import solver_slack_sensitivity
from .losses import LogLoss, MultinomialLogLoss
from .regularised import LARGEST_KAPPA, Array, Geometry, automatic_weight, noise_multiplier

# Parts of mu and of epsilon for the noise that hides the residual of the solver.
_SLACK_MU = 0.02
_SLACK_EPSILON = 0.005

#: C R_a^2 under C="auto" is this over the noise multiplier, within the limit below.
_AUTOMATIC = 3.0

# Kappa is rounded up before it is compared with the noise.
_BELOW = 1 - 2.0**-30

# The noise of the objective is rounded more finely than a release, because its rounding adds to the residual.
_OBJECTIVE_BITS = 36

#: Bits to which the curve's kappa is rounded up.
KAPPA_BITS = 40

# Factor of the log-odds of released counts of labels, and their largest size.
_LOG_ODDS, _MOST_ADDED = 0.5, 16.0

_OBJECTIVE = "objective"
_SOLUTION = "solution"


def objective_mu(parameters: Checked, reserved: float) -> float:
    """Return the GDP parameter of the objective. All squares add up to that of the whole budget."""
    # It is rounded down, so that an empty budget of the same size admits the fit.
    return gaussian_mu(parameters.epsilon, parameters.delta) * math.sqrt(1 - _SLACK_MU**2 - reserved) * (1 - 2.0**-40)


def largest_kappa(parameters: Checked, geometry: Geometry, reserved: float) -> float:
    """Return the limit on C R_a^2 that makes the price of the determinant 0, or a small part of epsilon."""
    epsilon = parameters.epsilon if parameters.delta > 0 else pure_share(parameters.epsilon, 1 - reserved)
    if isinstance(geometry.loss, LogLoss) and parameters.delta > 0 and parameters.private:
        free = GAUSSIAN_RATIO * objective_mu(parameters, reserved) * _BELOW
        # Theorem 2 admits more for a small delta, but leaves less to other releases.
        return free if reserved else max(free, 0.9 * epsilon)
    if isinstance(geometry.loss, LogLoss):
        return 0.9 * epsilon
    if isinstance(geometry.loss, MultinomialLogLoss):
        return 0.24 * epsilon if parameters.delta == 0 else 0.1 * epsilon
    return 0.1 * epsilon / geometry.n_problems


def effective_weight(parameters: Checked, geometry: Geometry, reserved: float = 0.0) -> float:
    """Return C, or its public formula, within the limits of the guarantee."""
    most = largest_kappa(parameters, geometry, reserved) / geometry.norm**2
    if parameters.C != "auto":
        return min(parameters.C, most)
    return automatic_weight(parameters, geometry, _AUTOMATIC, min(most, LARGEST_KAPPA / geometry.norm**2))


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
    """Return the cost of the determinant, in addition to an objective noise of `epsilon` (theorem 1)."""
    kappa = C * geometry.norm**2
    if isinstance(geometry.loss, LogLoss):
        return 0.0 if kappa <= epsilon else math.log1p(kappa / 4)
    if isinstance(geometry.loss, MultinomialLogLoss):
        return 0.0 if 4 * kappa <= epsilon else multinomial_price(kappa, geometry.loss.n_classes)
    return huber_price(kappa, geometry.loss.curvature, geometry.n_problems)


def plan(parameters: Checked, geometry: Geometry, C: float, reserved: float = 0.0) -> PrivacyGuarantee:
    """Plan the two releases: the noise of the objective, and the solution."""
    # The part `reserved` of the budget (of the squared GDP parameter, or of epsilon) is left to other releases.
    # Theorem 5 counts them with the noise of the solution, and the events do not include them.
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
        mu_left = objective_mu(parameters, reserved)
        mu_objective, event = curve.noise_of_mu(mu_left), GaussianEvent(mu_left)
        is_log_loss = isinstance(geometry.loss, LogLoss)
        number = 6 if is_log_loss else 7
        if not is_log_loss or mu_objective == 0:
            # It is rounded up if there are other releases.
            other = math.hypot(_SLACK_MU, math.sqrt(reserved) * (1 + 2.0**-40)) if reserved else _SLACK_MU
            mu_curve, _ = curve.calibrate(epsilon, delta, other)
            if mu_curve > mu_objective:
                mu_objective, event = mu_curve, ObjectiveEvent(curve, mu_curve)
                number = 2 if is_log_loss else 3 if isinstance(geometry.loss, MultinomialLogLoss) else 4
        objective = GaussianMechanism(mu_objective, sensitivity, geometry.size, _OBJECTIVE_BITS)
        slack = solver_slack_sensitivity(1.0, tau + objective.rounding)
        solution = GaussianMechanism(mu_solution, slack, geometry.size)
        events = event, GaussianEvent(mu_solution)
        slack_share = mu_solution**2 / (mu_objective**2 + mu_solution**2)
    else:
        rest = pure_share(epsilon, 1 - reserved)
        noise_epsilon = pure_share(rest, 1 - _SLACK_EPSILON)
        noise_epsilon -= pure_price(geometry, C, noise_epsilon)
        joint = C * geometry.joint_lipschitz
        objective = GammaMechanism(noise_epsilon, joint, geometry.size, _OBJECTIVE_BITS)
        slack = solver_slack_sensitivity(1.0, tau + objective.rounding)
        solution = GammaMechanism(pure_share(rest, _SLACK_EPSILON), slack, geometry.size)
        events, slack_share = (PureEvent(rest),), _SLACK_EPSILON
    releases = (
        Release(_OBJECTIVE, objective, (1 - reserved) * (1 - slack_share), Theorem("Objective perturbation", number)),
        Release(_SOLUTION, solution, (1 - reserved) * slack_share, Theorem("Objective perturbation", 5)),
    )
    return PrivacyGuarantee(epsilon, delta, events, releases)


def shrunk(
    counts: Array, mechanism: Mechanism, parameters: Checked, geometry: Geometry, C: float
) -> tuple[Array, float]:
    """Return what is added to logits of classes, and the strength of the penalty, from released counts of labels."""
    # The log-odds have a factor, because the penalty makes the other part of the logits smaller as well.
    log_odds = _LOG_ODDS * np.log(np.maximum(counts, max(1.0, math.sqrt(coordinate_variance(mechanism)))))
    added = np.clip(log_odds - log_odds.mean(), -_MOST_ADDED, _MOST_ADDED)
    # With few records, the variance of the noise in a score is at most the curvature of the losses in one direction.
    n_records = max(float(counts.sum()), 1.0)
    noise = noise_multiplier(parameters.epsilon, parameters.delta, geometry.size) ** 2
    return added, max(1.0, C * geometry.norm**2 * noise * geometry.size / n_records)


def release_minimiser(
    session: ReleaseSession,
    minimise: Callable[[Array, float], Array],
    parameters: Checked,
    geometry: Geometry,
    C: float,
) -> Array:
    """Release the noise of the objective, and its minimiser, certified to a residual."""
    tau = parameters.tol * C * geometry.lipschitz
    b = session.release(_OBJECTIVE, np.zeros(geometry.size))
    return session.release(_SOLUTION, minimise(b, tau).ravel())
