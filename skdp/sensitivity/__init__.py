"""Clipping and queries: what one record can change, with the derivation. Nothing here is random."""

from ._blocks import blocks_l1, blocks_l2
from ._cells import CELLS_STEP, SUM_BITS, RowLattice, cell_sums, cells_l1, cells_l2, nearest
from ._clipping import ClippedRows, augmented_norm, clip_rows
from ._minimizer import minimizer_sensitivity, solver_slack_sensitivity
from ._moments import entry_step, exact_moments, moments_l1, moments_l2, plain_moments, rounded_norm
from ._rows import sum_over_rows, weighted_gram

__all__ = [
    "CELLS_STEP",
    "SUM_BITS",
    "ClippedRows",
    "RowLattice",
    "augmented_norm",
    "blocks_l1",
    "blocks_l2",
    "cell_sums",
    "cells_l1",
    "cells_l2",
    "clip_rows",
    "entry_step",
    "exact_moments",
    "minimizer_sensitivity",
    "moments_l1",
    "moments_l2",
    "nearest",
    "plain_moments",
    "rounded_norm",
    "solver_slack_sensitivity",
    "sum_over_rows",
    "weighted_gram",
]
