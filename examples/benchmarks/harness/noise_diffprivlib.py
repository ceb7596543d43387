"""Noise of diffprivlib's mechanisms, which return one number at a time."""

from __future__ import annotations


def cases(size):
    """Return names, and functions that draw a given amount of noise."""
    from diffprivlib import mechanisms

    made = {
        "Laplace": mechanisms.Laplace(epsilon=1.0, sensitivity=1.0),
        "Gaussian": mechanisms.Gaussian(epsilon=1.0, delta=1e-5, sensitivity=1.0),
    }
    return {
        f"diffprivlib {name}, one by one": lambda m=mechanism: [m.randomise(0.5) for _ in range(size)]
        for name, mechanism in made.items()
    }
