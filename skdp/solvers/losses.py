r"""Losses of linear predictors, with the constants that privacy rests on.

A loss maps a predictor :math:`z = \theta x \in \mathbb{R}^q` and a label to a convex cost. With :math:`\|x\| \le R`:

- ``lipschitz``: the gradient in :math:`\theta` is at most ``lipschitz * R`` in Frobenius norm;
- ``curvature``: the largest eigenvalue of the second derivative in :math:`z`.

=============  =================================================  ===============  ===========
loss           cost                                               lipschitz        curvature
=============  =================================================  ===============  ===========
log loss       :math:`\log(1+e^{a-m})`, :math:`m = \pm z`         1                1/4
Huber hinge    0; :math:`(1+h-m)^2/4h`; :math:`1-m`               1                1/2h
multinomial    :math:`\log\sum_k e^{a_k} - a_y`                   :math:`\sqrt 2`  1/2
=============  =================================================  ===============  ===========

Multinomial: the derivative in the logits :math:`a` is :math:`p - e_y`, of squared norm at most
:math:`(1-p_y)^2 + (1-p_y)^2 \le 2`, and sums to zero. The logits are :math:`a = Bz` with orthonormal columns of
:math:`B` that span the vectors of zero sum, so that norms are kept and :math:`q = K - 1`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.linalg import helmert

Array = NDArray[np.float64]


class Loss(ABC):
    """A convex loss of `outputs` linear predictors. Predictors and derivatives have shape (n_rows, outputs)."""

    lipschitz: float
    curvature: float
    outputs: int = 1

    @abstractmethod
    def encode(self, codes: NDArray[np.intp]) -> Array:
        """Turn class indices into what the other methods take as `target`."""

    @abstractmethod
    def value(self, z: Array, target: Array) -> Array:
        """Cost of each row."""

    @abstractmethod
    def derivative(self, z: Array, target: Array) -> Array:
        """Derivative of each row's cost in its predictors."""

    @abstractmethod
    def second_derivative(self, z: Array, target: Array) -> Iterator[tuple[int, int, Array]]:
        """Yield the entries (a, b), a <= b, of each row's second derivative."""


class _Margin(Loss):
    """A binary loss of the margin: class 1 has sign +1, class 0 has sign -1."""

    lipschitz = 1.0

    def encode(self, codes: NDArray[np.intp]) -> Array:
        return np.where(codes == 1, 1.0, -1.0)[:, None]


class LogLoss(_Margin):
    r"""Compute the logistic loss :math:`\log(1+e^{a-m})` of a margin m, for a public number a of size at most 8."""

    curvature = 0.25

    def __init__(self, margin: float = 0.0) -> None:
        self.margin = margin

    def value(self, z: Array, target: Array) -> Array:
        x = self.margin - (z * target)[:, 0]
        # np.logaddexp(0, x), which takes four times as long.
        return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0.0)

    def derivative(self, z: Array, target: Array) -> Array:
        return -target * special.expit(self.margin - z * target)

    def second_derivative(self, z: Array, target: Array) -> Iterator[tuple[int, int, Array]]:
        p = special.expit(self.margin - (z * target)[:, 0])
        yield 0, 0, p * (1 - p)


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

    def second_derivative(self, z: Array, target: Array) -> Iterator[tuple[int, int, Array]]:
        inside = np.abs(1 - (z * target)[:, 0]) <= self.half_width
        yield 0, 0, np.where(inside, self.curvature, 0.0)


class MultinomialLogLoss(Loss):
    """Cross entropy of the softmax, in coordinates of the logits that sum to zero."""

    lipschitz = math.sqrt(2)
    curvature = 0.5

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes
        self.outputs = n_classes - 1
        self.basis: Array = helmert(n_classes).T

    def encode(self, codes: NDArray[np.intp]) -> Array:
        return np.eye(self.n_classes)[codes]

    def value(self, z: Array, target: Array) -> Array:
        logits = z @ self.basis.T
        return special.logsumexp(logits, axis=1) - np.einsum("ij,ij->i", logits, target)

    def derivative(self, z: Array, target: Array) -> Array:
        return (special.softmax(z @ self.basis.T, axis=1) - target) @ self.basis

    def second_derivative(self, z: Array, target: Array) -> Iterator[tuple[int, int, Array]]:
        p = special.softmax(z @ self.basis.T, axis=1)
        mean = p @ self.basis
        for a in range(self.outputs):
            for b in range(a, self.outputs):
                moment = p @ (self.basis[:, a] * self.basis[:, b])
                yield a, b, moment - mean[:, a] * mean[:, b]
