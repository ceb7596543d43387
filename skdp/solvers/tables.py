"""Probabilities from noisy tables of a class and a cell. All of this is post-processing."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import fft

Array = NDArray[np.float64]

#: Records without evidence that are added to a cell, as a multiple of the standard deviation of its noise.
PRIOR_RECORDS = 0.5

_TINY = float(np.finfo(float).tiny)


def table_probabilities(cells: Array, counts: Array, noise: float, bins: bool, alpha: float) -> Array:
    """Return probabilities of cells by class, for noisy counts of shape (n_tables, n_classes, n_cells)."""
    left = np.full((len(cells), 1, 1), noise)
    if bins and noise > 0:
        cells, left = smoothed(cells, counts, noise)
    if noise > 0:
        cells = towards_all(cells, counts, left)
    cells = onto_simplex(cells, counts)
    # The last cell holds unknown categories.
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
    # If both are 0, nothing is kept.
    factor = 1 - expected / np.maximum(np.maximum(energy, expected), _TINY)
    return usual + factor * deviation


def onto_simplex(cells: Array, totals: Array) -> Array:
    """Return the nearest rows, along the last axis, that are non-negative and have the given sums."""
    descending = -np.sort(-cells, axis=-1)
    excess = (np.cumsum(descending, axis=-1) - totals[:, None]) / np.arange(1, cells.shape[-1] + 1)
    last = np.maximum((descending > excess).sum(axis=-1, keepdims=True) - 1, 0)
    return np.maximum(cells - np.take_along_axis(excess, last, axis=-1), 0.0)


def smoothed(cells: Array, totals: Array, noise: float) -> tuple[Array, Array]:
    """Return histograms of numeric columns with less noise, and the remaining noise in a bin of each."""
    # The histograms are damped like splines, in the cosine basis, equally for all classes of a column. Stein's unbiased
    # estimate of the squared error chooses the damping, from the histograms and the noise alone (Stein 1981).
    n_classes, n_bins = cells.shape[1:]
    waves = fft.dct(cells, norm="ortho", axis=-1)
    roughness = np.arange(1, n_bins, dtype=np.float64) ** 4
    penalties = np.concatenate([[0.0], np.exp2(np.arange(-18.0, 5.0))])
    factors = 1 / (1 + penalties[:, None] * roughness)
    energy = (waves[..., 1:] ** 2).sum(axis=1)
    risk = energy @ ((1 - factors) ** 2).T + 2 * noise**2 * n_classes * factors.sum(axis=1)
    best = factors[risk.argmin(axis=1)]
    waves[..., 1:] *= best[:, None, :]
    waves[..., 0] = totals / math.sqrt(n_bins)
    left = noise * np.sqrt((best**2).sum(axis=1) / n_bins)
    return fft.idct(waves, norm="ortho", axis=-1), left[:, None, None]


def shrunk(cells: Array, counts: Array, noise: Array, alpha: float) -> Array:
    """Return probabilities of cells by class, shrunk towards those of all records if a cell has few records."""
    # Each cell gets `alpha` records of each class, and more in proportion to its noise, divided as the classes are.
    # They carry no evidence, and outweigh the noise.
    added = PRIOR_RECORDS * noise * (counts / counts.sum())[:, None]
    weights = cells + alpha + added
    return weights / weights.sum(axis=-1, keepdims=True)


def table_information(tables: Array, counts: Array) -> Array:
    """Return the mutual information of each table's cell and the class."""
    share = (counts / counts.sum())[:, None]
    whole = (share * tables).sum(axis=1, keepdims=True)
    return (share * tables * np.log(tables / whole)).sum(axis=(1, 2))


def exponent(information: Array, dependence: float) -> float:
    r"""Return the power to which the features' joint evidence is raised.

    Let m features have log-likelihood ratios of the same law, any two of which have correlation :math:`\rho` within a
    class. Their sum has m times the mean of one, and :math:`m(1 + \rho(m - 1))` times the variance. For Gaussian
    ratios, the best rule is :math:`1/(1 + \rho(m-1))` times the sum. The number m is that of the features that carry
    the information, :math:`(\sum_j I_j)^2/\sum_j I_j^2`.
    """
    total = float(information.sum())
    if not total > 0:
        return 1.0
    carriers = total**2 / float(information @ information)
    return 1 / (1 + dependence * max(carriers - 1, 0.0))
