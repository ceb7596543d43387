r"""Judging a model by private records: counts with noise.

Theorem. Let each record add 1 to one cell of a table, or a gain and what is missing of the largest gain to two cells.
Adding a record changes the table by at most 1 in L1 norm, or by at most the largest gain :math:`G`. The table with
discrete Laplace noise of scale :math:`G/\varepsilon`, or with Gaussian noise, has the stated guarantee; everything that
is returned is computed from it. Proof: the record's cells depend on the record and on the model, which does not depend
on the record, or was paid for.

Where groups count, at most :math:`m` records of each do, and all of a group change the table by at most :math:`m`, or
:math:`mG` (user guide, "Units", theorem 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from ..accounting import (
    Budget,
    BudgetAccountant,
    GaussianEvent,
    PrivacyCost,
    PrivacyEvent,
    PureEvent,
    check_delta,
    check_epsilon,
)
from ..checks.data import check_quietly, encode_labels, labels_of
from ..checks.params import check_classes, check_integer, check_n_jobs
from ..checks.silence import discreet
from ..mechanisms import DiscreteLaplaceMechanism, Mechanism, NoiseSource, NoNoise, l2_mechanism
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, check_accountant
from ..release.theorems import Theorem
from ..release.units import Unit
from ..schema.categories import entries_of
from ..schema.mixin import unit_of
from ..sensitivity import group_sensitivity
from ._candidates import declared_classes, make_candidates
from ._pricing import Prices, Sequence_, events_of, settle, within
from ._scoring import (
    CLASSIFICATION,
    FROM_TABLES,
    REGRESSION,
    TABLES,
    check_metric,
    make_measure,
    make_score,
    make_table,
    take,
)
from ._search import _numbers, encodes_tables, occurring_labels, rows_for_steps, takes_text, try_on_nothing
from ._strategies import SearchContext, Task
from ._tables import bounds_of, rows_of_table, schema_of, with_schema

#: What the evaluation takes of a cross-validation's budget; the fits have the rest.
_TABLE_PORTION = Fraction(1, 10)


@dataclass(frozen=True)
class Evaluation:
    """A private evaluation.

    Parameters
    ----------
    value : float or ndarray
        The score, or the table: for ``"confusion_matrix"`` counts by true and predicted label, for ``"histogram"`` by
        estimated probability (rows) and whether the label is the second one (columns).
    counts : ndarray
        The noisy table that it was computed from. For ``"f1"`` and ``"f1_macro"``, it is a confusion matrix with a
        further column, for the records of which the model predicts none of the labels.
    classes : ndarray or None
        The label set.
    edges : ndarray or None
        Ends of a histogram's bins.
    privacy : PrivacyGuarantee
        What it gives away.
    """

    value: Any
    counts: NDArray[np.int64]
    classes: NDArray | None
    edges: NDArray | None
    privacy: PrivacyGuarantee = field(repr=False)


def _table_mechanism(whole: Budget, share: float, sensitivity: float, size: int) -> tuple[Mechanism, PrivacyEvent]:
    """Integer noise for a table whose L1 sensitivity is `sensitivity`, or Gaussian noise, rounded."""
    if whole.epsilon == math.inf:
        return NoNoise(sensitivity), PureEvent(math.inf)
    if whole.delta == 0:
        epsilon = whole.epsilon * share
        return DiscreteLaplaceMechanism(epsilon, sensitivity, size), PureEvent(epsilon)
    mechanism, event = l2_mechanism(*whole, share, sensitivity, size)
    return mechanism, event


@discreet
def private_score(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    metric: str = "accuracy",
    epsilon: float = 1.0,
    delta: float = 0.0,
    classes: Any = None,
    label_weights: Any = None,
    loss_bound: float = 5.0,
    bounds_y: Any = None,
    n_bins: int = 10,
    rows_per_group: int | None = None,
    groups: Any = None,
    schema: Any = None,
    accountant: BudgetAccountant | None = None,
    random_state: Any = None,
) -> Evaluation:
    """Judge a fitted model by private records that it was not trained on.

    Parameters
    ----------
    estimator : estimator
        Fitted. It is public, or was paid for.
    X : array-like, DataFrame, Table or dict of shape (n_samples, n_features)
        Private features. A dict of columns or a Table of PyArrow needs a schema in the estimator or its first step.
    y : array-like of shape (n_samples,)
        Private labels or targets.
    metric : str, default="accuracy"
        A score that a search takes (``"accuracy"``, ``"balanced_accuracy"``, ``"neg_log_loss"``,
        ``"neg_mean_absolute_error"``, ``"neg_mean_squared_error"``), or ``"confusion_matrix"``, or ``"histogram"``: how
        often the second of two labels occurs where its probability is estimated to be in each of `n_bins` bins. The
        area under the ROC curve (``"roc_auc"``) and ``"average_precision"`` are computed from the released histogram,
        ``"f1"`` (of the second of two labels) and ``"f1_macro"`` (the mean over all labels) from the released confusion
        matrix. They depend on pairs of records, so that they are not released themselves.
    epsilon : float, default=1.0
        Privacy budget of the evaluation. Must be strictly positive.
    delta : float, default=0.0
        The same, in [0, 1).
    classes : array-like, default=None
        Label set; None for the estimator's ``classes_``. Records with other labels count as wrong, or in no cell. A
        record with one of these labels that the model refuses counts as an error of its label: as a false negative in
        F1, and at the wrong end of the histogram for an area under a curve. The tables themselves leave it out.
    label_weights : dict, default=None
        Public weights of labels, for balanced accuracy.
    loss_bound : float, default=5.0
        Log losses beyond are clipped.
    bounds_y : pair of float, default=None
        Public range of targets.
    n_bins : int, default=10
        Number of bins of a histogram. For areas under curves, more bins tell more probabilities apart, and add more
        noise.
    rows_per_group : int, default=None
        Public limit on the number of rows of one group, such as a person. If a group has more rows, `rows_per_group` of
        them are drawn at random. The guarantee is then for adding or removing all rows of a group. If None, the
        guarantee is for one row.
    groups : array-like of shape (n_samples,), default=None
        Group of each row, given by a number or a text. Required with `rows_per_group`, unless `schema` declares the
        group.
    schema : Schema, default=None
        Public facts about the columns of a table, from which `bounds_y`, `rows_per_group` and the groups follow unless
        they are given. By default, the schema of the estimator.
    accountant : BudgetAccountant, default=None
        Budget that is charged before anything is computed.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise comes from the operating system's cryptographic generator. Use other values in tests only,
        because noise that can be reproduced can be subtracted.

    Returns
    -------
    evaluation : Evaluation
        Score or table, with the noisy counts and the guarantee.

    Raises
    ------
    BudgetError
        If the accountant does not admit it.

    Notes
    -----
    **Privacy.** (epsilon, delta)-DP for the records in `X` and `y`, or with `rows_per_group` for groups of them. If the
    model was trained on the same records, the two costs add up; the score is then as honest as a score on training
    records can be.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import ObjPertLogReg
    >>> from skdp.model_selection import private_score
    >>> X, y = make_classification(n_samples=4000, n_features=4, random_state=0)
    >>> model = ObjPertLogReg(data_norm=3.0, classes=[0, 1], epsilon=2.0).fit(X[:2000], y[:2000])
    >>> private_score(model, X[2000:], y[2000:], epsilon=0.5).value > 0.8
    True
    """
    check_metric(metric, (*CLASSIFICATION, *REGRESSION, *TABLES, *FROM_TABLES))
    check_accountant(accountant)
    whole = Budget(check_epsilon(epsilon), check_delta(delta))
    declared = schema_of(estimator, schema)
    rows_per_group, groups = unit_of(declared, rows_per_group, groups, X)
    bounds_y = bounds_of(declared, bounds_y)
    labels = None
    if is_classifier(estimator):
        labels = check_classes(estimator.classes_ if classes is None else classes)
        assert labels is not None
    measure = make_table(metric, estimator, labels, n_bins) or make_score(
        metric, estimator, labels, label_weights, loss_bound, bounds_y
    )
    unit = Unit.of(rows_per_group)
    numbers = unit.numbers(groups, X)
    targets = labels_of(y) if labels is not None else _numbers(y)
    coded = targets if labels is None else encode_labels(targets, labels)
    X = rows_of_table(estimator, X)
    # Of a list one record's text would make text of all numbers; of other formats no rows can be taken.
    if not hasattr(X, "shape"):
        X = (
            entries_of(X)
            if takes_text(estimator) or encodes_tables(estimator)
            else check_quietly(X, ensure_min_samples=0)
        )
    X = X.tocsr() if hasattr(X, "tocsr") else X
    if X.shape[0] != len(targets):
        raise ValueError("X and y must have the same number of rows")
    # A row that is in no cell for any model must not take the place of another row of its group.
    in_some_cell = None if numbers is None else measure.possible(coded) > 0
    rows, coded, members = unit.members(numbers, np.arange(len(coded)), coded, in_some_cell)
    most = group_sensitivity(float(measure.most), unit.rows)
    mechanism, event = _table_mechanism(whole, 1.0, most, math.prod(measure.shape))
    plan = unit.stated(
        PrivacyGuarantee(*whole, (event,), (Release("table", mechanism, 1.0, Theorem("Model selection", 4)),))
    )
    source = NoiseSource(random_state)
    session = ReleaseSession(plan, accountant=accountant, source=source, estimator="private_score")
    if members is not None:
        rows, coded = unit.counted(source, members, rows, coded)
        X = take(X, rows)
    exact = measure.cells(estimator, X, coded)
    counts = np.rint(session.release("table", exact.astype(np.float64))).astype(np.int64)
    return Evaluation(measure.value(counts), counts, labels, getattr(measure, "edges", None), plan)


@discreet
def private_cross_val_score(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: int = 5,
    scoring: str = "accuracy",
    epsilon: float = 1.0,
    delta: float = 0.0,
    label_weights: Any = None,
    loss_bound: float = 5.0,
    bounds_y: Any = None,
    n_bins: int = 10,
    rows_per_group: int | None = None,
    groups: Any = None,
    schema: Any = None,
    accountant: BudgetAccountant | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> NDArray[np.float64]:
    """Cross-validate a private estimator, with one budget for fits and scores.

    Parameters
    ----------
    estimator : estimator
        A private estimator without accountant, or a pipeline with private steps. Its epsilon and delta are set.
    X : array-like, DataFrame, Table or dict of shape (n_samples, n_features)
        Private features. A dict of columns or a Table of PyArrow needs a schema in the estimator or its first step.
    y : array-like of shape (n_samples,)
        Private labels or targets.
    cv : int, default=5
        Number of folds. Each record, or group, draws its own.
    scoring : str, default="accuracy"
        As in `DPGridSearchCV`; or ``"roc_auc"``, ``"average_precision"``, ``"f1"`` or ``"f1_macro"``, as in
        `private_score`.
    epsilon : float, default=1.0
        Privacy budget of all fits and scores together. Must be strictly positive.
    delta : float, default=0.0
        The same, in [0, 1).
    label_weights : dict, default=None
        Public weights of labels, for balanced accuracy.
    loss_bound : float, default=5.0
        Log losses beyond are clipped.
    bounds_y : pair of float, default=None
        Public range of targets.
    n_bins : int, default=10
        Number of bins of the histogram of each fold, for areas under curves.
    rows_per_group : int, default=None
        How many records of a group (all rows of one person, for instance) count in a score at most, drawn at random; it
        has to be set for the private steps as well, where it may be another number. All records of a group are in one
        fold, and the guarantee is for adding or removing them all. None: each record by itself.
    groups : array-like of shape (n_samples,), default=None
        Group of each row, given by a number or a text. Required with `rows_per_group`, unless `schema` declares the
        group.
    schema : Schema, default=None
        Public facts about the columns of a table, for the estimator or the first step of the pipeline. X is then the
        table itself. `bounds_y`, `rows_per_group` and the groups follow from the schema unless they are given.
        By default, the schema of the estimator.
    accountant : BudgetAccountant, default=None
        Budget that is charged once, before anything is computed.
    n_jobs : int, default=None
        Number of fits at a time.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise comes from the operating system's cryptographic generator. Use other values in tests only,
        because noise that can be reproduced can be subtracted.

    Returns
    -------
    scores : ndarray of shape (cv,)
        One for each fold, with noise.

    Raises
    ------
    BudgetError
        If the accountant does not admit it.

    Notes
    -----
    **Privacy.** A record trains in all folds but one and is counted in that one. Nine tenths of the budget are divided
    by composition among ``cv - 1`` fits, so that the models are noisier than one that has everything: the scores are
    those of models at that noise. The counts of all folds together change by one record's gain.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import ObjPertLogReg
    >>> from skdp.model_selection import private_cross_val_score
    >>> X, y = make_classification(n_samples=4000, n_features=4, random_state=0)
    >>> model = ObjPertLogReg(data_norm=3.0, classes=[0, 1])
    >>> private_cross_val_score(model, X, y, cv=3, epsilon=4.0, delta=1e-6).shape
    (3,)
    """
    check_accountant(accountant)
    whole = Budget(check_epsilon(epsilon), check_delta(delta))
    n_folds = check_integer(cv, "cv", least=2)
    check_n_jobs(n_jobs)
    estimator = with_schema(estimator, schema)
    declared = schema_of(estimator)
    rows_per_group, groups = unit_of(declared, rows_per_group, groups, X)
    bounds_y = bounds_of(declared, bounds_y)
    unit = Unit.of(rows_per_group)
    classes = declared_classes(estimator) if is_classifier(estimator) else None
    numbers = unit.numbers(groups, X)
    targets = labels_of(y) if is_classifier(estimator) else _numbers(y)
    X = rows_for_steps(rows_of_table(estimator, X), takes_text(estimator), encodes_tables(estimator))
    if X.shape[0] != len(targets):
        raise ValueError("X and y must have the same number of rows")
    members = unit.members(numbers, targets)[2]
    if is_classifier(estimator) and classes is None:
        classes = occurring_labels(targets)
    coded = targets if classes is None else encode_labels(targets, classes)
    measure = make_measure(scoring, estimator, classes, label_weights, loss_bound, bounds_y, n_bins)
    candidates = make_candidates(estimator, [{}], classes, unit)
    most = group_sensitivity(float(measure.most), unit.rows)
    training = (1 - _TABLE_PORTION) / (n_folds - 1)

    def noisy_table(prices: Prices) -> tuple[Mechanism, PrivacyEvent]:
        share = float(_TABLE_PORTION) * (prices.scale**2 if whole.delta > 0 and prices.scale > 0 else 1.0)
        # With fits that are composed by sums only, the table is paid for from epsilon.
        budget = whole if prices.scale > 0 else Budget(whole.epsilon, 0.0)
        return _table_mechanism(budget, share * (1 - 2.0**-40), most, math.prod(measure.shape) * n_folds)

    def sequence(prices: Prices) -> Sequence_:
        event = noisy_table(prices)[1]
        # Gaussian noise has a pair of its own; all of the budget's is more than enough.
        pair = whole if isinstance(event, GaussianEvent) else (event.pure_epsilon(), 0.0)
        cost = PrivacyCost(*pair, (event,))
        return (*prices.fit(0, training) * (n_folds - 1), cost)

    prices = settle(Prices(candidates, whole, most), sequence)
    if not within(sequence(prices), whole):
        raise ValueError("the fits cannot be proved to keep within epsilon and delta")
    release = Release("table", noisy_table(prices)[0], float(_TABLE_PORTION), Theorem("Model selection", 4))
    plan = PrivacyGuarantee(*whole, events_of(sequence(prices)), (release,))
    plan = unit.stated(plan, "a score")
    fits = f"{n_folds} fits, of which a {plan.unit} takes part in {n_folds - 1}: share {float(training):.3g} each"
    plan = replace(plan, fits=(fits,))
    try_on_nothing(prices, [training], X, targets, members)
    source = NoiseSource(random_state)
    session = ReleaseSession(plan, accountant=accountant, source=source, estimator="private_cross_val_score")
    shop = SearchContext(X, coded, targets, prices, measure, session, source, n_jobs, unit, members)
    folds = shop.divide((1 / n_folds,) * n_folds)
    every = np.arange(len(targets))
    models, _ = shop.fit(Task(0, training, np.setdiff1d(every, fold, assume_unique=True), None) for fold in folds)
    exact = []
    for fold, model in zip(folds, models, strict=True):
        rows = shop.scored(fold)
        exact.append(measure.cells(model, take(X, rows), coded[rows]))
    counts = np.rint(session.release("table", np.array(exact, dtype=np.float64)))
    return np.array([measure.value(fold) for fold in counts])
