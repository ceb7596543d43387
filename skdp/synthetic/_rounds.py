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

from ..mechanisms import Mechanism, NoiseSource, coordinate_variance, within_reach
from ..parts.arrays import PartedArray, folded, kept, rowwise
from ..release.reserve import Reserve
from ..release.session import Release, Theorem
from ..sensitivity import class_sums_l1, class_sums_l2, group_sensitivity
from ._cells import TableCells, grouped, merged_cells
from ._graph import Array, Clique, Model, n_cells, nearest_counts, table_counts

#: Share of the number of records in the budget.
RECORDS_SHARE = 0.01

#: Least and largest share of the counts of columns, and the error of a column's distribution that they should have.
COLUMNS_SHARE, MOST_COLUMNS_SHARE, COLUMN_ERROR = 0.1, 0.5, 0.02

# Numbers of cells of a column beyond this one have few records.
_TYPICAL_CELLS = 16

#: Number of groups of a column: the square root of this number times the records in units of the noise of a table.
GROUPS, FEWEST_GROUPS, MOST_GROUPS = 0.12, 3, 32

#: Categories may have more groups.
MOST_CATEGORIES = 64

#: x
SHRINK, OTHERS_WEIGHT, FIRST = 0.0, 1.0, 0.0

#: Share of a choice in the budget of its round.
CHOICE_SHARE = 0.1

#: Number of rounds for each column, if no round has a larger part of the budget than the first.
ROUNDS = 2.0

# After a table that shows less than its noise, rounds have so many times the budget.
_LARGER = 4

#: Share of the choices in the budget of a tree.
TREE_CHOICES = 0.2

#: Rows of the model to which the counts of candidates are compared, and the largest number of candidates of a round.
MODEL_ROWS, MOST_CANDIDATES = 2**16, 512

#: Steps of the fit of the model after a round, and at the end.
STEPS, LAST_STEPS = 60, 600

# Smaller standard deviations of noise count as this one.
_LEAST_NOISE = 0.5

# Counts of the model are rounded to multiples of this number, so that scores are exact.
_STEP = 2.0**-10

# The mean absolute value of standard normal noise.
_MEAN_SIZE = math.sqrt(2 / math.pi)

THEOREM_OF_COUNTS = Theorem("Synthetic tables", 1)
_TABLES, _CHOICES = Theorem("Synthetic tables", 2), Theorem("Synthetic tables", 3)


