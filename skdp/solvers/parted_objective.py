"""The certified minimiser's objective over rows in parts: value, gradient and second derivative are sums over parts.

Sums of doubles depend on how rows are divided. Therefore a minimiser is equal to the one of rows in one place within
what both are certified for, and not in every bit.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..parts.arrays import PartedArray
from ..parts.objects import KeptObjects
from ..sensitivity import ClippedRows, clip_rows
from .certified import Bends, Objective
from .losses import SmoothLoss

Array = NDArray[np.float64]


class PartedRows:
    """Clipped rows and their labels in parts, which are made once and kept where they lie."""

    def __init__(self, X: PartedArray, codes: PartedArray, norm: float, constant: float) -> None:
        self.parts = KeptObjects(partial(_clipped, norm, constant), (X, codes), _n_labels)

    def objective(
        self, problem: int | None, loss: SmoothLoss, C: float, strong_convexity: float, linear: Array
    ) -> PartedObjective:
        """Return the objective of one problem of several, or of labels with these codes if `problem` is None."""
        of_part = partial(_objective, problem, loss, linear.shape)
        return PartedObjective(self.parts, of_part, C, strong_convexity, linear)


def _clipped(norm: float, constant: float, X: NDArray, codes: NDArray[np.intp]) -> tuple[ClippedRows, NDArray[np.intp]]:
    return clip_rows(X, norm, constant), codes


def _n_labels(part: tuple[ClippedRows, NDArray[np.intp]]) -> int:
    return len(part[1])


def _objective(
    problem: int | None, loss: SmoothLoss, shape: tuple[int, ...], part: tuple[ClippedRows, NDArray]
) -> Objective:
    """Return the sum of the losses of one part."""
    rows, codes = part
    labels = codes if problem is None else (codes == problem).astype(np.intp)
    return Objective(rows, labels, loss, 1.0, 0.0, np.zeros(shape))


class PartedObjective(Objective):
    """Sum the losses of rows in parts. The point of evaluation replaces the predictors."""

    def __init__(
        self,
        parts: KeptObjects,
        of_part: Callable[[Any], Objective],
        C: float,
        strong_convexity: float,
        linear: Array,
        ratio: int = 1,
    ) -> None:
        # `of_part` returns the sum of the losses of the rows of one part, from the kept object. Every `ratio`-th row of
        # a part counts.
        self._parts, self._of_part, self._ratio, self._weight = parts, of_part, ratio, C
        self._known: tuple[bytes, Array] = b"", np.empty(0)
        # The objective without rows solves and certifies with the sums over all rows.
        without_rows = copy(of_part(parts.without_rows))
        without_rows.C, without_rows.strong_convexity, without_rows.linear = C * ratio, strong_convexity, linear
        without_rows.n_rows = parts.n_rows if ratio == 1 else int(self._sum(_count)[0])
        self._without_rows, self.n_rows = without_rows, without_rows.n_rows
        self.norm, self.loss = without_rows.norm, without_rows.loss
        self.C, self.strong_convexity = without_rows.C, strong_convexity
        self.linear, self.shape = linear, linear.shape

    def subsample(self, ratio: int) -> PartedObjective:
        more = ratio * self._ratio
        return PartedObjective(self._parts, self._of_part, self._weight, self.strong_convexity, self.linear, more)

    def predictor(self, theta: Array) -> Array:
        return theta

    def _sum(self, task: Callable[..., Any]) -> Any:
        return self._parts.sum(partial(_applied, task, self._of_part, self._ratio))

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

    @property
    def has_matrix(self) -> bool:
        return self._without_rows.has_matrix

    def newton_solver(self, z: Array) -> Callable[[Array], Array]:
        second = self._sum(partial(_second, z)) if self.has_matrix else None
        return self._without_rows.solver_of(second, lambda direction: self._sum(partial(_second_along, z, direction)))

    def certified_gradient(self, theta: Array) -> tuple[Array, float]:
        return self._without_rows.certified(theta, self._sum(partial(_gradient_of_losses, theta)))

    def precise_gradient(self, theta: Array) -> tuple[Array, float]:
        return self._without_rows.precise(theta, self._sum(partial(_precise_blocks, theta)))


def objective_over(
    make: Callable[..., Objective],
    arrays: tuple[Any, ...],
    C: float,
    strong_convexity: float,
    linear: Array,
) -> Objective:
    """Return the objective that `make` returns for C, the ridge, the linear term and arrays, which may be in parts."""
    if not isinstance(arrays[0], PartedArray):
        return make(C, strong_convexity, linear, *arrays)
    parts = KeptObjects(partial(make, 1.0, 0.0, np.zeros(linear.shape)), arrays, _n_rows)
    return PartedObjective(parts, _itself, C, strong_convexity, linear)


def _itself(objective: Objective) -> Objective:
    return objective


def _n_rows(objective: Objective) -> int:
    return objective.n_rows


def _applied(task: Callable[..., Any], of_part: Callable[[Any], Objective], ratio: int, part: Any, rows: None) -> Any:
    objective = of_part(part)
    if ratio > 1:
        objective = objective.subsample(ratio)
        objective.C = 1.0
    return task(objective)


def _count(objective: Objective) -> Array:
    return np.array([float(objective.n_rows)])


def _value_and_gradient(theta: Array, objective: Objective) -> Array:
    z = objective.predictor(theta)
    return np.append(objective.value(theta, z), objective.gradient(theta, z))


def _second(theta: Array, objective: Objective) -> Array:
    return objective.second(_bends(theta, objective))


def _second_along(theta: Array, direction: Array, objective: Objective) -> Array:
    return objective.second_along(_bends(theta, objective), direction)


def _bends(theta: Array, objective: Objective) -> Bends:
    # Conjugate gradients need them many times. Kept objects remember them.
    known: tuple[bytes, Bends] = vars(objective).get("bends_at", (b"", []))
    if known[0] != theta.tobytes():
        known = theta.tobytes(), objective.bends(objective.predictor(theta))
        vars(objective)["bends_at"] = known
    return known[1]


def _gradient_of_losses(theta: Array, objective: Objective) -> Array:
    return objective.gradient_of_losses(theta)


def _precise_blocks(theta: Array, objective: Objective) -> list[Array]:
    return objective.precise_blocks(theta)
