r"""Sums of clipped gradients of a network, without a tensor of gradients by record.

A dense layer maps activations :math:`a` to :math:`W^\top a`. The last entry of :math:`a` is the constant 1 of the
intercepts, a hidden unit with fixed weights and with derivatives that are 0. Let :math:`\delta` be the derivative of a
record's loss by this product. The gradient of the record in :math:`W` is the matrix :math:`a\delta^\top`. Therefore the
norm over all layers needs two sums of squares for each layer, and the sum of gradients with weights :math:`c_i` is the
product of two matrices, :math:`A^\top\mathrm{diag}(c)\,\Delta` (Goodfellow 2015). A record adds
:math:`c\,a\delta^\top` in each layer, with the same :math:`c=\min(1, C/\lVert g\rVert)` for all layers.

The contribution of a record is a function of that record alone, bit for bit, of norm at most C, for all weights and any
depth. All factors of matrix products are multiples of powers of two, of so few bits that sums are exact in any order.
Exponents of derivatives are kept separately and are limited, so that all numbers are finite. The user guide (*Neural
networks*, Exact arithmetic) has the details. Outputs and labels of a row do not depend on other rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..parts.arrays import KeptObjects, PartedArray
from ..sensitivity import BITS, ExactTotal, bits_left, row_products, short_blocks, step_of
from ..solvers.losses import NetworkLoss

Array = NDArray[np.float64]

#: Rows in a block. The activations of a block stay in the cache.
BLOCK_ROWS = 1024

#: Bits of rows, activations and derivatives, if the squares of a row of them add up exactly with so many bits.
_MOST_BITS = 20

# Input of the constant hidden unit, of which tanh rounds to 1, the bound on all activations.
_CONSTANT = 8.0

# Rounding may make derivatives longer than their bounds. In layers of 2**16 units, it adds half a step to each entry,
# which is 2**-18 of the bound, and so 2**-10 of the bound in all. In narrower layers, it adds less.
_ROUNDING = 1 + 2.0**-8

#: Units of a layer, and hidden layers.
MOST_UNITS = 2**16
MOST_LAYERS = 100

#: Weights lie between this and its negative. This does not limit the model, because activations are about 1.
LARGEST_WEIGHT = 2.0**20

# Exponents of derivatives are at most this, with either sign, so that no square, product or step overflows.
_MOST_EXPONENT = 200
_LEAST = 2.0**-_MOST_EXPONENT

# What a record adds is rounded to steps that are at most this much finer than the lattice of the noise, so that sums of
# blocks have a place in integers.
_FINER = 2.0**-40


def square_bits(n_terms: int) -> int:
    """Return how many bits numbers may have, at most 20, so that `n_terms` squares add up exactly."""
    return min(_MOST_BITS, (BITS - math.ceil(math.log2(n_terms))) // 2)


def rounder(step: float) -> float:
    """Return the number that rounds to multiples of `step`, a power of two, if it is added and then subtracted."""
    # Rounded values must be below 2**51 steps.
    return 1.5 * 2.0**52 * step


def project(weights: Array) -> Array:
    """Clip public weights to [-LARGEST_WEIGHT, LARGEST_WEIGHT] in place, and replace NaN by 0."""
    # Almost always, two comparisons are enough. NaN is in no box.
    if not (weights.max() <= LARGEST_WEIGHT and weights.min() >= -LARGEST_WEIGHT):
        np.minimum(weights, LARGEST_WEIGHT, out=weights)
        np.maximum(weights, -LARGEST_WEIGHT, out=weights)
        np.copyto(weights, 0.0, where=np.isnan(weights))
    return weights


def clipping_factors(squares: Array, max_norm: float) -> Array:
    """Overwrite squared norms of gradients by factors that scale longer ones down to at most `max_norm`.

    The margin of :math:`2^{-40}` exceeds all rounding, that of the product included.
    """
    np.sqrt(squares, out=squares)
    target = max_norm * (1 - 2.0**-40)
    np.maximum(squares, target, out=squares)
    return np.divide(target, squares, out=squares)


@dataclass(frozen=True)
class Layout:
    """Public shapes of the layers, and their positions in the vector of all weights."""

    sizes: tuple[int, ...]

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Shapes of the weights of each layer, with the intercepts in the last row."""
        return [(n_in + 1, n_out) for n_in, n_out in zip(self.sizes, self.sizes[1:], strict=False)]

    @property
    def size(self) -> int:
        """Number of weights."""
        return sum(rows * columns for rows, columns in self.shapes)

    def parts(self, vector: Array) -> list[Array]:
        """Return the layers' parts of a vector, as views."""
        parts, start = [], 0
        for shape in self.shapes:
            stop = start + math.prod(shape)
            parts.append(vector[start:stop].reshape(shape))
            start = stop
        return parts


