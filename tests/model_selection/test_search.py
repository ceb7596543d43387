"""What a search charges, releases and refuses, in every strategy."""

import math
import pickle
import warnings
from collections import Counter
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import loguniform
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from skdp import (
    BudgetAccountant,
    DPGridSearchCV,
    DPNaiveBayes,
    DPRandomizedSearchCV,
    FunctionalMechLinReg,
    ObjPertLogReg,
    allocate,
)
from skdp.accounting import BoundedRangeEvent, PureEvent, RepeatedSelectionEvent, runs_parameter
from skdp.checks.data import encode_labels
from skdp.decomposition import DPPCA
from skdp.exceptions import (
    BudgetError,
    NotEnoughDataError,
    PrivacyAssumptionWarning,
    SchemaMismatchWarning,
    SeededNoiseWarning,
)
from skdp.local import LocalDPNaiveBayes, RandomizedResponse
from skdp.model_selection import _scoring, _stateless, _strategies, private_cross_val_score, private_score
from skdp.model_selection._scoring import make_table
from skdp.model_selection._stateless import rows_for_steps
from skdp.preprocessing import DPStandardScaler, NormClipper
from skdp.release.session import ReleaseSession
from skdp.schema import Schema
from tests.linear_model.data import blobs
from tests.model_selection.stubs import NoisyCount, Ranks, UnknownCost, records

DELTA = 1e-5
STRATEGIES = ["holdout", "repeat"]
REFITS = [("holdout", False), ("holdout", True), ("repeat", "auto"), ("auto", "auto")]

every_strategy = pytest.mark.parametrize("strategy", STRATEGIES)
both_deltas = pytest.mark.parametrize("delta", [0.0, DELTA])


def objective(**parameters):
    return ObjPertLogReg(data_norm=3.0, **{"classes": [0, 1], **parameters})


def search(strategy="auto", grid=None, estimator=None, **parameters):
    grid = {"label": [0, 1, 0]} if grid is None else grid
    return DPGridSearchCV(NoisyCount() if estimator is None else estimator, grid, strategy=strategy, **parameters)


# ---------------------------------------------------------------- what is charged


@both_deltas
@pytest.mark.parametrize(("strategy", "refit"), REFITS)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_one_charge_of_the_stated_cost(strategy, refit, delta, n_jobs):
    X, y = blobs()
    accountant = BudgetAccountant(1.0, delta, composition="basic")
    model = DPGridSearchCV(
        objective(), {"C": [0.01, 0.02]}, epsilon=1.0, delta=delta, strategy=strategy, refit=refit,
        accountant=accountant, n_jobs=n_jobs,
    )  # fmt: skip
    plan = model.privacy_plan(n_features=5)
    model.fit(X, y)
    (record,) = accountant.records
    assert record.cost == plan.cost == model.privacy_.cost == model._fixed_cost()
    assert accountant.total() == (1.0, delta)
    assert model.privacy_ == plan
    assert record.estimator == "DPGridSearchCV"


@both_deltas
@pytest.mark.parametrize(("strategy", "refit"), REFITS)
@pytest.mark.parametrize("composition", ["auto", "basic", "gdp", "rdp"])
@pytest.mark.sample(every=3)
def test_no_rule_counts_more_than_the_ceiling(strategy, refit, delta, composition):
    accountant = BudgetAccountant(1.0, delta, composition=composition)
    model = search(strategy, refit=refit, epsilon=1.0, delta=delta, accountant=accountant)
    try:
        model.fit(*records(50))
    except BudgetError:
        # Filters at one fixed order, or of Gaussian DP, do not count every proof.
        assert composition in ("gdp", "rdp")
        assert strategy in ("repeat", "auto") or composition == "rdp", "Gaussian DP counts the rest"
        return
    assert accountant.total().epsilon <= 1.0


@both_deltas
@pytest.mark.parametrize("n_candidates", [2, 5, 20])
@every_strategy
def test_the_inner_budgets_are_what_is_booked(strategy, delta, n_candidates, monkeypatch):
    fits = []
    fit = NoisyCount.fit

    def spy(self, X, y):
        if len(X):
            fits.append((self.privacy_plan().events[0], len(X)))
        return fit(self, X, y)

    monkeypatch.setattr(NoisyCount, "fit", spy)
    grid = {"label": ([0, 1] * n_candidates)[:n_candidates]}
    refit = "auto" if strategy == "repeat" else False
    model = search(strategy, grid, refit=refit, epsilon=1.0, delta=delta)
    model.fit(*records(300))
    trained = Counter(event for event, _ in fits)
    (size,) = {n for event, n in fits[:1]}
    booked = model.privacy_.events
    if strategy == "repeat":
        assert len(trained) == 1
        booked = booked[0].events
    lists = getattr(booked[0], "parts", [booked[:1]])
    if strategy == "holdout":
        assert any(Counter(events) == trained for events in lists)
        assert trained.total() == n_candidates
    else:
        assert any(events == (next(iter(trained)),) for events in lists)
    assert size < 300


def test_one_candidate_gets_everything():
    accountant = BudgetAccountant(1.0, DELTA)
    model = search(grid={"label": [1]}, epsilon=1.0, delta=DELTA, accountant=accountant).fit(*records(50))
    assert model.strategy_ == "single"
    assert model.best_estimator_.privacy_.cost == model.privacy_.cost
    assert model.privacy_.releases == ()
    assert len(accountant) == 1


