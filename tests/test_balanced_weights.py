"""Balanced weights: the release of the counts, what a record moves in it, the division of the budget, and the weights.

False alarms: each test of noisy counts fails with probability 1e-9 at most. All else is certain.
"""

import math
from functools import partial
from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression

from skdp import (
    BudgetAccountant,
    DPGridSearchCV,
    DPNaiveBayes,
    DPRandomTree,
    DPSGDClassifier,
    ObjPertLogReg,
    Schema,
    allocate,
)
from skdp.accounting import GaussianEvent, SampledGaussianEvent, gaussian_mu
from skdp.ensemble import SampleAggregate
from skdp.exceptions import BudgetError
from skdp.inspection import CoefficientUncertaintyDisplay
from skdp.linear_model import ExpMechERM, OutputPertLogReg
from skdp.mechanisms import DiscreteLaplaceMechanism, NoNoise
from skdp.release import estimator as _estimator
from skdp.release import units
from skdp.release.units import COUNTS, LARGEST_RATIO, SHARE, balanced_weights
from tests.estimators import BY_GROUP, data_for, declared
from tests.neighbours import COMPARED, MOVED, inputs, records
from tests.test_weights import BY_LABEL, data_of, named

BALANCED = [estimator for estimator in BY_LABEL if not estimator._balances_itself]

balanced = pytest.mark.parametrize("estimator", BALANCED, ids=named)


def of(estimator, **parameters):
    return declared(estimator, class_weight="balanced", random_state=0, **parameters)


# --- the plan --------------------------------------------------------------------------------------------------------


@balanced
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_the_charge_is_the_plan_and_holds_the_counts(estimator, epsilon):
    X, y = data_of(estimator)
    accountant = BudgetAccountant(1e9, 0.5, composition="basic")
    model = of(estimator, epsilon=epsilon, accountant=accountant)
    plan = model.privacy_plan(n_features=X.shape[1])
    with pytest.warns(match="random_state"):
        assert model.fit(X, y).privacy_ == plan
    assert accountant.records[0].cost == plan.cost
    assert model._fixed_cost() in (None, plan.cost)
    assert (plan.epsilon, plan.delta) == (epsilon, declared(estimator).delta)
    assert [release.label == COUNTS for release in plan.releases] == [True] + [False] * (len(plan.releases) - 1)
    plain = clone(model).set_params(class_weight=None).privacy_plan(n_features=X.shape[1])
    shares = [sum(release.share for release in each.releases) for each in (plan, plain)]
    assert shares[0] == pytest.approx(SHARE + (1 - SHARE) * shares[1])
    assert model.class_weight_.max() == 1
    # An attribute of an earlier fit does not stay.
    assert not hasattr(clone(model).set_params(class_weight=None, accountant=None).fit(X, y), "class_weight_")


@balanced
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 3.0])
def test_the_parts_of_the_budget_compose_to_the_whole(estimator, epsilon):
    plan = of(estimator, epsilon=epsilon).privacy_plan(n_features=2)
    counts, *others = plan.events
    if isinstance(counts, GaussianEvent):
        whole = gaussian_mu(epsilon, plan.delta)
        assert counts.noise_mu == pytest.approx(math.sqrt(SHARE) * whole)
        if all(isinstance(event, GaussianEvent) for event in others):
            together = math.hypot(*(event.noise_mu for event in plan.events))
            assert 0.95 * whole < together <= whole
        else:
            # Steps on samples are composed with the counts, and use what these leave.
            assert any(isinstance(event, SampledGaussianEvent) for event in others)
            loss = plan.privacy_loss_distribution(value_discretization_interval=min(1e-4, whole / 2000))
            assert 0.95 * plan.delta < loss.get_delta_for_epsilon(epsilon) <= plan.delta * (1 + 1e-3)
    else:
        # The rest of the events is that of a fit with the rest of epsilon, and all of delta.
        rest = clone(of(estimator)).set_params(class_weight=None, epsilon=epsilon * (1 - SHARE) * (1 - 2.0**-50))
        assert counts.epsilon + rest.epsilon <= epsilon
        assert counts.epsilon == pytest.approx(SHARE * epsilon)
        assert tuple(others) == rest.privacy_plan(n_features=2).events


