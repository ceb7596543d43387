r"""The local model: each record is randomised by itself, before anyone else sees it.

Theorem. Let each row report :math:`k` of its :math:`d` columns, drawn without looking at the row, each through a
channel that is :math:`\varepsilon/k`-DP, all independently. Then the report of a row is :math:`\varepsilon`-DP for any
change of that row, and says nothing about other rows. Proof: given which columns are drawn, which has the same law for
all rows, the probability of the reports is the product of :math:`k` factors, each of which changes by
:math:`e^{\varepsilon/k}` at most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._base import Mechanism
from ._bits import BitStream
from .channels import Channel

# Rows whose columns are drawn at once.
_ROWS = 2**16


@dataclass(frozen=True)
class LocalMechanism(Mechanism):
    """Reports of rows, each of which is randomised by itself.

    Parameters
    ----------
    channels : tuple of Channel
        One for each column.
    n_reported : int
        How many columns each row reports, drawn at random if they are not all.
    """

    channels: tuple[Channel, ...]
    n_reported: int

    sensitivity = 1.0
    norm = "records"

    @property
    def name(self) -> str:  # type: ignore[override]
        """The channel's name."""
        return " and ".join(sorted({channel.name for channel in self.channels}))

    @property
    def scale(self) -> float:
        """The largest standard deviation of what a report says about a value, in units of its code."""
        return max(channel.deviation for channel in self.channels)

    @property
    def starts(self) -> list[int]:
        """Where the report of each column begins, and where the last one ends."""
        return np.cumsum([0, *(channel.width for channel in self.channels)]).tolist()

    def release(self, value: ArrayLike, stream: BitStream) -> NDArray:
        """Return the reports.

        Parameters
        ----------
        value : array-like of shape (n_rows, n_columns)
            Codes of the values: integers from 0; -1 for what is no category.
        stream : BitStream
            Source of bits.

        Returns
        -------
        reports : ndarray of shape (n_rows, width)
            Integers; the channel's code for missing ones where a column is not reported.
        """
        codes = np.asarray(value, dtype=np.int64)
        n_rows, n_columns = len(codes), len(self.channels)
        starts = self.starts
        out = np.empty((n_rows, starts[-1]), dtype=np.result_type(*(channel.dtype for channel in self.channels)))
        chosen = None if self.n_reported == n_columns else self._choose(n_rows, stream)
        for j, channel in enumerate(self.channels):
            part = out[:, starts[j] : starts[j + 1]]
            if chosen is None:
                part[:] = channel.draw(codes[:, j], stream).reshape(part.shape)
            else:
                rows = np.flatnonzero(chosen[:, j])
                part[:] = channel.missing
                part[rows] = channel.draw(codes[rows, j], stream).reshape(len(rows), channel.width)
        return out

    def _choose(self, n_rows: int, stream: BitStream) -> NDArray[np.bool_]:
        """Draw which columns each row reports."""
        chosen = np.zeros((n_rows, len(self.channels)), dtype=bool)
        for start in range(0, n_rows, _ROWS):
            block = chosen[start : start + _ROWS]
            keys = stream.words(block.size).reshape(block.shape)
            first = np.argpartition(keys, self.n_reported - 1, axis=1)[:, : self.n_reported]
            np.put_along_axis(block, first, True, axis=1)
        return chosen
