"""How far the noise of one or two perturbed objectives moves the curves, from what was released."""

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
    """Return standard deviations of the values of cells, for the curvature that such records have, and without any."""
    layout = fits[0].features.layout

    def in_cells(moves: Moves) -> list[Array]:
        return [
            _deviations(moves, lambda features, t=t, own=own: centred(features.cell_rows(t), own.columns, counts))  # type: ignore[misc]
            for t, own in enumerate(layout.terms)
        ]

    return in_cells(_moves(fits, codes, count, True)), in_cells(_moves(fits, codes, count, False))


def noise_in_scores(fits: list[Fitted], records: Codes, count: float) -> Callable[[Codes], Array]:
    """Return a function from rows to standard deviations of their scores, for the curvature that such records have."""
    moves = _moves(fits, records, count, True)
    return lambda codes: _deviations(moves, lambda features: _rows(features, codes))


def _rows(features: Centred, codes: Codes) -> Array:
    return np.column_stack([features.features(codes), np.full(codes.shape[1], features.layout.constant)])


def _moves(fits: list[Fitted], codes: Codes, count: float, bends: bool) -> Moves:
    """Return for each round the records' rows, their weights, and what moves coefficients by a unit of noise."""
    # To first order, the noise of a round moves its coefficients by minus the inverse of the second derivative. The
    # second round answers to what the first one moved. Weights and counts are taken as given.
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
    """Return standard deviations of linear functions of the coefficients, which are rows by round, as a column."""
    variance, later = 0.0, None
    for fit, rows, weights, moved in reversed(moves):
        values = values_of(fit.features)
        if later is not None:
            # The later round's coefficients move against what its records' scores are moved by.
            after, after_rows, after_weights = later
            values = values - (after @ after_rows.T * after_weights) @ rows
        after = values @ moved
        variance = variance + fit.of.noise**2 * (after**2).sum(axis=1)
        later = after, rows, weights
    return np.sqrt(variance)[:, None]
