"""Loaders of data sets for examples and benchmarks, prepared from public knowledge only."""

from ._adult import load_adult

__all__ = ["load_adult"]
