r"""A private choice of pairs of columns, by how the residuals of the curves so far add up in cells of two columns.

The score of a pair is the norm of the sums of residuals in its cells, from which released counts take away what one
column alone can explain. One record moves each score by 1 at most, however many cells there are. The exponential
mechanism chooses among the pairs and "none", so that its cost does not depend on the number of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..accounting import GaussianEvent, PrivacyEvent, bounded_range_epsilon
from ..mechanisms import GroupChoices
from ..release.session import Release, ReleaseSession, Reserved
from ..release.theorems import Theorem
from ..schema.columns import Codes, Columns
from ..sensitivity import truncate
from ._fine import split_for_pairs
from ._groups import FINE_PAIR_CELLS, GroupedLayout
from ._plans import Cells

Array = NDArray[np.float64]
Places = NDArray[np.intp]

#: Pairs that are chosen, at most.
MOST_PAIRS = 2

#: Cells of a column in the scores, at most.
SCORE_CELLS = 16

#: Parts of the budget, of the square of the GDP parameter, for one choice.
LEAST_SHARE, MOST_SHARE = 0.001, 0.05

#: The noise of a choice is to be below this part of the largest score that is likely, if the budget allows that.
NOISE_TO_REACH = 0.15

#: The largest score that is likely, over the one of a pair that decides every residual.
REACH = 0.7

#: "None" has the score of so many standard deviations of sampling in the residuals, and of the noise in the fit.
SAMPLING, FIT_NOISE = 2.2, 5.8

# Residuals are multiples of this, rounded towards 0, so that their sums are exact.
_RESIDUAL_STEP = 2.0**-20

# A score is off by less than 2**-13 for up to 2**30 records.
_ROUNDING = 2.0**-12

# Parts of the budget are rounded down, so that together they are never more than the whole.
_BELOW = 1 - 2.0**-40

CURVES = "curves"

_THEOREM = Theorem("Additive models", 6)


def score_sensitivity() -> float:
    """Bound what one record adds to the score of one pair, rounding included.

    A record adds its residual, of size at most 1, to the sum of one cell of the pair. The score is the norm of a linear
    image of the sums, which makes none of these cells longer than 1. By the triangle inequality, a record moves the
    score by 1 at most, and records in rare cells of both columns nearly attain that.
    """
    return 1.0 + _ROUNDING


def score_cells(counts: Array, ordered: bool) -> Places:
    """Merge the cells of a column, by released counts, and return the number of the merged cell of each."""
    kept = np.maximum(counts, 0.0) + 1e-9
    if ordered:
        middles = (np.cumsum(kept) - kept / 2) / kept.sum()
        cells = np.minimum((middles * SCORE_CELLS).astype(np.intp), SCORE_CELLS - 1)
    else:
        # The rarest categories share the last cell.
        cells = np.empty(len(kept), dtype=np.intp)
        cells[np.argsort(-kept, kind="stable")] = np.minimum(np.arange(len(kept)), SCORE_CELLS - 1)
    found: Places = np.unique(cells, return_inverse=True)[1].reshape(-1)
    return found


@dataclass(frozen=True, eq=False)
class PairChoice:
    """Plan of the choices of pairs, from public parameters and released counts."""

    cells: tuple[Places, ...]  # For each column, the merged cell of each cell.
    shares: tuple[Array, ...]  # For each column, the shares of records in merged cells.
    pairs: tuple[tuple[int, int], ...]
    share: float  # Part of the budget for each choice.
    mu: float  # GDP parameter of each choice.
    none: float  # The score of "none".

    @classmethod
    def of(
        cls, counts: list[Array], ordered: tuple[bool, ...], total: float, mu: float, norm: float, spread: float
    ) -> PairChoice | None:
        """Return the plan for a fit with the parameter `mu`; None if no pair is likely to pay."""
        # `norm` is that of the rows of the fit, and `spread` bounds the standard deviation of residuals.
        cells = tuple(score_cells(own, kind) for own, kind in zip(counts, ordered, strict=True))
        shares = []
        for own, places in zip(counts, cells, strict=True):
            kept = np.bincount(places, np.maximum(own, 0.0))
            shares.append(kept / kept.sum() if kept.sum() > 0 else np.full(len(kept), 1 / len(kept)))
        pairs = tuple(pair for pair in combinations(range(len(cells)), 2) if all(len(shares[j]) > 1 for j in pair))
        if not pairs:
            return None
        reach = REACH * spread * total * max(float(np.linalg.norm(np.outer(shares[a], shares[b]))) for a, b in pairs)
        several = 1 + math.log(len(pairs))
        # The part of the budget for which the noise in the best of all pairs is within reach.
        needed = (several * cls._scale(mu) / (NOISE_TO_REACH * reach)) ** 2
        share = min(max(needed, LEAST_SHARE), MOST_SHARE)
        own_mu = mu * math.sqrt(share) * _BELOW
        none = SAMPLING * spread * math.sqrt(total) + FIT_NOISE * norm / mu + several * cls._scale(own_mu)
        return cls(cells, tuple(shares), pairs, share, own_mu, none) if none <= reach else None

    @staticmethod
    def _scale(mu: float) -> float:
        return 2 * score_sensitivity() / bounded_range_epsilon(mu)

    def release(self, index: int) -> Release:
        """Return the plan of one choice."""
        mechanism = GroupChoices(bounded_range_epsilon(self.mu), score_sensitivity(), bounded_range=True)
        return Release(f"pair {index + 1}", mechanism, self.share, _THEOREM)

    def scores(self, codes: Codes, residuals: Array) -> Array:
        """Return the score of each pair, from the cells of the records and residuals in [-1, 1]."""
        residuals = truncate(np.clip(residuals, -1.0, 1.0), _RESIDUAL_STEP)
        # What is in no cell of a column counts in none of its pairs.
        merged = [np.append(own, len(p))[of_records] for own, p, of_records in zip(self.cells, self.shares, codes, strict=True)]
        found = []
        for a, b in self.pairs:
            p, q = self.shares[a], self.shares[b]
            places = merged[a] * (len(q) + 1) + merged[b]
            sums = np.bincount(places, residuals, (len(p) + 1) * (len(q) + 1)).reshape(len(p) + 1, -1)[:-1, :-1]
            found.append(np.linalg.norm(_without(p) @ sums @ _without(q)) / (_longest(p) * _longest(q)))
        return np.array(found)

    def chosen(self, reserve: Reserve, scores: Array) -> list[tuple[int, int]]:
        """Choose one pair after the other, until "none" is chosen, and return them."""
        found: list[tuple[int, int]] = []
        for index in range(MOST_PAIRS):
            # An interaction also shows in pairs with one of its columns.
            taken = {j for pair in found for j in pair}
            left = [k for k, pair in enumerate(self.pairs) if not taken & {*pair}]
            release = self.release(index)
            reserve.spend(self.share, (release,), (GaussianEvent(self.mu),))
            place = int(reserve.session.release(release.label, np.append(self.none, scores[left])[None])[0])
            if place == 0:
                break
            found.append(self.pairs[left[place - 1]])
        return found


class Reserve:
    """The part of the budget that is left for the curves. Each part that is spent was fixed by earlier releases."""

    def __init__(self, session: ReleaseSession, mu: float, share: float) -> None:
        # `mu` is the GDP parameter of the whole fit.
        self.session, self.share, self._mu = session, share, mu

    @property
    def event(self) -> GaussianEvent:
        """What the rest may cost: a little more than the mechanisms that will use it, which are rounded down as well."""
        return GaussianEvent(self._mu * math.sqrt(self.share) * (1 - 2.0**-41))

    def spend(self, share: float, releases: Sequence[Release], events: Sequence[PrivacyEvent]) -> None:
        """Plan releases for a part of what is left."""
        self.share = (self.share - share) * _BELOW
        left = self.event
        self.session.refine(CURVES, [*releases, reserved_release(left, self.share)], [*events, left])

    def spend_all(self, releases: Sequence[Release], events: Sequence[PrivacyEvent]) -> None:
        """Plan releases for all that is left."""
        self.session.refine(CURVES, releases, events)


def reserved_release(event: GaussianEvent, share: float) -> Release:
    """Return the plan of a part of the budget that later choices and curves use."""
    return Release(CURVES, Reserved(event), share, _THEOREM)


def _without(shares: Array) -> Array:
    """Return the projection along the shares: sums that are proportional to them are effects of the other column."""
    found: Array = np.eye(len(shares)) - np.outer(shares, shares) / float(shares @ shares)
    return found


def _longest(shares: Array) -> float:
    """Return the largest norm of a cell after the projection."""
    return math.sqrt(1 - float(shares.min()) ** 2 / float(shares @ shares))


def with_pairs(
    cells: Cells,
    coarse: Columns,
    pairs: list[tuple[int, int]],
    X: list[NDArray],
    smoothness: float | None,
    noise: float,
    finer: Collection[int] = (),
) -> tuple[Cells, GroupedLayout]:
    """Return the records in the cells that these pairs have, and the groups of features for them."""
    # `coarse` are the columns in bins, and `finer` those with other cells. Counts of bins are divided evenly.
    columns = cells.columns
    coarse = coarse.with_edges((j, columns.kinds[j]) for j in coarse.numeric)
    split = split_for_pairs(replace(columns, pairs=tuple(pairs)), FINE_PAIR_CELLS, finer)
    divided = tuple(j for j, (n, m) in enumerate(zip(split.sizes, columns.sizes, strict=True)) if n > m)
    layout = GroupedLayout.of(split, replace(coarse, pairs=tuple(pairs)), smoothness, noise, finer, divided)
    counts = [layout.in_equal_parts(j, own) if j in divided else own for j, own in enumerate(cells.counts)]
    return replace(cells, columns=split, codes=split.codes(X), counts=counts), layout
