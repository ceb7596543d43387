"""Search for the best setting with one budget for all fits, the choice and the refit."""

from __future__ import annotations

import copy
import math
import numbers
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier, is_regressor
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ..accounting import Budget, PrivacyCost, check_delta, check_epsilon
from ..checks.data import FLOATS, array_quietly, check_quietly, encode_labels, label_array, validate_quietly
from ..checks.params import check_boolean, check_choice, check_integer, check_n_jobs, check_positive, shown, warn
from ..checks.silence import available_if, silence
from ..exceptions import NotEnoughDataError, PrivacyAssumptionWarning, SchemaMismatchWarning
from ..mechanisms import NoiseSource
from ..release.mixin import DPEstimatorMixin
from ..release.session import (
    CallbackSupportMixin,
    PrivacyGuarantee,
    Progress,
    ReleaseSession,
    check_accountant,
    with_callbacks,
)
from ..release.units import Unit
from ..schema.encoding import target_of, unit_of
from ..schema.entries import entries_of
from ..sensitivity import group_sensitivity
from ._pipeline import private_again
from ._pricing import Candidate, Prices, declared_classes, events_of, make_candidates
from ._scoring import FROM_TABLES, LEVELS, Score, Table, check_metric, make_measure
from ._stateless import check_entries, check_rows, with_groups, without_na
from ._steps import bounds_of, is_private, is_shared, labels_in, rows_of_table, schema_of, take, with_schema
from ._strategies import STRATEGIES, SearchContext, Strategy, make_strategy

#: Mean number of runs for each candidate, under "repeat".
_RUNS_A_CANDIDATE = 3.0

#: Largest number of drawn settings, so that a wrong number is refused at once.
_MOST_SETTINGS = 10**6

_FITTED = frozenset({"best_index_", "best_params_", "best_estimator_", "classes_", "strategy_", "privacy_"})


def _delegates(method: str) -> Callable[[Any], bool]:
    def check(search: Any) -> bool:
        getattr(getattr(search, "best_estimator_", search.estimator), method)
        return True

    return check


