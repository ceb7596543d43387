"""Sums of losses as convex functions of coefficients in a ball, and their minimiser."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..sensitivity import sum_over_rows
from .losses import ScoreLoss

Array = NDArray[np.float64]

# Number of steps to an approximate minimiser, around which the sampler's frame is made. Every frame gives the same law.
_FRAME_STEPS = 25

# Lengths of these steps, in multiples of the step to the minimum of a majorant.
_LENGTHS = 2.0 ** np.arange(12)

# Assumed curvature along an axis, relative to the largest one.
_LEAST_CURVATURE = 1e-6

# The ellipsoid in four dimensions is within 1e-30 of its first size after 40 / ln(10) times 30 steps, which are 2,800.
_MOST_CUTS = 10_000


class LossSum:
    """Sum losses over rows, as a convex function of coefficients in a ball. Targets are labels -1 and 1, or numbers."""

    def __init__(self, rows: Array, target: Array, loss: ScoreLoss, radius: float) -> None:
        self._rows, self._target, self._loss = rows, target, loss
        self.frame = np.eye(rows.shape[1])
        self.frame = _frame(self, radius)
        self._rows = rows @ self.frame

    def values(self, points: Array) -> Array:
        """Return sums of losses (see `skdp.mechanisms.tangent_planes.Potential`)."""

        def block(rows: Array, target: Array) -> Array:
            return self._loss.cost(points @ rows.T, target).sum(axis=1)

        return sum_over_rows(block, self._rows, self._target)

    def slopes(self, points: Array) -> tuple[Array, Array]:
        """Return values and subgradients (see `skdp.mechanisms.tangent_planes.Potential`)."""

        def block(rows: Array, target: Array) -> Array:
            cost, slope = self._loss.cost_and_slope(points @ rows.T, target)
            return np.column_stack([cost.sum(axis=1), slope @ rows])

        total = sum_over_rows(block, self._rows, self._target)
        return total[:, 0], total[:, 1:]

    def bend(self, point: Array, *, above: bool) -> Array:
        """Return an approximate second derivative at a point, or that of a parabola above the function."""
        weigh = self._loss.majorant if above else self._loss.bend

        def block(rows: Array, target: Array) -> Array:
            return (rows * weigh(rows @ point, target)[:, None]).T @ rows

        return sum_over_rows(block, self._rows, self._target)


class SquaredErrorSum(LossSum):
    """Sum squared errors from second moments, so that evaluating a point takes no pass over the rows."""

    def __init__(self, rows: Array, target: Array, radius: float) -> None:
        def block(rows: Array, target: Array) -> Array:
            both = np.column_stack([rows, target])
            return both.T @ both

        moments = sum_over_rows(block, rows, target)
        self._gram, self._cross, self._square = moments[:-1, :-1], moments[:-1, -1], float(moments[-1, -1])
        self.frame = np.eye(rows.shape[1])
        self.frame = _frame(self, radius)
        self._gram = self.frame.T @ self._gram @ self.frame
        self._cross = self.frame.T @ self._cross

    def values(self, points: Array) -> Array:
        return self.slopes(points)[0]

    def slopes(self, points: Array) -> tuple[Array, Array]:
        image = points @ self._gram
        values = (np.einsum("ij,ij->i", points, image) + self._square) / 2 - points @ self._cross
        return values, image - self._cross

    def bend(self, point: Array, *, above: bool) -> Array:
        return self._gram


def _frame(losses: LossSum, radius: float) -> Array:
    """Return axes along which boxes are cut, in columns, from an approximate minimiser on the ball."""
    # In the interior, they are the eigenvectors of the second derivative. On the boundary, one is the ray from the
    # origin, and across this ray, the function and the boundary both curve.
    size = len(losses.frame)
    point, shift = np.zeros(size), 0.0
    for _ in range(_FRAME_STEPS):
        gradient = losses.slopes(point[None])[1][0]
        above = _regular(losses.bend(point, above=True))
        step, shift = _step_on_ball(above, above @ point - gradient, radius)
        # Majorants of kinks give short steps. Therefore longer steps in the same direction are tried.
        tried = point + (step - point) * _LENGTHS[:, None]
        tried /= np.maximum(np.linalg.norm(tried, axis=1) / radius, 1.0)[:, None]
        point = tried[losses.values(tried).argmin()]
    hessian = _regular(losses.bend(point, above=False))
    if shift == 0:
        return np.linalg.eigh(hessian)[1]
    ray = point / np.linalg.norm(point)
    across = np.linalg.qr(np.column_stack([ray, np.eye(size)]))[0][:, 1:size]
    return np.column_stack([ray, across @ np.linalg.eigh(across.T @ hessian @ across)[1]])


def _regular(hessian: Array) -> Array:
    """Return a positive definite matrix close to a semi-definite one."""
    return hessian + np.eye(len(hessian)) * max(_LEAST_CURVATURE * float(np.trace(hessian)), 1e-12)


def _step_on_ball(hessian: Array, right: Array, radius: float) -> tuple[Array, float]:
    """Minimise w'Hw/2 - right'w on a ball. Return the minimiser and the multiplier of the constraint."""
    values, vectors = np.linalg.eigh(hessian)
    along = vectors.T @ right
    length = float(np.linalg.norm(right))
    low, high = 0.0, length / radius
    if float(np.linalg.norm(along / values)) <= radius:
        return vectors @ (along / values), 0.0
    for _ in range(60):
        middle = (low + high) / 2
        trial = along / (values + middle)
        if math.sqrt(trial @ trial) > radius:
            low = middle
        else:
            high = middle
    return vectors @ (along / (values + high)), high


def minimiser_on_ball(losses: LossSum, radius: float) -> Array:
    """Minimise a sum of losses on a ball, without privacy, by the ellipsoid method, which allows kinks."""
    # Each step shrinks the volume by a factor that depends only on the dimension. Therefore the number of steps is
    # public.
    size = len(losses.frame)
    centre, shape = np.zeros(size), np.eye(size) * radius**2
    best, least = centre, math.inf
    floor = 0.0
    for _ in range(_MOST_CUTS):
        if centre @ centre > radius**2:
            normal, gap = centre, math.inf
        else:
            values, gradients = losses.slopes(centre[None])
            normal = gradients[0]
            if values[0] < least:
                best, least = centre, values[0]
            floor = max(floor, 1e-14 * abs(float(values[0])))
            gap = math.sqrt(max(normal @ shape @ normal, 0.0))
        if gap <= floor or np.trace(shape) < (1e-12 * radius) ** 2:
            break
        if size == 1:
            half = math.sqrt(shape[0, 0]) / 2
            centre, shape = centre - math.copysign(half, normal[0]), shape / 4
            continue
        image = shape @ normal
        image /= math.sqrt(normal @ image)
        centre = centre - image / (size + 1)
        shape = (shape - np.outer(image, image) * (2 / (size + 1))) * (size**2 / (size**2 - 1))
    return losses.frame @ best
