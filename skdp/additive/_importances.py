"""Importances of the terms of an additive model, from released values and counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ._terms import Term

Array = NDArray[np.float64]


def term_importances(terms: Sequence[Term], tables: list[Array], counts: list[Array]) -> Array:
    """Return the mean absolute value that each term adds, for records with independent columns."""
    found = []
    for term, values in zip(terms, tables, strict=True):
        weights = np.ones(1)
        for j, places in zip(term.columns, term.maps, strict=True):
            own: Array = np.bincount(places[:-1], np.maximum(counts[j], 0.0), minlength=int(places[-1])).astype(float)
            own = own if own.sum() > 0 else np.ones(len(own))
            weights = np.outer(weights, own / own.sum()).ravel()
        found.append(float(weights @ np.abs(values).reshape(len(weights), -1).mean(axis=1)))
    return np.array(found)
