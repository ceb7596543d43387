"""Log-odds of classes and importances of columns from noisy leaf counts. All of this is post-processing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._structure import Forest

Array = NDArray[np.float64]

#: Number of records of the parent's distribution that are added to a cell, against sampling error.
PRIOR_RECORDS = 2.0

#: Log-odds are clipped to this. A leaf makes a class at most 20 times as likely, or as unlikely.
LARGEST_LOG_ODDS = 3.0

#: Leaves differ from the prior by more than chance if one level differs by so many standard deviations.
EVIDENCE = 2.0

#: The splits of a column in a level count if they decrease impurity by so many standard deviations of chance. Deep
#: levels have many nodes with few records, and much of their sum is chance.
SPLIT_EVIDENCE = 3.0

#: For labels, this is tested only if sampling has at least this part in the variance of chance. If noise has nearly all
#: of it, the records do not repeat the noise, and the choice of weights detects leaves without information.
_SAMPLING_SHARE = 1 / 6


def totals_of(
    counts: Array, reachable: NDArray[np.bool_], noise: float, first: tuple[Array, float] | None = None
) -> tuple[Array, float]:
    """Return counts of classes over all records, and the standard deviation of the noise in each."""
    # The trees count the same records, so that the mean of their totals has less noise.
    n_trees = len(counts)
    totals = counts.sum(axis=1).mean(axis=0)
    root_noise = noise * np.sqrt(reachable.sum() / n_trees / n_trees)
    if first is not None and root_noise > 0:
        other, spread = first
        share = root_noise**2 / (root_noise**2 + spread**2)
        totals, root_noise = (1 - share) * totals + share * other, root_noise * np.sqrt(1 - share)
    return totals, float(root_noise)


def class_prior(totals: Array, noise: float) -> Array:
    """Return the shares of classes from their noisy counts over all records."""
    totals, flat = np.maximum(totals, 0.0), noise + PRIOR_RECORDS
    return (totals + flat / len(totals)) / (totals.sum() + flat)


def class_distributions(
    counts: Array,
    reachable: NDArray[np.bool_],
    noise: float,
    few_trees: bool,
    prior: Array,
    dispersion: float = 1.0,
    of_labels: bool = True,
) -> list[Array]:
    """Estimate class distributions in nodes, level by level from the root, from noisy counts of the leaves."""
    # With `dispersion`, the counts of a leaf vary by this multiple of the variance of labels. Unless they are
    # `of_labels`, they are shares of two ends, whose distribution is a mean.
    n_trees, n_leaves, n_classes = counts.shape
    parent = np.broadcast_to(prior, (n_trees, 1, n_classes))
    levels = [parent]
    if not few_trees and only_chance(counts, reachable, noise, prior, dispersion, of_labels):
        # Weights are estimated from the same records, and would trust leaves that overfit.
        return [np.repeat(parent, 2**level, axis=1) for level in range(n_leaves.bit_length())]
    width = n_leaves
    while width > 1:
        width //= 2
        parent = np.repeat(parent, 2, axis=1)
        noisy = counts.reshape(n_trees, n_leaves // width, width, n_classes).sum(axis=2)
        leaves = reachable.reshape(n_trees, n_leaves // width, width).sum(axis=2)
        spread = noise * np.sqrt(leaves)[:, :, None]
        # Let N be the total of a node, q the distribution of its parent and s the noise in each of its K counts c. The
        # deviation d = c - Nq is shrunk as by James and Stein, to max(0, 1 - v/|d|^2) d for v = (K-1) s^2 + N(1-|q|^2),
        # whose last part is multiplied by the dispersion, because noise and sampling alone give v. Otherwise, weights
        # that are estimated from the same records would trust leaves that overfit. The weights of few trees are not
        # estimated. Their d is shrunk to |d|^2/(|d|^2 + (K-1) s^2) d, because small deviations still tell the classes
        # apart. With d' for the shrunk d, the distribution is proportional to q (Nq + d' + 2q + s)/(Nq + 2q + s).
        expected = np.maximum(noisy.sum(axis=2, keepdims=True), 0.0) * parent
        deviation = np.maximum(noisy, 0.0) - expected
        square = (deviation**2).sum(axis=2, keepdims=True)
        by_chance = (n_classes - 1) * spread**2
        if not few_trees:
            sampling = expected.sum(axis=2, keepdims=True) * (1 - (parent**2).sum(axis=2, keepdims=True))
            by_chance = by_chance + dispersion * sampling
        if not of_labels:
            # This part of the squared deviations in a level of a tree is the variance between the nodes, and the rest
            # is chance. If the nodes differ little, a deviation must be larger to count. This lowers squared errors.
            by_chance = by_chance / between_nodes(square, by_chance, np.maximum(noisy.sum(axis=2, keepdims=True), 0.0))
        if few_trees:
            factor = square / np.maximum(square + by_chance, 1e-300)
        else:
            factor = 1 - by_chance / np.maximum(np.maximum(square, by_chance), 1e-300)
        totals = np.maximum(expected + factor * deviation, 0.0)
        # A node has little information on a class that is rarer than the noise. Without this, noise would make it as
        # likely as others.
        pull = PRIOR_RECORDS * parent + spread
        likely = parent * (totals + pull) / (expected + pull)
        parent = likely / likely.sum(axis=2, keepdims=True)
        levels.append(parent)
    return levels


def node_weights(total: Array, by_chance: Array) -> Array:
    """Weight the nodes of a level by their noisy totals."""
    # Many nodes have no record, and a few may have much information. The weights are between these two cases.
    return np.sqrt(total / np.sqrt(np.maximum(by_chance, 1e-300))) * (by_chance > 0)


def between_nodes(square: Array, by_chance: Array, total: Array) -> Array:
    """Return the part of the squared deviations that is more than chance, for each level of each tree, never 0."""
    weight = node_weights(total, by_chance)
    ratio = (weight * square / np.maximum(by_chance, 1e-300)).sum(axis=1, keepdims=True)
    ratio = ratio / np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
    return np.maximum(1 - 1 / np.maximum(ratio, 1e-9), 1e-9)


def only_chance(
    counts: Array,
    reachable: NDArray[np.bool_],
    noise: float,
    prior: Array,
    dispersion: float = 1.0,
    of_labels: bool = True,
) -> bool:
    """Tell whether noise and sampling explain by how much the nodes of a forest differ from the prior."""
    n_trees, n_leaves, n_classes = counts.shape
    square = float(prior @ prior)
    width, evidence = n_leaves, -np.inf
    varies = dispersion * (1 - square)
    sampling = max(float(counts.sum()), 0.0) * varies
    of_noise = noise**2 * float(reachable.sum()) * (n_classes - 2 + n_classes * square)
    if of_labels and sampling <= _SAMPLING_SHARE * (sampling + of_noise):
        return False
    while width > 1:
        width //= 2
        noisy = counts.reshape(n_trees, n_leaves // width, width, n_classes).sum(axis=2)
        leaves = reachable.reshape(n_trees, n_leaves // width, width).sum(axis=2)
        total = noisy.sum(axis=2)
        # The expected square of the deviation of the counts from the prior times their noisy total.
        by_chance = noise**2 * leaves * (n_classes - 2 + n_classes * square) + np.maximum(total, 0.0) * varies
        known = (total > 0) & (by_chance > 0)
        if not known.any():
            continue
        deviation, by_chance = (noisy - total[:, :, None] * prior)[known], by_chance[known]
        excess = (deviation**2).sum(axis=1) / by_chance - 1
        weight = node_weights(total[known], by_chance)
        # An excess has a variance of at most 2. In the worst case, those of the two sides of a split are the same.
        evidence = max(evidence, float(weight @ excess) / (2 * float(np.linalg.norm(weight))))
    return bool(evidence < EVIDENCE)


def scores(distributions: Array, prior: Array) -> Array:
    """Return clipped log-odds of the classes in leaves against the prior: one number for two classes, else one each."""
    ratio = np.log(distributions) - np.log(prior)
    if len(prior) == 2:
        return log_odds(ratio).clip(-LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
    # Clipping comes before centring, so that a class that is almost absent does not move the others.
    return log_odds(ratio.clip(-LARGEST_LOG_ODDS, LARGEST_LOG_ODDS))


def log_odds(logs: Array) -> Array:
    """Convert log-probabilities to one score for two classes, and to scores of mean 0 for more."""
    if logs.shape[-1] == 2:
        return logs[..., 1:] - logs[..., :1]
    return logs - logs.mean(axis=-1, keepdims=True)


def few_records(counts: Array, noise: float) -> NDArray[np.bool_]:
    """Tell which nodes have noisy counts below twice the noise of one leaf, and include all nodes below them."""
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


def impurity_decreases(
    forest: Forest, counts: Array, reachable: NDArray[np.bool_], noise: float, n_features: int, dispersion: float = 1.0
) -> Array:
    r"""Return by column the mean decrease of Gini's impurity by its splits in a tree, beyond chance.

    A split of n records into :math:`n_L` and :math:`n_R`, with class distributions :math:`p_L` and :math:`p_R`,
    decreases impurity by :math:`(n_L n_R/n)\lVert p_L-p_R\rVert^2`. The counts are noisy, and noise and sampling alone
    give a positive number. Its expectation follows from the known variances, and is subtracted.
    """
    # `noise` is the standard deviation of the noise in a count. `dispersion` is the ratio of the variance of the
    # counted shares to that of labels.
    n_trees, n_leaves, n_classes = counts.shape
    decreases = np.zeros(n_features)
    for level in range(forest.depth):
        width = n_leaves // 2 ** (level + 1)
        nodes = counts.reshape(n_trees, 2**level, 2, width, n_classes).sum(axis=3)
        variances = noise**2 * reachable.reshape(n_trees, 2**level, 2, width).sum(axis=3)
        totals = nodes.sum(axis=3)
        # Fewer records than this are ignored. A side that no record can reach has neither records nor noise.
        known = (totals > np.sqrt(n_classes * variances)).all(axis=2)
        at = np.nonzero(known & np.isfinite(forest.level(forest.thresholds, level)))
        nodes, variances, totals = nodes[at], variances[at], totals[at]
        n = totals.sum(axis=1)
        # Let a part w of the records be on the left. The left side has (1-w) L - w R more records of each class than it
        # would have with the class shares of the node.
        other = totals[:, ::-1] / n[:, None]
        more = nodes[:, 0] * other[:, :1] - nodes[:, 1] * other[:, 1:]
        whole = np.maximum(nodes.sum(axis=1), 0.0)
        square = ((whole / whole.sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
        size = n * other[:, 0] * other[:, 1]
        by_noise = (other**2 * variances).sum(axis=1) * (n_classes - 2 + n_classes * square) / size
        by_sampling = dispersion * (1 - square)
        columns = at[0], forest.features[at[0], forest.level(forest.slots, level)[at]]
        beyond, of_noise, of_sampling = np.zeros((3, n_trees, n_features))
        np.add.at(beyond, columns, (more**2).sum(axis=1) / size - by_noise - by_sampling)
        # The variance of the square of a normal variable is twice the square of its variance.
        np.add.at(of_noise, columns, 2 * ((by_noise + by_sampling) ** 2 - by_sampling**2))
        np.add.at(of_sampling, columns, 2 * by_sampling**2)
        # Noise is independent in different trees, but the records are the same.
        chance = np.sqrt(of_noise.sum(axis=0) + np.sqrt(of_sampling).sum(axis=0) ** 2)
        beyond = beyond.sum(axis=0)
        decreases += np.where(beyond > SPLIT_EVIDENCE * chance, beyond, 0.0)
    seen = np.zeros(n_features)
    for features, n_seen in zip(forest.features, forest.n_seen, strict=True):
        seen[features[:n_seen]] += 1
    return decreases / np.maximum(seen, 1.0)
