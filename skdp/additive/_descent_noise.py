"""The effect of the noise of gradient steps on curves of centred features, from released numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..schema.columns import Codes
from ._engines import Averaged
from ._groups import Centred, spectrum
from ._plans import Cells
from ._shrinkage import Directions

Array = NDArray[np.float64]

# The variance of curves must exceed the variance of the noise by this number of standard deviations, and this factor.
_SURE_BY, _TIMES = 3.0, 2.0


@dataclass(frozen=True, eq=False)
class Moved:
    """The effect of the noise on curves: a matrix for most columns, and one number for each bin of wide columns."""

    features: Centred
    rows: list[Array]  # For each column, the features of its bins in coordinates of the matrix, after shrinkage.
    parts: list[Array]  # For each column, the effect on these features, and the effect on the intercept.
    wide: dict[int, Array]  # For each column of many indicators, standard deviations of its values.

    @classmethod
    def of(
        cls, engine: Averaged, features: Centred, codes: Codes, count: float, bend: float, kept: list[Array]
    ) -> Moved:
        """Return the effect for the bins of these records, if the loss has the curvature `bend`, which may be 0."""
        layout = features.layout
        wide, rows = {}, []
        for t, own in enumerate(layout.sizes):
            in_term, length = features.rows_of_bins(t)
            if length:
                shares = np.bincount(codes[t], minlength=own + 1)[:-1] / max(codes.shape[1], 1)
                wide[t] = length * engine.sizes_along(length**2 * count * bend * shares, count)
            rows.append(_reduced(in_term))
        of_columns = (_with_none(own)[of_records] for own, of_records in zip(rows, codes, strict=True))
        dense = np.column_stack([*of_columns, np.full(codes.shape[1], layout.constant)])
        values, vectors = np.linalg.eigh((bend * count / len(dense)) * (dense.T @ dense))
        matrix = vectors * engine.sizes_along(values, count)
        parts = np.split(matrix, np.cumsum([own.shape[1] for own in rows]))
        parts[-1] = layout.constant * parts[-1]
        if kept:
            for t, factor in enumerate(kept):
                directions = Directions.of(features, t)
                if t in wide:
                    wide[t] = wide[t] * factor
                else:
                    rows[t] = directions.values(factor[:, None] * directions.coefficients(rows[t]))
        return cls(features, rows, parts, wide)

    def times(self, factor: float) -> Moved:
        """Return the effect on curves that are multiplied by a factor."""
        parts, wide = [factor * own for own in self.parts], {t: factor * own for t, own in self.wide.items()}
        return replace(self, parts=parts, wide=wide)

    def in_scores(self, codes: Codes) -> Array:
        """Return standard deviations of the scores of rows, from their bins."""
        moved = self.parts[-1]
        for rows, part, own in zip(self.rows, self.parts, codes, strict=False):
            moved = moved + _with_none(rows)[own] @ part
        variance = (moved**2).sum(axis=-1)
        for t, sizes in self.wide.items():
            variance = variance + np.append(sizes, 0.0)[codes[t]] ** 2
        return np.broadcast_to(np.sqrt(variance), codes.shape[1:]).copy()

    def in_cells(self) -> list[Array]:
        """Return standard deviations of the values of each column's cells, which are centred."""
        out = []
        for t, (rows, bins, weights) in enumerate(
            zip(self.rows, self.features.layout.bins, self.features.probabilities, strict=True)
        ):
            matrix = rows @ self.parts[t]
            variance = ((matrix - weights @ matrix) ** 2).sum(axis=1)
            if t in self.wide:
                variance = variance + self.wide[t] ** 2
            out.append(np.sqrt(variance)[bins])
        return out


def _reduced(rows: Array) -> Array:
    """Return rows with the same products, and no more features than rows."""
    # The noise is the same in all directions. Therefore any rows with these products are equivalent.
    if rows.shape[1] <= len(rows):
        return rows
    triangle: Array = np.asarray(np.linalg.qr(rows.T, mode="r"))
    return triangle.T


def _with_none(rows: Array) -> Array:
    """Append a row for values in no cell."""
    return np.vstack([rows, np.zeros((1, rows.shape[1]))])


def without_noise(
    engine: Averaged,
    features: Centred,
    cells: Cells,
    tables: list[Array],
    intercept: float,
    lone_intercept: Array | None,
) -> tuple[float, float]:
    """Return the factor that removes the noise from all curves (1 if they clearly exceed it), and the intercept."""
    # Columns are assumed to be independent, because the released counts do not contain correlations. Features of
    # different terms are then uncorrelated, because their means are 0.
    count, bends = cells.total, spectrum(features)
    parts = bends * engine.sizes_along(count * bends, count) ** 2
    noise, squares = float(parts.sum()), float(parts @ parts)
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
        by_counts = sum(float(own @ own) for own in tables) * (cells.noise / count) ** 2
        first = engine.engines[0]
        by_steps = (first.mechanism.scale / (count * features.layout.constant)) ** 2 / first.lone_steps
        part = by_counts / (by_counts + by_steps) if by_counts > 0 else 0.0
        lone += part * (float(lone_intercept[0]) - lone)
    return kept, kept * intercept + (1 - kept) * lone
