"""The layout of the sums of naive Bayes."""

from __future__ import annotations

from dataclasses import dataclass

from ..schema.columns import Columns


@dataclass(frozen=True, eq=False)
class Layout:
    """Describe the row of a class: its tables, number of records, first moments and second moments."""

    columns: Columns
    n_classes: int

    @property
    def n_moments(self) -> int:
        return len(self.columns.unbinned)

    @property
    def n_table_cells(self) -> int:
        return int(self.columns.table_sizes.sum())

    @property
    def counts_records(self) -> bool:
        """Whether a separate number of records is released. Tables count the records, too."""
        return len(self.columns.table_sizes) == 0

    @property
    def n_touched(self) -> int:
        """Number of counts that a record adds to."""
        return len(self.columns.table_sizes) + self.counts_records

    @property
    def width(self) -> int:
        return self.n_table_cells + self.counts_records + 2 * self.n_moments

    @property
    def size(self) -> int:
        return self.n_classes * self.width
