"""What remains of a budget for a certain fit is admitted, a little more is refused, and refusals say how much it is."""

import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdp import BudgetAccountant, DPAdditiveClassifier, DPRandomTree, ObjPertLogReg, OutputPertLogReg, allocate
from skdp.accounting import Budget, PrivacyCost
from skdp.exceptions import BudgetError, BudgetWarning
from skdp.model_selection import DPRandomizedSearchCV
from tests.estimators import ESTIMATORS, LOCAL, columns_up_to, declared, name_of
from tests.linear_model.data import blobs

DELTA = 1e-6


def model(**parameters):
    return ObjPertLogReg(**{"epsilon": 1.0, "delta": DELTA, "data_norm": 3.0, "classes": [0, 1], **parameters})


def used(composition="rdp"):
    """A budget of (3, 1e-6) of which some is gone."""
    accountant = BudgetAccountant(3.0, DELTA, composition=composition)
    accountant.charge(model(epsilon=0.5, delta=DELTA / 4).privacy_plan(n_features=2).cost)
    return accountant


def plan_at(estimator, epsilon, n_features):
    return clone(estimator).set_params(epsilon=epsilon).privacy_plan(n_features=n_features)


@pytest.mark.parametrize("estimator", [declared(e) for e in ESTIMATORS] + LOCAL[:2], ids=name_of)
def test_what_remains_for_an_estimator_is_admitted_and_hardly_more(estimator):
    if getattr(estimator, "delta", 0.0) > 0:
        estimator = clone(estimator).set_params(delta=DELTA / 4)
    n_features = columns_up_to(estimator, 5)
    # Calibration to samples takes half a second each time.
    slow = getattr(estimator, "batch_size", None) == 0.5 or getattr(estimator, "strategy", None) == "holdout"
    for composition in ("rdp",) if slow else ("basic", "rdp"):
        accountant = used(composition)
        left = accountant.remaining(like=estimator, n_features=n_features)
        assert left.delta == getattr(estimator, "delta", 0.0)
        assert left.epsilon > 0.1
        with pytest.raises(BudgetError):
            accountant.charge(plan_at(estimator, 1.001 * left.epsilon, n_features).cost)
        accountant.charge(plan_at(estimator, left.epsilon, n_features).cost)
    if slow:
        return
    three = used("rdp")
    third = three.remaining(3, like=estimator, n_features=n_features).epsilon
    assert 0 < third < left.epsilon
    for _ in range(3):
        three.charge(plan_at(estimator, third, n_features).cost)
    with pytest.raises(BudgetError):
        three.charge(plan_at(estimator, 0.1 * third, n_features).cost)


def test_the_rest_can_be_spent_on_the_recommended_classifier():
    X, y = blobs()
    accountant = BudgetAccountant(3.0, DELTA)
    model(accountant=accountant).fit(X, y)
    rest = accountant.remaining(like=model())
    assert rest.epsilon == pytest.approx(accountant.remaining().epsilon, rel=2e-4)
    model(epsilon=rest.epsilon, accountant=accountant).fit(X, y)
    assert accountant.remaining(like=model()).epsilon < 0.05


@pytest.mark.parametrize("composition", ["gdp", "rdp"])
@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize(
    "recommended",
    [model(), model(C=0.01), DPAdditiveClassifier(categories={0: 2, 1: 3}, delta=DELTA, classes=[0, 1])],
    ids=["ObjPertLogReg", "small C", "DPAdditiveClassifier"],
)
def test_what_remains_for_gaussian_noise_can_be_spent_on_what_is_recommended(recommended, k, composition):
    accountant = used(composition)
    left = accountant.remaining(k)
    estimator = clone(recommended).set_params(delta=left.delta)
    for _ in range(k):
        accountant.charge(plan_at(estimator, left.epsilon * (1 - 2e-4), 2).cost)
    with pytest.raises(BudgetError):
        accountant.charge(plan_at(estimator, 0.05 * left.epsilon, 2).cost)


@pytest.mark.parametrize("composition", ["auto", "basic", "gdp", "rdp"])
def test_an_empty_budget_is_there_for_one_fit_by_its_own_rule(composition):
    accountant = BudgetAccountant(1.0, DELTA, composition=composition)
    left = accountant.remaining(like=model())
    assert accountant.composition == composition
    assert (left.epsilon == 1.0) == (composition in ("auto", "basic"))
    model(epsilon=left.epsilon, accountant=accountant).fit(*blobs())


def test_a_smaller_delta_may_leave_more_than_the_ceiling():
    accountant = BudgetAccountant(1.0, 1e-4, composition="gdp")
    estimator = OutputPertLogReg(delta=1e-9, data_norm=1.0, classes=[0, 1])
    with pytest.warns(BudgetWarning, match="above the ceiling of 1"):
        left = accountant.remaining(like=estimator).epsilon
    assert 1.2 < left < 2
    accountant.charge(plan_at(estimator, left, 2).cost)


def test_simple_answers_are_exact():
    accountant = BudgetAccountant(1.0)
    accountant.spend(0.25)
    assert accountant.remaining(like=model(delta=0.0)) == accountant.remaining() == Budget(0.75, 0.0)
    assert accountant.remaining(3, like=model(delta=0.0)) == Budget(0.25, 0.0)
    accountant.spend(0.75)
    assert accountant.remaining(like=model(delta=0.0)) == Budget(0.0, 0.0)
    assert BudgetAccountant(float("inf")).remaining(like=model(delta=0.0)).epsilon == float("inf")


