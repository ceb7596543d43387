"""Cells of several terms at once: a record is looked up, and counted, once for all terms of a bundle."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..schema.columns import Codes

Array = NDArray[np.float64]

# Joint cells of a bundle. Tables with so many entries stay in the processor's cache.
_MOST_CELLS = 2**12


class Bundles:
    """Terms in bundles that have few joint cells, and the joint cell of each record."""

    def __init__(self, codes: Codes, sizes: list[int]) -> None:
        firsts = np.cumsum([0, *sizes])
        members: list[list[int]] = []
        for t in sorted(range(len(sizes)), key=lambda t: -sizes[t]):
            fitting = (own for own in members if math.prod(sizes[k] for k in (t, *own)) <= _MOST_CELLS)
            found = next(fitting, None)
            if found is None:
                members.append([t])
            else:
                found.append(t)
        self.sizes = [math.prod(sizes[t] for t in own) for own in members]
        self.codes = [
            reduce(lambda joint, t: joint * sizes[t] + codes[t], own, np.zeros(codes.shape[1], dtype=np.intp))
            for own in members
        ]
        # A row for each joint cell has ones for its cells of the terms.
        cells = [
            np.stack(np.unravel_index(np.arange(size), [sizes[t] for t in own]), axis=1) + firsts[own]
            for own, size in zip(members, self.sizes, strict=True)
        ]
        ends = np.cumsum(np.concatenate([[0], *(np.full(len(own), own.shape[1]) for own in cells)]))
        columns = np.concatenate([own.ravel() for own in cells])
        shape = sum(self.sizes), sum(sizes)
        self._cells = csr_array((np.ones(len(columns)), columns.astype(np.int32), ends.astype(np.int32)), shape=shape)
        self._joint = self._cells.T
        self._slices = [slice(end - size, end) for end, size in zip(np.cumsum(self.sizes), self.sizes, strict=True)]

    def tables(self, values: Array) -> list[Array]:
        """Return sums of the values of cells, of shape (n_cells, outputs), by output and joint cell for each bundle."""
        joint = np.ascontiguousarray((self._cells @ values).T)
        return [joint[:, own] for own in self._slices]

    def by_cell(self, sums: list[Array]) -> Array:
        """Return sums by cell of all terms, of shape (n_cells, outputs), from those by output and joint cell."""
        out: Array = self._joint @ np.hstack(sums).T
        return out
