"""Importances of columns in random trees: mean decreases of Gini's impurity, from released leaf counts.

A split of n records into :math:`n_L` and :math:`n_R`, with class distributions :math:`p_L` and :math:`p_R`, decreases
impurity by :math:`(n_L n_R/n)\\lVert p_L-p_R\\rVert^2`. The counts are noisy, and noise and sampling alone give a
positive number. Its expectation follows from the known variances, and is subtracted. All of this is post-processing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._structure import Forest

Array = NDArray[np.float64]

#: The splits of a column in a level count if they decrease impurity by so many standard deviations of chance. Deep
#: levels have many nodes with few records, and much of their sum is chance.
EVIDENCE = 3.0


def impurity_decreases(
    forest: Forest,
    counts: Array,
    reachable: NDArray[np.bool_],
    noise: float,
    n_features: int,
    dispersion: float = 1.0,
) -> Array:
    """Return by column the mean decrease of impurity by its splits in a tree, beyond chance."""
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
        place = at[0], forest.features[at[0], forest.level(forest.slots, level)[at]]
        found, of_noise, of_sampling = np.zeros((3, n_trees, n_features))
        np.add.at(found, place, (more**2).sum(axis=1) / size - by_noise - by_sampling)
        # The variance of the square of a normal variable is twice the square of its variance.
        np.add.at(of_noise, place, 2 * ((by_noise + by_sampling) ** 2 - by_sampling**2))
        np.add.at(of_sampling, place, 2 * by_sampling**2)
        # Noise is independent in different trees, but the records are the same.
        chance = np.sqrt(of_noise.sum(axis=0) + np.sqrt(of_sampling).sum(axis=0) ** 2)
        found = found.sum(axis=0)
        decreases += np.where(found > EVIDENCE * chance, found, 0.0)
    seen = np.zeros(n_features)
    for own, n_seen in zip(forest.features, forest.n_seen, strict=True):
        seen[own[:n_seen]] += 1
    return decreases / np.maximum(seen, 1.0)
