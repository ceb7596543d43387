"""Terms of an additive model, their cells, and how released counts merge cells to bins of about equal counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..schema.columns import Codes, Columns, code_type

Array = NDArray[np.float64]

#: The part of single bins in the features of ordered columns is this number over 1 plus the noise multiplier.
ROUGHNESS = 0.5

#: Entries of rows are rounded towards 0 to this many bits, so that no norm increases.
ROW_BITS = 20

# Number of records whose values are added up at once.
_ROWS = 2**14


def steps(n_cells: int) -> Array:
    """Return the steps of cells, of shape (n_cells, n_cells - 1), with rows of norm 1."""
    beyond = np.arange(n_cells)[:, None] > np.arange(n_cells - 1)
    return np.where(beyond, 1.0, -1.0) / math.sqrt(max(n_cells - 1, 1))


@dataclass(frozen=True, eq=False)
class Term:
    """A term of the model, over one column or several."""

    columns: tuple[int, ...]
    maps: tuple[NDArray[np.int32], ...]  # For each column, the cell of the term for each cell of the column.

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of cells along each column."""
        return tuple(int(own[-1]) for own in self.maps)

    def codes(self, codes: Codes) -> Codes:
        """Return the cell of each record."""
        if len(self.columns) == 1:
            return codes[self.columns[0]]
        return joint_cells(self.maps, [codes[j] for j in self.columns])


def joint_cells(maps: Sequence[NDArray[np.int32]], codes: Sequence[NDArray]) -> NDArray:
    """Return the joint cell of each record, or the number of joint cells if a column has no cell."""
    joint, inside, size = np.int32(0), True, 1
    for own, cells in zip(maps, codes, strict=True):
        n, merged_cells = int(own[-1]), own[cells]
        joint, inside, size = joint * np.int32(n) + merged_cells, inside & (merged_cells < n), size * n
    return np.where(inside, joint, np.int32(size)).astype(code_type(size))


def of_columns(sizes: Sequence[int]) -> tuple[Term, ...]:
    """Return a term for each column."""
    return tuple(Term((j,), (np.arange(size + 1, dtype=np.int32),)) for j, size in enumerate(sizes))


def merged(size: int, most: int) -> NDArray[np.intp]:
    """Return the number of the merged cell of each of `size` cells. There are at most `most` merged cells."""
    return np.arange(size) * min(size, most) // max(size, 1)


def sums_of_values(tables: Sequence[Array], start: float, codes: Codes) -> Array:
    """Return a start plus the values of each record's cells, from a value for each cell and for none of a term."""
    out = np.full(codes.shape[1], start)
    for first in range(0, len(out), _ROWS):
        part = slice(first, first + _ROWS)
        for own, values in zip(codes, tables, strict=True):
            out[part] += values.take(own[part])
    return out


Places = NDArray[np.intp]

#: Number of public cells for each bin of an ordered column.
CELLS_PER_BIN = 8

# With more categories, most may be empty.
_MANY = 20

# Cells are merged by their counts if a bin has on average at least so many standard deviations of the noise in counts.
_EVIDENT = 3.0


def bins_of(columns: Columns, n_bins: int, counts: list[Array], total: float, noise: float) -> tuple[Places, ...]:
    """Return the bin of each cell of each column, from released counts with noise of this size."""
    evident = noise * n_bins * _EVIDENT <= total
    found = []
    for j, (own, ordered) in enumerate(zip(counts, columns.ordered, strict=True)):
        n_declared = columns.declared.get(j, len(own))
        if not ordered or n_declared <= n_bins:
            found.append(np.arange(len(own)))
            continue
        # Cells of other entries stay apart.
        declared = own[:n_declared]
        bins = merged_evenly(smoothed_shares(declared, True, noise), n_bins) if evident else merged(n_declared, n_bins)
        found.append(np.append(bins, bins[-1] + 1 + np.arange(len(own) - n_declared)))
    return tuple(found)


def merged_evenly(shares: Array, most: int) -> Places:
    """Return the merged cell of each ordered cell. Cells with more than an even share are alone."""
    if len(shares) <= most:
        return np.arange(len(shares))
    alone, left = np.zeros(len(shares), dtype=bool), most
    while True:
        more = ~alone & (shares * left >= shares[~alone].sum())
        if not more.any() or left - int(more.sum()) < 2:
            break
        alone |= more
        left -= int(more.sum())
    rest = np.where(alone, 0.0, shares)
    middles = (np.cumsum(rest) - rest / 2) / rest.sum()
    part = np.minimum((middles * left).astype(np.intp), left - 1)
    starts = alone[1:] | alone[:-1] | (part[1:] != part[:-1])
    found: Places = np.concatenate([[0], np.cumsum(starts)])
    return found[: len(shares)]


def smoothed_shares(counts: Array, ordered: bool, noise: float) -> Array:
    """Return positive shares of records in cells from noisy counts."""
    if not ordered:
        kept = np.maximum(counts, 0.0)
        if len(kept) > _MANY:
            # Most of many cells may be empty, and positive noise in all of them would add up.
            kept = np.maximum(kept - 2 * noise, 0.0)
        shares: Any = kept + max(noise, 1.0) / len(counts)
        return np.asarray(shares / shares.sum())
    # Starting with all cells, each interval is halved in proportion to the counts of its halves that exceed their
    # noise. Where noise is all there is, the halves are equal. So neighbouring empty cells do not add up their noise.
    size = 1 << (len(counts) - 1).bit_length()
    sums, widths = [np.zeros(size)], [np.zeros(size)]
    sums[0][: len(counts)], widths[0][: len(counts)] = counts, 1.0
    while len(sums[-1]) > 1:
        sums.append(sums[-1].reshape(-1, 2).sum(axis=1))
        widths.append(widths[-1].reshape(-1, 2).sum(axis=1))
    out = np.ones(1)
    for total, width in zip(sums[-2::-1], widths[-2::-1], strict=True):
        sd = max(noise, 1e-3) * np.sqrt(width)
        halves = (np.maximum(total - sd, 0.0) + 0.1 * sd).reshape(-1, 2)
        out = (out[:, None] * halves / np.maximum(halves.sum(axis=1, keepdims=True), 1e-30)).ravel()
    return out[: len(counts)] / out[: len(counts)].sum()
