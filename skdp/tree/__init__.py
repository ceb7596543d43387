"""Trees."""

from ._base import export_text
from ._greedy_tree import DPGreedyTree
from ._random_trees import DPRandomTree, DPRandomTreeRegressor

__all__ = ["DPGreedyTree", "DPRandomTree", "DPRandomTreeRegressor", "export_text"]
