"""The base classes of mechanisms, and the only source of randomness in skdp.

A mechanism has frozen public parameters, and one method that draws noise. Randomness consists of independent 64-bit
words, from cryptographic generators or from a seed.
"""

from __future__ import annotations

import hashlib
import math
import numbers
import os
import random
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..checks.params import shown

# Some builds of Python have no ssl module.
ssl: ModuleType | None = None
with suppress(ImportError):
    import ssl

# Types of random_state.
GENERATORS = (
    np.random.Generator,
    np.random.RandomState,
    np.random.BitGenerator,
    np.random.SeedSequence,
    random.Random,
)

# From this number of words on, a new seed for OpenSSL's generator takes less time than words from the system.
_MANY_WORDS = 2**8

# OpenSSL's generator gives at most 2 GiB at once.
_MOST_WORDS = 2**27

# Bytes of a seed: the key of AES-256.
_SEED_BYTES = 32

# A coordinate beyond this many steps is clipped to it. Clipping is a contraction, so that no sensitivity grows.
_LATTICE_LIMIT = 2.0**61


class OneStream(np.random.RandomState):
    """A generator that `clone` does not copy.

    If an estimator fits several copies of another, these copies must not have the same noise.
    """

    def __deepcopy__(self, memo: dict[int, object]) -> OneStream:
        return self


class BitStream(Protocol):
    """An endless sequence of independent, uniformly distributed 64-bit words."""

    def words(self, n: int) -> NDArray[np.uint64]:
        """Return the next words."""
        ...


class _SystemStream:
    """Words from the cryptographic generators of the operating system and of OpenSSL."""

    # Many words come from OpenSSL's generator (by default AES-256 in counter mode, NIST SP 800-90A), which is about ten
    # times as fast. Fresh bits from the system are mixed into its state before each request. Therefore a copy of the
    # state, such as that of a fork or of a cloned virtual machine, does not determine later words.
    def words(self, n: int) -> NDArray[np.uint64]:
        if ssl is None or not _MANY_WORDS <= n <= _MOST_WORDS:
            octets = os.urandom(8 * n)
        else:
            ssl.RAND_add(os.urandom(_SEED_BYTES), float(_SEED_BYTES))
            octets = ssl.RAND_bytes(8 * n)
        return np.frombuffer(octets, dtype=np.uint64)


class _SeededStream:
    """Words from a counter-based generator, which are reproducible and therefore not private."""

    def __init__(self, seed: np.random.SeedSequence) -> None:
        self._generator = np.random.Philox(seed)

    def words(self, n: int) -> NDArray[np.uint64]:
        return np.asarray(self._generator.random_raw(n), dtype=np.uint64)


class NoiseSource:
    """Give every release its own stream. Noise that can be reproduced can be subtracted."""

    # With a `random_state` of None, bits come from the cryptographic generators of the operating system and of OpenSSL.
    # A generator object is advanced once, here.

    def __init__(self, random_state: object = None) -> None:
        self._entropy: list[int] | None
        if random_state is None:
            self._entropy = None
        elif isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
            if random_state < 0:
                raise ValueError(f"random_state must not be negative, got {shown(random_state)}")
            self._entropy = [int(random_state)]
        elif isinstance(random_state, np.random.RandomState):
            self._entropy = random_state.randint(0, 2**32, size=4, dtype=np.uint32).tolist()
        elif isinstance(random_state, np.random.Generator):
            self._entropy = random_state.integers(0, 2**32, size=4, dtype=np.uint32).tolist()
        else:
            raise ValueError(
                "random_state must be None, an integer, a numpy.random.RandomState or a "
                f"numpy.random.Generator, got {shown(random_state)}"
            )

    @property
    def seeded(self) -> bool:
        """Whether the noise can be reproduced."""
        return self._entropy is not None

    def stream(self, label: str) -> BitStream:
        """Return the stream of one release. The same seed and label give the same words."""
        if self._entropy is None:
            return _SystemStream()
        digest = hashlib.sha256(label.encode()).digest()
        key = tuple(np.frombuffer(digest[:16], dtype=np.uint32).tolist())
        return _SeededStream(np.random.SeedSequence(self._entropy, spawn_key=key))

    def simulator(self, label: str) -> np.random.Generator:
        """Make a generator for simulations of public distributions. Its numbers are inexact, so not for releases."""
        return np.random.default_rng(self.stream(label).words(4))


