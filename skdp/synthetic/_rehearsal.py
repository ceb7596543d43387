"""Made-up rows from the public axes, to try a model on before any charge."""

from __future__ import annotations

import numpy as np

from ..mechanisms import NoiseSource
from ._axes import Array, Axes

# So many that a model works at all, and not so many that it takes long.
_ROWS, _ROWS_PER_LABEL = 200, 10
_BINS_OF_TARGET = 20


def made_up_rows(axes: Axes, n_samples: int | None) -> Array:
    """Return made-up rows of axis values: centres of cells, or points within cells if `n_samples` is set."""
    # All labels have equally many rows. In half of the rows, the target grows with the columns, so that a model can
    # learn something. The other half has the same points, and the target takes its values in turn.
    stream = NoiseSource(0).stream("made-up rows")
    n_targets = axes.n_targets
    n_places = axes.size // n_targets
    targets = np.arange(n_targets)
    if axes.target is not None:
        targets = np.linspace(0, n_targets - 1, min(n_targets, _BINS_OF_TARGET)).astype(np.intp)
    n_rows = n_places * len(targets) if n_samples is None else n_samples
    n_rows = min(n_rows, max(_ROWS, _ROWS_PER_LABEL * len(targets)))
    turns = -(-n_rows // (2 * len(targets)))

    places = np.argsort(stream.words(n_places))[np.arange(turns * len(targets)) % n_places]
    columns = np.unravel_index(places, axes.shape[:-1])
    height = sum(place / length for place, length in zip(columns, axes.shape[:-1], strict=True))
    places = places[np.argsort(height)]
    cells = np.tile(places * n_targets, 2) + np.concatenate([np.repeat(targets, turns), np.tile(targets, turns)])
    cells = cells[np.argsort(stream.words(len(cells)))]
    return axes.centres(cells) if n_samples is None else axes.points(cells, stream)
