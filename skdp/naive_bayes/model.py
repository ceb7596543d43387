"""From noisy sums by class to a model: post-processing of released numbers and public ones. No data are seen here."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ..release.mismatch import column_part, label_parts, warn_of_mismatch
from ._sums import Layout

Array = NDArray[np.float64]

#: Records without evidence that are added to a cell, as a multiple of the standard deviation of its noise.
PRIOR_RECORDS = 0.5

#: A class's mean is drawn to that of all by the variance of its noise over this one, and its variance likewise: squares
#: of how much classes commonly differ, in units of half the bounds' width.
SPREAD_OF_MEANS = 0.05
SPREAD_OF_VARIANCES = 0.005

#: A class's variance differs from that of all if the difference exceeds so many standard deviations of its noise.
APART = 1.0

# The least variance of a Gaussian, in the same units.
_LEAST_VARIANCE = 1e-12

_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class Options:
    """The checked public options of the estimate."""

    alpha: float
    var_smoothing: float
    dependence: float


@dataclass(frozen=True, eq=False)
class Model:
    """The model, with numeric columns in scaled units. Tables are in the order of the columns' tables."""

    counts: Array
    log_probabilities: list[Array]
    means: Array
    variances: Array
    exponent: float


def estimate(sums: Array, layout: Layout, noise: float, weight: float, options: Options) -> Model:
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
            probabilities = table_probabilities(cells, counts, noise, bins, options.alpha)
            information.append(table_information(probabilities, counts))
            for table, value in zip(group, np.log(probabilities), strict=True):
                tables[table] = value
    n_counts = layout.width - 2 * layout.n_moments
    first, second = np.split(sums[:, n_counts:], 2, axis=1)
    means, variances = moments(first, second / weight, counts, noise, noise / weight, options.var_smoothing)
    information.append(moment_information(means, variances, counts))
    return Model(counts, tables, means, variances, exponent(np.concatenate(information), options.dependence))


def class_counts(sums: Array, layout: Layout, noise: float) -> Array:
    """Return the numbers of records by class. Fewer records than the noise cannot be told from none."""
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


def warn_of_declarations(sums: Array, layout: Layout, noise: float, classes: NDArray, names: NDArray | None) -> None:
    """Warn of labels and categories that were declared and hardly occur, from released sums."""
    counts, deviation = class_totals(sums, layout, noise)
    parts = label_parts(classes, counts, deviation)
    n_classes, sizes = len(classes), layout.columns.table_sizes
    for column, start, size in zip(layout.columns.categorical, np.cumsum(sizes) - sizes, sizes, strict=False):
        # The last cell holds what is no category.
        known = float(sums[:, start : start + size - 1].sum())
        name = int(column) if names is None else str(names[column])
        parts.append(column_part(name, known, noise * math.sqrt(n_classes * (size - 1))))
    warn_of_mismatch(float(counts.sum()), deviation * math.sqrt(n_classes), parts, labels=True)


def table_probabilities(cells: Array, counts: Array, noise: float, bins: bool, alpha: float) -> Array:
    """Return probabilities of cells by class, for noisy counts of shape (n_tables, n_classes, n_cells)."""
    left = np.full((len(cells), 1, 1), noise)
    if bins and noise > 0:
        cells, left = smoothed(cells, counts, noise)
    if noise > 0:
        cells = towards_all(cells, counts, left)
    cells = onto_simplex(cells, counts)
    # The last cell of categories holds what is none of them.
    return shrunk(cells if bins else cells[..., :-1], counts, left, alpha)


def towards_all(cells: Array, counts: Array, noise: Array) -> Array:
    """Return rows that are shrunk towards the rows of all records, by the part of their deviation that is noise."""
    # This is the estimate of James and Stein (1961) with half its strength and no negative factor, by table and class.
    share = (counts / counts.sum())[:, None]
    whole = cells.sum(axis=1, keepdims=True)
    usual = share * onto_simplex(whole, counts.sum(keepdims=True))
    deviation = cells - usual
    energy = (deviation**2).sum(axis=-1, keepdims=True)
    variance = noise**2 * ((1 - share) ** 2 + (len(counts) - 1) * share**2)
    expected = cells.shape[-1] * variance / 2
    # Where both are 0, there is nothing to keep.
    kept = 1 - expected / np.maximum(np.maximum(energy, expected), _TINY)
    return usual + kept * deviation


def onto_simplex(cells: Array, totals: Array) -> Array:
    """Return the nearest rows, along the last axis, that are nowhere negative and have the given sums."""
    descending = -np.sort(-cells, axis=-1)
    excess = (np.cumsum(descending, axis=-1) - totals[:, None]) / np.arange(1, cells.shape[-1] + 1)
    last = np.maximum((descending > excess).sum(axis=-1, keepdims=True) - 1, 0)
    projected: Array = np.maximum(cells - np.take_along_axis(excess, last, axis=-1), 0.0)
    return projected


