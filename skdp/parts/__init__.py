"""Rows that lie elsewhere, in parts, such as the partitions of a Dask collection. A part sends sums, and never rows."""

from ._arrays import (
    PartedArray,
    Parts,
    column_of,
    count_rows,
    folded,
    kept,
    many_rows,
    mapped,
    refuse_parts,
    rowwise,
    unchecked,
)
from ._collections import in_parts, is_collection, lowered
from ._objects import KeptObjects
from ._tasks import Failure

__all__ = [
    "Failure",
    "KeptObjects",
    "PartedArray",
    "Parts",
    "column_of",
    "count_rows",
    "folded",
    "in_parts",
    "is_collection",
    "kept",
    "lowered",
    "many_rows",
    "mapped",
    "refuse_parts",
    "rowwise",
    "unchecked",
]
