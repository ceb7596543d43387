"""Attacks on the bits of released numbers: the inverse of NumPy's samplers, and a learner that reads low-order bits.

The attacker knows everything but which of two values was released: the values, the scale of the noise, and the sampler.
"""

import math
from dataclasses import dataclass

import numpy as np

from skdp.mechanisms._base import to_lattice
from tests.statistics import clopper_pearson

_WORD = 2**64
_NINTH = pow(9, -1, _WORD)

# Layers of the ziggurat, by which NumPy's generators draw normals.
_LAYERS = 256


class NumPySampler:
    """NumPy's samplers, fed with words of our choice: an output is possible if they give it for some words."""

    def __init__(self):
        self._bits = np.random.SFC64(0)
        self.generator = np.random.Generator(self._bits)
        self.legacy = np.random.RandomState(self._bits)
        self._units = np.empty(_LAYERS)
        for layer in range(_LAYERS):
            self.load(layer | 1 << 9)
            self._units[layer] = self.generator.standard_normal()

    def load(self, first, second=0):
        """Choose the next two words."""
        state = self._bits.state
        words = [first, 0, (second - 1) * _NINTH % _WORD, 0]
        state["state"]["state"] = np.array(words, dtype=np.uint64)
        state["has_uint32"] = 0
        self._bits.state = state

    def reaches_laplace(self, output, value, scale):
        """Whether ``Generator.laplace(value, scale)`` can return `output`: a logarithm of one of 2**52 numbers."""
        noise = (output - value) / scale
        middle = math.exp(-abs(noise)) * 2.0**52
        width = middle * float(np.spacing(abs(output))) / scale + 3
        if width > 500:
            return True
        for j in range(max(1, math.floor(middle - width)), min(2**52, math.ceil(middle + width)) + 1):
            self.load((j if noise < 0 else 2**53 - j) << 11)
            if self.generator.laplace(value, scale) == output:
                return True
        return False

    def reaches_polar(self, outputs, value, scale):
        """Whether ``RandomState.normal(value, scale, 2)`` can return these: both come from one point of the disk."""
        noise = (np.asarray(outputs) - value) / scale
        square = float(noise @ noise)
        if not square:
            return True
        # The point of the disk, in units of 2**-52 from its lower left; the second number comes first.
        point = (noise[::-1] * math.exp(-square / 4) / math.sqrt(square) + 1) * 2.0**52
        unit = math.exp(-square / 4) * max(math.sqrt(square), 1 / math.sqrt(square)) * 2.0**52
        width = unit * float(np.spacing(np.abs(outputs)).max()) / scale + 2
        if width > 10:
            return True
        near = [range(math.floor(p - width), math.ceil(p + width) + 1) for p in point.tolist()]
        for a in near[0]:
            for b in near[1]:
                self.load(a % 2**53 << 11, b % 2**53 << 11)
                if np.array_equal(self.legacy.normal(value, scale, 2), outputs):
                    return True
        return False

    def reaches_ziggurat(self, output, value, scale):
        """Whether ``Generator.normal(value, scale)`` can return `output`: a multiple of one of 256 numbers."""
        normal = (output - value) / scale
        if abs(normal) > 3.6:
            return True
        multiples = np.rint(normal / self._units) + np.arange(-4.0, 5.0)[:, None]
        reached = value + scale * (multiples * self._units) == output
        return bool(np.any(reached & (np.abs(multiples) < 2.0**52)))


def trailing_zeros(numbers):
    """Positions of the lowest set bits of doubles, relative to their highest: 0 to 52, and 53 for zero."""
    integers = np.ldexp(np.frexp(np.abs(numbers))[0], 53).astype(np.int64)
    lowest = integers & -integers
    return np.where(integers == 0, 53, np.frexp(lowest.astype(float))[1] - 1)


def bits_of(numbers):
    """What is read of doubles, as small integers: low-order bits, trailing zeros, and how fine the last bit is."""
    numbers = np.asarray(numbers, dtype=float)
    mantissa, exponent = np.frexp(np.abs(numbers))
    integers = np.ldexp(mantissa, 53).astype(np.int64)
    zeros = trailing_zeros(numbers)
    return np.stack([integers & 7, integers >> 3 & 7, zeros, (exponent + zeros) % 64])


def read(outputs, values, step=None, reaches=None):
    """Return what an attacker reads of releases, of shape (n_features, n_releases, n_numbers).

    Of each number, and of its distances from both values, in floating point and in steps of the lattice; and whether a
    sampler gives it for a value.
    """
    with np.errstate(over="ignore"):
        features = [bits_of(outputs), *(bits_of(outputs - value) for value in values)]
    if step:
        points = np.rint(outputs / step).astype(np.int64)
        for value in values:
            distance = points - to_lattice(value, step)
            lowest = distance & -distance
            zeros = np.where(distance == 0, 63, np.frexp(lowest.astype(float))[1] - 1)
            features.append(np.stack([distance & 63, distance % 3, distance % 5, zeros]))
    if reaches:
        each = np.broadcast_arrays(outputs, *values)
        both = zip(*(part.ravel().tolist() for part in each), strict=True)
        possible = [[reaches(output, value) for value in pair] for output, *pair in both]
        features.append(np.array(possible).T.reshape(-1, *outputs.shape))
    return np.concatenate(features)


@dataclass(frozen=True)
class Outcome:
    """How often an attacker was right about fresh releases, and how many there were."""

    correct: int
    trials: int

    @property
    def surely(self):
        """The probability of being right is higher than this, but for a false alarm."""
        return clopper_pearson(self.correct, self.trials)[0]

    @property
    def share(self):
        return self.correct / self.trials


def attack(first, second):
    """Learn from half of what was read of the releases of both values, and guess the others, each as a whole.

    Parameters
    ----------
    first, second : ndarray of int, of shape (n_features, n_releases, n_numbers)
        From 0 to 63.
    """
    half = first.shape[1] // 2
    ratios = []
    for one, other in zip(first, second, strict=True):
        counts = [np.bincount(part[:half].ravel(), minlength=64) + 1 for part in (one, other)]
        ratios.append(np.log(counts[0]) - np.log(counts[1]))
    scores = [
        sum(ratio[feature[half:]].sum(axis=1) for ratio, feature in zip(ratios, part, strict=True))
        for part in (first, second)
    ]
    # A tie is a guess.
    correct = np.count_nonzero(scores[0] > 0) + np.count_nonzero(scores[1] <= 0)
    return Outcome(int(correct), len(scores[0]) + len(scores[1]))


def most_right(epsilon, delta):
    """Largest probability of telling which of two neighbours, each as likely, was released."""
    return (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))