def smoothed(cells: Array, totals: Array, noise: float) -> tuple[Array, Array]:
    """Return histograms of numeric columns with less noise, and the noise that is left in a bin of each."""
    # The histograms are damped like splines, in the cosine basis, equally for all classes of a column. Stein's unbiased
    # estimate of the squared error chooses the damping, from the histograms and the noise alone (Stein 1981).
    n_classes, n_bins = cells.shape[1:]
    waves = fft.dct(cells, norm="ortho", axis=-1)
    roughness = np.arange(1, n_bins, dtype=np.float64) ** 4
    penalties = np.concatenate([[0.0], np.exp2(np.arange(-18.0, 5.0))])
    kept = 1 / (1 + penalties[:, None] * roughness)
    energy = (waves[..., 1:] ** 2).sum(axis=1)
    risk = energy @ ((1 - kept) ** 2).T + 2 * noise**2 * n_classes * kept.sum(axis=1)
    best = kept[risk.argmin(axis=1)]
    waves[..., 1:] *= best[:, None, :]
    waves[..., 0] = totals / math.sqrt(n_bins)
    left = noise * np.sqrt((best**2).sum(axis=1) / n_bins)
    return fft.idct(waves, norm="ortho", axis=-1), left[:, None, None]


def shrunk(cells: Array, counts: Array, noise: Array, alpha: float) -> Array:
    """Return probabilities of cells by class, shrunk towards those of all records where a cell has few records."""
    # Each cell gets `alpha` records of each class, and more in proportion to its noise, divided as the classes are.
    # They carry no evidence, and outweigh the noise.
    added = PRIOR_RECORDS * noise * (counts / counts.sum())[:, None]
    weights = cells + alpha + added
    table: Array = weights / weights.sum(axis=-1, keepdims=True)
    return table


def moments(
    first: Array, second: Array, counts: Array, noise: float, second_noise: float, smoothing: float
) -> tuple[Array, Array]:
    """Return means and variances by class, drawn to those of all records where a class has few."""
    n = counts[:, None]
    share = n / counts.sum()
    mean = np.clip(first / n, -1.0, 1.0)
    pooled = (share * mean).sum(axis=0)
    kept = SPREAD_OF_MEANS / (SPREAD_OF_MEANS + (noise / n) ** 2)
    mean = kept * mean + (1 - kept) * pooled
    variance = np.clip(second / n + 0.5 - mean**2, _LEAST_VARIANCE, 1.0)
    error = second_noise / n
    kept = SPREAD_OF_VARIANCES / (SPREAD_OF_VARIANCES + error**2)
    # A difference of variances changes the scores of all rows near the mean. One that noise explains is left out.
    noise_of_difference = APART * np.hypot(error, 2 * mean * noise / n)
    difference = np.abs(variance - (share * variance).sum(axis=0))
    kept = kept * (1 - (noise_of_difference / np.maximum(difference, noise_of_difference + _TINY)) ** 2)
    # Too small a variance harms more than one too large: the noise's deviation is added.
    variance += np.minimum(error, 1.0)
    pooled = (share * variance).sum(axis=0)
    variance = kept * variance + (1 - kept) * pooled
    return mean, variance + smoothing


def table_information(tables: Array, counts: Array) -> Array:
    """Return the mutual information of each table's cell and the class."""
    share = (counts / counts.sum())[:, None]
    whole = (share * tables).sum(axis=1, keepdims=True)
    information: Array = (share * tables * np.log(tables / whole)).sum(axis=(1, 2))
    return information


def moment_information(means: Array, variances: Array, counts: Array) -> Array:
    """Return that of Gaussian columns and the class, if all records together were Gaussian, too."""
    share = counts / counts.sum()
    whole = share @ (variances + (means - share @ means) ** 2)
    information: Array = np.maximum(np.log(whole) - share @ np.log(variances), 0.0) / 2
    return information


def exponent(information: Array, dependence: float) -> float:
    r"""Return the power to which the features' joint evidence is raised.

    Let m features have log-likelihood ratios of the same law, any two of which have correlation :math:`\rho` within a
    class. Their sum has m times the mean of one, and :math:`m(1 + \rho(m - 1))` times the variance. For Gaussian
    ratios, the best rule is :math:`1/(1 + \rho(m-1))` times the sum. For m stands the number of features that carry
    the information: :math:`(\sum_j I_j)^2/\sum_j I_j^2`.
    """
    total = float(information.sum())
    if not total > 0:
        return 1.0
    carriers = total**2 / float(information @ information)
    return 1 / (1 + dependence * max(carriers - 1, 0.0))
