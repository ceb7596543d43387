"""A graphical model of a table with merged cells: its junction tree, its fit to noisy counts, and synthetic rows.

Everything here is computed from released counts and public numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..mechanisms import NoiseSource

Array = NDArray[Any]

#: Positions of columns, in increasing order.
Clique = tuple[int, ...]

# The loss must decrease by this part of the decrease of its linear approximation.
_DESCENT = 0.5

# Factors of the step size after a step and after a trial that failed, the largest number of trials, and the part of the
# loss by which each step must decrease it.
_LONGER, _SHORTER, _TRIALS, _LEAST_GAIN = 1.5, 0.5, 30, 1e-5

# Number of rows for tables of columns that are in no clique together.
_ROWS_OF_TABLES = 2**18

#: Numbers of records up to this one are allowed, so that arithmetic cannot overflow.
MOST_RECORDS = 2.0**40


def cliques_of(tables: Iterable[Clique], sizes: Sequence[int]) -> list[frozenset[int]]:
    """Return the maximal cliques of a chordal graph in which the columns of each table are connected."""
    # The column whose elimination makes the clique with the fewest cells is eliminated first.
    n, log_sizes = len(sizes), np.log(np.asarray(sizes, dtype=np.float64))
    near, waiting = np.eye(n, dtype=bool), np.ones(n, dtype=bool)
    for table in tables:
        near[np.ix_(table, table)] = True
    found: list[frozenset[int]] = []
    for _ in range(n):
        cells = np.where(waiting, near @ log_sizes, np.inf)
        column = int(np.argmin(np.round(cells, 9)))
        members = np.flatnonzero(near[column])
        near[np.ix_(members, members)] = True
        near[:, column] = near[column] = waiting[column] = False
        clique = frozenset(members.tolist())
        if not any(clique <= other for other in found):
            found.append(clique)
    return found


def n_cells(tables: Iterable[Clique], sizes: Sequence[int]) -> int:
    """Return the number of cells of the model of these tables."""
    return sum(math.prod(sizes[j] for j in clique) for clique in cliques_of(tables, sizes))


@dataclass(frozen=True, eq=False)
class JunctionTree:
    """Cliques in an order in which each comes after its parent, with the columns of the separator first."""

    sizes: tuple[int, ...]
    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]  # The first clique has the parent -1.
    separators: tuple[int, ...]  # Number of columns that a clique shares with its parent.

    @classmethod
    def of(cls, tables: Iterable[Clique], sizes: Sequence[int]) -> JunctionTree:
        waiting = sorted(cliques_of(tables, sizes), key=sorted)
        done: list[frozenset[int]] = []
        cliques, parents, separators = [], [], []
        # Among the edges to a clique that is done, the one with the largest separator is next.
        best = [(-1.0, -1)] * len(waiting)
        while waiting:
            at = max(range(len(waiting)), key=lambda i: (best[i][0], -i))
            clique, (_, parent) = waiting.pop(at), best.pop(at)
            shared = clique & done[parent] if done else frozenset[int]()
            parents.append(parent)
            separators.append(len(shared))
            cliques.append((*sorted(shared), *sorted(clique - shared)))
            done.append(clique)
            best = [
                max(own, (_log_cells(clique & other, sizes), len(done) - 1))
                for own, other in zip(best, waiting, strict=True)
            ]
        return cls(tuple(sizes), tuple(cliques), tuple(parents), tuple(separators))

    def shape(self, clique: Clique) -> tuple[int, ...]:
        return tuple(self.sizes[j] for j in clique)

    def home(self, table: Clique) -> int:
        """Return the position of the smallest clique that has all columns of a table, or -1."""
        wanted = set(table)
        having = [k for k, clique in enumerate(self.cliques) if wanted <= set(clique)]
        return min(having, key=lambda k: math.prod(self.shape(self.cliques[k])), default=-1)

    def spread(self, values: Array, table: Clique, k: int) -> Array:
        """Return an array over a table with the axes of a clique, of length 1 for other columns."""
        clique = self.cliques[k]
        ordered = values.transpose(np.argsort([clique.index(j) for j in table]))
        return ordered.reshape([self.sizes[j] if j in table else 1 for j in clique])

    def calibrated(self, logits: list[Array]) -> tuple[list[Array], list[Array]]:
        """Return the probabilities of the cells of cliques, and those given the separator. Overwrite `logits`."""
        conditionals = [np.empty(0)] * len(logits)
        for k in range(len(logits) - 1, -1, -1):
            shape = self.shape(self.cliques[k])[: self.separators[k]]
            rows: Array = logits[k].reshape(math.prod(shape), -1)
            largest = rows.max(axis=1, keepdims=True)
            rows = np.exp(rows - largest)
            sums = rows.sum(axis=1, keepdims=True)
            conditionals[k] = rows / sums
            if shape:
                message = (largest + np.log(sums)).reshape(shape)
                parent = self.parents[k]
                logits[parent] += self.spread(message, self.cliques[k][: len(shape)], parent)
        probabilities: list[Array] = []
        for k, rows in enumerate(conditionals):
            shared = self.cliques[k][: self.separators[k]]
            if shared:
                parent = self.parents[k]
                above = summed(probabilities[parent], self.cliques[parent], shared).reshape(-1, 1)
                rows = rows * above
            probabilities.append(rows.reshape(self.shape(self.cliques[k])))
        return probabilities, conditionals


def summed(values: Array, columns: Clique, wanted: Clique) -> Array:
    """Return the sums of an array over some columns in the cells of some of them, in their order."""
    sums: Array = values.sum(axis=tuple(axis for axis, j in enumerate(columns) if j not in wanted))
    left = [j for j in columns if j in wanted]
    return sums.transpose([left.index(j) for j in wanted])


def _log_cells(columns: frozenset[int], sizes: Sequence[int]) -> float:
    return sum(math.log(sizes[j]) + 1 for j in columns)


@dataclass(eq=False)
class Model:
    """The distribution of largest entropy that fits noisy counts of tables in least squares, by mirror descent."""

    sizes: tuple[int, ...]
    # By columns: counts, and the precision of each of them.
    counts: dict[Clique, Array] = field(default_factory=dict)
    precisions: dict[Clique, float] = field(default_factory=dict)
    total: float = 1.0
    tree: JunctionTree = field(init=False)
    probabilities: list[Array] = field(init=False)
    conditionals: list[Array] = field(init=False)
    _logits: dict[Clique, Array] = field(default_factory=dict)
    _step: float = 0.0

    def add(self, table: Clique, counts: Array, noise: float) -> None:
        """Add counts with noise of this standard deviation, which are averaged with earlier counts of the table."""
        precision, before = noise**-2, self.precisions.get(table, 0.0)
        counts = counts.reshape([self.sizes[j] for j in table])
        mean = (self.counts.get(table, 0.0) * before + counts * precision) / (before + precision)
        self.counts[table], self.precisions[table] = mean, before + precision
        self._logits.setdefault(table, np.zeros(counts.shape))

    def fit(self, n_steps: int) -> None:
        """Take at most so many steps of mirror descent from the present model."""
        tables = list(self.counts)
        tree = self.tree = JunctionTree.of(tables, self.sizes)
        homes = {table: tree.home(table) for table in tables}
        self.total = n = total_of([self.counts[t] for t in tables], [self.precisions[t] for t in tables])

        def evaluated(logits: dict[Clique, Array]) -> tuple[float, dict[Clique, Array], list[Array], list[Array]]:
            of_cliques = [np.zeros(tree.shape(clique)) for clique in tree.cliques]
            for table, values in logits.items():
                of_cliques[homes[table]] += tree.spread(values, table, homes[table])
            probabilities, conditionals = tree.calibrated(of_cliques)
            fitted = {t: summed(probabilities[homes[t]], tree.cliques[homes[t]], t) for t in tables}
            residuals = {t: n * fitted[t] - self.counts[t] for t in tables}
            loss = sum(0.5 * self.precisions[t] * float(np.vdot(r, r)) for t, r in residuals.items())
            return loss, residuals, probabilities, conditionals

        state = evaluated(self._logits)
        step = self._step or 2.0 / (n * n * max(self.precisions.values()))
        for _ in range(n_steps):
            gradients = {t: n * self.precisions[t] * residuals for t, residuals in state[1].items()}
            logits, trial = self._logits, state
            for _ in range(_TRIALS):
                logits = {t: self._logits[t] - step * gradient for t, gradient in gradients.items()}
                trial = evaluated(logits)
                linear = sum(float(np.vdot(gradients[t], state[1][t] - trial[1][t])) / n for t in tables)
                if state[0] - trial[0] >= _DESCENT * linear:
                    break
                step *= _SHORTER
            gain = state[0] - trial[0]
            if not gain >= 0:
                break
            self._logits, state = logits, trial
            step *= _LONGER
            if gain < _LEAST_GAIN * state[0]:
                break
        self._step, (_, _, self.probabilities, self.conditionals) = step / 4, state

    def forget(self) -> None:
        """Remove everything that only further fits need."""
        self.counts, self.precisions, self._logits = {}, {}, {}

    def sample(self, n: int, rng: Any) -> NDArray[np.intp]:
        """Draw rows, of shape (n, n_columns).

        The counts in a clique are nearly exact: rows with the same cells of the separator are in random order, and
        get evenly spaced quantiles of the distribution of the other columns.
        """
        tree, rows = self.tree, np.zeros((n, len(self.sizes)), dtype=np.intp)
        for clique, n_shared, conditional in zip(tree.cliques, tree.separators, self.conditionals, strict=True):
            states, others = cells_of_rows(rows, clique[:n_shared], self.sizes), clique[n_shared:]
            order = np.lexsort((rng.random(n), states))
            states = states[order]
            first = np.searchsorted(states, np.arange(len(conditional) + 1))
            offsets = rng.random(len(conditional))
            quantiles = (np.arange(n) - first[states] + offsets[states]) / np.diff(first)[states]
            cumulative = np.cumsum(conditional, axis=1)
            cumulative /= cumulative[:, -1:]
            ends = (cumulative + np.arange(len(conditional))[:, None]).ravel()
            cells = np.searchsorted(ends, states + quantiles, side="right") - states * conditional.shape[1]
            cells = np.clip(cells, 0, conditional.shape[1] - 1)
            rows[order[:, None], others] = np.stack(np.unravel_index(cells, tree.shape(others)), axis=1)
        return rows

    def log_probabilities(self, rows: NDArray) -> Array:
        """Return the logarithm of the probability of each row, with one record spread evenly over each clique."""
        out, weight = np.zeros(len(rows)), 1 / (1 + self.total)
        for clique, conditional in zip(self.tree.cliques, self.conditionals, strict=True):
            cells = cells_of_rows(rows, clique, self.sizes)
            out += np.log((1 - weight) * conditional.ravel()[cells] + weight / conditional.shape[1])
        return out

    def product(self, columns: Clique) -> Array:
        """Return the expected number of records in the cells of columns, as a vector, if they were independent."""
        out = np.array(self.total)
        for j in columns:
            out = np.multiply.outer(out, self.table((j,)) / self.total)
        return out.ravel()

    def table(self, columns: Clique) -> Array:
        """Return the expected number of records in the cells of some columns.

        If no clique has all of them, this is the number in many synthetic rows, scaled.
        """
        home = self.tree.home(columns)
        if home >= 0:
            return self.total * summed(self.probabilities[home], self.tree.cliques[home], columns)
        rows = self.sample(_ROWS_OF_TABLES, NoiseSource(0).simulator("rows of tables"))
        counts = table_counts(rows, columns, self.sizes) * (self.total / _ROWS_OF_TABLES)
        return counts.reshape(self.tree.shape(columns))


def cells_of_rows(rows: NDArray, table: Clique, sizes: Sequence[int]) -> NDArray[np.intp]:
    """Return the cell of each row in a table, as a position in a vector."""
    cells = np.zeros(len(rows), dtype=np.intp)
    for j in table:
        cells *= sizes[j]
        cells += rows[:, j]
    return cells


def table_counts(rows: NDArray, table: Clique, sizes: Sequence[int]) -> NDArray[np.intp]:
    """Return the number of rows in each cell of a table, as a vector."""
    return np.bincount(cells_of_rows(rows, table, sizes), minlength=math.prod(sizes[j] for j in table))


def total_of(tables: Sequence[Array], precisions: Sequence[float]) -> float:
    """Return the number of records by noisy counts of tables, of which the sum of each is an estimate."""
    weights = np.array([precision / counts.size for counts, precision in zip(tables, precisions, strict=True)])
    return min(max(1.0, float(weights @ [counts.sum() for counts in tables] / weights.sum())), MOST_RECORDS)


def nearest_counts(counts: Array, total: float) -> Array:
    """Return the nearest non-negative vector with this sum."""
    ordered = np.sort(counts)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(counts) + 1)
    return np.maximum(counts - excess[np.flatnonzero(ordered > excess)[-1]], 0.0)
