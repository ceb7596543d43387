"""The outcomes that leaves count, their sensitivity and their mechanisms: labels, or shares of two ends for targets.

Each leaf has the numbers of two or more classes. A record whose target, mapped from its bounds to [0, 1], is :math:`v`
counts as a share :math:`1 - v` of one class and as a share :math:`v` of another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..accounting import GaussianEvent, PrivacyEvent, PureEvent, gaussian_mu
from ..checks.data import known_labels
from ..mechanisms import (
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    Mechanism,
    NoNoise,
    coordinate_variance,
    l1_mechanism,
    l2_mechanism,
    pure_share,
    within_reach,
)
from ..parts.arrays import PartedArray, many_rows, rowwise
from ..release.counts import warn_of_labels
from ..release.session import ReleaseSession
from ..release.units import rows_at
from ..sensitivity import sum_over_rows
from ..solvers.regularised import Scaling
from ..solvers.target_range import Located
from ._smoothing import brier_losses, class_prior, squared_losses
from ._structure import ROUTED, Forest

Array = NDArray[np.float64]

#: Finds the leaf of each row of a block, tree by tree.
Router = Callable[[NDArray], Iterable[NDArray[np.intp]]]

#: Shares are multiples of this.
SHARE_STEP = 2.0**-20
#: The smallest ratio of the variance of targets to that of two classes with their mean.
_LEAST_DISPERSION = 2.0**-26

#: Squared errors are clipped at so many times the variance of targets.
_LARGEST_LOSS = 9.0


def leaf_counts_l1(n_trees: int) -> float:
    """Bound the L1 norm of the change of the class counts of all leaves by one record.

    The trees do not depend on the data. A record reaches one leaf of each tree, or none if it has an unknown category,
    and raises the count of its class there by 1. Therefore at most `n_trees` entries change by 1. Every record of known
    categories attains the bound.
    """
    return float(n_trees)


def leaf_counts_l2(n_trees: int) -> float:
    """Bound the L2 norm of the change of the class counts of all leaves by one record.

    At most `n_trees` entries change by 1 (see `leaf_counts_l1`). Every record of known categories attains the bound.
    """
    return math.sqrt(n_trees)


def count_mechanism(
    epsilon: float, delta: float, share: float, n_trees: int, size: int
) -> tuple[Mechanism, PrivacyEvent]:
    """Return the mechanism for leaf counts: discrete Laplace by L1, or Gaussian by L2 sensitivity."""
    if epsilon == math.inf:
        return NoNoise(leaf_counts_l2(n_trees)), PureEvent(epsilon)
    if delta > 0:
        mu = gaussian_mu(epsilon, delta) * math.sqrt(share)
        sensitivity = leaf_counts_l2(n_trees)
        # Counts lie on the lattice, unless the noise is very large. Then the sensitivity includes the rounding. If the
        # noise is very small, the lattice is coarser, so that it covers all possible counts.
        bits = min(max(31 + math.floor(math.log2(sensitivity / mu)), 16), 30)
        return GaussianMechanism(mu, sensitivity, size, bits), GaussianEvent(mu)
    epsilon_of_release = pure_share(epsilon, share)
    return DiscreteLaplaceMechanism(epsilon_of_release, leaf_counts_l1(n_trees), size), PureEvent(epsilon_of_release)


def leaf_counts(
    structure: Any, X: NDArray, codes: NDArray[np.intp], n_classes: int, route: Router | None = None
) -> Array:
    """Count classes in the leaves of all trees, of shape (n_trees, n_leaves, n_classes)."""
    # With a `route`, the rows are what it finds leaves of.
    route, size = route or structure.router(many_rows(X)), structure.n_leaves * n_classes

    def block(rows: NDArray, classes: NDArray) -> NDArray:
        out = np.empty((structure.n_trees, size), dtype=np.intp)
        for counts, cells in zip(out, route(rows), strict=True):
            cells *= n_classes
            cells += classes
            # Rows that stay in an inner node have numbers after the leaves, and are not counted.
            counts[:] = np.bincount(cells, minlength=size)[:size]
        return out

    counts = sum_over_rows(block, X, codes, block_rows=ROUTED).astype(np.float64)
    return counts.reshape(structure.n_trees, structure.n_leaves, n_classes)


def spread_weight(n_trees: int, norm: str) -> float:
    """Return the weight of the sum of v(1 - v): a power of two, so that sums are exact."""
    return 2.0 ** math.floor(math.log2(8 * n_trees) / 2 if norm == "L2" else math.log2(n_trees / 8))


def leaf_shares_l2(n_trees: int) -> float:
    r"""Bound the L2 norm of the change of the shares in the leaves, and of the weighted sum of v(1 - v), by one record.

    With :math:`t = v(1-v)\in[0, 1/4]`, a record adds :math:`(1-v)^2 + v^2 = 1 - 2t` to the square for each tree, and
    at most :math:`a^2t^2` for the sum, for its weight :math:`a`. Of :math:`T` trees, this is :math:`T(1-2t) + a^2t^2`,
    which is at most :math:`T` for :math:`a^2\le 8T`, because :math:`a^2t^2\le 8Tt/4 = 2Tt`. Therefore the sum of
    :math:`v(1-v)` does not add to the sensitivity. A record without a known category reaches fewer trees. If it reaches
    none, the square is :math:`a^2t^2\le T/2`. A record with its target at a bound attains :math:`\sqrt T`. Shares are
    multiples of a lattice step before they are summed, and :math:`t` is rounded down.
    """
    return math.sqrt(n_trees)


def leaf_shares_l1(n_trees: int) -> float:
    r"""Bound the same in L1 norm: :math:`T(1 - v + v) + at \le T + a/4`, attained in the middle of the bounds."""
    return n_trees + spread_weight(n_trees, "L1") / 4


@dataclass(frozen=True)
class Labels:
    """The public definition of the numbers in leaves, and the mechanism of their release: each label counts as 1."""

    n_classes: int
    #: Name of the first release, before the trees.
    first: ClassVar[str] = "class counts"
    #: The theorem of the user guide about the numbers in leaves.
    theorem: ClassVar[int] = 1
    #: Whether labels are counted. Noise in a mean is an error, but noise in odds may keep their order.
    of_labels: ClassVar[bool] = True
    #: The smallest value that `difference` returns.
    least_difference: ClassVar[float] = 1.0

    def encoded(self, X: NDArray, y: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Return the counted rows, the outcomes of these rows, and the outcomes of all records."""
        is_known = known_labels(y)
        if not isinstance(is_known, PartedArray) and is_known.all():
            return X, y, y
        return rows_at(X, is_known), rows_at(y, is_known), y

    def mechanism(
        self, epsilon: float, delta: float, share: float, n_trees: int, n_leaves: int
    ) -> tuple[Mechanism, PrivacyEvent]:
        """Return the mechanism for the sums in all leaves."""
        return count_mechanism(epsilon, delta, share, n_trees, n_trees * n_leaves * self.n_classes)

    def first_totals(self, session: ReleaseSession, y: NDArray) -> tuple[Array, float]:
        """Release the numbers of labels, and return them with the noise in each."""

        # A record adds 1 to one count, as in `leaf_counts_l1` for one tree. Other labels come last.
        def block(codes: NDArray[np.intp]) -> NDArray[np.intp]:
            return np.bincount(np.where(codes < 0, self.n_classes, codes), minlength=self.n_classes + 1)

        variance = coordinate_variance(session.mechanism(self.first))
        released = session.release(self.first, sum_over_rows(block, y, block_rows=2**17).astype(np.float64))
        warn_of_labels((float(released[:-1].sum()), variance * self.n_classes), (float(released[-1]), variance))
        return released[:-1], math.sqrt(variance)

    def sums(self, mechanism: Mechanism, forest: Forest, X: NDArray, y: NDArray, route: Router | None = None) -> Array:
        """Return the sums in all leaves, and the other numbers of the same release."""
        return leaf_counts(forest, X, y, self.n_classes, route).ravel()

    def losses(self, prior: Array, dispersion: float) -> Callable[[Array, NDArray], Array]:
        """Return a function that maps probabilities, classes first, and outcomes to losses in [0, 1]."""
        return brier_losses

    def difference(self, prior: Array, dispersion: float, n_weights: int) -> float:
        """Return the difference of outcomes and probabilities up to which gradients are not scaled down."""
        return 1.0

    def prior(self, totals: Array, noise: float) -> Array:
        """Return the shares of classes from their noisy totals."""
        return class_prior(totals, noise)

    def dispersion(
        self, extra: Array, mechanism: Mechanism, n_trees: int, totals: Array, spread: float
    ) -> tuple[float, float]:
        """Return the ratio of the variance of outcomes to that of labels with their mean, and an upper bound."""
        # `extra` was released with the sums in leaves by `mechanism`. `totals` are sums over all records, with noise of
        # standard deviation `spread`.
        return 1.0, 1.0


