"""Search for the best setting with one budget for all fits, the choice and the refit."""

from __future__ import annotations

import copy
import math
import numbers
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier, is_regressor
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from ..accounting import Budget, PrivacyCost, check_delta, check_epsilon
from ..checks.data import FLOATS, validate_quietly
from ..checks.params import (
    By,
    Checked,
    Integer,
    OneOf,
    Or,
    Real,
    Rules,
    anything,
    check_boolean,
    check_integer,
    check_n_jobs,
    check_parameters,
    shown,
    warn,
)
from ..checks.silence import available_if
from ..exceptions import SchemaMismatchWarning
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
from ..schema.encoding import store_columns, target_of, unit_of
from ..sensitivity import group_sensitivity
from ._allocation import Candidate, declared_classes, make_candidates
from ._pipeline import private_again
from ._scoring import FROM_TABLES, LEVELS, MOST_BINS, Score, Table, check_metric, make_measure
from ._stateless import read_targets, rows_for_steps, takes_text
from ._steps import bounds_of, is_shared, rows_of_table, schema_of, with_schema
from ._strategies import STRATEGIES, Prices, SearchContext, Strategy, events_of, make_strategy, try_on_nothing

#: Largest number of drawn settings, so that a wrong number is refused at once.
_MOST_SETTINGS = 10**6

_ALONE = "in one fit of a search, whose own privacy_ is the guarantee to state"

_FITTED = frozenset({"best_index_", "best_params_", "best_estimator_", "classes_", "strategy_", "privacy_"})

_NO_SCORES = (
    "a private search releases its choice, best_params_, and no score. For a score of the model, call private_score on "
    "other records"
)


def _delegated(name: str, summary: str, returned: str, description: str) -> Any:
    """Return the method of the best model."""

    def method(self: Any, X: Any) -> Any:
        check_is_fitted(self, "privacy_")
        return getattr(self.best_estimator_, name)(X)

    method.__name__ = name
    method.__doc__ = f"""{summary}

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        {returned}
            {description}
        """
    return available_if(_has(name))(method)


def _has(name: str) -> Callable[[Any], bool]:
    def check(search: Any) -> bool:
        getattr(getattr(search, "best_estimator_", search.estimator), name)
        return True

    return check


