r"""Losses of linear predictors and of a network's outputs, with the constants of the privacy proofs.

A loss maps predictors :math:`z \in \mathbb{R}^q` and a label or target to a convex cost. Its base classes name its
solvers: `SmoothLoss` for certified minimisation, `GradientLoss` for clipped gradients of linear models, `NetworkLoss`
for those of networks, and `ScoreLoss` for the exponential mechanism on a ball.

- ``lipschitz`` bounds the norm of the derivative in :math:`z`. For :math:`z = \theta x` and :math:`\|x\| \le R`, the
  gradient in :math:`\theta` is at most ``lipschitz * R`` in Frobenius norm.
- ``curvature`` bounds the eigenvalues of the second derivative in :math:`z`. For a loss with a kink, it is that of its
  rounded neighbour.
- ``spread`` bounds the difference that one record's loss makes between two points of a ball of coefficients.

================  =====================================================  ===============  =========
loss              cost                                                   lipschitz        curvature
================  =====================================================  ===============  =========
log loss          :math:`\log(1+e^{a-m})`, :math:`m = \pm z`             1                1/4
hinge             :math:`\max(0, 1-m)`                                   1                1
Huber hinge       0; :math:`(1+h-m)^2/4h`; :math:`1-m`, :math:`h=1/2`    1                1/2h
multinomial       :math:`\log\sum_k e^{z_k} - z_y`                       :math:`\sqrt 2`  1/2
Huber             :math:`(z-t)^2/2`, linear beyond :math:`c`             c                1
absolute error    :math:`|z-t|`                                          1
================  =====================================================  ===============  =========

Multinomial: the derivative is :math:`p - e_y`, of squared norm at most :math:`(1-p_y)^2 + (1-p_y)^2 \le 2`, and sums to
zero. For certified minimisation, the logits are :math:`Bz` with orthonormal columns of :math:`B` that span the vectors
of zero sum, so that norms are kept and there are :math:`K - 1` predictors.

The spread of the log loss on scores in :math:`[-b, b]` is :math:`b`. For a loss :math:`\varphi(z - u)` with
:math:`\varphi` even and convex, and a target :math:`u \in [-1, 1]`, it is :math:`\varphi(1 + b) - \varphi(\max(0, 1 -
b))` (theorem 2 of the user guide, *Exponential mechanism*).

**Derivatives do not depend on the position.** The methods of `GradientLoss` and `NetworkLoss` compute the derivative of
each record from its own predictors only, bit for bit, by elementwise functions of single numbers. Sums over the outputs
have a fixed order, or are sums of multiples of a power of two, which are exact in any order.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.linalg import helmert

from ..sensitivity import sum_over_rows

Array = NDArray[np.float64]

#: Exponentials of at most 1 are rounded to multiples of 2**-38, so that sums over so many classes are exact.
MOST_CLASSES = 2**15

# The constant that rounds them has the unit 2**-38.
_ROUND_EXPONENTIALS = 1.5 * 2.0 ** (52 - 38)


class Loss(ABC):
    """A convex loss of `outputs` predictors."""

    outputs: int = 1
    lipschitz: float
    curvature: float


class SmoothLoss(Loss):
    """A loss with a derivative, for minimisers. Predictors and derivatives have shape (n_rows, outputs)."""

    @abstractmethod
    def encode(self, codes: NDArray[np.intp]) -> NDArray:
        """Convert class indices to the `target` of the other methods."""

    @abstractmethod
    def value(self, z: Array, target: Array) -> Array:
        """Cost of each row."""

    @abstractmethod
    def derivative(self, z: Array, target: Array) -> Array:
        """Derivative of each row's cost in its predictors."""

    @abstractmethod
    def bends(self, z: Array, target: Array) -> Array:
        """Numbers of each row that determine its second derivative: as many as it has classes, and not their square."""

    @abstractmethod
    def bend_along(self, bends: Array, u: Array) -> Array:
        """Product of each row's second derivative and its row of `u`."""


class GradientLoss(Loss):
    """A loss whose derivatives are clipped and summed."""

    signed: bool = False  # If True, rows are multiplied by minus the record's sign, so that derivatives are positive.

    @property
    def usual_norm(self) -> float:
        """Norm of a large derivative. The default clipping bound is a fraction of it."""
        return self.lipschitz

    @abstractmethod
    def differentiate(self, z: Array, target: NDArray | None) -> None:
        """Overwrite predictors, of shape (outputs, n_rows), by derivatives."""


class ScoreLoss(Loss):
    """A loss of a bounded score. Scores have shape (..., n_rows), targets (n_rows,)."""

    @abstractmethod
    def spread(self, reach: float) -> float:
        """Return the spread for scores in [-reach, reach]."""

    @abstractmethod
    def cost(self, z: Array, target: Array) -> Array:
        """Return costs."""

    @abstractmethod
    def cost_and_slope(self, z: Array, target: Array) -> tuple[Array, Array]:
        """Return costs, and subgradients in the score."""

    @abstractmethod
    def bend(self, z: Array, target: Array) -> Array:
        """Return approximate second derivatives."""

    @abstractmethod
    def majorant(self, z: Array, target: Array) -> Array:
        """Return second derivatives of parabolas that touch the costs at `z` and lie above them elsewhere."""


