"""Private k-means by refinement: noisy sums over successively better cells, and finally over the clusters.

There are four releases of a count, a sum and a sum of squares for each cell of public centres (see ``cells_l2`` and
``cells_l1``): for a single cell of all records, for coarse cells around its mean, for fine cells, and for the clusters.
The fine cells divide the coarse cells with the largest spread. The centres of each release are computed from earlier
releases. The fine cells, with their noisy counts, are a private coreset. k-means runs on the coreset from many starts,
which is post-processing. The last release is a step of Lloyd's algorithm. All points lie on a public lattice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.spatial.distance import cdist

from ..accounting import GaussianEvent, PrivacyEvent, PureEvent, gaussian_mu
from ..mechanisms import (
    BitStream,
    DiscreteLaplaceMechanism,
    GammaMechanism,
    GaussianMechanism,
    Mechanism,
    NoNoise,
    pure_share,
    rounded_normal,
)
from ..parts.arrays import in_memory
from ..release.counts import noise_scale
from ..release.session import Release, ReleaseSession, Theorem
from ..sensitivity import CELLS_STEP, RowLattice, cell_sums, cells_l1, cells_l2

Array = NDArray[np.float64]

#: Weights of a cell's count and of its sum of squares. They have few bits, so that weighted sums are exact.
COUNT_WEIGHT = SPREAD_WEIGHT = 0.375

#: A cell whose noisy count is below so many standard deviations of its noise counts as empty.
EMPTY = 2.0

#: Distance of the centres of a cell's parts from its mean, as a multiple of the root mean squared distance.
DISPLACEMENT = 0.6

#: A part has at least so many rows that the error of its mean is about the radius of the part.
LEAST_RATIO = 1.3

#: Weight of the coreset's centre against that of the last step, because the noise also chose the former.
CORESET_WEIGHT = 0.5

#: Number of starts of k-means on the coreset, if memory allows. They take time, and none of the budget.
STARTS = 20

#: Largest number of iterations of each start.
ITERATIONS = 50

# Largest number of entries of arrays over pairs of cells.
_MOST_ENTRIES = 2**22

# Discrete Laplace noise of a larger scale would take too many steps of the lattice.
_LARGEST_SCALE = 2.0**45 * CELLS_STEP

# Smallest mean squared distance, as a part of the squared radius. Rounding hides smaller ones.
_LEAST_SPREAD = 0.01


@dataclass(frozen=True)
class Stage:
    """One of the releases."""

    label: str
    share: float
    n_cells: int
    spread_weight: float


def stages(n_clusters: int, share: float = 1.0) -> tuple[Stage, ...]:
    """Return the four releases, which together take a share of the budget."""
    return (
        Stage("centre and spread", 0.10 * share, 1, SPREAD_WEIGHT),
        Stage("coarse cells", 0.30 * share, max(16, 3 * n_clusters), SPREAD_WEIGHT),
        Stage("fine cells", 0.25 * share, max(32, 6 * n_clusters), SPREAD_WEIGHT),
        Stage("clusters", 0.35 * share, n_clusters, 0.0),
    )


def radius_ratio(n_features: int) -> float:
    """Return the clipping bound of differences, in root mean squared distances, which vary less in many dimensions."""
    return 1.2 + 0.6 / math.sqrt(n_features)


def noisy(
    epsilon: float, delta: float, share: float, l2: float, l1: float, size: int
) -> tuple[Mechanism, PrivacyEvent]:
    """Return the mechanism for a share of the budget, and its event. Values are multiples of ``CELLS_STEP``."""
    if epsilon == math.inf:
        return NoNoise(l2), PureEvent(epsilon)
    if delta > 0:
        mu = gaussian_mu(epsilon, delta) * math.sqrt(share)
        return GaussianMechanism(mu, l2, size), GaussianEvent(mu)
    # For pure privacy, the mechanism with less noise is taken. This compares public numbers.
    epsilon_of_release = pure_share(epsilon, share)
    candidates: list[Mechanism] = [GammaMechanism(epsilon_of_release, l2, size)]
    if l1 / epsilon_of_release < _LARGEST_SCALE:
        candidates.append(DiscreteLaplaceMechanism(epsilon_of_release, l1, size, CELLS_STEP))
    return min(candidates, key=deviation), PureEvent(epsilon_of_release)


def deviation(mechanism: Mechanism) -> float:
    """Return the standard deviation of the noise in one coordinate."""
    if isinstance(mechanism, GammaMechanism):
        return math.sqrt(mechanism.size + 1) * mechanism.scale
    return noise_scale(mechanism)


def plan(
    epsilon: float, delta: float, n_features: int, planned: tuple[Stage, ...]
) -> tuple[tuple[Release, ...], tuple[PrivacyEvent, ...]]:
    """Return the planned releases of the stages, and their events."""
    releases: list[Release] = []
    events: list[PrivacyEvent] = []
    for stage in planned:
        weights = COUNT_WEIGHT, stage.spread_weight
        l2, l1 = cells_l2(n_features, *weights), cells_l1(n_features, *weights)
        mechanism, event = noisy(epsilon, delta, stage.share, l2, l1, stage.n_cells * (n_features + 2))
        releases.append(Release(stage.label, mechanism, stage.share, Theorem("k-means", 1)))
        events.append(event)
    return tuple(releases), tuple(events)


@dataclass(frozen=True, eq=False)
class Cells:
    """Describe public cells, which hold the rows nearest to their centres."""

    # `centres` and `origins` have shape (n_cells, n_features). They are lattice points, and the points to which means
    # are shrunk. Differences from a centre are clipped to its radius. `errors` are the variances of the centres'
    # coordinates as estimates of means. They are infinite for centres that do not estimate a mean.
    centres: Array
    radii: Array
    origins: Array
    errors: Array


@dataclass(frozen=True, eq=False)
class Estimates:
    """Hold the released estimates of cells that are not empty, or of clusters, in steps of the lattice."""

    # `spreads` are mean squared distances from the mean, `errors` variances of the noise in a coordinate of the mean.
    counts: Array
    means: Array
    spreads: Array
    errors: Array


def whole(lattice: RowLattice) -> Cells:
    """Return the single cell of all rows, which is the box of the bounds."""
    d = len(lattice.half)
    radius = max(1.0, float(np.linalg.norm(lattice.half)))
    return Cells(np.zeros((1, d)), np.array([radius]), np.zeros((1, d)), np.array([math.inf]))


def shrunk(means: Array, origins: Array, errors: Array) -> Array:
    """Move noisy means towards their origins by the positive-part rule of James and Stein."""
    moved = means - origins
    surplus = max(means.shape[1] - 2, 0) * errors
    squares = np.einsum("ij,ij->i", moved, moved)
    factor = 1 - surplus / np.maximum(np.maximum(squares, surplus), np.finfo(float).tiny)
    return origins + factor[:, None] * moved


def postprocess_means(released: Array, cells: Cells, noise: float) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
    """Return counts, means, their errors, and whether a cell is occupied, for all cells."""
    released = released[: len(cells.centres)]
    least = EMPTY * noise / COUNT_WEIGHT
    counts = released[:, 0] / COUNT_WEIGHT
    occupied = counts > least
    counts = np.maximum(counts, max(least, 1.0))
    # A mean is the centre plus the noisy sum over the noisy count, clipped to the radius.
    moved = released[:, 1:-1] / counts[:, None]
    moved /= np.maximum(1.0, np.linalg.norm(moved, axis=1))[:, None]
    means = cells.centres + cells.radii[:, None] * moved
    return counts, means, (noise * cells.radii / counts) ** 2, occupied


def postprocess_cells(released: Array, cells: Cells, noise: float, lattice: RowLattice) -> Estimates:
    """Return the estimates of occupied cells, or of the fullest cell if none is occupied."""
    counts, means, errors, occupied = postprocess_means(released, cells, noise)
    moved = np.einsum("ij,ij->i", means - cells.centres, means - cells.centres)
    # The squared norm of a noisy mean is too large by that of the noise.
    apart = np.maximum(moved - means.shape[1] * errors, 0.0)
    squares = cells.radii**2
    about_centre = released[: len(counts), -1] / SPREAD_WEIGHT / counts * squares
    spreads = np.clip(about_centre - apart, _LEAST_SPREAD * squares, squares)
    occupied[np.argmax(counts)] = True
    means = np.clip(shrunk(means, cells.origins, errors), -lattice.half, lattice.half)
    return Estimates(counts[occupied], means[occupied], spreads[occupied], errors[occupied])


def numbers_of_parts(estimates: Estimates, least: int, most: int, rows: float) -> NDArray[np.intp]:
    """Return the number of parts of each cell. Cells with the largest spread are divided first."""
    # Each part has at least `rows` rows by the noisy counts, unless this gives fewer than `least` parts in all.
    n_cells = len(estimates.counts)
    number = np.ones(n_cells, dtype=np.intp)
    if n_cells < most:
        already = np.arange(1, min(most, 1 + max(64, _MOST_ENTRIES // n_cells)))
        inertia = estimates.counts * estimates.spreads
        priority = inertia[:, None] / already**1.5
        enough = estimates.counts[:, None] / (already + 1) > rows
        order = np.lexsort((-priority.ravel(), ~enough.ravel()))
        more = min(max(int(np.count_nonzero(enough)), least - n_cells), most - n_cells)
        number += np.bincount(order[:more] // len(already), minlength=n_cells)
    return number


def divided(estimates: Estimates, least: int, most: int, noise: float, lattice: RowLattice, stream: BitStream) -> Cells:
    """Return at least `least` and at most `most` cells: around means, or around a few points near one."""
    d = estimates.means.shape[1]
    number = numbers_of_parts(estimates, least, most, LEAST_RATIO * noise * math.sqrt(d))
    parent = np.repeat(np.arange(len(number)), number)
    single = number[parent] == 1
    directions = rounded_normal(2.0**20, len(parent) * d, stream).reshape(-1, d).astype(np.float64)
    directions /= np.maximum(np.linalg.norm(directions, axis=1), 1.0)[:, None]
    # Two parts lie opposite each other.
    second = 1 + np.flatnonzero((number[parent[1:]] == 2) & (parent[1:] == parent[:-1]))
    directions[second] = -directions[second - 1]
    length = np.where(single, 0.0, DISPLACEMENT * np.sqrt(estimates.spreads[parent]))
    origins = estimates.means[parent]
    centres = np.clip(np.rint(origins + length[:, None] * directions), -lattice.half, lattice.half)
    radii = within_diagonal(radius_ratio(d) * np.sqrt(estimates.spreads[parent]), lattice)
    return Cells(centres, radii, origins, np.where(single, estimates.errors[parent], math.inf))


def cells_of_clusters(estimates: Estimates, n_clusters: int, lattice: RowLattice, stream: BitStream) -> Cells:
    """Return the clusters of a coreset: k-means on noisy means, weighted by noisy counts, from many starts."""
    if len(estimates.counts) <= n_clusters:
        return divided(estimates, n_clusters, n_clusters, 0.0, lattice, stream)
    starts = min(STARTS, max(1, _MOST_ENTRIES // (n_clusters * len(estimates.counts))))
    centres, labels = weighted_kmeans(estimates.means, estimates.counts, n_clusters, starts, ITERATIONS, stream)
    weights = np.bincount(labels, estimates.counts, minlength=n_clusters)
    empty = weights == 0
    filled = np.where(empty, 1.0, weights)
    differences = estimates.means - centres[labels]
    squares = estimates.spreads + np.einsum("ij,ij->i", differences, differences)
    spreads = np.bincount(labels, estimates.counts * squares, minlength=n_clusters) / filled
    errors = np.bincount(labels, estimates.counts**2 * estimates.errors, minlength=n_clusters) / filled**2
    radii = within_diagonal(radius_ratio(centres.shape[1]) * np.sqrt(np.where(empty, spreads.max(), spreads)), lattice)
    on_lattice = np.clip(np.rint(centres), -lattice.half, lattice.half)
    return Cells(on_lattice, radii, centres, np.where(empty, math.inf, errors))


def within_diagonal(radii: Array, lattice: RowLattice) -> Array:
    """Return radii of at least one step, and of at most the diagonal of the bounds."""
    return np.clip(radii, 1.0, max(1.0, 2 * float(np.linalg.norm(lattice.half))))


def postprocess_clusters(
    released: Array, cells: Cells, spreads: Array, noise: float, origin: Estimates, lattice: RowLattice
) -> Estimates:
    """Combine the centres of the last step, those of the coreset and the mean of all rows, by their noise."""
    counts, means, errors, occupied = postprocess_means(released, cells, noise)
    least = np.finfo(float).tiny
    weights = counts / counts.sum()
    mean, error = weights @ means, weights**2 @ errors
    share = error / max(error + origin.errors[0], least)
    middle = share * origin.means + (1 - share) * mean
    middle = shrunk(middle, np.zeros_like(middle), share * origin.errors)

    share = np.where(occupied, errors / np.maximum(errors + cells.errors / CORESET_WEIGHT, least), 1.0)
    centres = share[:, None] * cells.centres + (1 - share)[:, None] * means
    errors = np.where(occupied, (1 - share) * errors, np.minimum(cells.errors, cells.radii**2))
    # A centre without a mean of its own is shrunk towards the mean of the cell near which it was placed.
    towards = np.where(np.isfinite(cells.errors)[:, None], middle, cells.origins)
    centres = np.clip(shrunk(centres, towards, errors), -lattice.half, lattice.half)
    return Estimates(counts, centres, spreads, errors)


def refine(
    session: ReleaseSession,
    planned: tuple[Stage, ...],
    lattice: RowLattice,
    X: Any,
    n_clusters: int,
    stream: BitStream,
) -> Estimates:
    """Carry out the releases of the stages, and return the clusters."""
    noise = [deviation(session.mechanism(stage.label)) for stage in planned]
    encode: Callable[[Any], Any] = lattice.encode
    if in_memory(X) and not issparse(X):
        # Dense rows in memory are encoded once.
        X, encode = lattice.encode_once(X), np.asarray

    def released(i: int, cells: Cells) -> Array:
        weights = COUNT_WEIGHT, planned[i].spread_weight
        # The release has the planned size for any number of cells.
        sums = np.zeros((planned[i].n_cells, X.shape[1] + 2))
        sums[: len(cells.centres)] = cell_sums(encode, X, cells.centres, cells.radii, *weights)
        return session.release(planned[i].label, sums)

    cells = whole(lattice)
    origin = estimates = postprocess_cells(released(0, cells), cells, noise[0], lattice)
    for i in (1, 2):
        cells = divided(estimates, 1, planned[i].n_cells, noise[i], lattice, stream)
        estimates = postprocess_cells(released(i, cells), cells, noise[i], lattice)
    cells = cells_of_clusters(estimates, n_clusters, lattice, stream)
    spreads = (cells.radii / radius_ratio(X.shape[1])) ** 2
    if not noise[3]:
        # Without noise, clipping has no advantage. The last step is then a step of Lloyd's algorithm.
        cells = replace(cells, radii=np.full(n_clusters, 2 * whole(lattice).radii[0]))
    return postprocess_clusters(released(3, cells), cells, spreads, noise[3], origin, lattice)


def weighted_kmeans(
    points: Array, weights: Array, n_clusters: int, starts: int, iterations: int, stream: BitStream
) -> tuple[Array, NDArray[np.intp]]:
    """Return centres and labels of the best of several weighted runs of Lloyd's algorithm, started by k-means++."""
    # There are more points than clusters, and the weights are positive. Squares of scaled points neither overflow nor
    # vanish.
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
