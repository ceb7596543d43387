r"""The regularised problem of output and objective perturbation: public maps to [-1, 1], geometry, minimisers, plan.

Objective perturbation releases the minimiser of :math:`C \sum_i \ell(\theta x_i; y_i) + \|\theta\|^2/2 + \langle b,
\theta\rangle` for noise :math:`b`, found to a certified residual :math:`\tau`, plus a little noise that hides the
residual (Chaudhuri and others 2011; Kifer, Smith and Thakurta 2012; Iyengar and others 2019). The constants are those
of the user guide's theorems, for adding or removing one record.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

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
from ..checks.params import Checked, check_bounds, check_positive, columns_of, shown
from ..mechanisms import GammaMechanism, GaussianMechanism, Mechanism, NoNoise, coordinate_variance, pure_share
from ..parts.arrays import PartedArray
from ..release.session import PrivacyGuarantee, Release, Theorem
from ..sensitivity import ClippedRows, augmented_norm, clip_rows, solver_slack_sensitivity, with_data
from .certified import Objective, certified_minimizer
from .losses import HuberHinge, LogLoss, MultinomialLogLoss, SmoothLoss
from .row_objectives import PartedRows, SparseObjective

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scaling:
    """Public centre and half width: an entry for each column, or numbers for a single target."""

    lower: Any
    upper: Any
    centre: Any
    half: Any

    @classmethod
    def of(cls, bounds: tuple[Array, Array], name: str, n_columns: int, centred: bool) -> Scaling:
        """Return the map of columns from checked bounds. Without `centred`, 0 is mapped to 0."""
        lower, upper = columns_of(bounds, name, n_columns)
        centre = lower / 2 + upper / 2 if centred else np.zeros(n_columns)
        half = (upper - lower) / 2 if centred else np.maximum(np.abs(lower), np.abs(upper))
        return cls(lower, upper, centre, half)

    @classmethod
    def of_target(cls, bounds: Any, centred: bool) -> Scaling:
        """Return the map of a single target from the user's `bounds_y`."""
        checked = check_bounds(bounds, "bounds_y", "the targets")
        if checked[0].size != 1:
            raise ValueError("bounds_y must be a pair of numbers")
        return cls.of(checked, "bounds_y", 1, centred)._single()

    def _single(self) -> Scaling:
        return Scaling(*(float(bounds[0]) for bounds in (self.lower, self.upper, self.centre, self.half)))

    def within(self, lower: Array, upper: Array, centred: bool) -> Scaling:
        """Return the map of targets in narrower bounds, one pair for each target."""
        narrower = self.of((lower, upper), "bounds_y", len(lower), centred)
        return narrower if np.ndim(self.lower) else narrower._single()

    def apply(self, values: NDArray, out: Array) -> None:
        """Clip a block of values to the bounds, and map these into [-1, 1]."""
        with np.errstate(under="ignore"):
            np.clip(values, self.lower, self.upper, out=out)
            out -= self.centre
            out /= self.half
        # If bounds are close together and far from 0, rounding can leave the box.
        np.clip(out, -1.0, 1.0, out=out)

    @cached_property
    def keeps_zeros(self) -> bool:
        """Whether 0 is mapped to 0 in every column, so that sparse rows stay sparse."""
        zeros = np.zeros(len(self.half))
        self.apply(zeros, zeros)
        return not zeros.any()

    def apply_sparse(self, rows: Any) -> Any:
        """Return scaled sparse rows. Only if zeros are kept."""
        at = rows.indices
        values = rows.data.astype(np.float64)
        by_entry = (numbers[at] for numbers in (self.lower, self.upper, self.centre, self.half))
        Scaling(*by_entry).apply(values, values)
        return with_data(rows, values)

    def scaled(self, y: NDArray) -> Array:
        """Return a single target, scaled."""
        out = np.array(y, dtype=np.float64)
        self.apply(out, out)
        return out

    def clipped(self, predictions: Array) -> Array:
        """Return predictions that are clipped to the bounds, in place."""
        return np.clip(predictions, self.lower, self.upper, out=predictions)

    def columns(self, values: NDArray) -> Array:
        """Return targets, in one column or more, scaled."""
        out = np.empty((len(values), len(self.half)))
        self.apply(values.reshape(out.shape), out)
        return out

    def huber_threshold(self, value: Any, default: float, least: float) -> float:
        """Return the checked threshold of Huber's loss, in half ranges of a single target."""
        if value is None:
            return default
        threshold = check_positive(value, "huber_threshold") / self.half
        if threshold < least:
            raise ValueError(
                f"huber_threshold must be at least {least:g} times half the range of the targets, "
                f"which is {self.half:g}, got {shown(value)}"
            )
        return threshold