class GradientSums:
    """Sum clipped gradients over rows."""

    # Entries of `rows` are multiples of `row_step`, a power of two, and at most ``2**square_bits(n_features + 1)`` of
    # these steps. The last column is the constant 1. If there are several blocks, the sum is rounded to `lattice`, the
    # step of the noise's lattice.

    def __init__(
        self,
        rows: Array,
        row_step: float,
        targets: NDArray,
        layout: Layout,
        loss: NetworkLoss,
        max_norm: float,
        lattice: float,
        block_rows: int = BLOCK_ROWS,
    ) -> None:
        self._rows, self._targets = rows, targets
        self._layout, self._loss, self._max_norm = layout, loss, max_norm
        self._lattice, self._block = lattice, block_rows
        shapes = layout.shapes
        self._last = len(shapes) - 1

        # Bits and steps of each layer's activations, and of derivatives of its products.
        self._bits = [square_bits(n_in) for n_in, _ in shapes]
        self._steps = [row_step] + [step_of(1.0, bits) for bits in self._bits[1:]]
        self._delta_bits = [square_bits(n_out) for _, n_out in shapes]
        self._weight_bits = [
            min(bits_left(self._bits[i], n_in), bits_left(self._delta_bits[i], n_out))
            for i, (n_in, n_out) in enumerate(shapes)
        ]
        self._sum_bits = [bits_left(bits, block_rows) for bits in self._bits]

        # Hidden layers have one column more, for the constant.
        width = [n_out + (i < self._last) for i, (_, n_out) in enumerate(shapes)]
        self._weights = [np.zeros((n_in, w)) for (n_in, _), w in zip(shapes, width, strict=True)]
        for weights in self._weights[:-1]:
            weights[-1, -1] = _CONSTANT
        most = min(block_rows, max(len(rows), 1))
        self._inputs = np.empty((most, shapes[0][0]))
        self._hidden = [np.empty((most, w)) for w in width[:-1]]
        self._deltas = [np.empty((most, w)) for w in width]
        self._spare = [np.empty((most, w)) for w in width]
        self._products = [np.empty_like(weights) for weights in self._weights]
        self._row_squares = np.einsum("ij,ij->i", rows, rows)
        self._delta_steps = [0.0] * len(shapes)
        self._point = np.empty(layout.size)

    @property
    def sizes(self) -> list[int]:
        """Numbers of weights of the layers."""
        return [math.prod(shape) for shape in self._layout.shapes]

    @property
    def n_rows(self) -> int:
        """Number of records. Private."""
        return len(self._rows)

    def at(self, weights: Array) -> None:
        """Choose the public weights at which gradients are taken. They are rounded (see `project`)."""
        np.copyto(self._point, weights)
        layers = self._layout.parts(project(self._point))
        # No entry of a layer's derivatives exceeds `bound`, and their norm does not exceed `norm`. Both are limited to
        # the bound of the clipping.
        bound, norm = self._loss.largest, self._loss.norm
        for i in range(self._last, -1, -1):
            layer = layers[i]
            rounded = self._weights[i][:, : layer.shape[1]]
            largest = max(float(layer.max()), -float(layer.min()), _LEAST)
            number = rounder(step_of(largest, self._weight_bits[i]))
            np.add(layer, number, out=rounded)
            rounded -= number
            # Activations include the constant 1, so that no entry of a clipped derivative exceeds the norm.
            step = step_of(min(self._max_norm, max(bound, _LEAST) * _ROUNDING), self._sum_bits[i])
            self._delta_steps[i] = max(step, self._lattice * _FINER)
            # By the Cauchy-Schwarz inequality, for one entry of the next derivative and for all entries.
            squares = np.einsum("ij,ij->i", rounded, rounded)
            norm = min(norm * _ROUNDING, 1 / _LEAST)
            bound = norm * math.sqrt(float(squares.max()))
            norm *= math.sqrt(float(squares.sum()))

    def sum(self, rows: NDArray[np.intp] | None, out: Array) -> Array:
        """Add up the clipped gradients of some rows (all if None) into `out`, of shape (layout.size,)."""
        # The sum over at most `block_rows` rows is exact. A sum over more rows is rounded to the lattice.
        n_rows = len(self._rows) if rows is None else len(rows)
        layers = self._layout.parts(out)
        if n_rows <= self._block:
            for layer, product, step in zip(layers, self._block_sum(rows, 0, n_rows), self._delta_steps, strict=True):
                np.multiply(product, step, out=layer)
            return out
        return self.rounded(self.exact(rows), n_rows, out)

    def rounded(self, totals: list[ExactTotal], n_rows: int, out: Array) -> Array:
        """Write the sum over this number of rows into `out`, from its exact totals, as `sum` does."""
        for layer, total, unit in zip(self._layout.parts(out), totals, self.units, strict=True):
            bits = math.frexp(self._lattice)[1] - math.frexp(unit)[1] if n_rows > self._block else 0
            layer[:] = total.nearest(bits).reshape(layer.shape)
            layer *= self._lattice if bits > 0 else unit
        return out

    def exact(self, rows: NDArray[np.intp] | None) -> list[ExactTotal]:
        """Add up the clipped gradients of some rows (all if None) without rounding: a total per layer, in `units`."""
        n_rows = len(self._rows) if rows is None else len(rows)
        totals = [ExactTotal(math.prod(shape)) for shape in self._layout.shapes]
        for start in range(0, n_rows, self._block):
            products = self._block_sum(rows, start, min(start + self._block, n_rows))
            for total, product, step in zip(totals, products, self._steps, strict=True):
                total.add((product * (1 / step)).ravel())
        return totals

    @property
    def units(self) -> list[float]:
        """Powers of two of which the sums of each layer are integer multiples."""
        return [delta_step * step for delta_step, step in zip(self._delta_steps, self._steps, strict=True)]

    def _block_sum(self, rows: NDArray[np.intp] | None, start: int, stop: int) -> list[Array]:
        """Return the sum of each layer over a block, as multiples of the steps of derivatives."""
        n = stop - start
        if rows is None:
            inputs, targets, squares = self._rows[start:stop], self._targets[start:stop], self._row_squares[start:stop]
        else:
            sample = rows[start:stop]
            inputs = np.take(self._rows, sample, axis=0, out=self._inputs[:n], mode="clip")
            targets, squares = self._targets.take(sample, axis=0), self._row_squares.take(sample)

        activations = [inputs]
        for i in range(self._last):
            z = np.matmul(activations[i], self._weights[i], out=self._hidden[i][:n])
            activations.append(self._activate(z, i + 1))

        deltas = [delta[:n] for delta in self._deltas]
        r = np.matmul(activations[-1], self._weights[-1], out=deltas[-1])
        self._loss.differentiate_rows(r, targets)
        exponents = self._round(r, self._last)
        scales = [_power(exponents)]
        for i in range(self._last, 0, -1):
            weights = self._weights[i]
            if weights.shape[1] == 1:
                np.multiply(deltas[i], weights.T, out=deltas[i - 1])
            else:
                # The derivative of the constant unit is no part of the next product.
                np.matmul(deltas[i], weights.T, out=deltas[i - 1])
            self._differentiate(activations[i], deltas[i - 1], self._spare[i - 1][:n])
            exponents += self._round(deltas[i - 1], i - 1)
            scales.insert(0, _power(exponents))

        squares = self._squares(squares, activations, deltas, scales)
        # The bounds exclude such values. If a bound did not hold, a record would still not affect other records.
        broken = ~np.isfinite(squares)
        if broken.any():
            for values in (squares, *activations[1:], *deltas):
                values[broken] = 0.0
        factors = clipping_factors(squares, self._max_norm)
        sums = []
        for i, (_, n_out) in enumerate(self._layout.shapes):
            delta = deltas[i]
            delta *= (factors * scales[i] * (1 / self._delta_steps[i]))[:, None]
            np.trunc(delta, out=delta)
            sums.append(np.matmul(activations[i].T, delta, out=self._products[i])[:, :n_out])
        return sums

    def _squares(self, row_squares: Array, activations: list[Array], deltas: list[Array], scales: list[Array]) -> Array:
        """Return the squared norms of gradients over all layers."""
        total = np.zeros_like(row_squares)
        for i, (a, delta, scale) in enumerate(zip(activations, deltas, scales, strict=True)):
            norms = np.einsum("ij,ij->i", delta, delta)
            norms *= np.einsum("ij,ij->i", a, a) if i else row_squares
            norms *= scale
            norms *= scale
            total += norms
        return total

    def _activate(self, z: Array, layer: int) -> Array:
        """Apply the activation in place, and round."""
        np.tanh(z, out=z)
        number = rounder(self._steps[layer])
        z += number
        z -= number
        return z

    def _differentiate(self, activation: Array, delta: Array, spare: Array) -> None:
        """Multiply derivatives by those of the activation, in place."""
        np.multiply(activation, activation, out=spare)
        np.subtract(1.0, spare, out=spare)
        delta *= spare

    def _round(self, delta: Array, layer: int) -> NDArray[np.int32]:
        """Round a row's derivatives after division by the power of two above the largest. Its exponent is returned."""
        sizes = np.abs(delta, out=self._spare[layer][: len(delta)])
        # This takes half the time of sizes.max(axis=1).
        largest = np.maximum.reduceat(sizes.ravel(), np.arange(0, sizes.size, sizes.shape[1]))
        exponents = np.maximum(np.frexp(largest)[1], -_MOST_EXPONENT)
        delta *= np.ldexp(1.0, -exponents)[:, None]
        number = rounder(2.0 ** -self._delta_bits[layer])
        delta += number
        delta -= number
        return exponents


