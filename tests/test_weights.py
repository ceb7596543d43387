"""Weights: the law of thinning, what a record moves with a weight, what is refused, and that nothing else changes.

False alarms: each test of a law refuses the correct one with probability 1e-9 at most. All else is certain.
"""

import math
import pickle
import types
from contextlib import contextmanager
from functools import partial
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    VotingClassifier,
)
from sklearn.linear_model import RANSACRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp import BudgetAccountant, DPGridSearchCV, DPNaiveBayes, DPSGDClassifier, DPSGDRegressor, ObjPertLogReg, Schema
from skdp.ensemble import SampleAggregate
from skdp.exceptions import PrivacyAssumptionWarning
from skdp.mechanisms import NoiseSource
from skdp.release.estimator import PrivateEstimator
from skdp.release.units import Unit, chances, class_weights, kept, relative_weights
from skdp.tree import DPRandomTreeRegressor
from tests.estimators import BY_GROUP, ONE_EACH, data_for, declared, needs_y, released
from tests.neighbours import COMPARED, IN_ALL_GROUPS, MOVED, inputs, records
from tests.statistics import accept

FALSE_ALARM = 1e-9


def has(estimator, name):
    return name in estimator.get_params(deep=False)


def named(estimator):
    return type(estimator).__name__


WEIGHTED = [estimator for estimator in ONE_EACH if has(estimator, "max_weight")]
BY_LABEL = [estimator for estimator in WEIGHTED if has(estimator, "class_weight") and is_classifier(estimator)]

weighted = pytest.mark.parametrize("estimator", WEIGHTED, ids=named)
by_label = pytest.mark.parametrize("estimator", BY_LABEL, ids=named)


class Words:
    """A stream that gives these words."""

    def __init__(self, words):
        self._words = np.asarray(words, dtype=np.uint64)

    def words(self, n):
        assert n == len(self._words)
        return self._words


@contextmanager
def counted_rows():
    """Note how many rows count in each fit."""
    found, counted = [], Unit.counted

    def note(self, *args):
        rows = counted(self, *args)
        found.append(rows)
        return rows

    with patch.object(Unit, "counted", note):
        yield found


def data_of(estimator, n_rows=80, seed=0):
    X, y = data_for(estimator, n_rows=n_rows, seed=seed)
    return X, (y if needs_y(estimator) else None)


# --- coins -----------------------------------------------------------------------------------------------------------


def test_a_coin_compares_exactly():
    quarter = 2**62
    weights = np.array([0.0, 1.0, 0.25, 0.25, 2.0**-53, 2.0**-53, 1.0])
    words = [0, 2**64 - 1, quarter - 1, quarter, 2**11 - 1, 2**11, 0]
    assert kept(weights, Words(words)).tolist() == [False, True, True, False, True, False, True]


def law_of(probabilities, toss, n_fits=20_000):
    """Return the smallest p-value of the number of times that each record is kept."""
    stream = NoiseSource(0).stream("coins")
    hits = sum(toss(probabilities, stream).astype(int) for _ in range(n_fits))
    each = [stats.binomtest(int(k), n_fits, p).pvalue for k, p in zip(hits, probabilities, strict=True)]
    return min(each) * len(each)


def test_each_record_is_kept_with_its_probability():
    probabilities = np.array([0.001, 0.2, 0.5, 0.9, 0.3])
    accept(law_of(probabilities, kept), "kept records", FALSE_ALARM)
    assert law_of(probabilities, lambda p, stream: kept(p**1.1, stream)) < FALSE_ALARM


@pytest.mark.parametrize("place", [0, 1, 2])
def test_coins_are_independent_wherever_a_record_is_added(place):
    # The coins of two records, with a third one in any place: the four outcomes have the product law.
    stream = NoiseSource(1).stream("coins")
    probabilities, others = np.insert([0.3, 0.6], place, 0.5), [i for i in range(3) if i != place]
    found = np.zeros(4)
    for _ in range(20_000):
        coins = kept(probabilities, stream)[others]
        found[2 * coins[0] + coins[1]] += 1
    law = np.outer([0.7, 0.3], [0.4, 0.6]).ravel()
    accept(stats.chisquare(found, law * found.sum()).pvalue, "pairs of coins", FALSE_ALARM)