class NetworkLoss(Loss):
    """A loss of a network's outputs."""

    largest: float  # Bound on an entry of the derivative.
    out_activation: str  # scikit-learn's name of the activation of the outputs.

    @property
    def norm(self) -> float:
        """Bound on the L2 norm of a computed derivative."""
        return self.lipschitz * (1 + 2.0**-30)

    @abstractmethod
    def differentiate_rows(self, outputs: Array, targets: NDArray) -> None:
        """Replace outputs, of shape (n_rows, outputs), by the derivatives of their loss."""


class _Margin(SmoothLoss, GradientLoss):
    """A binary loss of the margin: class 1 has sign +1, class 0 has sign -1."""

    lipschitz = 1.0
    signed = True

    def encode(self, codes: NDArray[np.intp]) -> NDArray[np.int8]:
        return np.where(codes == 1, np.int8(1), np.int8(-1))[:, None]

    def bend_along(self, bends: Array, u: Array) -> Array:
        return bends * u


class LogLoss(_Margin, ScoreLoss, NetworkLoss):
    r"""The logistic loss :math:`\log(1+e^{-m})` of a margin m."""

    curvature = 0.25
    largest = norm = 1.0
    out_activation = "logistic"

    def value(self, z: Array, target: Array) -> Array:
        x = -(z * target)[:, 0]
        # np.logaddexp(0, x) takes four times as long.
        return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0.0)

    def derivative(self, z: Array, target: Array) -> Array:
        return -target * special.expit(-z * target)

    def bends(self, z: Array, target: Array) -> Array:
        p = special.expit(-z * target)
        return p * (1 - p)

    def differentiate(self, z: Array, target: NDArray | None) -> None:
        # The logistic function, to within 2**-53 of one.
        z *= 0.5
        np.tanh(z, out=z)
        z += 1.0
        z *= 0.5

    def differentiate_rows(self, outputs: Array, targets: NDArray) -> None:
        """Replace outputs, of shape (n_rows, 1), by ``expit(z) - y`` for codes y."""
        special.expit(outputs, out=outputs)
        outputs[:, 0] -= targets

    def spread(self, reach: float) -> float:
        # log(1 + e^b) - log(1 + e^-b)
        return reach

    def cost(self, z: Array, target: Array) -> Array:
        margin = z * target
        return np.log(1 + np.exp(-np.abs(margin))) - np.minimum(margin, 0.0)

    def cost_and_slope(self, z: Array, target: Array) -> tuple[Array, Array]:
        margin = z * target
        small = np.exp(-np.abs(margin))
        whole = 1 + small
        slope = -target * (np.where(margin >= 0, small, 1.0) / whole)
        return np.log(whole) - np.minimum(margin, 0.0), slope

    def bend(self, z: Array, target: Array) -> Array:
        small = np.exp(-np.abs(z))
        return small / (1 + small) ** 2

    def majorant(self, z: Array, target: Array) -> Array:
        size = np.maximum(np.abs(z), 1e-3)
        return np.tanh(size / 2) / (2 * size)


class Hinge(GradientLoss):
    """Hinge loss. Its slope at the kink is 1."""

    lipschitz = curvature = 1.0
    signed = True

    def differentiate(self, z: Array, target: NDArray | None) -> None:
        np.greater_equal(z, -1.0, out=z)


class HuberHinge(_Margin):
    """Hinge loss with its kink rounded off over a half width of 1/2 (Chaudhuri and others 2011, section 3.4)."""

    half_width = 0.5
    curvature = 1 / (2 * half_width)

    def value(self, z: Array, target: Array) -> Array:
        h = self.half_width
        excess = 1 + h - (z * target)[:, 0]
        return np.where(excess <= 0, 0.0, np.where(excess >= 2 * h, excess - h, excess**2 / (4 * h)))

    def derivative(self, z: Array, target: Array) -> Array:
        h = self.half_width
        return -target * np.clip((1 + h - z * target) / (2 * h), 0.0, 1.0)

    def bends(self, z: Array, target: Array) -> Array:
        return np.where(np.abs(1 - z * target) <= self.half_width, self.curvature, 0.0)

    def differentiate(self, z: Array, target: NDArray | None) -> None:
        h = self.half_width
        z += 1 + h
        z *= 1 / (2 * h)
        np.minimum(z, 1.0, out=z)
        np.maximum(z, 0.0, out=z)


class OneVsRest(GradientLoss):
    """A margin loss for each class against all others. Targets are class numbers."""

    def __init__(self, margin: GradientLoss, n_classes: int) -> None:
        self.margin = margin
        self.outputs = n_classes
        self.curvature = margin.curvature
        self.lipschitz = margin.lipschitz * math.sqrt(n_classes)

    def differentiate(self, z: Array, target: NDArray | None) -> None:
        for number, output in enumerate(z):
            sign = np.where(target == number, -1.0, 1.0)
            output *= sign
            self.margin.differentiate(output, None)
            output *= sign


