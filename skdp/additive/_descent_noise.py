"""How far the noise of gradient steps moves curves of centred features, from what was released."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..schema.columns import Codes
from ._engines import GradientEngine
from ._groups import Centred
from ._uncertainty import pseudo_records

Array = NDArray[np.float64]

#: Indicators of more bins than this move by themselves. Together with other features, they would take too long.
MOST_TOGETHER = 512

# The variance of curves has to exceed that of noise alone by so many standard deviations, and so many times.
_SURE_BY, _TIMES = 3.0, 2.0


@dataclass(frozen=True, eq=False)
class Moved:
    """Hold what the noise moves coefficients by: a matrix for most groups, and one number for each wide indicator."""

    features: Centred
    together: tuple[int, ...]  # Groups whose features move together, with the constant.
    matrix: Array
    alone: dict[int, Array]  # For each of the other groups, standard deviations.

    @classmethod
    def of(cls, engine: GradientEngine, features: Centred, codes: Codes | None, count: float, bends: bool) -> Moved:
        """Return it for the curvature of these records, or of pseudo-records if `codes` is None; or for none at all."""
        groups = features.layout.groups
        wide = [k for k, group in enumerate(groups) if group.rows is None and group.size > MOST_TOGETHER]
        together = tuple(k for k in range(len(groups)) if k not in wide)
        alone = {}
        for k in wide:
            shares = features.shares[k]
            if codes is not None:
                own = np.bincount(codes[groups[k].term], minlength=len(groups[k].bins) + 1)[:-1]
                shares = np.bincount(groups[k].bins, own, groups[k].size) / max(codes.shape[1], 1)
            # One cell of many holds few records, so that its centred indicator is nearly the indicator.
            alone[k] = engine.sizes_along(features.scales[k] ** 2 * count * bends * shares, count)
        if codes is None:
            codes = features.layout.codes(pseudo_records(features.probabilities[: len(features.layout.bins)]))
        parts = [features.rows_of_records(k, codes[groups[k].term]) for k in together]
        rows = np.column_stack([*parts, np.full(codes.shape[1], features.layout.constant)])
        gram = (bends * count / len(rows)) * (rows.T @ rows)
        values, vectors = np.linalg.eigh(gram)
        return cls(features, together, vectors * engine.sizes_along(values, count), alone)

    def cells(self, t: int) -> tuple[Array, Array]:
        """Return how the values of a term's cells move: a matrix, and standard deviations of independent parts."""
        layout = self.features.layout
        size, start = layout.sizes[t], 0
        matrix, alone = np.zeros((size, self.matrix.shape[1])), np.zeros(size)
        for k in self.together:
            group = layout.groups[k]
            if group.term == t:
                matrix += (self.features.bin_rows(k) @ self.matrix[start : start + group.width])[group.bins]
            start += group.width
        for k, sizes in self.alone.items():
            if layout.groups[k].term == t:
                alone = np.hypot(alone, self.features.scales[k] * sizes[layout.groups[k].bins])
        return matrix, alone

    def in_scores(self, codes: Codes) -> Array:
        """Return standard deviations of the scores of rows, as a column."""
        layout = self.features.layout
        moved, start = layout.constant * self.matrix[-1], 0
        for k in self.together:
            group = layout.groups[k]
            rows = self.features.rows_of_records(k, codes[group.term])
            moved = moved + rows @ self.matrix[start : start + group.width]
            start += group.width
        variance = (moved**2).sum(axis=-1)
        for k, sizes in self.alone.items():
            group = layout.groups[k]
            in_cells = np.append(self.features.scales[k] * sizes[group.bins], 0.0)
            variance = variance + in_cells[codes[group.term]] ** 2
        found: Array = np.sqrt(variance)[:, None]
        return found

    def in_cells(self) -> list[Array]:
        """Return standard deviations of the values of each term's cells, which are centred, of shape (n_cells, 1)."""
        out = []
        for t, (term, weights) in enumerate(zip(self.features.layout.terms, self.features.probabilities, strict=True)):
            matrix, alone = self.cells(t)
            if len(term.columns) == 1:
                matrix = matrix - weights @ matrix
            out.append(np.hypot(np.linalg.norm(matrix, axis=1), alone)[:, None])
        return out


def without_noise(moved: Moved, tables: list[Array], intercept: float) -> tuple[float, float]:
    """Return a factor for all curves, and the intercept: what noise explains is left out, unless curves show more."""
    noise = squares = variance = mean = 0.0
    for t, (own, weights) in enumerate(zip(tables, moved.features.probabilities, strict=True)):
        matrix, alone = moved.cells(t)
        matrix = np.sqrt(weights)[:, None] * (matrix - weights @ matrix)
        lengths, single = (matrix**2).sum(axis=1), weights * alone**2
        noise += float(lengths.sum() + single.sum())
        squares += float(np.sum((matrix.T @ matrix) ** 2) + single @ single + 2 * single @ lengths)
        mean += float(weights @ own)
        variance += float(weights @ (own - weights @ own) ** 2)
    if variance > max(noise + _SURE_BY * math.sqrt(2 * squares), _TIMES * noise):
        return 1.0, intercept
    # The variance is 0 where all curves are zeros.
    kept = max(0.0, 1.0 - noise / variance) if variance > 0 else 0.0
    return kept, intercept + (1 - kept) * mean
