"""Dask collections as parts. The active scheduler computes the tasks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Any

import dask
import numpy as np
import pandas as pd
from dask.dataframe.utils import make_meta
from dask.delayed import Delayed, delayed

from .arrays import PartedArray, Parts
from .tasks import Failure, Identity, Node, Outcome, combined, divided, failure_of, keep, run, united

# Number of outcomes that one task adds up.
_ADDED = 16

_NOT_ALIKE = (
    "X, y, groups and sample_weight must be divided into the same partitions. Take them from one collection. "
    "Nothing was charged"
)


class DaskParts(Parts):
    """The partitions of Dask collections: for each, a tuple of delayed arrays."""

    def __init__(self, blocks: Sequence[tuple[Delayed, ...]], identities: dict[int, Identity] | None = None) -> None:
        super().__init__(identities)
        self._blocks = blocks

    @property
    def n_parts(self) -> int:
        """Number of partitions."""
        return len(self._blocks)

    def _run(self, job: bytes, extras: Sequence[dict[str, Any]] | None) -> Outcome | Failure:
        task, add = delayed(run, pure=False, traverse=False), delayed(combined, pure=False)
        todo = [
            task(job, i, self.given(i), extras[i] if extras else {}, *block) for i, block in enumerate(self._blocks)
        ]
        while len(todo) > _ADDED:
            todo = [add(todo[i : i + _ADDED]) for i in range(0, len(todo), _ADDED)]
        try:
            outcomes = dask.compute(*todo)
        except Exception:
            # The message of the exception may contain rows.
            return Failure.ROWS
        return combined(outcomes)

    def _kept(self, job: bytes, identities: dict[int, Identity]) -> Parts:
        task = delayed(keep, pure=False, traverse=False)
        return _persisted([task(job, i, self.given(i), *block) for i, block in enumerate(self._blocks)], identities)

    def _divided(self, job: bytes, identities: dict[int, Identity]) -> Parts:
        split, join = delayed(divided, pure=False, traverse=False), delayed(united, pure=False)
        n = self.n_parts
        pieces = [split(job, i, self.given(i), n, *block) for i, block in enumerate(self._blocks)]
        return _persisted([join([piece[j] for piece in pieces]) for j in range(n)], identities)


def _persisted(todo: Sequence[Delayed], identities: dict[int, Identity]) -> DaskParts:
    """Return the results of tasks, which are computed once, as parts."""
    try:
        blocks = dask.persist(*todo)
    except Exception:
        # The message of the exception may contain rows. The next sum over the parts raises an error without it.
        blocks = (Failure.ROWS,) * len(todo)
    return DaskParts([(block,) for block in blocks], identities)


def parted(*collections: Any) -> tuple[PartedArray, ...]:
    """Return the arrays in parts of collections with the same rows."""
    if not all(dask.is_dask_collection(c) for c in collections):
        raise TypeError(
            "X, y, groups and sample_weight must all be Dask collections, or none of them. Nothing was charged"
        )
    if len(collections) > 1 and all(map(_is_frame, collections)):
        return _joined(*collections)
    blocks, metas = zip(*(_blocks(c, collections[0] if i else None) for i, c in enumerate(collections)), strict=True)
    if len(set(map(len, blocks))) > 1:
        raise ValueError(_NOT_ALIKE)
    parts = DaskParts(list(zip(*blocks, strict=True)))
    return tuple(PartedArray(parts, Node(i), meta) for i, meta in enumerate(metas))


def _is_frame(collection: Any) -> bool:
    return hasattr(collection, "map_partitions") and hasattr(collection, "to_dask_array")


def _joined(*collections: Any) -> tuple[PartedArray, ...]:
    """Return collections as parts of one frame, because Dask may read and divide two frames differently."""
    metas = [make_meta(one) for one in collections]
    meta, blocks = _side_by_side(*metas), None
    if not isinstance(meta, Failure):
        # Dask refuses partitions that it cannot align. Its message may hold values of the index.
        with suppress(ValueError):
            frame = collections[0].map_partitions(_side_by_side, *collections[1:], meta=meta, enforce_metadata=False)
            blocks = frame.to_delayed()
    if blocks is None:
        raise ValueError(_NOT_ALIKE)
    parts = DaskParts([(block,) for block in blocks])
    cuts = np.cumsum([0, *(1 if meta.ndim == 1 else meta.shape[1] for meta in metas)]).tolist()
    whole = Node(0)
    return tuple(
        PartedArray(parts, Node(partial(_side, slice(start, stop), meta), (whole,)), meta)
        for meta, (start, stop) in zip(metas, pairwise(cuts), strict=True)
    )


def _side_by_side(*collections: Any) -> Any:
    """Return a frame of all columns, with their positions as names, or a failure if their rows differ."""
    try:
        if all(collections[0].index.equals(other.index) for other in collections[1:]):
            return pd.concat(collections, axis=1, ignore_index=True)
    except Exception as error:
        return failure_of(error)
    return Failure.ROWS


def _side(columns: slice, meta: Any, frame: Any) -> Any:
    side = frame.iloc[:, columns]
    return side.iloc[:, 0].rename(meta.name) if meta.ndim == 1 else side.set_axis(meta.columns, axis=1)


def _blocks(collection: Any, like: Any) -> tuple[list[Delayed], Any]:
    """Return the blocks of rows of a collection, and an empty array or frame with its columns and types."""
    if _is_frame(collection):
        return list(collection.to_delayed()), make_meta(collection)
    if not hasattr(collection, "chunks"):
        raise TypeError(
            "X and y must be DataFrames, Series or Arrays of Dask. Convert a Bag by to_dataframe. Nothing was charged"
        )
    if collection.ndim > 1 and collection.numblocks[1] > 1:
        collection = collection.rechunk({1: -1})
    if hasattr(like, "chunks") and like.chunks[0] != collection.chunks[0]:
        lengths = np.array([*like.chunks[0], *collection.chunks[0]], dtype=np.float64)
        if not np.isnan(lengths).any():
            if sum(like.chunks[0]) != sum(collection.chunks[0]):
                raise ValueError("X and y must have the same number of rows. Nothing was charged")
            collection = collection.rechunk({0: like.chunks[0]})
    return list(collection.to_delayed().ravel()), np.empty((0, *collection.shape[1:]), dtype=collection.dtype)