def _power(exponents: NDArray[np.int32]) -> Array:
    return np.ldexp(1.0, np.minimum(np.maximum(exponents, -_MOST_EXPONENT), _MOST_EXPONENT))


class PartedSums:
    """Sum clipped gradients over rows in parts, as `GradientSums` does. `make` returns the sums over rows of a part."""

    def __init__(self, make: Any, X: PartedArray, targets: PartedArray) -> None:
        self._parts = KeptObjects(make, (X, targets), _n_rows)
        self.n_rows = self._parts.n_rows
        self._without_rows: GradientSums = self._parts.without_rows
        self._weights = np.empty(0)

    def at(self, weights: Array) -> None:
        """Choose the point at which gradients are taken."""
        self._weights = weights.copy()
        self._without_rows.at(weights)

    def sum(self, rows: NDArray[np.intp] | None, out: Array) -> Array:
        """Add up the clipped gradients of some rows (all if None) into `out`, of shape (layout.size,)."""
        limbs = self._parts.sum(partial(_limbs, self._weights), rows)
        layers = np.split(limbs, np.cumsum(self._without_rows.sizes)[:-1], axis=1)
        totals = [ExactTotal.of(layer) for layer in layers]
        return self._without_rows.rounded(totals, self.n_rows if rows is None else len(rows), out)


