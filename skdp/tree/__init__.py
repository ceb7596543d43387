"""Trees."""

from ._base import export_text
from ._greedy_tree import DPGreedyTree
from ._random_regressor import DPRandomTreeRegressor
from ._random_tree import DPRandomTree

__all__ = ["DPGreedyTree", "DPRandomTree", "DPRandomTreeRegressor", "export_text"]
