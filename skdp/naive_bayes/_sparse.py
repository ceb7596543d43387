r"""Sums by class and evidence of sparse rows, from a row of zeros and the differences of stored entries.

A sparse row is a row of zeros with some entries replaced. Therefore the sums of a class are the number of its records
times the sums of a row of zeros, plus differences for the stored entries. All sums are integers in units of the
lattice, as for dense rows, so that both give the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..release.class_sums import largest_value, record_moments
from ..schema.columns import Columns
from ..schema.grid import scaled
from ..schema.sparse_cells import SparseEncoder
from ..sensitivity import by_entry, with_data
from ._layout import Layout

Array = NDArray[np.float64]


class SparseStatistic:
    """Sums of a block of sparse rows: of integers, in units of 2**-bits for the moments, or of doubles without bits."""

    def __init__(self, layout: Layout, bits: int | None) -> None:
        self._layout, self._bits = layout, bits
        self._encoder = SparseEncoder(layout.columns)
        sizes = layout.columns.table_sizes
        self._offsets = np.cumsum(sizes) - sizes
        self._places = _places_of(layout.columns)
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
            places = self._places.take(X.indices)
            entries = np.flatnonzero(places >= 0)
            places = places[entries]
            added = self._moments(X.data[entries], places) - self._zero[:, places]
            starts = labels[entries] * m + places
            first = layout.width - 2 * m
            for k, own in enumerate(added):
                # The sums are integers below 2**53, which doubles add exactly.
                sums = np.bincount(starts, weights=own, minlength=n_classes * m).reshape(n_classes, m)
                out[:, first + k * m : first + (k + 1) * m] = sums + records[:, None] * self._zero[k]
            out[:, first + m :] -= (largest_value(self._bits) / 2 * records[:, None]).astype(out.dtype)
        return out

    def _moments(self, values: NDArray, places: NDArray[np.intp]) -> Array:
        """Return values of Gaussian columns, scaled, and their squares, of shape (2, n_values)."""
        grid = self._layout.columns.grid
        first = scaled(values, grid.centre[places], grid.half[places], largest_value(self._bits))
        return record_moments(first[:, None], self._bits).T


def _places_of(columns: Columns) -> NDArray[np.intp]:
    """Return the place of each column among those with Gaussians, or -1."""
    places = np.full(columns.n_features, -1, dtype=np.intp)
    places[columns.unbinned] = np.arange(len(columns.unbinned))
    return places


def sparse_gaussian_evidence(X: Any, columns: Columns, means: Array, variances: Array) -> Array:
    """Return log densities of the Gaussian columns together, by row and class, for sparse rows."""
    g = columns.unbinned
    out = np.zeros((X.shape[0], len(means)))
    if len(g) == 0:
        return out
    lower, upper = columns.grid.lower, columns.grid.upper
    places = _places_of(columns).take(X.indices)
    own = places >= 0
    places = np.where(own, places, 0)
    values, zeros = np.clip(X.data, lower[places], upper[places]), np.clip(0.0, lower, upper)
    ones = np.ones(X.shape[1])
    for k, (mean, variance) in enumerate(zip(means[:, g], variances[:, g], strict=True)):
        of_zeros = (zeros - mean) ** 2 / variance
        added = np.where(own, (values - mean[places]) ** 2 / variance[places] - of_zeros[places], 0.0)
        out[:, k] = -(of_zeros.sum() + with_data(X, added) @ ones) / 2 - np.log(2 * np.pi * variance).sum() / 2
    return out