@both_deltas
@every_strategy
def test_all_of_the_budget_is_used(strategy, delta):
    # Nothing is left but what no scale recovers: a hundredth more of budget for each fit would not be admitted.
    model = search(strategy, epsilon=1.0, delta=delta)
    cost = model.privacy_plan().cost
    if delta == 0:
        assert cost.mu() > 0
        assert sum(event.pure_epsilon() for event in cost.events) == pytest.approx(1.0, rel=1e-9)
    elif strategy != "repeat":
        from skdp.accounting import gaussian_mu

        assert cost.mu() >= 0.98 * gaussian_mu(1.0, delta)
    else:
        from skdp.accounting import renyi_epsilon

        assert renyi_epsilon(cost.events, delta) >= 0.97


def test_kinds_of_events():
    assert isinstance(
        search("holdout", delta=DELTA, refit=False).privacy_plan().events[0].parts[1][0], BoundedRangeEvent
    )
    assert isinstance(search("holdout", refit=False).privacy_plan().events[0].parts[1][0], PureEvent)
    assert isinstance(search("repeat").privacy_plan().events[0], RepeatedSelectionEvent)
    refit = search("holdout", refit=True).privacy_plan()
    assert len(refit.events) == 2


@every_strategy
def test_nothing_is_computed_when_the_budget_is_too_small(strategy, monkeypatch):
    monkeypatch.setattr(_strategies.SearchContext, "fit", lambda *args: pytest.fail("the data were used"))
    accountant = BudgetAccountant(0.5)
    model = search(strategy, accountant=accountant)
    with pytest.raises(BudgetError, match="does not admit"):
        model.fit(*records(50))
    assert len(accountant) == 0
    with pytest.raises(NotFittedError):
        model.predict(np.zeros((1, 1)))


@every_strategy
def test_a_charge_is_never_refunded(strategy, monkeypatch):
    def fail(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(_strategies.SearchContext, "fit", fail)
    accountant = BudgetAccountant(1.0)
    model = search(strategy, accountant=accountant)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*records(50))
    assert len(accountant) == 1
    assert not hasattr(model, "privacy_")


def test_unknown_costs_are_summed():
    model = search("holdout", estimator=UnknownCost(), delta=DELTA, epsilon=1.0, refit=False)
    model.fit(*records(100))
    assert model.best_estimator_.epsilon == pytest.approx(1 / 3)
    assert model.best_estimator_.delta == pytest.approx(DELTA / 3)
    with pytest.raises(ValueError, match="cannot be proved"):
        search("repeat", estimator=UnknownCost(), delta=DELTA).fit(*records(10))
    assert search("auto", estimator=UnknownCost(), delta=DELTA).fit(*records(10)).strategy_ != "repeat"


def test_a_budget_that_is_too_small_to_divide():
    for strategy in STRATEGIES:
        with pytest.raises(ValueError, match="too little"):
            search(strategy, {"label": [0, 1] * 50}, epsilon=1.5e-6).fit(*records(10))


# ---------------------------------------------------------------- what is released


@every_strategy
def test_only_declared_attributes(strategy):
    X, y = blobs()
    X = pd.DataFrame(X, columns=list("abcde"))
    model = DPGridSearchCV(objective(), {"C": [0.01, 0.02]}, strategy=strategy).fit(X, y)
    assert set(vars(model)) - set(model.get_params(deep=False)) == {
        "best_params_", "best_index_", "best_estimator_", "classes_", "strategy_", "privacy_", "n_features_in_",
        "feature_names_in_",
    }  # fmt: skip
    assert model.best_params_ == {"C": [0.01, 0.02][model.best_index_]}
    assert list(model.feature_names_in_) == list("abcde") == list(model.best_estimator_.feature_names_in_)
    assert model.best_estimator_.accountant is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(model.predict(X)) == len(X)
        assert model.predict_proba(X).shape == (len(X), 2)
        assert len(model.decision_function(X)) == len(X)
        assert model.score(X, y) > 0.4


@every_strategy
@pytest.mark.parametrize("n_rows", [0, 1, 2])
def test_smallest_data_sets(strategy, n_rows):
    X, y = blobs()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = DPGridSearchCV(objective(), {"C": [0.01, 0.02]}, strategy=strategy).fit(X[:n_rows], y[:n_rows])
    assert len(model.predict(X)) == len(X)


@every_strategy
def test_what_a_pickle_holds_does_not_grow(strategy):
    sizes = {len(pickle.dumps(search(strategy, random_state=0).fit(*records(n)))) for n in (20, 5000)}
    assert max(sizes) - min(sizes) < 50


@every_strategy
def test_seeds(strategy):
    X, y = blobs()

    def fit(seed, inner=None):
        model = DPGridSearchCV(objective(random_state=inner), {"C": [0.01, 0.02]}, strategy=strategy, random_state=seed)
        return model.fit(X, y).best_estimator_.coef_.ravel().tolist()

    assert fit(3) == fit(3) != fit(4)
    assert fit(np.random.default_rng(3)) == fit(np.random.default_rng(3))
    # The estimator's own seed, which would give every fit the same noise, is not used.
    assert fit(None, inner=0) != fit(None, inner=0)