def test_probabilities_are_products_of_clipped_weights():
    relative = relative_weights([0, 1, 5, 1e300, 2], 4.0)
    np.testing.assert_array_equal(relative, [0, 0.25, 1, 1, 0.5])
    by_class = class_weights({"b": 3, "a": 6.0}, np.array(["a", "b", "c"]))
    # A label that is not named has weight 1, and one outside of `classes` is left out elsewhere.
    np.testing.assert_allclose(by_class, [1, 0.5, 1 / 6, 1])
    y = np.array([0, 1, 2, -1, 0])
    np.testing.assert_allclose(chances(relative, by_class, None, y), [0, 0.125, 1 / 6, 1, 0.5])
    assert chances(None, None, None, y) is None


def test_weights_are_read_one_by_one():
    # A weight that a new record brings does not change how the others are read.
    assert relative_weights([0.3, 1], 2.0)[0] == relative_weights([0.3, 10**30], 2.0)[0] == 0.15


# --- fits ------------------------------------------------------------------------------------------------------------


@weighted
def test_weights_of_0_leave_records_out_and_the_largest_weights_change_nothing(estimator):
    X, y = data_of(estimator)
    model = declared(estimator, max_weight=2.0, random_state=3)
    out = np.arange(len(X)) % 3 == 0
    out[-4:] = False
    rest = X[~out], None if y is None else y[~out]
    without = released(clone(model).fit(*rest))
    weights = np.where(out, 0.0, 2.0)
    np.testing.assert_array_equal(released(clone(model).fit(X, y, sample_weight=weights)), without)
    # Larger weights are clipped, and only the ratio to the bound matters.
    np.testing.assert_array_equal(released(clone(model).fit(X, y, sample_weight=weights * 1e200)), without)
    np.testing.assert_array_equal(released(clone(model).fit(X, y, sample_weight=list(weights))), without)
    np.testing.assert_array_equal(released(clone(model).fit(X, y, sample_weight=pd.Series(weights))), without)
    whole = released(declared(estimator, random_state=3).fit(X, y))
    np.testing.assert_array_equal(released(clone(model).fit(X, y)), whole)


@by_label
def test_a_label_of_weight_0_is_left_out(estimator):
    X, y = data_of(estimator)
    model = declared(estimator, random_state=3)
    without = released(clone(model).fit(X[y == 1], y[y == 1]))
    np.testing.assert_array_equal(released(clone(model).set_params(class_weight={0: 0}).fit(X, y)), without)
    whole = released(clone(model).fit(X, y))
    for equal in ({}, {0: 1, 1: 1.0}, {0: 7, 1: 7}):
        np.testing.assert_array_equal(released(clone(model).set_params(class_weight=equal).fit(X, y)), whole)


@weighted
def test_about_as_many_records_count_as_weights_say(estimator):
    X, y = data_of(estimator, 400)
    model = declared(estimator, max_weight=4.0, random_state=0)
    expected = 0.25
    if is_classifier(estimator):
        model.set_params(class_weight={0: 1, 1: 3})
        expected = 0.25 * np.mean(np.where(y == 0, 1 / 3, 1))
    with counted_rows() as found:
        model.fit(X, y, sample_weight=np.ones(len(X)))
    rows = found[-1][0]
    n_rows = len(rows[0]) if isinstance(rows, list) else rows.shape[0]
    # A sum of coins has at most the deviations of as many fair ones (Hoeffding).
    assert abs(n_rows - expected * len(X)) < math.sqrt(len(X) * math.log(2 / FALSE_ALARM) / 2)
    assert 0 < n_rows < len(X)


