"""Compute the model of naive Bayes from noisy sums by class. All of it is post-processing."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..checks.params import Checked
from ..mechanisms import Mechanism, is_gaussian
from ..release.class_sums import noise_scale
from ..release.mismatch import NOT_RELEASED, declared_parts, label_parts, warn_of_mismatch
from ..solvers.tables import exponent, table_information, table_probabilities
from ._sums import Layout

Array = NDArray[np.float64]

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
