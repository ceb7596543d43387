"""The only source of randomness in skdp: independent 64-bit words, from the operating system or from a seed."""

from __future__ import annotations

import hashlib
import numbers
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..checks.values import shown

__all__ = ["GENERATORS", "BitStream", "NoiseSource", "OneStream", "global_generators"]

# What a user may have drawn noise from.
GENERATORS = (
    np.random.Generator,
    np.random.RandomState,
    np.random.BitGenerator,
    np.random.SeedSequence,
    random.Random,
)


class OneStream(np.random.RandomState):
    """A generator that `clone` does not copy.

    An estimator that fits several copies of another must not give all of them the same noise.

    Parameters
    ----------
    seed : int
        Seed of the generator.
    """

    def __deepcopy__(self, memo: dict[int, object]) -> OneStream:
        return self


class BitStream(Protocol):
    """An endless sequence of independent, uniformly distributed 64-bit words."""

    def words(self, n: int) -> NDArray[np.uint64]:
        """Return the next words.

        Parameters
        ----------
        n : int
            How many.

        Returns
        -------
        words : ndarray of uint64, of shape (n,)
            Independent and uniform.
        """
        ...


class _SystemStream:
    """Words from the operating system's cryptographic generator; nothing is buffered, so nothing is forked."""

    def words(self, n: int) -> NDArray[np.uint64]:
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)


class _SeededStream:
    """Words from a counter-based generator: reproducible, and therefore not private."""

    def __init__(self, seed: np.random.SeedSequence) -> None:
        self._generator = np.random.Philox(seed)

    def words(self, n: int) -> NDArray[np.uint64]:
        return np.asarray(self._generator.random_raw(n), dtype=np.uint64)


class NoiseSource:
    """Hands every release a stream of its own.

    Parameters
    ----------
    random_state : None, int, numpy.random.RandomState or numpy.random.Generator
        None takes bits from the operating system. Anything else makes the noise reproducible, for tests and
        examples: who knows the seed can subtract the noise. A generator object is advanced once, here.
    """

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
        """Return the stream of one release; the same seed and label give the same words.

        Parameters
        ----------
        label : str
            Name of the release.

        Returns
        -------
        stream : BitStream
            Independent of those of other labels.
        """
        if self._entropy is None:
            return _SystemStream()
        digest = hashlib.sha256(label.encode()).digest()
        key = tuple(np.frombuffer(digest[:16], dtype=np.uint32).tolist())
        return _SeededStream(np.random.SeedSequence(self._entropy, spawn_key=key))

    def simulator(self, label: str) -> np.random.Generator:
        """Make a generator to simulate laws that are public, and never noise of a release: its numbers are not exact.

        Parameters
        ----------
        label : str
            What is simulated.

        Returns
        -------
        generator : Generator
            With a seed from the stream of this label.
        """
        return np.random.default_rng(self.stream(label).words(4))


@contextmanager
def global_generators(seed: int) -> Iterator[None]:
    """Give code that draws from NumPy's and Python's global generators others to draw from, for a while.

    How much it draws then says nothing to what draws after it.

    Parameters
    ----------
    seed : int
        From 0 to ``2**32 - 1``.

    Yields
    ------
    None
        While they are exchanged.
    """
    numpy_generator = np.random.get_bit_generator()  # type: ignore[attr-defined]
    # With the second normal number of a pair, which is forgotten when generators are exchanged.
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