@every_strategy
def test_each_fit_has_noise_of_its_own(strategy, monkeypatch):
    seeds = []
    fit = NoisyCount.fit

    def spy(self, X, y):
        if len(X):
            seeds.append(self.random_state)
        return fit(self, X, y)

    monkeypatch.setattr(NoisyCount, "fit", spy)
    # By this seed there are several runs.
    search(strategy, estimator=NoisyCount(random_state=7), random_state=2, mean_runs=30).fit(*records(40))
    assert len(set(seeds)) == len(seeds) > 1
    seeds.clear()
    search(strategy, estimator=NoisyCount(random_state=7)).fit(*records(40))
    assert set(seeds) == {None}


def test_a_seed_with_a_budget_warns():
    with pytest.warns(SeededNoiseWarning):
        search(accountant=BudgetAccountant(1.0), random_state=0).fit(*records(10))


@every_strategy
def test_failures_score_nothing(strategy):
    grid = {"fail": [True, False], "label": [0]}
    # By these seeds, no random number of runs is all of the candidate that fails.
    for seed in (0, 1, 2):
        model = search(strategy, grid, epsilon=2.0, mean_runs=60, random_state=seed).fit(*records(200))
        assert model.best_params_["fail"] is False
    with pytest.raises(NotEnoughDataError) as failure:
        search(strategy, {"fail": [True], "label": [0, 1]}).fit(*records(200))
    assert not any(character.isdigit() for character in str(failure.value))
    assert failure.value.__cause__ is None
    assert failure.value.__context__ is None


@every_strategy
def test_the_better_candidate_is_found(strategy):
    found = [search(strategy, {"label": [0, 1]}, epsilon=3.0, mean_runs=60, random_state=i) for i in range(10)]
    good = sum(model.fit(*records(400, 1)).best_params_["label"] for model in found)
    # A random number of runs may leave a candidate out.
    assert good >= (6 if strategy == "repeat" else 10)


@every_strategy
def test_without_privacy_the_best_is_chosen(strategy):
    models = [
        search(strategy, {"label": [0, 1, 0]}, epsilon=math.inf, mean_runs=100, random_state=i).fit(*records(40, 1))
        for i in range(4)
    ]
    found = [model.best_index_ == 1 for model in models]
    assert any(found) if strategy == "repeat" else all(found)
    assert models[0].privacy_.epsilon == math.inf


# ---------------------------------------------------------------- what is refused


def test_accountants_of_steps_are_refused():
    for estimator in (NoisyCount(accountant=BudgetAccountant(1.0)), make_pipeline(
        NormClipper(1.0), NoisyCount(accountant=BudgetAccountant(1.0)))):  # fmt: skip
        name = "label" if isinstance(estimator, NoisyCount) else "noisycount__label"
        with pytest.raises(ValueError, match="pass it to the search"):
            DPGridSearchCV(estimator, {name: [0, 1]}).fit(*records(10))


def test_what_is_not_private_is_named():
    inner = GridSearchCV(NoisyCount(), {"label": [0, 1]})
    for estimator, name in [
        (make_pipeline(StandardScaler(), NoisyCount()), "standardscaler"),
        (make_pipeline(OneHotEncoder(), NoisyCount()), "onehotencoder"),
        (LogisticRegression(), "LogisticRegression"),
        (inner, "GridSearchCV"),
    ]:
        with pytest.raises(ValueError, match=name):
            DPGridSearchCV(estimator, {}).fit(*records(10))


@pytest.mark.parametrize("name", ["epsilon", "delta", "accountant", "random_state"])
def test_budgets_cannot_be_searched(name):
    with pytest.raises(ValueError, match="cannot set"):
        search(grid={name: [0.1, 0.2]}).fit(*records(10))


@pytest.mark.parametrize("scoring", ["r2", "confusion_matrix", lambda m, X, y: 1.0, "histogram"])
def test_scores_without_a_bound_are_refused(scoring):
    accountant = BudgetAccountant(1.0)
    why = "effect of one record" if callable(scoring) else "'recall_macro' for a classifier, got"
    with pytest.raises(ValueError, match=why):
        search(scoring=scoring, accountant=accountant).fit(*records(10))
    assert len(accountant) == 0


@every_strategy
def test_a_second_fit_leaves_nothing_of_the_first(strategy):
    model = search(strategy, refit="auto" if strategy == "repeat" else True).fit(*records(50))
    first = model.best_estimator_
    model.fit(*records(50))
    assert model.best_estimator_ is not first
    # A fit that is refused leaves the search as it was.
    kept = dict(vars(model))
    model.accountant = BudgetAccountant(0.5)
    with pytest.raises(BudgetError):
        model.fit(*records(50))
    assert vars(model) == {**kept, "accountant": model.accountant}


def test_other_refusals():
    X, y = records(10)
    for parameters, message in [
        ({"strategy": "best"}, "strategy"),
        ({"strategy": "repeat", "refit": True}, "no refit"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"strategy": "repeat", "mean_runs": 0.5}, "mean_runs"),
        ({"scoring": "neg_mean_squared_error"}, "for regressors"),
        ({"scoring": "balanced_accuracy"}, "label_weights"),
        ({"scoring": "neg_log_loss"}, "predict_proba"),
        ({"epsilon": -1.0}, "epsilon"),
    ]:
        accountant = BudgetAccountant(1.0)
        with pytest.raises(ValueError, match=message):
            search(**{"accountant": accountant, **parameters}).fit(X, y)
        assert len(accountant) == 0
    with pytest.raises(TypeError, match="refit"):
        search(refit="yes").fit(X, y)
    with pytest.raises(TypeError, match="accountant"):
        search(accountant=3).fit(X, y)
    with pytest.raises(TypeError):
        search().fit(X, y, sample_weight=np.ones(10))
    with pytest.raises(ValueError, match="same number of rows"):
        search().fit(X, y[:-1])


