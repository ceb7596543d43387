"""Sparse rows: their canonical form, and their conversion to dense rows, which depends on public facts only."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

#: Sparse rows with at most so many columns are made dense if an estimator computes with dense rows only.
MOST_DENSE_COLUMNS = 1000


#: How a pipeline makes dense rows.
HOW_TO_DENSE = (
    "In a pipeline, set sparse_output=False on OneHotEncoder and TableEncoder, and sparse_threshold=0 on "
    "ColumnTransformer."
)


def refuse_wide(X: Any, name: str) -> None:
    """Refuse sparse rows that have too many columns for the estimator `name`, which computes with dense rows."""
    if X.shape[1] > MOST_DENSE_COLUMNS:
        raise TypeError(
            f"Sparse rows are made dense by {name} if they have at most {MOST_DENSE_COLUMNS} columns: got "
            f"n_features={X.shape[1]}. {HOW_TO_DENSE}"
        )


def is_sparse(X: Any) -> bool:
    """Tell whether data are a sparse matrix or array, or a frame of pandas with sparse columns only."""
    return sparse.issparse(X) or (hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2 and hasattr(X, "sparse"))


def check_dimensions(X: Any) -> None:
    """Refuse sparse data that are no rows, without stating how many entries there are."""
    if X.ndim != 2:
        raise ValueError(f"Expected rows in two dimensions, got a sparse array of {X.ndim}. Reshape your data")


def dense_rows(X: Any, name: str) -> Any:
    """Return sparse rows as an array, or refuse them if they have too many columns."""
    refuse_wide(X, name)
    return X.toarray(order="C") if sparse.issparse(X) else X.sparse.to_dense()


def ordered_by_row(X: Any) -> Any:
    """Return a sparse array of coordinates as a CSR array in which duplicates keep their order."""
    # SciPy's conversion would add up duplicates.
    order = np.argsort(X.row, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(X.row, minlength=X.shape[0]))])
    return sparse.csr_array((X.data[order], X.col[order], ends), shape=X.shape)


def canonical_rows(X: Any) -> Any:
    """Return a copy of CSR rows as a CSR array: sorted, without duplicates and without stored zeros."""
    # The constructor copies flags from X, which may be wrong. Therefore only the parts are passed on.
    end = int(X.indptr[-1])
    try:
        rows = sparse.csr_array((X.data[:end], X.indices[:end], X.indptr), shape=X.shape)
        rows.check_format(full_check=True)
    except Exception:
        rows = None
    if rows is None:
        # It is raised outside the handler, because SciPy's message may hold the number of rows.
        raise ValueError("X is no valid sparse matrix: its indices are out of bounds")
    with np.errstate(all="ignore"):
        # Two transpositions sort the entries, and keep the order of duplicates. A sort of each row would only take
        # place if there are unsorted rows, and could change that order. Then a record would affect the rounding of
        # others.
        rows = rows.tocsc().tocsr()
        rows.sum_duplicates()
    rows.eliminate_zeros()
    if not np.isfinite(rows.data).all():
        raise ValueError("Input X contains infinity or a value too large for dtype('float64').")
    return rows
