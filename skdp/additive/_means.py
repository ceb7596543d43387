r"""Curves from noisy means of the targets in groups of cells, for ``delta = 0``.

Each term divides the records among groups of its cells. Two numbers for each group are released: the sums of
:math:`1-u` and of :math:`u`, where :math:`u` is the target, mapped from [-1, 1] to [0, 1]. A record has the weights
:math:`1-u` and :math:`u` in one group of each term, or none if it is in no cell of the term. Therefore adding or
removing a record moves all sums by at most the number of terms, in L1 norm.

The curve of a term is the posterior mean of a Gaussian process. Its covariance is that of the public features of the
cells, times a number that maximises the likelihood of the released means. If this number is 0, the curve is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import PureEvent
from ..mechanisms import Mechanism, coordinate_variance, l1_mechanism, pure_share, within_reach
from ..parts.arrays import PartedArray, folded
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem
from ..schema.columns import Codes, Columns
from ._terms import Layout, merged

Array = NDArray[np.float64]

MEANS = "targets in groups of cells"

#: Largest number of groups of ordered cells, of one column and of each column of a pair.
GROUPS, PAIR_GROUPS = 8, 4

_THEOREM = Theorem("Additive models", 4)

# Bits to which weights are rounded.
_BITS = 20

# The variance of targets within a group, in scaled units, and candidates for the variance of a curve.
_WITHIN = 0.15
_VARIANCES = np.geomspace(1e-4, 0.5, 14)

# A curve is 0 unless another one has a log-likelihood that is larger by this number.
_CLEARER = 1.0


def grouped_cells(size: int, ordered: bool, n_declared: int, most: int) -> NDArray[np.intp]:
    """Return the group of each cell. Cells after the declared ones are groups of their own."""
    if not ordered:
        return np.arange(size)
    first = merged(n_declared, most)
    return np.concatenate([first, first.max(initial=-1) + 1 + np.arange(size - n_declared)])


@dataclass(frozen=True, eq=False)
class MeanEngine:
    """Curves from noisy means in groups, described by public values."""

    epsilon: float
    reserved: float  # The part of the budget that other releases use.
    layout: Layout
    groups: tuple[NDArray[np.intp], ...]  # The group of each cell of each term.
    sizes: tuple[int, ...]  # Number of groups of each term. Some may have no cell.

    @classmethod
    def of(cls, epsilon: float, reserved: float, layout: Layout, columns: Columns) -> MeanEngine:
        groups, sizes = [], []
        for term in layout.terms:
            most = GROUPS if len(term.columns) == 1 else PAIR_GROUPS
            joint, n_groups = np.zeros(1, dtype=np.intp), 1
            for j, size in zip(term.columns, term.shape, strict=True):
                # Cells of pairs are merged. Those after the declared ones are then groups only if they have no others.
                n_declared = columns.declared.get(j, size) if size == columns.sizes[j] else size
                own = grouped_cells(size, columns.ordered[j], n_declared, most)
                # The number of declared cells is not known before the names of columns are.
                limit = min(size, most + 2) if columns.ordered[j] else size
                joint, n_groups = (joint[:, None] * limit + own).ravel(), n_groups * limit
            groups.append(joint)
            sizes.append(n_groups)
        return cls(epsilon, reserved, layout, tuple(groups), tuple(sizes))

    @property
    def constant(self) -> float:
        """The constant feature."""
        return self.layout.constant

    @cached_property
    def mechanism(self) -> Mechanism:
        part = pure_share(self.epsilon, 1 - self.reserved)
        return l1_mechanism(part, float(len(self.groups)), 2 * sum(self.sizes))

    def plan(self) -> PrivacyGuarantee:
        release = Release(MEANS, self.mechanism, 1 - self.reserved, _THEOREM)
        event = PureEvent(pure_share(self.epsilon, 1 - self.reserved))
        return PrivacyGuarantee(self.epsilon, 0.0, (event,), (release,))

    def run(self, session: ReleaseSession, codes: Any, targets: Any, mean: float) -> tuple[Array, Array, Array]:
        """Return coefficients, the intercept, and the effect of the noise on both, from the mean of all targets."""
        sums = partial(weights_in_groups, self.groups, self.sizes)
        weights = folded(sums, [codes, targets]) if isinstance(codes, PartedArray) else sums(codes, targets)
        released = session.release(MEANS, within_reach(self.mechanism, weights)).reshape(-1, 2)
        noise = math.sqrt(coordinate_variance(self.mechanism))
        ends = np.cumsum([0, *self.sizes]).tolist()
        coef, moved = np.zeros(self.layout.n_features), np.zeros((self.layout.n_features + 1, ends[-1]))
        curves: dict[int, tuple[Array, Array]] = {}
        start = mean
        for t, (term, where, every) in enumerate(zip(self.layout.terms, self.layout.slices, self.groups, strict=True)):
            used, groups = np.unique(every, return_inverse=True)
            used += ends[t]
            own, rows = released[used], term.rows[:-1]
            shares = shares_of_cells(groups, own)
            expected = np.zeros(len(groups))
            if len(term.columns) == 2:
                # A pair explains what is left of the targets after the curves of its columns.
                first, second = (averaged(*curves[j], cells) for j, cells in zip(term.columns, term.maps, strict=True))
                expected = np.add.outer(first, second).ravel()
            mean_row = shares @ rows
            beta, effect = posterior(rows - mean_row, groups, shares, own, mean + expected, noise)
            coef[where], moved[where, used] = beta, effect
            moved[-1, used] = -(mean_row @ effect) / self.constant
            start -= float(mean_row @ beta)
            if len(term.columns) == 1:
                curves[term.columns[0]] = (rows - mean_row) @ beta, shares
        return coef[None, :], np.array([start]), moved


def shares_of_cells(groups: NDArray[np.intp], released: Array) -> Array:
    """Return the shares of the records in cells, which are equal in the cells of a group."""
    # An empty group has a small share.
    counts = np.maximum(released.sum(axis=1), 1e-3 * max(float(released.sum()), 1.0))
    shares: Array = (counts / np.bincount(groups, minlength=len(counts)))[groups]
    return shares / shares.sum()


def averaged(curve: Array, shares: Array, cells: NDArray[np.int32]) -> Array:
    """Return the mean of a column's curve in each merged cell."""
    size = int(cells[-1])
    out: Array = np.bincount(cells[:-1], shares * curve, minlength=size) / np.bincount(
        cells[:-1], shares, minlength=size
    )
    return out


