"""Class counts of leaves: their sensitivity, their mechanism, and the counting; and mechanisms for choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..accounting import GaussianEvent, PrivacyEvent, PureEvent, bounded_range_epsilon, gaussian_mu
from ..mechanisms import (
    BestChoices,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    GroupChoices,
    Mechanism,
    NoNoise,
    pure_share,
)
from ..parts.arrays import many_rows
from ..sensitivity import sum_over_rows
from ._structure import ROUTED

Array = NDArray[np.float64]


class Structure(Protocol):
    """Trees without the numbers in their leaves."""

    @property
    def n_trees(self) -> int: ...

    @property
    def n_leaves(self) -> int: ...

    def router(self, n_rows: int) -> Callable[[NDArray], Iterable[NDArray[np.intp]]]: ...


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
    part = pure_share(epsilon, share)
    return DiscreteLaplaceMechanism(part, leaf_counts_l1(n_trees), size), PureEvent(part)


def choice_mechanism(epsilon: float, delta: float, share: float, sensitivity: float) -> tuple[Mechanism, PrivacyEvent]:
    """Return the mechanism for choices by scores that one record moves in one direction only."""
    if epsilon == math.inf:
        return BestChoices(sensitivity), PureEvent(epsilon)
    if delta > 0:
        mu = gaussian_mu(epsilon, delta) * math.sqrt(share)
        choice = GroupChoices(bounded_range_epsilon(mu), sensitivity, monotone=True, bounded_range=True)
        return choice, GaussianEvent(mu)
    part = pure_share(epsilon, share)
    return GroupChoices(part, sensitivity, monotone=True), PureEvent(part)


def class_counts(codes: NDArray[np.intp], n_classes: int) -> Array:
    """Count classes, with other labels last. A record adds 1 to one count, as in `leaf_counts_l1` for one tree."""

    def block(codes: NDArray[np.intp]) -> NDArray[np.intp]:
        return np.bincount(np.where(codes < 0, n_classes, codes), minlength=n_classes + 1)

    return sum_over_rows(block, codes, block_rows=2**17).astype(np.float64)


def leaf_counts(structure: Structure, X: NDArray, codes: NDArray[np.intp], n_classes: int) -> Array:
    """Count classes in the leaves of all trees, of shape (n_trees, n_leaves, n_classes)."""
    shape = structure.n_trees, structure.n_leaves, n_classes
    route, size = structure.router(many_rows(X)), structure.n_leaves * n_classes

    def block(rows: NDArray, classes: NDArray) -> NDArray:
        out = np.empty((structure.n_trees, size), dtype=np.intp)
        for counts, cells in zip(out, route(rows), strict=True):
            cells *= n_classes
            cells += classes
            # Rows that stay in an inner node have numbers after the leaves, and are not counted.
            counts[:] = np.bincount(cells, minlength=size)[:size]
        return out

    return sum_over_rows(block, X, codes, block_rows=ROUTED).reshape(shape).astype(np.float64)
