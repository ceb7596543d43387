"""An analyst who chooses the second event after seeing the first output."""

import math

import numpy as np
from scipy import stats

from skdp.accounting import gaussian_delta


def conditional_delta(epsilon, loss, branch):
    """Delta that a second event still gives away, after a loss of `loss`; for Gaussian and randomised responses."""
    kind, parameter = branch
    if kind == "gaussian":
        return gaussian_delta(epsilon - loss, parameter)
    heads = 1 / (1 + math.exp(-parameter))
    return heads * np.maximum(-np.expm1(epsilon - loss - parameter), 0) + (1 - heads) * np.maximum(
        -np.expm1(epsilon - loss + parameter), 0
    )


def two_step_delta(epsilon, first, branches):
    """Delta of a Gaussian first step and the branch that then gives away most, by integration over the first loss."""
    g = np.linspace(first**2 / 2 - 12 * first, first**2 / 2 + 12 * first, 400_001)
    weight = stats.norm.pdf(g, first**2 / 2, first) * (g[1] - g[0])
    return float(np.sum(weight * np.max([conditional_delta(epsilon, g, b) for b in branches], axis=0)))