@weighted
def test_guarantees_do_not_depend_on_weights(estimator):
    X, y = data_of(estimator)
    plain = declared(estimator, random_state=0)
    model = clone(plain).set_params(max_weight=4.0)
    if is_classifier(estimator):
        model.set_params(class_weight={0: 1, 1: 3})
    known = {"n_features": X.shape[1]}
    assert model.privacy_plan(**known) == plain.privacy_plan(**known)
    assert model.fit(X, y, sample_weight=np.ones(len(X))).privacy_ == plain.fit(X, y).privacy_


@weighted
def test_weighted_models_are_cloned_and_pickled(estimator):
    X, y = data_of(estimator)
    model = declared(estimator, max_weight=4.0, random_state=0)
    if is_classifier(estimator):
        model.set_params(class_weight={0: 1, 1: 3})
    copies = [clone(model), pickle.loads(pickle.dumps(model))]
    fits = [released(each.fit(X, y, sample_weight=np.ones(len(X)))) for each in (model, *copies)]
    np.testing.assert_array_equal(fits[0], fits[1])
    np.testing.assert_array_equal(fits[0], fits[2])
    assert released(pickle.loads(pickle.dumps(model))).tolist() == fits[0].tolist()


@pytest.mark.parametrize("kind", [DPSGDClassifier, DPSGDRegressor])
def test_courses_take_weights(kind):
    estimator = next(each for each in WEIGHTED if type(each) is kind)
    X, y = data_of(estimator)
    model = declared(estimator, max_weight=1.0, n_steps=5, random_state=3)
    weights = np.where(np.arange(len(X)) < 60, 1.0, 0.0)
    some = clone(model).partial_fit(X, y, sample_weight=weights).partial_fit(X, y, sample_weight=1 - weights)
    parts = clone(model).partial_fit(X[:60], y[:60]).partial_fit(X[60:], y[60:])
    np.testing.assert_array_equal(released(some), released(parts))
    assert some.privacy_ == parts.privacy_


def test_noiseless_thinning_is_weighted_regression():
    # Without noise, only thinning is random. Its effect on coefficients is that of a quarter of the records.
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(60_000, 2))
    y = (X @ [2.0, -1.0] + 0.5 + rng.logistic(size=len(X)) > 0).astype(int)
    common = {"epsilon": math.inf, "delta": 1e-5, "data_norm": 1.5, "C": 1e3, "classes": [0, 1], "random_state": 0}
    plain = ObjPertLogReg(**common).fit(X, y)
    model = ObjPertLogReg(class_weight={0: 1, 1: 4}, **common).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=0.2)
    # Weights of labels add the logarithm of their ratio to the intercept.
    np.testing.assert_allclose(model.intercept_ - plain.intercept_, math.log(4), atol=0.2)


# --- what a record moves ---------------------------------------------------------------------------------------------


class Weighted:
    """A model that is fitted with weights."""

    def __init__(self, model, weights):
        self.model, self.weights = model, weights

    def fit(self, X, *rest):
        with counted_rows() as self.counted:
            self.model.fit(X, *rest, sample_weight=self.weights[: len(X)])

    @property
    def n_rows(self):
        rows = self.counted[-1][0]
        return len(rows[0]) if isinstance(rows, list) else rows.shape[0]


NEIGHBOURS = list({type(estimator): estimator for estimator in COMPARED if has(estimator, "max_weight")}.values())


