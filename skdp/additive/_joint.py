"""Joint cells of several terms. Each record is looked up and counted once for all terms of a bundle."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..schema.columns import Codes

Array = NDArray[np.float64]

#: Number of records of a block. The results for a block fit into the processor's cache.
BLOCK = 2**13

# Largest number of joint cells of a bundle. Tables of this size fit into the processor's cache.
_MOST_CELLS = 2**12


class Bundles:
    """Bundles of terms with few joint cells, and the joint cells of each record, as sparse matrices by block."""

    def __init__(self, codes: Codes, sizes: list[int]) -> None:
        members: list[list[int]] = []
        for t in sorted(range(len(sizes)), key=lambda t: -sizes[t]):
            fitting = (own for own in members if math.prod(sizes[k] for k in (t, *own)) <= _MOST_CELLS)
            found = next(fitting, None)
            if found is None:
                members.append([t])
            else:
                found.append(t)
        self.sizes = [math.prod(sizes[t] for t in own) for own in members]
        starts = np.cumsum([0, *self.sizes]).astype(np.int32)
        firsts = np.cumsum([0, *sizes])
        # A row for each joint cell has ones for its cells of the terms.
        rows, columns = [], []
        for own, start, size in zip(members, starts, self.sizes, strict=False):
            cells = np.unravel_index(np.arange(size), [sizes[t] for t in own])
            rows += [start + np.arange(size)] * len(own)
            columns += [firsts[t] + of_term for t, of_term in zip(own, cells, strict=True)]
        places = np.concatenate(rows), np.concatenate(columns)
        self._cells = csr_array((np.ones(len(places[0])), places), shape=(starts[-1], firsts[-1]))
        self._joint = self._cells.T
        # A row for each record has ones for its joint cells. Blocks differ only in the places of the ones.
        ones = np.ones(BLOCK * len(members))
        ends = np.arange(BLOCK + 1, dtype=np.int32) * np.int32(len(members))
        self.blocks = []
        for first in range(0, codes.shape[1], BLOCK):
            own_codes = codes[:, first : first + BLOCK].astype(np.int32)
            count = own_codes.shape[1]
            joint = np.empty((count, len(members)), dtype=np.int32)
            for k, own in enumerate(members):
                joint[:, k] = starts[k] + reduce(lambda found, t: found * sizes[t] + own_codes[t], own, 0)
            block = csr_array((ones[: joint.size], joint.ravel(), ends[: count + 1]), shape=(count, starts[-1]))
            self.blocks.append((block, block.T))

    def tables(self, values: Array) -> Array:
        """Return sums of the values of cells, of shape (n_cells, outputs), by output and joint cell."""
        out: Array = np.ascontiguousarray((self._cells @ values).T)
        return out

    def by_cell(self, sums: Array) -> Array:
        """Return sums by cell of all terms, of shape (n_cells, outputs), from sums by output and joint cell."""
        out: Array = self._joint @ sums.T
        return out
