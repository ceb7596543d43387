"""Clipping and queries: what one record can change, with the derivation. Nothing here is random."""

from ._cells import cell_counts
from ._class_sums import class_sums_l1, class_sums_l2
from ._clipping import ClippedRows, augmented_norm, clip_rows
from ._minimizer import minimizer_sensitivity, solver_slack_sensitivity
from ._moments import entry_step, exact_moments, exact_sum, moments_l1, moments_l2, plain_moments, rounded_norm
from ._rows import sum_over_rows, weighted_gram

__all__ = [
    "ClippedRows",
    "augmented_norm",
    "cell_counts",
    "class_sums_l1",
    "class_sums_l2",
    "clip_rows",
    "entry_step",
    "exact_moments",
    "exact_sum",
    "minimizer_sensitivity",
    "moments_l1",
    "moments_l2",
    "plain_moments",
    "rounded_norm",
    "solver_slack_sensitivity",
    "sum_over_rows",
    "weighted_gram",
]