def test_a_fit_with_delta_never_fits_into_a_budget_without():
    assert BudgetAccountant(1.0).remaining(like=model()) == Budget(0.0, DELTA)


def allocated(pipeline, composition, n_fits):
    """Spend all that remains for a pipeline, and return what then remains for it."""
    accountant = BudgetAccountant(3.0, DELTA, composition=composition)
    accountant.charge(model(delta=DELTA / 4).privacy_plan(n_features=2).cost)
    rest = accountant.remaining(n_fits, like=pipeline)
    assert rest.epsilon > 0.2
    allocate(pipeline, *rest, accountant=accountant)
    for _ in range(n_fits):
        pipeline.fit(*blobs())
    return accountant.remaining(like=pipeline).epsilon


@pytest.mark.parametrize("composition", ["auto", "basic", "gdp", "rdp"])
@pytest.mark.parametrize("n_fits", [1, 2])
def test_the_rest_of_a_budget_can_be_allocated(composition, n_fits):
    assert allocated(make_pipeline(Normalizer(), model()), composition, n_fits) < 0.1


@pytest.mark.filterwarnings("ignore:not private, and a function of the data")
def test_more_than_the_rest_is_not_allocated():
    accountant = used()
    private = OutputPertLogReg(data_norm=1.0, classes=[0, 1])
    pair = VotingClassifier([("a", private), ("b", clone(private))])
    rest = accountant.remaining(like=pair)
    with pytest.raises(BudgetError):
        allocate(pair, 1.001 * rest.epsilon, rest.delta, accountant=accountant)
    allocate(pair, *rest, accountant=accountant)
    assert accountant.remaining(like=pair) == rest


def test_a_plan_leaves_nothing_but_its_entries():
    accountant = BudgetAccountant(1.0, DELTA, plan=[model(epsilon=0.5).privacy_plan(n_features=2)])
    assert accountant.remaining(like=model()) == Budget(0.0, 0.0)


def test_a_part_has_a_rest_of_its_own():
    accountant = BudgetAccountant(1.0)
    accountant.spend(0.25)
    with accountant.parallel(by=["a", "b"], parts=["a", "b"]) as parts:
        parts["a"].accountant.spend(0.5)
        assert parts["a"].accountant.remaining(like=model(delta=0.0)).epsilon == 0.25
        assert parts["b"].accountant.remaining(like=model(delta=0.0)).epsilon == 0.75


@pytest.mark.parametrize(
    "unknown",
    [
        model(classes=None),
        DPRandomTree(bounds=(0, 1), delta=DELTA, classes=[0, 1], thresholds="quantile"),
        DPRandomizedSearchCV(model(), {"C": np.linspace}, epsilon=1.0, delta=DELTA),
    ],
    ids=lambda e: type(e).__name__,
)
def test_what_is_not_known_is_asked_for(unknown):
    with pytest.raises(ValueError, match="n_features"):
        used().remaining(like=unknown)


@pytest.mark.parametrize("stranger", [LogisticRegression(), make_pipeline(Normalizer(), LogisticRegression())])
def test_models_without_privacy_have_no_rest(stranger):
    with pytest.raises(ValueError, match="no private step"):
        used().remaining(like=stranger)


def test_a_fitted_estimator_knows_its_columns():
    tree = DPRandomTree(bounds=(-4, 4), delta=DELTA, classes=[0, 1], thresholds="quantile")
    accountant = used()
    expected = accountant.remaining(like=tree, n_features=2)
    assert accountant.remaining(like=tree.fit(*blobs(n_features=2))) == expected


# ---------------------------------------------------------------- refusals


def said(error):
    return float(re.search(r"This fit is admitted with epsilon=(\S+) or less", str(error.value)).group(1))


@pytest.mark.parametrize(
    "estimator",
    [
        model(),
        model(delta=0.0),
        DPRandomTree(bounds=(-4, 4), delta=DELTA, classes=[0, 1], thresholds="quantile"),
    ],
    ids=lambda e: f"{type(e).__name__}-{e.delta:g}",
)
def test_a_refusal_says_with_how_much_this_fit_is_admitted(estimator):
    X, y = blobs()
    accountant = used()
    asked = clone(estimator).set_params(epsilon=3.0, accountant=accountant)
    with pytest.raises(BudgetError) as refused:
        make_pipeline(Normalizer(), asked).fit(X, y)
    largest = said(refused)
    assert not hasattr(asked, "n_features_in_")
    with pytest.raises(BudgetError):
        asked.set_params(epsilon=1.001 * largest).fit(X, y)
    asked.set_params(epsilon=0.99999 * largest).fit(X, y)


def test_a_refusal_for_another_reason_speaks_of_no_epsilon():
    for accountant in (
        BudgetAccountant(3.0, DELTA, unit="group"),
        BudgetAccountant(float("inf"), unit="group"),
        BudgetAccountant(3.0, DELTA, plan=[PrivacyCost.of_pair(0.1, 0.0)]),
    ):
        with pytest.raises(BudgetError) as refused:
            model(accountant=accountant).fit(*blobs())
        assert "This fit is admitted" not in str(refused.value)


def test_nothing_is_said_where_nothing_remains():
    accountant = BudgetAccountant(1.0)
    accountant.spend(1.0)
    with pytest.raises(BudgetError) as refused:
        model(delta=0.0, accountant=accountant).fit(*blobs())
    assert "This fit is admitted" not in str(refused.value)
