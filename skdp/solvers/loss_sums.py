r"""Losses of a bounded score: how far one record's loss ranges, and sums of losses as convex functions.

A score :math:`z = w \cdot x` lies in :math:`[-a, a]` for :math:`\|w\| \le a/R` and :math:`\|x\| \le R`. The *spread* of
a loss is the largest difference that one record's loss makes between two points of that ball.

Theorem. For a loss :math:`\ell(yz)` that falls, with a label :math:`y = \pm 1`, the spread is
:math:`\ell(-a) - \ell(a)`. For a loss :math:`\varphi(z - u)` with :math:`\varphi` even and convex, and a target
:math:`u \in [-1, 1]`, it is :math:`\varphi(1 + a) - \varphi(\max(0, 1 - a))`. Both are attained.

Proof. The scores that a record can have are an interval :math:`[-b, b]`, :math:`b = \|x\| a/R \le a`, all of which
occur; a larger interval has no smaller spread. The first claim is monotony. For the second let :math:`u \ge 0`. The
largest value is :math:`\varphi(u + a)`, at the far end, the least :math:`\varphi(\max(0, u - a))`. Their difference
grows with :math:`u`: it is :math:`\varphi(u + a) - \varphi(0)` up to :math:`u = a`; beyond, its slope
:math:`\varphi'(u + a) - \varphi'(u - a)` is not negative, because :math:`\varphi` is convex.

==============  ================================  ===================================
loss            cost                              spread for a score of at most a
==============  ================================  ===================================
log loss        :math:`\log(1 + e^{-yz})`         :math:`a`
squared error   :math:`(z - u)^2/2`               :math:`(1 + a)^2/2`; :math:`2a` below 1
Huber           quadratic up to c, then linear    :math:`\le 2ca`
absolute error  :math:`|z - u|`                   :math:`1 + a`; :math:`2a` below 1
==============  ================================  ===================================
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from ..sensitivity import sum_over_rows

Array = NDArray[np.float64]

# Steps to a rough minimiser, around which the sampler's frame is made. Any frame is right.
_FRAME_STEPS = 25

# How far they go, in multiples of the step to the minimum of a majorant.
_LENGTHS = 2.0 ** np.arange(12)

# Curvature along an axis that is taken to be there, relative to the largest one.
_LEAST_CURVATURE = 1e-6

# The ellipsoid in four dimensions is within 1e-30 of its first size after 40 / ln(10) times 30 steps, which are 2,800.
_MOST_CUTS = 10_000


class ScoreLoss(ABC):
    """A convex loss of a score. Scores have shape (..., n_rows), targets (n_rows,)."""

    @abstractmethod
    def spread(self, reach: float) -> float:
        """Return the spread for scores in [-reach, reach]."""

    @abstractmethod
    def value(self, z: Array, target: Array) -> Array:
        """Return costs."""

    @abstractmethod
    def value_and_slope(self, z: Array, target: Array) -> tuple[Array, Array]:
        """Return costs, and subgradients in the score."""

    @abstractmethod
    def curvature(self, z: Array, target: Array) -> Array:
        """Return something like second derivatives."""

    @abstractmethod
    def majorant(self, z: Array, target: Array) -> Array:
        """Return second derivatives of parabolas that touch the costs at `z` and lie above them elsewhere."""


class LogLoss(ScoreLoss):
    """Logistic loss; targets are -1 and 1."""

    def spread(self, reach: float) -> float:
        # log(1 + e^a) - log(1 + e^-a)
        return reach

    def value(self, z: Array, target: Array) -> Array:
        margin = z * target
        cost: Array = np.log(1 + np.exp(-np.abs(margin))) - np.minimum(margin, 0.0)
        return cost

    def value_and_slope(self, z: Array, target: Array) -> tuple[Array, Array]:
        margin = z * target
        small = np.exp(-np.abs(margin))
        whole = 1 + small
        slope = -target * (np.where(margin >= 0, small, 1.0) / whole)
        return np.log(whole) - np.minimum(margin, 0.0), slope

    def curvature(self, z: Array, target: Array) -> Array:
        small = np.exp(-np.abs(z))
        curved: Array = small / (1 + small) ** 2
        return curved

    def majorant(self, z: Array, target: Array) -> Array:
        size = np.maximum(np.abs(z), 1e-3)
        above: Array = np.tanh(size / 2) / (2 * size)
        return above


class _ResidualLoss(ScoreLoss):
    """A loss of the residual; targets lie in [-1, 1]."""

    @abstractmethod
    def of(self, residual: Array) -> Array:
        """Return costs of residuals."""

    def spread(self, reach: float) -> float:
        most, least = self.of(np.array([1 + reach, max(0.0, 1 - reach)]))
        # The rounding of a difference.
        return float(most - least + 2.0**-50 * most)

    def value(self, z: Array, target: Array) -> Array:
        return self.of(z - target)

    def curvature(self, z: Array, target: Array) -> Array:
        # Second derivatives are zero far from the target, and say nothing of a kink that is close.
        return self.majorant(z, target)


class SquaredError(_ResidualLoss):
    """Half the squared residual."""

    def of(self, residual: Array) -> Array:
        return residual**2 / 2

    def value_and_slope(self, z: Array, target: Array) -> tuple[Array, Array]:
        residual = z - target
        return residual**2 / 2, residual

    def majorant(self, z: Array, target: Array) -> Array:
        return np.ones_like(z)


class Huber(_ResidualLoss):
    """Compute half the squared residual up to a positive threshold, and a linear loss beyond."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def of(self, residual: Array) -> Array:
        size = np.abs(residual)
        near = np.minimum(size, self.threshold)
        cost: Array = near * (size - near / 2)
        return cost

    def value_and_slope(self, z: Array, target: Array) -> tuple[Array, Array]:
        residual = z - target
        slope = np.clip(residual, -self.threshold, self.threshold)
        return slope * (residual - slope / 2), slope

    def majorant(self, z: Array, target: Array) -> Array:
        above: Array = self.threshold / np.maximum(np.abs(z - target), self.threshold)
        return above


