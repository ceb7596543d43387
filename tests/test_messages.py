"""Messages name the public class, parameter or column, give the reason, and say what to do; nothing is charged."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_backend
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PolynomialFeatures, StandardScaler

from skdp import (
    DPPCA,
    BoundsScaler,
    BudgetAccountant,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPGridSearchCV,
    DPKMeans,
    DPMLPRegressor,
    DPNaiveBayes,
    DPRandomizedSearchCV,
    DPRandomTree,
    DPSGDClassifier,
    DPSGDRegressor,
    FunctionalMechLinReg,
    HistogramClassifier,
    Number,
    ObjPertLogReg,
    Schema,
    TableEncoder,
    allocate,
    make_private_pipeline,
    private_cross_val_score,
    private_score,
    stats,
)
from skdp.exceptions import BudgetWarning, PrivacyAssumptionWarning
from tests.estimators import ONE_EACH

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 2))
Y = np.where(X[:, 0] > 0, "yes", "no")
TABLE = Schema({"age": Number(18, 90), "work": ["a", "b"]}, target={"paid": ["no", "yes"]})


def objective(classes=("no", "yes"), **parameters):
    # Bagging passes the counts of its samples as weights.
    return ObjPertLogReg(data_norm=3.0, classes=list(classes), max_weight=10.0, **parameters)


def bayes(classes=("no", "yes")):
    return DPNaiveBayes(bounds=(-3, 3), classes=list(classes))


@pytest.mark.parametrize("model", ONE_EACH, ids=lambda model: type(model).__name__)
def test_unknown_arguments_are_refused_by_the_public_name(model):
    name = type(model).__name__
    if "max_weight" not in model.get_params(deep=False):
        with pytest.raises(TypeError, match=rf"^{name}\.fit\(\) got .* 'sample_weight'\. .*Searches do not pass it on"):
            clone(model).fit(X, Y, sample_weight=np.ones(200))
    if "class_weight" not in model.get_params(deep=False):
        with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected .* 'class_weight'\. .*move the threshold"):
            type(model)(class_weight="balanced")
    with pytest.raises(
        TypeError, match=rf"^{name}\(\) got an unexpected .* 'epsilons'\. The arguments are .*epsilon, "
    ):
        type(model)(epsilons=1.0)
    with pytest.raises(TypeError, match=rf"^{name}\.fit\(\) missing a required argument"):
        clone(model).fit()


@pytest.mark.filterwarnings("ignore:The guarantee in privacy_ does not hold")
@pytest.mark.parametrize(
    "fit",
    [
        lambda a, b: VotingClassifier([("a", a), ("b", b)]).fit(X, Y),
        lambda a, b: StackingClassifier([("a", a)], final_estimator=b, cv=2).fit(X, Y),
        lambda a, b: BaggingClassifier(a, n_estimators=2).fit(X, Y),
        lambda a, b: cross_val_predict(a, X, Y, method="predict_proba", cv=2),
    ],
)
def test_positions_of_labels_are_explained(fit):
    with pytest.raises(TypeError, match=r"classes holds text labels, .*Set classes=\[0, 1\] on these\. OneVsRest"):
        fit(objective(), bayes())
    fit(objective([0, 1]), bayes([0, 1]))


def test_labels_of_objects_are_explained_too():
    with pytest.raises(TypeError, match=r"another type than those in classes\. .*Set classes=\[0, 1\]"):
        objective().fit(X, np.zeros(200, dtype=object))
    with pytest.raises(TypeError, match=r"Set classes=range\(20\)"):
        objective([f"label {k:02}" for k in range(20)]).fit(X, np.zeros(200))
    with pytest.raises(TypeError, match=r"y holds text labels\. Declare the labels as y holds them"):
        objective([0, 1]).fit(X, Y)


@pytest.mark.parametrize("labels", [np.zeros(200, dtype=int), np.zeros(200, dtype=object)])
def test_scores_ask_for_the_labels_of_the_model(labels):
    model, budget = bayes().fit(X, Y), BudgetAccountant(4.0)
    with pytest.raises(
        TypeError, match=r" labels of the model \(classes_\), of the same type\. Nothing was charged$"
    ) as caught:
        private_score(model, X, labels, accountant=budget)
    assert "Declare" not in str(caught.value)
    assert len(budget) == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda a, b: VotingClassifier([("a", a), ("b", b)]),
        lambda a, b: VotingClassifier([("a", make_pipeline(a)), ("b", b)]),
        lambda a, b: make_pipeline(VotingClassifier([("a", a), ("b", b)])),
        lambda a, b: VotingClassifier([("a", DPGridSearchCV(a, {"C": [1.0]})), ("b", b)]),
    ],
)
def test_allocate_does_not_approve_what_fails_after(make):
    accountant = BudgetAccountant(4.0)
    with pytest.raises(ValueError, match=r"hands positions of labels .*classes=\[0, 1\] on ObjPertLogReg"):
        allocate(make(objective(), bayes([0, 1])), 2.0, accountant=accountant)
    with pytest.warns(match="label encoder"):
        allocate(make(objective([0, 1]), bayes([0, 1])), 2.0, accountant=accountant)


def test_columns_of_text_are_named():
    frame = pd.DataFrame({"job": ["a", "b"] * 100, "age": X[:, 0], "town": pd.Categorical(["c"] * 200)})
    message = r"\(columns that are not of a numeric type: 'job', 'town'\)\. Encode .* public list of categories"
    accountant = BudgetAccountant(4.0)
    for model in (objective(accountant=accountant), bayes().set_params(accountant=accountant)):
        with pytest.raises(ValueError, match=message) as caught:
            model.fit(frame, Y)
        assert caught.value.__context__ is None
        with pytest.raises(ValueError, match=r"cannot be read as numbers\. Encode"):
            model.fit(frame.to_numpy(), Y)
    many = pd.DataFrame({f"c{k}": ["a", "b"] for k in range(11)})
    with pytest.raises(ValueError, match="'c7' and 3 more"):
        objective().fit(many, Y[:2])
    assert len(accountant) == 0


@pytest.mark.parametrize("dtype", [object, "Float64"])
def test_what_pandas_calls_na_is_missing(dtype):
    frame = pd.DataFrame({"x": pd.Series([1.0, pd.NA] * 100, dtype=dtype), "z": X[:, 0]})
    for rows in (frame, frame.to_numpy()):
        with pytest.raises(ValueError, match=r"NaN.*Leave out records with missing values"):
            objective().fit(rows, Y)


def test_grids_without_values_are_named():
    for grid in ({"C": []}, [{"C": [1.0]}, {"C": np.array([])}]):
        with pytest.raises(ValueError, match="param_grid has no values to try for 'C'"):
            DPGridSearchCV(objective(), grid).fit(X, Y)
    with pytest.raises(ValueError, match="param_distributions has no values to try for 'C'"):
        DPRandomizedSearchCV(objective(), {"C": []}).fit(X, Y)


@pytest.mark.parametrize(
    ("estimator", "name", "message"),
    [
        (DPAdditiveClassifier(schema=TABLE), "max_bins", r"DPAdditiveClassifier .*of 'n_bins'\? .*max_weight, n_bins"),
        (DPAdditiveClassifier(schema=TABLE), "colour", r"that a search can set\. The parameters are bin_edges, "),
        (DPAdditiveClassifier(schema=TABLE), 3, r"^3 is no parameter"),
        (make_private_pipeline(TableEncoder(TABLE), bayes()), "naivebayes__n_bins", r"Pipeline .*'dpnaivebayes__n_b"),
        (make_private_pipeline(TableEncoder(TABLE), bayes()), "dpnaivebayes__bins", r"DPNaiveBayes .* dpnaivebayes__b"),
    ],
)
def test_unknown_parameters_of_a_search_are_named(estimator, name, message):
    with pytest.raises(ValueError, match=message) as caught:
        DPGridSearchCV(estimator, {name: [4]}).fit(TABLE.sample(50))
    assert "charged" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_search_sets_parameters_of_a_step_that_it_exchanges():
    pipeline = make_private_pipeline(TableEncoder(TABLE), objective())
    grid = {"objpertlogreg": [HistogramClassifier(classes=["no", "yes"], bounds=(-1, 1))], "objpertlogreg__n_bins": [2]}
    DPGridSearchCV(pipeline, grid, epsilon=5.0).fit(TABLE.sample(300))


def test_wide_sparse_rows_in_pipelines():
    # Trees compute with dense rows.
    frame = pd.DataFrame({"job": ["a", "b"] * 100})
    encoder = OneHotEncoder(categories=[[*"ab", *map(str, range(1000))]], handle_unknown="ignore")
    tree = DPRandomTree(bounds=(0, 1), classes=[0, 1])
    for model, rows in (
        (make_pipeline(encoder, tree), frame),
        (make_pipeline(ColumnTransformer([("job", encoder, ["job"])]), tree), frame),
        (tree, sparse.csr_matrix((len(Y), 1001))),
    ):
        with pytest.raises(TypeError, match=r"sparse_output=False on OneHotEncoder and TableEncoder"):
            model.fit(rows, Y)


@pytest.mark.parametrize("last", [DPPCA(2), DPKMeans(2)], ids=lambda model: type(model).__name__)
def test_a_step_after_an_encoder_names_what_it_needs(last):
    budget = BudgetAccountant(3.0, 1e-6)
    pipeline = make_private_pipeline(TableEncoder(TABLE), last, accountant=budget)
    name = type(last).__name__
    with pytest.raises(
        ValueError, match=rf"^step '{name.lower()}' .*{name}\(\*\*encoder\.parameters.* the step 'tableencoder'"
    ):
        pipeline.fit(TABLE.sample(50)[["age", "work"]])
    assert len(budget) == 0


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(("last", "advice"), [(DPSGDClassifier, "data_norm=2"), (DPNaiveBayes, r"bounds=\(-2, 2\)")])
def test_a_step_that_lacks_a_bound_is_named_before_an_earlier_step_is_charged(last, advice, delta):
    budget = BudgetAccountant(3.0, 1e-6)
    pipeline = make_private_pipeline(
        TableEncoder(TABLE), DPPCA(2, data_norm=2.0), last(classes=["no", "yes"]), delta=delta, accountant=budget
    )
    table, name = TABLE.sample(50), last.__name__
    with pytest.raises(
        ValueError, match=rf"^step '{name.lower()}' .*the step 'dppca' makes.*Pass {name}\({advice}\).*Nothing was"
    ) as caught:
        pipeline.fit(table[["age", "work"]], table["paid"])
    assert "schema=" not in str(caught.value)
    assert len(budget) == 0


@pytest.mark.parametrize("text", [np.array, list, pd.Series, lambda y: np.array(y, dtype=object)])
@pytest.mark.parametrize("model", [DPAdditiveRegressor, DPSGDRegressor, FunctionalMechLinReg, DPMLPRegressor])
def test_targets_of_text_are_those_of_a_classifier(model, text):
    budget = BudgetAccountant(3.0, 1e-6)
    bounds = {"bounds": (-3, 3)} if "bounds" in model().get_params() else {"data_norm": 3.0}
    regressor = model(bounds_y=(0, 1), accountant=budget, **bounds)
    with pytest.raises(ValueError, match=r"^y holds text .*DPAdditiveClassifier") as caught:
        regressor.fit(X, text(Y.tolist()))
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert "OneHotEncoder" not in str(caught.value)
    assert len(budget) == 0


@pytest.mark.parametrize("of", [lambda table: table[["age", "work"]], lambda table: table[["age", "work"]].to_numpy()])
def test_a_target_that_the_table_lacks_is_named(of):
    rows, budget = of(TABLE.sample(50)), BudgetAccountant(3.0)
    lacking = r"X lacks the column 'paid', which the schema names as the target.*not charged"
    for call in (
        DPAdditiveClassifier(schema=TABLE, accountant=budget).fit,
        DPGridSearchCV(DPNaiveBayes(schema=TABLE), {"n_bins": [4, 8]}, accountant=budget).fit,
    ):
        with pytest.raises(ValueError, match=lacking):
            call(rows)
    assert len(budget) == 0


@pytest.mark.parametrize(
    ("metric", "answer"),
    [
        ("r2", "got 'r2'."),
        (len, "A function is refused, because the effect of one record"),
        ("auc", "Do you mean 'roc_auc'?"),
        ("log_loss", "Do you mean 'neg_log_loss'?"),
    ],
)
def test_metrics_are_those_of_the_kind_of_model(metric, answer):
    model = bayes().fit(X, Y)
    with pytest.raises(ValueError, match=r"'recall_macro'.* for a classifier, got ") as caught:
        private_score(model, X, Y, metric=metric)
    assert answer in str(caught.value)
    assert "squared_error" not in str(caught.value)


@pytest.mark.parametrize(("short", "name"), [("mae", "neg_mean_absolute_error"), ("MSE", "neg_mean_squared_error")])
def test_metrics_are_known_by_their_initials(short, name):
    model = DPAdditiveRegressor(bounds=(-3, 3), bounds_y=(0, 1)).fit(X, (Y == "yes").astype(float))
    for score in (
        lambda: private_score(model, X, Y == "yes", metric=short),
        lambda: private_cross_val_score(model, X, Y == "yes", scoring=short),
    ):
        with pytest.raises(ValueError, match=f"Do you mean '{name}'\\?"):
            score()


def test_the_variance_for_an_r2_is_named():
    model = DPAdditiveRegressor(bounds=(-3, 3), bounds_y=(0, 1)).fit(X, (Y == "yes").astype(float))
    with pytest.raises(ValueError, match=r"neg_mean_squared_error'.* for a regressor, .*skdp\.stats\.var"):
        private_score(model, X, Y == "yes", metric="r2")


@pytest.mark.parametrize(
    ("score", "wrong", "right"), [(private_score, "scoring", "metric"), (private_cross_val_score, "metric", "scoring")]
)
def test_the_argument_for_a_score_is_named(score, wrong, right):
    with pytest.raises(TypeError, match=rf"^{score.__name__}\(\) has no argument '{wrong}'\. .*{right}="):
        score(bayes(), X, Y, **{wrong: "accuracy"})


def test_searches_say_why_they_have_no_scores():
    search = DPGridSearchCV(bayes(), {"n_bins": [4, 8]}).fit(X, Y)
    for name in ("cv_results_", "best_score_"):
        assert not hasattr(search, name)
        with pytest.raises(AttributeError, match=f"{name} does not exist: .*private_score"):
            getattr(search, name)


def charged(model, **parameters):
    return clone(model).set_params(accountant=BudgetAccountant(50.0, 1e-6), **parameters)


def test_a_second_fit_with_a_budget_warns_of_both_charges():
    model = charged(bayes(), epsilon=2.0).fit(X, Y)
    model.set_params(epsilon=1.0)
    with pytest.warns(
        BudgetWarning,
        match=r"DPNaiveBayes has been fitted.* \(epsilon=2, .* \(epsilon=1, .*in addition.*replaces this model",
    ):
        model.fit(X, Y)
    # Others, and fits without a budget, do not warn.
    clone(model).fit(X, Y)
    bayes().fit(X, Y).fit(X, Y)
    model.set_params(accountant=BudgetAccountant(3.0)).fit(X, Y)


@pytest.mark.parametrize(
    "model",
    [
        charged(bayes()),
        DPGridSearchCV(bayes(), {"n_bins": [4, 8]}, accountant=BudgetAccountant(50.0)),
        make_private_pipeline(BoundsScaler((-3, 3)), objective(), accountant=BudgetAccountant(50.0)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_fit_of_a_saved_model_that_no_budget_records_warns(model):
    saved = pickle.dumps(model.fit(X, Y).set_params(accountant=None))
    message = r"has been fitted, and its budget was charged .*accountant is None, .*no budget records this fit"
    with pytest.warns(BudgetWarning, match=message):
        pickle.loads(saved).fit(X, Y)
    # Copies without a fit, public fits, and fits that a budget records do not warn.
    clone(pickle.loads(saved)).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BudgetWarning)
        public = pickle.loads(saved).fit(X, Y)
    public.fit(X, Y)
    pickle.loads(saved).set_params(accountant=BudgetAccountant(50.0)).fit(X, Y)


def test_a_fit_of_the_model_of_a_search_that_no_budget_records_warns():
    search = DPGridSearchCV(bayes(), {"n_bins": [4, 8]}, accountant=BudgetAccountant(50.0)).fit(X, Y)
    with pytest.warns(BudgetWarning, match="no budget records this fit"):
        search.best_estimator_.fit(X, Y)
    # A search that no budget records is for public records.
    DPGridSearchCV(bayes(), {"n_bins": [4, 8]}).fit(X, Y).best_estimator_.fit(X, Y)


def test_exact_scores_of_charged_fits_warn():
    rows = len(X)
    for score in (
        lambda model: cross_val_score(model, X[:rows], Y[:rows], cv=2),
        lambda model: cross_val_predict(model, X, Y, cv=2),
        lambda model: GridSearchCV(model, {"n_bins": [4, 8]}, cv=2).fit(X, Y),
    ):
        model = charged(bayes())
        for _ in range(2):
            # Each call warns once.
            with pytest.warns(PrivacyAssumptionWarning, match="without noise, .*private_cross_val_score") as caught:
                score(model)
            assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cross_val_score(bayes(), X, Y, cv=2)
        open_ended = BudgetAccountant(np.inf)
        cross_val_score(charged(bayes(), epsilon=np.inf).set_params(accountant=open_ended), X, Y, cv=2)
        private_cross_val_score(bayes(), X, Y, cv=2, accountant=BudgetAccountant(9.0))
        model = charged(bayes()).fit(X, Y)
        model.score(X, Y)


def test_steps_that_learn_before_a_charged_fit_warn():
    with pytest.warns(PrivacyAssumptionWarning, match="does not cover StandardScaler.*make_private_pipeline"):
        make_pipeline(StandardScaler(), charged(bayes())).fit(X, Y)
    columns = ColumnTransformer([("scaled", StandardScaler(), [0])], remainder="passthrough")
    with pytest.warns(PrivacyAssumptionWarning, match="does not cover StandardScaler"):
        make_pipeline(columns, charged(bayes())).fit(X, Y)
    one_hot = OneHotEncoder(sparse_output=False)
    for step in (one_hot, OrdinalEncoder(), SimpleImputer(), KNNImputer(), SelectKBest(k=1), Nystroem(n_components=9)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            make_pipeline(step, charged(bayes())).fit(np.round(X), Y)
        assert any(f"does not cover {type(step).__name__}," in str(one.message) for one in caught), step
    public = FrozenEstimator(StandardScaler().fit(rng.normal(size=(9, 2))))
    learners = make_pipeline(StandardScaler(), LogisticRegression())
    table = HistogramClassifier(learners, bounds=(-3, 3), classes=["no", "yes"])
    for steps in (
        (StandardScaler(), bayes()),
        (BoundsScaler(bounds=(-3, 3)), charged(bayes())),
        (public, charged(bayes())),
        (SimpleImputer(strategy="constant", keep_empty_features=True), charged(bayes())),
        (PolynomialFeatures(1, include_bias=False), charged(bayes())),
        (BoundsScaler(bounds=(-3, 3)), charged(table)),
    ):
        make_pipeline(*steps).fit(X, Y)
    with pytest.warns(PrivacyAssumptionWarning, match="make_private_pipeline refuses such steps"):
        allocate(make_pipeline(StandardScaler(), bayes()), epsilon=1.0)


def test_a_score_in_a_card_is_one_line():
    from skdp.inspection import model_card

    model = DPAdditiveClassifier(schema=TABLE, random_state=0).fit(TABLE.sample(500))
    score = private_score(model, TABLE.sample(500, seed=1), metric="roc_auc", epsilon=0.5)
    (line,) = [line for line in model_card(model, scores={"AUC": score}).splitlines() if line.startswith("- AUC")]
    assert "95 % interval from" in line
    assert "released with epsilon=0.5 and delta=0" in line


def test_statistics_say_what_to_pass():
    """Public edges of a histogram are bounds. Categories are listed, with the one that is nearly given."""
    found = stats.histogram([1.0, 15.0, 30.0] * 500, bins=[0, 10, 20], epsilon=1.0, random_state=0)
    assert abs(found.value - [500, 1000]).max() < 50
    with pytest.raises(ValueError, match=r"numbers or one per column, .* which declares them$"):
        stats.histogram([1.0])
    table, schema = {"job": ["clerk", "nurse"]}, {"job": ["clerk", "nurse"]}
    with pytest.raises(ValueError, match=r"'clerk', 'nurse'\. Is it a misspelling of 'clerk'\?$"):
        stats.proportion(table, "Clerk", schema=schema)
    # Columns that are passed by mistake are not shown.
    for wrong in (
        lambda: stats.proportion(table, ["Alice"] * 2, schema=schema),
        lambda: stats.group_by({**table, "h": [1.0, 2.0]}, "job", ["Alice"] * 2, schema={**schema, "h": (0, 1)}),
    ):
        with pytest.raises(ValueError, match=r"must be (a category|among)") as caught:
            wrong()
        assert "Alice" not in str(caught.value)
    with pytest.raises(ValueError, match=r"cannot be read as numbers\. Convert it, and dates"):
        stats.mean(["1.1.1993"], bounds=(0, 1))
    model = FunctionalMechLinReg(bounds=(0, 1), bounds_y=(0, 1), random_state=0).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"cannot be read as numbers\. Convert it, and dates"):
        private_score(model, X, ["1499 $"] * len(X), metric="neg_mean_absolute_error", bounds_y=(0, 1))
    with pytest.raises(ValueError, match="one per target"):
        FunctionalMechLinReg(bounds=(0, 1)).fit(X, X[:, 0])


def test_refusals_say_that_nothing_was_charged():
    """Errors of calls with an accountant end with a sentence about the charge."""
    accountant, schema = BudgetAccountant(1.0, 1e-6), {"age": (18, 90), "job": ["clerk", "nurse"]}
    table = {"age": [20.0, 30.0], "job": ["clerk", "nurse"]}
    model = objective(random_state=0).fit(X, Y)
    refused = [
        lambda: objective(accountant=accountant).fit(X, labels=Y),
        lambda: objective(accountant=accountant).fit(np.array([["a", "b"]]), Y[:1]),
        lambda: DPNaiveBayes(schema=TABLE, accountant=accountant).fit({"Age": [20.0], "work": ["a"]}, ["no"]),
        lambda: stats.group_by(table, "job", "avg", schema=schema, accountant=accountant),
        lambda: stats.mean(table, columns="Age", schema=schema, accountant=accountant),
        lambda: private_score(model, X[:, :1], Y, accountant=accountant),
        lambda: private_score(model, X, Y, metric="auc", accountant=accountant),
        lambda: private_score(model, X, Y, scoring="accuracy", accountant=accountant),
        lambda: private_cross_val_score(objective(), X, Y[:-1], accountant=accountant),
        lambda: make_private_pipeline(
            OneHotEncoder(categories=[[0]], handle_unknown="ignore"), objective(), accountant=accountant
        ).fit(X, Y),
    ]
    for call in refused:
        with pytest.raises(
            (TypeError, ValueError), match=r"([^.?]\.|\?) (Nothing was|This fit of \w+ was not) charged$"
        ):
            call()
    assert len(accountant) == 0


def test_errors_after_a_charge_do_not_deny_it(monkeypatch):
    def fail(*args, **kwargs):
        raise ValueError("it failed late")

    accountant = BudgetAccountant(2.0, composition="basic")
    monkeypatch.setattr(ObjPertLogReg, "_release", fail)
    with pytest.raises(ValueError, match=r"^it failed late$"):
        objective(epsilon=0.1, accountant=accountant).fit(X, Y)
    monkeypatch.setattr(stats._descriptive, "exact_sum", fail)
    with pytest.raises(ValueError, match=r"^it failed late$"):
        stats.sum(X[:, 0], bounds=(-1, 1), epsilon=0.1, accountant=accountant)
    assert len(accountant) == 2

    # In a pipeline, the charge of an earlier step counts, also of a step that another thread has fitted.
    def fit_late(n_jobs):
        parts = [(str(j), DPPCA(1, data_norm=3.0), [j]) for j in range(2)]
        columns = ColumnTransformer(parts, n_jobs=n_jobs, sparse_threshold=0)
        last = OneHotEncoder(categories=[[0]], handle_unknown="ignore"), objective()
        make_private_pipeline(columns, *last, epsilon=0.2, accountant=accountant).fit(X, Y)

    with parallel_backend("threading"):
        for n_jobs in (None, 2):
            n_before = len(accountant)
            with pytest.raises(ValueError, match="Shape mismatch") as caught:
                fit_late(n_jobs)
            assert len(accountant) == n_before + 2
            assert "charged" not in str(caught.value)
    # A later refusal is one before the charge again.
    with pytest.raises(ValueError, match=r"Nothing was charged$"):
        stats.sum(X[:, 0], bounds=(1, -1), epsilon=0.1, accountant=accountant)


def test_near_misses_of_names_are_found_in_any_case():
    with pytest.raises(ValueError, match=r"Is 'age' a misspelling of 'AGE'\? Rename the columns of X"):
        DPNaiveBayes(schema=TABLE).fit({"AGE": [20.0], "work": ["a"]}, ["no"])
    with pytest.raises(ValueError, match=r"Is it a misspelling of 'age'\?"):
        stats.mean({"age": [20.0]}, columns="AGE", schema={"age": (18, 90)})
    with pytest.raises(TypeError, match=r"a tuple \(low, high\) of numbers or a list of categories"):
        Schema({"sex": ("male", "female")})
    with pytest.raises(ValueError, match=r"expecting 2 features as input: .*encoder\.parameters\(estimator\)"):
        DPNaiveBayes(schema=TABLE).fit(np.zeros((3, 5)), ["no"] * 3)


NUMBERS = Schema({"age": (18, 90), "town": ["a", "b"]}, target=["no", "yes"])
PEOPLE = pd.DataFrame({"age": rng.uniform(18, 90, 4000), "town": rng.choice(["a", "b"], 4000)})
PAID = rng.choice(["no", "yes"], 4000)
OTHER_TOWNS = PEOPLE.assign(town="c")
WITHOUT = "No budget was charged, because there is no accountant"


def said(act):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        act()
    return {str(each.message) for each in heard if not issubclass(each.category, BudgetWarning)}


@pytest.mark.parametrize("accountant", [None, BudgetAccountant(1e6)], ids=["no accountant", "accountant"])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_messages_after_a_release_say_whether_an_accountant_was_charged(accountant, n_jobs):
    bayes = DPNaiveBayes(schema=NUMBERS, epsilon=50.0)
    additive = DPAdditiveRegressor(schema=Schema({"age": (18, 90)}, target=(0, 1)), epsilon=50.0)
    charged = {"epsilon": 50.0, "accountant": accountant}
    model = clone(bayes).fit(PEOPLE, PAID)
    acts = [
        lambda: DPGridSearchCV(bayes, {"n_bins": [4, 8]}, n_jobs=n_jobs, **charged).fit(OTHER_TOWNS, PAID),
        lambda: private_cross_val_score(bayes, OTHER_TOWNS, PAID, n_jobs=n_jobs, **charged),
    ]
    if n_jobs is None:
        acts += [
            lambda: clone(bayes).set_params(**charged).fit(OTHER_TOWNS, PAID),
            lambda: clone(bayes).set_params(**charged).fit(PEOPLE, np.char.upper(PAID)),
            lambda: private_score(model, PEOPLE, np.char.upper(PAID), **charged),
            lambda: clone(additive).set_params(**charged).fit(PEOPLE[["age"]], PEOPLE["age"].to_numpy()),
            lambda: stats.describe(OTHER_TOWNS, schema=NUMBERS, **charged),
            lambda: make_private_pipeline(TableEncoder(NUMBERS), objective(), **charged).fit(OTHER_TOWNS, PAID),
        ]
    for act in acts:
        messages = said(act)
        assert messages
        for message in messages:
            assert message.endswith(WITHOUT if accountant is None else "The budget was charged")


@pytest.mark.parametrize("target", [["no", "yes"], {"paid": ["no", "yes"]}], ids=["y", "a column"])
def test_a_table_with_other_columns_is_told_how_to_choose(target):
    model = DPNaiveBayes(schema=Schema(NUMBERS, target=target))
    frame = PEOPLE.assign(paid=PAID, further=1)
    schema, further = model.schema, frame.drop(columns="paid") if isinstance(target, list) else frame
    y = PAID if isinstance(target, list) else None
    right = schema if y is not None else [*schema, "paid"]
    shown = r"X\[list\(schema\)\]" if y is not None else r"X\[\[\*schema, 'paid'\]\]"
    for act in (lambda: model.fit(further, y), lambda: model.fit(frame[list(right)], y).predict(further)):
        with pytest.raises(ValueError, match=f"does not declare: 'further'. Pass {shown} if X is a DataFrame"):
            act()
    model.predict(frame[list(right)])


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (DPNaiveBayes(schema=NUMBERS), pd.Series(PAID, dtype=object).where(PEOPLE["age"] < 80)),
        (DPNaiveBayes(schema=Schema(NUMBERS, [0, 1])), pd.Series(PAID == "yes", dtype=float).where(PEOPLE["age"] < 80)),
        (DPNaiveBayes(schema=Schema(NUMBERS), classes=[0, 1]), pd.Series(1.0, PEOPLE.index).where(PEOPLE["age"] < 80)),
        (DPAdditiveRegressor(schema=Schema(NUMBERS, (0, 1))), pd.Series(0.5, PEOPLE.index).where(PEOPLE["age"] < 80)),
    ],
    ids=["text", "numbers", "classes", "regression"],
)
def test_rows_without_a_target_are_dropped_as_the_message_says(model, y):
    with pytest.raises(
        ValueError, match=r"Drop the rows without y, in pandas by X\[y.notna\(\)\] and y\[y.notna"
    ) as error:
        model.fit(PEOPLE, y)
    assert "constant" not in str(error.value)
    model.fit(PEOPLE[y.notna()], y[y.notna()])
