"""A private pipeline divides its budget at each fit, and refuses steps that learn without paying."""

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.ensemble import VotingClassifier
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)

from skdp import (
    DPPCA,
    BudgetAccountant,
    DPGridSearchCV,
    DPKMeans,
    DPNaiveBayes,
    DPRandomTree,
    LocalLaplace,
    ObjPertLogReg,
    Schema,
    TableEncoder,
    allocate,
    make_private_pipeline,
    private_score,
)
from skdp.accounting import Relation, gaussian_mu
from skdp.exceptions import BudgetError, PrivacyAssumptionWarning, SchemaMismatchWarning, SeededNoiseWarning
from skdp.inspection import model_card
from skdp.model_selection import PrivatePipeline, private_cross_val_score
from skdp.preprocessing import BoundsScaler, NormClipper
from tests.linear_model.data import blobs

X, Y = blobs(2, 400, 4)


def classifier():
    return ObjPertLogReg(data_norm=3.0, classes=[0, 1])


def pair(**parameters):
    return make_private_pipeline(DPPCA(2, data_norm=3.0), classifier(), **{"epsilon": 2.0, "delta": 1e-6, **parameters})


def test_the_budget_is_that_of_allocate():
    model = pair(weights={"dppca": 1, "objpertlogreg": 3}).fit(X, Y)
    plain = Pipeline(clone(model).steps)
    expected = allocate(plain, 2.0, 1e-6, {"dppca": 1, "objpertlogreg": 3})
    assert dict(model.allocation_) == dict(expected)
    assert model["dppca"].privacy_.epsilon == expected["dppca"].epsilon
    assert model.predict(X).shape == (400,)


def test_each_fit_divides_anew():
    budget = BudgetAccountant(5.0, 1e-5)
    model = pair(accountant=budget).fit(X, Y)
    model.set_params(epsilon=1.0).fit(X, Y)
    assert model.allocation_.total.epsilon == 1.0
    assert len(budget.records) == 4
    spent = budget.total().epsilon
    with pytest.raises(BudgetError):
        model.set_params(epsilon=50.0).fit(X, Y)
    assert len(budget.records) == 4
    assert math.isclose(budget.total().epsilon, spent)


@pytest.mark.parametrize("step", [StandardScaler(), PCA(2), Normalizer()])
def test_what_learns_without_paying_is_refused_at_each_fit(step):
    budget = BudgetAccountant(5.0, 1e-5)
    model = make_private_pipeline(step, DPRandomTree(bounds=(-1, 1), classes=[0, 1]), accountant=budget)
    with pytest.raises(ValueError, match=r"not (private|exact).*Nothing was charged"):
        model.fit(X, Y)
    assert not budget.records
    assert not hasattr(model[-1], "privacy_")


def test_every_way_to_fit_refuses():
    model = make_private_pipeline(StandardScaler(), DPKMeans(2, bounds=(-3, 3)))
    for fit in (model.fit, model.fit_predict, model.fit_transform):
        with pytest.raises(ValueError, match="Nothing was charged"):
            fit(X)


def test_steps_that_learn_nothing_are_taken():
    model = make_private_pipeline(FunctionTransformer(), NormClipper(2.0), classifier()).fit(X, Y)
    assert model.allocation_["objpertlogreg"].epsilon == 1.0
    with pytest.raises(ValueError, match="no private step"):
        make_private_pipeline(NormClipper(2.0)).fit(X)


KNOTS = np.linspace(-4, 4, 3)[:, None].repeat(4, axis=1)


@pytest.mark.parametrize(
    ("step", "learning"),
    [
        (PolynomialFeatures(2), None),
        (SplineTransformer(knots=KNOTS, degree=1), {"knots": "quantile"}),
        (MissingIndicator(features="all"), {"features": "missing-only"}),
        (SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True), {"strategy": "mean"}),
    ],
)
def test_pipelines_and_allocate_take_the_same_steps_that_learn_nothing(step, learning):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        allocate(make_pipeline(clone(step), classifier()), 1.0)
        make_private_pipeline(clone(step), NormClipper(3.0), classifier()).fit(X, Y)
    # No bit of a row depends on the other rows.
    fitted = clone(step).fit(X)
    alone = np.vstack([fitted.transform(X[row : row + 1]) for row in range(len(X))])
    assert (fitted.transform(X) == alone).all()
    if learning is not None:
        step = clone(step).set_params(**learning)
        with pytest.warns(PrivacyAssumptionWarning, match="not private"):
            allocate(make_pipeline(clone(step), classifier()), 1.0)
        with pytest.raises(ValueError, match="Nothing was charged"):
            make_private_pipeline(step, classifier()).fit(X, Y)
    # A search needs steps that accept every row.
    with pytest.raises(ValueError, match="is not private"):
        DPGridSearchCV(make_pipeline(step, classifier()), {}).fit(X, Y)