class AbsoluteError(_ResidualLoss):
    """The size of the residual."""

    def of(self, residual: Array) -> Array:
        return np.abs(residual)

    def value_and_slope(self, z: Array, target: Array) -> tuple[Array, Array]:
        residual = z - target
        return np.abs(residual), np.sign(residual)

    def majorant(self, z: Array, target: Array) -> Array:
        # Of a function that is rounded off where the residual is small.
        above: Array = 1 / np.maximum(np.abs(z - target), 1e-3)
        return above


class LossSum:
    """Sum losses over rows, as a convex function of coefficients in a ball; targets are labels -1 and 1, or numbers."""

    def __init__(self, rows: Array, target: Array, loss: ScoreLoss, radius: float) -> None:
        self._rows, self._target, self._loss = rows, target, loss
        self.frame = np.eye(rows.shape[1])
        self.frame = _frame(self, radius)
        self._rows = rows @ self.frame

    def values(self, points: Array) -> Array:
        """Return sums of losses; see `skdp.mechanisms.tangent_planes.Potential`."""

        def block(rows: Array, target: Array) -> Array:
            return self._loss.value(points @ rows.T, target).sum(axis=1)

        return sum_over_rows(block, self._rows, self._target)

    def slopes(self, points: Array) -> tuple[Array, Array]:
        """Return values and subgradients; see `skdp.mechanisms.tangent_planes.Potential`."""

        def block(rows: Array, target: Array) -> Array:
            cost, slope = self._loss.value_and_slope(points @ rows.T, target)
            return np.column_stack([cost.sum(axis=1), slope @ rows])

        total = sum_over_rows(block, self._rows, self._target)
        return total[:, 0], total[:, 1:]

    def bend(self, point: Array, *, above: bool) -> Array:
        """Return something like the second derivative at a point, or that of a parabola above the function."""
        weigh = self._loss.majorant if above else self._loss.curvature

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
    """Return axes along which boxes are cut, in columns, from a rough minimiser on the ball."""
    # In the interior, they are the eigenvectors of the second derivative. On the boundary, one is the ray from the
    # origin, and across this ray, the function and the boundary both curve.
    size = len(losses.frame)
    point, shift = np.zeros(size), 0.0
    for _ in range(_FRAME_STEPS):
        gradient = losses.slopes(point[None])[1][0]
        above = _regular(losses.bend(point, above=True))
        step, shift = _step_on_ball(above, above @ point - gradient, radius)
        # Majorants of kinks make short steps: longer ones in the same direction are tried.
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
    """Return a positive definite matrix, not far from a semi-definite one."""
    return hessian + np.eye(len(hessian)) * max(_LEAST_CURVATURE * float(np.trace(hessian)), 1e-12)


def _step_on_ball(hessian: Array, right: Array, radius: float) -> tuple[Array, float]:
    """Minimise w'Hw/2 - right'w on a ball; return the minimiser and the multiplier of the constraint."""
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
