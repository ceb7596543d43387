"""Common methods of trees: prediction from released leaves, and export as text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..checks.data import validate_quietly
from ..checks.params import check_integer, shown
from ..checks.silence import DiscreetMethods
from ..solvers.linear_descent import LogOdds
from ._structure import ROUTED

Array = NDArray[np.float64]

#: Routing tables have one entry for each tree and category.
MOST_CATEGORIES = 2**16


class TreeModel(DiscreetMethods):
    """Methods of models that have ``structure_``."""

    _schema_form = "ends"

    structure_: Any

    def _rows(self, X: Any) -> NDArray:
        check_is_fitted(self, "privacy_")
        return validate_quietly(self, X, reset=False, dtype=[np.float64, np.float32])

    def apply(self, X: Any) -> NDArray[np.intp]:
        """Return the leaf that each row reaches in each tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        leaves : ndarray of shape (n_samples, n_trees)
            Positions in the second axis of ``leaf_counts_``. In a forest, a row stays in an inner node that splits a
            column in which the row has no known category. Inner nodes are numbered after the leaves, level by level.
        """
        return self._leaves(self._rows(X))

    def _leaves(self, X: NDArray) -> NDArray[np.intp]:
        route = self.structure_.router(len(X))
        blocks = (X[start : start + ROUTED] for start in range(0, max(len(X), 1), ROUTED))
        return np.concatenate([np.stack(list(route(rows)), axis=1) for rows in blocks])


class TreeClassifier(TreeModel, LogOdds):
    """Methods of classifiers that have ``structure_`` and ``classes_``."""

    classes: Any

    @abstractmethod
    def _proba(self, X: NDArray) -> Array:
        """Return class probabilities of validated rows."""

    def predict_proba(self, X: Any) -> Array:
        return self._proba(self._rows(X))

    def predict_log_proba(self, X: Any) -> Array:
        return self._label_scores(X)

    def _label_scores(self, X: Any) -> Array:
        return np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny))

    def _label_codes(self, X: Any) -> NDArray:
        proba = self.predict_proba(X)
        return (proba[:, 1] > proba[:, 0]).astype(np.intp) if proba.shape[1] == 2 else proba.argmax(axis=1)


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
    >>> model = DPRandomTree(
    ...     epsilon=10.0,
    ...     bounds=bounds,
    ...     classes=[0, 1, 2],
    ...     max_depth=1,
    ...     random_state=0,
    ... ).fit(X, y)
    >>> len(export_text(model).splitlines())
    4
    """
    check_is_fitted(estimator, "privacy_")
    check_integer(decimals, "decimals", least=0)
    structure = estimator.structure_
    if check_integer(tree, "tree", least=0) >= structure.n_trees:
        raise ValueError(f"tree must be below the number of trees, {structure.n_trees}, got {shown(tree)}")
    if feature_names is None:
        names_of_fit = estimator._names()
        names = [f"feature_{i}" for i in range(estimator._n_columns)] if names_of_fit is None else list(names_of_fit)
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
