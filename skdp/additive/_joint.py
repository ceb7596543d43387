"""Cells of several terms at once: a record is looked up, and counted, once for all terms of a bundle."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from ..schema.columns import Codes

Array = NDArray[np.float64]

# Joint cells of a bundle. Tables with so many entries stay in the processor's cache.
_MOST_CELLS = 2**12


class Bundles:
    """Terms in bundles that have few joint cells, and the joint cell of each record."""

    def __init__(self, codes: Codes, sizes: list[int]) -> None:
        self._sizes = sizes
        self._members: list[list[int]] = []
        for t in sorted(range(len(sizes)), key=lambda t: -sizes[t]):
            fitting = (own for own in self._members if sizes[t] * self._size(own) <= _MOST_CELLS)
            found = next(fitting, None)
            if found is None:
                self._members.append([t])
            else:
                found.append(t)
        self.sizes = [self._size(own) for own in self._members]
        self.codes = [
            reduce(lambda joint, t: joint * sizes[t] + codes[t], own, np.zeros(codes.shape[1], dtype=np.intp))
            for own in self._members
        ]

    def _size(self, members: list[int]) -> int:
        return math.prod(self._sizes[t] for t in members)

    def tables(self, tables: list[Array]) -> list[Array]:
        """Return sums of the terms' tables, of shape (outputs, n_joint_cells), for each bundle."""
        outputs = len(tables[0])
        out = []
        for own in self._members:
            joint = np.zeros((outputs, 1))
            for t in own:
                joint = (joint[:, :, None] + tables[t][:, None, :]).reshape(outputs, -1)
            out.append(joint)
        return out

    def by_term(self, sums: list[Array]) -> list[Array]:
        """Return sums by term, of shape (outputs, n_cells), from those by joint cell."""
        out: list[Array] = [np.empty(0)] * len(self._sizes)
        for own, joint in zip(self._members, sums, strict=True):
            shaped = joint.reshape(len(joint), *(self._sizes[t] for t in own))
            for axis, t in enumerate(own, start=1):
                out[t] = shaped.sum(axis=tuple(k for k in range(1, shaped.ndim) if k != axis))
        return out
