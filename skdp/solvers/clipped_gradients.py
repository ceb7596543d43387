r"""Exact sums of clipped gradients of linear predictors.

The gradient of a record in the weights is :math:`r x^\top`, of Frobenius norm :math:`\|r\|\|x\|`, for its derivatives
:math:`r` in the predictors. To clip it to :math:`C` is to clip :math:`r` to :math:`C/\|x\|`, so that no gradient of a
single record is computed. All factors are integers of few bits times powers of two (see
:mod:`skdp.sensitivity._fixed_point`): entries of rows, weights, and derivatives, which are truncated towards zero after
they are clipped. Therefore the predictors and the sum are exact in any order, and the contribution of a record to the
sum does not depend on other records.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..sensitivity import ClippedRows, ExactTotal, bits_left, round_to, squared_norms, step_of, truncate
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

    # The rows are overwritten. If `whole`, all sums are over all rows. Blocks are then stored by columns, because
    # products take less time.

    def __init__(
        self, rows: ClippedRows, targets: NDArray, loss: GradientLoss, max_norm: float, whole: bool = False
    ) -> None:
        self._rows = rows.array
        self._prepare(rows.norm, rows.array.shape[1], loss)
        self._targets = None if loss.signed else targets
        entries = _BLOCK_ENTRIES if whole else _SAMPLE_ENTRIES
        self._block = min(max(entries // self._n_columns, 64), EXACT_ROWS)
        self._bounds = np.empty(len(self._rows))
        for start in range(0, len(self._rows), EXACT_ROWS):
            part = slice(start, start + EXACT_ROWS)
            block = truncate(self._rows[part], self._row_step)
            if loss.signed:
                block *= np.where(targets[part] == 1, -1.0, 1.0)[:, None]
            lengths = np.sqrt(squared_norms(block * (1 / self._row_step))) * self._row_step
            self._bounds[part] = self._bounds_of(lengths, max_norm)

        self._blocks: list[Array] = []
        for start in range(0, len(self._rows) if whole else 0, self._block):
            block = self._rows[start : start + self._block]
            by_columns = block.reshape(block.shape[::-1])
            by_columns[:] = block.T.copy()
            self._blocks.append(by_columns.T)
        self._buffer = np.empty((0 if whole else self._block, self._n_columns))
        self._predictors = np.empty(self._block * loss.outputs)
        self._few = np.empty((3, self._block))
        self._part = np.empty((loss.outputs, self._n_columns))

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
        """Return bounds on the derivatives of rows of these lengths, in units of their step."""
        target = max_norm * (1 - max(2.0**-40, max(self._n_columns, self._loss.outputs) * 2.0**-50))
        bounds: Array = target / np.maximum(lengths, self._row_step) / self._unit
        return np.minimum(bounds, self._most_derivative) if self._loss.outputs == 1 else bounds

    @property
    def n_rows(self) -> int:
        """Number of records. Private."""
        return int(self._rows.shape[0])

    def at(self, weights: Array) -> Array:
        """Round public weights to few bits, in a copy. Gradients are computed at this point."""
        # Predictors that are NaN would have no bound.
        point, largest = boxed(weights.copy(), self._most_weight)
        return round_to(point, step_of(max(largest, self._least_weight), self._weight_bits))

    def total(self, weights: Array, rows: NDArray[np.intp] | None = None, lattice: float | None = None) -> Array:
        """Sum the clipped gradients of some records at a rounded point (see `at`), or of all if `rows` is None."""
        # A sum that exceeds doubles is rounded to multiples of `lattice`, a power of two, or to doubles if it is None.
        # All other sums are exact.
        n_rows = len(self._rows) if rows is None else len(rows)
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
        n_rows = len(self._rows) if rows is None else len(rows)
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
        outputs = self._loss.outputs
        if rows is None:
            part = slice(start, start + count)
            block = self._blocks[start // self._block] if self._blocks else self._rows[part]
            bounds = self._bounds[part]
            targets = None if self._targets is None else self._targets[part]
        else:
            chosen = rows[start : start + count]
            block = self._rows.take(chosen, axis=0, out=self._buffer[:count], mode="clip")
            bounds = self._bounds.take(chosen, out=self._few[0, :count], mode="clip")
            targets = None if self._targets is None else self._targets.take(chosen)
        z = self._predictors[: outputs * count].reshape(outputs, count)
        if outputs == 1:
            np.dot(block, weights[0], out=z[0])
        else:
            np.dot(weights, block.T, out=z)
        self._differentiate(z, bounds, targets)
        np.dot(z, block, out=self._part)
        self._part *= self._unit
        return self._part

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
        squares, own = self._few[1, :count], self._few[2, :count]
        squares[:] = 2.0**-20
        for output in z:
            squares += np.multiply(output, output, out=own)
        np.sqrt(squares, out=squares)
        np.divide(bounds, squares, out=squares)
        return np.minimum(squares, 1.0, out=squares)
