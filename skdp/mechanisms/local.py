r"""The local model: each record is randomised separately, before anyone else sees it.

Theorem. Let each row report :math:`k` of its :math:`d` columns, drawn independently of the row, each through a channel
that is :math:`\varepsilon/k`-DP, all independently. Then the report of a row is :math:`\varepsilon`-DP for any change
of that row, and does not depend on other rows. Proof: the draw of the columns has the same law for all rows. Given the
drawn columns, the probability of the reports is the product of :math:`k` factors, each of which changes by at most
:math:`e^{\varepsilon/k}`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._base import Mechanism
from ._bits import BitStream
from .channels import Channel

# Number of rows whose columns are drawn at once.
_ROWS = 2**16


@dataclass(frozen=True)
class LocalMechanism(Mechanism):
    """Reports of rows that are randomised separately.

    Parameters
    ----------
    channels : tuple of Channel
        Channel of each column.
    n_reported : int
        Number of columns that each row reports, drawn at random if it is less than all.
    """

    channels: tuple[Channel, ...]
    n_reported: int

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
        """Return the reports.

        Parameters
        ----------
        value : array-like of shape (n_rows, n_columns)
            Codes of the values: integers from 0, and -1 for unknown categories.
        stream : BitStream
            Source of bits.

        Returns
        -------
        reports : ndarray of shape (n_rows, width)
            Integers. Columns that are not reported have the channel's code for missing reports.
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
