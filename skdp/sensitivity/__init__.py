"""Clipping, queries and their sensitivities, with derivations. Nothing in this package is random."""

from ._blocks import blocks_l1, blocks_l2
from ._cells import CELLS_STEP, SUM_BITS, RowLattice, cell_sums, cells_l1, cells_l2, nearest
from ._class_sums import class_sums_l1, class_sums_l2
from ._clipping import ClippedRows, augmented_norm, clip_rows, squared_norms
from ._fixed_point import BITS, ExactTotal, bits_left, round_to, step_of, truncate
from ._groups import group_sensitivity
from ._histograms import PARTS, cell_counts, spread_counts
from ._largest import largest_products
from ._minimizer import minimizer_sensitivity, solver_slack_sensitivity
from ._moments import (
    PRODUCT_BLOCKS,
    entry_step,
    exact_moments,
    exact_sum,
    moments_l1,
    moments_l2,
    pack_symmetric,
    plain_moments,
    rounded_norm,
    unpack_symmetric,
)
from ._polynomials import (
    POLYNOMIAL_BITS,
    POLYNOMIAL_ROWS,
    POLYNOMIAL_UNIT,
    bernstein_l1,
    bernstein_l2,
    bernstein_matrix,
    chebyshev_l2,
    chebyshev_matrix,
    polynomial_sums,
)
from ._rows import (
    BLOCK_ROWS,
    exact_row_products,
    row_products,
    short_blocks,
    sum_over_rows,
)
from ._sparse import EXACT_ROWS, by_entry, sparse_gram, sparse_squared_norms, with_constant, with_data
from ._variances import centred_moments_l2, energies_l1, energies_l2, row_sum_l2

__all__ = [
    "BITS",
    "BLOCK_ROWS",
    "CELLS_STEP",
    "EXACT_ROWS",
    "PARTS",
    "POLYNOMIAL_BITS",
    "POLYNOMIAL_ROWS",
    "POLYNOMIAL_UNIT",
    "PRODUCT_BLOCKS",
    "SUM_BITS",
    "ClippedRows",
    "ExactTotal",
    "RowLattice",
    "augmented_norm",
    "bernstein_l1",
    "bernstein_l2",
    "bernstein_matrix",
    "bits_left",
    "blocks_l1",
    "blocks_l2",
    "by_entry",
    "cell_counts",
    "cell_sums",
    "cells_l1",
    "cells_l2",
    "centred_moments_l2",
    "chebyshev_l2",
    "chebyshev_matrix",
    "class_sums_l1",
    "class_sums_l2",
    "clip_rows",
    "energies_l1",
    "energies_l2",
    "entry_step",
    "exact_moments",
    "exact_row_products",
    "exact_sum",
    "group_sensitivity",
    "largest_products",
    "minimizer_sensitivity",
    "moments_l1",
    "moments_l2",
    "nearest",
    "pack_symmetric",
    "plain_moments",
    "polynomial_sums",
    "round_to",
    "rounded_norm",
    "row_products",
    "row_sum_l2",
    "short_blocks",
    "solver_slack_sensitivity",
    "sparse_gram",
    "sparse_squared_norms",
    "spread_counts",
    "squared_norms",
    "step_of",
    "sum_over_rows",
    "truncate",
    "unpack_symmetric",
    "with_constant",
    "with_data",
]
