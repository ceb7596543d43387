r"""A private choice of pairs of columns, by sums of residuals in the cells of two columns.

The score of a pair is the norm of the sums of residuals in its cells. Released counts remove the part that one column
alone explains. One record changes each score by at most 1, for any number of cells. The exponential mechanism chooses
among the pairs and "none". Therefore its cost does not depend on the number of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import GaussianEvent, PrivacyEvent, bounded_range_epsilon
from ..mechanisms import BestChoices, GroupChoices, Mechanism
from ..parts.arrays import PartedArray, folded, rowwise
from ..release.session import Release, ReleaseSession, Reserved
from ..release.theorems import Theorem
from ..schema.columns import Codes, Columns
from ..sensitivity import truncate
from ._fine import split_for_pairs
from ._groups import FINE_PAIR_CELLS, GroupedLayout
from ._plans import Cells

Array = NDArray[np.float64]
Places = NDArray[np.intp]

#: Largest number of chosen pairs.
MOST_PAIRS = 2

#: Largest numbers of cells of a column in the scores. Few cells are for smooth interactions, and many cells for others.
RESOLUTIONS = 4, 16

#: Possible shares of the budget (of the squared GDP parameter) for one choice.
LEAST_SHARE, MOST_SHARE = 0.001, 0.06

#: If the budget is sufficient, the noise of a choice is below this part of the largest likely score.
NOISE_TO_REACH = 0.02

#: The largest likely score, divided by the score of a pair that determines all residuals.
REACH = 0.7

#: The score of a pair must exceed this many standard deviations of the sampling error of residuals.
SAMPLING = 1.6

# Residuals are rounded towards 0 to multiples of this number, so that their sums are exact.
_RESIDUAL_STEP = 2.0**-20

# The error of a score is less than 2**-13 for up to 2**30 records.
_ROUNDING = 2.0**-12

# Parts of the budget are rounded down, so that their sum never exceeds the budget.
_BELOW = 1 - 2.0**-40

CURVES = "curves"

_THEOREM = Theorem("Additive models", 6)


def score_sensitivity() -> float:
    """Bound what one record adds to the score of one pair, rounding included.

    A record adds its residual, of size at most 1, to the sum of one cell of the pair. The score is the norm of a linear
    image of the sums, and the image of each cell has a norm of at most 1. By the triangle inequality, a record changes
    the score by at most 1. Records in rare cells of both columns nearly attain the bound.
    """
    return 1.0 + _ROUNDING


def score_cells(counts: Array, ordered: bool, most: int) -> Places:
    """Merge the cells of a column, by released counts, and return the number of the merged cell of each."""
    kept = np.maximum(counts, 0.0) + 1e-9
    if ordered:
        middles = (np.cumsum(kept) - kept / 2) / kept.sum()
        cells = np.minimum((middles * most).astype(np.intp), most - 1)
    else:
        # The rarest categories share the last cell.
        cells = np.empty(len(kept), dtype=np.intp)
        cells[np.argsort(-kept, kind="stable")] = np.minimum(np.arange(len(kept)), most - 1)
    found: Places = np.unique(cells, return_inverse=True)[1].reshape(-1)
    return found


@dataclass(frozen=True, eq=False)
class Merged:
    """The cells of a column for scores, from released counts."""

    places: Places  # The merged cell of each cell.
    shares: Array  # Shares of records in merged cells.

    @classmethod
    def of(cls, counts: Array, ordered: bool, most: int) -> Merged:
        places = score_cells(counts, ordered, most)
        kept = np.bincount(places, np.maximum(counts, 0.0))
        return cls(places, kept / kept.sum() if kept.sum() > 0 else np.full(len(kept), 1 / len(kept)))

    @cached_property
    def projection(self) -> Array:
        """The projection that removes sums in proportion to the shares, which are effects of the other column alone."""
        # It is divided by the largest norm of a projected cell, so that one record changes a score by at most 1.
        found: Array = np.eye(len(self.shares)) - np.outer(self.shares, self.shares) / float(self.shares @ self.shares)
        return found / float(np.linalg.norm(found, axis=1).max())

    @cached_property
    def size(self) -> float:
        """The norm of the projected shares, with signs that no column explains."""
        return float(np.linalg.norm(self.shares * np.linalg.norm(self.projection, axis=1)))


@dataclass(frozen=True, eq=False)
class PairChoice:
    """The plan of the choices of pairs, from public parameters and released counts."""

    columns: tuple[tuple[Merged, ...], ...]  # The cells of each column, for each resolution.
    candidates: tuple[tuple[int, int, int], ...]  # A resolution and two columns.
    least: Array  # The smallest score of each candidate for which its pair is useful.
    share: float  # Part of the budget for each choice.
    mu: float  # GDP parameter of each choice.
    none: float  # A score must exceed the smallest score by this number, so that noise does not decide.

    @classmethod
    def of(
        cls, counts: list[Array], ordered: tuple[bool, ...], total: float, mu: float, spread: float, part: float
    ) -> PairChoice | None:
        """Return the plan for a fit with the GDP parameter `mu`, or None if no pair is likely to be useful."""
        # `spread` is an approximate standard deviation of residuals. A pair is useful if it explains a `part` of it.
        columns = tuple(
            tuple(Merged.of(own, kind, most) for own, kind in zip(counts, ordered, strict=True)) for most in RESOLUTIONS
        )
        # A pair explains residuals if each of its columns has two occupied cells.
        several = [j for j, own in enumerate(columns[0]) if np.count_nonzero(own.shares) > 1]
        every = [(r, a, b) for r in range(len(RESOLUTIONS)) for a, b in combinations(several, 2)]
        if not every:
            return None
        # The score of a pair that determines all residuals.
        reach = spread * total * np.array([columns[r][a].size * columns[r][b].size for r, a, b in every])
        least = np.hypot(SAMPLING * spread * math.sqrt(total), math.sqrt(part) * reach)
        deviations = 2 + math.log(len(every))
        # The share of the budget for which the noise in the best of all candidates is small.
        needed = (deviations * cls._scale(mu) / (NOISE_TO_REACH * REACH * float(reach.max()))) ** 2
        share = min(max(needed, LEAST_SHARE), MOST_SHARE)
        own_mu = mu * math.sqrt(share) * _BELOW
        none = deviations * cls._scale(own_mu)
        likely = np.flatnonzero(least + none <= REACH * reach)
        if not len(likely):
            return None
        return cls(columns, tuple(every[k] for k in likely), least[likely], share, own_mu, none)

    @staticmethod
    def _scale(mu: float) -> float:
        return 2 * score_sensitivity() / bounded_range_epsilon(mu) if mu < math.inf else 0.0

    def release(self, index: int) -> Release:
        """Return the plan of one choice."""
        mechanism: Mechanism = BestChoices(score_sensitivity())
        if self.mu < math.inf:
            mechanism = GroupChoices(bounded_range_epsilon(self.mu), score_sensitivity(), bounded_range=True)
        return Release(f"pair {index + 1}", mechanism, self.share, _THEOREM)

    def scores(self, codes: Any, residuals: Any) -> Array:
        """Return the score of each candidate, from the cells of the records and residuals in [-1, 1]."""
        in_parts = isinstance(codes, PartedArray)
        sums = folded(self._sums, [codes, residuals]) if in_parts else self._sums(codes, residuals)
        found, start = [], 0
        for r, a, b in self.candidates:
            first, second = self.columns[r][a], self.columns[r][b]
            m, n = len(first.shares) + 1, len(second.shares) + 1
            own = sums[start : start + m * n].reshape(m, n)[:-1, :-1]
            start += m * n
            found.append(float(np.linalg.norm(first.projection @ own @ second.projection)))
        return np.array(found)

    def _sums(self, codes: Codes, residuals: Array) -> Array:
        """Return the exact sums of residuals by pairs of merged cells, for each candidate."""
        residuals = truncate(np.clip(residuals, -1.0, 1.0), _RESIDUAL_STEP)
        # Values in no cell of a column do not count in its pairs.
        merged = [
            [np.append(own.places, len(own.shares))[cells] for own, cells in zip(columns, codes, strict=True)]
            for columns in self.columns
        ]
        found = []
        for r, a, b in self.candidates:
            first, second = self.columns[r][a], self.columns[r][b]
            m, n = len(first.shares) + 1, len(second.shares) + 1
            found.append(np.bincount(merged[r][a] * n + merged[r][b], residuals, m * n))
        return np.concatenate(found)

    def chosen(self, reserve: Reserve, scores: Array) -> list[tuple[int, int]]:
        """Choose and return pairs, one after the other, until "none" is chosen."""
        found: list[tuple[int, int]] = []
        beyond = scores - self.least
        for index in range(MOST_PAIRS):
            # An interaction also shows in pairs with one of its columns.
            taken = {j for pair in found for j in pair}
            left = [k for k, (_, a, b) in enumerate(self.candidates) if not taken & {a, b}]
            if not left:
                break
            release = self.release(index)
            reserve.spend(self.share, (release,), (GaussianEvent(self.mu),))
            place = int(reserve.session.release(release.label, np.append(self.none, beyond[left])[None])[0])
            if place == 0:
                break
            _, a, b = self.candidates[left[place - 1]]
            found.append((a, b))
        return found


class Reserve:
    """The rest of the budget for the curves. Each share that is spent was determined by earlier releases."""

    def __init__(self, session: ReleaseSession, mu: float, share: float) -> None:
        # `mu` is the GDP parameter of the whole fit.
        self.session, self.share, self._mu = session, share, mu

    @property
    def event(self) -> GaussianEvent:
        """Event of the rest of the budget. Its mechanisms use slightly less, because they are rounded down."""
        return GaussianEvent(self._mu * math.sqrt(self.share) * (1 - 2.0**-41))

    def spend(self, share: float, releases: Sequence[Release], events: Sequence[PrivacyEvent]) -> None:
        """Plan releases for a share of the rest."""
        self.share = (self.share - share) * _BELOW
        left = self.event
        self.session.refine(CURVES, [*releases, reserved_release(left, self.share)], [*events, left])

    def spend_all(self, releases: Sequence[Release], events: Sequence[PrivacyEvent]) -> None:
        """Plan releases for all of the rest."""
        self.session.refine(CURVES, releases, events)


def reserved_release(event: GaussianEvent, share: float) -> Release:
    """Return the plan of a share of the budget for later choices and curves."""
    return Release(CURVES, Reserved(event), share, _THEOREM)


def with_pairs(
    cells: Cells,
    coarse: Columns,
    pairs: list[tuple[int, int]],
    X: Any,
    smoothness: float | None,
    noise: float,
    finer: Collection[int] = (),
) -> tuple[Cells, GroupedLayout]:
    """Return the cells of the records, and the groups of features, for these pairs."""
    # `coarse` are the columns in bins, and `finer` are columns with other cells. Counts of bins are divided evenly.
    columns = cells.columns
    coarse = coarse.with_edges((j, columns.kinds[j]) for j in coarse.numeric)
    split = split_for_pairs(replace(columns, pairs=tuple(pairs)), FINE_PAIR_CELLS, finer)
    divided = tuple(j for j, (n, m) in enumerate(zip(split.sizes, columns.sizes, strict=True)) if n > m)
    layout = GroupedLayout.of(split, replace(coarse, pairs=tuple(pairs)), smoothness, noise, finer, divided)
    counts = [layout.in_equal_parts(j, own) if j in divided else own for j, own in enumerate(cells.counts)]
    return replace(cells, columns=split, codes=rowwise(split.codes, X), counts=counts), layout