class PrivateSearch(CallbackSupportMixin, MetaEstimatorMixin, DPEstimatorMixin, BaseEstimator):
    """Base of the two searches, which differ in the settings that they try."""

    _released = frozenset({"best_index_", "best_params_", "best_estimator_"})
    _public = frozenset({"strategy_"})

    _parameter_rules: ClassVar[Rules] = {
        "epsilon": By(check_epsilon),
        "delta": By(check_delta),
        "strategy": OneOf(STRATEGIES),
        "validation_fraction": Real(0.01, 0.99),
        "mean_runs": Or(None, Real(1.0, 1e5)),
        "refit": Or("auto", check_boolean),
        "loss_bound": Real(1e-3, 1e3),
        "n_bins": Integer(2, MOST_BINS),
        "accountant": By(check_accountant),
        "n_jobs": By(check_n_jobs),
        "verbose": Integer(0),
        # These are checked together with the estimator.
        **dict.fromkeys(
            ("estimator", "scoring", "label_weights", "bounds_y", "rows_per_group", "schema", "random_state"), anything
        ),
    }

    def _store(self, given: Mapping[str, Any]) -> None:
        """Set the parameters of the constructor as they are given."""
        for name, value in given.items():
            if name != "self":
                setattr(self, name, value)

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
        parameters, progress = self._check_parameters(), Progress(self)
        model, unit = self._model(), self._unit()
        source = NoiseSource(self.random_state)
        settings = self._settings(source)
        classes = declared_classes(model) if is_classifier(model) else None
        # All errors of public parameters are raised before the data are read.
        if classes is not None or is_regressor(model):
            self._score(parameters, classes)
        make_candidates(model, settings, classes, unit)
        numbers = unit.numbers(groups, X)
        X = self._rows(X)
        y, targets, members, classes = read_targets(model, classes, y, X.shape[0], unit, numbers)
        score = self._score(parameters, classes)
        candidates = make_candidates(model, settings, classes, unit)
        strategy, prices, plan = self._planned(parameters, candidates, score)
        try_on_nothing(prices, strategy.fit_portions(prices), X, targets, members)

        progress.set_up(strategy.phases(), timed=not strategy.hides_fits)
        charged = {"accountant": parameters.accountant, "estimator": type(self).__name__}
        session = ReleaseSession(plan, source=source, progress=progress, **charged)
        progress.begin()
        context = SearchContext(X, y, targets, prices, score, session, source, parameters.n_jobs, unit, members)
        self.best_index_, chosen = strategy.run(context)
        self.best_params_ = settings[self.best_index_]
        self.best_estimator_ = chosen.model
        if is_shared(self.estimator):
            self.best_estimator_ = private_again(model, candidates[self.best_index_], chosen.model)
        for step in (self.best_estimator_, *getattr(self.best_estimator_, "named_steps", {}).values()):
            if parameters.accountant is not None and isinstance(step, DPEstimatorMixin):
                # The charge of the search is that of its model, which warns if it is fitted again.
                step._was_charged = True
            if isinstance(stated := getattr(step, "privacy_", None), PrivacyGuarantee):
                step.privacy_ = replace(stated, limit=", ".join(filter(None, (stated.limit, _ALONE))))
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
        parameters, model = self._check_parameters(), self._model()
        check_integer(1 if n_features is None else n_features, "n_features", least=1)
        declared = classes = declared_classes(model) if is_classifier(model) else None
        if declared is None and is_classifier(model):
            if n_classes is None:
                raise ValueError("n_classes must be given, since the classes of the estimator are None")
            classes = np.arange(check_integer(n_classes, "n_classes", least=2))
        candidates = make_candidates(model, self._settings(None), classes, self._unit())
        weighted = parameters.scoring == "balanced_accuracy" and declared is None
        # The largest gain does not depend on the labels and their weights.
        score = Score("balanced_accuracy", LEVELS, 1.0, False) if weighted else self._score(parameters, classes)
        return self._planned(parameters, candidates, score)[2]

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
        declared = None if schema is None else schema.rows_per_group
        return Unit.of(declared if self.rows_per_group is None else self.rows_per_group)

    def _encoding(self) -> None:
        """Return None, because the estimator encodes tables."""

    def _check_parameters(self) -> Checked:
        """Check parameters as far as possible without data. Return them, with the name of the score."""
        if isinstance(self.estimator, type) or not (
            hasattr(self.estimator, "fit") and hasattr(self.estimator, "set_params")
        ):
            raise TypeError(f"estimator must be an instance of a classifier or regressor, got {shown(self.estimator)}")
        parameters = check_parameters(self)
        self._unit()
        scoring = check_metric(self.scoring, self.estimator, "scoring")
        if parameters.strategy == "repeat" and parameters.refit is True:
            raise ValueError("strategy='repeat' has no refit: the best run is the model; leave refit at 'auto'")
        if parameters.strategy == "repeat" and scoring in FROM_TABLES:
            raise ValueError(
                f"strategy='repeat' cannot compare runs by scoring={scoring!r}: each run releases one number, and "
                "this score needs a table of counts. Choose another strategy, or a score that is a sum over records"
            )
        return parameters.replaced(scoring=scoring)

    def _score(self, parameters: Checked, classes: NDArray | None) -> Score | Table:
        model = self._model()
        bounds_y = bounds_of(schema_of(model), self.bounds_y, model)
        others = self.label_weights, parameters.loss_bound, bounds_y, parameters.n_bins
        return make_measure(parameters.scoring, model, classes, *others)

    def _planned(
        self, parameters: Checked, candidates: tuple[Candidate, ...], score: Score | Table
    ) -> tuple[Strategy, Prices, PrivacyGuarantee]:
        whole, unit = Budget(parameters.epsilon, parameters.delta), self._unit()
        size = len(candidates) * math.prod(score.shape) if isinstance(score, Table) else 0
        strategy, prices = make_strategy(
            parameters, Prices(candidates, whole, group_sensitivity(score.most, unit.rows), size)
        )
        events = events_of(strategy.sequence(prices))
        plan = PrivacyGuarantee(*whole, events, strategy.releases(prices), fits=strategy.fits())
        return strategy, prices, unit.stated(plan, "a score")

    def _rows(self, X: Any) -> Any:
        model = self._model()
        X = rows_of_table(model, X)
        sparse = get_tags(model).input_tags.sparse
        if takes_text(model) or hasattr(model, "steps") or hasattr(model, "transformers"):
            X = rows_for_steps(model, X)
            validate_quietly(self, X, skip_check_array=True)
            if (schema := schema_of(model)) is not None:
                store_columns(self, schema)
            return X
        checked = validate_quietly(
            self, X, dtype=list(FLOATS), ensure_min_samples=0, accept_sparse="csr" if sparse else False
        )
        return X if hasattr(X, "columns") else checked

    @property
    def cv_results_(self) -> Any:
        """Not available, because the scores of the candidates are private."""
        raise AttributeError(f"cv_results_ does not exist: {_NO_SCORES}")

    @property
    def best_score_(self) -> Any:
        """Not available, because the score of the chosen candidate is private."""
        raise AttributeError(f"best_score_ does not exist: {_NO_SCORES}")

    def __sklearn_tags__(self) -> Any:
        tags = copy.deepcopy(get_tags(self.estimator))
        tags.target_tags.required = True
        tags.target_tags.multi_output = False
        return tags

    predict = _delegated(
        "predict", "Predict with the best model.", "predicted : ndarray of shape (n_samples,)", "Labels or targets."
    )
    predict_proba = _delegated(
        "predict_proba",
        "Return class probabilities of the best model.",
        "probabilities : ndarray of shape (n_samples, n_classes)",
        "In the order of ``classes_``.",
    )
    predict_log_proba = _delegated(
        "predict_log_proba",
        "Return logarithms of class probabilities of the best model.",
        "log_probabilities : ndarray of shape (n_samples, n_classes)",
        "In the order of ``classes_``.",
    )
    decision_function = _delegated(
        "decision_function",
        "Return the decision function of the best model.",
        "scores : ndarray",
        "Scores in the shape that the model returns.",
    )
    transform = _delegated(
        "transform", "Transform with the best model.", "transformed : ndarray", "Rows in the shape of the model."
    )

    @available_if(_has("score"))
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
        check_is_fitted(self, "privacy_")
        return float(self.best_estimator_.score(X, y))