@every_strategy
def test_wrong_parameters_of_a_candidate_are_errors_before_the_charge(strategy):
    accountant = BudgetAccountant(1.0)
    with pytest.raises(ValueError, match="label must be"):
        search(strategy, {"label": [0, 7]}, accountant=accountant).fit(*records(10))
    with pytest.raises(ValueError, match="C must"):
        DPGridSearchCV(objective(), {"C": [0.1, -1.0]}, accountant=accountant).fit(*blobs())
    with pytest.raises(ValueError, match="no parameter of NoisyCount"):
        search(strategy, {"strange": [0, 7]}, accountant=accountant).fit(*records(10))
    assert len(accountant) == 0


def test_missing_values_are_refused_before_the_charge():
    X, y = blobs()
    X[3, 1] = np.nan
    for data in (X, pd.DataFrame(X)):
        for estimator, name in [(objective(), "C"), (make_pipeline(NormClipper(3.0), objective()), "objpertlogreg__C")]:
            accountant = BudgetAccountant(1.0)
            with pytest.raises(ValueError, match="NaN"):
                DPGridSearchCV(estimator, {name: [0.1, 0.2]}, accountant=accountant).fit(data, y)
            assert len(accountant) == 0


# ---------------------------------------------------------------- what it works with


@every_strategy
def test_pipelines(strategy):
    X, y = blobs()
    pipeline = make_pipeline(DPStandardScaler(bounds=(-5.0, 5.0)), NormClipper(3.0), objective())
    grid = {"objpertlogreg__C": [0.01, 0.02], "normclipper__data_norm": [2.0, 3.0]}
    accountant = BudgetAccountant(3.0, DELTA, composition="basic")
    model = DPGridSearchCV(pipeline, grid, epsilon=3.0, delta=DELTA, strategy=strategy, accountant=accountant)
    model.fit(X, y)
    assert accountant.total() == (3.0, DELTA)
    assert len(model.predict(X)) == len(X)


def test_encoders_with_public_categories_pass():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"colour": rng.choice(["red", "green"], 200)})
    y = (X["colour"] == "red").astype(int).to_numpy()
    encoder = OneHotEncoder(categories=[["green", "red"]], handle_unknown="ignore", sparse_output=False)
    pipeline = make_pipeline(encoder, ObjPertLogReg(data_norm=1.0, classes=[0, 1]))
    model = DPGridSearchCV(pipeline, {"objpertlogreg__C": [0.1, 0.2]}, epsilon=5.0, strategy="holdout").fit(X, y)
    assert model.score(X, y) > 0.9
    assert list(model.feature_names_in_) == ["colour"]


def test_a_search_is_a_private_step():
    X, y = blobs()
    pipeline = make_pipeline(FunctionTransformer(), search(grid={"label": [0, 1]}))
    accountant = BudgetAccountant(2.0, DELTA)
    allocation = allocate(pipeline, 2.0, DELTA, accountant=accountant)
    assert list(allocation) == ["dpgridsearchcv"]
    pipeline.fit(X, y)
    assert len(accountant) == 1
    assert accountant.total().epsilon <= 2.0
    assert clone(pipeline[-1]).accountant is accountant


@pytest.mark.parametrize(
    "estimator",
    [
        LocalDPNaiveBayes(bounds=(0.0, 1.0), classes=[0, 1]),
        make_pipeline(RandomizedResponse(categories=[[0, 1]]), objective()),
    ],
    ids=["model", "transformer"],
)
def test_local_estimators_are_refused(estimator):
    accountant = BudgetAccountant(1.0)
    with pytest.raises(ValueError, match="does not protect the number of records"):
        DPGridSearchCV(estimator, {}, accountant=accountant).fit(np.zeros((4, 1)), [0, 1, 0, 1])
    assert len(accountant) == 0


@pytest.mark.parametrize("routing", [False, True])
def test_nothing_is_routed_to_a_search(routing):
    """Private estimators take no metadata; a weight that is not used is refused, and costs nothing."""
    X, y = blobs()
    accountant = BudgetAccountant(1.0)
    with config_context(enable_metadata_routing=routing):
        model = search(accountant=accountant)
        with pytest.raises(TypeError, match="sample_weight"):
            model.fit(X, y, sample_weight=np.ones(len(X)))
        with pytest.raises((TypeError, ValueError)):
            make_pipeline(FunctionTransformer(), model).fit(X, y, sample_weight=np.ones(len(X)))
        assert len(accountant) == 0
        pipeline = make_pipeline(FunctionTransformer(), model).fit(X, y)
        assert len(accountant) == 1
        assert len(pipeline.predict(X)) == len(X)
        scores = cross_val_score(search(), X, y, cv=2, params=None)
    assert len(scores) == 2


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_composed_steps_go_to_workers(n_jobs):
    X, y = blobs()
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(c=np.where(y == 1, "yes", "no"))
    encoder = OneHotEncoder(categories=[["no", "yes"]], handle_unknown="ignore", sparse_output=False)
    columns = ColumnTransformer(
        [("numbers", DPStandardScaler(bounds=(-5.0, 5.0)), ["a", "b"]), ("words", encoder, ["c"])], sparse_threshold=0
    )
    pipeline = Pipeline([("columns", columns), ("clip", NormClipper(3.0)), ("model", objective())])
    accountant = BudgetAccountant(6.0, DELTA)
    model = DPGridSearchCV(
        pipeline, {"model__C": [0.01, 0.02]}, epsilon=6.0, delta=DELTA, n_jobs=n_jobs, accountant=accountant
    ).fit(frame, y)
    assert len(accountant) == 1
    # The noise of other processes has no seed.
    assert model.score(frame, y) > (0.7 if n_jobs == 1 else 0.0)
    assert type(model.best_estimator_["columns"].named_transformers_["words"]) is OneHotEncoder


