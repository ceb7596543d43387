r"""Shrinkage of the curves of labels by what noise and sampling explain, from released numbers.

The curve of a column is a sum of orthogonal functions, which have mean 0 by the released counts. Gradient steps reach a
part :math:`r` of each coefficient, and add noise and a sampling error with a known variance :math:`v`. If coefficients
per unit of features have the variance :math:`s^2`, the best linear estimate multiplies a coefficient by
:math:`r s^2 / (r^2 s^2 + v)`. The logarithm of :math:`s` is estimated for each column from its released coefficients,
with a normal prior that is common to all columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..schema.columns import Codes
from ._engines import Averaged
from ._groups import Centred
from ._scores import Link

Array = NDArray[np.float64]

#: Number of pseudo-records.
N_PSEUDO = 2048

# Logarithms of the variance s². The prior has this standard deviation.
_GRID, _PRIOR = np.linspace(-16.0, 4.0, 81), 1.5

# Directions of features with a smaller variance, relative to the largest, are rounding errors.
_LEAST = 1e-10


@dataclass(frozen=True, eq=False)
class Directions:
    """Orthogonal functions of a column's bins. They are indicators if `functions` is None."""

    shares: Array  # Shares of records in the bins.
    squares: Array  # Variances of the features in their directions.
    functions: Array | None  # Of shape (n_bins, n_directions), times the roots of the shares.

    @classmethod
    def of(cls, features: Centred, t: int) -> Directions:
        """Return the functions of the features of column `t`."""
        shares = features.probabilities[t]
        rows, wide = features.rows_of_bins(t)
        if wide:
            # One of many bins holds few records. Therefore its centred indicator is nearly the indicator.
            return cls(shares, wide**2 * shares, None)
        vectors, lengths, _ = np.linalg.svd(np.sqrt(shares)[:, None] * rows, full_matrices=False)
        some = lengths**2 > _LEAST * max(float(lengths.max(initial=0.0)) ** 2, 1e-300)
        return cls(shares, lengths[some] ** 2, vectors[:, some])

    def coefficients(self, values: Array) -> Array:
        """Return the coefficients of values of bins, of shape (n_bins, n), per unit of features."""
        scaled = np.sqrt(self.shares)[:, None] * values
        own = scaled if self.functions is None else self.functions.T @ scaled
        found: Array = own / np.sqrt(self.squares)[:, None]
        return found

    def values(self, coefficients: Array) -> Array:
        """Return the values of bins, the inverse of `coefficients`."""
        own = np.sqrt(self.squares)[:, None] * coefficients
        scaled = own if self.functions is None else self.functions @ own
        found: Array = scaled / np.sqrt(self.shares)[:, None]
        return found


def shrunk(
    engine: Averaged, features: Centred, coef: Array, intercept: Array, count: float, link: Link
) -> tuple[list[Array], list[Array], float]:
    """Return values of bins of shape (n_bins, outputs), factors of directions by column, and the mean curvature."""
    tables = [np.stack(own, axis=1) for own in zip(*(features.tables(theta) for theta in coef), strict=True)]
    scores = np.tile(intercept, (N_PSEUDO, 1))
    for own, values in zip(pseudo_records(features.probabilities), tables, strict=True):
        scores += values[own]
    bend, variance = link.clipped_moments(scores[:, 0] if scores.shape[1] == 1 else scores)
    every = [Directions.of(features, t) for t in range(len(tables))]
    parts, losses = [], []
    free = max(len(coef) - 1, 1)
    for directions, values in zip(every, tables, strict=True):
        squares = (directions.coefficients(values) ** 2).sum(axis=1) / free
        bends = count * bend * directions.squares
        response = engine.response_along(bends, count)
        reached = np.minimum(response * bends, 1.0)
        errors = engine.sizes_along(bends, count) ** 2 + response**2 * count * variance * directions.squares
        whole = reached**2 * np.exp(_GRID)[:, None] + errors + 1e-300
        losses.append(free / 2 * (np.log(whole) + squares / whole).sum(axis=1))
        parts.append(np.minimum(reached * np.exp(_GRID)[:, None] / whole, 1.0))
    kept = [weights @ own for weights, own in zip(_posterior(np.array(losses)), parts, strict=True)]
    if free > 1:
        # Few of several classes depend on a column, and their curves are larger than the common variance says.
        kept = [np.sqrt(own) for own in kept]
    shrunk_values = [
        directions.values(own[:, None] * directions.coefficients(table))
        for directions, own, table in zip(every, kept, tables, strict=True)
    ]
    return shrunk_values, kept, bend


def _posterior(losses: Array) -> Array:
    """Return weights of the grid for each column, from negative log likelihoods of shape (n_columns, n_grid)."""
    prior = special.log_softmax(-0.5 * ((_GRID[:, None] - _GRID) / _PRIOR) ** 2, axis=0)
    centre = int(np.argmax(special.logsumexp(prior[None] - losses[:, :, None], axis=1).sum(axis=0)))
    found: Array = special.softmax(prior[:, centre] - losses, axis=1)
    return found


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


def _primes(count: int) -> list[int]:
    found: list[int] = []
    number = 2
    while len(found) < count:
        if all(number % prime for prime in found if prime * prime <= number):
            found.append(number)
        number += 1
    return found
