r"""Channels of local privacy: the distribution of a report hardly depends on the reported value.

A channel is :math:`\varepsilon`-DP if no report is more than :math:`e^\varepsilon` times as likely for one value than
for any other. All probabilities are rational, because coins have a probability of :math:`m/2^{64}`, and integers are
uniform. Therefore the law of a report is exact. Each :math:`m` is rounded to the side of privacy, by rational
arithmetic, so that the ratio never exceeds :math:`e^\varepsilon`.

A mixture reports a uniform element of the value's set of :math:`s` out of :math:`K` reports with probability
:math:`\lambda \le (e^\varepsilon - 1)/(e^\varepsilon - 1 + K/s)`, and otherwise one of all reports. If each row reports
:math:`k` of its columns, drawn independently of the row, each channel is :math:`\varepsilon/k`-DP. The user guide
(*Local privacy*, theorems 1 and 2) has the proofs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._base import BitStream, Mechanism
from ._exact import MOST_EPSILON, ONE, coins, least_flip, mixture_weight, uniform_integers, walsh_transform
from .discrete import DiscreteLaplaceMechanism, discrete_laplace

Integers = NDArray[np.int64]

# Number of bits that are drawn at a time.
_MOST_BITS = 2**22

#: Code of an unknown category, and report of a column that is not reported.
UNKNOWN = -1

# Number of rows whose columns are drawn at once.
_ROWS = 2**16


class Channel(ABC):
    """The law of the report of one value."""

    name: ClassVar[str]
    epsilon: Any

    #: Number of columns of a report, and their type.
    width: int = 1
    dtype: Any = np.int64

    #: Report of a column that is not reported.
    missing: int = UNKNOWN

    @abstractmethod
    def draw(self, codes: Integers, stream: BitStream) -> NDArray:
        """Return independent reports of codes. The number of bits that are used does not depend on the codes."""

    @property
    @abstractmethod
    def deviation(self) -> float:
        """Largest standard deviation of the information of one report about its value, in units of the code."""


class Mixture(Channel):
    """Report a uniform element of the value's set with some weight, and otherwise any report."""

    @property
    @abstractmethod
    def n_reports(self) -> int:
        """Number K of all reports."""

    @property
    @abstractmethod
    def set_size(self) -> int:
        """Number s of reports in the set of each value."""

    @abstractmethod
    def _draw_from_set(self, codes: Integers, stream: BitStream) -> Integers:
        """Draw a uniform element of the set of each value."""

    @cached_property
    def heads(self) -> int:
        """The weight, in units of 2**-64."""
        return mixture_weight(self.epsilon, Fraction(self.n_reports, self.set_size))

    @property
    def weight(self) -> float:
        """The weight lambda."""
        return self.heads / ONE

    def draw(self, codes: Integers, stream: BitStream) -> Integers:
        heads = coins(self.heads, len(codes), stream)
        # All draws are made for all values, so that the number of used bits does not depend on the codes.
        anywhere = uniform_integers(self.n_reports, len(codes), stream)
        inside = self._draw_from_set(np.maximum(codes, 0), stream)
        return np.where(heads & (codes != UNKNOWN), inside, anywhere)


class CategoryChannel(Channel):
    """A channel for categories, with an unbiased estimate of their frequencies.

    The score of category x, a function of one report, has expectation 1 if the value is x, and 0 otherwise.
    """

    n_categories: int

    @property
    @abstractmethod
    def n_counts(self) -> int:
        """Length of the summary of reports, which counts each report or each bit."""

    @abstractmethod
    def counts(self, reports: NDArray) -> NDArray[np.float64]:
        """Return the summary, of shape (n_counts,): how often each report occurs, or each bit is set."""

    @property
    def mean_square(self) -> float:
        """Mean squared score of a category if all reports are equally likely."""
        return float(self.squares(np.full(self.n_counts, 1 / self.n_counts), 1.0).mean())

    @abstractmethod
    def scores(self, counts: NDArray[np.float64], n: NDArray | float) -> NDArray[np.float64]:
        """Return the sums of the scores by category, for counts of shape (..., n_counts) of `n` reports.

        They are unbiased estimates of the number of values of each category.
        """

    @abstractmethod
    def squares(self, counts: NDArray[np.float64], n: NDArray | float) -> NDArray[np.float64]:
        """Return the sums of the squared scores by category, for the same counts."""


