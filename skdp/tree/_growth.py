"""Draw random trees from public numbers only: bounds, numbers of categories, and a public seed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..mechanisms import BitStream
from ..schema.columns import Columns
from ._structure import Forest

Array = NDArray[np.float64]

#: A numeric split lies in this part of its cell, so that neither branch is very narrow.
CENTRAL = (0.25, 0.75)


def uniforms(shape: tuple[int, ...], stream: BitStream) -> Array:
    """Draw uniform numbers in (0, 1)."""
    words = stream.words(int(np.prod(shape))) >> np.uint64(11)
    return ((words.astype(np.float64) + 0.5) * 2.0**-53).reshape(shape)


def deal(n_features: int, n_seen: list[int], stream: BitStream) -> NDArray[np.intp]:
    """Distribute features over trees, each once in a round. Return them sorted, of shape (n_trees, most_seen)."""
    # In trees with fewer features than others, the last one is repeated.
    out = np.empty((len(n_seen), max(n_seen)), dtype=np.intp)
    deck: list[int] = []
    for row, wanted in zip(out, n_seen, strict=True):
        hand: list[int] = []
        while len(hand) < wanted:
            if all(f in hand for f in deck):
                deck += np.argsort(uniforms((n_features,), stream)).tolist()
            card = next(f for f in deck if f not in hand)
            deck.remove(card)
            hand.append(card)
        hand.sort()
        row[:] = hand + hand[-1:] * (len(row) - wanted)
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
    seen = np.arange(most_seen) < np.array(n_seen)[:, None]
    # Cells in units in which values of numeric features lie between 0 and 1, and categories are integers.
    lower = np.zeros((n_trees, 1, most_seen))
    upper = np.where(n_categories > 0, n_categories, 1.0)[:, None, :]
    used = np.zeros((n_trees, 1, most_seen))
    trees = np.arange(n_trees)[:, None]
    slots, cuts = [], []
    for level in range(depth):
        cells = np.arange(2**level)[None, :]
        free = seen[:, None, :] & ((n_categories == 0)[:, None, :] | (upper - lower >= 2))
        # A random one of the features that were used least on the path.
        lot = np.where(free, used + uniforms(used.shape, stream), np.inf)
        slot = lot.argmin(axis=2)
        low, high = lower[trees, cells, slot], upper[trees, cells, slot]
        place = CENTRAL[0] + (CENTRAL[1] - CENTRAL[0]) * uniforms(slot.shape, stream)
        cut = low + (high - low) * place
        # Half of the categories go left. Of an odd number, the additional one goes to a random side.
        half = np.floor((low + high) / 2 + (place > 0.5) * 0.5)
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
    thresholds = _thresholds(columns, features[trees, slot], cut, warps)
    return Forest(features, np.array(n_seen, dtype=np.intp), slot, thresholds, places)


def _thresholds(columns: Columns, features: NDArray[np.intp], cut: Array, warps: dict[int, Array]) -> Array:
    """Map cuts to thresholds in units of the data."""
    # Places of categories are whole numbers from 0, and those below the cut go left.
    out = cut - 0.5
    for f, lower, upper in zip(columns.numeric.tolist(), columns.grid.lower, columns.grid.upper, strict=True):
        here = (features == f) & np.isfinite(cut)
        known = warps.get(f, np.array([lower, upper]))
        values = np.interp(cut[here], np.linspace(0.0, 1.0, len(known)), known)
        # The threshold is below the upper bound, so that values beyond the bound go where the bound goes.
        out[here] = np.minimum(values, np.nextafter(upper, lower))
    return out
