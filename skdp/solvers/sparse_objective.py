"""The objective of output and objective perturbation over sparse rows, without dense rows or their products.

Products with rows take time in proportion to stored entries. If second derivatives would be large, Newton steps come
from conjugate gradients, as for dense rows, and no matrix is computed. The proof of the result is the same: one pass
over the rows, with a bound on its rounding errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..sensitivity import ClippedRows, by_entry, sparse_gram, sum_over_rows, with_data
from .certified import Objective, two_product, two_sum

Array = NDArray[np.float64]

# Number of rows whose weighted sum is computed at once in the proof. Few rows have few roundings after each other.
# There are more rows if there are many columns, because each sum has an entry for each column.
_LEAST_ROWS, _MOST_ROWS = 128, 2048

# Number of rows whose products are computed at once otherwise.
_BLOCK_ROWS = 2**16


class SparseObjective(Objective):
    """Sum the losses of clipped sparse rows, plus a regulariser and a linear term of shape (outputs, n_columns)."""

    _rows_of_matrix = 0

    def subsample(self, ratio: int) -> SparseObjective:
        sample = ClippedRows(self.rows.source[::ratio], self.norm)
        return SparseObjective(
            sample, self.codes[::ratio], self.loss, self.C * ratio, self.strong_convexity, self.linear
        )

    def predictor(self, theta: Array) -> Array:
        return self.rows.source @ np.ascontiguousarray(theta.T)

    def adjoint(self, weights: Array) -> Array:
        return _weighted_sum(self.rows.source, weights)

    def gram(self, weights: Array, positive: bool) -> Array:
        def block(rows: Any, w: Array) -> Array:
            if positive:
                return sparse_gram(with_data(rows, rows.data * by_entry(rows, np.sqrt(np.maximum(w, 0.0)))))
            return (rows.T @ with_data(rows, rows.data * by_entry(rows, w))).toarray()

        return sum_over_rows(block, self.rows.source, weights, block_rows=_BLOCK_ROWS)

    def certified_gradient(self, theta: Array) -> tuple[Array, float]:
        """Return the gradient in double precision and a bound on the norm of its error."""
        # A predictor is a sum of as many products as a row has stored entries. Within a block, a row's contribution
        # passes through at most as many additions as the block has rows.
        q, p = self.shape
        block_rows = min(max(p // 8, _LEAST_ROWS), _MOST_ROWS)
        derivative = self.loss.derivative(self.predictor(theta), self.target).reshape(-1, q)
        total = sum_over_rows(_weighted_sum, self.rows.source, derivative, block_rows=block_rows)
        longest = int(np.diff(self.rows.source.indptr).max(initial=0))
        margin_error = (longest + 2 + q**1.5) * self.norm * float(np.linalg.norm(theta))
        return self._finish(theta, total, self.loss.curvature * margin_error, block_rows + 64)

    def precise_gradient(self, theta: Array) -> tuple[Array, float]:
        high, low = np.zeros(self.shape), np.zeros(self.shape)
        for start in range(0, self.n_rows, _BLOCK_ROWS):
            block = slice(start, start + _BLOCK_ROWS)
            rows = self.rows.source[block]
            z = [precise_products(rows, weights) for weights in theta]
            derivative = self.derivative_of_pairs(
                np.stack([high for high, _ in z], axis=1), np.stack([low for _, low in z], axis=1), self.target[block]
            )
            columns = rows.T.tocsr()
            for k, weights in enumerate(derivative.T):
                own_high, own_low = precise_products(columns, weights)
                high[k], error = two_sum(high[k], own_high)
                low[k] += own_low + error
        return self._finish_precise(theta, high + low)


def _weighted_sum(rows: Any, weights: Array) -> Array:
    """Return the sums of sparse rows, weighted by each column of `weights`."""
    return (rows.T @ weights).T


def precise_products(rows: Any, vector: Array) -> tuple[Array, Array]:
    """Return products of sparse rows with a vector, as an unevaluated sum of two doubles."""
    # Entries of a row are added in pairs, and their sums again in pairs, over all rows at once.
    out = np.zeros(rows.shape[0]), np.zeros(rows.shape[0])
    high, low = two_product(rows.data, vector.take(rows.indices))
    counts = np.diff(rows.indptr)
    where = np.flatnonzero(counts)
    counts = counts[where]
    while len(high) > len(where):
        owner = np.repeat(np.arange(len(where)), counts)
        rank = np.arange(len(high)) - np.repeat(np.cumsum(counts) - counts, counts)
        first = np.flatnonzero(rank % 2 == 0)
        second = np.minimum(first + 1, len(high) - 1)
        paired = (second > first) & (owner[second] == owner[first])
        high, rest = two_sum(high[first], np.where(paired, high[second], 0.0))
        low = low[first] + np.where(paired, low[second], 0.0) + rest
        counts = (counts + 1) // 2
    # The errors of many sums may add up. Therefore the part above half a unit is moved into the high part.
    out[0][where], out[1][where] = two_sum(high, low)
    return out
