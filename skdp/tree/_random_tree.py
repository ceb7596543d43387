r"""Random trees with noisy class counts (Jagannathan, Pillaipakkamnatt and Wright 2009), and what can be made of them.

Released are the class counts in the leaves (see ``leaf_counts_l1`` and ``leaf_counts_l2``), and what `_forest` says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from ..release.estimator import LabelsMixin, Shape
from ._base import TreeClassifier
from ._forest import RandomTrees
from ._outcomes import Labels
from ._plans import Parameters

Array = NDArray[np.float64]


class DPRandomTree(TreeClassifier, ClassifierMixin, RandomTrees, LabelsMixin, BaseEstimator):
    r"""Differentially private forest of random trees with noisy leaf counts.

    The trees are drawn at random from public numbers. The class counts of all their leaves are released with noise, and
    then the sums for one step towards the trees' weights. It takes four passes over the data, in blocks of rows,
    whatever the number of classes, categories and features. By default, every feature has a tree of its own: the model
    is then additive in the features, as naive Bayes is, with weights that take into account what features share.

    Parameters
    ----------
    n_estimators : int, default=None
        Number of trees. None is the number of features, and at most 64 with ``delta=0``; otherwise at most 256, and
        twice as many trees as features if that does not exceed 64; but fewer, down to 4, where the noise in a count,
        which grows with the number of trees, would exceed an eighth of `expected_n` over the number of classes. If
        `expected_n` is None, a noisy count stands for it.
    epsilon : float, default=1.0
        Privacy budget of one fit, positive. ``inf`` adds no noise and gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1). With 0, the fit is pure epsilon-DP, with noise that grows with the number
        of trees; otherwise it is Gaussian, and grows with its square root. Choose it far below one over the number of
        records.
    bounds : tuple (lower, upper)
        Bounds of the numeric features, from public knowledge: numbers, or one for each column of X, or one for each
        numeric column. Values beyond are clipped, silently.
    categorical_features : array-like, default=None
        Categorical columns: positions, names, or a mask. None for none.
    n_categories : int or array-like of int, default=None
        Numbers of categories of these columns, in the same order; required with them. Categories are coded
        0, 1, ..., as by :class:`sklearn.preprocessing.OrdinalEncoder` with declared categories. Any other value is
        unknown: in `fit`, the record does not count in trees that split by this column; in `predict`, the row stays in
        the node that does, and takes its class distribution.
    max_depth : int, default=None
        Splits from root to leaf, from 0 to 16. None is a function of `expected_n`, or of the noisy count that stands
        for it, of the noise and of the numbers of classes, features and trees. If `n_estimators` is set and
        `expected_n` is None, it is 5.
    max_features : int, default=None
        Number of features that a tree sees. None is 1, and 2 in trees that come on top of one for each feature, or as
        many as it takes to see each feature once.
    expected_n : int, default=None
        Roughly the number of records, from public knowledge, to choose the number of trees and the depth by. It need
        not be right. With None, and unless `n_estimators` is set, 4 % of the budget is spent on noisy class counts,
        which are used instead.
    thresholds : {"uniform", "quantile"}, default="uniform"
        How numeric features are split: evenly within their bounds, at random, or evenly between cut points that take
        a tenth of the budget. ``"quantile"`` is for bounds that are far wider than what most records need.
    weights : {"newton", "equal"}, default="newton"
        ``"newton"`` spends 2 % of the budget on a choice between equal weights of several sizes, 0 included, and 22 %
        on a step from there to better ones, and on its length. Where there is much noise for the number of records,
        there is no step, and leaf counts get its part. ``"equal"`` spends nothing on weights, and has no safeguard
        against evidence that many columns repeat: it may be worse than a constant.
    structure_seed : int, default=0
        Seed of the trees' structure, which is public. It has nothing to do with the noise.
    classes : array-like, default=None
        The public label set, of at least two labels. Rows with other labels are left out. With None, the labels
        in `y` are taken to be public, with a warning.
    class_weight : dict or "balanced", default=None
        Public weights of labels, not negative. Each record is kept with a probability proportional to the weight of
        its label (see :ref:`weights`). Labels that are not named have weight 1. None gives all labels the same weight.
        ``"balanced"`` releases the counts of labels first, which uses 4 % of the budget, and takes weights that are
        inversely proportional to these counts, of a ratio of at most 100.
    max_weight : float, default=None
        Public upper bound on `sample_weight` of `fit`. Larger weights count as `max_weight`. Required if
        `sample_weight` is given, and without effect otherwise.
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `bounds`, `classes`, `categorical_features` and
        `n_categories`. A value that is given for `bounds` or `classes` counts instead of the schema's. X is
        then the table itself, with text and missing values.
    accountant : BudgetAccountant, default=None
        Budget that is charged before any noise is drawn. ``clone`` shares it.
    random_state : int, RandomState, Generator or None, default=None
        None takes noise from the operating system's cryptographic generator. Anything else makes noise that can
        be reproduced, and subtracted: for tests only.

    Attributes
    ----------
    structure_ : Forest
        The trees' structure; a function of public numbers, and of released cut points.
    leaf_counts_ : ndarray of shape (n_trees, n_leaves, n_classes)
        Noisy counts; 0 in leaves that no record can reach.
    leaf_proba_ : ndarray of shape (n_trees, n_leaves, n_classes)
        Class distributions in the leaves, smoothed.
    inner_proba_ : ndarray of shape (n_trees, n_leaves - 1, n_classes)
        Class distributions in the other nodes, level by level, for rows with unknown categories.
    class_prior_ : ndarray of shape (n_classes,)
        Noisy class frequencies.
    tree_weights_ : ndarray of shape (n_trees,)
        What the trees' scores are multiplied with.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Constants of the classes.
    classes_ : ndarray of shape (n_classes,)
        The label set, sorted.
    class_weight_ : ndarray of shape (n_classes,)
        The weights from the released counts, at most 1; only with ``class_weight="balanced"``.
    privacy_ : PrivacyGuarantee
        The guarantee, with mechanism, sensitivity and noise scale.
    feature_importances_ : ndarray of shape (n_features,)
        Mean decreases of Gini's impurity by the splits of each column, less what noise and sampling explain, from the
        released leaf counts, divided by their sum.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, where X has string names.

    See Also
    --------
    DPRandomTreeRegressor : The same for numeric targets.
    export_text : The trees, as text.

    Notes
    -----
    **Privacy.** The trees depend on public numbers only. One record adds 1 to one count of each of :math:`T` trees: it
    moves all counts together by :math:`T` in L1 norm and by :math:`\sqrt T` in L2 norm. Counts get discrete Laplace
    noise for the first, or Gaussian noise for the second. In the step, a record's curvature and gradient are scaled
    down to a public norm, together. The size of the weights and the length of the step are chosen by Brier scores,
    which one record moves by at most 1, all in one direction. Each cut point is drawn by the exponential mechanism. One
    record changes one class count by 1. The releases that depend on the class counts use the same part of the budget
    for all counts, because noise grows with the number of trees: composition is adaptive. Everything else is computed
    from what was released. A `SchemaMismatchWarning` is raised if hardly any record has a declared label, or a declared
    code of a categorical column. It is computed from the released counts. Not covered: that `fit` raises an error for
    values that are not finite, and how long it takes.

    References
    ----------
    .. [1] G. Jagannathan, K. Pillaipakkamnatt and R. N. Wright, "A Practical Differentially Private Random Decision
       Tree Classifier", ICDM Workshops 2009.
    .. [2] S. Fletcher and M. Z. Islam, "Decision Tree Classification with Differential Privacy: A Survey", ACM
       Computing Surveys 52, 2019.
    .. [3] H. Nori, R. Caruana, Z. Bu, J. H. Shen and J. Kulkarni, "Accuracy, Interpretability, and Differential Privacy
       via Explainable Boosting", ICML 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skdp.tree import DPRandomTree
    >>> X, y = load_iris(return_X_y=True)
    >>> bounds = [4, 2, 1, 0], [8, 5, 7, 3]
    >>> model = DPRandomTree(epsilon=10.0, delta=1e-5, bounds=bounds, classes=[0, 1, 2], random_state=0)
    >>> model.fit(X, y).predict_proba(X).shape
    (150, 3)
    """

    _takes_parts = True
    _released = frozenset(
        {
            "structure_",
            "leaf_counts_",
            "leaf_proba_",
            "inner_proba_",
            "class_prior_",
            "tree_weights_",
            "intercept_",
            "_decreases",
        }
    )

    def __init__(
        self,
        *,
        n_estimators: int | None = None,
        epsilon: float = 1.0,
        delta: float = 0.0,
        bounds: Any = None,
        categorical_features: Any = None,
        n_categories: Any = None,
        max_depth: int | None = None,
        max_features: int | None = None,
        expected_n: int | None = None,
        thresholds: str = "uniform",
        weights: str = "newton",
        structure_seed: int = 0,
        classes: Any = None,
        class_weight: Any = None,
        max_weight: float | None = None,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categorical_features = categorical_features
        self.n_categories = n_categories
        self.max_depth = max_depth
        self.max_features = max_features
        self.expected_n = expected_n
        self.thresholds = thresholds
        self.weights = weights
        self.structure_seed = structure_seed
        self.classes = classes
        self.class_weight = class_weight
        self.max_weight = max_weight
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state

    def _read(self, X: Any, y: Any, parameters: Parameters) -> tuple[Any, Any, None, Shape]:
        # Records with other labels count among the labels, and are left out afterwards.
        X, codes, _, shape = super()._read(X, y, parameters)
        return X, codes, None, shape

    def _outcome(self, shape: Shape) -> Labels:
        return Labels(shape.n_classes)

    def _fitted(
        self, outcome: Any, counts: Array, leaves: Array, inner: Array, prior: Array, intercept: Array
    ) -> dict[str, Any]:
        return {
            "leaf_counts_": counts,
            "leaf_proba_": leaves,
            "inner_proba_": inner,
            "class_prior_": prior,
            "intercept_": intercept,
        }

    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        X = self._rows(X)
        return self._probabilities(X, self.leaf_proba_, self.inner_proba_, self.class_prior_, self.intercept_).T
