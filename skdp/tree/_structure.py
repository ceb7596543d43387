"""The structure of random trees, their random growth, and routing of rows.

Trees are drawn from public numbers only: bounds, numbers of categories, and a public seed. All trees of a forest have
one depth and are stored as one set of arrays. Node ``i`` of a level has the children ``2 i`` and ``2 i + 1`` in the
next level. A tree uses a few of the features. A categorical feature is put into a random order in each tree, and is
then split like a number. Therefore the left side is a random subset of the remaining categories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..mechanisms import BitStream
from ..schema.columns import Columns
from ..schema.declared import Bins
from ..schema.entries import cells_of_codes

Array = NDArray[np.float64]

# For fewer rows, or for one tree, tables for routing take more time than they save.
_FEWEST = 1024

#: Rows that are routed at once.
ROUTED = 8192

#: Largest number of entries of a tree's table, which has one for each combination of bins of its features.
_MOST_ENTRIES = 2**15

# Numbers of leaves are repeated for the entries of such a table if the table then has at most this size.
_MOST_NUMBERS = 2**15

#: Largest number of features of such a tree. With more, finding the bins takes as long as walking down the tree.
_MOST_SEEN = 2

#: A numeric split lies in this part of its cell, so that neither branch is very narrow.
CENTRAL = (0.25, 0.75)


@dataclass(frozen=True, eq=False)
class Forest:
    """The structure of all trees, by tree. `structure_` of the estimators describes its arrays.

    Nodes stand level by level. A tree sees the first `n_seen` of its features, and the last one is then repeated.
    """

    features: NDArray[np.intp]
    n_seen: NDArray[np.intp]
    slots: NDArray[np.intp]
    thresholds: Array
    places: dict[int, Array]

    @property
    def n_trees(self) -> int:
        return len(self.features)

    @property
    def depth(self) -> int:
        return (self.slots.shape[1] + 1).bit_length() - 1

    @property
    def n_leaves(self) -> int:
        """Number of leaves of one tree, including those that no record can reach."""
        return self.slots.shape[1] + 1

    def reachable(self) -> NDArray[np.bool_]:
        """Leaves that some record could reach, of shape (n_trees, n_leaves). They are public."""
        cells = np.ones((self.n_trees, 1), dtype=bool)
        for level in range(self.depth):
            split = np.isfinite(self.level(self.thresholds, level))
            cells = np.stack([cells, cells & split], axis=2).reshape(self.n_trees, -1)
        return cells

    @staticmethod
    def level(nodes: NDArray, level: int) -> NDArray:
        """Return the part of an array of nodes that belongs to a level."""
        return nodes[:, 2**level - 1 : 2 ** (level + 1) - 1]

    def router(self, n_rows: int) -> Routes:
        """Return a router for blocks of rows, `n_rows` in all."""
        # It is not kept, because the presence of tables would disclose the number of records.
        return Routes(self, tables=n_rows >= _FEWEST and self.n_trees > 1)

    @property
    def leaf_type(self) -> np.dtype:
        """A small type that holds the numbers of leaves and inner nodes."""
        return np.min_scalar_type(2 * self.n_leaves)

    def leaves_of(self, X: NDArray) -> NDArray:
        """Return the leaf, or inner node, of each row in each tree, of shape (n_rows, n_trees) and a small type."""
        return stored(X, self.n_trees, self.leaf_type, self.router(len(X)))

    def question(self, tree: int, level: int, node: int, names: list[str], decimals: int) -> tuple[str, str] | None:
        """Return the conditions for left and right at a node, or None if it is not split."""
        threshold = float(self.level(self.thresholds, level)[tree, node])
        if not np.isfinite(threshold):
            return None
        feature = int(self.features[tree, self.level(self.slots, level)[tree, node]])
        if feature not in self.places:
            return f"{names[feature]} <= {threshold:.{decimals}f}", f"{names[feature]} >  {threshold:.{decimals}f}"
        right = np.flatnonzero(self.places[feature][tree, :-1] > threshold)
        codes = "{" + ", ".join(map(str, right)) + "}"
        return f"{names[feature]} not in {codes}", f"{names[feature]} in {codes}"


def walk_down(
    X: NDArray,
    features: NDArray[np.intp],
    thresholds: Array,
    categories: NDArray[np.intp] | None = None,
    some_unknown: bool = False,
) -> NDArray[np.intp]:
    """Return the leaf of each row in a tree of nodes that are listed level by level."""
    # Values up to the threshold go left. Where a node has a category, which is not negative, this category goes right.
    # If `some_unknown` values are NaN, a row stays in the first inner node that splits such a value.
    values, starts = np.ascontiguousarray(X).ravel(), np.arange(0, X.size, X.shape[1])
    node = np.zeros(len(X), dtype=np.intp)
    stays = np.full(len(X), -1) if some_unknown else None
    for level in range((len(features) + 1).bit_length() - 1):
        # At the root, these are arrays, because NumPy 1 compares single precision with a number in single precision.
        reached = values.take(features.take(node) + starts) if level else X[:, features[0]]
        right = reached > (thresholds.take(node) if level else thresholds[:1])
        if categories is not None:
            category = categories.take(node)
            right = np.where(category < 0, right, reached == category)
        if stays is not None:
            unknown = np.isnan(reached) & (stays < 0) & np.isfinite(thresholds.take(node))
            stays[unknown] = len(features) + 1 + node[unknown]
        node += node
        node += right
        node += 1
    node -= len(features)
    return node if stays is None else np.where(stays < 0, node, stays)


def stored(X: NDArray, n: int, dtype: np.dtype, compute: Callable[[NDArray], Iterable[NDArray]]) -> NDArray:
    """Return `n` numbers of each row, of shape (n_rows, n) and a small type, as `compute` yields them for blocks."""
    out = np.empty((n, len(X)), dtype=dtype)
    for start in range(0, len(X), ROUTED):
        rows = slice(start, start + ROUTED)
        for column, numbers in zip(out, compute(X[rows]), strict=True):
            column[rows] = numbers
    return out.T


def read_stored(numbers: NDArray) -> Iterator[NDArray[np.intp]]:
    """Yield the columns of stored numbers of a block, as new arrays, in place of computing them."""
    return (column.astype(np.intp) for column in numbers.T)


class Routes:
    """Find the leaves of rows, tree by tree. Tables (if `tables` is True) are faster for many rows."""

    # Each feature is put into bins once, between the thresholds of all trees. Trees with one or two features look up
    # the leaf. In other trees, rows walk down level by level. A row stays in the first node that splits a column in
    # which the row has no category. Inner nodes are numbered level by level after the leaves.
    def __init__(self, forest: Forest, tables: bool) -> None:
        self._forest = forest
        self._bins: dict[int, Bins] = {}
        # For trees with a table, the leaf of each entry, and for each feature the part of its position from the bin.
        self._tables: dict[int, tuple[NDArray[np.intp], list[tuple[int, NDArray[np.intp]]]]] = {}
        split = np.isfinite(forest.thresholds)
        self._features = np.unique(np.take_along_axis(forest.features, forest.slots, axis=1)[split]).tolist()
        if tables and forest.depth:
            self._prepare()

    def __call__(self, X: NDArray) -> Iterator[NDArray[np.intp]]:
        """Yield for each tree the leaf of each row, or the inner node in which the row stays."""
        # The caller may overwrite the arrays.
        for t, positions in enumerate(self._positions(X)):
            yield self._tables[t][0].take(positions) if t in self._tables else positions

    def sums(self, tables: Array) -> Callable[[NDArray, Array], None]:
        """Return a function that adds, for rows, the numbers of their leaves and inner nodes, tree by tree.

        `tables` has shape (n_trees, n_nodes, n_numbers). The numbers are added in place, with the shape (n_numbers,
        n_rows).
        """
        lookups = []
        for t, of_nodes in enumerate(tables):
            leaves = self._tables[t][0] if t in self._tables else None
            if leaves is not None and leaves.size * of_nodes.shape[1] <= _MOST_NUMBERS:
                of_nodes, leaves = of_nodes[leaves], None
            lookups.append((leaves, np.ascontiguousarray(of_nodes.T)))

        def add(X: NDArray, totals: Array) -> None:
            for (leaves, numbers), positions in zip(lookups, self._positions(X), strict=True):
                nodes = positions if leaves is None else leaves.take(positions)
                for total, of_nodes in zip(totals, numbers, strict=True):
                    total += of_nodes.take(nodes)

        return add

    def _positions(self, X: NDArray) -> Iterator[NDArray[np.intp]]:
        """Yield for each tree the positions of rows in its table, or without a table the leaves, or inner nodes."""
        # Values beyond the bounds go where the bounds go.
        forest = self._forest
        columns: dict[int, NDArray] = {}
        codes: dict[int, NDArray[np.intp]] = {}

        def column(feature: int) -> NDArray:
            if feature not in columns:
                if 2 * len(self._features) > X.shape[1]:
                    columns.update(enumerate(np.ascontiguousarray(X.T)))
                else:
                    columns[feature] = np.ascontiguousarray(X[:, feature])
            return columns[feature]

        def code(feature: int) -> NDArray[np.intp]:
            """Return the bin of numbers, or the place of categories, of which the last is for other values."""
            if feature not in codes and feature in forest.places:
                last = np.intp(forest.places[feature].shape[1] - 1)
                codes[feature] = cells_of_codes(column(feature), last)
            elif feature not in codes:
                codes[feature] = self._bins[feature](column(feature))
            return codes[feature]

        for t in range(forest.n_trees):
            if t in self._tables:
                _, strides = self._tables[t]
                if len(strides) == 1:
                    # The entries are those of the bins.
                    yield code(strides[0][0])
                    continue
                positions = np.zeros(len(X), dtype=np.intp) if not strides else strides[0][1].take(code(strides[0][0]))
                for feature, strides_of_feature in strides[1:]:
                    positions += strides_of_feature.take(code(feature))
                yield positions
            elif forest.places.keys().isdisjoint(forest.features[t].tolist()):
                yield walk_down(X, forest.features[t].take(forest.slots[t]), forest.thresholds[t])
            else:
                features = forest.features[t].tolist()
                seen = [forest.places[f][t].take(code(f)) if f in forest.places else column(f) for f in features]
                values = np.stack(seen, axis=1)
                yield walk_down(
                    values, forest.slots[t], forest.thresholds[t], some_unknown=bool(np.isnan(values).any())
                )

    def _prepare(self) -> None:
        """Make a table of leaves for each tree with few combinations of bins, and the strides of the bins in it."""
        forest = self._forest
        split = np.isfinite(forest.thresholds)
        n_slots = forest.features.shape[1]
        # A last slot is never used.
        counts = np.stack([(split & (forest.slots == slot)).sum(axis=1) for slot in range(n_slots + 1)], axis=1)
        features = np.pad(forest.features, ((0, 0), (0, 1)))
        # There is one more bin for unknown categories.
        extra = np.isin(features, list(forest.places)) & (counts > 0)
        few_entries = np.prod(counts + 1.0 + extra, axis=1) <= _MOST_ENTRIES
        trees = np.flatnonzero((np.count_nonzero(counts, axis=1) <= _MOST_SEEN) & few_entries)
        if len(trees) == 0:
            return
        # The axes of the table of a tree.
        slots = np.argsort(counts[trees] == 0, axis=1, kind="stable")[:, :_MOST_SEEN]
        counts, extra, features = (np.take_along_axis(of[trees], slots, axis=1) for of in (counts, extra, features))
        axes = (forest.slots[trees] == slots[:, 1:]).astype(np.intp)
        of_axes = np.where(axes[:, None] == np.arange(2)[:, None], forest.thresholds[trees][:, None], np.inf)
        order = np.argsort(of_axes, axis=2)
        edges, ranks = np.take_along_axis(of_axes, order, axis=2), np.argsort(order, axis=2) + 1
        ranks = np.take_along_axis(ranks, axes[:, None], axis=1)[:, 0]
        tables = self._leaves_of_bins(trees, axes, ranks, counts + 1 + extra, extra)

        by_feature: dict[int, list[list[int]]] = {}
        for i, axis in np.argwhere(counts > 0).tolist():
            by_feature.setdefault(int(features[i, axis]), []).append([i, axis])
        for feature, occurrences in by_feature.items():
            thresholds = np.sort(np.concatenate([edges[i, axis, : counts[i, axis]] for i, axis in occurrences]))
            values = np.append(thresholds, np.inf)
            if feature not in forest.places:
                self._bins[feature] = Bins(thresholds, right=False)
            for i, axis in occurrences:
                tree = int(trees[i])
                if feature in forest.places:
                    values = forest.places[feature][tree]
                bins = np.searchsorted(edges[i, axis, : counts[i, axis]], values)
                if extra[i, axis]:
                    bins += np.isnan(values)
                if axis == 0:
                    bins *= tables[i].shape[1]
                self._tables.setdefault(tree, (tables[i].ravel(), []))[1].append((feature, bins))
        for tree, (table, strides) in self._tables.items():
            if len(strides) == 1:
                # The leaf of each bin is looked up at once.
                self._tables[tree] = table.take(strides[0][1]), strides
        for i in np.flatnonzero(counts.sum(axis=1) == 0).tolist():
            self._tables[int(trees[i])] = tables[i].ravel(), []

    def _leaves_of_bins(
        self, trees: NDArray[np.intp], axes: NDArray[np.intp], ranks: NDArray[np.intp], sizes: NDArray, extra: NDArray
    ) -> list[NDArray[np.intp]]:
        """Return for each tree the leaf, or inner node, of each combination of bins of the features on its two axes.

        The bins that reach a node are a box, which the node divides before the bin `ranks` of an axis. The last bin is
        for unknown categories if there is an `extra` one.
        """
        forest, each = self._forest, np.arange(len(trees))[:, None]
        low, high = np.zeros((len(trees), 1, 2), dtype=np.intp), sizes[:, None]
        boxes: list[tuple[NDArray[np.intp], ...]] = []
        for level in range(forest.depth):
            axis, rank = forest.level(axes, level), forest.level(ranks, level)
            nodes = np.arange(2**level)
            divides = np.isfinite(forest.level(forest.thresholds, level)[trees])
            end = high[each, nodes, axis]
            # Rows of an unknown category stay in the first node that divides their column.
            known = end - (divides & extra[each, axis] & (end == sizes[each, axis]))
            cut = np.where(divides, np.clip(rank, low[each, nodes, axis], known), known)
            stays, left, right = low.copy(), high.copy(), low.copy()
            stays[each, nodes, axis] = known
            boxes.append((forest.n_leaves + 2**level - 1 + nodes, stays, high))
            high = high.copy()
            high[each, nodes, axis] = known
            left[each, nodes, axis] = right[each, nodes, axis] = cut
            low = np.stack([low, right], axis=2).reshape(len(trees), -1, 2)
            high = np.stack([left, high], axis=2).reshape(len(trees), -1, 2)
        boxes.append((np.arange(forest.n_leaves), low, high))
        # Each number is added to its box by two sums of differences at the corners.
        of_boxes, first_bins, ends = zip(*boxes, strict=True)
        numbers, lows, highs = (
            np.concatenate(of_boxes),
            np.concatenate(first_bins, axis=1),
            np.concatenate(ends, axis=1),
        )
        entries = (sizes + 1).prod(axis=1)
        first, width = (np.cumsum(entries) - entries)[:, None], sizes[:, 1:] + 1
        corners = [
            first + rows[:, :, 0] * width + columns[:, :, 1] for rows in (lows, highs) for columns in (lows, highs)
        ]
        signs = np.multiply.outer([1.0, -1.0, -1.0, 1.0], np.broadcast_to(numbers, lows.shape[:2]))
        differences = np.bincount(np.ravel(corners), signs.ravel(), minlength=int(entries.sum()))
        parts = np.split(differences, first[1:, 0])
        return [
            part.reshape(size + 1).cumsum(axis=0).cumsum(axis=1).astype(np.intp)
            for part, size in zip(parts, sizes, strict=True)
        ]


def uniforms(shape: tuple[int, ...], stream: BitStream) -> Array:
    """Draw uniform numbers in (0, 1)."""
    words = stream.words(int(np.prod(shape))) >> np.uint64(11)
    return ((words.astype(np.float64) + 0.5) * 2.0**-53).reshape(shape)


def deal(n_features: int, n_seen: list[int], stream: BitStream) -> NDArray[np.intp]:
    """Distribute features over trees, each once in a round. Return them sorted, of shape (n_trees, most_seen)."""
    # In trees with fewer features than others, the last one is repeated.
    out = np.empty((len(n_seen), max(n_seen)), dtype=np.intp)
    deck: list[int] = []
    for row, size in zip(out, n_seen, strict=True):
        hand: list[int] = []
        while len(hand) < size:
            if all(f in hand for f in deck):
                deck += np.argsort(uniforms((n_features,), stream)).tolist()
            card = next(f for f in deck if f not in hand)
            deck.remove(card)
            hand.append(card)
        hand.sort()
        row[:] = hand + hand[-1:] * (len(row) - size)
    return out


def grow(columns: Columns, n_seen: list[int], depth: int, stream: BitStream, warps: dict[int, Array]) -> Forest:
    """Draw a forest from the public stream."""
    # `warps` holds, by numeric feature, increasing values that count as evenly spaced. Other features have bounds only.
    n_trees, most_seen = len(n_seen), max(n_seen)
    features = deal(columns.n_features, n_seen, stream)
    n_categories = columns.n_categories[features]
    places = {}
    for f in np.flatnonzero(columns.n_categories).tolist():
        order = np.argsort(uniforms((n_trees, int(columns.n_categories[f])), stream), axis=1)
        places[f] = np.hstack([np.argsort(order, axis=1), np.full((n_trees, 1), np.nan)])
    is_seen = np.arange(most_seen) < np.array(n_seen)[:, None]
    # Cells in units in which values of numeric features lie between 0 and 1, and categories are integers.
    lower = np.zeros((n_trees, 1, most_seen))
    upper = np.where(n_categories > 0, n_categories, 1.0)[:, None, :]
    used = np.zeros((n_trees, 1, most_seen))
    trees = np.arange(n_trees)[:, None]
    slots, cuts = [], []
    for level in range(depth):
        cells = np.arange(2**level)[None, :]
        free = is_seen[:, None, :] & ((n_categories == 0)[:, None, :] | (upper - lower >= 2))
        # A random one of the features that were used least on the path.
        lot = np.where(free, used + uniforms(used.shape, stream), np.inf)
        slot = lot.argmin(axis=2)
        low, high = lower[trees, cells, slot], upper[trees, cells, slot]
        position = CENTRAL[0] + (CENTRAL[1] - CENTRAL[0]) * uniforms(slot.shape, stream)
        cut = low + (high - low) * position
        # Half of the categories go left. Of an odd number, the additional one goes to a random side.
        half = np.floor((low + high) / 2 + (position > 0.5) * 0.5)
        cut = np.where(n_categories[trees, slot] > 0, np.clip(half, low + 1, np.maximum(high - 1, low + 1)), cut)
        cut = np.where(free[trees, cells, slot], cut, np.inf)
        slots.append(slot)
        cuts.append(cut)
        used = np.array(used)
        used[trees, cells, slot] += 1
        left_upper, right_lower = upper.copy(), lower.copy()
        left_upper[trees, cells, slot] = np.minimum(cut, high)
        right_lower[trees, cells, slot] = np.minimum(cut, high)
        lower = np.stack([lower, right_lower], axis=2).reshape(n_trees, -1, most_seen)
        upper = np.stack([left_upper, upper], axis=2).reshape(n_trees, -1, most_seen)
        used = np.stack([used, used], axis=2).reshape(n_trees, -1, most_seen)
    slot = np.concatenate([*slots, np.empty((n_trees, 0), dtype=np.intp)], axis=1)
    cut = np.concatenate([*cuts, np.empty((n_trees, 0))], axis=1)
    # Places of categories are whole numbers from 0, and those below the cut go left.
    thresholds, split = cut - 0.5, features[trees, slot]
    for f, low_bound, high_bound in zip(columns.numeric.tolist(), columns.grid.lower, columns.grid.upper, strict=True):
        nodes = (split == f) & np.isfinite(cut)
        even = warps.get(f, np.array([low_bound, high_bound]))
        values = np.interp(cut[nodes], np.linspace(0.0, 1.0, len(even)), even)
        # The threshold is below the upper bound, so that values beyond the bound go where the bound goes.
        thresholds[nodes] = np.minimum(values, np.nextafter(high_bound, low_bound))
    return Forest(features, np.array(n_seen, dtype=np.intp), slot, thresholds, places)
