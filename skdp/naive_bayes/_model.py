r"""The release of naive Bayes, sums by class in one joint release, and the model that follows from it.

Each class has the counts of all tables, and for each Gaussian column the sums of :math:`v` and of :math:`a(v^2 - 1/2)`,
for values :math:`v` scaled into [-1, 1]. If there is no table, it also has the number of records. The values of each
record are rounded to a lattice before they are added, so that sums are exact.

A sparse row is a row of zeros with some entries replaced. Therefore the sums of a class are the number of its records
times the sums of a row of zeros, plus differences for the stored entries. All sums are integers in units of the
lattice, as for dense rows, so that both give the same numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ..checks.params import Checked
from ..mechanisms import Mechanism, is_gaussian
from ..release.counts import (
    NOT_RELEASED,
    class_sums_mechanism,
    declared_parts,
    in_real_units,
    label_parts,
    largest_value,
    moment_bits,
    noise_scale,
    record_moments,
    warn_of_mismatch,
)
from ..release.session import PrivacyGuarantee, Release, Theorem
from ..release.units import ONE_RECORD, Unit
from ..schema.columns import Columns, Encoder, SparseEncoder
from ..schema.declared import scaled
from ..sensitivity import by_entry, sum_over_rows, with_data
from ..solvers.tables import exponent, table_information, table_probabilities

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


#: The mean and the variance of a class are shrunk to those of all records by the variance of their noise over these
#: numbers, which are squares of typical differences between classes, in units of half the bounds' width.
SPREAD_OF_MEANS = 0.05
SPREAD_OF_VARIANCES = 0.005

#: A class keeps its variance if that differs from the variance of all records by these multiples of the noise and of
#: the largest sampling error.
APART, SAMPLING = 1.0, 2.0

# The least variance of a Gaussian, in the same units.
_LEAST_VARIANCE = 1e-12

_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class Model:
    """The model, with numeric columns in scaled units. Tables are in the order of the columns."""

    counts: Array
    log_probabilities: list[Array]
    means: Array
    variances: Array
    exponent: float


def estimate(sums: Array, layout: Layout, noise: float, weight: float, parameters: Checked) -> Model:
    """Return the model for released sums, of shape (n_classes, width)."""
    # `noise` is the standard deviation of the noise in each number, and `weight` the weight of the second moments.
    counts = class_counts(sums, layout, noise)
    sizes = layout.columns.table_sizes
    starts = np.cumsum(sizes) - sizes
    ordered = np.arange(len(sizes)) >= len(layout.columns.categorical)
    tables: list[Array] = [np.empty(0)] * len(sizes)
    information = []
    # Tables of the same shape are treated at once.
    for size in np.unique(sizes):
        for bins in (False, True):
            group = np.flatnonzero((sizes == size) & (ordered == bins))
            if len(group) == 0:
                continue
            cells = sums[:, starts[group][:, None] + np.arange(size)].swapaxes(0, 1)
            probabilities = table_probabilities(cells, counts, noise, bins, parameters.alpha)
            information.append(table_information(probabilities, counts))
            for table, value in zip(group, np.log(probabilities), strict=True):
                tables[table] = value
    n_counts = layout.width - 2 * layout.n_moments
    first, second = np.split(sums[:, n_counts:], 2, axis=1)
    means, variances = moments(first, second / weight, counts, noise, noise / weight, parameters.var_smoothing)
    information.append(moment_information(means, variances, counts))
    return Model(counts, tables, means, variances, exponent(np.concatenate(information), parameters.dependence))


def class_counts(sums: Array, layout: Layout, noise: float) -> Array:
    """Return the numbers of records by class. Numbers below the noise are raised to it."""
    counts, deviation = class_totals(sums, layout, noise)
    return np.maximum(counts, max(1.0, deviation))


def class_totals(sums: Array, layout: Layout, noise: float) -> tuple[Array, float]:
    """Return the noisy number of records of each class, and the standard deviation of the noise in each."""
    if layout.counts_records:
        return sums[:, 0], noise
    sizes = layout.columns.table_sizes
    # Each table counts every record once. Its row sum has as many terms of noise as cells, so that the best linear
    # combination has weights of one over the number of cells.
    rows = np.add.reduceat(sums[:, : layout.n_table_cells], np.cumsum(sizes) - sizes, axis=1)
    weights = 1 / sizes
    return rows @ weights / weights.sum(), noise / math.sqrt(weights.sum())


def warn_of_declarations(
    sums: Array, layout: Layout, mechanism: Mechanism, classes: NDArray, names: NDArray | None
) -> None:
    """Warn of declared labels and categories that hardly occur, from released sums."""
    noise = noise_scale(mechanism)
    counts, deviation = class_totals(sums, layout, noise)
    parts = label_parts(classes, counts, deviation)
    n_classes, sizes = len(classes), layout.columns.table_sizes
    total, precision = (float(counts.sum()), deviation**2 * n_classes), float((1 / sizes).sum())
    columns, ordered = layout.columns, layout.columns.ordered
    for j, start, size in zip(columns.tables.tolist(), np.cumsum(sizes) - sizes, sizes, strict=True):
        if not ordered[j] or j in columns.declared:
            # The last cell holds unknown categories.
            name, cells = j if names is None else str(names[j]), sums[:, start : start + size].sum(axis=0)
            n_declared = columns.declared.get(j, size - 1)
            own, variance = total, noise**2 * n_classes
            if not layout.counts_records:
                # The total of the other tables is independent of this one.
                rest = precision - 1 / size
                known = (precision * total[0] - cells.sum() / size) / max(rest, 1e-9)
                own = (float(known), variance / rest) if len(sizes) > 1 else NOT_RELEASED
            parts += declared_parts(name, cells, n_declared, own, variance)
    warn_of_mismatch(parts, labels=total, gaussian=is_gaussian(mechanism))


def moments(
    first: Array, second: Array, counts: Array, noise: float, second_noise: float, smoothing: float
) -> tuple[Array, Array]:
    """Return means and variances by class, shrunk to those of all records where a class has few records."""
    n = counts[:, None]
    share = n / counts.sum()
    mean = np.clip(first / n, -1.0, 1.0)
    pooled = (share * mean).sum(axis=0)
    weight = SPREAD_OF_MEANS / (SPREAD_OF_MEANS + (noise / n) ** 2)
    mean = weight * mean + (1 - weight) * pooled
    variance = np.clip(second / n + 0.5 - mean**2, _LEAST_VARIANCE, 1.0)
    error = second_noise / n
    weight = SPREAD_OF_VARIANCES / (SPREAD_OF_VARIANCES + error**2)
    # A difference of variances changes the scores of all rows near the mean. Noise and sampling must not explain it.
    # The fourth moment of values in [-1, 1] is at most their second moment, so that heavy tails are covered.
    by_chance = np.hypot(APART * np.hypot(error, 2 * mean * noise / n), SAMPLING * np.sqrt((variance + mean**2) / n))
    difference = np.abs(variance - (share * variance).sum(axis=0))
    weight = weight * (1 - (by_chance / np.maximum(difference, by_chance + _TINY)) ** 2)
    # A variance that is too small harms more than one that is too large. Therefore the noise is added.
    variance += np.minimum(error, 1.0)
    pooled = (share * variance).sum(axis=0)
    variance = weight * variance + (1 - weight) * pooled
    return mean, variance + smoothing


def moment_information(means: Array, variances: Array, counts: Array) -> Array:
    """Return the mutual information of Gaussian columns and the class, as if all records together were Gaussian."""
    share = counts / counts.sum()
    whole = share @ (variances + (means - share @ means) ** 2)
    return np.maximum(np.log(whole) - share @ np.log(variances), 0.0) / 2
