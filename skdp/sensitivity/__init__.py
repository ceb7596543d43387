"""Clipping, queries and their sensitivities, with derivations. Nothing in this package is random.

Names that end in ``_l1`` or ``_l2`` bound the norm of what one record adds to a query. All bounds are rounded up.
"""

from ._cells import (
    CELLS_STEP,
    PARTS,
    SUM_BITS,
    RowLattice,
    blocks_l1,
    blocks_l2,
    cell_counts,
    cell_sums,
    cells_l1,
    cells_l2,
    class_sums_l1,
    class_sums_l2,
    largest_products,
    nearest,
    positive_products,
    spread_counts,
)
from ._clipping import (
    ClippedRows,
    augmented_norm,
    clip_rows,
    minimizer_sensitivity,
    solver_slack_sensitivity,
    squared_norms,
)
from ._moments import (
    BITS,
    PRODUCT_BLOCKS,
    ExactTotal,
    bits_left,
    centred_moments_l2,
    energies_l1,
    energies_l2,
    entry_step,
    exact_moments,
    exact_sum,
    moments_l1,
    moments_l2,
    pack_symmetric,
    plain_moments,
    round_to,
    rounded_norm,
    row_sum_l2,
    step_of,
    truncate,
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
    EXACT_ROWS,
    by_entry,
    exact_row_products,
    group_sensitivity,
    row_products,
    short_blocks,
    sparse_gram,
    sparse_squared_norms,
    sum_over_rows,
    with_constant,
    with_data,
)
