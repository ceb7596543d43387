"""Routes rows through the trees of a forest. A tree's leaf is a function of the bins that its features are in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..schema.bins import Bins
from ..schema.categories import cells_of_codes

if TYPE_CHECKING:
    from ._structure import Forest

Array = NDArray[np.float64]

#: Most entries of a tree's table: one for each combination of bins between the tree's own thresholds.
_MOST_ENTRIES = 4096

#: Most features of such a tree: to find the bins of more takes as long as to walk down.
_MOST_SEEN = 2


class Routes:
    """Find the leaves of rows, tree by tree, with tables if `tables` is True, which pays for many rows."""

    # Each feature is put into bins once, between the thresholds of all trees. Trees with one or two features look up
    # the leaf; in the others, rows walk down level by level. A row stays in the first node that splits a column in
    # which it has no category. Inner nodes are numbered level by level after the leaves.
    def __init__(self, forest: Forest, tables: bool) -> None:
        self._forest = forest
        self._bins: dict[int, Bins] = {}
        # By tree: its table, and for each of its features the part of the entry's position that follows from the bin.
        self._tables: dict[int, tuple[NDArray[np.intp], list[tuple[int, NDArray[np.intp]]]]] = {}
        if tables and forest.depth:
            self._prepare()

    def __call__(self, X: NDArray) -> Iterator[NDArray[np.intp]]:
        """Yield for each tree the leaf of each row, or the inner node in which the row stays."""
        # Values beyond the bounds go where the bounds go. The caller may write into the arrays.
        forest = self._forest
        across = np.ascontiguousarray(X.T)
        known: dict[int, NDArray[np.intp]] = {}

        def code(feature: int) -> NDArray[np.intp]:
            if feature not in known:
                bins, values = self._bins.get(feature), across[feature]
                known[feature] = self._codes(feature, values) if bins is None else bins(values)
            return known[feature]

        for t in range(forest.n_trees):
            if t not in self._tables:
                yield self._walk(t, across, code)
                continue
            table, parts = self._tables[t]
            if not parts:
                yield np.full(len(X), table[0])
                continue
            leaves = parts[0][1].take(code(parts[0][0]))
            for feature, part in parts[1:]:
                leaves += part.take(code(feature))
            yield table.take(leaves) if len(parts) > 1 else leaves

    def _codes(self, feature: int, values: NDArray) -> NDArray[np.intp]:
        # The last place is that of other values.
        return cells_of_codes(values, np.intp(self._forest.places[feature].shape[1] - 1))

    def _walk(self, t: int, across: NDArray, code: Callable[[int], NDArray[np.intp]]) -> NDArray[np.intp]:
        forest, n_rows = self._forest, across.shape[1]
        seen = [
            forest.places[f][t].take(code(f)) if f in forest.places else across[f]
            for f in forest.features[t, : forest.n_seen[t]].tolist()
        ]
        values = np.concatenate(seen) if len(seen) > 1 else seen[0]
        rows = np.arange(n_rows)
        node = np.zeros(n_rows, dtype=np.intp)
        stays = np.full(n_rows, -1) if np.isnan(values).any() else None
        for level in range(forest.depth):
            slots = forest.level(forest.slots, level)[t]
            thresholds = forest.level(forest.thresholds, level)[t]
            if level == 0 or len(seen) == 1:
                start = int(slots[0]) * n_rows
                reached = values[start : start + n_rows]
            else:
                reached = values.take((slots * n_rows).take(node) + rows)
            # As an array, since NumPy 1 compares single precision with a number in single precision.
            known = thresholds.take(node) if level else thresholds[:1]
            right = reached > known
            if stays is not None:
                forest.stay(stays, level, node, reached, known)
            node += node
            node += right
        return node if stays is None else np.where(stays < 0, node, stays)

    def _prepare(self) -> None:
        forest = self._forest
        split = np.isfinite(forest.thresholds)
        which = np.arange(forest.features.shape[1])[:, None]
        counts = np.stack([(split & (forest.slots == s)).sum(axis=1) for s in which[:, 0]], axis=1)
        # One more bin for what is no category.
        extra = np.isin(forest.features, list(forest.places)) & (counts > 0)
        few = (np.count_nonzero(counts, axis=1) <= _MOST_SEEN) & (
            np.prod(counts + 1.0 + extra, axis=1) <= _MOST_ENTRIES
        )
        trees = np.flatnonzero(few)
        if len(trees) == 0:
            return
        counts, slots, features = counts[trees], forest.slots[trees], forest.features[trees]
        # The thresholds of each tree's features, increasing; what is beyond the last one is in the last bin.
        own = np.where(slots[:, None] == which, forest.thresholds[trees][:, None], np.inf)
        own = np.concatenate([np.sort(own, axis=2)[:, :, : counts.max()], np.full((*counts.shape, 2), np.inf)], axis=2)
        extra = extra[trees]
        np.put_along_axis(own, counts[:, :, None] + 1, np.where(extra, np.nan, np.inf)[:, :, None], axis=2)
        sizes = counts + 1 + extra
        strides = np.cumprod(sizes, axis=1) // sizes
        tables = self._leaves_of_bins(trees, own, sizes, strides)

        for f in np.unique(features[counts > 0]).tolist():
            at = np.argwhere((features == f) & (counts > 0)).tolist()
            ends = np.unique(np.concatenate([own[i, s, : counts[i, s]] for i, s in at]))
            if f not in forest.places:
                self._bins[f] = Bins(ends, right=False)
            for i, s in at:
                t = int(trees[i])
                values = forest.places[f][t] if f in forest.places else np.append(ends, np.inf)
                bins = np.searchsorted(own[i, s, : counts[i, s]], values) + np.isnan(values)
                part = bins * strides[i, s]
                self._tables.setdefault(t, (tables[i], []))[1].append((f, part))
        for table, parts in self._tables.values():
            if len(parts) == 1:
                parts[0] = parts[0][0], table.take(parts[0][1])
        for i in np.flatnonzero(counts.sum(axis=1) == 0).tolist():
            self._tables[int(trees[i])] = tables[i], []

    def _leaves_of_bins(
        self, trees: NDArray[np.intp], own: Array, sizes: NDArray[np.intp], strides: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """Walk down with the largest value of each bin, for all combinations of bins of a tree's features."""
        forest = self._forest
        entries = np.arange(sizes.prod(axis=1).max())
        bins = entries // strides[:, :, None] % sizes[:, :, None]
        values = np.take_along_axis(own, bins, axis=2)
        node = np.zeros((len(trees), len(entries)), dtype=np.intp)
        stays = np.full(node.shape, -1)
        for level in range(forest.depth):
            slots = np.take_along_axis(forest.level(forest.slots, level)[trees], node, axis=1)
            thresholds = np.take_along_axis(forest.level(forest.thresholds, level)[trees], node, axis=1)
            reached = np.take_along_axis(values, slots[:, None], axis=1)[:, 0]
            forest.stay(stays, level, node, reached, thresholds)
            node = 2 * node + (reached > thresholds)
        return np.where(stays < 0, node, stays)
