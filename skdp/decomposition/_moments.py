"""Second moments, sums and the number of rows of bounded norm, for principal components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ..sensitivity import (
    BLOCK_ROWS,
    PRODUCT_BLOCKS,
    clip_rows,
    entry_step,
    exact_sum,
    sparse_gram,
    sum_over_rows,
    with_data,
)

Array = NDArray[np.float64]

# Sparse rows are summed as integers of 64 bits, so that blocks may be larger.
_SPARSE_ROWS = 2**16


@dataclass(frozen=True, eq=False)
class Sums:
    """Hold second moments, sum and number of the centred and clipped rows, which are private."""

    gram: Array
    total: Array
    count: float


def second_moments(X: Any, centre: Array, norm: float, private: bool) -> Sums:
    """Subtract a public centre from each row, scale it down to `norm`, and add up."""
    d = X.shape[1]
    stays_sparse = issparse(X) and not centre.any()
    block_rows, n_blocks = (_SPARSE_ROWS, 1) if stays_sparse else (BLOCK_ROWS, PRODUCT_BLOCKS)
    if private:
        # Entries are rounded towards zero to a lattice, so that no norm grows and sums are exact for any number and
        # order of the rows.
        step = entry_step(norm)
        total = exact_sum(
            lambda rows: _gram(_in_steps(rows, centre, norm, step)), X, block_rows=block_rows, n_blocks=n_blocks
        )
    else:
        step = 1.0
        total = sum_over_rows(
            lambda rows: _gram(clip_rows(_centred(rows, centre), norm).array), X, block_rows=block_rows
        )
    return Sums(total[:d, :d] * step**2, total[:d, d] * step, float(total[d, d]))


def row_sums(X: Any, norm: float, private: bool) -> tuple[Array, float]:
    """Scale each row down to `norm`, and return the sum of the rows and their number, on a lattice as above."""
    if private:
        step = entry_step(norm)
        total = exact_sum(lambda rows: _sums(_in_steps(rows, None, norm, step)), X, n_blocks=PRODUCT_BLOCKS)
        return total[:-1] * step, float(total[-1])
    total = sum_over_rows(lambda rows: _sums(clip_rows(rows, norm).array), X)
    return total[:-1], float(total[-1])


def _centred(rows: Any, centre: Array | None) -> Any:
    if centre is None or not centre.any():
        return rows
    if issparse(rows):
        # Rows that are centred by a public or released vector are not sparse. Therefore a block of rows is made dense.
        rows = rows.toarray()
    with np.errstate(over="ignore"):
        centred = rows - centre
        if not np.isfinite(centred.sum()):
            # Twice the largest double would be infinite.
            np.clip(centred, -np.finfo(float).max, np.finfo(float).max, out=centred)
    return centred


def _in_steps(rows: Any, centre: Array | None, norm: float, step: float) -> Any:
    """Return rows in steps of the lattice. Sparse rows are integers."""
    clipped = clip_rows(_centred(rows, centre), norm)
    if issparse(clipped.source):
        return with_data(clipped.source, np.trunc(clipped.source.data / step).astype(np.int64))
    return clipped.in_steps(slice(None), step)


def _gram(rows: Any) -> NDArray:
    """Return the sums of products of rows, bordered by the sum of the rows and their number."""
    sums = _sums(rows)
    out = np.empty((len(sums), len(sums)), dtype=sums.dtype)
    if issparse(rows):
        out[:-1, :-1] = sparse_gram(rows)
    else:
        np.matmul(rows.T, rows, out=out[:-1, :-1])
    out[-1] = out[:, -1] = sums
    return out


def _sums(rows: Any) -> NDArray:
    """Return the sum of the rows, followed by their number."""
    sums = rows.sum(axis=0) if issparse(rows) else np.ones(rows.shape[0]) @ rows
    return np.append(sums, np.array(rows.shape[0], dtype=sums.dtype))
