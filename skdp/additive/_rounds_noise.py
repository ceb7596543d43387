"""How far the noise of one or two perturbed objectives moves the curves, from what was released."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..schema.columns import Codes
from ._rounds import Fitted
from ._scores import logits
from ._uncertainty import centred, inverse

Array = NDArray[np.float64]


def rounds_noise(
    fits: list[Fitted], codes: Codes, count: float, counts: list[Array]
) -> tuple[list[Array], list[Array]]:
    """Return standard deviations of the values of cells, for the curvature that such records have, and without any.

    To first order, the noise of a round moves its coefficients by minus the inverse of the second derivative. The
    second round answers to what the first one moved. Weights and counts are taken as given.
    """
    bent, flat = [], []
    bends, scores = [], np.zeros(codes.shape[1])
    for fit in fits:
        scores = scores + fit.scores(codes)
        bends.append(scores)
    odds = logits(scores, fits[-1].of.margin)
    first: list[Array] = []
    for fit, own in zip(fits, bends, strict=True):
        layout = fit.features.layout
        rows = np.column_stack([fit.features.features(codes), np.full(len(own), layout.constant)])
        weights = fit.features.record_weights(codes) * fit.of.weight * count / len(own)
        for sign in (1.0, -1.0):
            u = special.expit(fit.of.margin - sign * own)
            first.append(special.expit(sign * odds) * u * (1 - u))
        weights *= first[-2] + first[-1]
        bent.append(
            (fit, rows, weights, inverse(rows.T @ (rows * weights[:, None]) + fit.ridge * np.eye(rows.shape[1])))
        )
        flat.append((fit, rows, 0.0 * weights, np.eye(rows.shape[1]) / fit.ridge))
    return _spread(bent, counts), _spread(flat, counts)


def _spread(rounds: list[tuple[Fitted, Array, Array, Array]], counts: list[Array]) -> list[Array]:
    layout = rounds[0][0].features.layout
    out = []
    for t, (term, size) in enumerate(zip(layout.terms, layout.sizes, strict=True)):
        variance, later = np.zeros(size), None
        for fit, rows, weights, moved in reversed(rounds):
            values = centred(fit.features.cell_rows(t), term.columns, counts)
            if later is not None:
                # The later round's coefficients move against what its records' scores are moved by.
                after, after_rows, after_weights = later
                values = values - (after @ after_rows.T * after_weights) @ rows
            after = values @ moved
            variance += fit.of.noise**2 * (after**2).sum(axis=1)
            later = after, rows, weights
        out.append(np.sqrt(variance)[:, None])
    return out
