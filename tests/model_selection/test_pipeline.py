"""A private pipeline divides its budget at each fit, and refuses steps that learn without paying."""

import math

import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.ensemble import VotingClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler

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
from skdp.exceptions import BudgetError, PrivacyAssumptionWarning
from skdp.model_selection import PrivatePipeline
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


def test_a_search_fits_it_as_one_private_step():
    search = DPGridSearchCV(pair(), {"objpertlogreg__C": [0.1, 1.0]}, epsilon=4.0, delta=1e-6, random_state=0)
    with pytest.raises(ValueError, match="PrivatePipeline"):
        search.fit(X, Y)


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
    with pytest.raises(ValueError, match=r"LocalLaplace|passes"):
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
    assert private_score(search, frame, [0, 1] * 20).privacy.unit == "group"