@pytest.mark.skipif(
    "handle_missing" not in SplineTransformer().get_params(), reason="needs scikit-learn with handle_missing"
)
def test_splines_of_missing_numbers_in_sparse_rows_are_refused():
    step = SplineTransformer(knots=KNOTS, degree=1, extrapolation="continue", handle_missing="zeros")
    missing = np.where(np.arange(len(X))[:, None] % 2 == 0, np.nan, X)
    make_private_pipeline(clone(step), NormClipper(3.0), classifier()).fit(missing, Y)
    step.set_params(sparse_output=True)
    with pytest.warns(PrivacyAssumptionWarning, match="sparse_output=False"):
        allocate(make_pipeline(clone(step), classifier()), 1.0)
    with pytest.raises(ValueError, match=r"is not private.*Nothing was charged"):
        make_private_pipeline(step, NormClipper(3.0), classifier()).fit(missing, Y)


@pytest.mark.parametrize("options", [{"handle_unknown": "warn"}, {"handle_unknown": "ignore", "drop": "first"}])
def test_encoders_that_warn_of_other_categories_are_refused(options):
    encoder = OneHotEncoder(categories=[["a", "b"]], sparse_output=False, **options)
    # One record decides whether there is a warning.
    with pytest.warns(UserWarning, match="unknown categories"):
        encoder.fit([["a"]]).transform([["a"], ["c"]])
    with pytest.raises(ValueError, match=r"warns of them.*Nothing was charged"):
        make_private_pipeline(encoder, classifier()).fit([["a"], ["c"]], [0, 1])


def test_products_of_matrices_are_not_exact_row_by_row():
    step = RBFSampler(gamma=1.0)
    allocate(make_pipeline(step, classifier()), 1.0)
    with pytest.raises(ValueError, match=r"is not private.*SplineTransformer"):
        make_private_pipeline(step, classifier()).fit(X, Y)


def test_it_is_a_pipeline():
    model = pair()
    assert isinstance(model, PrivatePipeline)
    assert clone(model).get_params()["weights"] is None
    assert type(model[:1]) is Pipeline
    assert model.named_steps["dppca"] is model[0]
    scaled = make_private_pipeline(DPPCA(2, data_norm=3.0))
    assert scaled.fit_transform(X).shape == (400, 2)
    labels = make_private_pipeline(NormClipper(3.0), DPKMeans(2, bounds=(-3, 3))).fit_predict(X)
    assert set(labels) <= {0, 1}


WEIGHTS = {"dppca": 1, "objpertlogreg": 3}


def searched(model, **parameters):
    return DPGridSearchCV(model, {"objpertlogreg__C": [0.1, 1.0]}, **{"random_state": 0, **parameters})


@pytest.mark.parametrize("budget", [{"epsilon": 4.0, "delta": 1e-6}, {"epsilon": 4.0}])
def test_a_search_divides_its_budget_by_the_weights(budget):
    search = searched(pair(weights=WEIGHTS), strategy="holdout", **budget).fit(X, Y)
    plain = searched(Pipeline(pair().steps), strategy="holdout", **budget).fit(X, Y)
    best = search.best_estimator_
    assert isinstance(best, PrivatePipeline)
    assert best.predict(X).shape == (400,)
    assert search.privacy_.epsilon == plain.privacy_.epsilon == 4.0
    # The guarantee of the best model is proved anew from its events.
    one, three = best.privacy_.epsilon, best[-1].epsilon
    assert three < one <= search.epsilon
    assert best.epsilon == best.allocation_.total.epsilon == one
    assert (best[0].epsilon, best[1].epsilon) == tuple(share.epsilon for share in best.allocation_.values())
    assert search.privacy_plan(n_features=4) == search.privacy_
    if budget.get("delta"):
        squares = [gaussian_mu(step.epsilon, step.delta) ** 2 for step in (best[0], best[1])]
        assert math.isclose(squares[1] / squares[0], 3, rel_tol=1e-4)
    else:
        assert math.isclose(best[1].epsilon / best[0].epsilon, 3, rel_tol=1e-9)
        assert math.isclose(one, best[0].epsilon + best[1].epsilon)
    # Without weights, the steps of a plain pipeline have equal parts.
    assert plain.best_estimator_[0].epsilon == plain.best_estimator_[1].epsilon