class SoftmaxLogLoss(GradientLoss, NetworkLoss):
    """Cross entropy of the softmax. Targets are class numbers."""

    lipschitz = math.sqrt(2)
    curvature = 0.5
    largest = 1.0
    out_activation = "softmax"

    def __init__(self, n_classes: int) -> None:
        self.outputs = n_classes

    def differentiate(self, z: Array, target: NDArray | None) -> None:
        largest = z[0].copy()
        for output in z[1:]:
            np.maximum(largest, output, out=largest)
        z -= largest
        np.exp(z, out=z)
        total = largest
        np.copyto(total, z[0])
        for output in z[1:]:
            total += output
        z /= total
        for number, output in enumerate(z):
            output -= target == number

    def differentiate_rows(self, outputs: Array, targets: NDArray) -> None:
        """Replace outputs by ``softmax(z) - onehot(y)`` for codes y of at most `MOST_CLASSES` classes."""
        exponentials(outputs)
        outputs /= outputs.sum(axis=1, keepdims=True)
        outputs[np.arange(len(targets)), targets] -= 1.0


def exponentials(outputs: Array) -> None:
    """Replace outputs by their exponentials, relative to the largest of the row, as multiples of ``2**-38``."""
    outputs -= outputs.max(axis=1, keepdims=True)
    np.exp(outputs, out=outputs)
    outputs += _ROUND_EXPONENTIALS
    outputs -= _ROUND_EXPONENTIALS


class MultinomialLogLoss(SmoothLoss):
    """Cross entropy of the softmax, in coordinates of the logits that sum to zero.

    Public numbers of a size of at most 16 may be added to the logits.
    """

    lipschitz = SoftmaxLogLoss.lipschitz
    curvature = SoftmaxLogLoss.curvature

    def __init__(self, n_classes: int, added: Array | None = None) -> None:
        self.n_classes = n_classes
        self.outputs = n_classes - 1
        self.basis: Array = helmert(n_classes).T
        self.added = np.zeros(n_classes) if added is None else added

    def encode(self, codes: NDArray[np.intp]) -> Array:
        return np.eye(self.n_classes)[codes]

    def value(self, z: Array, target: Array) -> Array:
        logits = z @ self.basis.T + self.added
        return special.logsumexp(logits, axis=1) - np.einsum("ij,ij->i", logits, target)

    def derivative(self, z: Array, target: Array) -> Array:
        return (special.softmax(z @ self.basis.T + self.added, axis=1) - target) @ self.basis

    def bends(self, z: Array, target: Array) -> Array:
        return special.softmax(z @ self.basis.T + self.added, axis=1)

    def bend_along(self, bends: Array, u: Array) -> Array:
        logits = u @ self.basis.T
        logits -= np.einsum("ij,ij->i", bends, logits)[:, None]
        logits *= bends
        return logits @ self.basis


class Huber(GradientLoss, NetworkLoss):
    """Half the squared residual up to a positive threshold, and a linear loss beyond."""

    curvature = 1.0
    out_activation = "identity"

    def __init__(self, threshold: float, outputs: int = 1) -> None:
        self.threshold = self.largest = threshold
        self.outputs = outputs
        self.lipschitz = threshold * math.sqrt(outputs)

    @property
    def usual_norm(self) -> float:
        # The residual of half the range of the targets, if that is smaller.
        return min(self.lipschitz, 1.0)

    def differentiate(self, z: Array, target: NDArray | None) -> None:
        assert target is not None
        np.subtract(z, target, out=z)
        np.minimum(z, self.threshold, out=z)
        np.maximum(z, -self.threshold, out=z)

    def differentiate_rows(self, outputs: Array, targets: NDArray) -> None:
        self.differentiate(outputs, targets)


class AbsoluteError(ScoreLoss):
    """The size of the residual. Targets lie in [-1, 1]."""

    lipschitz = 1.0

    def spread(self, reach: float) -> float:
        most, least = 1 + reach, max(0.0, 1 - reach)
        # This is the rounding of a difference.
        return most - least + 2.0**-50 * most

    def cost(self, z: Array, target: Array) -> Array:
        return np.abs(z - target)

    def cost_and_slope(self, z: Array, target: Array) -> tuple[Array, Array]:
        residual = z - target
        return np.abs(residual), np.sign(residual)

    def bend(self, z: Array, target: Array) -> Array:
        # Second derivatives are zero far from the target, and do not show a kink that is close.
        return self.majorant(z, target)

    def majorant(self, z: Array, target: Array) -> Array:
        # The second derivative of a function that is rounded off for small residuals.
        return 1 / np.maximum(np.abs(z - target), 1e-3)


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
    # As many halvings as a double has bits leave rounding errors only.
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
