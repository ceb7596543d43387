"""Sums of clipped gradients of linear predictors over rows in one place or in parts: the same bits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..parts.arrays import PartedArray
from ..parts.objects import KeptObjects
from ..sensitivity import ExactTotal, clip_rows
from .clipped_gradients import ClippedGradients, Gradients
from .losses import GradientLoss
from .sparse_gradients import clipped_gradients

Array = NDArray[np.float64]


def gradients_of(
    X: Any, targets: Any, norm: float, constant: float, loss: GradientLoss, max_norm: float, whole: bool
) -> Gradients:
    """Clip rows to `norm`, append the constant feature, and return the sums of clipped gradients over them."""
    if isinstance(X, PartedArray):
        return PartedGradients(partial(_gradients, norm, constant, loss, max_norm, whole), X, targets)
    return clipped_gradients(clip_rows(X, norm, constant), targets, loss, max_norm, whole)


def gradients_over(make: Callable[..., ClippedGradients], *arrays: Any) -> Gradients:
    """Return the sums of gradients that `make` returns for these arrays, also if they are in parts."""
    return PartedGradients(make, *arrays) if isinstance(arrays[0], PartedArray) else make(*arrays)


class PartedGradients:
    """Sum clipped gradients over rows in parts. The sums of a part are prepared once, and stay in their place."""

    def __init__(self, make: Callable[..., ClippedGradients], *arrays: PartedArray) -> None:
        self._parts = KeptObjects(make, arrays, _n_rows)
        self.n_rows = self._parts.n_rows
        self._own: ClippedGradients = self._parts.without_rows
        self.at = self._own.at

    def total(self, weights: Array, rows: NDArray[np.intp] | None = None, lattice: float | None = None) -> Array:
        """Sum the clipped gradients of some records at a rounded point, as `ClippedGradients.total` does."""
        exact = ExactTotal.of(self._parts.sum(partial(_limbs, weights), rows))
        return self._own.rounded(exact, self.n_rows if rows is None else len(rows), lattice)


def _gradients(
    norm: float, constant: float, loss: GradientLoss, max_norm: float, whole: bool, X: NDArray, targets: NDArray
) -> ClippedGradients:
    return ClippedGradients(clip_rows(X, norm, constant), targets, loss, max_norm, whole)


def _n_rows(gradients: ClippedGradients) -> int:
    return gradients.n_rows


def _limbs(weights: Array, gradients: ClippedGradients, rows: NDArray[np.intp] | None) -> NDArray[np.int64]:
    return gradients.exact(weights, rows).limbs
