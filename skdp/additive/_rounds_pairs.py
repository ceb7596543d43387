"""Two rounds of perturbed objectives, with a choice of pairs of columns between the rounds."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..accounting import gaussian_mu
from ..parts.arrays import rowwise
from ..release.session import PrivacyGuarantee, ReleaseSession
from ..schema.columns import Codes, Columns
from ._engines import ObjectiveEngine
from ._groups import GroupedLayout, default_weights, mean_squares
from ._pairs import PairChoice, Reserve, reserved_release, with_pairs
from ._plans import Cells
from ._rounds import FIRST_ROUND, Fitted, RoundsEngine
from ._scores import logits
from ._terms import sums_of_values

Array = NDArray[np.float64]

# Approximate standard deviation of the residuals of labels.
_SPREAD = 0.35

# A pair is useful if it explains this part of the variance of residuals: the first number, and more for much noise.
_PART, _NOISE_PART = 0.01, 0.002


@dataclass(frozen=True, eq=False)
class Found:
    """Released rounds, and the private cells of the records."""

    engine: RoundsEngine
    layout: GroupedLayout
    cells: Cells
    fits: list[Fitted]


@dataclass(frozen=True, eq=False)
class PairedRounds:
    """Two rounds and the choice between them, described by public values."""

    rounds: RoundsEngine
    plain: ObjectiveEngine | None  # For few records, with rounds="auto".
    coarse: Columns
    finer: Collection[int]
    smoothness: float | None
    noise: float  # Noise multiplier.

    def plan(self) -> PrivacyGuarantee:
        rounds = self.rounds
        release = reserved_release(rounds.event, 1 - rounds.reserved)
        return PrivacyGuarantee(rounds.epsilon, rounds.delta, (rounds.event,), (release,))

    def run(self, session: ReleaseSession, cells: Cells, X: Any, labels: Any, noise: float) -> ObjectiveEngine | Found:
        """Release two rounds, and pairs between them if one is likely to be useful. For few records, plan `plain`."""
        # `noise` is that of the counts.
        rounds, layout, total, codes = self.rounds, self.rounds.layout, cells.total, cells.codes
        mu = gaussian_mu(rounds.epsilon, rounds.delta)
        reserve = Reserve(session, mu, 1 - rounds.reserved)
        few = self.plain is not None and rounds.has_few(total)
        choice = None
        if not few:
            part = _PART + _NOISE_PART / mu
            choice = PairChoice.of(cells.counts, cells.columns.ordered, total, mu, _SPREAD, part)
        shares = layout.probabilities(cells.counts, noise)
        if choice is None:
            engine = self.plain if self.plain is not None and few else rounds
            guarantee = engine.plan()
            reserve.spend_all(guarantee.releases, guarantee.events)
            if isinstance(engine, ObjectiveEngine):
                return engine
            return Found(engine, layout, cells, engine.run(session, codes, labels, shares, total))
        share = FIRST_ROUND * (reserve.share - choice.share)
        first = rounds.round(1, share)
        reserve.spend(share, first.releases, first.events)
        weights = default_weights(layout, mean_squares(layout, shares))
        fit = rounds.fitted(first, shares, weights, total).solved(session, codes, labels, [])
        residuals = rowwise(partial(_residuals, fit.tables(), fit.intercept, first.margin), codes, labels)
        pairs = choice.chosen(reserve, choice.scores(codes, residuals))
        if pairs:
            cells, layout = with_pairs(cells, self.coarse, pairs, X, self.smoothness, self.noise, self.finer)
            shares, codes = layout.probabilities(cells.counts, noise), rowwise(layout.codes, cells.codes)
        last = replace(rounds, layout=layout).round(2, reserve.share)
        reserve.spend_all(last.releases, last.events)
        engine = replace(rounds, layout=layout, given=(first, last))
        fit = replace(engine.fitted(first, shares, fit.features.weights, total), theta=fit.theta)
        learned = fit.next_weights()
        weights = default_weights(layout, mean_squares(layout, shares))
        # Groups of pairs keep their default weights.
        weights[: len(learned)] = learned * weights[: len(learned)].sum()
        second = engine.fitted(last, shares, weights, total)
        return Found(engine, layout, cells, [fit, second.solved(session, codes, labels, [fit])])


def _residuals(tables: list[Array], intercept: float, margin: float, codes: Codes, labels: NDArray[np.intp]) -> Array:
    out: Array = (labels == 1) - special.expit(logits(sums_of_values(tables, intercept, codes), margin))
    return out
