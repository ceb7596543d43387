"""Gradient steps of a regression that pause once, to choose pairs of columns by their residuals."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import GaussianEvent, gaussian_mu
from ..mechanisms import SampledGaussianMechanism
from ..parts.arrays import rowwise
from ..release.session import PrivacyGuarantee, Release, ReleaseSession
from ..schema.columns import Codes
from ..solvers.descent import GRADIENTS
from ..solvers.linear_descent import rule_of
from ._engines import GRADIENT_THEOREM, GradientEngine
from ._groups import Centred
from ._pairs import PairChoice, Reserve, reserved_release, with_pairs
from ._plans import Cells

Array = NDArray[np.float64]

#: Lower limit on the mean square of a group's rows in weights of groups. If nearly all records share a bin, the noise
#: in other bins must not be scaled up.
LEAST_SQUARE = 0.2

#: The inverse of the share of steps before the choice.
FIRST_PART = 3

# A pair is useful if it explains this part of the variance of residuals: the first number, and more for much noise.
_PART, _NOISE_PART = 0.02, 0.01

# The GDP parameter of the steps is a difference of squares, whose rounding error exceeds that of its parts.
_BELOW = 1 - 2.0**-30

# Label of the steps after the choice.
_LATER = f"{GRADIENTS} with pairs"


@dataclass(frozen=True, eq=False)
class Found:
    """Released coefficients, with their engine and features, and the cells of the records."""

    engine: GradientEngine
    features: Centred
    cells: Cells
    codes: Any  # Private: the cells of the records in the terms.
    coef: Array
    intercept: Array
    lone_intercept: Array | None  # The intercept without curves.


@dataclass(frozen=True, eq=False)
class PairedDescent:
    """The plan of the steps before and after the choice, from public values."""

    plain: GradientEngine  # All steps without a choice.
    smoothness: float
    noise: float  # Noise multiplier.

    def plan(self) -> PrivacyGuarantee:
        plain = self.plain
        event = GaussianEvent(plain.step_mu * math.sqrt(plain.n_steps))
        release = reserved_release(event, 1 - plain.reserved)
        return PrivacyGuarantee(plain.epsilon, plain.delta, (event,), (release,))

    def run(
        self,
        session: ReleaseSession,
        cells: Cells,
        X: Any,
        targets: Any,
        features: Centred,
        noise: float,
    ) -> Found:
        """Take the steps, and choose pairs after the first ones if a pair is likely to be useful."""
        # `noise` is that of the counts.
        plain, codes, total = self.plain, cells.codes, cells.total
        mu = gaussian_mu(plain.epsilon, plain.delta)
        reserve = Reserve(session, mu, 1 - plain.reserved)
        n_first = plain.n_steps // FIRST_PART
        choice = None
        if n_first:
            part = _PART + _NOISE_PART / mu
            choice = PairChoice.of(cells.counts, cells.columns.ordered, total, mu, 1.0, part)
        if choice is None:
            guarantee = plain.plan()
            reserve.spend_all(guarantee.releases, guarantee.events)
            return Found(plain, features, cells, codes, *plain.run(session, codes, targets, total, features))
        engine = replace(plain, reserved=1 - (reserve.share - choice.share) * _BELOW)
        first = replace(engine.mechanism, n_steps=n_first)
        reserve.spend(*_planned(GRADIENTS, first, (1 - engine.reserved) * n_first / plain.n_steps))
        path = engine.path(total)
        gradients = engine.gradients(codes, targets, features)
        path.follow(gradients, session.steps(GRADIENTS, gradients.n_rows), first)
        theta, lone_intercept = path.weights[0], path.lone_intercept
        signs = rowwise(partial(_signs, features.tables(theta[:-1]), engine.constant * theta[-1]), codes, targets)
        pairs = choice.chosen(reserve, choice.scores(codes, signs))
        n_left = plain.n_steps - n_first
        if pairs:
            cells, layout = with_pairs(cells, cells.columns, pairs, X, self.smoothness, self.noise)
            codes = rowwise(layout.codes, cells.codes)
            wider = Centred.by_default(layout, layout.probabilities(cells.counts, noise), LEAST_SQUARE)
            engine = replace(plain, layout=layout, n_steps=n_left, reserved=1 - reserve.share * _BELOW)
            path, features = engine.path(total, features.carried(theta, wider)), wider
            gradients = engine.gradients(codes, targets, features)
        else:
            # The steps continue as without a choice.
            engine = replace(plain, reserved=1 - reserve.share * plain.n_steps / n_left * _BELOW)
        last = replace(engine.mechanism, n_steps=n_left)
        _, releases, events = _planned(_LATER, last, reserve.share)
        reserve.spend_all(releases, events)
        weights = path.follow(gradients, session.steps(_LATER, gradients.n_rows), last)
        return Found(engine, features, cells, codes, *rule_of(weights, engine.descent.settings), lone_intercept)


def _signs(tables: list[Array], intercept: float, codes: Codes, targets: Array) -> Array:
    """Return the signs of residuals."""
    residuals = targets - intercept
    for own, values in zip(codes, tables, strict=True):
        residuals -= values.take(own)
    return np.sign(residuals)


def _planned(
    label: str, mechanism: SampledGaussianMechanism, share: float
) -> tuple[float, tuple[Release], tuple[GaussianEvent]]:
    """Return a share of the budget, and the plan of the steps that use it."""
    event = GaussianEvent(mechanism.mu * math.sqrt(mechanism.n_steps))
    return share, (Release(label, mechanism, share, GRADIENT_THEOREM),), (event,)
