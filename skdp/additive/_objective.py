"""The objective of objective perturbation, from the cells of the records.

The features of a record are the rows of its cells, and are never stored. Predictors are sums of tables with an entry
for each cell. Gradients follow from sums of derivatives by cell, and second derivatives from sums by pairs of cells.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..schema.columns import Codes
from ..sensitivity import augmented_norm, sum_over_rows
from ..solvers.certified import INNER_ROWS, Objective
from ..solvers.losses import SmoothLoss
from ._terms import Layout

Array = NDArray[np.float64]

#: Largest number of cells of a term, including no cell. Sums by pairs of cells then fit into the cache.
MOST_CELLS = 512

# Number of records whose pairs of cells are counted at once.
_PAIR_ROWS = 2**14


class CellObjective(Objective):
    """Sum the losses of the records of an additive model, plus a regulariser and a linear term."""

    # The norm of a row is at most `norm`, which includes the constant, because each term adds a row of norm at most 1
    # (see `Layout`).
    _rows_of_matrix = 0

    def __init__(
        self,
        layout: Layout,
        loss: SmoothLoss,
        C: float,
        strong_convexity: float,
        linear: Array,
        codes: Codes,
        labels: NDArray[np.intp],
    ) -> None:
        self.codes = labels
        norm = augmented_norm(layout.data_norm, layout.constant)
        self._prepare(loss.encode(labels), norm, loss, C, strong_convexity, linear)
        self._layout = layout
        # With this type, `np.bincount` and `take` need not copy the codes each time.
        self._cells: Any = codes.astype(np.intp)
        self._rows_of_cells = [term.rows for term in layout.terms]

    def subsample(self, ratio: int) -> CellObjective:
        part = np.ascontiguousarray(self._cells[:, ::ratio])
        labels, weight = self.codes[::ratio], self.C * ratio
        return CellObjective(self._layout, self.loss, weight, self.strong_convexity, self.linear, part, labels)

    def predictor(self, theta: Array) -> Array:
        out = np.empty((len(theta), self.n_rows))
        out[:] = self._layout.constant * theta[:, -1:]
        for own, rows, where in zip(self._cells, self._rows_of_cells, self._layout.slices, strict=True):
            for output, values in zip(out, theta[:, where] @ rows.T, strict=True):
                output += values.take(own)
        return out.T

    def adjoint(self, weights: Array) -> Array:
        sums: list[Any] = [
            np.stack([np.bincount(own, weights=w, minlength=len(rows)) for w in weights.T])
            for own, rows in zip(self._cells, self._rows_of_cells, strict=True)
        ]
        return self._of_cells(sums, weights.sum(axis=0))

    def _of_cells(self, sums: list[Array], total: Array) -> Array:
        """Return the sum of weighted rows from the sums of weights by term and cell, and over all records."""
        parts = [own @ rows for own, rows in zip(sums, self._rows_of_cells, strict=True)]
        return np.hstack([*parts, self._layout.constant * total[:, None]])

    def gram(self, weights: Array, positive: bool) -> Array:
        sizes = [len(rows) for rows in self._rows_of_cells]
        pairs = [(t, u) for u in range(len(sizes)) for t in range(u)]
        joint = [np.zeros(sizes[t] * sizes[u]) for t, u in pairs]
        by_cell: list[Any] = [
            np.bincount(own, weights=weights, minlength=size) for own, size in zip(self._cells, sizes, strict=True)
        ]
        for start in range(0, self.n_rows, _PAIR_ROWS):
            cells, own = self._cells[:, start : start + _PAIR_ROWS], weights[start : start + _PAIR_ROWS]
            for (t, u), counts in zip(pairs, joint, strict=True):
                places = cells[t] * sizes[u]
                places += cells[u]
                counts += np.bincount(places, weights=own, minlength=len(counts))
        out = np.empty((self.shape[1], self.shape[1]))
        slices, constant = self._layout.slices, self._layout.constant
        for where, rows, counts in zip(slices, self._rows_of_cells, by_cell, strict=True):
            out[where, where] = rows.T @ (rows * counts[:, None])
            out[where, -1] = out[-1, where] = constant * (counts @ rows)
        for (t, u), counts in zip(pairs, joint, strict=True):
            block = self._rows_of_cells[t].T @ counts.reshape(sizes[t], sizes[u]) @ self._rows_of_cells[u]
            out[slices[t], slices[u]], out[slices[u], slices[t]] = block, block.T
        out[-1, -1] = constant**2 * weights.sum()
        return out

    def gradient_of_losses(self, theta: Array) -> Array:
        q = len(theta)
        sizes = [len(rows) for rows in self._rows_of_cells]
        # Predictors are computed once. Derivatives are computed block by block.
        z = self.predictor(theta)

        def block(predictors: NDArray, target: NDArray, cells: NDArray) -> NDArray:
            derivative = self.loss.derivative(predictors, target)
            part = np.arange(len(derivative)) // INNER_ROWS
            n_parts = int(part[-1]) + 1 if len(part) else 1
            sums = []
            for output in derivative.T:
                for own, size in zip(cells.T, sizes, strict=True):
                    by_part = np.bincount(part * size + own, weights=output, minlength=n_parts * size)
                    sums.append(by_part.reshape(n_parts, size).sum(axis=0))
                by_part = np.bincount(part, weights=output, minlength=n_parts)
                sums.append(by_part.sum(keepdims=True))
            return np.concatenate(sums)

        total = sum_over_rows(block, z, self.target, self._cells.T).reshape(q, -1)
        ends = np.cumsum(sizes)
        by_term = [total[:, end - size : end] for end, size in zip(ends, sizes, strict=True)]
        return self._of_cells(by_term, total[:, -1])

    def certified(self, theta: Array, total: Array) -> tuple[Array, float]:
        """Return the gradient, and a bound on its error, from the sum of the gradients of the losses.

        An entry of a term's table is a product with one row of the term. Relative to the norms of the row and of the
        term's coefficients, its error is at most as many units as the term has columns. By the Cauchy-Schwarz
        inequality, the sum of these products over terms is at most the norm times the norm of all coefficients. Adding
        up the terms and the constant costs one unit for each of them. Derivatives are added up by cell, some rows at a
        time, and sums of cells are multiplied by their rows. If absolute values replace the derivatives, and 1 replaces
        the norm of each row, the result is at most the number of records times the Lipschitz constant for each term,
        and the norm times this number for all terms.
        """
        sizes = [len(rows) for rows in self._rows_of_cells]
        widest = max(rows.shape[1] for rows in self._rows_of_cells)
        margin_error = (widest + len(sizes) + 2 + len(theta) ** 1.5) * self.norm * float(np.linalg.norm(theta))
        terms = INNER_ROWS + 64 + max(sizes)
        return self._finish(theta, total, self.loss.curvature * margin_error, terms)

    def dense(self, part: slice) -> Array:
        features = self._layout.features(self._cells[:, part])
        return np.hstack([features, np.full((len(features), 1), self._layout.constant)])