def test_a_search_without_weights_releases_the_same_as_in_a_plain_pipeline():
    private, plain = (searched(model, epsilon=4.0, delta=1e-6).fit(X, Y) for model in (pair(), Pipeline(pair().steps)))
    assert private.best_params_ == plain.best_params_
    assert (private.best_estimator_[-1].coef_ == plain.best_estimator_[-1].coef_).all()


def test_a_search_charges_its_own_accountant_once():
    budget = BudgetAccountant(5.0, 1e-5)
    with pytest.warns(SeededNoiseWarning):
        search = searched(pair(), epsilon=4.0, delta=1e-6, accountant=budget).fit(X, Y)
    assert len(budget.records) == 1
    assert search.best_estimator_.accountant is None
    with pytest.raises(ValueError, match="PrivatePipeline has an accountant; pass it to the search"):
        searched(pair(accountant=budget)).fit(X, Y)
    # Weights are public parameters, which a search may set, and budgets are not.
    found = DPGridSearchCV(pair(), {"weights": [WEIGHTS]}, epsilon=4.0, random_state=0).fit(X, Y)
    assert found.best_estimator_.weights == WEIGHTS
    assert found.best_estimator_[1].epsilon == 3.0
    with pytest.raises(ValueError, match="cannot set 'epsilon'"):
        DPGridSearchCV(pair(), {"epsilon": [1.0]}).fit(X, Y)
    assert private_cross_val_score(pair(), X, Y, cv=2, epsilon=4.0, random_state=0).shape == (2,)


@pytest.mark.parametrize("options", [{"strategy": "repeat"}, {"refit": False}])
def test_searches_without_a_refit_and_without_noise(options):
    search = searched(pair(), epsilon=math.inf, **options).fit(X, Y)
    assert search.best_estimator_.privacy_.epsilon == math.inf


def test_an_inner_private_pipeline_is_not_searched():
    nested = make_private_pipeline(NormClipper(3.0), pair())
    with pytest.raises(ValueError, match="a search cannot take PrivatePipeline"):
        DPGridSearchCV(nested, {}, epsilon=4.0).fit(X, Y)


@pytest.mark.parametrize("budget", [{"epsilon": 2.0, "delta": 1e-6}, {"epsilon": 2.0, "delta": 0.0}])
def test_the_guarantee_is_the_composition_of_the_steps(budget):
    model = pair(weights=WEIGHTS, **budget)
    assert not hasattr(model, "privacy_")
    model.fit(X, Y)
    first, second = (step.privacy_ for step in (model[0], model[1]))
    found = model.privacy_
    assert (found.epsilon, found.delta) == (2.0, budget["delta"])
    assert found.events == (*first.events, *second.events)
    assert found.unit == "record"
    assert found.relation is first.relation
    assert [release.label for release in found.releases] == [
        *(f"dppca: {release.label}" for release in first.releases),
        *(f"objpertlogreg: {release.label}" for release in second.releases),
    ]
    # The stated pair holds for the events, by an accountant that knows nothing of the division.
    budget_of_two = BudgetAccountant(2.0, budget["delta"])
    budget_of_two.charge(found.cost)
    assert found.cost.events == found.events


def test_the_guarantee_of_groups_and_of_inner_steps():
    frame = pd.DataFrame({"a": [0.1, 0.9] * 40, "b": [0.2, 0.8] * 40, "who": list(range(40)) * 2})
    schema = Schema({"a": (0, 1)}, target=[0, 1], group="who", rows_per_group=2)
    by_group = make_private_pipeline(DPNaiveBayes(schema=schema)).fit(frame[["a", "who"]], [0, 1] * 40)
    assert by_group.privacy_.unit == "group"
    assert by_group.privacy_.limit == by_group[0].privacy_.limit == "of which at most 2 count"
    assert by_group.privacy_.rows == 2
    inner = ColumnTransformer(
        [("p", DPPCA(1, data_norm=2.0), [0, 1]), ("rest", NormClipper(3.0), [2, 3])], sparse_threshold=0
    )
    budget = BudgetAccountant(3.0, 1e-6)
    model = make_private_pipeline(inner, make_private_pipeline(classifier()), epsilon=2.0, accountant=budget)
    model.fit(X, Y)
    starts = {release.label.split(": ")[0] for release in model.privacy_.releases}
    assert starts == {"columntransformer__p", "privatepipeline"}
    assert math.isclose(math.fsum(event.pure_epsilon() for event in model.privacy_.events), 2.0)
    assert len(budget.records) == 2
    assert b"BudgetAccountant" not in pickle.dumps(model.set_params(accountant=None))


