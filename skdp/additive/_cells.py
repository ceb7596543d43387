"""Terms of an additive model, their cells, how released counts merge cells, and the candidates of stages."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..schema.columns import Codes, Columns, code_type

Array = NDArray[np.float64]

#: The part of single bins in the features of ordered columns is this number over 1 plus the noise multiplier.
ROUGHNESS = 0.5

#: Entries of rows are rounded towards 0 to this many bits, so that no norm increases.
ROW_BITS = 20

# Number of records whose values are added up at once, and whose residuals are.
_ROWS, _ROWS_OF_SUMS = 2**14, 2**16

# Largest number of cells of a table from which the sums of several candidates are computed.
_MOST_CELLS_AT_ONCE = 2**13


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
        return tuple(int(cells[-1]) for cells in self.maps)

    def codes(self, codes: Codes) -> Codes:
        """Return the cell of each record."""
        if len(self.columns) == 1:
            return codes[self.columns[0]]
        return joint_cells(self.maps, [codes[j] for j in self.columns])


def joint_cells(maps: Sequence[NDArray[np.int32]], codes: Sequence[NDArray]) -> NDArray:
    """Return the joint cell of each record, or the number of joint cells if a column has no cell."""
    joint, inside, size = np.int32(0), True, 1
    for mapping, cells in zip(maps, codes, strict=True):
        n, merged_cells = int(mapping[-1]), mapping[cells]
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
        rows = slice(first, first + _ROWS)
        for cells, values in zip(codes, tables, strict=True):
            out[rows] += values.take(cells[rows])
    return out


#: Numbers of cells of an ordered column in candidates with one column, and with several.
SINGLE_LEVELS, LEVELS = (16, 64, 256), (4, 8, 16)
PURE_SINGLE_LEVELS, PURE_LEVELS = (4, 8, 16, 32), (2, 4, 8)

#: Largest numbers of cells of a candidate with two columns, and with three.
MOST_PAIR_CELLS, MOST_TRIPLE_CELLS = 700, 400

#: Largest numbers of columns in pairs, and in triples. Those with the largest curves are taken. With many records,
#: there are fewer, so that tables of residuals in all candidates have about so many records.
PAIRED, TRIPLED, WORK = 24, 12, 8e7

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
    bins_of_columns = []
    for j, (numbers, ordered) in enumerate(zip(counts, columns.ordered, strict=True)):
        n_declared = columns.declared.get(j, len(numbers))
        if not ordered or n_declared <= n_bins:
            bins_of_columns.append(np.arange(len(numbers)))
            continue
        # Cells of other entries stay apart.
        declared = numbers[:n_declared]
        bins = merged_evenly(smoothed_shares(declared, True, noise), n_bins) if evident else merged(n_declared, n_bins)
        bins_of_columns.append(np.append(bins, bins[-1] + 1 + np.arange(len(numbers) - n_declared)))
    return tuple(bins_of_columns)


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
    intervals = np.minimum((middles * left).astype(np.intp), left - 1)
    starts = alone[1:] | alone[:-1] | (intervals[1:] != intervals[:-1])
    merged_cells: Places = np.concatenate([[0], np.cumsum(starts)])
    return merged_cells[: len(shares)]


def smoothed_shares(counts: Array, ordered: bool, noise: float) -> Array:
    """Return positive shares of records in cells from noisy counts."""
    if not ordered:
        positive = np.maximum(counts, 0.0)
        if len(positive) > _MANY:
            # Most of many cells may be empty, and positive noise in all of them would add up.
            positive = np.maximum(positive - 2 * noise, 0.0)
        shares: Any = positive + max(noise, 1.0) / len(counts)
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


@dataclass(frozen=True, eq=False)
class Level:
    """Merged cells of a column, with the released shares of records."""

    cells: Places  # The merged cell of each cell, and the number of merged cells for no cell.
    shares: Array

    @property
    def size(self) -> int:
        return len(self.shares)


def levels_of(shares: Array, ordered: bool, sizes: tuple[int, ...]) -> list[Level]:
    """Merge the cells of a column to about equal shares, for several numbers of merged cells, in increasing order."""
    # A cell with a large share is a merged cell of its own. The cells of unordered columns are not merged.
    finest = Level(np.arange(len(shares) + 1), shares)
    if not ordered:
        return [finest]
    levels: list[Level] = []
    for size in sorted(sizes, reverse=True):
        cells = merged_evenly(finest.shares, size)
        n = int(cells[-1]) + 1
        if levels and n == finest.size:
            continue
        # Merged cells are nested, because they are merged from finer ones.
        shares_of_merged: Any = np.bincount(cells, finest.shares)
        finest = Level(np.append(cells, n)[finest.cells], shares_of_merged)
        levels.insert(0, finest)
    return levels


@dataclass(frozen=True)
class Candidate:
    """A table over some columns, each merged to a level."""

    columns: tuple[int, ...]
    levels: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Candidates:
    """The candidates of all stages, from public numbers and released counts."""

    single: tuple[tuple[Level, ...], ...]
    joint: tuple[tuple[Level, ...], ...]
    every: tuple[Candidate, ...]

    @classmethod
    def of(
        cls,
        shares: list[Array],
        ordered: tuple[bool, ...],
        sizes: Array,
        count: float,
        pure: bool = False,
        several_columns: bool = True,
    ) -> Candidates:
        """Return the candidates, from shares of records in cells, sizes of released curves, and the released number."""
        single, joint = (
            tuple(tuple(levels_of(column, kind, most)) for column, kind in zip(shares, ordered, strict=True))
            for most in ((PURE_SINGLE_LEVELS, PURE_LEVELS) if pure else (SINGLE_LEVELS, LEVELS))
        )
        several = [j for j in range(len(shares)) if len(shares[j]) > 1]
        first = sorted(several, key=lambda j: (-sizes[j], j)) if several_columns else []
        most = WORK / count
        paired, tripled = min(PAIRED, int((1.25 * most) ** (1 / 2))), min(TRIPLED, int((2.5 * most) ** (1 / 3)))
        every = [Candidate((j,), (k,)) for j in several for k in range(len(single[j]))]
        for pair in combinations(sorted(first[:paired]), 2):
            for which in product(*(range(len(joint[j])) for j in pair)):
                if math.prod(joint[j][k].size for j, k in zip(pair, which, strict=True)) <= MOST_PAIR_CELLS:
                    every.append(Candidate(pair, which))
        for triple in combinations(sorted(first[:tripled]), 3):
            if math.prod(joint[j][0].size for j in triple) <= MOST_TRIPLE_CELLS:
                every.append(Candidate(triple, (0, 0, 0)))
        return cls(single, joint, tuple(every))

    def largest(self, pair: tuple[int, int]) -> Candidate:
        """Return the finest table over a pair of columns that is a candidate, or else the coarsest table."""
        every = [Candidate(pair, which) for which in product(*(range(len(self.joint[j])) for j in pair))]
        size = {candidate: math.prod(level.size for level in self.levels(candidate)) for candidate in every}
        few = [candidate for candidate in every if size[candidate] <= MOST_PAIR_CELLS]
        return max(few, key=size.__getitem__) if few else min(every, key=size.__getitem__)

    def levels(self, candidate: Candidate) -> list[Level]:
        of_columns = self.single if len(candidate.columns) == 1 else self.joint
        return [of_columns[j][k] for j, k in zip(candidate.columns, candidate.levels, strict=True)]

    def term(self, candidate: Candidate) -> Term:
        """Return the candidate as a term of the model."""
        maps = tuple(level.cells.astype(np.int32) for level in self.levels(candidate))
        return Term(candidate.columns, maps)

    @cached_property
    def groups(self) -> list[tuple[tuple[int, ...], list[int]]]:
        """The columns of joint tables, each with its candidates."""
        by_columns: dict[tuple[int, ...], list[int]] = {}
        for k, candidate in enumerate(self.every):
            by_columns.setdefault(candidate.columns, []).append(k)
        return list(by_columns.items())

    def sizes(self, sums: Iterator[tuple[tuple[int, ...], Array]]) -> Array:
        """Return the sum of the absolute sums of residuals of each candidate, from sums in the finest levels."""
        out = np.empty(len(self.every))
        for (columns, which), (_, table) in zip(self.groups, sums, strict=True):
            merged, of_levels = table, []
            for axis, levels in enumerate(self._levels(columns)):
                starts = [_starts(level, levels[-1]) for level in levels]
                merged = np.concatenate([np.add.reduceat(merged, first, axis) for first in starts], axis)
                of_levels.append(np.cumsum([0, *(level.size for level in levels[:-1])]))
            sizes = np.abs(merged).sum(axis=-1)
            for axis, first in enumerate(of_levels):
                sizes = np.add.reduceat(sizes, first, axis)
            out[which] = sizes[tuple(np.transpose([self.every[k].levels for k in which]))]
        return out

    def expected(self, variance: float, spread: Array, count: float) -> Array:
        """Return the expected size of each candidate without an effect, for a variance of noise and of residuals."""
        shares, first = self._shares
        deviations = np.sqrt(variance + count * np.multiply.outer(shares, spread)).sum(axis=1)
        return math.sqrt(2 / math.pi) * np.add.reduceat(deviations, first)

    @cached_property
    def _shares(self) -> tuple[Array, NDArray[np.intp]]:
        """Shares of records in the cells of each candidate, for independent columns, and where each begins."""
        shares = [_outer([level.shares for level in self.levels(candidate)]) for candidate in self.every]
        return np.concatenate(shares or [np.empty(0)]), np.cumsum([0, *map(len, shares)])[:-1]

    def _levels(self, columns: tuple[int, ...]) -> list[tuple[Level, ...]]:
        """Return the levels of each column in candidates over these columns. The last one is the finest."""
        of_columns = self.single if len(columns) == 1 else self.joint
        return [of_columns[j][:1] if len(columns) == 3 else of_columns[j] for j in columns]

    def sums(self, codes: Codes, residuals: Array) -> Array:
        """Return the exact sums of residuals in the finest cells of each group of candidates, one after the other."""
        out: Any = self._sums_of_block(codes[:, :_ROWS_OF_SUMS], residuals[:_ROWS_OF_SUMS])
        for first in range(_ROWS_OF_SUMS, len(residuals), _ROWS_OF_SUMS):
            rows = slice(first, first + _ROWS_OF_SUMS)
            out += self._sums_of_block(codes[:, rows], residuals[rows])
        return out

    def _sums_of_block(self, codes: Codes, residuals: Array) -> Array:
        cells: dict[tuple[int, int], Places] = {}
        tables: dict[tuple[int, ...], list[Array]] = {}
        for columns, levels, groups in self._unions:
            shape = [level.size + 1 for level in levels]
            joint: Any = np.intp(0)
            for j, level in zip(columns, levels, strict=True):
                if (own := cells.get((j, level.size))) is None:
                    own = level.cells[codes[j]]
                    if len(columns) > 1:
                        cells[j, level.size] = own
                joint = joint * (level.size + 1) + own
            for output in residuals.T:
                table = np.bincount(joint, output, math.prod(shape)).reshape(shape)
                for group in groups:
                    others = tuple(axis for axis, j in enumerate(columns) if j not in group)
                    # The last cell of a column stands for no cell.
                    of_group = table.sum(axis=others)[(slice(-1),) * len(group)]
                    tables.setdefault(group, []).append(of_group.ravel())
        return np.concatenate([of_output for group, _ in self.groups for of_output in tables[group]] or [np.empty(0)])

    @cached_property
    def _unions(self) -> list[tuple[tuple[int, ...], list[Level], list[tuple[int, ...]]]]:
        """Unions of groups of columns, their finest levels, and the groups whose tables are sums of the union's table.

        A pass over the records for each union takes less time than one for each group.
        """
        unions = []
        for width in (1, 2, 3):
            left = {columns: None for columns, _ in self.groups if len(columns) == width}
            finest = {columns[k]: levels[-1] for columns in left for k, levels in enumerate(self._levels(columns))}
            while left:
                union = next(iter(left))
                while width > 1:
                    size = math.prod(finest[j].size + 1 for j in union)
                    added = {
                        j: sum(tuple(sorted((*some, j))) in left for some in combinations(union, width - 1))
                        for j in finest
                        if j not in union and size * (finest[j].size + 1) <= _MOST_CELLS_AT_ONCE
                    }
                    best = max(added, key=added.__getitem__, default=None)
                    if best is None or not added[best]:
                        break
                    union = tuple(sorted((*union, best)))
                groups = [columns for columns in combinations(union, width) if columns in left]
                unions.append((union, [finest[j] for j in union], groups))
                for columns in groups:
                    del left[columns]
        return unions

    def split(self, sums: Array, n_outputs: int) -> Iterator[tuple[tuple[int, ...], Array]]:
        """Yield the table of each group from `sums`, with a last axis for outputs."""
        start = 0
        for columns, _ in self.groups:
            shape = [levels[-1].size for levels in self._levels(columns)]
            size = math.prod(shape)
            tables = sums[start : start + size * n_outputs].reshape(n_outputs, *shape)
            start += size * n_outputs
            yield columns, np.moveaxis(tables, 0, -1)


def _outer(parts: list[Array]) -> Array:
    out = np.ones(1)
    for shares in parts:
        out = np.outer(out, shares).ravel()
    return out


def _starts(level: Level, fine: Level) -> Places:
    """Return the first cell of a fine level in each cell of a coarse one, which merges neighbouring cells."""
    coarse = np.zeros(fine.size, dtype=np.intp)
    coarse[fine.cells[:-1]] = level.cells[:-1]
    return np.searchsorted(coarse, np.arange(level.size))