def test_the_number_of_runs_has_its_law(monkeypatch):
    """With a mean of 6 runs, a logarithmic number is 1 with probability .32, and more than 12 with .13."""
    counts = []
    fit = _strategies.SearchContext.fit

    def spy(self, tasks):
        tasks = list(tasks)
        counts.append(len(tasks))
        return fit(self, tasks)

    monkeypatch.setattr(_strategies.SearchContext, "fit", spy)
    for seed in range(30):
        search("repeat", mean_runs=6, random_state=seed).fit(*records(20))
    gamma = runs_parameter(6.0, 0.0)
    # P(1) of the logarithmic law; 30 draws: five standard deviations are allowed.
    one = (1 - gamma) / -math.log(gamma)
    assert abs(counts.count(1) / 30 - one) < 5 * math.sqrt(one * (1 - one) / 30)
    assert max(counts) > 12
    assert len(set(counts)) > 5


@pytest.mark.parametrize("strategy", ["holdout", "repeat"])
def test_projections_can_be_searched(strategy):
    X, y = blobs()
    pipeline = make_pipeline(
        DPPCA(2, data_norm=3.0, whiten=True), NormClipper(2.0), ObjPertLogReg(data_norm=2.0, classes=[0, 1])
    )
    # A record of nearly the largest numbers there are.
    X = np.vstack([X, np.full((1, X.shape[1]), 1.7e308)])
    accountant = BudgetAccountant(2.0, DELTA)
    model = DPGridSearchCV(
        pipeline, {"dppca__n_components": [1, 2]}, epsilon=2.0, delta=DELTA, strategy=strategy, accountant=accountant
    ).fit(X, np.append(y, 0))
    assert len(accountant) == 1
    assert type(model.best_estimator_[0]) is DPPCA
    assert len(model.predict(X[:5])) == 5


def test_a_search_in_a_search_is_refused():
    with pytest.raises(ValueError, match="or divides a budget itself"):
        DPGridSearchCV(search("holdout", grid={"label": [0, 1]}), {"validation_fraction": [0.2, 0.3]}).fit(*records(9))


def test_regressors():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(500, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=500)
    model = FunctionalMechLinReg(bounds=(-1, 1), bounds_y=(-2, 2))
    for scoring in ("neg_mean_absolute_error", "neg_mean_squared_error"):
        found = DPGridSearchCV(model, {"fit_intercept": [True, False]}, scoring=scoring, bounds_y=(-2, 2), epsilon=5.0)
        found.fit(X, y)
        assert is_regressor(found)
        assert not is_classifier(found)
        assert not hasattr(found, "classes_")
        assert len(found.predict(X)) == 500
    with pytest.raises(ValueError, match="scoring='accuracy' is for classifiers"):
        DPGridSearchCV(model, {}, scoring="accuracy").fit(X, y)
    # The mean absolute error is the default, here and in scores.
    assert is_regressor(DPGridSearchCV(model, {}, bounds_y=(-2, 2)).fit(X, y))
    assert private_cross_val_score(model, X, y, cv=2, bounds_y=(-2, 2), epsilon=math.inf).min() > -0.5
    assert private_score(model.fit(X, y), X, y, bounds_y=(-2, 2)).value > -0.5


def test_other_scores():
    X, y = blobs()
    grid = {"C": [1e-6, 0.1]}
    found = DPGridSearchCV(objective(), grid, scoring="neg_log_loss", strategy="holdout", epsilon=50.0).fit(X, y)
    assert found.best_index_ == 1
    weight = {0: 1.0, 1: 2.0}
    DPGridSearchCV(objective(), grid, scoring="balanced_accuracy", label_weights=weight, epsilon=5.0).fit(X, y)


def test_undeclared_labels():
    X, y = blobs()
    names = np.array(["a", "b"])[y]
    with pytest.warns(PrivacyAssumptionWarning, match="classes"):
        model = DPGridSearchCV(objective(classes=None), {"C": [0.01, 0.02]}, epsilon=2.0, delta=DELTA).fit(X, names)
    assert model.classes_.tolist() == ["a", "b"]
    assert model.privacy_ == model.privacy_plan(n_features=5, n_classes=2)
    assert model._fixed_cost() is None
    weighted = clone(model).set_params(scoring="balanced_accuracy", label_weights={"a": 1.0, "b": 2.0})
    with pytest.warns(PrivacyAssumptionWarning, match="classes"):
        weighted.fit(X, names)
    assert weighted.privacy_ == weighted.privacy_plan(n_classes=2)
    with pytest.raises(ValueError, match="n_classes"):
        model.privacy_plan(n_features=5)