def test_an_accountant_composes_the_counts_with_the_fit():
    # The events of the plan are at most as much as one Gaussian fit of the whole budget.
    budget = BudgetAccountant(1.0, 1e-5)
    model = ObjPertLogReg(data_norm=1.0, classes=[0, 1], delta=1e-5, class_weight="balanced", accountant=budget)
    X, y = data_for(model)
    model.fit(X, y)
    with pytest.raises(BudgetError):
        model.fit(X, y)
    assert len(budget) == 1


def test_allocation_and_searches_see_the_counts():
    X, y = data_for(ObjPertLogReg())
    model = ObjPertLogReg(data_norm=3.0, classes=[0, 1], class_weight="balanced", epsilon=50.0, delta=1e-5)
    step = clone(model)
    allocate(step, epsilon=1.0, delta=1e-5)
    assert (step.epsilon, step.class_weight) == (pytest.approx(1.0), "balanced")
    assert len(step._fixed_cost().events) == len(clone(model).set_params(class_weight=None)._fixed_cost().events) + 1
    budget = BudgetAccountant(100.0, 1e-4)
    grid = {"class_weight": [None, "balanced"]}
    search = DPGridSearchCV(clone(model), grid, epsilon=100.0, delta=1e-5, accountant=budget).fit(X, y)
    assert set(search.best_params_) == {"class_weight"}
    assert len(budget) == 1


def test_balanced_weights_are_for_labels_and_not_for_courses():
    X, y = data_for(DPSGDClassifier())
    budget = BudgetAccountant(100.0, 0.1)
    course = DPSGDClassifier(data_norm=3.0, delta=1e-5, class_weight="balanced", accountant=budget)
    with pytest.raises(ValueError, match="partial_fit does not take class_weight='balanced'"):
        course.partial_fit(X, y, classes=[0, 1])
    for model in (
        ExpMechERM("absolute_error", data_norm=3.0, bounds_y=(0, 1), class_weight="balanced", accountant=budget),
        SampleAggregate(lambda rows: rows.mean(axis=0), bounds=(-5, 5), class_weight="balanced", accountant=budget),
    ):
        with pytest.raises(ValueError, match="class_weight is for labels"):
            model.fit(X[:, :2], y)
    assert len(budget) == 0
    whole = SampleAggregate(
        LogisticRegression(), bounds=(-5, 5), classes=[0, 1], n_blocks=5, class_weight="balanced", epsilon=9.0
    )
    assert whole.fit(X, y).class_weight_.shape == (2,)


# --- what a record moves ---------------------------------------------------------------------------------------------

NEIGHBOURS = {
    type(e): e for e in COMPARED if is_classifier(e) and named(e) in {named(own) for own in BALANCED}
}.values()


def counted(transcript):
    return next(release.value for (_, label, _), release in transcript.items() if label == COUNTS)


@pytest.mark.usefixtures("notes_of_modules_are_left")
@pytest.mark.parametrize("estimator", NEIGHBOURS, ids=named)
def test_a_record_moves_one_count_by_one(estimator):
    rng = np.random.default_rng(0)
    X, y = data_for(estimator, n_rows=60)
    model = declared(estimator, epsilon=0.5, class_weight="balanced", random_state=3)
    # The counts that come out: a third of the records of label 0 is kept.
    out = np.array([3e6, 1e6])
    found = []

    def noted(session, source, X, y, n_classes):
        with patch.object(units, "balanced_weights", lambda counts, mechanism: out.min() / out):
            found.append(units.balance(session, source, X, y, n_classes))
        return found[-1]

    with patch.object(_estimator, "balance", noted):
        inputs(model, [X, y], 61)
        n_kept = len(found[-1][1])
        assert 10 < n_kept < 55
        without = inputs(model, [X, y], n_kept + 1)
        most = {}
        for row, label in list(records(X, y, rng))[::2]:
            with_it = inputs(model, [np.concatenate([X, row]), np.concatenate([y, label])], n_kept + 1, without)
            # The other records have the coins that they had.
            assert len(found[-1][1]) - n_kept in (0, 1)
            assert np.abs(counted(with_it) - counted(without)).sum() == 1
            for name, release in without.items():
                difference = with_it[name].value - release.value
                moved = MOVED[release.mechanism.norm]
                if not getattr(release.mechanism, "monotone", True):
                    moved = partial(moved, monotone=False)
                most[name] = max(most.get(name, 0.0), moved(difference) / release.mechanism.sensitivity)
    assert max(most.values()) <= 1 + 1e-9