def weights_in_groups(
    groups: tuple[NDArray[np.intp], ...], sizes: tuple[int, ...], codes: Codes, targets: NDArray
) -> Array:
    """Divide each record between two numbers of its group in each term, and return the sums.

    In each term, a record has the weights :math:`1-u` and :math:`u` of one group, or none. :math:`u` is rounded to a
    multiple of :math:`2^{-20}`. The weights are not negative, and their sum is at most 1. Therefore adding or removing
    a record moves the sums by at most the number of terms, in L1 norm, and every record that is in a cell of each term
    attains this bound. Sums of such multiples are exact in doubles.
    """
    u = np.rint((np.clip(np.nan_to_num(targets, nan=0.0), -1.0, 1.0) / 2 + 0.5) * 2.0**_BITS) * 2.0**-_BITS
    out = []
    for own, size, cells in zip(groups, sizes, codes, strict=True):
        places = np.append(own, size)[cells]
        weights = [np.bincount(places, weight, minlength=size + 1)[:size] for weight in (1 - u, u)]
        out.append(np.stack(weights, axis=1).ravel())
    return np.concatenate(out)


def posterior(
    rows: Array, groups: NDArray[np.intp], shares: Array, released: Array, expected: Any, noise: float
) -> tuple[Array, Array]:
    """Return the coefficients of centred rows of cells, and the effect of the noise in each group on them."""
    size = len(released)
    mean_of = np.zeros((size, len(groups)))
    mean_of[groups, np.arange(len(groups))] = shares
    prior = mean_of.sum(axis=1)
    mean_of /= prior[:, None]
    of_groups = mean_of @ rows
    scale = float(prior @ (of_groups**2).sum(axis=1))
    if scale <= 0:
        return np.zeros(rows.shape[1]), np.zeros((rows.shape[1], size))
    # The noise in a difference and in a number of records is sqrt(2) times that of each sum.
    before = mean_of @ np.broadcast_to(np.asarray(expected, dtype=np.float64), (len(groups),))
    count = np.maximum(released.sum(axis=1), math.sqrt(2) * noise + 1.0)
    of_noise = math.sqrt(2) * noise * np.sqrt(1 + before**2) / count
    found = np.clip((released[:, 1] - released[:, 0]) / count - before * released.sum(axis=1) / count, -2.0, 2.0)
    variance = _WITHIN / count + of_noise**2
    centre = np.eye(size) - prior
    kernel, found = of_groups @ of_groups.T / scale, centre @ found
    best, largest = 0.0, _CLEARER - 0.5 * float(np.log(variance).sum() + found**2 @ (1 / variance))
    for candidate in _VARIANCES:
        matrix = candidate * kernel + np.diag(variance)
        likelihood = -0.5 * float(np.linalg.slogdet(matrix)[1] + found @ np.linalg.solve(matrix, found))
        if likelihood > largest:
            best, largest = float(candidate), likelihood
    gain = best / scale * of_groups.T @ np.linalg.inv(best * kernel + np.diag(variance)) @ centre
    return gain @ found, gain * of_noise