def _checked_settings(name: str, grids: Any, settings: Callable[[], Iterable[dict[str, Any]]]) -> list[dict[str, Any]]:
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
        Privacy budget of all fits, the choice and the refit. Must be strictly positive. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget of the whole search, in [0, 1).
    schema : Schema, default=None
        Declaration of the columns of X. If None, it is the schema of the estimator.
    accountant : BudgetAccountant, default=None
        Accountant that is charged once for the whole search, before anything is computed. The estimator must have none.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.
    strategy : {"auto", "holdout", "repeat"}, default="auto"
        ``"holdout"`` trains all candidates on one part of the records, and compares them on the rest. ``"repeat"``
        takes the best of a random number of random candidates. ``"auto"`` chooses by public parameters.
    scoring : str, default=None
        Score that is compared, for example ``"balanced_accuracy"`` or ``"roc_auc"`` (:ref:`model_selection` has the
        list). If None, it is ``"accuracy"`` for classifiers and ``"neg_mean_absolute_error"`` for regressors.
    validation_fraction : float, default=0.2
        Probability that a record is used to compare candidates, and not to train them.
    mean_runs : float, default=None
        Mean number of runs of ``"repeat"``. If None, it is three for each candidate.
    refit : bool or "auto", default="auto"
        Whether a part of the budget is kept for a fit of the chosen candidate to all records. ``"repeat"`` never does.
    label_weights : dict, default=None
        Public weight of each label, for balanced accuracy.
    loss_bound : float, default=5.0
        Clipping bound of the log loss of a record.
    n_bins : int, default=10
        Number of equal bins of the estimated probability, for areas under curves. More bins add more noise.
    bounds_y : pair of float, default=None
        Public bounds of the targets. Targets and predictions beyond are clipped for the comparison.
    rows_per_group : int, default=None
        Public limit on the rows of one group, such as a person, in a score. The private steps need their own limit. The
        guarantee is then for all rows of a group.
    n_jobs : int, default=None
        Number of parallel fits, as in joblib.
    verbose : int, default=0
        Lines of progress to print: 0 for none, 1 for about ten in each phase (see :doc:`/user_guide/progress`)."""

_ATTRIBUTES = """    best_params_ : dict
        Chosen setting.
    best_index_ : int
        Position of the chosen setting.
    best_estimator_ : estimator
        Model. Its own ``privacy_`` is that of its fit alone. State ``privacy_`` of the search, also in a model card.
    strategy_ : str
        How the budget was spent. ``"single"`` if there is one candidate, which gets all of it.
    classes_ : ndarray of shape (n_classes,)
        Label set of a classifier.
    privacy_ : PrivacyGuarantee
        Guarantee of the whole search."""

_NOTES = """    **Privacy.** All results of the search together are (epsilon, delta)-DP. Each record (with
    `rows_per_group`, each group with all of its records) is assigned to a part independently (:ref:`model selection,
    theorem 1 <model-selection-theorem-1>`; theorem 2 is about ``"repeat"``, and theorem 6 about tables). Scores, other
    models and the number of runs are not released. The guarantee does not cover the time or an error of the search,
    labels if the `classes` of the estimator are None, and estimators whose prediction for a row depends on other rows.
    :doc:`/user_guide/model_selection` lists the steps that a pipeline may have."""


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

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPGridSearchCV, ObjPertLogReg, Schema
    >>> k = np.arange(5000)
    >>> age, smokes = 18 + k % 72, np.where(k % 5 < 2, "yes", "no")
    >>> ill = age + 16 * (smokes == "yes") + 20 * np.sin(k) > 60
    >>> columns = {{"age": (18, 90), "smokes": ["no", "yes"]}}
    >>> schema = Schema(columns, target=[False, True])
    >>> search = DPGridSearchCV(
    ...     ObjPertLogReg(),
    ...     {{"C": [1e-6, 0.1]}},
    ...     epsilon=2.0,
    ...     delta=1e-6,
    ...     schema=schema,
    ...     random_state=0,
    ... )
    >>> search.fit({{"age": age, "smokes": smokes}}, ill).best_params_
    {{'C': 0.1}}
    """

    _parameter_rules: ClassVar[Rules] = {"param_grid": anything}

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        strategy: str = "auto",
        scoring: str | None = None,
        validation_fraction: float = 0.2,
        mean_runs: float | None = None,
        refit: bool | str = "auto",
        label_weights: Any = None,
        loss_bound: float = 5.0,
        n_bins: int = 10,
        bounds_y: Any = None,
        rows_per_group: int | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def _settings(self, source: NoiseSource | None) -> list[dict[str, Any]]:
        return _checked_settings("param_grid", self.param_grid, lambda: ParameterGrid(self.param_grid))


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

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import loguniform
    >>> from skdp import DPRandomizedSearchCV, ObjPertLogReg, Schema
    >>> k = np.arange(5000)
    >>> age, smokes = 18 + k % 72, np.where(k % 5 < 2, "yes", "no")
    >>> ill = age + 16 * (smokes == "yes") + 20 * np.sin(k) > 60
    >>> columns = {{"age": (18, 90), "smokes": ["no", "yes"]}}
    >>> schema = Schema(columns, target=[False, True])
    >>> search = DPRandomizedSearchCV(
    ...     ObjPertLogReg(),
    ...     {{"C": loguniform(1e-6, 0.1)}},
    ...     n_iter=4,
    ...     epsilon=2.0,
    ...     delta=1e-6,
    ...     schema=schema,
    ...     random_state=0,
    ... )
    >>> search = search.fit({{"age": age, "smokes": smokes}}, ill)
    >>> f"{{search.best_params_['C']:.0e}}"
    '1e-04'
    """

    _parameter_rules: ClassVar[Rules] = {"param_distributions": anything, "n_iter": Integer(1, _MOST_SETTINGS)}

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_iter: int = 10,
        epsilon: float = 1.0,
        delta: float = 0.0,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        strategy: str = "auto",
        scoring: str | None = None,
        validation_fraction: float = 0.2,
        mean_runs: float | None = None,
        refit: bool | str = "auto",
        label_weights: Any = None,
        loss_bound: float = 5.0,
        n_bins: int = 10,
        bounds_y: Any = None,
        rows_per_group: int | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def _settings(self, source: NoiseSource | None) -> list[dict[str, Any]]:
        if source is None:
            if not isinstance(self.random_state, numbers.Integral):
                given = shown(self.random_state)
                raise TypeError(f"random_state must be an integer to know the settings before a fit, got {given}")
            source = NoiseSource(self.random_state)
        seed = int(source.stream("settings").words(1)[0] >> np.uint64(32))
        return _checked_settings(
            "param_distributions",
            self.param_distributions,
            lambda: ParameterSampler(self.param_distributions, self.n_iter, random_state=seed),
        )
