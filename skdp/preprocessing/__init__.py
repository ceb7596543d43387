"""Preprocessing by public numbers, which uses no budget, and private preprocessing."""

from ._binning import DPQuantileBinner, PublicBinner
from ._quantiles import private_bounds
from ._scaling import BoundsScaler, DPStandardScaler, NormClipper
from ._table_encoder import TableEncoder

__all__ = [
    "BoundsScaler",
    "DPQuantileBinner",
    "DPStandardScaler",
    "NormClipper",
    "PublicBinner",
    "TableEncoder",
    "private_bounds",
]
