"""Streams of chosen words, to drive a sampler into its corners."""

import numpy as np

from skdp.mechanisms import NoiseSource
from skdp.mechanisms.gaussian import LazyNormals

ONES = 2**64 - 1


def stream(label, seed=20250):
    """Reproducible stream for one test."""
    return NoiseSource(seed).stream(label)


class Replay:
    """Hands out chosen words first, then those of another stream; without one, running out is an error."""

    def __init__(self, words, then=None):
        self.waiting = [int(w) for w in words]
        self.then = then
        self.drawn = 0

    def words(self, n):
        chosen, self.waiting = self.waiting[:n], self.waiting[n:]
        self.drawn += n
        missing = n - len(chosen)
        if missing and self.then is None:
            raise AssertionError("the sampler asked for more bits than the test provides")
        rest = self.then.words(missing).tolist() if missing else []
        return np.array(chosen + rest, dtype=np.uint64)


class Counted:
    """Counts the calls of a function that it stands in for."""

    def __init__(self, function):
        self.function = function
        self.calls = 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.function(*args, **kwargs)


def without_doubles(size, stream):
    """Normals whose doubles say nothing."""
    normals = LazyNormals(size, stream)
    normals.error = np.inf
    return normals
