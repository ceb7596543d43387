"""Log-odds and second derivatives of the loss, from scores that were fitted with a margin."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..solvers.linear_rule import probabilities

Array = NDArray[np.float64]


def curvatures(scores: Array, margin: float, most: float) -> Array:
    """Return mean second derivatives of the loss, of shape (outputs, outputs, n_rows), if the model is correct."""
    # Beyond the norm `most`, derivatives are clipped and the loss has no curvature.
    p = probabilities(logits(scores, margin))
    if scores.ndim == 1:
        out = np.zeros(len(scores))
        for part, sign in ((p[:, 1], 1.0), (p[:, 0], -1.0)):
            u = special.expit(margin - sign * scores)
            out += part * np.where(u < most, u * (1 - u), 0.0)
        return out[None, None]
    lengths = np.sqrt((p**2).sum(axis=1, keepdims=True) + 1 - 2 * p)
    inside = (p * (lengths < most)).sum(axis=1)
    p = p.T
    return inside * (np.eye(len(p))[:, :, None] * p - p[:, None] * p)


def logits(scores: Array, margin: float) -> Array:
    """Return log-odds for scores of two classes that were fitted with a margin."""
    # If a share p of the records has the second label, the score s that minimises the mean loss solves
    # p σ(a - s) = (1 - p) σ(a + s) for the margin a.
    if margin == 0 or scores.ndim > 1:
        return scores
    return special.log_expit(margin + scores) - special.log_expit(margin - scores)