def columns_sensitivity(n_columns: int, pure: bool, rows: int = 1) -> float:
    """Bound the change of the counts of all columns together, in L1 norm if `pure` and otherwise in L2 norm."""
    of_record = class_sums_l1(n_columns, 0, 1.0) if pure else class_sums_l2(n_columns, 0, 1.0)
    return group_sensitivity(of_record, rows)


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
    n_records: float  # Released.
    target: int  # Position of the target, or -1.
    rows: int  # Largest number of records of a group.
    most_cells: int
    source: NoiseSource = field(default_factory=lambda: NoiseSource(0))
    tables: list[ReleasedTable] = field(default_factory=list)
    maps: list[NDArray[np.intp]] = field(default_factory=list)  # Groups of the cells of each column.
    shares: list[Array] = field(default_factory=list)  # Shares of cells in their groups.
    sizes: tuple[int, ...] = ()  # Numbers of groups.
    groups_of_records: Any = None  # Private.
    model: Model = field(init=False)
    n_choices: int = 0

    # --- releases -----------------------------------------------------------------------------------------------------

    def release(
        self, share: float, label: str, values: Array, bound: float, theorem: Theorem
    ) -> tuple[Array, Mechanism]:
        """Release exact counts for a share of the budget."""
        mechanism = self.reserve.sums(share, bound, values.size)
        self.reserve.spend(share, [Release(label, mechanism, share, theorem)])
        return self.reserve.session.release(label, within_reach(mechanism, values)), mechanism

    def noise_of(self, share: float, size: int = 1) -> float:
        """Return the standard deviation of the noise of a table for a share of the budget."""
        mechanism = self.reserve.sums(share, float(self.rows), size)
        return max(math.sqrt(coordinate_variance(mechanism)), _LEAST_NOISE)

    def choose(self, share: float, scores: Array) -> int:
        """Choose the position of a large score. One record moves each of the exact scores by at most 1."""
        self.n_choices += 1
        label = f"choice {self.n_choices}"
        mechanism = self.reserve.choice(share, float(self.rows))
        self.reserve.spend(share, [Release(label, mechanism, share, _CHOICES)])
        return int(self.reserve.session.release(label, scores[None])[0])

    def measure(self, share: float, columns: Clique) -> tuple[Array, float]:
        """Release the counts of a table, and return them with the standard deviation of their noise."""
        label = f"table {len(self.tables) - len(self.table.columns) + 1}"
        counts, mechanism = self.release(share, label, self.exact([columns])[0], float(self.rows), _TABLES)
        self.tables.append(ReleasedTable(columns, counts, np.ones(len(counts)), mechanism))
        return counts, max(math.sqrt(coordinate_variance(mechanism)), _LEAST_NOISE)

    def exact(self, tables: Sequence[Clique]) -> list[Array]:
        """Return the private counts of tables."""
        counts = folded(partial(_counts_of_tables, tables, self.sizes), [self.groups_of_records])
        ends = np.cumsum([math.prod(self.sizes[j] for j in table) for table in tables])
        return np.split(counts.astype(np.float64), ends[:-1])

    # --- columns ------------------------------------------------------------------------------------------------------

    def structure(self) -> str:
        """Return the structure that suits the released number of records and the budget."""
        return "rounds"

    def finish(self, structure: str) -> None:
        """Release tables, and fit the model."""
        if structure == "tree":
            self.tree(1.0)
        if structure == "rounds":
            self.run()
        self.model.fit(LAST_STEPS)
        self.model.forget()

    def columns(self, alone: bool) -> tuple[Array, float]:
        """Release the counts of the cells of all columns, and merge cells."""
        d, pure = len(self.table.columns), self.reserve.pure
        bound = columns_sensitivity(d, pure, self.rows)
        counts = folded(self.table.counts, [self.codes])
        whole = math.sqrt(coordinate_variance(self.reserve.sums(1.0, bound, 1)))
        typical = float(np.mean([min(column.size, _TYPICAL_CELLS) for column in self.table.columns]))
        needed = 0.4 * typical * whole / (COLUMN_ERROR * max(self.n_records, 1.0))
        share = min(max(needed if pure else needed**2, COLUMNS_SHARE), MOST_COLUMNS_SHARE)
        share = self.reserve.share if alone else share
        counts, mechanism = self.release(share, "counts of columns", counts, bound, THEOREM_OF_COUNTS)
        noise = math.sqrt(coordinate_variance(mechanism))
        self.merge(np.split(counts, self.table.splits), max(noise, _LEAST_NOISE), mechanism)
        return counts, noise

    def merge(self, counts: list[Array], noise: float, mechanism: Mechanism) -> None:
        """Merge cells by their released counts, and begin the model."""
        cells = self.table.columns
        counts = [
            np.bincount(column.within(np.arange(column.counted)), own)
            for column, own in zip(cells, counts, strict=True)
        ]
        precisions = np.array([1 / len(own) for own in counts])
        total = max(1.0, float(precisions @ [own.sum() for own in counts] / precisions.sum()))
        # The noise of a typical table, for as many groups as are worth it.
        share = (1 - CHOICE_SHARE) * (1 - COLUMNS_SHARE) / (ROUNDS * len(cells))
        of_table = self.noise_of(share)
        wanted = min(max(math.sqrt(GROUPS * total / of_table), FEWEST_GROUPS), MOST_GROUPS)
        sizes, merged = [], []
        for column, own in zip(cells, counts, strict=True):
            positive = nearest_counts(own, total)
            most = wanted + min(column.size - column.n_ordered, MOST_CATEGORIES)
            least = max(3 * noise, of_table * wanted)
            groups = merged_cells(positive, column.n_ordered, least, noise)
            while groups.max() + 1 > most:
                least *= 1.25
                groups = merged_cells(positive, column.n_ordered, least, noise)
            self.maps.append(groups)
            self.shares.append(_shares_within(positive, groups))
            sizes.append(int(groups.max()) + 1)
            merged.append(np.bincount(groups, own))
        self.sizes = tuple(sizes)
        self.model = Model(self.sizes)
        for j, (own, groups) in enumerate(zip(merged, self.maps, strict=True)):
            terms = np.bincount(groups).astype(np.float64)
            # One number is close enough to the precisions of the groups.
            self.model.add((j,), own, noise * math.sqrt(len(groups) / len(own)))
            self.tables.append(ReleasedTable((j,), own, terms, mechanism))
        of_records = [
            groups[column.within(np.arange(column.counted))] for column, groups in zip(cells, self.maps, strict=True)
        ]
        self.groups_of_records = in_place(rowwise(partial(grouped, of_records), self.codes))
        self.model.fit(10)

    # --- tables -------------------------------------------------------------------------------------------------------

    def candidates(self) -> list[Clique]:
        """Return pairs of columns, and triples with the target."""
        several = [j for j, size in enumerate(self.sizes) if size > 1]
        pairs: list[Clique] = list(combinations(several, 2))
        if self.target not in several:
            return pairs
        others = [j for j in several if j != self.target]
        return pairs + [tuple(sorted((a, b, self.target))) for a, b in combinations(others, 2)]

    def tree(self, share: float) -> None:
        """Release a tree of pairs, or with a target of triples with the target, that independent columns fit worst."""
        several = [j for j, size in enumerate(self.sizes) if size > 1]
        with_target = self.target in several
        nodes = [j for j in several if j != self.target]
        n_edges = len(nodes) - 1
        if n_edges < 1:
            return
        edges = list(combinations(nodes, 2))
        tables = [tuple(sorted((*edge, self.target))) if with_target else edge for edge in edges]
        # The rest of the budget is for rounds.
        rest = (1 - share) * self.reserve.share
        spent = (self.reserve.share - rest) / n_edges
        noise = self.noise_of((1 - TREE_CHOICES) * spent)
        exact = self.exact(tables)
        of_columns = [self.model.probabilities[self.model.tree.home((j,))].ravel() for j in range(len(self.sizes))]
        scores = np.empty(len(tables))
        for i, table in enumerate(tables):
            product = np.ones(1)
            for j in table:
                product = np.multiply.outer(product, of_columns[j]).ravel()
            scores[i] = self.score(exact[i], self.model.total * product, noise)
        component = {j: j for j in nodes}
        for edge in range(n_edges):
            spent = (self.reserve.share - rest) / (n_edges - edge)
            able = [i for i, (a, b) in enumerate(edges) if component[a] != component[b]]
            chosen = able[self.choose(TREE_CHOICES * spent, scores[able])]
            a, b = (component[j] for j in edges[chosen])
            component = {j: b if own == a else own for j, own in component.items()}
            left = self.reserve.share - rest if edge == n_edges - 1 else (1 - TREE_CHOICES) * spent
            self.add(tables[chosen], self.product(tables[chosen], of_columns), *self.measure(left, tables[chosen]))

    def product(self, table, of_columns):
        product = np.ones(1)
        for j in table:
            product = np.multiply.outer(product, of_columns[j]).ravel()
        return self.model.total * product

    def score(self, exact: Array, modelled: Array, noise: float) -> float:
        """Return the L1 distance of counts from the model less that of noise, as an exact multiple of a power of two."""
        modelled = np.rint(np.minimum(modelled, 2.0**36) / _STEP) * _STEP
        return float(np.abs(exact - modelled).sum()) - round(_MEAN_SIZE * noise * len(exact) / _STEP) * _STEP

    def add(self, table: Clique, expected: Array, counts: Array, noise: float) -> None:
        shape = tuple(self.sizes[j] for j in table)
        if SHRINK:
            difference = counts - expected
            keep = max(0.0, 1 - SHRINK * len(counts) * noise**2 / max(float(difference @ difference), 1e-300))
            counts = expected + keep * difference
        self.model.add(table, counts.reshape(shape), noise)

    def run(self) -> None:
        """Choose, release and fit tables in rounds."""
        candidates, start = self.candidates(), self.reserve.share
        if not candidates or start <= 0:
            return
        rng = self.source.simulator("rows of the model")
        if FIRST and self.target >= 0 and self.sizes[self.target] > 1:
            pairs = [(j, self.target) for j, size in enumerate(self.sizes[:-1]) if size > 1]
            for pair in pairs:
                self.add(pair, self.model.table(pair).ravel(), *self.measure(FIRST * start / len(pairs), pair))
            self.model.fit(STEPS)
            start = self.reserve.share
        known: dict[Clique, Array] = {}
        each = start / (ROUNDS * len(self.sizes))
        while self.reserve.share > 1e-9:
            left = self.reserve.share
            each = left if left < 2 * each else each
            noise = self.noise_of((1 - CHOICE_SHARE) * each)
            limit = self.most_cells * (1 - (left - each) / start)
            able = self.able(candidates, limit, rng)
            if not able:
                break
            new = [table for table in able if table not in known]
            if new:
                known |= zip(new, self.exact(new), strict=True)
            rows, unit = self.model.sample(MODEL_ROWS, rng), self.model.total / MODEL_ROWS
            modelled = [table_counts(rows, table, self.sizes) * unit for table in able]
            scores = np.array(
                [
                    self.score(known[t], own, noise) * (1.0 if self.target in t else OTHERS_WEIGHT)
                    for t, own in zip(able, modelled, strict=True)
                ]
            )
            at = self.choose(CHOICE_SHARE * each, scores)
            share = self.reserve.share if each == left else (1 - CHOICE_SHARE) * each
            counts, noise = self.measure(share, able[at])
            self.add(able[at], modelled[at], counts, noise)
            self.model.fit(STEPS)
            home = self.model.tree.home(able[at])
            after = self.model.total * self.model.tree.summed(self.model.probabilities[home], home, able[at]).ravel()
            if np.abs(after - modelled[at]).sum() <= _MEAN_SIZE * noise * len(counts):
                each *= _LARGER

    def able(self, candidates: list[Clique], limit: float, rng: Any) -> list[Clique]:
        """Return candidates that the model has enough cells for, at most `MOST_CANDIDATES`."""
        if len(candidates) > MOST_CANDIDATES:
            picked = rng.choice(len(candidates), MOST_CANDIDATES, replace=False)
            candidates = [candidates[i] for i in np.sort(picked)]
        measured = list(self.model.counts)
        able = []
        for table in candidates:
            if self.model.tree.home(table) >= 0 or n_cells([*measured, table], self.sizes) <= limit:
                able.append(table)
        return able


def in_place(array: Any) -> Any:
    """Return an array that is computed once: parts are kept on their machines."""
    return kept([array])[0] if isinstance(array, PartedArray) else array


def _counts_of_tables(tables: Sequence[Clique], sizes: Sequence[int], rows: NDArray) -> NDArray[np.intp]:
    return np.concatenate([table_counts(rows, table, sizes) for table in tables])


def _shares_within(counts: Array, groups: NDArray[np.intp]) -> Array:
    """Return the share of each cell in the released counts of its group."""
    sums, sizes = np.bincount(groups, counts), np.bincount(groups)
    return np.where(sums[groups] > 0, counts / np.maximum(sums[groups], 1e-300), 1 / sizes[groups])
