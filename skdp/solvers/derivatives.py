r"""Derivatives of losses of linear predictors, each record's by itself, bit for bit.

Predictors have shape (outputs, n_rows), so that everything is elementwise along the rows: what a record contributes
does not depend on where it stands. Sums over the outputs are taken one output after the other, for the same reason.

================  =====================================================  ===========  ==================
loss              cost                                                   curvature    derivative at most
================  =====================================================  ===========  ==================
log loss          :math:`\log(1+e^{-m})`, :math:`m=\pm z`                1/4          1
hinge             :math:`\max(0, 1-m)`                                                1
Huber hinge       0; :math:`(1+h-m)^2/4h`; :math:`1-m`, :math:`h=1/2`    1            1
multinomial       :math:`\log\sum_k e^{z_k} - z_y`                       1/2          :math:`\sqrt 2`
squared           :math:`(z-t)^2/2`                                      1
Huber             :math:`(z-t)^2/2`, linear beyond :math:`c`             1            c
================  =====================================================  ===========  ==================
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from .losses import HuberHinge

Array = NDArray[np.float64]


class Derivative(ABC):
    """Compute the derivative of a loss in `outputs` predictors."""

    outputs: int = 1
    curvature: float  # Largest second derivative; for a loss with a kink, of its rounded neighbour.
    most: float  # Bound on the norm of a record's derivative.
    large: float  # Norm of a large derivative, which the default clipping norm is a fraction of.
    walk: float = 6.0  # Limit on the total noise in predictors of the longest row, for the default step.
    signed: bool = False  # If True, rows are multiplied by minus the record's sign: derivatives are positive.

    @abstractmethod
    def __call__(self, z: Array, target: NDArray | None) -> None:
        """Overwrite predictors, of shape (outputs, n_rows), by derivatives."""


class _Margin(Derivative):
    """Binary losses of the margin, with rows that carry the sign."""

    most = large = 1.0
    signed = True


class LogLoss(_Margin):
    """Logistic loss."""

    curvature = 0.25

    def __call__(self, z: Array, target: NDArray | None) -> None:
        # The logistic function, to within 2**-53 of one.
        z *= 0.5
        np.tanh(z, out=z)
        z += 1.0
        z *= 0.5


class Hinge(_Margin):
    """Hinge loss; its slope at the kink is 1."""

    curvature = 1.0

    def __call__(self, z: Array, target: NDArray | None) -> None:
        np.greater_equal(z, -1.0, out=z)


class RoundedHinge(_Margin):
    """Hinge loss with a rounded kink, as in :mod:`skdp.solvers.losses`."""

    curvature = HuberHinge.curvature

    def __call__(self, z: Array, target: NDArray | None) -> None:
        h = HuberHinge.half_width
        z += 1 + h
        z *= 1 / (2 * h)
        np.minimum(z, 1.0, out=z)
        np.maximum(z, 0.0, out=z)


class OneVsRest(Derivative):
    """A margin loss for each class against all others; targets are class numbers."""

    def __init__(self, margin: Derivative, n_classes: int) -> None:
        self.margin = margin
        self.outputs = n_classes
        self.curvature = margin.curvature
        self.most = self.large = margin.most * math.sqrt(n_classes)

    def __call__(self, z: Array, target: NDArray | None) -> None:
        for number, own in enumerate(z):
            sign = np.where(target == number, -1.0, 1.0)
            own *= sign
            self.margin(own, None)
            own *= sign


class Multinomial(Derivative):
    """Cross entropy of the softmax; targets are class numbers."""

    curvature = 0.5
    most = large = math.sqrt(2)

    def __init__(self, n_classes: int) -> None:
        self.outputs = n_classes

    def __call__(self, z: Array, target: NDArray | None) -> None:
        largest = z[0].copy()
        for own in z[1:]:
            np.maximum(largest, own, out=largest)
        z -= largest
        np.exp(z, out=z)
        total = largest
        np.copyto(total, z[0])
        for own in z[1:]:
            total += own
        z /= total
        for number, own in enumerate(z):
            own -= target == number


class Residual(Derivative):
    """Squared loss, or Huber's with a threshold; targets are numbers."""

    curvature = 1.0
    # In half ranges of the targets: predictions beyond are of no use, unlike large logits.
    walk = 0.7

    def __init__(self, threshold: float) -> None:
        self.most = threshold
        # Half the range of the targets.
        self.large = min(threshold, 1.0)

    def __call__(self, z: Array, target: NDArray | None) -> None:
        assert target is not None
        np.subtract(z, target, out=z)
        np.minimum(z, self.most, out=z)
        np.maximum(z, -self.most, out=z)