@dataclass(frozen=True, eq=False)
class Targets:
    """The same definition for targets: each target within public bounds counts as shares of the two ends."""

    scaling: Scaling
    n_classes: int = 2
    theorem: ClassVar[int] = 9
    of_labels: ClassVar[bool] = False
    least_difference: ClassVar[float] = 2.0**-5

    def encoded(self, X: NDArray, y: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        shares = rowwise(self._shares, y)
        return X, shares, shares

    def _shares(self, y: NDArray) -> Array:
        # Each target is mapped separately, to a multiple of the step in [0, 1].
        return np.asarray(np.rint((self.scaling.scaled(y) + 1) / (2 * SHARE_STEP)) * SHARE_STEP)

    def values(self, shares: Array) -> Array:
        """Map shares to targets."""
        lower, upper = self.scaling.lower, self.scaling.upper
        return np.clip(lower * (1 - shares) + upper * shares, lower, upper)

    def mechanism(
        self, epsilon: float, delta: float, share: float, n_trees: int, n_leaves: int
    ) -> tuple[Mechanism, PrivacyEvent]:
        size = 2 * n_trees * n_leaves + 1
        if delta > 0 or epsilon == math.inf:
            return l2_mechanism(epsilon, delta, share, leaf_shares_l2(n_trees), size)
        epsilon_of_release = pure_share(epsilon, share)
        return l1_mechanism(epsilon_of_release, leaf_shares_l1(n_trees), size), PureEvent(epsilon_of_release)

    def within(self, located: Located) -> tuple[Targets, tuple[Array, float]]:
        """Return the outcome for the released range, and the totals of both ends with the noise in each."""
        share = (float(located.mean[0]) + 1) / 2
        totals = located.count * np.array([1 - share, share])
        return Targets(located.targets), (totals, located.count * float(located.deviation[0]) / math.sqrt(2))

    def sums(self, mechanism: Mechanism, forest: Forest, X: NDArray, y: NDArray, route: Router | None = None) -> Array:
        route, size = route or forest.router(many_rows(X)), forest.n_leaves

        def block(rows: NDArray, shares: Array) -> Array:
            out = np.empty((forest.n_trees, 2 * size + 1))
            # It is rounded down, because the theorem covers this case only.
            out[:, -1] = np.floor(shares * (1 - shares) / SHARE_STEP).sum()
            for sums_of_tree, leaves in zip(out, route(rows), strict=True):
                # Rows that stay in an inner node have numbers after the leaves, and are not counted.
                sums_of_tree[0:-1:2] = np.bincount(leaves, weights=(1 - shares) / SHARE_STEP, minlength=size)[:size]
                sums_of_tree[1:-1:2] = np.bincount(leaves, weights=shares / SHARE_STEP, minlength=size)[:size]
            return out

        # All terms are integers, so that sums are exact.
        sums = sum_over_rows(block, X, y, block_rows=ROUTED) * SHARE_STEP
        spread = spread_weight(forest.n_trees, mechanism.norm) * sums[0, -1]
        return within_reach(mechanism, np.append(sums[:, :-1].ravel(), spread))

    def losses(self, prior: Array, dispersion: float) -> Callable[[Array, NDArray], Array]:
        # The unit follows from released numbers.
        variance = dispersion * float(prior[0] * prior[1])
        return partial(squared_losses, largest=min(_LARGEST_LOSS * variance, 1.0))

    def difference(self, prior: Array, dispersion: float, n_weights: int) -> float:
        # With few weights, gradients beyond one standard deviation would be scaled down, which biases means.
        deviation = math.sqrt(dispersion * float(prior[0] * prior[1])) * max(1.0, 4 / math.sqrt(n_weights))
        return min(max(deviation, self.least_difference), 1.0)

    def prior(self, totals: Array, noise: float) -> Array:
        # The mean is shrunk to the middle of the bounds, depending on the ratio of its noise to the variance of the
        # uniform distribution on the bounds. No share is 0.
        count = max(float(totals.sum()), noise, 1.0)
        flat = 12 * noise**2 / count + 1 / 8
        share = (max(min(float(totals[1]), count), 0.0) + flat / 2) / (count + flat)
        return np.array([1 - share, share])

    def dispersion(
        self, extra: Array, mechanism: Mechanism, n_trees: int, totals: Array, spread: float
    ) -> tuple[float, float]:
        # If v has mean q and n values, the sum of v(1 - v) is n(q(1 - q) - variance).
        weight = spread_weight(n_trees, mechanism.norm)
        count, q = max(float(totals.sum()), 1.0), self.prior(totals, spread)[1]
        largest = count * q * (1 - q)
        ratio = 1 - float(extra[0]) / weight / largest
        margin = (math.sqrt(coordinate_variance(mechanism)) / weight + spread) / largest
        ratio, bound = np.clip([ratio, ratio + margin], _LEAST_DISPERSION, 1.0)
        return float(ratio), float(bound)


Outcome = Labels | Targets
