r"""Additive logistic regression: a curve for each column, and tables over several columns.

The numbers of records in the cells of each column are released first. With ``delta > 0``, noisy sums of clipped
gradients follow. Tables of residuals follow in stages. The model is computed from these releases. `fit` is that of
:mod:`skdp.release.estimator`, which calls `_measure` here. The user guide, "Additive models: the algorithm", has all
formulas in order. Of ``terms_``, curves are computed by `shrunk` (:mod:`skdp.additive._curves`), and tables by
`table_values` (:mod:`skdp.additive._stages`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from ..checks.data import known_labels, labelled_data
from ..checks.params import Checked, check_classes
from ..parts.arrays import rowwise
from ..release.estimator import LabelsMixin, Records, Shape
from ..release.reserve import Reserve
from ..release.session import ReleaseSession
from ..schema.columns import Codes, Columns
from ..solvers.linear_descent import LogOdds
from ..solvers.losses import GradientLoss, LogLoss, SoftmaxLogLoss
from ._base import AdditiveModel, features_of, zero_column
from ._curves import Averaged, GradientEngine, Link, PowerChoice, shrunk
from ._plans import Design, release_cells
from ._stages import Curves, LabelLoss, StageFit

Array = NDArray[np.float64]

# The clipping bound of a record's derivatives, in units of the largest derivative.
_CLIP = 0.5


class DPAdditiveClassifier(LogOdds, ClassifierMixin, LabelsMixin, AdditiveModel):
    """Differentially private additive logistic regression: one curve for each column.

    The score of a row is the sum of one number for each column, which is read off the column's curve, and of the values
    of tables over several columns, if there are enough records. ``terms_`` has all of them, and
    :class:`~skdp.inspection.AdditiveTermsDisplay` draws the curves.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        In [0, 1), far below one over the number of records. If 0, the fit is pure epsilon-DP, and less accurate.
    schema : Schema, default=None
        Declaration of the columns, in place of `bounds`, `classes` and `categories`. Explicit parameters override it.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.
    interactions : "auto", list of tuple or None, default="auto"
        Tables over several columns: chosen by the fit (:ref:`additive-pairs`), a list of pairs of columns, or none.
    n_bins : int, default=32
        Largest number of bins of a numeric column, with a positive `delta`. Bins have about equal released counts.
    bounds : tuple (lower, upper)
        Public bounds of the numeric features: two numbers, or two arrays. Values beyond count in the outer bins.
    categories : dict, default=None
        Public categories of columns, by position or name: a list, or their number if they are coded 0, 1, ... Other
        values add nothing to the score.
    bin_edges : dict, default=None
        Public edges of the bins of single columns, by position or name. Values beyond count in the outer bins.
    classes : array-like, default=None
        Public label set. Other rows are left out. If None, the labels in `y` count as public, with a warning.
    class_weight : dict or "balanced", default=None
        Public weights of the labels. ``"balanced"`` computes them from 4 % of the budget (see :ref:`weights`).
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.
    verbose : int, default=0
        Lines of progress to print: 0 for none, 1 for about ten in each phase (see :doc:`/user_guide/progress`).

    Attributes
    ----------
    terms_ : list of ndarray
        Values that the cells of each term add to the score (:ref:`additive_algorithm`), with one axis for each column
        and, for three classes or more, a last axis for the classes.
    term_names_ : list of str
        Names of the terms.
    term_columns_ : list of tuple of int
        Positions of the columns of each term.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Private intercepts.
    cell_names_ : list of list of str
        Names of the cells of each column.
    bin_edges_ : list of ndarray or None
        Edges of the bins of each numeric column. None for other columns.
    cell_counts_ : list of ndarray
        Released numbers of records in the cells of each column, which may be negative.
    n_samples_estimate_ : float
        Released number of records, or 1 or the size of its noise if these are larger.
    classes_ : ndarray of shape (n_classes,)
        Label set, sorted.
    class_weight_ : ndarray of shape (n_classes,)
        Weights of the labels, at most 1, from the released counts. Only with ``class_weight="balanced"``.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.
    term_importances_ : ndarray of shape (n_terms,)
        Mean absolute value that each term adds to the score, by the released counts.
    feature_importances_ : ndarray of shape (n_features,)
        Importances of the columns, divided by their sum.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    DPAdditiveRegressor : Additive regression of numeric targets.
    skdp.linear_model.ObjPertLogReg : Logistic regression, linear in the columns.
    skdp.naive_bayes.DPNaiveBayes : An additive model from counts alone.

    Notes
    -----
    **Privacy.** The guarantee is (`epsilon`, `delta`)-DP under addition or removal of one record. Counts, sums of
    clipped gradients, choices of tables and sums of residuals are released with noise, and a power of the
    probabilities. The rest is post-processing. :ref:`additive_algorithm` has the sensitivities and proofs.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPAdditiveClassifier, Schema
    >>> k = np.arange(5000)
    >>> age, smokes = 18 + k % 72, np.where(k % 5 < 2, "yes", "no")
    >>> ill = age + 16 * (smokes == "yes") + 20 * np.sin(k) > 60
    >>> columns = {"age": (18, 90), "smokes": ["no", "yes"]}
    >>> schema = Schema(columns, target=[False, True])
    >>> model = DPAdditiveClassifier(
    ...     epsilon=1, delta=1e-6, schema=schema, random_state=0
    ... )
    >>> model = model.fit({"age": age, "smokes": smokes}, ill)
    >>> round(model.score({"age": age, "smokes": smokes}, ill), 2)
    0.82
    >>> importances = model.term_importances_.round(1).tolist()
    >>> dict(zip(model.term_names_, importances))
    {'age': 2.5, 'smokes': 1.1}
    """

    _released = AdditiveModel._released | {"_link"}
    _public = frozenset({"_columns"})

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        interactions: Any = "auto",
        n_bins: int = 32,
        bounds: Any = None,
        categories: Any = None,
        bin_edges: Any = None,
        classes: Any = None,
        class_weight: Any = None,
        max_weight: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.interactions = interactions
        self.n_bins = n_bins
        self.bounds = bounds
        self.categories = categories
        self.bin_edges = bin_edges
        self.classes = classes
        self.class_weight = class_weight
        self.max_weight = max_weight
        self.verbose = verbose

    def _read(self, X: Any, y: Any, parameters: Checked) -> tuple[Any, Any, NDArray[np.bool_], Shape]:
        X = self._entries(X, parameters)
        _, labels, classes = labelled_data(
            self._without_columns(), zero_column(X), y, check_classes(self._declared("classes"))
        )
        shape = Shape(self._n_columns, len(classes), names=self._names(), classes=classes)
        return X, labels, known_labels(labels), shape

    def _design(self, parameters: Checked, columns: Columns, n_classes: int) -> Design:
        last = None if parameters.pure else PowerChoice.of(parameters.epsilon, parameters.delta)
        return Design.of(parameters, columns, n_classes, last)

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Checked, design: Design
    ) -> dict[str, Any]:
        shape = records.shape
        outputs = 1 if shape.n_classes == 2 else shape.n_classes
        cells = release_cells(session, design.columns, records.X, shape.names, design.counts, records.known, records.y)
        shares = np.maximum(cells.labels, max(cells.label_noise, 1.0))
        log_shares = np.log(shares / shares.sum())
        log_shares = log_shares[1:] - log_shares[:1] if outputs == 1 else log_shares - log_shares.mean()
        loss = LogLoss() if outputs == 1 else SoftmaxLogLoss(outputs)
        clip = _CLIP * loss.lipschitz
        link = Link(most=clip) if parameters.private and not parameters.pure else Link()
        reserve, of_stages = Reserve(session, design.reserved), LabelLoss(outputs, parameters.pure, link)
        fit = StageFit(session, reserve, cells, records.y, parameters, of_stages)
        if parameters.pure:
            # Tables are added to the logarithms of the shares of labels.
            model, described = fit.by_tables(log_shares)
        else:
            model, described = self._by_steps(fit, loss, clip, link, log_shares)
            logits = rowwise(partial(_logits, link, model), cells.codes)
            link = design.last.chosen(session, link, logits, records.y, cells.total)
        return {**self._fitted_terms(model, cells, outputs == 1), "_target_unit": 1.0, "_link": link, **described}

    @staticmethod
    def _by_steps(
        fit: StageFit, loss: GradientLoss, clip: float, link: Link, log_shares: Array
    ) -> tuple[Curves, dict[str, Any]]:
        """Fit the curves by gradient steps, shrink them, and add tables."""
        layout, features = features_of(fit.parameters, fit.cells)
        count = fit.cells.total

        def make(label: str, reserved: float) -> GradientEngine:
            epsilon, delta = fit.parameters.epsilon, fit.parameters.delta
            return GradientEngine(epsilon, delta, reserved, layout, loss, clip, label=label).with_rate(features, count)

        def curves(engine: Averaged, coef: Array, intercept: Array, _: Any) -> tuple[Curves, dict[str, Any]]:
            if loss.outputs > 1:
                # Adding one number to the scores of all classes changes no probability. Steps only add noise to it.
                coef, intercept = coef - coef.mean(axis=0), intercept - intercept.mean()
            values, factors, bend = shrunk(engine, features, coef, intercept, count, link)
            tables = [of_bins[bins] for of_bins, bins in zip(values, layout.bins, strict=True)]
            return Curves(layout.terms, tables, intercept), {"_engine": engine, "_kept": factors, "_bend": bend}

        return fit.by_steps(features, make, curves, log_shares)

    def decision_function(self, X: Any) -> Array:
        """Return the sum of each row's terms and the intercept.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes, positive scores are in favour of ``classes_[1]``. Otherwise, there is one score per class.
        """
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def _label_scores(self, X: Any) -> Array:
        return self.decision_function(X)

    def _logits(self, X: Any) -> Array:
        scores = self.decision_function(X)
        return self._link.logits(scores)


def _logits(link: Link, model: Curves, codes: Codes) -> Array:
    scores = model.scores(codes)
    return link.logits(scores[:, 0] if scores.shape[1] == 1 else scores)
