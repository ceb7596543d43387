"""Losses of a network's outputs: their derivatives, row by row, with public bounds.

Every derivative is computed from its own row alone, by functions of single numbers. The one sum over a row, that of the
softmax, is a sum of multiples of a power of two, which is exact in any order.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]

# Exponentials of at most 1 are rounded to multiples of 2**-38, so that 2**15 of them add up without rounding. The
# constant that does so has the unit 2**-38.
_ROUND_EXPONENTIALS = 1.5 * 2.0 ** (52 - 38)


def exponentials(outputs: Array) -> None:
    """Replace outputs by their exponentials, relative to the largest of the row, as multiples of ``2**-38``."""
    outputs -= outputs.max(axis=1, keepdims=True)
    np.exp(outputs, out=outputs)
    outputs += _ROUND_EXPONENTIALS
    outputs -= _ROUND_EXPONENTIALS


class Loss(ABC):
    """Compute a loss of outputs z for one record."""

    n_outputs: int
    largest: float  # Bound on an entry of the derivative.
    norm: float  # Bound on the L2 norm of the derivative.
    out_activation: str  # scikit-learn's name of the activation of the outputs.

    @abstractmethod
    def derivative(self, outputs: Array, targets: NDArray) -> None:
        """Replace outputs, of shape (n_rows, n_outputs), by the derivatives of their loss."""


class BinaryLogLoss(Loss):
    """The log loss of one logit; targets are 0 or 1."""

    n_outputs = 1
    largest = norm = 1.0
    out_activation = "logistic"

    def derivative(self, outputs: Array, targets: NDArray) -> None:
        """Replace outputs, of shape (n_rows, 1), by ``expit(z) - y`` for codes y."""
        special.expit(outputs, out=outputs)
        outputs[:, 0] -= targets


class SoftmaxLogLoss(Loss):
    """Compute the log loss of three logits or more, at most ``2**15``; targets are codes."""

    largest = 1.0
    norm = math.sqrt(2) * (1 + 2.0**-30)
    out_activation = "softmax"

    def __init__(self, n_outputs: int) -> None:
        if n_outputs > 2**15:
            raise ValueError(f"classes must be at most {2**15}, got {n_outputs}")
        self.n_outputs = n_outputs

    def derivative(self, outputs: Array, targets: NDArray) -> None:
        """Replace outputs by ``softmax(z) - onehot(y)`` for codes y."""
        exponentials(outputs)
        outputs /= outputs.sum(axis=1, keepdims=True)
        outputs[np.arange(len(targets)), targets] -= 1.0


class Residuals(Loss):
    """Compute the Huber loss: squared error whose residuals are clipped at `threshold`; targets lie in [-1, 1]."""

    out_activation = "identity"

    def __init__(self, n_outputs: int, threshold: float) -> None:
        self.n_outputs = n_outputs
        self.largest = threshold
        self.norm = threshold * math.sqrt(n_outputs) * (1 + 2.0**-30)

    def derivative(self, outputs: Array, targets: NDArray) -> None:
        """Replace outputs by ``clip(z - y)`` for scaled targets y."""
        outputs -= targets
        np.clip(outputs, -self.largest, self.largest, out=outputs)
