"""Where the bits come from: seeds, labels, the operating system.

False-alarm probability of every stochastic test: 1e-6 over the choice of its fixed seed; of those that draw from the
operating system, 1e-9 a run, all of them together.
"""

import os
import subprocess
import sys
import types

import numpy as np
import pytest

from skdp.mechanisms import (
    DiscreteLaplaceMechanism,
    ExponentialMechanism,
    GammaMechanism,
    GaussianMechanism,
    NoiseSource,
    PermuteAndFlip,
    _base,
    discrete_laplace,
)
from skdp.mechanisms._base import _MANY_WORDS
from tests.statistics import FALSE_ALARM, accept, binomial, chi_square, reject

SEEDS = [0, 7, np.int64(7), 2**70]


@pytest.mark.parametrize("seed", SEEDS, ids=str)
def test_same_seed_and_label_give_the_same_words(seed):
    first, second = NoiseSource(seed), NoiseSource(seed)
    assert first.seeded
    words = first.stream("a").words(100)
    assert words.dtype == np.uint64
    assert np.array_equal(words, second.stream("a").words(100))
    # Also from one source, and in pieces.
    again = first.stream("a")
    assert np.array_equal(words, np.concatenate([again.words(n) for n in (1, 0, 30, 69)]))


@pytest.mark.parametrize(
    ("seed", "label"), [(7, "b"), (7, "A"), (7, ""), (8, "a"), (7 + 2**32, "a"), (7 + 2**64, "a"), (7, "a ")]
)
def test_another_seed_or_label_gives_independent_words(seed, label):
    # Of the 64 * 2000 bits, half agree; the probability of a false alarm is 1e-6.
    words, others = NoiseSource(7).stream("a").words(2000), NoiseSource(seed).stream(label).words(2000)
    assert not np.any(words == others)
    bits = np.unpackbits((words ^ others).view(np.uint8))
    accept(binomial(bits.sum(), bits.size, 0.5), "bits that differ")
    reject(binomial(bits.sum(), bits.size, 0.51), "51 % of bits")


def test_numpy_generators_are_advanced_once_and_reproducible():
    for make in (np.random.RandomState, np.random.default_rng):
        generator = make(3)
        first, second = NoiseSource(generator), NoiseSource(generator)
        assert first.seeded
        assert not np.array_equal(first.stream("a").words(4), second.stream("a").words(4))
        same = make(3)
        assert np.array_equal(first.stream("a").words(4), NoiseSource(same).stream("a").words(4))
        # Streams do not advance it further.
        NoiseSource(same).stream("b").words(1000)
        assert generator.random() == same.random()


@pytest.mark.system_noise
def test_operating_system_streams_differ():
    source = NoiseSource()
    assert not source.seeded
    drawn = [source.stream("a").words(4).tobytes() for _ in range(50)]
    drawn += [NoiseSource(None).stream("a").words(4).tobytes() for _ in range(50)]
    assert len(set(drawn)) == 100


@pytest.mark.parametrize("seed", [pytest.param(None, marks=pytest.mark.system_noise), 5])
def test_words_are_uniform(seed):
    false_alarm = FALSE_ALARM if seed is not None else 4e-10
    words = NoiseSource(seed).stream("uniform").words(50_000)
    assert words.shape == (50_000,)
    octets = np.bincount(words.view(np.uint8), minlength=256)
    accept(chi_square(octets, np.full(256, 1 / 256)), "octets", false_alarm)
    top = np.bincount((words >> np.uint64(56)).astype(int), minlength=256)
    accept(chi_square(top, np.full(256, 1 / 256)), "leading octets", false_alarm)
    halved = np.bincount((words >> np.uint64(57)).astype(int), minlength=256)
    reject(chi_square(halved, np.full(256, 1 / 256)), "seven bits")


def test_no_words():
    for seed in (None, 1):
        assert NoiseSource(seed).stream("none").words(0).shape == (0,)


