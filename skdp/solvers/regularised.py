"""The regularised problem of output and objective perturbation: its geometry, its minimisers and its rule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ..accounting import gaussian_noise_multiplier
from ..checks.rules import Checked
from ..checks.values import shown
from ..parts.arrays import PartedArray
from ..sensitivity import ClippedRows, augmented_norm, clip_rows
from .certified import Objective, certified_minimizer
from .losses import HuberHinge, LogLoss, MultinomialLogLoss, SmoothLoss
from .row_objectives import PartedRows, SparseObjective

Array = NDArray[np.float64]

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
