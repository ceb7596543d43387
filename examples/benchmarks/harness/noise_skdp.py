"""Noise of skdp, and of NumPy's generators, which are inexact and give no protection."""

from __future__ import annotations

import numpy as np

SCALE = 2.0**30


def cases(size):
    """Return names, and functions that draw a given amount of noise."""
    from skdp.mechanisms import GammaMechanism, NoiseSource, discrete_laplace, rounded_normal

    stream, generator = NoiseSource().stream("benchmark"), np.random.default_rng()
    gamma, zeros = GammaMechanism(1.0, 1.0, size), np.zeros(size)
    return {
        "skdp discrete Laplace": lambda: discrete_laplace(2**30, size, stream),
        "skdp rounded normal": lambda: rounded_normal(SCALE, size, stream),
        "skdp vector of the L2 mechanism": lambda: gamma.release(zeros, stream),
        "NumPy laplace": lambda: generator.laplace(size=size),
        "NumPy normal": lambda: generator.normal(size=size),
    }