FORK = """
import os, warnings
from skdp.mechanisms import NoiseSource
warnings.simplefilter("ignore")
stream = NoiseSource().stream("a")
stream.words({size})
reader, writer = os.pipe()
child = os.fork()
words = stream.words({size})
if not child:
    os.write(writer, words.tobytes())
    os._exit(0)
os.close(writer)
with os.fdopen(reader, "rb") as file:
    theirs = file.read()
os.waitpid(child, 0)
print(len(theirs), len(set(words.tobytes()[i : i + 8] for i in range(0, len(theirs), 8))
    & set(theirs[i : i + 8] for i in range(0, len(theirs), 8))))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
@pytest.mark.parametrize("size", [_MANY_WORDS - 1, _MANY_WORDS])
def test_a_fork_does_not_repeat_words(size):
    # Two of so many independent words are equal with a probability below 1e-13.
    run = subprocess.run([sys.executable, "-c", FORK.format(size=size)], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [str(8 * size), "0"]


@pytest.mark.parametrize("size", [0, 1, _MANY_WORDS - 1, _MANY_WORDS, 10 * _MANY_WORDS])
@pytest.mark.parametrize("openssl", [True, False])
def test_each_request_depends_on_fresh_bits_of_the_system(size, openssl, monkeypatch):
    calls = []

    def urandom(n):
        calls.append(("system", n))
        return bytes(range(n % 256)).ljust(n, b"s")

    fake = types.ModuleType("ssl")
    fake.RAND_add = lambda octets, entropy: calls.append(("seed", octets, entropy))
    fake.RAND_bytes = lambda n: calls.append(("drawn", n)) or b"d" * n
    monkeypatch.setattr(_base, "os", types.SimpleNamespace(urandom=urandom))
    monkeypatch.setattr(_base, "ssl", fake if openssl else None)
    stream = NoiseSource().stream("a")
    for _ in range(3):
        calls.clear()
        words = stream.words(size)
        assert words.shape == (size,)
        if openssl and size >= _MANY_WORDS:
            # 256 bits, before the words are drawn.
            assert calls == [("system", 32), ("seed", bytes(range(32)), 32.0), ("drawn", 8 * size)]
            assert words.tobytes() == b"d" * (8 * size)
        else:
            assert calls == [("system", 8 * size)]


@pytest.mark.system_noise
def test_openssl_is_used():
    pytest.importorskip("ssl")
    assert _base.ssl is sys.modules["ssl"]


@pytest.mark.parametrize("seed", [True, 1.0, "1", [1], np.random.SeedSequence(1), np.array([1, 2]), 1j])
def test_what_is_not_a_seed(seed):
    with pytest.raises(ValueError, match="random_state must be None, an integer"):
        NoiseSource(seed)


@pytest.mark.parametrize("seed", [-1, np.int64(-5)])
def test_negative_seed(seed):
    with pytest.raises(ValueError, match="must not be negative"):
        NoiseSource(seed)


def release(mechanism, bits):
    if hasattr(mechanism, "select"):
        return mechanism.select([1.0, 0.0, 0.5, 0.2, 0.9, 0.1], bits)
    return mechanism.release(np.zeros(6), bits)


@pytest.mark.parametrize(
    "mechanism",
    [
        GaussianMechanism(1.0, 1.0, 6),
        GammaMechanism(1.0, 1.0, 6),
        DiscreteLaplaceMechanism(0.01, 1.0, 6),
        ExponentialMechanism(0.1, 1.0),
        PermuteAndFlip(0.1, 1.0),
    ],
    ids=lambda m: m.name,
)
def test_noise_of_a_label_is_reproducible_and_differs_from_others(mechanism):
    source = NoiseSource(11)
    drawn = [np.array([release(mechanism, source.stream(f"{label}{i}")) for i in range(30)]) for label in "aab"]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])


def test_noise_from_the_operating_system_differs():
    source = NoiseSource()
    assert not np.array_equal(*(GaussianMechanism(1.0, 1.0, 6).release(np.zeros(6), source.stream("a")) for _ in "ab"))


def test_sample_does_not_depend_on_what_another_stream_drew():
    source = NoiseSource(4)
    first, other = source.stream("a"), source.stream("b")
    one = discrete_laplace(5, 10, first)
    other.words(10**4)
    assert np.array_equal(one, discrete_laplace(5, 10, NoiseSource(4).stream("a")))
    assert not np.array_equal(discrete_laplace(5, 10, first), one)