def test_unknown_labels_count_as_wrong():
    X, y = blobs()
    more = np.concatenate([y, [7] * 5])
    DPGridSearchCV(objective(), {"C": [0.01, 0.02]}, strategy="holdout").fit(np.concatenate([X, X[:5]]), more)


def test_settings_that_are_drawn():
    X, y = blobs()
    space = {"C": loguniform(1e-4, 1e-1)}
    model = DPRandomizedSearchCV(objective(), space, n_iter=4, epsilon=2.0, delta=DELTA, strategy="holdout")
    first, second = clone(model).fit(X, y), clone(model).fit(X, y)
    assert first.best_params_ != second.best_params_
    assert model._fixed_cost() is None
    seeded = clone(model).set_params(random_state=0)
    assert seeded.fit(X, y).privacy_ == seeded.privacy_plan()
    assert DPRandomizedSearchCV(NoisyCount(), {"label": [0, 1]}, n_iter=2).fit(*records(20)).best_index_ in (0, 1)


@pytest.mark.parametrize("delta", [0.0, DELTA])
@pytest.mark.parametrize("n_candidates", [1, 2, 5, 20])
def test_auto_follows_public_numbers(n_candidates, delta):
    grid = {"label": ([0, 1] * n_candidates)[:n_candidates]}
    names = {search("auto", grid, epsilon=1.0, delta=delta).fit(*records(n)).strategy_ for n in (0, 30, 400)}
    assert len(names) == 1
    # Arithmetic: composing M fits leaves 1 / sqrt(M) or 1 / M of the signal, runs about 0.45 or a half.
    (name,) = names
    if n_candidates >= 5 and delta == 0:
        assert name == "repeat"
    if n_candidates == 2:
        assert name == "holdout"


def test_naive_bayes():
    X, y = blobs()
    model = DPNaiveBayes(bounds=(-5.0, 5.0), classes=[0, 1])
    DPGridSearchCV(model, {"numeric": ["gaussian"], "bounds": [(-5.0, 5.0), (-3.0, 3.0)]}, epsilon=3.0).fit(X, y)


def test_one_entry_of_text_in_a_list_of_numbers_moves_no_other_record():
    # NumPy would make text of all entries of the list.
    with pytest.raises(TypeError, match="text and numbers"):
        rows_for_steps(objective(), [[0.0], [1.0], ["patient-7731"]])
    assert rows_for_steps(objective(), [[0], [1]]).dtype.kind == "i"
    assert rows_for_steps(objective(), [["a"], ["b"]]).dtype.kind == "U"


# ---------------------------------------------------------------- scores that are computed from tables

TABLES = ["roc_auc", "average_precision", "f1", "f1_macro"]
every_table = pytest.mark.parametrize("scoring", TABLES)


def imbalanced(n_rows=2000):
    """Of each ten rows one has label 1, and the first column tells the labels apart."""
    y = (np.arange(n_rows) % 10 == 0).astype(int)
    return np.where(y == 1, 0.9, np.arange(n_rows) % 7 / 12)[:, None], y


def by_table(strategy="holdout", scoring="f1", labels=(0, 1, 2), **parameters):
    return DPGridSearchCV(Ranks(), {"label": list(labels)}, strategy=strategy, scoring=scoring, **parameters)


@pytest.fixture
def quick(monkeypatch):
    """Without the silence around fits, which takes most of the time of quick candidates."""
    for module in (_scoring, _strategies, _stateless):
        monkeypatch.setattr(module, "silence", nullcontext)


@both_deltas
@pytest.mark.parametrize(
    ("strategy", "refit", "scoring"),
    [(*each, TABLES[i % 4]) for i, each in enumerate(each for each in REFITS if each[0] != "repeat")],
)
@pytest.mark.usefixtures("quick")
def test_tables_are_charged_as_planned(strategy, refit, scoring, delta):
    accountant = BudgetAccountant(1.0, delta, composition="basic")
    model = by_table(strategy, scoring, refit=refit, delta=delta, accountant=accountant, n_bins=4)
    plan = model.privacy_plan(n_features=1)
    model.fit(*imbalanced(100))
    (record,) = accountant.records
    assert record.cost == plan.cost == model._fixed_cost()
    assert accountant.total() == (1.0, delta)
    assert model.privacy_ == plan
    (release,) = plan.releases
    assert str(release.theorem) == "Model selection, theorem 6"
    assert release.mechanism.size == 3 * {"roc_auc": 8, "average_precision": 8, "f1": 6, "f1_macro": 6}[scoring]
    least = 3 if delta == 0 else math.sqrt(3)
    assert least <= release.mechanism.sensitivity <= 1.1 * least


@both_deltas
def test_the_budget_of_tables_is_that_of_the_choice(delta):
    by_sums = by_table("holdout", "accuracy", delta=delta, refit=True).privacy_plan()
    plan = by_table("holdout", "f1", delta=delta, refit=True).privacy_plan()
    assert plan.releases[0].share == by_sums.releases[0].share
    assert plan.fits == by_sums.fits
    if delta == 0:
        assert plan.events == by_sums.events


