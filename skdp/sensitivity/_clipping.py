"""Clipping, after which a bound on one record's influence holds for all data.

The user guide (*Output perturbation*, theorem 1) proves the sensitivity of the minimiser of a regularised sum of
losses, in which the number of records does not appear.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ._rows import (
    BLOCK_ROWS,
    LARGEST_SQUARE,
    LEAST_SQUARE,
    UP,
    clip_sparse,
    parts_of_columns,
    scaling_error,
    sum_over_rows,
    two_or_more,
    with_constant,
)


@dataclass(frozen=True, eq=False)
class ClippedRows:
    """Rows of bounded L2 norm, together with the bound. They are computed when they are read.

    Noise is calibrated by `norm`, and never by a number that was typed again.
    """

    source: Any  # Rows before they are scaled. They are not copied.
    norm: float  # Clipping bound. The L2 norm of each row, with its constant feature, is at most `norm`.
    # Factors by which the rows of `source` are scaled. If None, no row is scaled.
    factors: NDArray[np.float64] | None = None
    constant: float = 0.0  # Value of the appended feature. If 0, none is appended.

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and number of columns with the constant feature."""
        n_rows, n_columns = self.source.shape
        return n_rows, n_columns if self.constant == 0.0 else n_columns + 1

    @property
    def array(self) -> Any:
        """All rows, as a new ndarray, or as a csr_array."""
        if issparse(self.source):
            return self.source
        rows = self[:]
        return rows.copy() if rows.base is not None or rows is self.source else rows

    def __getitem__(self, selected: Any) -> NDArray[np.float64]:
        """Return some of the rows, which are dense, in doubles. They can be a part of `source`, and are not changed."""
        rows = np.asarray(self.source[selected], dtype=np.float64)
        if self.factors is None and self.constant == 0.0:
            return rows
        n_columns = rows.shape[1]
        scaled = np.empty((len(rows), self.shape[1]))
        if self.factors is None:
            scaled[:, :n_columns] = rows
        else:
            np.multiply(rows, self.factors[selected][:, None], out=scaled[:, :n_columns])
        scaled[:, n_columns:] = self.constant
        return scaled

    def in_steps(self, part: Any, step: float, out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return some dense rows in units of `step`, a power of two, as integers in doubles, rounded towards zero.

        The constant feature is left out. `out` is an array for the result, and `part` then has positions of rows.
        """
        source = np.asarray(self.source)
        if out is None:
            out = np.array(source[part], dtype=np.float64, order="C")
        elif source.flags.c_contiguous and source.dtype == out.dtype:
            # It takes half of the time of an index.
            source.take(part, axis=0, out=out, mode="clip")
        else:
            out[:] = source[part]
        # A warning of NumPy would depend on the data.
        with np.errstate(all="ignore"):
            if self.factors is None:
                out *= 1 / step
                return np.trunc(out, out=out)
            factors = self.factors[part] * (1 / step)
            (long,) = np.nonzero(factors < 1 / step)
            if 2 * len(long) > len(out):
                out *= factors[:, None]
            else:
                # It takes less time to scale few rows by themselves.
                scaled = out[long] * factors[long, None]
                out *= 1 / step
                out[long] = scaled
            return np.trunc(out, out=out)

    def weighted_gram(self, weights: NDArray) -> NDArray[np.float64]:
        """Return the sum of products of dense rows with themselves, with non-negative weights."""

        def block(source: NDArray, of_source: NDArray, roots: NDArray) -> NDArray:
            scaled = source * of_source[:, None]
            gram = scaled.T @ scaled
            if self.constant == 0.0:
                return gram
            border, corner = self.constant * (roots @ scaled), self.constant**2 * (roots @ roots)
            return np.block([[gram, border[:, None]], [border, corner]])

        roots = np.sqrt(np.maximum(weights, 0.0))
        return sum_over_rows(block, self.source, roots if self.factors is None else roots * self.factors, roots)


def augmented_norm(norm: float, constant: float) -> float:
    """Bound the L2 norm of rows of norm at most `norm` with a constant feature, which is 0 if there is none."""
    return norm if constant == 0 else math.hypot(norm, constant) * UP


def clip_rows(X: Any, norm: float, constant: float = 0.0) -> ClippedRows:
    r"""Scale rows down to an L2 norm of at most `norm`, then append a constant feature.

    Each row is mapped separately, so that neighbouring data sets stay neighbours. The target is :math:`(1-2^{-40})` of
    the bound, so that the bound holds despite the rounding of the norm and of the division. Rows are finite, of any
    size. Sparse rows are canonical, and stay sparse. `X` is not copied, unless squares of its entries are no doubles.
    """
    target = norm * (1 - scaling_error(X.shape[1]))
    bound = augmented_norm(norm, constant)
    if issparse(X):
        return ClippedRows(with_constant(clip_sparse(X, target), constant), bound)
    factors = None
    # Rows that are shorter have a factor of exactly 1, despite rounding.
    short = min(target * target * (1 - 2.0**-50), LARGEST_SQUARE)
    for start in range(0, X.shape[0], BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        with np.errstate(over="ignore", under="ignore"):
            squared = squared_norms(np.asarray(X[block], dtype=np.float64))
        if short >= 4 * LEAST_SQUARE and squared.max() <= short:
            continue
        if _are_extreme(squared, target).any():
            return ClippedRows(_scaled(X, target), bound, None, constant)
        if factors is None:
            factors = np.ones(X.shape[0])
        factors[block] = _factors(squared, target)
    return ClippedRows(X, bound, factors, constant)


def _factors(squared: NDArray[np.float64], target: float) -> NDArray[np.float64]:
    return np.minimum(1.0, target / np.sqrt(np.maximum(squared, LEAST_SQUARE)))


def _are_extreme(squared: NDArray[np.float64], target: float) -> NDArray[np.bool_]:
    """Return the rows whose squares overflow, or lose digits and matter."""
    return (squared > LARGEST_SQUARE) | ((squared < LEAST_SQUARE) & (target**2 < 4 * LEAST_SQUARE))


def _scaled(X: Any, target: float) -> NDArray[np.float64]:
    """Return a copy of all rows, scaled down. Rows of extreme size are first divided by their largest entry."""
    scaled = np.empty(X.shape)
    for start in range(0, len(scaled), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        rows = np.asarray(X[block], dtype=np.float64)
        with np.errstate(over="ignore", under="ignore"):
            squared = squared_norms(rows)
            np.multiply(rows, _factors(squared, target)[:, None], out=scaled[block])
            extreme = _are_extreme(squared, target)
            scaled[block][extreme] = _clip_extreme(rows[extreme], target)
    return scaled


def squared_norms(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return squared L2 norms of rows. The bits of a norm do not depend on other rows."""
    several = two_or_more(rows)
    total = np.zeros(len(several))
    for columns in parts_of_columns(several.shape[1]):
        total += np.einsum("ij,ij->i", several[:, columns], several[:, columns])
    return total[: len(rows)]


def _clip_extreme(rows: NDArray[np.float64], target: float) -> NDArray[np.float64]:
    largest = np.maximum(np.abs(rows).max(axis=1, initial=0.0, keepdims=True), np.finfo(float).tiny)
    direction = rows / largest
    length = np.sqrt(squared_norms(direction))[:, None]
    scale = target / np.maximum(length, np.finfo(float).tiny)
    return direction * np.minimum(largest, scale)


def minimizer_sensitivity(C: float, lipschitz: float, strong_convexity: float, tau: float) -> float:
    r"""Bound the L2 distance between the certified minimisers of neighbouring data sets: :math:`(C L + 2\tau)/\lambda`.

    :math:`C` is the weight of the sum of losses, :math:`L` bounds the norm of one record's loss gradient,
    :math:`\lambda` is that of the regulariser, and :math:`\tau` is the certified bound on the norm of the gradient at
    the returned point.
    """
    return (C * lipschitz + 2 * tau) / strong_convexity * UP


def solver_slack_sensitivity(strong_convexity: float, tau: float) -> float:
    r"""Bound the L2 distance between two points certified to the same exact minimiser, :math:`2\tau/\lambda`."""
    return 2 * tau / strong_convexity * UP
