"""Preprocessing: what needs public numbers alone and is free, and what is learned privately."""

from ._binning import PublicBinner
from ._bounds import BoundsScaler, NormClipper
from ._labels import PrivateLabelSet
from ._quantile_binner import DPQuantileBinner
from ._quantiles import private_bounds, private_quantiles
from ._standard_scaler import DPStandardScaler
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
