r"""Poisson samples of rows: each row is drawn with the same probability, independently of all others.

Membership of rows in samples is a sequence of Bernoulli(q) trials, row after row and sample after sample. The failures
between two successes are geometric, with :math:`P(G \ge k) = (1-q)^k`. Therefore :math:`G = k` exactly when
:math:`(1-q)^{k+1} \le U < (1-q)^k` for a uniform :math:`U`. The work is proportional to the number of drawn rows.

:math:`U` is computed as precisely as the decision needs. Its first 16 bits are enough for most decisions, by a table.
Otherwise, 48 more bits decide in doubles with an error bound, and rarely, further bits decide in decimal arithmetic.
The law is exact, because an error of a probability would change the privacy loss of every step.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ._bits import BitStream
from ._exact import ELEMENTARY, digits_for, extend

#: The smallest rate. For smaller ones, gaps would not fit into an integer.
LEAST_RATE = 2.0**-48

# Approximate number of rows that are drawn at a time: many enough for few calls, and a few megabytes.
_CHUNK_ROWS = 2**17

_UNDECIDED = -1


@dataclass(frozen=True)
class PoissonSampler:
    """Draw Poisson samples of rows.

    Parameters
    ----------
    rate : float
        Probability that a row is in a sample, at least ``LEAST_RATE`` and below 1. It is an exact dyadic number.
    """

    rate: float

    def __post_init__(self) -> None:
        if not LEAST_RATE <= self.rate < 1:
            raise ValueError(f"rate must be at least {LEAST_RATE} and below 1, got {self.rate!r}")

    def samples(self, n_rows: int, n_samples: int, stream: BitStream) -> Iterator[NDArray[np.intp]]:
        """Draw independent samples.

        Parameters
        ----------
        n_rows : int
            Number of rows to draw from.
        n_samples : int
            Number of samples.
        stream : BitStream
            Source of bits.

        Yields
        ------
        rows : ndarray of intp
            Positions of the rows in one sample, increasing. They are private, and so is their number.
        """
        if n_rows == 0:
            for _ in range(n_samples):
                yield np.empty(0, dtype=np.intp)
            return
        together = max(1, min(n_samples, int(_CHUNK_ROWS / (self.rate * n_rows))))
        for start in range(0, n_samples, together):
            count = min(together, n_samples - start)
            hits = self._successes(count * n_rows, stream)
            ends = np.searchsorted(hits, np.arange(1, count + 1) * n_rows)
            begin = 0
            for sample, end in enumerate(ends.tolist()):
                yield hits[begin:end] - sample * n_rows
                begin = end

    def _successes(self, n_trials: int, stream: BitStream) -> NDArray[np.intp]:
        """Return the positions of the successes in a sequence of trials."""
        expected = n_trials * self.rate
        parts, last = [], -1
        while last < n_trials:
            gaps = self.gaps(int(expected + 4 * math.sqrt(expected)) + 16, stream, n_trials)
            gaps += 1
            gaps[0] += last
            # A sum of gaps that would overflow ends far beyond the trials in any case.
            np.minimum(gaps, n_trials + 1, out=gaps)
            hits = np.cumsum(gaps, out=gaps)
            parts.append(hits)
            last = int(hits[-1])
            expected = max(n_trials - last, 0) * self.rate
        together = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return together[: np.searchsorted(together, n_trials)]

    def gaps(self, size: int, stream: BitStream, most: float = math.inf) -> NDArray[np.intp]:
        """Draw independent geometric numbers of failures before a success.

        Parameters
        ----------
        size : int
            Number of gaps.
        stream : BitStream
            Source of bits.
        most : int, optional
            Gaps above this number may be returned as any larger number. With a small rate, exact values are slow to
            compute, and a caller does not need values beyond its trials.

        Returns
        -------
        gaps : ndarray of intp, of shape (size,)
            Gaps, at least 0.
        """
        heads = stream.words(-(-size // 4)).view(np.uint16)[:size]
        gaps = self._table.take(heads)
        open_ = np.flatnonzero(gaps == _UNDECIDED)
        if open_.size:
            gaps[open_] = self._by_doubles(heads[open_], stream, most)
        return gaps

    @cached_property
    def _log_failure(self) -> float:
        return math.log1p(-self.rate)

    @cached_property
    def _table(self) -> NDArray[np.intp]:
        """Return, for each 16 bits, the gap of all uniforms that begin with them, or a mark if there are several."""
        edges = np.arange(2**16 + 1) * 2.0**-16
        with np.errstate(divide="ignore"):
            counts = np.log(edges) / self._log_failure
        slack = 4 * ELEMENTARY
        least, most = np.floor(counts[1:] * (1 - slack)), np.floor(counts[:-1] * (1 + slack))
        same = least == most
        return np.where(same, least, _UNDECIDED).astype(np.intp)

    def _by_doubles(self, heads: NDArray[np.uint16], stream: BitStream, most: float) -> NDArray[np.intp]:
        tails = stream.words(len(heads)) >> np.uint64(16)
        prefixes = (heads.astype(np.uint64) << np.uint64(48)) | tails
        uniform = (prefixes.astype(np.float64) + 0.5) * 2.0**-64
        counts = np.log(uniform) / self._log_failure
        # The error of bits that are not drawn yet, of the rounding of the prefix, and of the logarithms.
        error = (2.0**-64 / uniform + 2.0**-52) / -self._log_failure + counts * 4 * ELEMENTARY
        gaps = np.floor(counts)
        doubtful = ~((np.floor(counts - error) == gaps) & (np.floor(counts + error) == gaps))
        doubtful |= prefixes < 2**32
        # It is certain that a gap exceeds the limit long before the gap itself is known.
        doubtful &= counts - error <= most + 1
        result = np.where(doubtful, 0, gaps).astype(np.intp)
        for i in np.flatnonzero(doubtful):
            result[i] = self._by_decimals(int(prefixes[i]), stream)
        return result

    def _by_decimals(self, prefix: int, stream: BitStream) -> int:
        """Return the gap of a uniform whose first 64 bits are known."""
        bits = 64
        while True:
            # A small rate cancels digits of the logarithm, and the quotient is larger by the same factor.
            precision = 2 * digits_for(bits) + 40
            with decimal.localcontext(decimal.Context(prec=precision, Emin=decimal.MIN_EMIN)):
                log_failure = (1 - Decimal(self.rate)).ln()
                slack = Decimal(10) ** -(digits_for(bits))
                ends = [Decimal(p) / Decimal(2) ** bits for p in (prefix + 1, prefix)]
                if prefix:
                    low, high = (end.ln() / log_failure for end in ends)
                    if int(low * (1 - slack)) == int(high * (1 + slack)):
                        return min(int(low), 2**62)
            prefix, bits = extend(prefix, stream), bits + 64
