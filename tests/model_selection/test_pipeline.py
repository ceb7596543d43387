"""A private pipeline divides its budget at each fit, and refuses steps that learn without paying."""

import math

import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from skdp import (
    DPPCA,
    BudgetAccountant,
    DPGridSearchCV,
    DPKMeans,
    DPRandomTree,
    ObjPertLogReg,
    allocate,
    make_private_pipeline,
)
from skdp.exceptions import BudgetError
from skdp.model_selection import PrivatePipeline
from skdp.preprocessing import NormClipper
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
    with pytest.raises(ValueError, match=rf"not (private|exact).*{type(step).__name__.lower()}.*Nothing was charged"):
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