class PrivateSearch(CallbackSupportMixin, MetaEstimatorMixin, DPEstimatorMixin, BaseEstimator):
    """Base of the two searches, which differ in the settings that they try."""

    _released = frozenset({"best_index_", "best_params_", "best_estimator_"})
    _public = frozenset({"strategy_"})

    estimator: Any
    epsilon: float
    delta: float
    strategy: str
    scoring: str | None
    validation_fraction: float
    mean_runs: float | None
    refit: bool | str
    label_weights: Any
    loss_bound: float
    bounds_y: Any
    n_bins: int
    rows_per_group: int | None
    schema: Any
    accountant: Any
    n_jobs: int | None
    random_state: Any
    verbose: int

    @abstractmethod
    def _settings(self, source: NoiseSource | None) -> list[dict[str, Any]]:
        """Return the settings to try. Without a source, return representative settings, or raise TypeError."""

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Search on private data, and spend epsilon and delta.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, Table or dict of shape (n_samples, n_features)
            Features, as the estimator accepts them. A dict of columns or a Table of PyArrow needs a schema in the
            estimator or its first step.
        y : array-like of shape (n_samples,), default=None
            Labels or targets. If None, they are the column of X that the schema declares as the target.
        groups : array-like of shape (n_samples,), default=None
            Group of each row, as a number or a text. Required with `rows_per_group`, unless `schema` declares it.

        Returns
        -------
        self : object
            The search, with the best model.

        Raises
        ------
        BudgetError
            If the accountant does not admit the search. Nothing is computed from the data then.
        NotEnoughDataError
            If no candidate could be fitted from its noisy statistics. The budget was charged.
        RuntimeError
            If a fit failed for another reason. The budget was charged, and the guarantee does not cover the error.
        """
        schema = schema_of(self.estimator, self.schema)
        groups = unit_of(schema, None, groups, X)[1]
        y = target_of(schema, X, y)
        for name in _FITTED & vars(self).keys():
            # Attributes of an earlier fit are removed, and restored if this fit is refused.
            delattr(self, name)
        accountant, progress = check_accountant(self.accountant), Progress(self)
        whole = self._check_parameters()
        unit = self._unit()
        source = NoiseSource(self.random_state)
        settings = self._settings(source)
        classes = declared_classes(self._model()) if is_classifier(self._model()) else None
        # All errors of public parameters are raised before the data are read.
        score = self._score(classes) if classes is not None or is_regressor(self._model()) else None
        make_candidates(self._model(), settings, classes, unit)
        numbers = unit.numbers(groups, X)
        X, y, targets, classes = self._data(X, y, classes)
        members = unit.members(numbers, targets)[2]
        if score is None:
            score = self._score(classes)
        candidates = make_candidates(self._model(), settings, classes, unit)
        strategy, prices, plan = self._planned(whole, candidates, score)
        try_on_nothing(prices, strategy.fit_portions(prices), X, targets, members)

        progress.set_up(strategy.phases(), timed=not strategy.hides_fits)
        session = ReleaseSession(
            plan, accountant=accountant, source=source, estimator=type(self).__name__, progress=progress
        )
        progress.begin()
        context = SearchContext(X, y, targets, prices, score, session, source, self.n_jobs, unit, members)
        self.best_index_, chosen = strategy.run(context)
        self.best_params_ = settings[self.best_index_]
        self.best_estimator_ = chosen.model
        if is_shared(self.estimator):
            self.best_estimator_ = private_again(self._model(), candidates[self.best_index_], chosen.model)
        if classes is not None:
            self.classes_ = classes
        self.strategy_ = strategy.name
        self.privacy_ = plan
        # A callback receives a complete copy of this estimator.
        progress.end(dict)
        for message in chosen.mismatches:
            warn(message, SchemaMismatchWarning)
        return self

    def privacy_plan(self, *, n_features: int | None = None, n_classes: int | None = None) -> PrivacyGuarantee:
        """Return the guarantee that `fit` will give, without any data.

        Parameters
        ----------
        n_features : int, optional
            Ignored, because the charge of a search does not depend on it.
        n_classes : int, optional
            Number of labels, for classifiers whose label set is not declared.

        Returns
        -------
        plan : PrivacyGuarantee
            Equal to ``privacy_`` after a fit. If settings are drawn from distributions, this needs an integer
            `random_state`.
        """
        whole = self._check_parameters()
        check_integer(1 if n_features is None else n_features, "n_features", least=1)
        classes = declared_classes(self._model()) if is_classifier(self._model()) else None
        if classes is None and is_classifier(self._model()):
            if n_classes is None:
                raise ValueError("n_classes must be given, since the classes of the estimator are None")
            classes = np.arange(check_integer(n_classes, "n_classes", least=2))
        candidates = make_candidates(self._model(), self._settings(None), classes, self._unit())
        weighted = self._scoring() == "balanced_accuracy" and declared_classes(self._model()) is None
        # The largest gain does not depend on the labels and their weights.
        score = Score("balanced_accuracy", LEVELS, 1.0, False) if weighted else self._score(classes)
        return self._planned(whole, candidates, score)[2]

    def _fixed_cost(self) -> PrivacyCost | None:
        if is_classifier(self._model()) and declared_classes(self._model()) is None:
            return None
        try:
            self._settings(None)
        except TypeError:
            return None
        return self.privacy_plan().cost

    def _model(self) -> Any:
        """Return the estimator, with the schema of the search if there is one."""
        return with_schema(self.estimator, self.schema)

    def _unit(self) -> Unit:
        schema = schema_of(self.estimator, self.schema)
        if schema is not None and self.rows_per_group is None:
            return Unit.of(schema.rows_per_group)
        return Unit.of(self.rows_per_group)

    def _encoding(self) -> None:
        """Return None, because the estimator encodes tables."""

    def _check_parameters(self) -> Budget:
        if isinstance(self.estimator, type) or not (
            hasattr(self.estimator, "fit") and hasattr(self.estimator, "set_params")
        ):
            raise TypeError(f"estimator must be an instance of a classifier or regressor, got {shown(self.estimator)}")
        check_n_jobs(self.n_jobs)
        self._unit()
        check_choice(self.strategy, "strategy", STRATEGIES)
        if not (isinstance(self.refit, str) and self.refit == "auto"):
            check_boolean(self.refit, "refit")
        if self.strategy == "repeat" and self.refit is True:
            raise ValueError("strategy='repeat' has no refit: the best run is the model; leave refit at 'auto'")
        scoring = self._scoring()
        if self.strategy == "repeat" and scoring in FROM_TABLES:
            raise ValueError(
                f"strategy='repeat' cannot compare runs by scoring={scoring!r}: each run releases one number, and "
                "this score needs a table of counts. Choose another strategy, or a score that is a sum over records"
            )
        return Budget(check_epsilon(self.epsilon), check_delta(self.delta))

    def _score(self, classes: NDArray | None) -> Score | Table:
        schema = schema_of(self.estimator, self.schema)
        given = self.label_weights, self.loss_bound, bounds_of(schema, self.bounds_y, self._model()), self.n_bins
        return make_measure(self._scoring(), self._model(), classes, *given)

    def _scoring(self) -> str:
        return check_metric(self.scoring, self.estimator, "scoring")

    def _planned(
        self, whole: Budget, candidates: tuple[Candidate, ...], score: Score | Table
    ) -> tuple[Strategy, Prices, PrivacyGuarantee]:
        n_candidates = len(candidates)
        unit = self._unit()
        size = n_candidates * math.prod(score.shape) if isinstance(score, Table) else 0
        mean = max(1.0, _RUNS_A_CANDIDATE * n_candidates) if self.mean_runs is None else self.mean_runs
        strategy, prices = make_strategy(
            self.strategy,
            n_candidates,
            Prices(candidates, whole, group_sensitivity(score.most, unit.rows), size),
            refit=self.refit,
            validation=check_positive(self.validation_fraction, "validation_fraction", least=0.01, most=0.99),
            mean_runs=check_positive(mean, "mean_runs", least=1.0, most=1e5),
            shape=0.0,
        )
        events = events_of(strategy.sequence(prices))
        plan = PrivacyGuarantee(*whole, events, strategy.releases(prices), fits=strategy.fits())
        return strategy, prices, unit.stated(plan, "a score")

    def _data(self, X: Any, y: Any, classes: NDArray | None) -> tuple[Any, NDArray, NDArray, NDArray | None]:
        """Return rows, labels or targets for scores, the same for estimators, and the label set, all validated."""
        X = self._rows(X)
        if is_classifier(self._model()):
            targets = labels_in(schema_of(self.estimator, self.schema), classes, _column(y))
        else:
            targets = _numbers(y)
        if X.shape[0] != len(targets):
            raise ValueError("X and y must have the same number of rows")
        if not is_classifier(self._model()):
            return X, targets, targets, None
        if classes is None:
            classes = occurring_labels(targets)
        codes = encode_labels(targets, classes)
        return X, codes, with_one_other_label(codes, classes), classes

    def _rows(self, X: Any) -> Any:
        model = self._model()
        X = rows_of_table(model, X)
        sparse = get_tags(model).input_tags.sparse
        if takes_text(model) or hasattr(model, "steps") or hasattr(model, "transformers"):
            X = rows_for_steps(X, takes_text(model), encodes_tables(model))
            validate_quietly(self, X, skip_check_array=True)
            return X
        checked = validate_quietly(
            self, X, dtype=list(FLOATS), ensure_min_samples=0, accept_sparse="csr" if sparse else False
        )
        return X if hasattr(X, "columns") else checked

    @property
    def cv_results_(self) -> Any:
        """Not available, because the scores of the candidates are private."""
        raise AttributeError(
            "cv_results_ does not exist: a private search releases its choice, best_params_, and no score, because "
            "each score would use more of the budget. For a score of the model, call private_score on other records"
        )

    @property
    def best_score_(self) -> Any:
        """Not available, because the score of the chosen candidate is private."""
        raise AttributeError(
            "best_score_ does not exist: a private search releases its choice, best_params_, and no score. For a "
            "score of the model, call private_score on other records"
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = copy.deepcopy(inner.classifier_tags)
        tags.regressor_tags = copy.deepcopy(inner.regressor_tags)
        tags.target_tags.required = True
        tags.input_tags = copy.deepcopy(inner.input_tags)
        tags.non_deterministic = inner.non_deterministic
        return tags

    def _fitted(self) -> Any:
        check_is_fitted(self, "privacy_")
        return self.best_estimator_

    @available_if(_delegates("predict"))
    def predict(self, X: Any) -> Any:
        """Predict with the best model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        predicted : ndarray of shape (n_samples,)
            Labels or targets.
        """
        return self._fitted().predict(X)

    @available_if(_delegates("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Return class probabilities of the best model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return self._fitted().predict_proba(X)

    @available_if(_delegates("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Any:
        """Return logarithms of class probabilities of the best model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return self._fitted().predict_log_proba(X)

    @available_if(_delegates("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Return the decision function of the best model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        scores : ndarray
            Scores in the shape that the model returns.
        """
        return self._fitted().decision_function(X)

    @available_if(_delegates("transform"))
    def transform(self, X: Any) -> Any:
        """Transform with the best model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        transformed : ndarray
            Rows in the shape that the model returns.
        """
        return self._fitted().transform(X)

    @available_if(_delegates("score"))
    def score(self, X: Any, y: Any) -> float:
        """Return the score of the best model: accuracy or R^2. For private rows, no budget covers the score.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features that are not private.
        y : array-like of shape (n_samples,)
            Labels or targets.

        Returns
        -------
        score : float
            The exact score.
        """
        return float(self._fitted().score(X, y))


def takes_text(estimator: Any) -> bool:
    """Tell whether an estimator accepts columns of text."""
    return is_private(estimator) and bool(get_tags(estimator).input_tags.string)


def encodes_tables(estimator: Any) -> bool:
    """Tell whether the estimator, or its first step, reads any table, and maps each entry separately."""
    return schema_of(estimator) is not None


def rows_for_steps(X: Any, text: bool = False, encoded: bool = False) -> Any:
    """Return rows in a form that the steps of a pipeline accept. Refuse numbers that are not finite."""
    # With `text`, the estimator reads columns of text itself, and entries of lists are not changed. With `encoded`, the
    # first step accepts missing values, too. Other candidates for it are tried on the rows later.
    if encoded:
        return array_quietly(entries_of(X))
    array = without_na(array_quietly(entries_of(X) if text else X))
    if getattr(getattr(array, "dtype", None), "kind", None) == "S":
        # Encoders would use the width of the longest entry for their categories.
        raise TypeError(
            "X holds bytes, whose width depends on single entries: decode them to text, as X.astype(str) does"
        )
    made_text = not hasattr(X, "dtype") and getattr(getattr(array, "dtype", None), "kind", None) == "U"
    # If one entry is text, NumPy converts all entries to text, including those of other records.
    if made_text and not all(isinstance(entry, str) for entry in entries_of(X).ravel()):
        raise TypeError("X is a list with text and numbers: pass a dataframe, or an array with dtype=object")
    numeric = array
    if hasattr(array, "select_dtypes"):
        numeric = array.select_dtypes("number")
    elif hasattr(array, "columns"):
        numeric = array[:, [name for name, dtype in array.schema.items() if dtype.is_numeric()]]
    if min(np.shape(numeric), default=0) and getattr(getattr(numeric, "dtype", None), "kind", "f") in "fiub":
        check_quietly(numeric, dtype=list(FLOATS), accept_sparse=True, ensure_min_samples=0, ensure_min_features=0)
    check_entries(array)
    return array


def _column(y: Any) -> Any:
    """Return a column as a vector, with the warning of scikit-learn."""
    return column_or_1d(y, warn=True) if len(getattr(y, "shape", ())) == 2 and y.shape[1] == 1 else y


def _numbers(y: Any) -> NDArray:
    array = check_quietly(_column(y), ensure_2d=False, dtype=list(FLOATS), ensure_min_samples=0)
    if array.ndim != 1:
        raise ValueError("y must be a 1d array")
    return array


def occurring_labels(y: NDArray) -> NDArray:
    """Return the labels that occur, with a warning that they are declared public."""
    if len(y) == 0:
        raise ValueError("0 samples hold no labels; declare them with classes=... on the estimator")
    labels = label_array(y)
    with silence():
        # scikit-learn may warn about the number of distinct labels.
        check_classification_targets(labels)
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError("y must hold at least 2 classes, got 1 class; declare them with classes=... on the estimator")
    warn(
        "classes=None: the labels that occur in y are taken to be public knowledge. Declare the label set with "
        "classes=... on the estimator so that no rare label is disclosed",
        PrivacyAssumptionWarning,
    )
    return classes


def with_one_other_label(codes: NDArray[np.intp], classes: NDArray) -> NDArray:
    """Return the labels of positions, and one label of the same type for all that are not declared."""
    # A part of the records may hold undeclared labels of another type only, which a fit would refuse.
    labels = classes.tolist()
    one: Any = "?" if isinstance(labels[0], str) else b"?" if isinstance(labels[0], bytes) else 1
    other = next(label for k in range(1, len(labels) + 2) if (label := one * k) not in labels)
    return np.array([*labels, other])[codes]


def try_on_nothing(
    prices: Prices, portions: Iterable[Fraction], X: Any, targets: NDArray, members: NDArray[np.intp] | None = None
) -> None:
    """Fit each candidate to no records with the budgets of the search, to find errors before any charge."""
    # The public steps must accept the rows X. Only the type of `targets` is read, and of `members` only whether it is
    # None.
    nothing = take(X, np.arange(0))
    for portion in dict.fromkeys(portions):
        for position, candidate in enumerate(prices.candidates):
            budgets = prices.budgets(position, portion)
            model = candidate.prepared(budgets, [None] * len(budgets))
            with silence(), np.errstate(all="ignore"), suppress(NotEnoughDataError):
                with_groups(model, None if members is None else members[:0]).fit(nothing, targets[:0])
    for candidate in prices.candidates:
        check_rows(candidate.estimator, X)


def _asked(name: str, grids: Any, settings: Callable[[], Iterable[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return settings, or raise an error if they are not in the form of scikit-learn."""
    for grid in [grids] if isinstance(grids, Mapping) else grids if isinstance(grids, list | tuple) else []:
        for parameter, values in grid.items() if isinstance(grid, Mapping) else []:
            if (isinstance(values, list | tuple) and not values) or getattr(values, "size", 1) == 0:
                raise ValueError(f"{name} has no values to try for {shown(parameter)}: give at least one")
    try:
        asked = [dict(setting) for setting in settings()]
    except Exception:
        asked = None
    # It is raised outside the handler, so that a message with the argument is not kept as the context.
    if asked is None:
        raise TypeError(f"{name} must be a dict, or a list of dicts, of names of parameters and lists of values")
    if not asked:
        raise ValueError(f"{name} holds no setting to try")
    return asked


_PARAMETERS = """    epsilon : float, default=1.0
        Privacy budget of the whole search: all fits, the choice and the refit. Must be strictly positive. Smaller
        values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget of the whole search, in [0, 1).
    strategy : {"auto", "holdout", "repeat"}, default="auto"
        How the budget is spent. ``"holdout"`` trains all candidates on one part of the records, and compares them on
        the other part. ``"repeat"`` makes a random number of runs. Each run trains a random candidate and counts its
        score with noise, and the best run is the model. ``"auto"`` takes the strategy with the most signal, computed
        from the number of candidates, `epsilon`, `delta` and the fractions. It never takes ``"repeat"`` if `scoring`
        needs tables.
    scoring : str, default=None
        Score that is compared. If None, it is ``"accuracy"`` for classifiers and ``"neg_mean_absolute_error"`` for
        regressors. Classifiers have ``"accuracy"``, ``"balanced_accuracy"`` (with `label_weights`) or
        ``"neg_log_loss"`` (with `loss_bound`). Regressors have ``"neg_mean_absolute_error"`` or
        ``"neg_mean_squared_error"`` (with `bounds_y`). These scores are sums over records. Classifiers also have
        ``"roc_auc"``, ``"average_precision"`` (of two labels, with `n_bins`), ``"f1"`` and ``"recall"`` (of the second
        of two labels), ``"f1_macro"`` and ``"recall_macro"`` (means over all labels), which are computed from a noisy
        table of counts for each candidate. The noise of the tables grows with the number of candidates. Therefore these
        scores need more records or a larger `epsilon`. ``"repeat"`` does not accept them. Other scores have no known
        sensitivity.
    validation_fraction : float, default=0.2
        Probability that a record is used to compare candidates, and not to train them.
    mean_runs : float, default=None
        Mean number of runs of ``"repeat"``. If None, it is three for each candidate.
    refit : bool or "auto", default="auto"
        Whether to keep a part of the budget for a fit of the chosen candidate to all records. If False, the model is
        the one that was compared. ``"auto"`` refits if the computed signal is larger.
        ``"repeat"`` never refits.
    label_weights : dict, default=None
        Public weight of each label, for balanced accuracy.
    loss_bound : float, default=5.0
        Clipping bound of the log loss of a record.
    bounds_y : pair of float, default=None
        Public bounds of the targets. Targets and predictions beyond are clipped for the comparison.
    n_bins : int, default=10
        Number of equal bins of the estimated probability, for ``"roc_auc"`` and ``"average_precision"``. Must be in
        [2, 1000000]. Records in the same bin count as ties. More bins distinguish more probabilities, and add more
        noise.
    rows_per_group : int, default=None
        Public limit on the number of rows of one group, such as a person, in a score. If a group has more rows,
        `rows_per_group` of them are drawn at random. It must be set for the private steps as well, where it may be
        another number. The guarantee is then for adding or removing all rows of a group. If None, the guarantee is for
        one row.
    schema : Schema, default=None
        Public facts about the columns of a table, for the estimator or the first step of the pipeline. X is then the
        table itself. `bounds_y`, `rows_per_group` and the groups follow from the schema unless they are given.
        By default, the schema of the estimator.
    accountant : BudgetAccountant, default=None
        Accountant that is charged once for the whole search, before anything is computed. The estimator must have none.
        If None, no charge is recorded.
    n_jobs : int, default=None
        Number of parallel fits, as in joblib.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy. Each fit
        has noise of its own for any seed of the estimator.
    verbose : int, default=0
        Whether to print the progress of `fit`. 0 prints nothing, 1 a line for each phase and for about ten steps of a
        phase, and 2 or more up to a hundred steps. The lines hold public numbers and the elapsed time. The elapsed time
        depends on the data, and the guarantee does not cover it.
        Fits inside print nothing. Under ``"repeat"``, neither lines nor callbacks tell the number of runs, which is
        private. Only the start and the end of all runs are reported, without times."""

_ATTRIBUTES = """    best_params_ : dict
        Chosen setting.
    best_index_ : int
        Position of the chosen setting.
    best_estimator_ : estimator
        Model. Its own ``privacy_`` is about the records that it was
        trained on. The guarantee of the search is the ``privacy_`` of the search.
    strategy_ : str
        How the budget was spent. ``"single"`` if there is one candidate, which gets all of it.
    classes_ : ndarray of shape (n_classes,)
        Label set of a classifier.
    privacy_ : PrivacyGuarantee
        Guarantee of the whole search."""

_NOTES = """    **Privacy.** All results of the search together are (epsilon, delta)-DP. Each record (with
    `rows_per_group`, each group with all of its records) is assigned to a part independently (:ref:`model selection,
    theorem 1 <model-selection-theorem-1>`; theorem 2 is about ``"repeat"``, and theorem 6 about tables). Scores,
    other models and the number of runs are not released. A ``SchemaMismatchWarning`` of the fit that made the model is
    part of its release, and is raised again. The guarantee does not cover the time that the search takes,
    an error of the search, labels if the `classes` of the estimator are None, and estimators whose prediction for a row
    depends on other rows. :doc:`/user_guide/model_selection` lists the steps that a pipeline may have."""


class DPGridSearchCV(PrivateSearch):
    __doc__ = f"""Private search over all settings of a grid.

    Parameters
    ----------
    estimator : estimator
        Private classifier or regressor, or a pipeline of private steps and of listed steps for single rows. The
        `weights` of a `PrivatePipeline` divide the budget of each of its fits. Other pipelines divide it equally.
    param_grid : dict or list of dict
        Settings to try, as in scikit-learn.
{_PARAMETERS}

    Attributes
    ----------
{_ATTRIBUTES}

    See Also
    --------
    DPRandomizedSearchCV : Search over settings that are drawn at random.
    private_score : Private evaluation on other records.

    Notes
    -----
{_NOTES}

    References
    ----------
    .. [1] N. Papernot and T. Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", ICLR 2022.
    .. [2] K. Chaudhuri, C. Monteleoni and A. Sarwate, "Differentially Private Empirical Risk Minimization", JMLR 2011.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import DPGridSearchCV, ObjPertLogReg
    >>> X, y = make_classification(n_samples=5000, n_features=4, random_state=0)
    >>> model = ObjPertLogReg(data_norm=3.0, classes=[0, 1])
    >>> search = DPGridSearchCV(model, {{"C": [1e-4, 0.1]}}, epsilon=2.0, delta=1e-6).fit(X, y)
    >>> search.privacy_.epsilon
    2.0
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        strategy: str = "auto",
        scoring: str | None = None,
        validation_fraction: float = 0.2,
        mean_runs: float | None = None,
        refit: bool | str = "auto",
        label_weights: Any = None,
        loss_bound: float = 5.0,
        bounds_y: Any = None,
        n_bins: int = 10,
        rows_per_group: int | None = None,
        schema: Any = None,
        accountant: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.delta = delta
        self.strategy = strategy
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.mean_runs = mean_runs
        self.refit = refit
        self.label_weights = label_weights
        self.loss_bound = loss_bound
        self.bounds_y = bounds_y
        self.n_bins = n_bins
        self.rows_per_group = rows_per_group
        self.schema = schema
        self.accountant = accountant
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.param_grid = param_grid

    def _settings(self, source: NoiseSource | None) -> list[dict[str, Any]]:
        return _asked("param_grid", self.param_grid, lambda: ParameterGrid(self.param_grid))


class DPRandomizedSearchCV(PrivateSearch):
    __doc__ = f"""Private search over settings that are drawn from public distributions.

    Parameters
    ----------
    estimator : estimator
        Private classifier or regressor, or a pipeline of private steps and of listed steps for single rows. The
        `weights` of a `PrivatePipeline` divide the budget of each of its fits. Other pipelines divide it equally.
    param_distributions : dict or list of dict
        Lists, or distributions with a method ``rvs``, as in scikit-learn.
    n_iter : int, default=10
        Number of settings.
{_PARAMETERS}

    Attributes
    ----------
{_ATTRIBUTES}

    See Also
    --------
    DPGridSearchCV : Search over all settings of a grid.

    Notes
    -----
{_NOTES} The draw of the settings does not depend on data.

    References
    ----------
    .. [1] N. Papernot and T. Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", ICLR 2022.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import make_classification
    >>> from skdp import DPRandomizedSearchCV, ObjPertLogReg
    >>> X, y = make_classification(n_samples=5000, n_features=4, random_state=0)
    >>> model = ObjPertLogReg(data_norm=3.0, classes=[0, 1])
    >>> search = DPRandomizedSearchCV(model, {{"C": loguniform(1e-4, 0.1)}}, n_iter=4, epsilon=2.0, delta=1e-6)
    >>> search.fit(X, y).strategy_ in ("holdout", "repeat")
    True
    """

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_iter: int = 10,
        epsilon: float = 1.0,
        delta: float = 0.0,
        strategy: str = "auto",
        scoring: str | None = None,
        validation_fraction: float = 0.2,
        mean_runs: float | None = None,
        refit: bool | str = "auto",
        label_weights: Any = None,
        loss_bound: float = 5.0,
        bounds_y: Any = None,
        n_bins: int = 10,
        rows_per_group: int | None = None,
        schema: Any = None,
        accountant: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.delta = delta
        self.strategy = strategy
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.mean_runs = mean_runs
        self.refit = refit
        self.label_weights = label_weights
        self.loss_bound = loss_bound
        self.bounds_y = bounds_y
        self.n_bins = n_bins
        self.rows_per_group = rows_per_group
        self.schema = schema
        self.accountant = accountant
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.param_distributions = param_distributions
        self.n_iter = n_iter

    def _settings(self, source: NoiseSource | None) -> list[dict[str, Any]]:
        n_iter = check_integer(self.n_iter, "n_iter", least=1, most=_MOST_SETTINGS)
        if source is None:
            if not isinstance(self.random_state, numbers.Integral):
                raise TypeError("settings that are drawn are known for an integer random_state only")
            source = NoiseSource(self.random_state)
        seed = int(source.stream("settings").words(1)[0] >> np.uint64(32))
        return _asked(
            "param_distributions",
            self.param_distributions,
            lambda: ParameterSampler(self.param_distributions, n_iter, random_state=seed),
        )
