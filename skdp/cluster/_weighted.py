"""k-means on a few weighted points, from many starts at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ..mechanisms import BitStream

Array = NDArray[np.float64]


def weighted_kmeans(
    points: Array, weights: Array, n_clusters: int, starts: int, iterations: int, stream: BitStream
) -> tuple[Array, NDArray[np.intp]]:
    """Return centres and labels of the best of several weighted runs of Lloyd's algorithm, started by k-means++."""
    # The points are public, and there are more of them than clusters. The weights are positive.
    # The scale of the points, so that squares neither overflow nor vanish.
    middle = points.mean(axis=0)
    scale = max(float(np.abs(points - middle).max()), np.finfo(float).tiny)
    points = (points - middle) / scale
    centres = _starts(points, weights, n_clusters, starts, stream)
    weighted = weights[:, None] * points
    labels = np.full((starts, len(points)), -1)
    runs = np.arange(starts)[:, None]
    for _ in range(iterations):
        before, labels = labels, _scores(points, centres).argmin(axis=2)
        if np.array_equal(before, labels):
            break
        member = np.zeros((starts, n_clusters, len(points)))
        member[runs, labels, np.arange(len(points))] = 1.0
        total = (member @ weights)[:, :, None]
        centres = np.where(total > 0, member @ weighted / np.where(total > 0, total, 1.0), centres)
    scores = _scores(points, centres)
    best = int(np.argmin(scores.min(axis=2) @ weights))
    return middle + scale * centres[best], scores[best].argmin(axis=1)


def _scores(points: Array, centres: Array) -> Array:
    """Return squared distances without the squares of the points, of shape (starts, n_points, n_clusters)."""
    squares = np.einsum("skd,skd->sk", centres, centres)
    return squares[:, None, :] - 2 * (points @ centres.transpose(0, 2, 1))


def _starts(points: Array, weights: Array, n_clusters: int, starts: int, stream: BitStream) -> Array:
    uniform = (stream.words(n_clusters * starts) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    chosen = np.empty((starts, n_clusters), dtype=np.intp)
    nearest = np.ones((starts, len(points)))
    for j, u in enumerate(uniform.reshape(n_clusters, starts, 1)):
        mass = np.cumsum(weights * nearest, axis=1)
        chosen[:, j] = np.minimum((mass <= u * mass[:, -1:]).sum(axis=1), len(points) - 1)
        squares = cdist(points[chosen[:, j]], points, "sqeuclidean")
        nearest = squares if j == 0 else np.minimum(nearest, squares)
    return points[chosen]
