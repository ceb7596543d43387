r"""Exact sums of clipped gradients of linear predictors.

The gradient of a record in the weights is :math:`r x^\top`, of Frobenius norm :math:`\|r\|\|x\|`, for its derivatives
:math:`r` in the predictors. To clip it to :math:`C` is to clip :math:`r` to :math:`C/\|x\|`, so that no gradient of a
single record is computed. All factors are integers of few bits times powers of two (see
:mod:`skdp.sensitivity._moments`): entries of rows, weights, and derivatives, which are truncated towards zero after
they are clipped. Therefore the predictors and the sum are exact in any order, and the contribution of a record to the
sum does not depend on other records.

The sums over sparse rows and over rows in parts have the same bits as those over dense rows in one place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ..parts.arrays import KeptObjects, PartedArray, in_memory
from ..sensitivity import EXACT_ROWS as INTEGER_ROWS
from ..sensitivity import (
    ClippedRows,
    ExactTotal,
    bits_left,
    by_entry,
    clip_rows,
    round_to,
    sparse_squared_norms,
    squared_norms,
    step_of,
    with_data,
)
from .losses import GradientLoss

Array = NDArray[np.float64]

# Number of bits of entries of rows, and of derivatives.
_ROW_BITS = 20
_DERIVATIVE_BITS = 20

#: Sums over so many rows are then exact in doubles.
EXACT_ROWS = 2**13

# Number of entries of a block of rows, which is read twice. A block stays in the processor's cache, and there are few
# calls. Samples also have a buffer.
_BLOCK_ENTRIES = 2**18
_SAMPLE_ENTRIES = 2**16

#: For rows of norm 1, larger weights are clipped to this, and weights below its inverse are rounded to 0, so that all
#: computed numbers are finite.
MOST_WEIGHT = 2.0**200


def boxed(values: Array, most: float) -> tuple[Array, float]:
    """Clip public numbers to [-most, most] in place, replace NaN by 0, and return them and their largest size."""
    largest = max(float(values.max()), -float(values.min()))
    if not largest <= most:
        np.nan_to_num(values, copy=False)
        np.clip(values, -most, most, out=values)
        largest = max(float(values.max()), -float(values.min()))
    return values, largest


class Gradients(Protocol):
    """Sums of clipped gradients over some records: see `ClippedGradients`."""

    @property
    def n_rows(self) -> int: ...

    def at(self, weights: Array) -> Array: ...

    def total(self, weights: Array, rows: NDArray[np.intp] | None = None, lattice: float | None = None) -> Array: ...


class ClippedGradients:
    """Sum clipped gradients over records. A record adds at most `max_norm` to a sum, in L2 norm."""

    _constant: float

    # Rounded rows in units of their step are integers that single precision holds. They are stored so, and a sample is
    # converted to doubles. Memory-mapped rows are rounded when they are read. If `whole`, all sums are over all rows.
    # These are then stored by columns and in doubles, because products take less time.

    def __init__(
        self, rows: ClippedRows, targets: NDArray, loss: GradientLoss, max_norm: float, whole: bool = False
    ) -> None:
        n_rows, n_columns = rows.source.shape
        self._n_rows = n_rows
        self._prepare(rows.norm, rows.shape[1], loss)
        self._targets = None if loss.signed else targets
        self._constant = math.trunc(rows.constant / self._row_step)
        entries = _BLOCK_ENTRIES if whole else _SAMPLE_ENTRIES
        self._block = min(max(entries // self._n_columns, 64), EXACT_ROWS)
        size = 0 if whole else min(self._block, n_rows)
        self._single_rows = np.empty((size, n_columns), dtype=np.float32)
        self._integers = np.empty((size, n_columns))
        self._mapped = None if whole or in_memory(rows.source) else rows
        stores = not whole and self._mapped is None
        self._stored = np.empty((n_rows if stores else 0, n_columns), dtype=np.float32)
        self._blocks: list[Array] = []
        # For a signed loss, the sign of a bound is that of the derivative in the predictor.
        self._bounds = np.where(targets == 1, -1.0, 1.0) if loss.signed else np.ones(n_rows)
        for start in range(0, n_rows, self._block):
            positions = slice(start, start + self._block)
            block = rows.in_steps(positions, self._row_step)
            lengths = np.sqrt(squared_norms(block) + self._constant**2) * self._row_step
            self._bounds[positions] *= self._bounds_of(lengths, max_norm)
            if whole:
                self._blocks.append(np.asfortranarray(block))
            elif stores:
                self._stored[positions] = block
        self._predictors = np.empty(self._block * loss.outputs)
        self._row_buffers = np.empty((3, self._block))
        self._block_sum = np.empty((loss.outputs, self._n_columns))
        self._source_sum = np.empty((loss.outputs, n_columns))

    def _prepare(self, norm: float, n_columns: int, loss: GradientLoss) -> None:
        """Set everything that follows from the norm and the number of columns of rows, and from the loss."""
        self._loss = loss
        self._n_columns = n_columns
        # Rows in units of their step are integers.
        self._row_step = step_of(norm, _ROW_BITS)
        self._most_weight, self._least_weight = MOST_WEIGHT / norm, 1 / MOST_WEIGHT / norm
        self._weight_bits = bits_left(_ROW_BITS, n_columns)
        self._unit = step_of(loss.lipschitz, _DERIVATIVE_BITS)
        self._most_derivative = loss.lipschitz / self._unit

    def _bounds_of(self, lengths: Array, max_norm: float) -> Array:
        """Return bounds on the derivatives of rows, in units of their step, in place of the lengths of rows."""
        target = max_norm * (1 - max(2.0**-40, max(self._n_columns, self._loss.outputs) * 2.0**-50))
        np.maximum(lengths, self._row_step, out=lengths)
        np.divide(target, lengths, out=lengths)
        lengths /= self._unit
        return np.minimum(lengths, self._most_derivative, out=lengths) if self._loss.outputs == 1 else lengths

    @property
    def n_rows(self) -> int:
        """Number of records. Private."""
        return self._n_rows

    def at(self, weights: Array) -> Array:
        """Round public weights to few bits, in a copy. Gradients are computed at this point."""
        # Predictors that are NaN would have no bound.
        point, largest = boxed(weights.copy(), self._most_weight)
        return round_to(point, step_of(max(largest, self._least_weight), self._weight_bits))

    def total(self, weights: Array, rows: NDArray[np.intp] | None = None, lattice: float | None = None) -> Array:
        """Sum the clipped gradients of some records at a rounded point (see `at`), or of all if `rows` is None."""
        # A sum that exceeds doubles is rounded to multiples of `lattice`, a power of two, or to doubles if it is None.
        # All other sums are exact.
        n_rows = self.n_rows if rows is None else len(rows)
        if n_rows > EXACT_ROWS:
            return self.rounded(self.exact(weights, rows), n_rows, lattice)
        total = np.zeros((self._loss.outputs, self._n_columns))
        for start in range(0, n_rows, self._block):
            total += self._block_total(weights, start, min(self._block, n_rows - start), rows)
        return total

    def rounded(self, exact: ExactTotal, n_rows: int, lattice: float | None) -> Array:
        """Return the sum over this number of records from its exact total, as `total` does."""
        unit = self._unit * self._row_step
        bits = 0
        if n_rows > EXACT_ROWS and lattice is not None and lattice > unit:
            bits, unit = math.frexp(lattice)[1] - math.frexp(unit)[1], lattice
        return (exact.nearest(bits) * unit).reshape(self._loss.outputs, self._n_columns)

    def exact(self, weights: Array, rows: NDArray[np.intp] | None = None) -> ExactTotal:
        """Sum the clipped gradients of some records without rounding, in units of their step."""
        n_rows = self.n_rows if rows is None else len(rows)
        total = np.zeros((self._loss.outputs, self._n_columns))
        unit = self._unit * self._row_step
        exact = ExactTotal(total.size)
        since = 0
        for start in range(0, n_rows, self._block):
            count = min(self._block, n_rows - start)
            if since + count > EXACT_ROWS:
                total *= 1 / unit
                exact.add(total.ravel())
                total[:] = 0.0
                since = 0
            total += self._block_total(weights, start, count, rows)
            since += count
        total *= 1 / unit
        exact.add(total.ravel())
        return exact

    def _block_total(self, weights: Array, start: int, count: int, rows: NDArray[np.intp] | None) -> Array:
        outputs, n_columns = self._loss.outputs, self._source_sum.shape[1]
        chosen: Any = slice(start, start + count)
        bounds, signs = self._row_buffers[0, :count], self._row_buffers[1, :count]
        if self._blocks:
            block = self._blocks[start // self._block]
            bounds[:] = self._bounds[chosen]
        else:
            chosen = np.arange(start, start + count) if rows is None else rows[chosen]
            block = self._integer_rows(chosen)
            self._bounds.take(chosen, out=bounds, mode="clip")
        if self._loss.signed:
            np.copysign(1.0, bounds, out=signs)
            np.abs(bounds, out=bounds)
        # The factors are powers of two.
        point = weights * self._row_step
        z = self._predictors[: outputs * count].reshape(outputs, count)
        if outputs == 1:
            np.dot(block, point[0, :n_columns], out=z[0])
        else:
            np.dot(np.ascontiguousarray(point[:, :n_columns]), block.T, out=z)
        if self._constant:
            z += self._constant * point[:, -1:]
        if self._loss.signed:
            z *= signs
        self._differentiate(z, bounds, None if self._targets is None else self._targets[chosen])
        if self._loss.signed:
            z *= signs
        self._block_sum[:, :n_columns] = np.dot(z, block, out=self._source_sum)
        if self._constant:
            self._block_sum[:, -1] = self._constant * z.sum(axis=1)
        self._block_sum *= self._unit * self._row_step
        return self._block_sum

    def _integer_rows(self, chosen: NDArray[np.intp]) -> Array:
        """Return some rows, clipped and rounded, in units of their step, without the constant feature."""
        if self._mapped is not None:
            return self._mapped.in_steps(chosen, self._row_step, self._integers[: len(chosen)])
        read = self._stored.take(chosen, axis=0, out=self._single_rows[: len(chosen)], mode="clip")
        block = self._integers[: len(chosen)]
        block[:] = read
        return block

    def _differentiate(self, z: Array, bounds: Array, targets: NDArray | None) -> None:
        """Replace predictors by clipped derivatives, in units of their step."""
        self._loss.differentiate(z, targets)
        z *= 1 / self._unit
        if len(z) > 1:
            z *= self._factors(z, bounds)
        else:
            np.minimum(z, bounds, out=z)
            if not self._loss.signed:
                np.maximum(z, -bounds, out=z)
        np.trunc(z, out=z)

    def _factors(self, z: Array, bounds: Array) -> Array:
        count = z.shape[1]
        squares, terms = self._row_buffers[1, :count], self._row_buffers[2, :count]
        squares[:] = 2.0**-20
        for output in z:
            squares += np.multiply(output, output, out=terms)
        np.sqrt(squares, out=squares)
        np.divide(bounds, squares, out=squares)
        return np.minimum(squares, 1.0, out=squares)


class SparseGradients(ClippedGradients):
    """Sum clipped gradients over sparse records. A record adds at most `max_norm` to a sum, in L2 norm."""

    # Entries of rows, weights and derivatives are integers of 64 bits, in units of their steps. Their sums are exact
    # over more rows than sums of doubles are.

    def __init__(
        self, rows: ClippedRows, targets: NDArray, loss: GradientLoss, max_norm: float, whole: bool = False
    ) -> None:
        X = rows.source
        self._n_rows = X.shape[0]
        self._prepare(rows.norm, X.shape[1], loss)
        self._targets = None if loss.signed else targets
        data = np.trunc(X.data * (1 / self._row_step))
        if loss.signed:
            data *= by_entry(X, np.where(targets == 1, -1.0, 1.0))
        lengths = np.sqrt(sparse_squared_norms(with_data(X, data))) * self._row_step
        self._bounds = self._bounds_of(lengths, max_norm)
        self._rows: Any = with_data(X, data.astype(np.int64))
        self._block = min(max(X.shape[0], 1), INTEGER_ROWS)
        self._row_buffers = np.empty((3, self._block if loss.outputs > 1 else 0))

    def total(self, weights: Array, rows: NDArray[np.intp] | None = None, lattice: float | None = None) -> Array:
        n_rows = self._rows.shape[0] if rows is None else len(rows)
        unit = self._unit * self._row_step
        step = step_of(max(float(np.abs(weights).max()), self._least_weight), self._weight_bits)
        integers = (weights * (1 / step)).astype(np.int64)
        total = ExactTotal(weights.size)
        for start in range(0, n_rows, self._block):
            positions: Any = slice(start, min(start + self._block, n_rows))
            chosen = positions if rows is None else rows[positions]
            block = self._rows if rows is None and positions.stop - start == self._rows.shape[0] else self._rows[chosen]
            z = np.ascontiguousarray((block @ integers.T).T).astype(np.float64)
            z *= step * self._row_step
            self._differentiate(z, self._bounds[chosen], None if self._targets is None else self._targets[chosen])
            total.add_integers(np.ascontiguousarray((block.T @ z.astype(np.int64).T).T).ravel())
        bits = 0
        # A sum over fewer rows is not rounded, as for dense rows.
        if n_rows > EXACT_ROWS and lattice is not None and lattice > unit:
            bits = math.frexp(lattice)[1] - math.frexp(unit)[1]
        out: Array = total.nearest(bits) * (math.ldexp(unit, bits))
        return out.reshape(weights.shape)


def clipped_gradients(
    rows: ClippedRows, targets: NDArray, loss: GradientLoss, max_norm: float, whole: bool = False
) -> ClippedGradients:
    """Return an object that sums clipped gradients over dense or sparse rows (see `ClippedGradients`)."""
    kind = SparseGradients if issparse(rows.source) else ClippedGradients
    return kind(rows, targets, loss, max_norm, whole)


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
        self._parts = KeptObjects(make, arrays, attrgetter("n_rows"))
        self.n_rows = self._parts.n_rows
        self._without_rows: ClippedGradients = self._parts.without_rows
        self.at = self._without_rows.at

    def total(self, weights: Array, rows: NDArray[np.intp] | None = None, lattice: float | None = None) -> Array:
        """Sum the clipped gradients of some records at a rounded point, as `ClippedGradients.total` does."""
        exact = ExactTotal.of(self._parts.sum(partial(_limbs, weights), rows))
        return self._without_rows.rounded(exact, self.n_rows if rows is None else len(rows), lattice)


def _gradients(
    norm: float, constant: float, loss: GradientLoss, max_norm: float, whole: bool, X: NDArray, targets: NDArray
) -> ClippedGradients:
    return ClippedGradients(clip_rows(X, norm, constant), targets, loss, max_norm, whole)


def _limbs(weights: Array, gradients: ClippedGradients, rows: NDArray[np.intp] | None) -> NDArray[np.int64]:
    return gradients.exact(weights, rows).limbs
