"""Trees."""

from ._export import export_text
from ._random_tree import DPRandomTree

__all__ = ["DPRandomTree", "export_text"]