def test_allocate_gives_a_search_by_tables_its_part():
    X, y = imbalanced(100)
    accountant = BudgetAccountant(2.0, DELTA)
    pipeline = make_pipeline(FunctionTransformer(), by_table(n_bins=4, scoring="roc_auc"))
    allocate(pipeline, 2.0, DELTA, accountant=accountant)
    pipeline.fit(X, y)
    assert len(accountant) == 1
    assert 1.9 < accountant.total().epsilon <= 2.0


@both_deltas
@pytest.mark.usefixtures("quick")
def test_one_record_moves_tables_by_no_more_than_the_bound(delta, monkeypatch):
    labels = (0, 1, 2, 1)
    released = []
    release = ReleaseSession.release

    def note(self, label, value):
        if label == "selection":
            released.append(np.array(value))
        return release(self, label, value)

    monkeypatch.setattr(ReleaseSession, "release", note)
    X, y = imbalanced(30)
    for scoring in ("roc_auc", "f1"):
        most = 0.0
        model = by_table("holdout", scoring, labels, delta=delta, validation_fraction=0.99, random_state=0)
        # Label 7 is in no cell. The record comes last, so that the others draw the same parts.
        for row, label in [(0.0, 0), (0.9, 1), (5.0, 7)]:
            released.clear()
            for rows in (slice(30), slice(31)):
                model.fit(np.append(X, [[row]], axis=0)[rows], np.append(y, label)[rows])
            change = np.abs(released[1] - released[0])
            assert set(np.unique(change)) <= {0.0, 1.0}
            most = max(most, change.sum() if delta == 0 else math.sqrt((change**2).sum()))
            if label == 7:
                assert not change.any()
        sensitivity = model.privacy_.releases[0].mechanism.sensitivity
        assert most <= sensitivity * (1 + 1e-12)
        # The record is in the validation part, and all candidates count it.
        assert most == pytest.approx(len(labels) if delta == 0 else math.sqrt(len(labels)))


@both_deltas
@every_table
@pytest.mark.usefixtures("quick")
def test_tables_find_the_better_candidate_among_rare_labels(scoring, delta):
    X, y = imbalanced(1000)
    given = {"epsilon": 30.0, "delta": delta, "random_state": 0, "refit": False}
    for labels in ((0, 1, 2), (1, 2, 0)):
        found = by_table("holdout", scoring, labels, **given).fit(X, y)
        assert found.best_params_ == {"label": 1}


def test_tables_weigh_rare_labels_and_accuracy_does_not():
    X, y = imbalanced()
    for scoring, label in (("accuracy", 0), ("f1", 1)):
        # The candidates always predict 0, and always 1.
        found = search("holdout", {"label": [0, 1]}, scoring=scoring, epsilon=20.0, random_state=0).fit(X, y)
        assert found.best_params_ == {"label": label}


def test_more_bins_tell_small_probabilities_apart():
    X, y = imbalanced()
    given = {"scoring": "roc_auc", "epsilon": math.inf, "random_state": 0}
    found = [by_table(labels=(0, 1), n_bins=n_bins, **given).fit(X / 20, y).best_index_ for n_bins in (10, 200)]
    # With ten bins, all records are ties for both candidates, and the first one is chosen.
    assert found == [0, 1]


@every_table
def test_smallest_data_sets_by_tables(scoring):
    for n_rows in (0, 2):
        for epsilon in (1.0, math.inf):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                X, y = imbalanced(n_rows)
                model = by_table("holdout", scoring, labels=(0, 1), epsilon=epsilon, refit=True).fit(X, y)
            assert len(model.predict(np.zeros((5, 1)))) == 5


@pytest.mark.parametrize("scoring", ["average_precision", "f1_macro"])
@pytest.mark.usefixtures("quick")
def test_failures_are_not_chosen_by_tables(scoring):
    X, y = imbalanced(60)
    grid = {"fail": [True, False], "label": [1]}
    for seed in range(3):
        model = DPGridSearchCV(Ranks(), grid, strategy="holdout", scoring=scoring, random_state=seed).fit(X, y)
        assert model.best_params_["fail"] is False
    with pytest.raises(NotEnoughDataError):
        DPGridSearchCV(Ranks(fail=True), {"label": [0, 1]}, strategy="holdout", scoring=scoring).fit(X, y)


def test_a_candidate_whose_noisy_table_gives_no_score_is_not_chosen():
    table = make_table("roc_auc", Ranks(), np.array([0, 1]), 2)
    shop = SimpleNamespace(score=table, session=SimpleNamespace(release=lambda label, value: value))
    # By estimated probability and label. Noise has left the first and the last candidate no record of label 1.
    counts = np.array([[[5, -1], [5, 0]], [[1, 5], [9, 5]], [[9, 5], [1, 5]], [[5, 0], [5, -3]]])
    assert np.isnan(table.value(counts[0]))
    fits = [_strategies.Fit(True, table, ()) for table in counts]
    assert _strategies.SearchContext.select(shop, fits) == 2
    fits[2] = _strategies.Fit(None, counts[2], ())
    assert _strategies.SearchContext.select(shop, fits) == 1


@both_deltas
@pytest.mark.usefixtures("quick")
def test_seeds_of_tables(delta):
    X, y = imbalanced(100)

    def chosen(seed):
        model = by_table(labels=[0, 1, 2] * 2, epsilon=0.1, delta=delta, refit=False, random_state=seed).fit(X, y)
        return model.best_index_, model.best_estimator_.count_

    assert chosen(3) == chosen(3)
    # The noise is much larger than the counts.
    assert len({chosen(seed)[0] for seed in range(8)}) > 2


