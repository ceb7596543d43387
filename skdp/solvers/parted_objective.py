"""The certified minimiser's objective over rows in parts: value, gradient and second derivative are sums over parts.

Sums of doubles depend on how rows are divided. Therefore a minimiser is equal to the one of rows in one place within
what both are certified for, and not in every bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

from ..parts.arrays import PartedArray
from ..parts.objects import KeptObjects
from ..sensitivity import ClippedRows, augmented_norm, clip_rows
from .certified import DENSE_LIMIT, Objective
from .losses import SmoothLoss

Array = NDArray[np.float64]

# Number of rows of a block of predictors.
_ROWS = 2**14


class PartedRows:
    """Clipped rows and their labels in parts, which are made once and kept where they lie."""

    def __init__(self, X: PartedArray, codes: PartedArray, norm: float, constant: float) -> None:
        self.norm = augmented_norm(norm, constant)
        self.parts = KeptObjects(partial(_clipped, norm, constant), (X, codes), _n_rows)


def _clipped(norm: float, constant: float, X: NDArray, codes: NDArray[np.intp]) -> tuple[ClippedRows, NDArray[np.intp]]:
    return clip_rows(X, norm, constant), codes


def _n_rows(part: tuple[ClippedRows, NDArray[np.intp]]) -> int:
    return len(part[1])


class PartedObjective(Objective):
    """Sum the losses of clipped rows in parts. The point of evaluation replaces the predictors."""

    def __init__(
        self, rows: PartedRows, problem: int | None, loss: SmoothLoss, C: float, linear: Array, ratio: int = 1
    ) -> None:
        # Labels are those of one problem of several, or codes if `problem` is None. Every `ratio`-th row counts.
        self._rows, self._problem, self._ratio, self._weight = rows, problem, ratio, C
        self.norm, self.loss, self.C, self.strong_convexity = rows.norm, loss, C * ratio, 1.0
        self.linear, self.shape = linear, linear.shape
        self._known: tuple[bytes, Array] = b"", np.empty(0)
        self._n_rows = rows.parts.n_rows if ratio == 1 else int(self._sum(_count)[0])

    @property
    def n_rows(self) -> int:
        return self._n_rows

    def subsample(self, ratio: int) -> PartedObjective:
        return PartedObjective(self._rows, self._problem, self.loss, self._weight, self.linear, ratio * self._ratio)

    def predictor(self, theta: Array) -> Array:
        return theta

    def _sum(self, task: Callable[..., Any]) -> Any:
        return self._rows.parts.sum(partial(_of_part, task, self._problem, self.loss, self.shape, self._ratio))

    def _value_and_gradient(self, z: Array) -> Array:
        if self._known[0] != z.tobytes():
            self._known = z.tobytes(), self._sum(partial(_value_and_gradient, z))
        return self._known[1]

    def value(self, theta: Array, z: Array) -> float:
        ridge = 0.5 * self.strong_convexity * float(np.vdot(theta, theta))
        return self.C * float(self._value_and_gradient(z)[0]) + ridge + float(np.vdot(self.linear, theta))

    def gradient(self, theta: Array, z: Array) -> Array:
        total = self._value_and_gradient(z)[1:].reshape(self.shape)
        return self.C * total + self.strong_convexity * theta + self.linear

    def slope(self, z: Array, z_step: Array) -> float:
        return float(np.vdot(self._value_and_gradient(z)[1:], z_step))

    def newton_solver(self, z: Array) -> Callable[[Array], Array]:
        q, p = self.shape
        if q * p > DENSE_LIMIT:
            return self._iterative_solver(z)
        return self._solver_of(self.C * self._sum(partial(_second, z)).reshape(q * p, q * p), z)

    def _iterative_solver(self, z: Array) -> Callable[[Array], Array]:
        q, p = self.shape

        def product(flat: Array) -> Array:
            direction = flat.reshape(q, p)
            total = self._sum(partial(_second_along, z, direction))
            return (self.C * total + self.strong_convexity * direction).ravel()

        operator = LinearOperator((q * p, q * p), matvec=product, dtype=np.float64)
        return lambda g: cg(operator, g.ravel(), rtol=1e-3, atol=0.0, maxiter=200)[0].reshape(q, p)

    def certified_gradient(self, theta: Array) -> tuple[Array, float]:
        return self._certified(theta, self._sum(partial(_loss_sums, theta)))

    def precise_gradient(self, theta: Array) -> tuple[Array, float]:
        totals = self._sum(partial(_precise_blocks, theta))
        total = np.array([math.fsum(entry) for entry in zip(*(part.ravel() for part in totals), strict=True)])
        return self._finish_precise(theta, total.reshape(self.shape))


def _objective(
    problem: int | None, loss: SmoothLoss, shape: tuple[int, ...], ratio: int, part: tuple[ClippedRows, NDArray]
) -> Objective:
    """Return the sum of the losses of one part."""
    rows, codes = part
    own = codes if problem is None else (codes == problem).astype(np.intp)
    objective = Objective(rows, own, loss, 1.0, 0.0, np.zeros(shape))
    if ratio > 1:
        objective = objective.subsample(ratio)
        objective.C = 1.0
    return objective


def _of_part(
    task: Callable[..., Any],
    problem: int | None,
    loss: SmoothLoss,
    shape: tuple[int, ...],
    ratio: int,
    part: tuple[ClippedRows, NDArray],
    rows: None,
) -> Any:
    return task(_objective(problem, loss, shape, ratio, part))


def _precise_blocks(theta: Array, objective: Objective) -> list[Array]:
    return objective.precise_blocks(theta)


def _count(objective: Objective) -> Array:
    return np.array([float(objective.n_rows)])


def _blocks(objective: Objective) -> list[slice]:
    return [slice(start, start + _ROWS) for start in range(0, max(objective.n_rows, 1), _ROWS)]


def _value_and_gradient(theta: Array, objective: Objective) -> Array:
    out = np.zeros(1 + theta.size)
    for part in _blocks(objective):
        X, target = objective.X[part], objective.target[part]
        z = X @ theta.T
        out[0] += np.sum(objective.loss.value(z, target))
        out[1:] += (objective.loss.derivative(z, target).T @ X).ravel()
    return out


def _second(theta: Array, objective: Objective) -> Array:
    q, p = theta.shape
    hessian = np.zeros((q, p, q, p))
    for part in _blocks(objective):
        X = objective.X[part]
        for a, b, weights in objective.loss.second_derivative(X @ theta.T, objective.target[part]):
            gram = X.T @ (X * weights[:, None])
            hessian[a, :, b, :] += gram
            if a != b:
                hessian[b, :, a, :] += gram
    return hessian


def _second_along(theta: Array, direction: Array, objective: Objective) -> Array:
    out = np.zeros(theta.shape)
    for part in _blocks(objective):
        X = objective.X[part]
        u = X @ direction.T
        v = np.zeros_like(u)
        for a, b, weights in objective.loss.second_derivative(X @ theta.T, objective.target[part]):
            v[:, a] += weights * u[:, b]
            if a != b:
                v[:, b] += weights * u[:, a]
        out += v.T @ X
    return out


def _loss_sums(theta: Array, objective: Objective) -> Array:
    return objective.gradient_of_losses(theta)