@pytest.mark.parametrize("model", [e for e in BY_GROUP if named(e) in {named(own) for own in BALANCED}], ids=named)
def test_groups_are_drawn_before_labels_are_counted(model):
    X, _ = data_for(model, n_rows=60, n_features=2)
    model = clone(model).set_params(
        rows_per_group=2, random_state=1, classes=[0, 1], class_weight="balanced", epsilon=math.inf
    )
    plan = model.privacy_plan(n_features=2)
    fitted = model.fit(X, np.where(np.arange(60) < 20, 1, 0), groups=np.arange(60) // 5)
    assert fitted.privacy_ == plan
    assert plan.unit == "group"
    # 4 of 12 groups have the label 1, and two rows of each count.
    np.testing.assert_array_equal(fitted.class_weight_, [0.5, 1])
    finite = clone(model).set_params(epsilon=1.0)
    assert finite.privacy_plan(n_features=2).releases[0].sensitivity == pytest.approx(2)


# --- the weights -----------------------------------------------------------------------------------------------------


def weights(counts, epsilon=math.inf):
    mechanism = NoNoise(1.0) if epsilon == math.inf else DiscreteLaplaceMechanism(epsilon, 1.0, len(counts))
    return balanced_weights(np.array(counts, dtype=float), mechanism)


def test_weights_are_inversely_proportional_within_limits():
    np.testing.assert_array_equal(weights([100, 400, 200]), [1, 0.25, 0.5])
    np.testing.assert_array_equal(weights([1, 10_000]), [1, 1 / LARGEST_RATIO])
    # An absent label does not thin out the others.
    np.testing.assert_array_equal(weights([0, 300, 100]), [1, 1 / 3, 1])
    np.testing.assert_array_equal(weights([-5, 3, 14], epsilon=0.1), [1, 1, 1])
    np.testing.assert_array_equal(weights([-5, 430, 43], epsilon=0.1), [1, 0.1, 1])
    np.testing.assert_array_equal(weights([0, 0]), [1, 1])


@pytest.mark.parametrize("n_rows", [0, 1, 5])
@pytest.mark.parametrize("epsilon", [0.01, 1.0])
def test_counts_that_are_all_noise_leave_weights_bounded(n_rows, epsilon):
    X, y = data_for(ObjPertLogReg(), n_rows=20)
    for seed in range(20):
        model = ObjPertLogReg(
            data_norm=3.0, classes=[0, 1], epsilon=epsilon, class_weight="balanced", random_state=seed
        )
        found = model.fit(X[:n_rows], y[:n_rows]).class_weight_
        assert np.all((found >= 1 / LARGEST_RATIO) & (found <= 1))


@pytest.mark.parametrize("form", [dict, pd.DataFrame, lambda columns: pl.DataFrame(columns, strict=False)])
def test_balanced_weights_of_a_table_in_any_container(form):
    rng = np.random.default_rng(0)
    columns = {"age": rng.uniform(18, 90, 500).tolist(), "job": rng.choice(["clerk", "nurse", None], 500).tolist()}
    y = np.where(np.array(columns["age"]) > 70, "old", "young")
    schema = Schema({"age": (18, 90), "job": ["clerk", "nurse"]}, ["young", "old"])
    model = ObjPertLogReg(schema=schema, epsilon=2.0, delta=1e-5, class_weight="balanced", random_state=0)
    plain = clone(model).fit(columns, y)
    found = clone(model).fit(form(columns), y)
    np.testing.assert_array_equal(found.coef_, plain.coef_)
    assert found.class_weight_.tolist() == plain.class_weight_.tolist()
    # The order is that of the sorted labels.
    assert found.class_weight_[0] == 1 > found.class_weight_[1]
    assert found.privacy_ == model.privacy_plan()
    # A label that is not declared is not counted, and leaves the other labels what they are.
    more = {name: [*values, "x"] for name, values in columns.items()}
    again = clone(model).fit(form(more), [*y, "middle"])
    assert again.class_weight_.tolist() == plain.class_weight_.tolist()
    np.testing.assert_array_equal(again.coef_, plain.coef_)


def test_as_many_records_of_each_label_are_kept():
    # 20,000 records with 5,000 of label 1, by sample weights half of them: the kept labels are nearly as many.
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, size=(20_000, 1)), np.arange(20_000) % 4 // 3
    model = DPRandomTree(
        epsilon=1.0,
        delta=1e-5,
        bounds=(-1, 1),
        classes=[0, 1],
        n_estimators=1,
        class_weight="balanced",
        max_weight=2.0,
        random_state=0,
    )
    model.fit(X, y, sample_weight=np.ones(len(X)))
    np.testing.assert_allclose(model.class_weight_, [1 / 3, 1], rtol=0.2)
    # Binomial counts and Gaussian noise, each within seven deviations.
    np.testing.assert_allclose(model.leaf_counts_.sum(axis=(0, 1)), [2500, 2500], atol=900)


