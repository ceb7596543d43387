r"""The release of naive Bayes: sums by class, in one joint release.

Each class has the counts of all tables, and for each Gaussian column the sums of :math:`v` and of :math:`a(v^2 - 1/2)`,
for values :math:`v` scaled into [-1, 1]. If there is no table, it also has the number of records. The values of each
record are rounded to a lattice before they are added, so that sums are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ..mechanisms import Mechanism
from ..release.class_sums import class_sums_mechanism, in_real_units, largest_value, moment_bits, record_moments
from ..release.session import PrivacyGuarantee, Release
from ..release.theorems import Theorem
from ..release.units import ONE_RECORD, Unit
from ..schema.columns import Encoder
from ..sensitivity import sum_over_rows
from ._layout import Layout
from ._sparse import SparseStatistic

Array = NDArray[np.float64]

SUMS = "sums by class"
THEOREM = Theorem("Naive Bayes", 1)

# Entries of a matrix that holds the class of each row of a block.
_MOST_INDICATORS = 2**22

# Rows of a block.
_LEAST_ROWS, _MOST_ROWS = 2**11, 2**17


def plan(epsilon: float, delta: float, layout: Layout, unit: Unit = ONE_RECORD) -> PrivacyGuarantee:
    """Return the one release."""
    mechanism, event = class_sums_mechanism(epsilon, delta, layout.n_touched, layout.n_moments, layout.size, unit.rows)
    return unit.stated(PrivacyGuarantee(epsilon, delta, (event,), (Release(SUMS, mechanism, 1.0, THEOREM),)))


def sums_by_class(X: Any, codes: NDArray[np.intp], layout: Layout, mechanism: Mechanism) -> Array:
    """Return the sums, of shape (n_classes, width). They lie on the lattice if noise is added."""
    bits = moment_bits(mechanism, layout.n_moments)
    if issparse(X):
        total = sum_over_rows(SparseStatistic(layout, bits), X, codes, block_rows=_MOST_ROWS)
    else:
        # Each block has totals of its own. Therefore blocks are larger if tables are large.
        rows = min(max(_LEAST_ROWS, layout.size // layout.columns.n_features), _MOST_ROWS)
        if layout.n_moments:
            rows = max(1, min(rows, _MOST_INDICATORS // layout.n_classes))
        total = sum_over_rows(_Statistic(layout, bits), X, codes, block_rows=rows)
    return in_real_units(total, layout.width - 2 * layout.n_moments, layout.n_moments, mechanism)


class _Statistic:
    """Sums of a block of rows: of integers, in units of 2**-bits for the moments, or of doubles if `bits` is None."""

    def __init__(self, layout: Layout, bits: int | None) -> None:
        self._layout = layout
        self._encoder = Encoder(layout.columns)
        self._bits = bits
        self._offsets = np.concatenate([[0], np.cumsum(layout.columns.table_sizes)[:-1]]).astype(np.intp)
        self._classes = np.arange(layout.n_classes)

    def __call__(self, X: NDArray, codes: NDArray[np.intp]) -> NDArray:
        layout, n_classes = self._layout, self._layout.n_classes
        dtype = np.float64 if self._bits is None else np.int64
        out = np.empty((n_classes, layout.width), dtype=dtype)
        n_counts = layout.width - 2 * layout.n_moments
        records = np.bincount(codes, minlength=n_classes)
        if layout.counts_records:
            out[:, 0] = records
        else:
            cells = self._encoder.cells(X)
            cells += self._offsets
            cells += (codes * layout.n_table_cells)[:, None]
            out[:, :n_counts] = np.bincount(cells.ravel(order="K"), minlength=n_classes * layout.n_table_cells).reshape(
                n_classes, -1
            )
        if layout.n_moments:
            largest = largest_value(self._bits)
            values = record_moments(self._encoder.scaled(X, largest), self._bits)
            # The products are integers below 2**37 in all, so that doubles add them exactly.
            sums = (codes == self._classes[:, None]).astype(np.float64) @ values
            sums[:, layout.n_moments :] -= largest / 2 * records[:, None]
            out[:, n_counts:] = sums
        return out