class RateChannel(CategoryChannel):
    """A channel whose score of a category is (hit - miss) / weight, by whether the report is a hit."""

    @property
    def n_counts(self) -> int:
        return self.n_categories

    @property
    @abstractmethod
    def _miss_and_weight(self) -> tuple[float, float]:
        """Probability of a hit for other values, and its difference to that for the value."""

    def scores(self, counts: NDArray[np.float64], n: NDArray | float) -> NDArray[np.float64]:
        miss, weight = self._miss_and_weight
        return (counts - np.asarray(n, dtype=np.float64)[..., None] * miss) / weight

    def squares(self, counts: NDArray[np.float64], n: NDArray | float) -> NDArray[np.float64]:
        miss, weight = self._miss_and_weight
        return (counts * (1 - 2 * miss) + np.asarray(n, dtype=np.float64)[..., None] * miss**2) / weight**2


@dataclass(frozen=True)
class KaryChannel(Mixture, RateChannel):
    """Randomised response (Warner 1965; Kairouz, Oh and Viswanath 2016): the value itself, or any value."""

    epsilon: Any  # Guarantee of the channel.
    n_categories: int  # Number of categories.

    name = "randomised response"
    set_size = 1

    @property
    def n_reports(self) -> int:
        return self.n_categories

    @property
    def _miss_and_weight(self) -> tuple[float, float]:
        return (1 - self.weight) / self.n_categories, self.weight

    @property
    def deviation(self) -> float:
        miss = (1 - self.weight) / self.n_categories
        hit = self.weight + miss
        return math.sqrt(max(miss * (1 - miss), hit * (1 - hit))) / self.weight

    def _draw_from_set(self, codes: Integers, stream: BitStream) -> Integers:
        return codes

    def counts(self, reports: NDArray) -> NDArray[np.float64]:
        return np.bincount(reports, minlength=self.n_categories).astype(np.float64)


