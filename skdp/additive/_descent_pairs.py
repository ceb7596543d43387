"""Gradient steps of a regression that stop once, to choose pairs of columns by the residuals that are left."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..accounting import GaussianEvent, gaussian_mu
from ..release.session import PrivacyGuarantee, ReleaseSession
from ..schema.columns import Codes
from ..solvers.descent import GRADIENTS
from ._engines import GradientEngine
from ._groups import Centred
from ._pairs import PairChoice, Reserve, reserved_release, with_pairs
from ._plans import Cells

Array = NDArray[np.float64]

#: Least mean square of a group's rows that weights of groups take into account. Where nearly all records share a bin,
#: the noise in other bins must not be scaled up.
LEAST_SQUARE = 0.2

#: One step in so many comes before the choice.
FIRST_PART = 3

# The parameter of steps is a difference of squares, which is rounded more than the parts are.
_BELOW = 1 - 2.0**-30

# The steps after the choice.
_LATER = f"{GRADIENTS} with pairs"


@dataclass(frozen=True, eq=False)
class Found:
    """Coefficients that were released, what they are coefficients of, and the records' cells."""

    engine: GradientEngine
    features: Centred
    cells: Cells
    codes: Codes  # Private: the cells of the records in the terms.
    coef: Array
    intercept: Array


@dataclass(frozen=True, eq=False)
class PairedDescent:
    """Describe the steps before and after the choice, by public values without the data."""

    plain: GradientEngine  # All steps without a choice.
    smoothness: float
    noise: float  # Noise multiplier.

    def plan(self) -> PrivacyGuarantee:
        plain = self.plain
        (event,) = plain.plan().events
        assert isinstance(event, GaussianEvent)
        release = reserved_release(event, 1 - plain.reserved)
        return PrivacyGuarantee(plain.epsilon, plain.delta, (event,), (release,))

    def run(
        self,
        session: ReleaseSession,
        cells: Cells,
        X: list[NDArray],
        targets: Array,
        features: Centred,
        noise: float,
    ) -> Found:
        """Take the steps; choose pairs after the first ones if a pair is likely to pay."""
        # `noise` is that of the counts.
        plain, codes, total = self.plain, cells.codes, cells.total
        mu = gaussian_mu(plain.epsilon, plain.delta)
        reserve = Reserve(session, mu, 1 - plain.reserved)
        choice = None
        if plain.n_steps >= FIRST_PART:
            choice = PairChoice.of(cells.counts, cells.columns.ordered, total, mu, plain.layout.norm, 1.0)
        if choice is None:
            guarantee = plain.plan()
            reserve.spend_all(guarantee.releases, guarantee.events)
            coef, intercept = plain.run(session, codes, targets, total, features)
            return Found(plain, features, cells, codes, coef, intercept)
        share = (reserve.share - choice.share) / FIRST_PART
        first = replace(plain, n_steps=plain.n_steps // FIRST_PART, reserved=1 - share * _BELOW)
        guarantee = first.plan()
        reserve.spend(share, guarantee.releases, guarantee.events)
        coef, intercept = first.run(session, codes, targets, total, features)
        residuals = targets - intercept[0]
        for own, values in zip(codes, features.tables(coef[0]), strict=True):
            residuals -= values.take(own)
        pairs = choice.chosen(reserve, choice.scores(codes, np.sign(residuals)))
        theta, later = np.append(coef[0], intercept[0] / first.constant), features
        if pairs:
            cells, layout = with_pairs(cells, cells.columns, pairs, X, self.smoothness, self.noise)
            codes = layout.codes(cells.codes)
            later = Centred.by_default(layout, layout.probabilities(cells.counts, noise), LEAST_SQUARE)
            theta = features.carried(theta, later)
        second = replace(
            plain,
            layout=later.layout,
            n_steps=plain.n_steps - first.n_steps,
            reserved=1 - reserve.share * _BELOW,
            before=first,
            label=_LATER,
        )
        guarantee = second.plan()
        reserve.spend_all(guarantee.releases, guarantee.events)
        coef, intercept = second.run(session, codes, targets, total, later, theta[None])
        return Found(second, later, cells, codes, coef, intercept)