def test_naive_bayes_has_equal_priors_and_leaves_out_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, size=(2000, 1)), np.arange(2000) % 10 // 9
    common = {"epsilon": 1.0, "bounds": (-1, 1), "classes": [0, 1], "random_state": 0}
    plain = DPNaiveBayes(**common).fit(X, y)
    model = DPNaiveBayes(class_weight="balanced", **common).fit(X, y)
    assert model.privacy_ == plain.privacy_ == clone(model).privacy_plan(n_features=1)
    np.testing.assert_array_equal(model.class_prior_, [0.5, 0.5])
    np.testing.assert_array_equal(model.class_count_, plain.class_count_)
    np.testing.assert_array_equal(model.feature_log_prob_[0], plain.feature_log_prob_[0])
    given = DPNaiveBayes(class_weight="balanced", priors=[0.2, 0.8], **common).fit(X, y)
    np.testing.assert_array_equal(given.class_prior_, [0.2, 0.8])


def test_a_rare_label_is_predicted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 2))
    y = (X[:, 0] + rng.normal(size=5000) > 2).astype(int)
    common = {"epsilon": 1.0, "delta": 1e-5, "data_norm": 3.0, "classes": [0, 1], "random_state": 0}
    recalls = [
        np.mean(ObjPertLogReg(class_weight=each, **common).fit(X, y).predict(X[y == 1])) for each in (None, "balanced")
    ]
    assert recalls[0] < 0.4
    assert recalls[1] > 0.7


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_intervals_of_coefficients_are_for_the_noise_of_the_coefficients(delta):
    X, y = data_of(OutputPertLogReg(data_norm=3.0))
    widths = []
    for weight in ({0: 1.0, 1: 1.0}, "balanced"):
        model = OutputPertLogReg(delta=delta, data_norm=3.0, classes=[0, 1], class_weight=weight, random_state=0)
        display = CoefficientUncertaintyDisplay.from_estimator(model.fit(X, y), random_state=1, plot=False)
        widths.append(display.upper - display.lower)
    assert np.all(widths[1] < 1.2 * widths[0])


@pytest.mark.parametrize("wrong", ["Balanced", b"balanced", [1.0, 2.0]])
def test_plans_refuse_weights_of_another_type(wrong):
    with pytest.raises(TypeError, match="class_weight"):
        ObjPertLogReg(data_norm=1.0, classes=[0, 1], class_weight=wrong).privacy_plan(n_features=2)
