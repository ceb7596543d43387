r"""The release of naive Bayes: sums by class, in one joint release.

Each class has the counts of all tables, and for each Gaussian column the sums of :math:`v` and of :math:`a(v^2 - 1/2)`,
for values :math:`v` scaled into [-1, 1]. If there is no table, it also has the number of records. The values of each
record are rounded to a lattice before they are added, so that sums are exact.

A sparse row is a row of zeros with some entries replaced. Therefore the sums of a class are the number of its records
times the sums of a row of zeros, plus differences for the stored entries. All sums are integers in units of the
lattice, as for dense rows, so that both give the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ..mechanisms import Mechanism
from ..release.class_sums import class_sums_mechanism, in_real_units, largest_value, moment_bits, record_moments
from ..release.session import PrivacyGuarantee, Release, Theorem
from ..release.units import ONE_RECORD, Unit
from ..schema.columns import Columns, Encoder, SparseEncoder
from ..schema.grid import scaled
from ..sensitivity import by_entry, sum_over_rows, with_data

Array = NDArray[np.float64]

SUMS = "sums by class"
THEOREM = Theorem("Naive Bayes", 1)

# Entries of a matrix that holds the class of each row of a block.
_MOST_INDICATORS = 2**22

# Rows of a block.
_LEAST_ROWS, _MOST_ROWS = 2**11, 2**17


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
    def width(self) -> int:
        return self.n_table_cells + self.counts_records + 2 * self.n_moments

    @property
    def size(self) -> int:
        return self.n_classes * self.width


def plan(epsilon: float, delta: float, layout: Layout, unit: Unit = ONE_RECORD) -> PrivacyGuarantee:
    """Return the one release."""
    n_counts = len(layout.columns.table_sizes) + layout.counts_records
    mechanism, event = class_sums_mechanism(epsilon, delta, n_counts, layout.n_moments, layout.size, unit.rows)
    return unit.stated(PrivacyGuarantee(epsilon, delta, (event,), (Release(SUMS, mechanism, 1.0, THEOREM),)))


def sums_by_class(X: Any, codes: NDArray[np.intp], layout: Layout, mechanism: Mechanism) -> Array:
    """Return the sums, of shape (n_classes, width). They lie on the lattice if noise is added."""
    bits = moment_bits(mechanism, layout.n_moments)
    if issparse(X):
        total = sum_over_rows(SparseStatistic(layout, bits), X, codes, block_rows=_MOST_ROWS)
    else:
        # Each block has totals of its own. Therefore blocks are larger if tables are large.
        rows = min(max(_LEAST_ROWS, layout.size // layout.columns.n_features), _MOST_ROWS)
        if layout.n_moments:
            rows = max(1, min(rows, _MOST_INDICATORS // layout.n_classes))
        total = sum_over_rows(_Statistic(layout, bits), X, codes, block_rows=rows)
    return in_real_units(total, layout.width - 2 * layout.n_moments, layout.n_moments, mechanism)


class _Statistic:
    """Sums of a block of rows: of integers, in units of 2**-bits for the moments, or of doubles if `bits` is None."""

    def __init__(self, layout: Layout, bits: int | None) -> None:
        self._layout = layout
        self._encoder = Encoder(layout.columns)
        self._bits = bits
        self._offsets = np.concatenate([[0], np.cumsum(layout.columns.table_sizes)[:-1]]).astype(np.intp)
        self._classes = np.arange(layout.n_classes)

    def __call__(self, X: NDArray, codes: NDArray[np.intp]) -> NDArray:
        layout, n_classes = self._layout, self._layout.n_classes
        dtype = np.float64 if self._bits is None else np.int64
        out = np.empty((n_classes, layout.width), dtype=dtype)
        n_counts = layout.width - 2 * layout.n_moments
        records = np.bincount(codes, minlength=n_classes)
        if layout.counts_records:
            out[:, 0] = records
        else:
            cells = self._encoder.cells(X)
            cells += self._offsets
            cells += (codes * layout.n_table_cells)[:, None]
            out[:, :n_counts] = np.bincount(cells.ravel(order="K"), minlength=n_classes * layout.n_table_cells).reshape(
                n_classes, -1
            )
        if layout.n_moments:
            largest = largest_value(self._bits)
            values = record_moments(self._encoder.scaled(X, largest), self._bits)
            # The products are integers below 2**37 in all, so that doubles add them exactly.
            sums = (codes == self._classes[:, None]).astype(np.float64) @ values
            sums[:, layout.n_moments :] -= largest / 2 * records[:, None]
            out[:, n_counts:] = sums
        return out


class SparseStatistic:
    """Sums of a block of sparse rows: of integers, in units of 2**-bits for the moments, or of doubles without bits."""

    def __init__(self, layout: Layout, bits: int | None) -> None:
        self._layout, self._bits = layout, bits
        self._encoder = SparseEncoder(layout.columns)
        sizes = layout.columns.table_sizes
        self._offsets = np.cumsum(sizes) - sizes
        self._positions = _gaussian_positions(layout.columns)
        self._zero = self._moments(np.zeros(layout.n_moments), np.arange(layout.n_moments))

    def __call__(self, X: Any, codes: NDArray[np.intp]) -> NDArray:
        layout, n_classes = self._layout, self._layout.n_classes
        out = np.zeros((n_classes, layout.width), dtype=np.float64 if self._bits is None else np.int64)
        records = np.bincount(codes, minlength=n_classes)
        labels = by_entry(X, codes)
        if layout.counts_records:
            out[:, 0] = records
        else:
            entries, tables, cells = self._encoder.cells(X)
            starts = labels[entries] * layout.n_table_cells + self._offsets[tables]
            size = n_classes * layout.n_table_cells
            counts = np.bincount(starts + cells, minlength=size)
            counts -= np.bincount(starts + self._encoder.zero_cells[tables], minlength=size)
            out[:, : layout.n_table_cells] = counts.reshape(n_classes, -1)
            out[:, self._offsets + self._encoder.zero_cells] += records[:, None]
        m = layout.n_moments
        if m:
            positions = self._positions.take(X.indices)
            entries = np.flatnonzero(positions >= 0)
            positions = positions[entries]
            added = self._moments(X.data[entries], positions) - self._zero[:, positions]
            starts = labels[entries] * m + positions
            first = layout.width - 2 * m
            for k, moment in enumerate(added):
                # The sums are integers below 2**53, which doubles add exactly.
                sums = np.bincount(starts, weights=moment, minlength=n_classes * m).reshape(n_classes, m)
                out[:, first + k * m : first + (k + 1) * m] = sums + records[:, None] * self._zero[k]
            out[:, first + m :] -= (largest_value(self._bits) / 2 * records[:, None]).astype(out.dtype)
        return out

    def _moments(self, values: NDArray, positions: NDArray[np.intp]) -> Array:
        """Return values of Gaussian columns, scaled, and their squares, of shape (2, n_values)."""
        grid = self._layout.columns.grid
        first = scaled(values, grid.centre[positions], grid.half[positions], largest_value(self._bits))
        return record_moments(first[:, None], self._bits).T


def _gaussian_positions(columns: Columns) -> NDArray[np.intp]:
    """Return the position of each column among those with Gaussians, or -1."""
    positions = np.full(columns.n_features, -1, dtype=np.intp)
    positions[columns.unbinned] = np.arange(len(columns.unbinned))
    return positions


def sparse_gaussian_evidence(X: Any, columns: Columns, means: Array, variances: Array) -> Array:
    """Return log densities of the Gaussian columns together, by row and class, for sparse rows."""
    g = columns.unbinned
    out = np.zeros((X.shape[0], len(means)))
    if len(g) == 0:
        return out
    lower, upper = columns.grid.lower, columns.grid.upper
    positions = _gaussian_positions(columns).take(X.indices)
    gaussian = positions >= 0
    positions = np.where(gaussian, positions, 0)
    values, zeros = np.clip(X.data, lower[positions], upper[positions]), np.clip(0.0, lower, upper)
    ones = np.ones(X.shape[1])
    for k, (mean, variance) in enumerate(zip(means[:, g], variances[:, g], strict=True)):
        of_zeros = (zeros - mean) ** 2 / variance
        added = np.where(gaussian, (values - mean[positions]) ** 2 / variance[positions] - of_zeros[positions], 0.0)
        out[:, k] = -(of_zeros.sum() + with_data(X, added) @ ones) / 2 - np.log(2 * np.pi * variance).sum() / 2
    return out