@pytest.mark.usefixtures("notes_of_modules_are_left")
@pytest.mark.parametrize("estimator", NEIGHBOURS, ids=named)
def test_a_weighted_record_moves_no_release_by_more_than_it_says(estimator):
    rng = np.random.default_rng(0)
    X, y = data_for(estimator, n_rows=60)
    model = declared(estimator, epsilon=0.5, random_state=3, max_weight=1.0)
    by_target = [X] if not needs_y(model) else [X, y]
    for weight in (0.0, 1e-3, 0.5, 1e300):
        weights = np.append(rng.uniform(size=60), weight)
        own = Weighted(model, weights)
        own.fit(*by_target)
        n_kept = own.n_rows
        without = inputs(own, by_target, n_kept + 1)
        most = {}
        for row, label in list(records(X, y, rng))[::2]:
            data = [np.concatenate([X, row]), np.concatenate([y, label])][: len(by_target)]
            with_it = inputs(own, data, n_kept + 1, without)
            # The other records have the coins that they had.
            assert own.n_rows - n_kept in ((0,) if weight == 0 else (1,) if weight > 1 else (0, 1))
            assert without.keys() == with_it.keys()
            for name, release in without.items():
                mechanism, difference = release.mechanism, with_it[name].value - release.value
                moved = MOVED[mechanism.norm]
                if not getattr(mechanism, "monotone", True):
                    moved = partial(moved, monotone=False)
                most[name] = max(most.get(name, 0.0), moved(difference) / mechanism.sensitivity)
        assert max(most.values()) <= (1 + 1e-9 if weight else 0), (weight, most)
        least = 0.02 if named(estimator) in IN_ALL_GROUPS else 0.1
        assert weight <= 1 or max(most.values()) > least, most


@pytest.mark.parametrize("model", [each for each in BY_GROUP if has(each, "max_weight")][:6], ids=named)
def test_rows_of_a_group_are_drawn_before_coins_are_tossed(model):
    X, y = data_for(model, n_rows=60, n_features=2)
    y = y if needs_y(model) else None
    groups = np.arange(60) // 5
    model = clone(model).set_params(rows_per_group=2, random_state=1, max_weight=1.0)
    if is_classifier(model):
        model.set_params(classes=[0, 1])
    with counted_rows() as found:
        model.fit(X, y, groups=groups)
        model.fit(X, y, groups=groups, sample_weight=np.full(60, 0.5))
        model.fit(X, y, groups=groups, sample_weight=np.zeros(60))
        more = np.concatenate([X, X[:5]]), None if y is None else np.concatenate([y, y[:5]])
        weights = np.append(np.full(60, 0.5), np.ones(5))
        model.fit(*more, groups=np.append(groups, np.full(5, 99)), sample_weight=weights)
    drawn, some, none, with_group = [{tuple(row) for row in rows} for rows, _ in found]
    assert len(drawn) == 24
    assert some < drawn
    assert not none
    # A group that comes last moves no coin of the others, and adds as many rows as may count.
    assert some <= with_group
    assert len(found[3][0]) == len(found[1][0]) + 2


# --- what is refused -------------------------------------------------------------------------------------------------


BAD_WEIGHTS = {
    "negative": (lambda n: np.full(n, -1.0), "negative"),
    "NaN": (lambda n: np.full(n, np.nan), "NaN"),
    "infinite": (lambda n: np.full(n, np.inf), "infinity"),
    "too few": (lambda n: np.ones(n - 1), "sample_weight must have the same number of rows"),
    "two columns": (lambda n: np.ones((n, 2)), "1d array"),
    "number": (lambda n: 1.0, "1d array"),
    "text": (lambda n: ["a"] * n, "text"),
    "masked": (lambda n: np.ma.array(np.ones(n), mask=np.arange(n) == 0), "sample_weight contains NaN"),
}


@weighted
@pytest.mark.parametrize("name", BAD_WEIGHTS)
def test_bad_weights_cost_nothing(estimator, name):
    make, says = BAD_WEIGHTS[name]
    X, y = data_of(estimator, 77)
    accountant = BudgetAccountant(1e9, 0.5, composition="basic")
    model = declared(estimator, max_weight=1.0, accountant=accountant)
    with pytest.raises((ValueError, TypeError), match=says) as failure:
        model.fit(X, y, sample_weight=make(len(X)))
    assert len(accountant) == 0
    assert "77" not in str(failure.value)
    assert "76" not in str(failure.value)
    assert not hasattr(model, "privacy_")


