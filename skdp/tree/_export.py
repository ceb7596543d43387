"""Export of released trees as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..checks.messages import shown
from ..checks.params import check_integer


def export_text(estimator: Any, feature_names: Sequence[str] | None = None, *, tree: int = 0, decimals: int = 2) -> str:
    """Write a tree as text, with its released numbers.

    Branches that no record can reach, and splits that were pruned, are left out. The text is as private as the
    estimator, because all of its numbers were released.

    Parameters
    ----------
    estimator : DPRandomTree, DPRandomTreeRegressor or DPGreedyTree
        A fitted estimator of this module.
    feature_names : sequence of str, optional
        Names of the features. If None, they are the names of the data that the estimator was fitted on, or
        ``feature_0``, ...
    tree : int, default=0
        Position of the tree in the forest.
    decimals : int, default=2
        Number of digits after the decimal point.

    Returns
    -------
    text : str
        One line for each branch, and one for each leaf. The line of a leaf has its most likely class with the
        probability, and the noisy counts of all classes, which may be negative. For targets, it has the mean of the
        targets and the noisy number of records.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skdp.tree import DPRandomTree, export_text
    >>> X, y = load_iris(return_X_y=True)
    >>> bounds = [4, 2, 1, 0], [8, 5, 7, 3]
    >>> model = DPRandomTree(epsilon=10.0, bounds=bounds, classes=[0, 1, 2], max_depth=1, random_state=0).fit(X, y)
    >>> len(export_text(model).splitlines())
    4
    """
    check_is_fitted(estimator, "privacy_")
    check_integer(decimals, "decimals", least=0)
    structure = estimator.structure_
    if check_integer(tree, "tree", least=0) >= structure.n_trees:
        raise ValueError(f"tree must be below the number of trees, {structure.n_trees}, got {shown(tree)}")
    if feature_names is None:
        known = estimator._names()
        names = [f"feature_{i}" for i in range(estimator._n_columns)] if known is None else list(known)
    else:
        names = list(feature_names)
    if len(names) != estimator._n_columns:
        raise ValueError(f"feature_names must have {estimator._n_columns} entries, got {len(names)}")
    reachable = structure.reachable()[tree]
    lines: list[str] = []

    def write(level: int, node: int, indent: int) -> None:
        start = "|   " * indent + "|--- "
        question = structure.question(tree, level, node, names, decimals) if level < structure.depth else None
        if question is None:
            width = 2 ** (structure.depth - level)
            below = slice(node * width, (node + 1) * width)
            counts = estimator.leaf_counts_[tree, below].sum(axis=0)
            if hasattr(estimator, "leaf_means_"):
                mean = estimator.leaf_means_[tree, below][0]
                lines.append(f"{start}mean: {mean:.{decimals}f}, count {counts:.{decimals}f}")
                return
            proba = estimator.leaf_proba_[tree, below][0]
            best = int(np.argmax(proba))
            numbers = ", ".join(f"{count:.{decimals}f}" for count in counts)
            lines.append(f"{start}class: {estimator.classes_[best]} ({proba[best]:.{decimals}f}), counts [{numbers}]")
            return
        width = 2 ** (structure.depth - level - 1)
        sides = [side for side in (2 * node, 2 * node + 1) if reachable[side * width : (side + 1) * width].any()]
        for side in sides:
            # A split with a single possible outcome is not shown.
            if len(sides) > 1:
                lines.append(start + question[side % 2])
            write(level + 1, side, indent + len(sides) - 1)

    write(0, 0, 0)
    return "\n".join(lines)
