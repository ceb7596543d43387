"""The cells of the stored entries of sparse rows, and the cells of zeros, which are public."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .categories import cells_of_codes
from .columns import Columns, Encoder

Places = NDArray[np.intp]


class SparseEncoder:
    """Read blocks of sparse rows of numbers with coded categories, as `Encoder` reads dense rows."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        encoder = Encoder(columns)
        #: The cell of a zero in each table.
        self.zero_cells: Places = encoder.cells(np.zeros((1, columns.n_features)))[0]
        self._uneven = encoder.uneven
        self._sizes = columns.n_categories[list(columns.categorical)]
        self._tables = np.full(columns.n_features, -1, dtype=np.intp)
        self._tables[columns.tables] = np.arange(len(columns.tables))

    def cells(self, rows: Any) -> tuple[Places, Places, Places]:
        """Return the positions of the stored entries that have a table, their tables and their cells."""
        tables = self._tables.take(rows.indices)
        entries = np.flatnonzero(tables >= 0)
        tables, values = tables[entries], rows.data[entries]
        cells = np.empty(len(entries), dtype=np.intp)
        grid, n_categorical = self.columns.grid, len(self._sizes)
        n_even = len(self.columns.numeric) if self.columns.n_bins else 0
        coded, uneven = tables < n_categorical, tables >= n_categorical + n_even
        cells[coded] = cells_of_codes(values[coded], self._sizes[tables[coded]])
        if n_even:
            even = ~(coded | uneven)
            own = tables[even] - n_categorical
            # This grid has one column for each entry.
            by_entry = replace(grid, lower=grid.lower[own], upper=grid.upper[own])
            cells[even] = by_entry.cells(values[even][None])[0]
        if self._uneven:
            rest = np.flatnonzero(uneven)
            rest = rest[np.argsort(tables[rest], kind="stable")]
            first = n_categorical + n_even
            ends = np.searchsorted(tables[rest], first + np.arange(len(self._uneven) + 1))
            for (_, bins), start, end in zip(self._uneven, ends[:-1], ends[1:], strict=True):
                cells[rest[start:end]] = bins(values[rest[start:end]])
        return entries, tables, cells