@by_label
def test_weights_of_undeclared_labels_are_refused(estimator):
    X, y = data_of(estimator)
    accountant = BudgetAccountant(1e9, 0.5, composition="basic")
    with pytest.raises(ValueError, match="class_weight names 5, which is not in classes"):
        declared(estimator, class_weight={5: 1.0}, accountant=accountant).fit(X, y)
    with pytest.raises(TypeError, match="a dict of weights by label, 'balanced' or None"):
        declared(estimator, class_weight="equal", accountant=accountant).fit(X, y)
    assert len(accountant) == 0


def test_labels_are_asked_for_where_there_are_none():
    X, _ = data_for(DPSGDRegressor(), n_rows=40)
    model = SampleAggregate(lambda rows: rows.mean(axis=0), bounds=(-5, 5), class_weight={0: 1.0})
    with pytest.raises(ValueError, match="class_weight is for labels"):
        model.fit(X)


def test_searches_use_weights_of_labels_and_refuse_weights_of_records():
    X, y = data_for(ObjPertLogReg())
    accountant = BudgetAccountant(1e9, 0.5, composition="basic")
    inside = ObjPertLogReg(data_norm=3.0, classes=[0, 1], class_weight={5: 1.0})
    with pytest.raises(ValueError, match="class_weight"):
        DPGridSearchCV(inside, {"C": [0.1, 1.0]}, accountant=accountant).fit(X, y)
    inside = ObjPertLogReg(data_norm=3.0, classes=[0, 1], class_weight={0: 0, 1: 1})
    search = DPGridSearchCV(inside, {"C": [0.1, 1.0]}, epsilon=50.0, delta=1e-5, random_state=0)
    with pytest.raises(TypeError, match="Searches do not pass it on"):
        search.fit(X, y, sample_weight=np.ones(len(X)))
    assert len(accountant) == 0
    # Fits see records of the label 1 alone, and scores see all of them.
    assert np.mean(search.fit(X, y).predict(X)) > 0.9


# --- together with other parts ----------------------------------------------------------------------------------


def test_weights_beside_a_schema():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.uniform(18, 90, 300), "job": rng.choice(["clerk", "nurse"], 300)})
    y = np.where(X["age"] > 50, "old", "young")
    schema = Schema({"age": (18, 90), "job": ["clerk", "nurse"]}, ["old", "young"])
    for kind in (DPNaiveBayes, ObjPertLogReg):
        model = kind(schema=schema, max_weight=2.0, class_weight={"old": 0.0}, random_state=0)
        young = kind(schema=schema, random_state=0).fit(X[y == "young"], y[y == "young"])
        fitted = model.fit(X, y, sample_weight=pd.Series(np.full(300, 2.0)))
        np.testing.assert_array_equal(released(fitted), released(young))


def test_weights_of_sparse_rows():
    X, y = data_for(ObjPertLogReg())
    X = sparse.csr_array(np.where(np.abs(X) > 1, X, 0))
    weights = np.where(np.arange(X.shape[0]) % 2, 0.0, 1.0)
    model = ObjPertLogReg(data_norm=3.0, classes=[0, 1], max_weight=1.0, random_state=0)
    alone = released(clone(model).fit(X[::2], y[::2]))
    np.testing.assert_array_equal(released(model.fit(X, y, sample_weight=weights)), alone)


def test_weights_reach_a_step_of_a_pipeline():
    X, y = data_for(ObjPertLogReg())
    weights = np.where(np.arange(len(X)) % 2, 0.0, 1.0)
    model = ObjPertLogReg(data_norm=3.0, classes=[0, 1], max_weight=1.0, random_state=0)
    alone = released(clone(model).fit(X[::2], y[::2]))
    named_step = make_pipeline(FunctionTransformer(), model).fit(X, y, objpertlogreg__sample_weight=weights)
    np.testing.assert_array_equal(released(named_step[-1]), alone)
    with config_context(enable_metadata_routing=True):
        routed = make_pipeline(FunctionTransformer(), clone(model).set_fit_request(sample_weight=True))
        np.testing.assert_array_equal(released(routed.fit(X, y, sample_weight=weights)[-1]), alone)
    voting = VotingClassifier([("a", clone(model))]).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(released(voting.estimators_[0]), alone)


