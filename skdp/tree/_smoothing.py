"""From noisy leaf counts to log-odds: everything here is a function of released and of public numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: So many records of the parent's distribution are added to a cell, against sampling error.
PRIOR_RECORDS = 2.0

#: Log-odds are clipped to this: a leaf makes a class at most 20 times as likely, or as unlikely.
LARGEST_LOG_ODDS = 3.0


def class_distributions(
    counts: Array,
    reachable: NDArray[np.bool_],
    noise: float,
    few_trees: bool,
    first: tuple[Array, float] | None = None,
) -> list[Array]:
    r"""Estimate class distributions in nodes, from the root down.

    A node's counts are the sums of its leaves'. With :math:`N` their total, :math:`q` the parent's distribution and
    :math:`s` the standard deviation of the noise in each, the deviation :math:`d = c - Nq` is shrunk as by James and
    Stein, to :math:`\max(0, 1 - v/\|d\|^2)\, d` for :math:`v = (K-1) s^2 + N(1 - \|q\|^2)`, which is what noise and
    sampling come to: what could well be by chance is left out. Weights that are estimated from the same records would
    otherwise trust what leaves know by heart. Of few trees, whose weights are not estimated, the deviation is shrunk to
    :math:`\|d\|^2/(\|d\|^2 + (K-1) s^2)\, d`: noise alone might be half of it, and small deviations, which
    are all that there is, still tell the classes apart. With :math:`d'` for what remains of `d`, the distribution is
    proportional to :math:`q\,(Nq + d' + 2q + s)/(Nq + 2q + s)`.

    Parameters
    ----------
    counts : ndarray of shape (n_trees, n_leaves, n_classes)
        Noisy counts; 0 where no record can be.
    reachable : ndarray of shape (n_trees, n_leaves)
        Leaves whose counts were released.
    noise : float
        Standard deviation of the noise in one count.
    few_trees : bool
        Whether every deviation is to count for something.
    first : tuple (ndarray of shape (n_classes,), float), optional
        Noisy counts of the classes that were released before, and the standard deviation of their noise.

    Returns
    -------
    levels : list of ndarray of shape (n_trees, n_nodes, n_classes)
        By level, positive and of sum 1. The first holds the roots, all alike, and the last the leaves.
    """
    n_trees, n_leaves, n_classes = counts.shape
    # The trees count the same records, so that the mean of their totals has less noise.
    prior = counts.sum(axis=1).mean(axis=0)
    root_noise = noise * np.sqrt(reachable.sum() / n_trees / n_trees)
    if first is not None and root_noise > 0:
        # In inverse proportion to the variances.
        other, spread = first
        share = root_noise**2 / (root_noise**2 + spread**2)
        prior, root_noise = (1 - share) * prior + share * other, root_noise * np.sqrt(1 - share)
    prior = np.maximum(prior, 0.0)
    flat = root_noise + PRIOR_RECORDS
    prior = (prior + flat / n_classes) / (prior.sum() + flat)
    parent = np.broadcast_to(prior, (n_trees, 1, n_classes))
    levels = [parent]
    width = n_leaves
    while width > 1:
        width //= 2
        parent = np.repeat(parent, 2, axis=1)
        noisy = counts.reshape(n_trees, n_leaves // width, width, n_classes).sum(axis=2)
        leaves = reachable.reshape(n_trees, n_leaves // width, width).sum(axis=2)
        spread = noise * np.sqrt(leaves)[:, :, None]
        expected = np.maximum(noisy.sum(axis=2, keepdims=True), 0.0) * parent
        deviation = np.maximum(noisy, 0.0) - expected
        square = (deviation**2).sum(axis=2, keepdims=True)
        by_chance = (n_classes - 1) * spread**2
        if not few_trees:
            by_chance = by_chance + expected.sum(axis=2, keepdims=True) * (1 - (parent**2).sum(axis=2, keepdims=True))
        if few_trees:
            kept = square / np.maximum(square + by_chance, 1e-300)
        else:
            kept = 1 - by_chance / np.maximum(np.maximum(square, by_chance), 1e-300)
        totals = np.maximum(expected + kept * deviation, 0.0)
        # Of a class that is rarer than the noise, a node says little: else noise would make it as likely as others.
        pull = PRIOR_RECORDS * parent + spread
        likely = parent * (totals + pull) / (expected + pull)
        parent = likely / likely.sum(axis=2, keepdims=True)
        levels.append(parent)
    return levels


def scores(distributions: Array, prior: Array) -> Array:
    """Return what leaves say of the classes beyond the prior: log-odds, clipped.

    Parameters
    ----------
    distributions : ndarray of shape (n_trees, n_leaves, n_classes)
        Class distributions.
    prior : ndarray of shape (n_classes,)
        The distribution before a leaf is known.

    Returns
    -------
    scores : ndarray of shape (n_trees, n_leaves, n_scores)
        One number, for the second class against the first, if there are two; else one per class, of mean 0.
    """
    ratio = np.log(distributions) - np.log(prior)
    if len(prior) == 2:
        return log_odds(ratio).clip(-LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
    # Before centring, so that a class that is as good as absent does not move the others.
    return log_odds(ratio.clip(-LARGEST_LOG_ODDS, LARGEST_LOG_ODDS))


def log_odds(logs: Array) -> Array:
    """Turn log-probabilities into one score for two classes, else into scores of mean 0."""
    if logs.shape[-1] == 2:
        return logs[..., 1:] - logs[..., :1]
    return logs - logs.mean(axis=-1, keepdims=True)


def few_records(counts: Array, noise: float) -> NDArray[np.bool_]:
    """Tell nodes that hold too few records to split: less than twice what the noise in one leaf comes to.

    Parameters
    ----------
    counts : ndarray of shape (n_leaves, n_classes)
        Noisy counts of one tree.
    noise : float
        Standard deviation of the noise in one count.

    Returns
    -------
    few : ndarray of shape (n_inner,)
        Nodes level by level; with a node, all below it.
    """
    n_leaves, n_classes = counts.shape
    few = np.zeros(1, dtype=bool)
    out = []
    width = n_leaves
    while width > 1:
        totals = counts.reshape(-1, width * n_classes).sum(axis=1)
        few = few | (totals < 2 * noise * np.sqrt(n_classes))
        out.append(few)
        few = np.repeat(few, 2)
        width //= 2
    return np.concatenate([*out, np.empty(0, dtype=bool)])
