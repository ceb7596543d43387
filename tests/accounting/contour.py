"""Delta of sampled Gaussian steps by a contour integral: the inverse Laplace transform of their moments."""

import math

import numpy as np


def contour_delta(rate, mu, n_steps, epsilon, tilt, removed=True):
    """E[(1 - exp(epsilon - L))_+] of the sum of losses; `tilt` is the contour's abscissa, near the saddle point."""
    x = np.linspace(-13, 13 + (tilt + 2) * mu, 601)
    weights = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    losses = np.log1p(rate * np.expm1(mu * x - mu * mu / 2))
    s = tilt + 1j * np.linspace(0, 40, 2001)
    moments = np.array([np.expm1((one + 1) * losses if removed else -one * losses) @ weights for one in s])
    values = np.exp(n_steps * np.log1p(moments) - s * epsilon) / (s * (s + 1))
    return float((values.real.sum() - values.real[0] / 2) * 0.02 / math.pi)
