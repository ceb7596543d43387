r"""The effect of the noise on the curves of an additive model, from released numbers.

Near the solution without noise, the change of the coefficients is a linear function of the noise. This function depends
on the second derivative :math:`H` of the loss, summed over the records, which was not released. Instead, it is computed
from public rows, or from pseudo-records. Pseudo-records have the released numbers of records in the cells of each
column, and independent columns. For any records, the effect of the noise is largest with :math:`H = 0`.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from ..schema.columns import Codes
from ._terms import Layout

Array = NDArray[np.float64]

#: Number of pseudo-records.
N_PSEUDO = 2048


class Pseudo:
    """Pseudo-records for `count` records, without the constant feature. Without `bends`, they have no curvature."""

    def __init__(self, features: Array, count: float, bends: bool = True) -> None:
        self.features = features
        self.count = count
        self.bends = bends

    def curvature(self, weights: Array | None, constant: float) -> Array:
        """Return the second derivative of the loss, summed over records, in all coefficients, with the constant's."""
        # `weights`, of shape (outputs, outputs, n_rows), holds the second derivative of each row's loss in its
        # predictors. None stands for 1. The result is ordered by output. Without curvature, all outputs are equal, and
        # the result is for one output.
        rows = np.column_stack([self.features, np.full(len(self.features), constant)])
        n_columns = rows.shape[1]
        if not self.bends:
            return np.zeros((n_columns, n_columns))
        if weights is None:
            weights = np.ones((1, 1, len(rows)))
        out = np.empty((len(weights), n_columns, len(weights), n_columns))
        for a, b in product(range(len(weights)), repeat=2):
            out[a, :, b] = rows.T @ (rows * weights[a, b][:, None])
        return (self.count / len(rows)) * out.reshape(len(weights) * n_columns, -1)


def pseudo_records(counts: list[Array]) -> Codes:
    """Return the cells of records whose columns are independent, with the released counts."""
    # The points of a Kronecker sequence (fractional parts of multiples of square roots of primes) fill the cube evenly.
    # Therefore no random numbers are drawn.
    n = np.arange(N_PSEUDO)
    codes = np.empty((len(counts), N_PSEUDO), dtype=np.int32)
    for own, released, prime in zip(codes, counts, _primes(len(counts)), strict=True):
        weights = np.maximum(released, 0.0)
        weights = weights if weights.sum() > 0 else np.ones(len(weights))
        places = (n + 0.5) * np.sqrt(prime) % 1.0
        own[:] = np.searchsorted(np.cumsum(weights / weights.sum())[:-1], places, side="right")
    return codes


def inverse(matrix: Array) -> Array:
    """Return the inverse of a positive definite matrix."""
    out: Array = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    return out


def _primes(count: int) -> list[int]:
    found: list[int] = []
    number = 2
    while len(found) < count:
        if all(number % prime for prime in found if prime * prime <= number):
            found.append(number)
        number += 1
    return found


def term_noise(layout: Layout, counts: list[Array], spread: list[Array]) -> list[Array]:
    """Return standard deviations of the values of each term's cells, of shape (n_cells, outputs)."""
    # `spread` holds a matrix A for each output. The noise changes the coefficients, including that of the constant, by
    # A times independent numbers of variance 1.
    out = []
    for term, where in zip(layout.terms, layout.slices, strict=True):
        rows = centred(term.rows[:-1], term.columns, counts)
        out.append(np.stack([np.linalg.norm(rows @ one[where], axis=1) for one in spread], axis=-1))
    return out


def centred(rows: Array, columns: tuple[int, ...], counts: list[Array]) -> Array:
    """Return rows minus their mean by the released counts. The values of terms of one column are centred likewise."""
    if len(columns) > 1:
        return rows
    weights = np.maximum(counts[columns[0]], 0.0)
    weights = weights if weights.sum() > 0 else np.ones(len(rows))
    return rows - weights @ rows / weights.sum()