def classifier(**parameters):
    return ObjPertLogReg(**{"epsilon": 50.0, "data_norm": 3.0, "classes": [0, 1], **parameters})


def regressor(**parameters):
    return DPRandomTreeRegressor(bounds=(-3, 3), bounds_y=(-3, 3), **parameters)


def resampling():
    """A pipeline as that of imbalanced-learn, which need not be installed: its code is in a module of that name."""
    module = types.ModuleType("imblearn.pipeline")
    exec(
        "class Pipeline:\n"
        "    def __init__(self, *steps):\n"
        "        self.steps = [(str(k), step) for k, step in enumerate(steps)]\n"
        "    def fit(self, X, y):\n"
        "        for _, step in self.steps[:-1]:\n"
        "            X, y = step.fit_resample(X, y) if hasattr(step, 'fit_resample') else (X, y)\n"
        "        self.steps[-1][1].fit(X, y)\n",
        vars(module),
    )
    return module.Pipeline


class Sampler:
    def fit_resample(self, X, y):
        return np.tile(X, (2, 1)), np.tile(y, 2)


def routed(model):
    with config_context(enable_metadata_routing=True):
        model.fit(*data_for(ObjPertLogReg()))


@pytest.mark.parametrize(
    ("fit", "reason"),
    [
        (lambda X, y: BaggingRegressor(regressor(max_weight=5.0), n_estimators=2).fit(X, X[:, 0]), "bagging"),
        (lambda X, y: BaggingClassifier(classifier(max_weight=5.0), n_estimators=2).fit(X, y), "bagging"),
        (lambda X, y: routed(BaggingClassifier(classifier(), n_estimators=2)), "bagging"),
        (lambda X, y: AdaBoostClassifier(classifier(max_weight=2 / len(X)), n_estimators=2).fit(X, y), "boosting"),
        (lambda X, y: AdaBoostRegressor(regressor(), n_estimators=2).fit(X, X[:, 0]), "boosting"),
        (lambda X, y: RANSACRegressor(regressor(), min_samples=0.5).fit(X, X[:, 0]), "RANSAC"),
        (lambda X, y: resampling()(Sampler(), classifier()).fit(X, y), "imbalanced-learn"),
    ],
)
def test_estimators_inside_which_the_guarantee_does_not_hold_warn(fit, reason):
    with pytest.warns(PrivacyAssumptionWarning, match=f"^The guarantee in privacy_ does not hold .*{reason}"):
        fit(*data_for(ObjPertLogReg()))


def test_estimators_inside_which_the_guarantee_holds_do_not_warn():
    X, y = data_for(ObjPertLogReg())
    resampling()(FunctionTransformer(), classifier()).fit(X, y)
    VotingClassifier([("a", classifier())]).fit(X, y)


@pytest.mark.parametrize("outer", [AdaBoostClassifier, BaggingClassifier])
def test_bagging_and_boosting_pass_weights(outer):
    # The weights of boosting are divided by their sum, so that its guarantee is not that of its parts.
    X, y = data_for(ObjPertLogReg())
    with pytest.raises(ValueError, match=r"Set max_weight.* bagging or boosting .* the guarantee does not hold"):
        outer(classifier(), n_estimators=2).fit(X, y)


def test_every_estimator_that_takes_y_takes_weights():
    private = [each for each in ONE_EACH if isinstance(each, PrivateEstimator)]
    lacking = {named(each) for each in private if needs_y(each) and not has(each, "max_weight")}
    assert lacking == set()
    assert {named(each) for each in private if is_classifier(each) and not has(each, "class_weight")} == set()