@dataclass(frozen=True)
class HadamardChannel(Mixture, CategoryChannel):
    r"""Hadamard response (Acharya, Sun and Zhang 2019): a position where a Hadamard row is 1, or any position.

    Reports are positions in blocks of a power of two, b. Category :math:`x` belongs to block :math:`x \div (b - 1)`
    and has a row of the Hadamard matrix of order b there, other than the first. :math:`S_x` are the positions at which
    this row is 1.
    """

    epsilon: Any  # Guarantee of the channel.
    n_categories: int  # Number of categories.
    block: int  # Size of a block, a power of two, at least 2.

    name = "Hadamard response"

    @classmethod
    def best(cls, epsilon: Any, n_categories: int) -> HadamardChannel:
        """Return the channel with the smallest mean squared score for equally frequent categories."""
        limit = 1 << n_categories.bit_length()
        sizes = [1 << i for i in range(1, limit.bit_length())]
        excess = math.expm1(min(float(epsilon), MOST_EPSILON))

        def mean_square(block: int) -> float:
            n_blocks = -(-n_categories // (block - 1))
            return (excess + 2 * n_blocks) ** 2 / n_blocks

        if epsilon == math.inf:
            return cls(epsilon, n_categories, 2)
        return cls(epsilon, n_categories, min(sizes, key=mean_square))

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return -(-self.n_categories // (self.block - 1))

    @property
    def n_reports(self) -> int:
        return self.n_blocks * self.block

    @property
    def set_size(self) -> int:
        return self.block // 2

    @property
    def n_counts(self) -> int:
        return self.n_reports

    @property
    def deviation(self) -> float:
        return math.sqrt(self.weight + (1 - self.weight) / self.n_blocks) / self.weight

    def _draw_from_set(self, codes: Integers, stream: BitStream) -> Integers:
        blocks, rows = np.divmod(codes, self.block - 1)
        rows += 1
        position = (stream.words(len(codes)) & np.uint64(self.block - 1)).astype(np.int64)
        # Half of all positions have a -1, and flipping one bit of the row's number maps these onto the others.
        odd = _parity(position & rows)
        position ^= odd * (rows & -rows)
        return blocks * self.block + position

    def counts(self, reports: NDArray) -> NDArray[np.float64]:
        return np.bincount(reports, minlength=self.n_reports).astype(np.float64)

    def scores(self, counts: NDArray[np.float64], n: NDArray | float) -> NDArray[np.float64]:
        blocks = counts.reshape(*counts.shape[:-1], self.n_blocks, self.block)
        sums = walsh_transform(blocks)[..., 1:]
        return sums.reshape(*counts.shape[:-1], -1)[..., : self.n_categories] / self.weight

    def squares(self, counts: NDArray[np.float64], n: NDArray | float) -> NDArray[np.float64]:
        blocks = counts.reshape(*counts.shape[:-1], self.n_blocks, self.block).sum(axis=-1)
        return np.repeat(blocks, self.block - 1, axis=-1)[..., : self.n_categories] / self.weight**2


def _parity(values: Integers) -> Integers:
    """Tell whether the number of set bits is odd."""
    values = values ^ (values >> 32)
    for shift in (16, 8, 4, 2, 1):
        values ^= values >> shift
    return values & 1


@dataclass(frozen=True)
class UnaryChannel(RateChannel):
    r"""Unary encoding (Erlingsson, Pihur and Korolova 2014; Wang, Blocki, Li and Jha 2017): a bit for each category.

    The value's own bit is set with probability p = 1/2, and the others with probability q, independently. Two values
    differ in two bits. Therefore the ratio is at most :math:`p(1-q)/((1-p)q) = (1-q)/q`.
    """

    epsilon: Any  # Guarantee of the channel.
    n_categories: int  # Number of categories.

    name = "unary encoding"
    dtype = np.int8

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.n_categories

    @cached_property
    def heads(self) -> tuple[int, int]:
        """Both p and q, in units of 2**-64."""
        if self.epsilon == math.inf:
            return ONE, 0
        return ONE // 2, least_flip(self.epsilon)

    @property
    def rates(self) -> tuple[float, float]:
        """The probabilities p and q."""
        return self.heads[0] / ONE, self.heads[1] / ONE

    @property
    def _miss_and_weight(self) -> tuple[float, float]:
        p, q = self.rates
        return q, p - q

    @property
    def deviation(self) -> float:
        p, q = self.rates
        return math.sqrt(max(p * (1 - p), q * (1 - q))) / (p - q)

    def draw(self, codes: Integers, stream: BitStream) -> NDArray[np.int8]:
        reports = np.empty((len(codes), self.n_categories), dtype=np.int8)
        rows = max(1, _MOST_BITS // self.n_categories)
        for start in range(0, len(codes), rows):
            block = reports[start : start + rows]
            block[:] = coins(self.heads[1], block.size, stream).reshape(block.shape)
        bits_of_values = coins(self.heads[0], len(codes), stream)
        known = np.flatnonzero(codes != UNKNOWN)
        reports[known, codes[known]] = bits_of_values[known]
        return reports

    def counts(self, reports: NDArray) -> NDArray[np.float64]:
        return reports.sum(axis=0, dtype=np.float64)


class NumberChannel(Channel):
    """A channel for integers from 0 to `largest`, with an unbiased estimate of each."""

    largest: int
    missing = np.iinfo(np.int64).min

    @abstractmethod
    def estimate(self, reports: NDArray) -> NDArray[np.float64]:
        """Return a number for each report whose expectation is the code."""


@dataclass(frozen=True)
class WindowChannel(Mixture, NumberChannel):
    r"""The piecewise mechanism (Wang et al. 2019) on a lattice: a window of reports around the value, or any report.

    Codes are 0, ..., M, and the window of code i are the w reports from i on.
    """

    epsilon: Any  # Guarantee of the channel.
    largest: int  # The largest code M.
    window: int  # Number w of reports in a window.

    name = "piecewise mechanism"

    @classmethod
    def best(cls, epsilon: Any, largest: int) -> WindowChannel:
        r"""Return the channel with the window of the paper, :math:`M e^{-\varepsilon/2}`."""
        return cls(epsilon, largest, max(1, round(largest * math.exp(-float(epsilon) / 2))))

    @property
    def n_reports(self) -> int:
        return self.largest + self.window

    @property
    def set_size(self) -> int:
        return self.window

    def _draw_from_set(self, codes: Integers, stream: BitStream) -> Integers:
        return codes + uniform_integers(self.window, len(codes), stream)

    def estimate(self, reports: NDArray) -> NDArray[np.float64]:
        return self.largest / 2 + (reports - (self.n_reports - 1) / 2) / self.weight

    @property
    def deviation(self) -> float:
        # The variance is largest at an end of the range.
        weight, half = self.weight, self.largest / 2
        spread = weight * ((self.window**2 - 1) / 12 + half**2) + (1 - weight) * (self.n_reports**2 - 1) / 12
        return math.sqrt(max(spread - (weight * half) ** 2, 0.0)) / weight


@dataclass(frozen=True)
class LatticeLaplaceChannel(NumberChannel):
    r"""Discrete Laplace noise on integers from 0 to M, of which any two are at most M apart."""

    epsilon: Any  # Guarantee of the channel.
    largest: int  # The largest code M.

    name = "discrete Laplace"

    @cached_property
    def lattice_scale(self) -> Fraction:
        """Scale of the noise, at least M over epsilon."""
        if self.epsilon == math.inf:
            return Fraction(0)
        return DiscreteLaplaceMechanism(self.epsilon, self.largest, 1).lattice_scale

    def draw(self, codes: Integers, stream: BitStream) -> Integers:
        if self.epsilon == math.inf:
            return codes
        return codes + discrete_laplace(self.lattice_scale, len(codes), stream)

    def estimate(self, reports: NDArray) -> NDArray[np.float64]:
        return reports.astype(np.float64)

    @property
    def deviation(self) -> float:
        if self.epsilon == math.inf:
            return 0.0
        rate = 1 / float(self.lattice_scale)
        return math.sqrt(2 * math.exp(-rate)) / -math.expm1(-rate)


@dataclass(frozen=True)
class LocalMechanism(Mechanism):
    """Reports of rows that are randomised separately."""

    channels: tuple[Channel, ...]  # Channel of each column.
    n_reported: int  # Number of columns that each row reports, drawn at random if it is less than all.

    sensitivity = 1.0
    norm = "records"

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the channel."""
        return " and ".join(sorted({channel.name for channel in self.channels}))

    @property
    def scale(self) -> float:
        """Largest standard deviation of the information of a report about a value, in units of its code."""
        return max(channel.deviation for channel in self.channels)

    @property
    def starts(self) -> list[int]:
        """Positions at which the reports of the columns begin, and at which the last one ends."""
        return np.cumsum([0, *(channel.width for channel in self.channels)]).tolist()

    def release(self, value: ArrayLike, stream: BitStream) -> NDArray:
        """Return the reports, as integers of shape (n_rows, width).

        `value` holds codes, of shape (n_rows, n_columns): integers from 0, and -1 for unknown categories. Columns that
        are not reported have the channel's code for missing reports.
        """
        codes = np.asarray(value, dtype=np.int64)
        n_rows, n_columns = len(codes), len(self.channels)
        starts = self.starts
        reports = np.empty((n_rows, starts[-1]), dtype=np.result_type(*(channel.dtype for channel in self.channels)))
        chosen = None if self.n_reported == n_columns else self._choose(n_rows, stream)
        for j, channel in enumerate(self.channels):
            of_column = reports[:, starts[j] : starts[j + 1]]
            if chosen is None:
                of_column[:] = channel.draw(codes[:, j], stream).reshape(of_column.shape)
            else:
                rows = np.flatnonzero(chosen[:, j])
                of_column[:] = channel.missing
                of_column[rows] = channel.draw(codes[rows, j], stream).reshape(len(rows), channel.width)
        return reports

    def _choose(self, n_rows: int, stream: BitStream) -> NDArray[np.bool_]:
        """Draw the reported columns of each row."""
        chosen = np.zeros((n_rows, len(self.channels)), dtype=bool)
        for start in range(0, n_rows, _ROWS):
            block = chosen[start : start + _ROWS]
            keys = stream.words(block.size).reshape(block.shape)
            first = np.argpartition(keys, self.n_reported - 1, axis=1)[:, : self.n_reported]
            np.put_along_axis(block, first, True, axis=1)
        return chosen
