"""The releases of a table generator: counts of records, of columns, and of chosen tables, until the budget is spent.

Which tables there are, what they cost and when the fit ends follows from public parameters and earlier releases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..mechanisms import Mechanism, NoiseSource, coordinate_variance, is_gaussian, within_reach
from ..parts.arrays import PartedArray, count_rows, folded, kept, rowwise
from ..release.counts import warn_of_mismatch
from ..release.reserve import Reserve
from ..release.session import Release, Theorem
from ..sensitivity import class_sums_l1, class_sums_l2, group_sensitivity
from ._cells import TableCells, grouped, merged_cells
from ._graph import MOST_RECORDS, Array, Clique, Model, n_cells, nearest_counts, table_counts

#: Share of the number of records in the budget, the least and the largest share of the counts of columns, and the error
#: of a column's distribution that these should have.
RECORDS_SHARE, COLUMNS_SHARE, MOST_COLUMNS_SHARE, COLUMN_ERROR = 0.01, 0.1, 0.5, 0.02

# Cells of a column beyond this number have few records.
_TYPICAL_CELLS = 16

#: Number of groups of a column: the square root of this number times the records in units of the noise of a table,
#: within limits. Categories may have more groups.
GROUPS, FEWEST_GROUPS, MOST_GROUPS, MOST_CATEGORIES = 0.12, 3, 32, 64

#: Columns are independent below this evidence (see `Releases.evidence`). With more columns than the second number,
#: there is a tree, because rounds would take long.
FEWEST, MOST_COLUMNS_OF_ROUNDS = 100.0, 60

#: Number of rounds for each column, if no round has a larger part of the budget than the first: 1 up to this evidence,
#: then growing with this power, and at most the last number.
ONE_ROUND, ROUNDS_POWER, MOST_ROUNDS = 2000.0, 0.55, 3.0

#: Share of a choice in the budget of its round, and of all choices in that of a tree.
CHOICE_SHARE, TREE_CHOICES = 0.1, 0.2

# After a table that shows less than its noise, rounds have so many times the budget.
_LARGER = 4

#: Rows of the model to which the counts of candidates are compared, and the largest number of candidates of a round.
MODEL_ROWS, MOST_CANDIDATES = 2**16, 512

# Largest number of cells of a chosen table, of tables of a tree that are counted at once, and of counts that are kept.
_MOST_IN_TABLE, _EDGES_AT_ONCE, _MOST_KNOWN = 2**13, 256, 2**24

#: Steps of the fit of the model to columns, after a round, and at the end.
FIRST_STEPS, STEPS, LAST_STEPS = 10, 60, 600

# A smaller rest of the budget is a rounding error. Smaller standard deviations of noise count as the second number.
_LEAST_REST, _LEAST_NOISE = 1e-6, 0.5

# Counts of the model are rounded to multiples of this number, so that scores are exact.
_STEP = 2.0**-10

# The mean absolute value of standard normal noise.
_MEAN_SIZE = math.sqrt(2 / math.pi)

_COUNTS, _TABLES, _CHOICES, THEOREM_OF_FITS = (Theorem("Synthetic tables", number) for number in (1, 2, 3, 4))


def columns_sensitivity(n_columns: int, pure: bool, rows: int = 1) -> float:
    """Bound the change of the counts of all columns together, in L1 norm if `pure` and otherwise in L2 norm."""
    of_record = class_sums_l1(n_columns, 0, 1.0) if pure else class_sums_l2(n_columns, 0, 1.0)
    return group_sensitivity(of_record, rows)


def noise_in(mechanism: Mechanism) -> float:
    return max(math.sqrt(coordinate_variance(mechanism)), _LEAST_NOISE)


@dataclass(frozen=True, eq=False)
class ReleasedTable:
    """Released counts of a table over merged cells, as a vector, and how many noisy numbers each of them sums."""

    columns: Clique
    counts: Array
    terms: Array
    mechanism: Mechanism


@dataclass(eq=False)
class Releases:
    """The releases of a fit after the number of records, with the model of what has been released."""

    reserve: Reserve
    table: TableCells
    codes: Any  # Private, of shape (n_rows, n_columns), in one place or in parts.
    target: int  # Position of the target, or -1.
    rows: int  # Largest number of records of a group.
    most_cells: int
    n_records: float = 0.0  # Released.
    tables: list[ReleasedTable] = field(default_factory=list)
    maps: list[NDArray[np.intp]] = field(default_factory=list)  # Groups of the cells of each column.
    shares: list[Array] = field(default_factory=list)  # Shares of cells in their groups.
    sizes: tuple[int, ...] = ()  # Numbers of groups.
    groups_of_records: Any = None  # Private.
    model: Model = field(init=False)

    def release(self, share: float, label: str, values: Any, bound: float, theorem: Theorem) -> tuple[Array, Mechanism]:
        """Release exact counts for a share of the budget."""
        mechanism = self.reserve.sums(share, bound, len(values))
        self.reserve.spend(share, [Release(label, mechanism, share, theorem)])
        return self.reserve.session.release(label, within_reach(mechanism, values)), mechanism

    def noise_of(self, share: float) -> float:
        """Return the standard deviation of the noise of a table for a share of the budget."""
        return noise_in(self.reserve.sums(share, float(self.rows), 1))

    def choose(self, share: float, scores: Array) -> int:
        """Choose the position of a large score. One record moves each of the exact scores by at most 1."""
        label, mechanism = f"choice {self.n_tables + 1}", self.reserve.choice(share, float(self.rows))
        self.reserve.spend(share, [Release(label, mechanism, share, _CHOICES)])
        return int(self.reserve.session.release(label, scores[None])[0])

    def measure(self, share: float, columns: Clique) -> tuple[Array, float]:
        """Release the counts of a table, and return them with the standard deviation of their noise."""
        label = f"table {self.n_tables + 1}"
        counts, mechanism = self.release(share, label, self.exact([columns])[0], float(self.rows), _TABLES)
        self.tables.append(ReleasedTable(columns, counts, np.ones(len(counts)), mechanism))
        return counts, noise_in(mechanism)

    @property
    def n_tables(self) -> int:
        return len(self.tables) - len(self.sizes)

    def exact(self, tables: Sequence[Clique]) -> list[Array]:
        """Return the private counts of tables."""
        counts = folded(partial(_counts_of_tables, tables, self.sizes), [self.groups_of_records])
        ends = np.cumsum([math.prod(self.sizes[j] for j in table) for table in tables])
        return np.split(counts.astype(np.float64), ends[:-1])

    @property
    def evidence(self) -> float:
        """The released number of records times the GDP parameter. With ``delta=0``, a number of similar meaning."""
        evidence = self.n_records * self.reserve.evidence
        return evidence / (2 * math.sqrt(len(self.table.columns))) if self.reserve.pure else evidence

    @property
    def n_rounds(self) -> float:
        """Number of rounds, if none has a larger part of the budget than the first."""
        of_column = (max(self.evidence, ONE_ROUND) / ONE_ROUND) ** ROUNDS_POWER
        return min(of_column, MOST_ROUNDS) * len(self.table.columns)

    def structure(self) -> str:
        """Return the structure that suits the number of columns, the released number of records and the budget."""
        if self.evidence < FEWEST:
            return "independent"
        return "tree" if len(self.table.columns) > MOST_COLUMNS_OF_ROUNDS else "rounds"

    def fit(self, structure: str) -> str:
        """Release everything, fit the model, and return the structure. Warn of entries that are not as declared."""
        exact = [float(count_rows(self.codes))]
        number, mechanism = self.release(RECORDS_SHARE, "number of records", exact, float(self.rows), _COUNTS)
        self.n_records = float(number[0])
        structure = self.structure() if structure == "auto" else structure
        counts, noise = self.columns(structure == "independent")
        parts = self.table.parts(counts, (self.n_records, coordinate_variance(mechanism)), noise**2)
        warn_of_mismatch(parts, labels=None, gaussian=is_gaussian(mechanism))
        if structure == "tree":
            self.tree()
        if structure == "rounds":
            self.run()
        self.columns_again(counts, noise)
        self.model.fit(LAST_STEPS)
        self.model.forget()
        return structure

    def columns(self, alone: bool) -> tuple[Array, float]:
        """Release the counts of the cells of all columns, and merge cells. Return the counts and their noise."""
        whole = noise_in(self.reserve.sums(1.0, self.bound_of_columns, 1))
        typical = float(np.mean([min(column.size, _TYPICAL_CELLS) for column in self.table.columns]))
        needed = 0.4 * typical * whole / (COLUMN_ERROR * max(self.n_records, 1.0))
        share = min(max(needed if self.reserve.pure else needed**2, COLUMNS_SHARE), MOST_COLUMNS_SHARE)
        counts, noise, mechanism = self.measured_columns(self.reserve.share if alone else share, "counts of columns")
        by_column = self.within_bounds(counts)
        self.merge(by_column, noise)
        self.add_columns(by_column, by_column, noise, mechanism)
        self.model.fit(FIRST_STEPS)
        return counts, noise

    @property
    def bound_of_columns(self) -> float:
        return columns_sensitivity(len(self.table.columns), self.reserve.pure, self.rows)

    def measured_columns(self, share: float, label: str) -> tuple[Array, float, Mechanism]:
        exact = folded(self.table.counts, [self.codes])
        counts, mechanism = self.release(share, label, exact, self.bound_of_columns, _COUNTS)
        return counts, noise_in(mechanism), mechanism

    def within_bounds(self, counts: Array) -> list[Array]:
        """Return the counts of each column, with numbers beyond the bounds in the outermost bins."""
        by_column = zip(self.table.columns, np.split(counts, self.table.splits), strict=True)
        return [np.bincount(column.within(np.arange(column.counted)), own) for column, own in by_column]

    def merge(self, counts: list[Array], noise: float) -> None:
        """Merge cells by their released counts, and begin the model."""
        columns, total = self.table.columns, self.total_of(counts)
        # The noise of a typical table determines how many groups are worth it.
        of_table = self.noise_of((1 - CHOICE_SHARE) * (1 - COLUMNS_SHARE) / self.n_rounds)
        wanted = min(max(math.sqrt(GROUPS * total / of_table), FEWEST_GROUPS), MOST_GROUPS)
        for column, own in zip(columns, counts, strict=True):
            positive, least = nearest_counts(own, total), max(3 * noise, of_table * wanted)
            most = wanted + min(column.size - column.n_ordered, MOST_CATEGORIES)
            while (groups := merged_cells(positive, column.n_ordered, least, noise)).max() + 1 > most:
                least *= 1.25
            self.maps.append(groups)
        self.sizes = tuple(int(groups.max()) + 1 for groups in self.maps)
        self.model = Model(self.sizes)
        to_groups = [
            groups[column.within(np.arange(column.counted))] for column, groups in zip(columns, self.maps, strict=True)
        ]
        self.groups_of_records = in_place(rowwise(partial(grouped, to_groups), self.codes))

    @staticmethod
    def total_of(counts: list[Array]) -> float:
        """Return the number of records by the released counts of columns, of which the sum of each is an estimate."""
        weights = np.array([1 / len(own) for own in counts])
        return min(max(1.0, float(weights @ [own.sum() for own in counts] / weights.sum())), MOST_RECORDS)

    def add_columns(self, counts: list[Array], best: list[Array], noise: float, mechanism: Mechanism) -> None:
        """Add released counts of columns to the model. The shares of cells in their groups are those of `best`."""
        total = self.total_of(best)
        self.shares = []
        for j, (own, likely, groups) in enumerate(zip(counts, best, self.maps, strict=True)):
            terms, merged = np.bincount(groups).astype(np.float64), np.bincount(groups, own)
            # One number is close enough to the precisions of the groups.
            self.model.add((j,), merged, noise * math.sqrt(len(groups) / len(merged)))
            self.tables.append(ReleasedTable((j,), merged, terms, mechanism))
            self.shares.append(_shares_within(nearest_counts(likely, total), groups))

    def columns_again(self, before: Array, noise: float) -> None:
        """Spend the rest of the budget on the counts of columns, if no table can be released."""
        if self.reserve.share > _LEAST_REST:
            counts, again, mechanism = self.measured_columns(self.reserve.share, "counts of columns again")
            mean = (before / noise**2 + counts / again**2) / (noise**-2 + again**-2)
            self.add_columns(self.within_bounds(counts), self.within_bounds(mean), again, mechanism)

    def candidates(self) -> list[Clique]:
        """Return pairs of columns, and triples with the target."""
        several = [j for j, size in enumerate(self.sizes) if size > 1]
        tables: list[Clique] = list(combinations(several, 2))
        if self.target in several:
            tables += [tuple(sorted((*pair, self.target))) for pair in tables if self.target not in pair]
        return [table for table in tables if self.size_of(table) <= _MOST_IN_TABLE]

    def size_of(self, table: Clique) -> int:
        return math.prod(self.sizes[j] for j in table)

    def score(self, exact: Array, modelled: Array, noise: float) -> float:
        """Return the distance of counts from the model, less that of noise, as an exact multiple of a power of two."""
        # The sums of both counts are below 2**41.
        distance = float(np.abs(exact - np.rint(modelled / _STEP) * _STEP).sum())
        of_noise = round(min(_MEAN_SIZE * noise * len(exact), MOST_RECORDS) / _STEP) * _STEP
        return distance - of_noise

    def tree(self) -> None:
        """Release a tree of pairs, or with a target of triples with the target, that independent columns fit worst."""
        nodes = [j for j, size in enumerate(self.sizes) if size > 1 and j != self.target]
        n_edges = max(len(nodes) - 1, 1)
        with_target = (self.target,) if self.target >= 0 and self.sizes[self.target] > 1 else ()
        tables = {edge: tuple(sorted(edge + with_target)) for edge in combinations(nodes, 2)}
        most = min(_MOST_IN_TABLE, self.most_cells // n_edges)
        edges = [edge for edge, table in tables.items() if self.size_of(table) <= most]
        noise = self.noise_of((1 - TREE_CHOICES) * self.reserve.share / n_edges)
        scores = np.empty(len(edges))
        for start in range(0, len(edges), _EDGES_AT_ONCE):
            of_edges = [tables[edge] for edge in edges[start : start + _EDGES_AT_ONCE]]
            for i, (table, exact) in enumerate(zip(of_edges, self.exact(of_edges), strict=True), start):
                scores[i] = self.score(exact, self.model.product(table), noise)
        component = {j: j for j in nodes}
        for left in range(n_edges, 0, -1):
            able = [i for i, (a, b) in enumerate(edges) if component[a] != component[b]]
            if not able:
                break
            share = self.reserve.share / left
            edge = edges[able[self.choose(TREE_CHOICES * share, scores[able])]]
            a, b = (component[j] for j in edge)
            component = {j: b if of_node == a else of_node for j, of_node in component.items()}
            share = self.reserve.share if left == 1 else (1 - TREE_CHOICES) * share
            self.model.add(tables[edge], *self.measure(share, tables[edge]))

    def run(self) -> None:
        """Choose, release and fit tables in rounds."""
        candidates, start = self.candidates(), self.reserve.share
        rng = NoiseSource(0).simulator("rows of the model")
        known: dict[Clique, Array] = {}
        each = start / self.n_rounds
        while self.reserve.share > _LEAST_REST:
            left = self.reserve.share
            each = left if left < 2 * each else each
            noise = self.noise_of((1 - CHOICE_SHARE) * each)
            # The model grows with the budget that is spent, so that its first tables do not use all cells.
            growing = self.most_cells * (1 - (left - each) / start)
            able = self.able(candidates, growing, rng) or self.able(candidates, self.most_cells, rng)
            if not able:
                break
            if sum(map(len, known.values())) > _MOST_KNOWN:
                known = {}
            new = [table for table in able if table not in known]
            known |= zip(new, self.exact(new), strict=True) if new else ()
            rows, unit = self.model.sample(MODEL_ROWS, rng), self.model.total / MODEL_ROWS
            modelled = [table_counts(rows, table, self.sizes) * unit for table in able]
            scores = [self.score(known[t], counts, noise) for t, counts in zip(able, modelled, strict=True)]
            at = self.choose(CHOICE_SHARE * each, np.array(scores))
            counts, noise = self.measure(self.reserve.share if each == left else (1 - CHOICE_SHARE) * each, able[at])
            self.model.add(able[at], counts, noise)
            self.model.fit(STEPS)
            # The table has shown less than its noise.
            if np.abs(self.model.table(able[at]).ravel() - modelled[at]).sum() <= _MEAN_SIZE * noise * len(counts):
                each *= _LARGER

    def able(self, candidates: list[Clique], limit: float, rng: Any) -> list[Clique]:
        """Return candidates for which the model has enough cells, at most `MOST_CANDIDATES`."""
        if len(candidates) > MOST_CANDIDATES:
            drawn = np.sort(rng.choice(len(candidates), MOST_CANDIDATES, replace=False))
            candidates = [candidates[i] for i in drawn.tolist()]
        before = list(self.model.counts)
        return [
            table
            for table in candidates
            if self.model.tree.home(table) >= 0 or n_cells([*before, table], self.sizes) <= limit
        ]


def in_place(array: Any) -> Any:
    """Return an array that is computed once: parts are kept on their machines."""
    return kept([array])[0] if isinstance(array, PartedArray) else array


def _counts_of_tables(tables: Sequence[Clique], sizes: Sequence[int], rows: NDArray) -> NDArray[np.intp]:
    return np.concatenate([table_counts(rows, table, sizes) for table in tables])


def _shares_within(counts: Array, groups: NDArray[np.intp]) -> Array:
    """Return the share of each cell in the released counts of its group."""
    sums, sizes = np.bincount(groups, counts), np.bincount(groups)
    return np.where(sums[groups] > 0, counts / np.maximum(sums[groups], 1e-300), 1 / sizes[groups])