@contextmanager
def global_generators(seed: int) -> Iterator[None]:
    """Replace NumPy's and Python's global generators for a while.

    The number of draws in this time does not affect later draws.
    """
    numpy_generator = np.random.get_bit_generator()  # type: ignore[attr-defined]
    # The state includes the second normal number of a pair, which is lost when generators are replaced.
    numpy_state = np.random.get_state(legacy=False)  # noqa: NPY002
    python_state = random.getstate()
    np.random.set_bit_generator(np.random.MT19937(seed))  # type: ignore[attr-defined]
    random.seed(seed)
    try:
        yield
    finally:
        np.random.set_bit_generator(numpy_generator)  # type: ignore[attr-defined]
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)


@contextmanager
def restarted(seed: int) -> Iterator[None]:
    """Start the generators that `global_generators` put in place again, which takes less time than to replace them."""
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    yield


def spread_numbers(size: int) -> NDArray[np.float64]:
    """Return the same numbers each time, in no pattern and of a variance of 1. They are no noise."""
    return np.random.default_rng(0).normal(size=size)


def lattice_step(scale: float, bits: int) -> float:
    """Return the largest power of two that is at most ``scale * 2**-bits``."""
    return math.ldexp(1.0, math.frexp(scale)[1] - 1 - bits)


def to_lattice(value: ArrayLike, step: float) -> NDArray[np.int64]:
    """Round to the nearest lattice point, counted in steps. Each coordinate moves by at most half a step."""
    with np.errstate(over="ignore"):
        scaled = np.asarray(value, dtype=np.float64) / step
    return np.rint(np.clip(scaled, -_LATTICE_LIMIT, _LATTICE_LIMIT)).astype(np.int64)


def from_lattice(points: NDArray[np.int64], step: float) -> NDArray[np.float64]:
    """Return lattice points as doubles. This is post-processing, as a function of the integers only."""
    return points.astype(np.float64) * step


class Mechanism(ABC):
    """A private release whose parameters are fixed before the data are seen."""

    name: ClassVar[str]
    norm: ClassVar[str]
    sensitivity: float

    @property
    @abstractmethod
    def scale(self) -> float:
        """Scale of the noise, in units of the query."""

    @abstractmethod
    def release(self, value: ArrayLike, stream: BitStream) -> NDArray[np.float64]:
        """Return the private version of `value`, in its shape."""


class LatticeMechanism(Mechanism):
    """Addition of noise in whole steps of a lattice to which the value is rounded."""

    step: float

    @abstractmethod
    def _noise(self, size: int, stream: BitStream) -> NDArray[np.int64]:
        """Draw the noise of so many numbers, in lattice steps."""

    def release(self, value: ArrayLike, stream: BitStream) -> NDArray[np.float64]:
        """Return `value` plus noise, on the lattice."""
        lattice = to_lattice(value, self.step)
        noise = self._noise(lattice.size, stream)
        return from_lattice(lattice + noise.reshape(lattice.shape), self.step)


@dataclass(frozen=True)
class NoNoise(Mechanism):
    """The release for epsilon = inf: the value itself, without any guarantee."""

    sensitivity: float  # Largest change by one record, for information only.

    name = "none (epsilon=inf)"
    norm = "L2"

    @property
    def scale(self) -> float:
        """Zero."""
        return 0.0

    def release(self, value: ArrayLike, stream: BitStream) -> NDArray[np.float64]:
        """Return `value` itself."""
        return np.array(value, dtype=np.float64)