#: The constant feature of the intercept, as a multiple of `data_norm`. The intercept is regularised and gets noise like
#: every other coefficient. A small constant adds little to the norm, and 4 % to the noise.
INTERCEPT_CONSTANT = 0.3

#: C times the squared norm, under C="auto", if privacy does not require more regularisation.
LARGEST_KAPPA = 100.0

# Largest C times the squared norm. Beyond it, doubles cannot certify a minimiser.
_MOST_KAPPA = 1e8

# Smallest certified residual. Its square must be a normal double, because a norm could underflow to 0 otherwise.
_LEAST_RESIDUAL = 1e-140


@dataclass(frozen=True)
class Geometry:
    """Describe the minimisation by public numbers, without its weight C and its data."""

    # With three or more classes, the log loss gives one multinomial problem, and the Huber hinge one problem per class.

    loss: SmoothLoss
    n_problems: int
    n_columns: int
    norm: float
    constant: float

    @classmethod
    def of(cls, parameters: Checked, n_features: int, n_classes: int) -> Geometry:
        hinge = parameters.loss == "huber"
        smooth: SmoothLoss = HuberHinge() if hinge else LogLoss() if n_classes == 2 else MultinomialLogLoss(n_classes)
        constant = INTERCEPT_CONSTANT * parameters.data_norm if parameters.fit_intercept else 0.0
        return cls(
            loss=smooth,
            n_problems=n_classes if hinge and n_classes > 2 else 1,
            n_columns=n_features + parameters.fit_intercept,
            norm=augmented_norm(parameters.data_norm, constant),
            constant=constant,
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.n_problems, self.loss.outputs, self.n_columns

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def lipschitz(self) -> float:
        """Bound on one record's loss gradient in one problem."""
        return self.loss.lipschitz * self.norm

    @property
    def joint_lipschitz(self) -> float:
        """Bound on one record's loss gradient in all problems together."""
        return self.lipschitz * math.sqrt(self.n_problems)

    def joint(self, tau: float) -> float:
        """Bound on the residual of all problems together, when each is solved to `tau`."""
        return tau * math.sqrt(self.n_problems)


def checked_weight(C: float, parameters: Checked, geometry: Geometry) -> float:
    """Return the effective C, if minimisers with it can be certified."""
    if C * geometry.norm**2 > _MOST_KAPPA:
        raise ValueError(f"C must be at most {_MOST_KAPPA / geometry.norm**2:.3g} for this data_norm, got {shown(C)}")
    if parameters.tol * C * geometry.norm < _LEAST_RESIDUAL:
        raise ValueError(f"C is too small for this data_norm and tol, got {shown(C)}")
    return C


def noise_multiplier(epsilon: float, delta: float, size: int) -> float:
    """Return the approximate ratio of the noise to the sensitivity."""
    if epsilon == math.inf:
        return 0.0
    return gaussian_noise_multiplier(epsilon, delta) if delta > 0 else math.sqrt(size + 1) / epsilon


def automatic_weight(parameters: Checked, geometry: Geometry, score: float, most: float) -> float:
    """Return the weight at which the noise moves a score by about `score`, or the largest weight."""
    if not parameters.private:
        return most
    multiplier = noise_multiplier(parameters.epsilon, parameters.delta, geometry.size)
    return min(most, score / (multiplier * geometry.norm * geometry.joint_lipschitz))


#: Clipped rows in one place or in parts.
Rows = ClippedRows | PartedRows


def solve(
    rows: Rows,
    codes: NDArray[np.intp],
    geometry: Geometry,
    C: float,
    linear: Array,
    tau: float,
    max_iter: int,
    strong_convexity: float = 1.0,
) -> Array:
    """Return the certified minimisers, of shape ``geometry.shape``, each to a residual of `tau`."""
    thetas = []
    for problem, b in enumerate(linear.reshape(geometry.shape)):
        if isinstance(rows, PartedRows):
            number = None if geometry.n_problems == 1 else problem
            objective: Objective = rows.objective(number, geometry.loss, C, strong_convexity, b)
        else:
            kind = SparseObjective if issparse(rows.source) else Objective
            labels = codes if geometry.n_problems == 1 else (codes == problem).astype(np.intp)
            objective = kind(rows, labels, geometry.loss, C, strong_convexity, b)
        thetas.append(certified_minimizer(objective, tau, max_iter))
    return np.stack(thetas)


def clipped(X: Any, codes: Any, norm: float, constant: float) -> Rows:
    """Scale rows down to `norm`, and append the constant feature."""
    if isinstance(X, PartedArray):
        return PartedRows(X, codes, norm, constant)
    return clip_rows(X, norm, constant)


def linear_rule(released: Array, geometry: Geometry) -> tuple[Array, Array]:
    """Return coefficients and intercepts from the released numbers."""
    theta = released.reshape(geometry.shape)
    loss = geometry.loss
    weights = loss.basis @ theta[0] if isinstance(loss, MultinomialLogLoss) else theta[:, 0, :]
    if geometry.constant == 0:
        return weights.copy(), np.zeros(len(weights))
    return weights[:, :-1].copy(), geometry.constant * weights[:, -1]


# Parts of mu and of epsilon for the noise that hides the residual of the solver.
_SLACK_MU = 0.02
_SLACK_EPSILON = 0.005

# Kappa is rounded up before it is compared with the noise.
_BELOW = 1 - 2.0**-30

# The noise of the objective is rounded more finely than a release, because its rounding adds to the residual.
_OBJECTIVE_BITS = 36

#: Bits to which the curve's kappa is rounded up.
KAPPA_BITS = 40

# Factor of the log-odds of released counts of labels, and their largest size.
_LOG_ODDS, _MOST_ADDED = 0.5, 16.0

#: Labels of the noise of the objective, and of its minimiser.
OBJECTIVE, SOLUTION = "objective", "solution"


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


def objective_plan(parameters: Checked, geometry: Geometry, C: float, reserved: float) -> PrivacyGuarantee:
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
        Release(OBJECTIVE, objective, (1 - reserved) * (1 - slack_share), Theorem("Objective perturbation", number)),
        Release(SOLUTION, solution, (1 - reserved) * slack_share, Theorem("Objective perturbation", 5)),
    )
    return PrivacyGuarantee(epsilon, delta, events, releases)


def shrunk(
    counts: Array, mechanism: Mechanism, parameters: Checked, geometry: Geometry, C: float
) -> tuple[Array, float]:
    """Return what is added to logits of classes, and the strength of the penalty, from released counts of labels."""
    variance, strength = coordinate_variance(mechanism), 1.0
    if parameters.delta > 0:
        # Counts that differ by no more than their noise are made equal (James and Stein 1961).
        gaps = counts - counts.mean()
        square, spread = float(gaps @ gaps), (len(gaps) - 1) * variance
        counts = counts.mean() + gaps * (1 - spread / square if square > spread else 0.0)
    else:
        # With few records, the variance of the noise in a score is at most the curvature of the losses in a direction.
        noise = noise_multiplier(parameters.epsilon, parameters.delta, geometry.size) ** 2
        n_records = max(float(counts.sum()), 1.0)
        strength = max(strength, C * geometry.norm**2 * noise * geometry.size / n_records)
    # The log-odds have a factor, because the penalty makes the other part of the logits smaller as well.
    log_odds = _LOG_ODDS * np.log(np.maximum(counts, max(1.0, math.sqrt(variance))))
    return np.clip(log_odds - log_odds.mean(), -_MOST_ADDED, _MOST_ADDED), strength