def test_the_local_model_makes_it_a_guarantee_for_replaced_records():
    budget = BudgetAccountant(50.0, 1e-6)
    model = make_private_pipeline(LocalLaplace(bounds=(-1, 1)), classifier(), epsilon=4.0, accountant=budget).fit(X, Y)
    found = model.privacy_
    assert found.relation is Relation.REPLACE_RECORD
    assert math.isclose(found.epsilon, model[0].privacy_.epsilon + 2 * model[1].privacy_.epsilon)
    assert found.epsilon > 4.0
    # Each prediction randomises rows, and is charged.
    before = len(budget.records)
    model.predict(X[:2])
    assert len(budget.records) == before + 1


def test_a_fitted_pipeline_is_published_without_the_path_of_its_ledger(tmp_path):
    path = tmp_path / "budget-of-the-clinic.db"
    budget = BudgetAccountant(5.0, 1e-5, ledger=path)
    model = pair(accountant=budget).fit(X, Y)
    assert [step.accountant for step in (model[0], model[1])] == [None, None]
    assert model.accountant is budget
    # A fitted model with its accountant charges after it is loaded, as every estimator does.
    again = pickle.loads(pickle.dumps(model))
    again.fit(X, Y)
    assert len(budget.records) == 4
    published = pickle.dumps(model.set_params(accountant=None))
    assert b"budget-of-the-clinic" not in published
    assert (pickle.loads(published).predict(X) == model.predict(X)).all()
    assert "budget-of-the-clinic" not in model_card(model)


def test_a_refused_or_broken_fit_leaves_no_accountant_in_the_steps():
    budget = BudgetAccountant(2.5, 1e-5)
    model = pair(accountant=budget).fit(X, Y)
    stated, allocation = model.privacy_, model.allocation_
    with pytest.raises(BudgetError):
        model.fit(X, Y)
    assert model.privacy_ is stated
    assert model.allocation_ is allocation
    broken = pair(accountant=BudgetAccountant(5.0, 1e-5))
    with pytest.raises(ValueError, match=r"inconsistent|same number"):
        broken.fit(X, Y[:-1])
    assert [step.accountant for step in (broken[0], broken[1])] == [None, None]
    assert not hasattr(broken, "privacy_")


@pytest.mark.parametrize("composition", ["auto", "basic", "gdp", "rdp"])
def test_what_remains_for_a_pipeline_can_be_spent(composition):
    budget = BudgetAccountant(3.0, 1e-6, composition=composition)
    model = pair(delta=1e-7, accountant=budget, weights={"dppca": 1, "objpertlogreg": 2})
    model.set_params(epsilon=0.5).fit(X, Y)
    remaining = budget.remaining(like=model)
    assert remaining.epsilon > 1.0
    model.set_params(epsilon=remaining.epsilon, delta=remaining.delta).fit(X, Y)
    assert len(budget.records) == 4


class Centred(TransformerMixin, BaseEstimator):
    """Learns in a method that is not called fit."""

    def fit_transform(self, X, y=None):
        return X - X.mean(axis=0)

    def transform(self, X):
        return X


def selected(**parameters):
    return ColumnTransformer([("n", BoundsScaler((-1, 1)), make_column_selector(dtype_include="number"))], **parameters)


@pytest.mark.parametrize(
    "step",
    [
        selected(),
        selected(sparse_threshold=0),
        ColumnTransformer([("n", BoundsScaler((-1, 1)), lambda X: [int(X.sum() > 0)])], sparse_threshold=0),
        ColumnTransformer([("n", BoundsScaler((-1, 1)), [0])], sparse_threshold=0.3),
        Centred(),
        Pipeline([("a", Centred())]),
        type("Own", (FunctionTransformer,), {})(),
        type("Own", (OneHotEncoder,), {})(),
        OneHotEncoder(sparse_output=False),
        make_private_pipeline(StandardScaler(), DPPCA(2, data_norm=3.0)),
    ],
)
def test_steps_that_are_not_known_to_map_each_row_by_itself_are_refused(step):
    with pytest.raises(ValueError, match="Nothing was charged"):
        make_private_pipeline(step, classifier()).fit(X, Y)
    if isinstance(step, ColumnTransformer) and callable(step.transformers[0][2]):
        with pytest.warns(PrivacyAssumptionWarning, match="columns"):
            allocate(make_pipeline(step, classifier()), 1.0)
        with pytest.raises(ValueError, match=r"chooses columns by a function|makes sparse or dense"):
            DPGridSearchCV(make_pipeline(step, classifier()), {}).fit(X, Y)


