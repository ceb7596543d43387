"""The public axes of a joint histogram: the cell of each record, and the values of the cells.

Each record is read separately. Values beyond the bounds belong to the outermost bins. A record with an unknown category
or an unknown label is in no cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..mechanisms import BitStream, NoiseSource
from ..schema.columns import Columns, Encoder
from ..schema.grid import Grid
from ..sensitivity import sum_over_rows

Array = NDArray[np.float64]

#: Largest number of cells of a grid.
MOST_CELLS = 2**20

#: Largest number of axes of an array in the oldest NumPy.
_MOST_AXES = 32

#: Expected records for each cell of a grid of equal bins, in units of the noise.
LEAST_PER_CELL = 2.0

#: Factor of the number of bins, relative to the rate at which the two errors of a histogram balance.
BINS = 1.5

# Made-up rows are so many that a model works at all, and not so many that it takes long.
_MADE_UP_ROWS, _ROWS_PER_LABEL = 200, 10
_BINS_OF_TARGET = 20

# Number of rows of a block.
_LEAST_ROWS, _MOST_ROWS = 2**11, 2**17


@dataclass(frozen=True, eq=False)
class Axes:
    """Axes of a histogram: the columns of X in their order, then y, if it is counted. All of them are public."""

    columns: Columns
    n_targets: int = 0  # Number of cells of y: labels, or bins of a number.
    target: Grid | None = None  # The bins of a numeric target.

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of cells of each axis."""
        return (*self.columns.sizes, self.n_targets) if self.n_targets else self.columns.sizes

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @cached_property
    def edges(self) -> list[Array | None]:
        """Edges of the bins of each axis. None for categories and labels."""
        t = self.target
        last = None if t is None else np.linspace(t.lower[0], t.upper[0], t.n_cells + 1)
        return [*self.columns.bin_edges(), *([last] if self.n_targets else [])]

    def first_cells(self, X: NDArray) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the number of each row's cell, the first of those that differ in y, and whether it is in any cell."""
        c = self.columns
        strides = np.cumprod([1, *self.shape[:0:-1]], dtype=np.intp)[::-1]
        cells = Encoder(c).cells(X)
        n_categorical = len(c.categorical)
        inside = np.all(cells[:, :n_categorical] < c.table_sizes[:n_categorical] - 1, axis=1)
        return np.where(inside, cells @ strides[: c.n_features][c.tables], 0), inside

    def counts(self, X: NDArray, y: NDArray | None) -> Array:
        """Count the records in each cell, in the order of a flattened array."""

        def block(rows: NDArray, *targets: NDArray) -> NDArray:
            cells, inside = self.first_cells(rows)
            if targets:
                cells += targets[0] if self.target is None else self.target.cells(targets[0][:, None])[:, 0]
            return np.bincount(cells[inside], minlength=self.size)

        # Each block has a histogram of its own. Therefore blocks are larger if there are many cells.
        rows = min(max(_LEAST_ROWS, self.size // self.columns.n_features), _MOST_ROWS)
        arrays = (X,) if y is None else (X, y)
        return sum_over_rows(block, *arrays, block_rows=rows).astype(np.float64)

    def centres(self, cells: NDArray[np.intp]) -> Array:
        """Return the centres of cells, of shape (n_cells, n_axes): middles of bins, codes of categories and labels."""
        positions = np.unravel_index(cells, self.shape)
        values = [
            position if edges is None else (edges[:-1] / 2 + edges[1:] / 2)[position]
            for position, edges in zip(positions, self.edges, strict=True)
        ]
        return np.column_stack(values).astype(np.float64)

    def points(self, cells: NDArray[np.intp], stream: BitStream) -> Array:
        """Return a point of each of these cells, uniform within bins."""
        out = np.empty((len(cells), len(self.shape)))
        for axis, (bins, edges) in enumerate(zip(np.unravel_index(cells, self.shape), self.edges, strict=True)):
            if edges is None:
                out[:, axis] = bins
            else:
                share = uniforms(len(cells), stream)
                out[:, axis] = np.clip(edges[bins] * (1 - share) + edges[bins + 1] * share, edges[0], edges[-1])
        return out


def uniforms(n: int, stream: BitStream) -> Array:
    """Return numbers in [0, 1) for synthetic rows."""
    return (stream.words(n) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def check_size(axes: Axes) -> Axes:
    """Refuse a histogram that is too large."""
    if len(axes.shape) > _MOST_AXES or axes.size > MOST_CELLS:
        raise ValueError(
            f"the histogram would have {' x '.join(map(str, axes.shape))} cells, and may have {MOST_CELLS}, "
            f"on {_MOST_AXES} axes. Use fewer columns, or lower n_bins and n_categories"
        )
    return axes


def default_bins(expected_n: int, noise: float, n_axes: int, fixed: int) -> int:
    """Return the number of bins of each of `n_axes` numeric axes, from public numbers."""
    # More bins have a higher resolution, and fewer bins hold more records relative to their noise, of standard
    # deviation `noise`. `fixed` is the number of cells of the other axes.
    worth = min(1.0, math.sqrt(2) / noise) if noise > 0 else 1.0
    records = worth * expected_n / fixed
    balanced = round(BINS * records ** (1 / (n_axes + 2)))
    filled = math.floor((records / LEAST_PER_CELL) ** (1 / n_axes))
    return max(2, min(balanced, filled))


def made_up_rows(axes: Axes, n_samples: int | None) -> Array:
    """Return made-up rows of axis values: centres of cells, or points within cells if `n_samples` is set."""
    # A model is tried on them before any charge.
    # All labels have equally many rows. In half of the rows, the target grows with the columns, so that a model can
    # learn something. The other half has the same points, and the target takes its values in turn.
    stream = NoiseSource(0).stream("made-up rows")
    n_targets = axes.n_targets
    n_cells = axes.size // n_targets
    targets = np.arange(n_targets)
    if axes.target is not None:
        targets = np.linspace(0, n_targets - 1, min(n_targets, _BINS_OF_TARGET)).astype(np.intp)
    n_rows = n_cells * len(targets) if n_samples is None else n_samples
    n_rows = min(n_rows, max(_MADE_UP_ROWS, _ROWS_PER_LABEL * len(targets)))
    turns = -(-n_rows // (2 * len(targets)))

    positions = np.argsort(stream.words(n_cells))[np.arange(turns * len(targets)) % n_cells]
    columns = np.unravel_index(positions, axes.shape[:-1])
    height = sum(position / length for position, length in zip(columns, axes.shape[:-1], strict=True))
    positions = positions[np.argsort(height)]
    cells = np.tile(positions * n_targets, 2) + np.concatenate([np.repeat(targets, turns), np.tile(targets, turns)])
    cells = cells[np.argsort(stream.words(len(cells)))]
    return axes.centres(cells) if n_samples is None else axes.points(cells, stream)
