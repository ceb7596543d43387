"""The effect of the noise of gradient steps on curves of centred features, from released numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..schema.columns import Codes
from ._engines import GradientEngine
from ._groups import Centred, Group

Array = NDArray[np.float64]

#: A group of indicators of more bins is treated separately, because the joint matrix would take too long.
MOST_TOGETHER = 512

# The variance of curves must exceed the variance of the noise by this number of standard deviations, and this factor.
_SURE_BY, _TIMES = 3.0, 2.0


@dataclass(frozen=True, eq=False)
class Moved:
    """The effect of the noise on coefficients: a matrix for most groups, and one number for each wide indicator."""

    features: Centred
    rows: tuple[Array, ...]  # For each term, the rows of its cells in the features of the matrix (see `_together`).
    matrix: Array
    wide: dict[int, Array]  # For each of the other groups, standard deviations.

    @classmethod
    def of(cls, engine: GradientEngine, features: Centred, codes: Codes, count: float, bends: bool) -> Moved:
        """Return the effect for the curvature at these records, or without curvature."""
        layout = features.layout
        wide = {}
        for k, group in enumerate(layout.groups):
            if _is_wide(group):
                own = np.bincount(codes[group.term], minlength=len(group.bins) + 1)[:-1]
                shares = np.bincount(group.bins, own, group.size) / max(codes.shape[1], 1)
                # One of many cells holds few records. Therefore its centred indicator is nearly the indicator.
                wide[k] = engine.sizes_along(features.scales[k] ** 2 * count * bends * shares, count)
        rows = tuple(_together(features, t) for t in range(len(layout.terms)))
        parts = [_with_none(own)[in_cells] for own, in_cells in zip(rows, codes, strict=True)]
        dense = np.column_stack([*parts, np.full(codes.shape[1], layout.constant)])
        gram = (bends * count / len(dense)) * (dense.T @ dense)
        values, vectors = np.linalg.eigh(gram)
        return cls(features, rows, vectors * engine.sizes_along(values, count), wide)

    @property
    def _by_term(self) -> list[Array]:
        """The effect on the features of each term."""
        return np.split(self.matrix, np.cumsum([own.shape[1] for own in self.rows]))[:-1]

    def in_scores(self, codes: Codes) -> Array:
        """Return standard deviations of the scores of rows, as a column."""
        layout = self.features.layout
        moved = layout.constant * self.matrix[-1]
        for rows, part, own in zip(self.rows, self._by_term, codes, strict=True):
            moved = moved + _with_none(rows)[own] @ part
        variance = (moved**2).sum(axis=-1)
        for k, sizes in self.wide.items():
            group = layout.groups[k]
            in_cells = np.append(self.features.scales[k] * sizes[group.bins], 0.0)
            variance = variance + in_cells[codes[group.term]] ** 2
        found: Array = np.sqrt(variance)[:, None]
        return found

    def in_cells(self) -> list[Array]:
        """Return standard deviations of the values of each term's cells, which are centred, of shape (n_cells, 1)."""
        layout = self.features.layout
        out = []
        for t, (rows, part, weights) in enumerate(
            zip(self.rows, self._by_term, self.features.probabilities, strict=True)
        ):
            matrix = rows @ part
            if len(layout.terms[t].columns) == 1:
                matrix = matrix - weights @ matrix
            variance = (matrix**2).sum(axis=1)
            for k, sizes in self.wide.items():
                if layout.groups[k].term == t:
                    variance += (self.features.scales[k] * sizes[layout.groups[k].bins]) ** 2
            out.append(np.sqrt(variance)[:, None])
        return out


def _is_wide(group: Group) -> bool:
    return group.rows is None and group.size > MOST_TOGETHER


def _together(features: Centred, t: int) -> Array:
    """Return rows of a term's cells that have the same products as the rows of its groups that are not wide."""
    # The noise is the same in all directions. Therefore any rows with these products are equivalent.
    groups = enumerate(features.layout.groups)
    parts = [features.bin_rows(k)[group.bins] for k, group in groups if group.term == t and not _is_wide(group)]
    rows = np.hstack([np.empty((features.layout.sizes[t], 0)), *parts])
    if rows.shape[1] <= len(rows):
        return rows
    triangle: Array = np.asarray(np.linalg.qr(rows.T, mode="r"))
    return triangle.T


def _with_none(rows: Array) -> Array:
    """Append a row for values in no cell."""
    return np.vstack([rows, np.zeros((1, rows.shape[1]))])


def without_noise(
    engine: GradientEngine,
    features: Centred,
    count: float,
    tables: list[Array],
    intercept: float,
    lone_intercept: Array | None,
    cell_noise: float,
) -> tuple[float, float]:
    """Return the factor that removes the noise from all curves (1 if they clearly exceed it), and the intercept."""
    # Columns are assumed to be independent, because the released counts do not contain correlations. Features of
    # different terms are then uncorrelated, because their means are 0.
    noise = squares = 0.0
    for bends in spectra(features):
        parts = bends * engine.sizes_along(count * bends, count) ** 2
        noise += float(parts.sum())
        squares += float(parts @ parts)
    means = [float(weights @ own) for own, weights in zip(tables, features.probabilities, strict=True)]
    variance = sum(
        float(weights @ (own - mean) ** 2)
        for own, weights, mean in zip(tables, features.probabilities, means, strict=True)
    )
    if variance > max(noise + _SURE_BY * math.sqrt(2 * squares), _TIMES * noise):
        return 1.0, intercept
    # The variance is 0 where all curves are zeros.
    kept = max(0.0, 1.0 - noise / variance) if variance > 0 else 0.0
    lone = intercept + sum(means)
    if lone_intercept is not None:
        # The mean of the curves is not known, because counts are noisy. The steps of the intercept alone also estimate
        # the mean of the targets, with the noise of some steps. The two estimates are averaged by their variances.
        by_counts = sum(float(own @ own) for own in tables) * (cell_noise / count) ** 2
        by_steps = (engine.mechanism.scale / (count * features.layout.constant)) ** 2 / engine.lone_steps
        part = by_counts / (by_counts + by_steps) if by_counts > 0 else 0.0
        lone += part * (float(lone_intercept[0]) - lone)
    return kept, kept * intercept + (1 - kept) * lone


def spectra(features: Centred) -> list[Array]:
    """Return eigenvalues of the covariance of each term's features, and of wide indicators, by released counts."""
    out = []
    for t, weights in enumerate(features.probabilities):
        rows = np.sqrt(weights)[:, None] * _together(features, t)
        out.append(np.maximum(np.linalg.eigvalsh(rows.T @ rows), 0.0))
    wide = [k for k, group in enumerate(features.layout.groups) if _is_wide(group)]
    return out + [features.scales[k] ** 2 * features.shares[k] for k in wide]