def test_a_memory_is_refused():
    model = pair()
    model.memory = "here"
    with pytest.raises(ValueError, match="memory would keep private rows on disk"):
        model.fit(X, Y)


def test_randomisers_inside_are_seen():
    inner = make_private_pipeline(LocalLaplace(bounds=(-1, 1)), classifier())
    with pytest.raises(ValueError, match="CalibratedClassifierCV is not known"):
        allocate(CalibratedClassifierCV(inner, cv=3), 1.0)


GROUPED = Schema({"a": (0, 1)}, target=[0, 1], group="who", rows_per_group=2)


def test_units_of_steps_are_not_mixed():
    table = {"a": [0.1, 0.9] * 20, "who": [1, 2] * 20}
    mixed = make_private_pipeline(TableEncoder(GROUPED), classifier())
    with pytest.raises(ValueError, match="a step protects single records"):
        mixed.fit(table, [0, 1] * 20)
    searched = DPGridSearchCV(DPNaiveBayes(), {"alpha": [0.5, 1.0]}, schema=GROUPED)
    alone = DPNaiveBayes(schema=Schema({"a": (0, 1)}, target=[0, 1]))
    with pytest.raises(ValueError, match=r"would count rows, and .* groups of rows"):
        allocate(VotingClassifier([("a", searched), ("b", alone)]), 1.0)
    allocate(searched, 1.0, accountant=BudgetAccountant(3.0, unit="group"))
    by_group = make_private_pipeline(DPNaiveBayes(schema=GROUPED))
    allocate(by_group, 1.0, accountant=BudgetAccountant(3.0, unit="group"))


def test_scores_know_the_schema_inside_a_search():
    frame = pd.DataFrame({"a": [0.1, 0.9] * 20, "who": [1, 2] * 20})
    search = DPGridSearchCV(DPNaiveBayes(schema=GROUPED), {"alpha": [0.5, 1.0]}, random_state=0)
    search.fit(frame, [0, 1] * 20)
    assert private_score(search, frame, [0, 1] * 20).privacy_.unit == "group"


def test_declarations_that_do_not_fit_are_named_by_pipelines():
    """The noise is a few records. Probability that the test fails by chance: 1e-9."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"ward": rng.choice(["surgery", "medicine"], 3000), "age": rng.random(3000)})
    y = np.where(frame.age > 0.5, "yes", "no")
    schema = Schema({"ward": ["SURGERY", "MEDICINE"], "age": (0, 1)}, target={"ill": ["no", "yes"]})
    columns = Schema({"ward": ["SURGERY", "MEDICINE"], "age": (0, 1)})
    components = DPPCA(1, schema=columns, epsilon=60.0)
    bayes, descent = DPNaiveBayes(schema=schema, epsilon=60.0), ObjPertLogReg(data_norm=2.0, classes=["no", "yes"])
    for steps in (
        [bayes],
        ["passthrough", bayes],
        [components, descent],
        [FeatureUnion([("pca", components)]), descent],
    ):
        for model in (clone(make_pipeline(*steps)), clone(make_private_pipeline(*steps, epsilon=120.0))):
            with pytest.warns(SchemaMismatchWarning, match="in no category"):
                model.fit(frame, y)


def test_the_target_is_the_column_that_the_schema_of_the_first_step_names():
    schema = Schema({"age": (18, 90)}, target={"ill": ["no", "yes"]})
    table, encoder = schema.sample(500), TableEncoder(schema)
    steps = encoder, ObjPertLogReg(**encoder.parameters(ObjPertLogReg))
    pipeline = make_private_pipeline(*steps, epsilon=1.0, delta=1e-6)
    assert pipeline.fit(table).predict(table).shape == (500,)
    with pytest.raises(ValueError, match="lacks the column 'ill'"):
        make_private_pipeline(*steps, epsilon=1.0, delta=1e-6).fit(table[["age"]])
