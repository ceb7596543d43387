"""The releases of a table generator: counts of records, of columns, and of chosen tables, until the budget is spent.

Which tables there are, what they cost and when the fit ends follows from public parameters and earlier releases.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..mechanisms import Mechanism, NoiseSource, coordinate_variance, is_gaussian, within_reach
from ..parts.arrays import PartedArray, count_rows, folded, kept, rowwise
from ..release.counts import warn_of_mismatch
from ..release.estimates import Law, combination
from ..release.reserve import Reserve
from ..release.session import Release, Theorem
from ..sensitivity import class_sums_l1, class_sums_l2, group_sensitivity
from ._cells import TableCells, merged_cells
from ._graph import MOST_RECORDS, Array, Clique, Model, n_cells, nearest_counts, summed, table_counts, total_of

#: Share of the number of records in the budget, the least and the largest share of the counts of columns, and the error
#: of a column's distribution that these should have.
RECORDS_SHARE, COLUMNS_SHARE, MOST_COLUMNS_SHARE, COLUMN_ERROR = 0.01, 0.1, 0.5, 0.012

# Cells of a column beyond this number have few records. Smaller noise counts as this number. A smaller rest of the
# budget is a rounding error. After a table that shows less than its noise, rounds have so many times the budget.
_TYPICAL_CELLS, _LEAST_NOISE, _LEAST_REST, _LARGER = 16, 0.5, 1e-6, 4

#: Number of groups of a column: the square root of this number times the records in units of the noise of a table,
#: within limits. Categories may have more groups.
GROUPS, FEWEST_GROUPS, MOST_GROUPS, MOST_CATEGORIES = 0.12, 3, 32, 64

#: Columns are independent below this evidence (see `Releases.evidence`). With more columns than the second number,
#: there is a tree, because rounds would take long.
FEWEST, MOST_COLUMNS_OF_ROUNDS = 100.0, 60

#: Number of rounds for each column, if no round has a larger part of the budget than the first: 1 up to this evidence,
#: then growing with this power, and at most the last number.
ONE_ROUND, ROUNDS_POWER, MOST_ROUNDS = 1500.0, 0.55, 3.0

#: Share of a choice in the budget of its round, and of all choices in that of a tree.
CHOICE_SHARE, TREE_CHOICES = 0.1, 0.2

#: Rows of the model to which the counts of candidates are compared, and the largest number of candidates of a round.
MODEL_ROWS, MOST_CANDIDATES = 2**16, 512

# Largest number of cells of a chosen table, of tables that are counted at once, and of counts that are kept.
_MOST_IN_TABLE, _TABLES_AT_ONCE, _MOST_KNOWN = 2**13, 256, 2**24

#: Steps of the fit of the model to columns, after a round, and at the end.
FIRST_STEPS, STEPS, LAST_STEPS = 10, 60, 600

# Counts of the model are rounded to multiples of the first number, so that scores are exact. The second one is the mean
# absolute value of standard normal noise.
_STEP, _MEAN_SIZE = 2.0**-10, math.sqrt(2 / math.pi)

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

    def summed(self, wanted: Clique, sizes: Sequence[int]) -> tuple[Array, list[Law]]:
        """Return the counts in the cells of some of the columns, and the law of the noise of each."""
        shape = [sizes[j] for j in self.columns]
        counts, terms = (summed(own.reshape(shape), self.columns, wanted) for own in (self.counts, self.terms))
        laws = {k: combination(self.mechanism, np.ones(round(k))) for k in set(terms.ravel().tolist())}
        return counts, [laws[k] for k in terms.ravel().tolist()]


@dataclass(eq=False)
class Releases:
    """The releases of a fit, with the model of what has been released."""

    reserve: Reserve
    cells: TableCells
    codes: Any  # Private, of shape (n_rows, n_columns), in one place or in parts.
    rows: int  # Largest number of records of a group.
    most_cells: int
    n_records: float = 0.0  # Released.
    tables: list[ReleasedTable] = field(default_factory=list)
    groups_of_records: Any = None  # Private.
    model: Model = field(init=False)

    def release(self, share: float, label: str, values: Any, bound: float, theorem: Theorem) -> tuple[Array, Mechanism]:
        """Release exact counts for a share of the budget."""
        mechanism = self.reserve.sums(share, bound, len(values))
        self.reserve.spend(share, [Release(label, mechanism, share, theorem)])
        return self.reserve.session.release(label, within_reach(mechanism, values)), mechanism

    def chosen(self, share: float, of_choice: float, tables: Sequence[Clique], scores: Array) -> int:
        """Choose a table by scores, and add its released counts to the model. Return its position."""
        # One record moves each of the exact scores by at most 1.
        number, is_rest = sum(len(table.columns) > 1 for table in self.tables) + 1, share == self.reserve.share
        label, mechanism = f"choice {number}", self.reserve.choice(of_choice * share, float(self.rows))
        self.reserve.spend(of_choice * share, [Release(label, mechanism, of_choice * share, _CHOICES)])
        at = int(self.reserve.session.release(label, scores[None])[0])
        share = self.reserve.share if is_rest else (1 - of_choice) * share
        (exact,) = self.exact([tables[at]])
        counts, mechanism = self.release(share, f"table {number}", exact, float(self.rows), _TABLES)
        self.tables.append(ReleasedTable(tables[at], counts, np.ones(len(counts)), mechanism))
        self.model.add(tables[at], counts, noise_in(mechanism))
        return at

    def noise_of(self, share: float) -> float:
        """Return the standard deviation of the noise of a table for a share of the budget."""
        return noise_in(self.reserve.sums(share, float(self.rows), 1))

    def exact(self, tables: Sequence[Clique]) -> Iterator[Array]:
        """Yield the private counts of tables."""
        for start in range(0, len(tables), _TABLES_AT_ONCE):
            some = tables[start : start + _TABLES_AT_ONCE]
            counts = folded(partial(_counts_of_tables, some, self.model.sizes), [self.groups_of_records])
            yield from np.split(counts.astype(np.float64), np.cumsum([*map(self.size_of, some)])[:-1])

    def size_of(self, table: Clique) -> int:
        return math.prod(self.model.sizes[j] for j in table)

    @property
    def evidence(self) -> float:
        """The released number of records times the GDP parameter. With ``delta=0``, a number of similar meaning."""
        evidence = self.n_records * self.reserve.evidence
        return evidence / (2 * math.sqrt(len(self.cells.columns))) if self.reserve.pure else evidence

    @property
    def n_rounds(self) -> float:
        """Number of rounds, if none has a larger part of the budget than the first."""
        of_column = (max(self.evidence, ONE_ROUND) / ONE_ROUND) ** ROUNDS_POWER
        return min(of_column, MOST_ROUNDS) * len(self.cells.columns)

    def fit(self, structure: str) -> str:
        """Release everything, fit the model, and return the structure. Warn of entries that are not as declared."""
        exact = [float(count_rows(self.codes))]
        number, mechanism = self.release(RECORDS_SHARE, "number of records", exact, float(self.rows), _COUNTS)
        self.n_records = float(number[0])
        if structure == "auto":
            large = len(self.cells.columns) > MOST_COLUMNS_OF_ROUNDS
            structure = "independent" if self.evidence < FEWEST else "tree" if large else "rounds"
        counts, noise = self.columns(structure == "independent")
        total, by_column = (self.n_records, coordinate_variance(mechanism)), self.cells.by_column(counts)
        parts = [part for column, own in by_column for part in column.parts(own, total, noise**2)]
        warn_of_mismatch(parts, labels=None, gaussian=is_gaussian(mechanism))
        if structure == "tree":
            self.tree()
        if structure == "rounds":
            self.run()
        if self.reserve.share > _LEAST_REST:
            # No table could be released.
            again, noise_again, mechanism = self.released_columns(self.reserve.share, "counts of columns again")
            mean = (counts / noise**2 + again / noise_again**2) / (noise**-2 + noise_again**-2)
            self.add_columns(self.within_bounds(again), self.within_bounds(mean), noise_again, mechanism)
        self.model.fit(LAST_STEPS)
        self.model.forget()
        return structure

    def columns(self, alone: bool) -> tuple[Array, float]:
        """Release the counts of the cells of all columns, and merge cells. Return the counts and their noise."""
        whole = noise_in(self.reserve.sums(1.0, self.bound_of_columns, 1))
        typical = float(np.mean([min(len(column.names), _TYPICAL_CELLS) for column in self.cells.columns]))
        needed = 0.4 * typical * whole / (COLUMN_ERROR * max(self.n_records, 1.0))
        share = min(max(needed if self.reserve.pure else needed**2, COLUMNS_SHARE), MOST_COLUMNS_SHARE)
        counts, noise, mechanism = self.released_columns(self.reserve.share if alone else share, "counts of columns")
        by_column = self.within_bounds(counts)
        self.merge(by_column, noise)
        self.add_columns(by_column, by_column, noise, mechanism)
        self.model.fit(FIRST_STEPS)
        return counts, noise

    @property
    def bound_of_columns(self) -> float:
        return columns_sensitivity(len(self.cells.columns), self.reserve.pure, self.rows)

    def released_columns(self, share: float, label: str) -> tuple[Array, float, Mechanism]:
        exact = folded(self.cells.counts, [self.codes])
        counts, mechanism = self.release(share, label, exact, self.bound_of_columns, _COUNTS)
        return counts, noise_in(mechanism), mechanism

    def within_bounds(self, counts: Array) -> list[Array]:
        """Return the counts of each column, with numbers beyond the bounds in the outermost bins."""
        return [np.bincount(column.within, own) for column, own in self.cells.by_column(counts)]

    def merge(self, counts: list[Array], noise: float) -> None:
        """Merge cells by their released counts, and begin the model."""
        columns, total = self.cells.columns, total_of(counts, [1.0] * len(counts))
        # The noise of a typical table determines how many groups are worth it.
        of_table = self.noise_of((1 - CHOICE_SHARE) * (1 - COLUMNS_SHARE) / self.n_rounds)
        wanted = min(max(math.sqrt(GROUPS * total / of_table), FEWEST_GROUPS), MOST_GROUPS)
        for column, own in zip(columns, counts, strict=True):
            positive, least = nearest_counts(own, total), max(3 * noise, of_table * wanted)
            most = wanted + min(len(own) - column.n_ordered, MOST_CATEGORIES)
            while (groups := merged_cells(positive, column.n_ordered, least, noise)).max() + 1 > most:
                least *= 1.25
            column.groups, column.noise = groups, noise
        self.model = Model(tuple(int(column.groups.max()) + 1 for column in columns))
        to_groups = [column.groups[column.within] for column in columns]
        self.groups_of_records = rowwise(partial(_grouped, to_groups), self.codes)
        if isinstance(self.groups_of_records, PartedArray):
            (self.groups_of_records,) = kept([self.groups_of_records])

    def add_columns(self, counts: list[Array], best: list[Array], noise: float, mechanism: Mechanism) -> None:
        """Add released counts of columns to the model. The shares of cells in their groups are those of `best`."""
        total = total_of(best, [1.0] * len(best))
        for j, (column, own, likely) in enumerate(zip(self.cells.columns, counts, best, strict=True)):
            groups = column.groups
            terms, merged = np.bincount(groups).astype(np.float64), np.bincount(groups, own)
            # One number is close enough to the precisions of the groups.
            self.model.add((j,), merged, noise * math.sqrt(len(groups) / len(merged)))
            self.tables.append(ReleasedTable((j,), merged, terms, mechanism))
            positive = nearest_counts(likely, total)
            sums = np.bincount(groups, positive)[groups]
            column.shares = np.where(sums > 0, positive / np.maximum(sums, 1e-300), 1 / terms[groups])

    def candidates(self) -> list[Clique]:
        """Return pairs of columns, and triples with the target."""
        several = [j for j, size in enumerate(self.model.sizes) if size > 1]
        tables: list[Clique] = list(combinations(several, 2))
        target = self.cells.target
        if target in several:
            tables += [tuple(sorted((*pair, target))) for pair in tables if target not in pair]
        return [table for table in tables if self.size_of(table) <= _MOST_IN_TABLE]

    def score(self, exact: Array, modelled: Array, noise: float) -> float:
        """Return the distance of counts from the model, less that of noise, as an exact multiple of a power of two."""
        # The sums of both counts are below 2**41.
        distance = float(np.abs(exact - np.rint(modelled / _STEP) * _STEP).sum())
        of_noise = round(min(_MEAN_SIZE * noise * len(exact), MOST_RECORDS) / _STEP) * _STEP
        return distance - of_noise

    def tree(self) -> None:
        """Release a tree of pairs, or with a target of triples with the target, that independent columns fit worst."""
        several = [j for j, size in enumerate(self.model.sizes) if size > 1]
        # A column and the target are a pair.
        with_target = (self.cells.target,) if self.cells.target in several and len(several) > 2 else ()
        nodes = [j for j in several if j not in with_target]
        n_edges = max(len(nodes) - 1, 1)
        most = min(_MOST_IN_TABLE, self.most_cells // n_edges)
        edges = [edge for edge in combinations(nodes, 2) if self.size_of(edge + with_target) <= most]
        tables: list[Clique] = [tuple(sorted(edge + with_target)) for edge in edges]
        noise = self.noise_of((1 - TREE_CHOICES) * self.reserve.share / n_edges)
        of_tables = zip(tables, self.exact(tables), strict=True)
        scores = np.array([self.score(exact, self.model.product(table), noise) for table, exact in of_tables])
        component = {j: j for j in nodes}
        for left in range(n_edges, 0, -1):
            able = [i for i, (a, b) in enumerate(edges) if component[a] != component[b]]
            if not able:
                break
            at = self.chosen(self.reserve.share / left, TREE_CHOICES, [tables[i] for i in able], scores[able])
            a, b = (component[j] for j in edges[able[at]])
            component = {j: b if of_node == a else of_node for j, of_node in component.items()}

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
            known |= zip(new, self.exact(new), strict=True)
            rows, unit = self.model.sample(MODEL_ROWS, rng), self.model.total / MODEL_ROWS
            modelled = [table_counts(rows, table, self.model.sizes) * unit for table in able]
            scores = [self.score(known[t], counts, noise) for t, counts in zip(able, modelled, strict=True)]
            at = self.chosen(each, CHOICE_SHARE, able, np.array(scores))
            self.model.fit(STEPS)
            change, noise = self.model.table(able[at]).ravel() - modelled[at], noise_in(self.tables[-1].mechanism)
            # The table has shown less than its noise.
            if np.abs(change).sum() <= _MEAN_SIZE * noise * len(change):
                each *= _LARGER

    def able(self, candidates: list[Clique], limit: float, rng: Any) -> list[Clique]:
        """Return candidates for which the model has enough cells, at most `MOST_CANDIDATES`."""
        if len(candidates) > MOST_CANDIDATES:
            drawn = np.sort(rng.choice(len(candidates), MOST_CANDIDATES, replace=False))
            candidates = [candidates[i] for i in drawn.tolist()]
        before, home = list(self.model.counts), self.model.tree.home
        return [t for t in candidates if home(t) >= 0 or n_cells([*before, t], self.model.sizes) <= limit]


def _grouped(maps: Sequence[NDArray], codes: NDArray) -> NDArray:
    """Return the groups of the cells of records."""
    dtype = np.min_scalar_type(max(int(groups.max(initial=0)) for groups in maps))
    return np.stack([groups.astype(dtype)[cells] for groups, cells in zip(maps, codes.T, strict=True)]).T


def _counts_of_tables(tables: Sequence[Clique], sizes: Sequence[int], rows: NDArray) -> NDArray[np.intp]:
    return np.concatenate([table_counts(rows, table, sizes) for table in tables])