@pytest.mark.usefixtures("quick")
def test_tables_cannot_choose_among_runs():
    X, y = imbalanced(30)
    for scoring in TABLES:
        accountant = BudgetAccountant(1.0)
        model = by_table("repeat", scoring, accountant=accountant)
        for call in (model.privacy_plan, lambda model=model: model.fit(X, y)):
            with pytest.raises(ValueError, match=f"repeat' cannot compare runs by scoring='{scoring}'"):
                call()
        assert len(accountant) == 0
    # With this budget, "auto" chooses "repeat" for sums.
    assert by_table("auto", "accuracy", [0, 1] * 3).fit(X, y).strategy_ == "repeat"
    for refit in ("auto", True, False):
        assert by_table("auto", "f1", [0, 1] * 3, refit=refit).fit(X, y).strategy_ != "repeat"


def test_tables_that_an_estimator_does_not_have_are_refused():
    X, y = imbalanced(30)
    accountant = BudgetAccountant(1.0)
    regressor = FunctionalMechLinReg(bounds=(-1, 1), bounds_y=(-2, 2))
    for estimator, scoring, message in [
        (NoisyCount(), "roc_auc", "predict_proba"),
        (Ranks(classes=(0, 1, 2)), "average_precision", "two labels"),
        (Ranks(classes=(0, 1, 2)), "f1", "f1_macro"),
        (regressor, "f1", "for classifiers"),
    ]:
        with pytest.raises(ValueError, match=message):
            DPGridSearchCV(estimator, {}, scoring=scoring, accountant=accountant).fit(X, y)
    with pytest.raises(ValueError, match="n_bins"):
        by_table(scoring="roc_auc", n_bins=1, accountant=accountant).fit(X, y)
    with pytest.raises(ValueError, match="n_bins"):
        private_score(Ranks().fit(X, y), X, y, metric="histogram", n_bins=10**7, accountant=accountant)
    assert len(accountant) == 0


def test_tables_in_a_randomized_search_with_undeclared_labels():
    X, y = imbalanced(60)
    names = np.array(["no", "yes"])[y]
    model = DPRandomizedSearchCV(
        objective(classes=None), {"C": [0.01, 0.02, 0.03]}, n_iter=2, scoring="roc_auc", strategy="holdout",
        epsilon=2.0, delta=DELTA, random_state=0,
    )  # fmt: skip
    with pytest.warns(PrivacyAssumptionWarning, match="classes"):
        model.fit(X, names)
    assert model.privacy_ == model.privacy_plan(n_classes=2)
    assert model.classes_.tolist() == ["no", "yes"]
    with pytest.raises(ValueError, match="two labels"):
        model.privacy_plan(n_classes=3)


DECLARED = Schema({"ward": ["surgery", "medicine"], "age": (0, 1)}, target={"ill": ["no", "yes"]})


def patients(n=3000):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"ward": rng.choice(["surgery", "medicine"], n), "age": rng.random(n)})
    return frame, np.where(frame.age > 0.5, "yes", "no")


@pytest.mark.parametrize("strategy", [*REFITS, ("single", True)])
def test_declarations_that_do_not_fit_are_named_by_searches(strategy):
    """The noise is a few records. Probability that the test fails by chance: 1e-9."""
    frame, y = patients()
    name, refit = strategy
    grid = {"priors": [None] if name == "single" else [None, [0.5, 0.5]]}
    strategy = "auto" if name == "single" else name
    search = DPGridSearchCV(DPNaiveBayes(schema=DECLARED), grid, epsilon=60.0, strategy=strategy, refit=refit)
    search.fit(frame, y)
    for wrong, labels, message in [
        (frame.assign(ward=frame.ward.str.upper()), y, "in no category in the column 'ward'"),
        (frame, np.char.upper(y), "have a label that is"),
    ]:
        with pytest.warns(SchemaMismatchWarning, match=message):
            search.fit(wrong, labels)
        assert search.predict(frame).shape == (3000,)
        with pytest.warns(SchemaMismatchWarning, match=message):
            private_cross_val_score(DPNaiveBayes(schema=DECLARED), wrong, labels, cv=3, epsilon=60.0)
    private_cross_val_score(DPNaiveBayes(schema=DECLARED), frame, y, cv=3, epsilon=60.0)


@pytest.mark.parametrize("classes", [[0, 1], [1.0, 2.5], ["?", "a"], [b"?", b"??"], [False, True]])
def test_undeclared_labels_become_one_label_of_the_type_of_the_others(classes):
    classes = np.array(classes)
    codes = np.array([0, -1, 1, -1])
    labels = _stateless.with_one_other_label(codes, classes)
    np.testing.assert_array_equal(encode_labels(labels, classes), codes)


@every_strategy
def test_the_model_of_a_search_says_that_its_guarantee_leaves_out_the_choice(strategy):
    found = DPGridSearchCV(NoisyCount(), {"label": [0, 1]}, strategy=strategy).fit(*records(50))
    assert ", in one fit of a search, whose own privacy_ is" in repr(found.best_estimator_.privacy_).splitlines()[0]
    assert "search" not in repr(found.privacy_).splitlines()[0]
    # A fit of its own is not part of the search.
    assert "search" not in repr(found.best_estimator_.fit(*records(50)).privacy_)
