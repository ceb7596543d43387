"""The regularised problem of output and objective perturbation: public maps to [-1, 1], geometry, minimisers, rule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ..accounting import gaussian_noise_multiplier
from ..checks.params import Checked, check_bounds, check_positive, columns_of, shown
from ..parts.arrays import PartedArray
from ..sensitivity import ClippedRows, augmented_norm, clip_rows, with_data
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