def sums_of(make: Any, X: Any, targets: Any) -> GradientSums | PartedSums:
    """Return the sums of clipped gradients over rows, for which `make` returns the sums over rows in one place."""
    return PartedSums(make, X, targets) if isinstance(X, PartedArray) else make(X, targets)


def _n_rows(sums: GradientSums) -> int:
    return sums.n_rows


def _limbs(weights: Array, sums: GradientSums, rows: NDArray[np.intp] | None) -> NDArray[np.int64]:
    sums.at(weights)
    return np.hstack([total.limbs for total in sums.exact(rows)])


_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Outputs:
    """The map from rows to the outputs of a network, and to codes of labels."""

    coefs: list[Array]
    intercepts: list[Array]

    def __call__(self, X: NDArray) -> Array:
        """Return the outputs, of shape (n_rows, n_outputs)."""
        out = np.empty((len(X), len(self.intercepts[-1])))
        with np.errstate(all="ignore"):
            for block in self._parts(X):
                a = X[block]
                for coef, intercept in zip(self.coefs[:-1], self.intercepts[:-1], strict=True):
                    a = row_products(a, coef) + intercept
                    np.tanh(a, out=a)
                out[block] = row_products(a, self.coefs[-1]) + self.intercepts[-1]
        return out

    def codes(self, X: NDArray) -> NDArray[np.intp]:
        """Return the codes of the labels, which are those of the outputs, in less time.

        Products of matrices are faster than `row_products`, but their last bits can depend on all rows. Where rounding
        cannot change the code, it is certain. Other rows take the outputs.
        """
        codes = np.empty(len(X), dtype=np.intp)
        with np.errstate(all="ignore"):
            for block in self._parts(X):
                rows = np.asarray(X[block], dtype=np.float64)
                outputs, slack = self._fast(rows)
                codes[block] = codes_of(outputs)
                if outputs.shape[1] == 1:
                    certain = np.abs(outputs[:, 0]) > slack
                else:
                    certain = np.count_nonzero(outputs >= outputs.max(axis=1)[:, None] - slack, axis=1) == 1
                (open_,) = np.nonzero(~certain)
                if open_.size:
                    codes[block][open_] = codes_of(self(rows[open_]))
        return codes

    def _fast(self, rows: Array) -> tuple[Array, float]:
        """Return outputs by products of matrices, and four times what rounding can change in differences of two."""
        a, slack, last = rows, 0.0, len(self.coefs) - 1
        for i, (coef, intercept) in enumerate(zip(self.coefs, self.intercepts, strict=True)):
            # The lengths of all rows together, and of all columns, are bounds on those of each.
            steepest = _length(coef)
            terms = _length(a) * steepest + _length(intercept)
            slack = steepest * slack + 8 * (len(coef) + 2) * _EPSILON * terms
            a = a @ coef
            a += intercept
            if i < last:
                # The slope of tanh is at most 1.
                np.tanh(a, out=a)
                slack += 64 * _EPSILON * math.sqrt(len(intercept))
        return a, slack

    def _parts(self, X: NDArray) -> list[slice]:
        return list(short_blocks(len(X), max(max(coef.shape) for coef in self.coefs)))


def codes_of(outputs: Array) -> NDArray[np.intp]:
    """Return the codes of labels for outputs, of which two classes have one."""
    return (outputs[:, 0] > 0).astype(np.intp) if outputs.shape[1] == 1 else outputs.argmax(axis=1)


def _length(values: Array) -> float:
    # Squares that are too small for doubles do no harm to what is added.
    return math.sqrt(1e-280 + float(np.vdot(values, values)))
