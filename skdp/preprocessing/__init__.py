"""Preprocessing by public numbers, which uses no budget, and private preprocessing."""

from ._binning import DPQuantileBinner, PublicBinner
from ._labels import PrivateLabelSet
from ._quantiles import private_bounds, private_quantiles
from ._scaling import BoundsScaler, DPStandardScaler, NormClipper
from ._table_encoder import TableEncoder

__all__ = [
    "BoundsScaler",
    "DPQuantileBinner",
    "DPStandardScaler",
    "NormClipper",
    "PrivateLabelSet",
    "PublicBinner",
    "TableEncoder",
    "private_bounds",
    "private_quantiles",
]
