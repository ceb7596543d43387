"""The effect of the noise of one or two perturbed objectives on the curves, from released numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..schema.columns import Codes
from ._groups import Centred
from ._rounds import Fitted
from ._scores import logits
from ._uncertainty import centred, inverse

Array = NDArray[np.float64]


Moves = list[tuple[Fitted, Array, Array, Array]]


def rounds_noise(
    fits: list[Fitted], codes: Codes, count: float, counts: list[Array]
) -> tuple[list[Array], list[Array]]:
    """Return standard deviations of the values of cells, for the curvature at these records, and without curvature."""
    layout = fits[0].features.layout

    def in_cells(moves: Moves) -> list[Array]:
        return [
            _deviations(moves, lambda features, t=t, own=own: centred(features.cell_rows(t), own.columns, counts))  # type: ignore[misc]
            for t, own in enumerate(layout.terms)
        ]

    return in_cells(_moves(fits, codes, count, True)), in_cells(_moves(fits, codes, count, False))


def noise_in_scores(fits: list[Fitted], records: Codes, count: float) -> Callable[[Codes], Array]:
    """Return a function that maps rows to standard deviations of scores, for the curvature at these records."""
    moves = _moves(fits, records, count, True)
    return lambda codes: _deviations(moves, lambda features: _rows(features, codes))


def _rows(features: Centred, codes: Codes) -> Array:
    return np.column_stack([features.features(codes), np.full(codes.shape[1], features.layout.constant)])


def _moves(fits: list[Fitted], codes: Codes, count: float, bends: bool) -> Moves:
    """Return the records' rows, their weights, and the effect of a unit of noise on coefficients, for each round."""
    # To first order, the noise of a round moves its coefficients by minus the inverse of the second derivative. The
    # second round responds to the changes of the first round. Weights and counts are taken as fixed.
    before, scores = [], np.zeros(codes.shape[1])
    for fit in fits:
        scores = scores + fit.scores(codes)
        before.append(scores)
    odds = logits(scores, fits[-1].of.margin)
    out = []
    for fit, own in zip(fits, before, strict=True):
        rows = _rows(fit.features, codes)
        weights = np.zeros(len(own))
        if bends:
            for sign in (1.0, -1.0):
                u = special.expit(fit.of.margin - sign * own)
                weights += special.expit(sign * odds) * u * (1 - u)
            weights *= fit.features.record_weights(codes) * fit.of.weight * count / len(own)
        moved = inverse(rows.T @ (rows * weights[:, None]) + fit.ridge * np.eye(rows.shape[1]))
        out.append((fit, rows, weights, moved))
    return out


def _deviations(moves: Moves, values_of: Callable[[Centred], Array]) -> Array:
    """Return standard deviations of linear functions of the coefficients, given by rows for each round, as a column."""
    variance, later = 0.0, None
    for fit, rows, weights, moved in reversed(moves):
        values = values_of(fit.features)
        if later is not None:
            # The coefficients of the later round compensate the changes of its records' scores.
            after, after_rows, after_weights = later
            values = values - (after @ after_rows.T * after_weights) @ rows
        after = values @ moved
        variance = variance + fit.of.noise**2 * (after**2).sum(axis=1)
        later = after, rows, weights
    return np.sqrt(variance)[:, None]
