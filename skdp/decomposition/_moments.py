"""Sums that principal components are made of: second moments, sums and the number of rows of bounded norm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..sensitivity import clip_rows, entry_step, exact_sum, sum_over_rows

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sums:
    """Hold second moments, sum and number of the centred and clipped rows, which are private."""

    gram: Array
    total: Array
    count: float


def second_moments(X: NDArray, centre: Array, norm: float, private: bool) -> Sums:
    """Subtract a public centre from each row, scale it down to `norm`, and add up."""
    d = X.shape[1]
    if private:
        # Entries are rounded towards zero to a lattice, so that no norm grows and sums are exact for any number and
        # order of the rows.
        step = entry_step(norm)
        total = exact_sum(lambda rows: _gram(_counted(rows, centre, norm, step)), X)
    else:
        step = 1.0
        total = sum_over_rows(lambda rows: _gram(clip_rows(_centred(rows, centre), norm, constant=1.0).array), X)
    return Sums(total[:d, :d] * step**2, total[:d, d] * step, float(total[d, d]))


def row_sums(X: NDArray, norm: float, private: bool) -> tuple[Array, float]:
    """Scale each row down to `norm`, and return the sum of the rows and their number; on a lattice, as above."""
    if private:
        step = entry_step(norm)
        total = exact_sum(lambda rows: _counted(rows, None, norm, step).sum(axis=0), X)
        return total[:-1] * step, float(total[-1])
    total = sum_over_rows(lambda rows: clip_rows(rows, norm, constant=1.0).array.sum(axis=0), X)
    return total[:-1], float(total[-1])


def _centred(rows: NDArray, centre: Array | None) -> NDArray:
    if centre is None or not centre.any():
        return rows
    with np.errstate(over="ignore"):
        # Twice the largest double would be infinite.
        return np.clip(rows - centre, -np.finfo(float).max, np.finfo(float).max)


def _counted(rows: NDArray, centre: Array | None, norm: float, step: float) -> Array:
    """Return rows in steps of the lattice, with a column of ones."""
    counted = clip_rows(_centred(rows, centre), norm, constant=step).array
    counted /= step
    return np.trunc(counted, out=counted)


def _gram(rows: Array) -> Array:
    return rows.T @ rows
