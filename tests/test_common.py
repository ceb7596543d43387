"""skdp's own rules, for every estimator: what is charged, when, what may be seen, and what must not matter."""

import copy
import pickle
import sys
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp import BudgetAccountant, ObjPertLogReg, allocate
from skdp.additive import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.checks.data import encode_labels
from skdp.ensemble import SampleAggregate
from skdp.exceptions import BudgetError, PrivacyAssumptionWarning, SeededNoiseWarning
from skdp.mechanisms import NoiseSource
from skdp.release.session import ReleaseSession
from skdp.synthetic import DPTableGenerator
from tests.estimators import (
    CLASSIFIERS,
    HISTOGRAMS,
    ONE_EACH,
    RELEASED,
    VARIANTS,
    classes_up_to,
    columns_up_to,
    data_for,
    declared,
    every_output,
    is_local,
    is_search,
    name_of,
    of_many_columns,
    output,
    public_attributes,
    released,
)

every_estimator = pytest.mark.parametrize("estimator", VARIANTS, ids=name_of)
# For rules of what a fit does itself; searches have tests of their own.
every_single_fit = pytest.mark.parametrize(
    "estimator", [estimator for estimator in VARIANTS if not is_search(estimator)], ids=name_of
)
every_classifier = pytest.mark.parametrize("estimator", CLASSIFIERS, ids=name_of)
# In the local model the number of rows is public, and no row is left out.
every_classifier_that_counts_rows = pytest.mark.parametrize(
    "estimator", [estimator for estimator in CLASSIFIERS if not is_local(estimator)], ids=name_of
)
one_of_each = pytest.mark.parametrize("estimator", ONE_EACH, ids=name_of)
one_of_each_classifier = pytest.mark.parametrize(
    "estimator", [estimator for estimator in ONE_EACH if is_classifier(estimator)], ids=name_of
)


def wide_accountant():
    return BudgetAccountant(epsilon=1e8, delta=0.5, composition="basic")


NAN, INF = float("nan"), float("inf")


# --- the budget ---------------------------------------------------------------------------------------------------


@every_estimator
def test_charge_equals_plan(estimator):
    X, y = data_for(estimator, 3)
    accountant = wide_accountant()
    model = declared(estimator, 3, accountant=accountant).fit(X, y)
    (record,) = accountant.records
    plan = model.privacy_plan(n_features=X.shape[1])
    assert record.cost == plan.cost == model.privacy_.cost
    assert model._fixed_cost() in (None, plan.cost)
    assert model.privacy_ == plan
    assert record.estimator == type(model).__name__
    assert len(record.releases) == len(plan.releases)
    assert accountant.total() == (model.epsilon, model.delta)


@every_single_fit
def test_plan_states_the_parameters_guarantee_and_uses_all_of_it(estimator):
    plan = declared(estimator).privacy_plan(n_features=columns_up_to(estimator, 7))
    assert (plan.epsilon, plan.delta) == (estimator.epsilon, estimator.delta)
    assert sum(release.share for release in plan.releases) == pytest.approx(1)


# What the estimators read rows with, in whatever module they have imported it.
READERS = {
    "clip_rows",
    "sum_over_rows",
    "exact_moments",
    "plain_moments",
    "pair_codes",
    "over_blocks",
    "records_in_cells",
    "count_rows",
}


@every_single_fit
def test_nothing_is_computed_when_the_budget_is_too_small(estimator, monkeypatch):
    def touched(*args, **kwargs):
        raise AssertionError("the data were used")

    for name, module in list(sys.modules.items()):
        if name.startswith("skdp."):
            for reader in READERS & set(vars(module)):
                monkeypatch.setattr(module, reader, touched)
    with pytest.raises(AssertionError):
        declared(estimator).fit(*data_for(estimator))
    accountant = BudgetAccountant(epsilon=1.0, delta=1e-6)
    model = declared(estimator, accountant=accountant)
    with pytest.raises(BudgetError, match="does not admit"):
        model.fit(*data_for(estimator))
    assert len(accountant) == 0
    with pytest.raises(NotFittedError):
        output(model, data_for(estimator)[0])


def names_of(X):
    """Names for columns."""
    return list("abcde"[: X.shape[1]])


def others(X, y):
    """Data of another shape than X, with other names."""
    return pd.DataFrame(1 + X[:90, :3], columns=list("uvw")), y[:90]


@every_estimator
@pytest.mark.parametrize("how", ["refused", "interrupted", "bad data"])
def test_a_fit_that_fails_leaves_the_estimator_as_it_was(estimator, how, monkeypatch):
    X, y = data_for(estimator)
    frame = pd.DataFrame(X, columns=names_of(X))
    accountant = BudgetAccountant(1e-3) if how == "refused" else wide_accountant()
    other, target = others(X, y)
    if isinstance(estimator, DPTableGenerator):
        if how == "bad data":
            pytest.skip("missing values have a cell")
        other = 1 + frame
    error = {"refused": BudgetError, "interrupted": KeyboardInterrupt, "bad data": ValueError}[how]
    if how == "bad data":
        other.iloc[2, 1] = NAN

    def interrupted(*args):
        raise KeyboardInterrupt

    for model in (declared(estimator), declared(estimator).fit(frame, y)):
        fitted = hasattr(model, "privacy_")
        said = every_output(model, frame, y) if fitted else None
        model.set_params(accountant=accountant)
        before = dict(vars(model))
        with monkeypatch.context() as patch:
            if how == "interrupted":
                patch.setattr(ReleaseSession, "release", interrupted)
                patch.setattr(ReleaseSession, "steps", interrupted)
            with pytest.raises(error):
                model.fit(other, target)
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is before[name] for name in before)
        if fitted:
            assert model.feature_names_in_.tolist() == names_of(X)
            again = every_output(model, frame, y)
            for name in said:
                np.testing.assert_array_equal(again[name], said[name])
        else:
            assert not hasattr(model, "n_features_in_")


@every_single_fit
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, RuntimeError])
def test_charge_precedes_noise_and_is_never_refunded(estimator, error, monkeypatch):
    def fail(self, label):
        raise error

    monkeypatch.setattr(NoiseSource, "stream", fail)
    accountant = wide_accountant()
    model = declared(estimator, accountant=accountant)
    with pytest.raises(error):
        model.fit(*data_for(estimator))
    assert len(accountant) == 1
    assert not any(hasattr(model, name) for name in RELEASED[type(model).__name__] | {"privacy_"})


@every_estimator
def test_clone_and_copies_share_the_accountant(estimator):
    accountant = wide_accountant()
    model = declared(estimator, accountant=accountant)
    for other in (clone(model), copy.copy(model), copy.deepcopy(model)):
        assert other.accountant is accountant
        other.fit(*data_for(estimator))
    assert len(accountant) == 3


@every_estimator
def test_model_selection_charges_every_fit(estimator):
    X, y = data_for(estimator, n_rows=120)
    accountant = wide_accountant()
    model = declared(estimator, accountant=accountant)
    scoring = None if hasattr(model, "score") else lambda fitted, X, y: float(len(X))
    cross_val_score(make_pipeline(FunctionTransformer(), model), X, y, cv=3, scoring=scoring)
    assert len(accountant) == 3
    GridSearchCV(model, {"epsilon": [1.0, 2.0]}, cv=2, scoring=scoring).fit(X, y)
    assert len(accountant) == 3 + 2 * 2 + 1


@every_estimator
def test_allocate_sets_the_budget(estimator):
    model = declared(estimator)
    # Costs that depend on the columns are known for basic composition only.
    planned = clone(model).set_params(**({"delta": 1e-6} if "delta" in model.get_params() else {}))
    rule = "auto" if planned._fixed_cost() is not None else "basic"
    accountant = BudgetAccountant(2.0, 1e-6, composition=rule)
    allocate(model, epsilon=2.0, delta=1e-6, accountant=accountant)
    # Where several releases are composed, what they cost together is found by search.
    assert model.epsilon == pytest.approx(2.0, rel=1e-3)
    assert np.all(np.isfinite(released(model.fit(*data_for(estimator)))))
    assert len(accountant) == 1


@every_estimator
def test_ceiling_holds_under_threads(estimator):
    X, y = data_for(estimator)
    accountant = BudgetAccountant(epsilon=3 * estimator.epsilon, delta=3 * estimator.delta, composition="basic")
    models = [declared(estimator, accountant=accountant) for _ in range(8)]
    start = threading.Barrier(len(models))
    refused = []

    def fit(model):
        start.wait()
        try:
            model.fit(X, y)
        except BudgetError:
            refused.append(model)

    threads = [threading.Thread(target=fit, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(hasattr(model, "privacy_") for model in models) == len(accountant) == 3
    assert len(refused) == 5


# --- what may be seen ---------------------------------------------------------------------------------------------


@every_estimator
def test_only_declared_attributes(estimator):
    X, y = data_for(estimator)
    model = declared(estimator).fit(pd.DataFrame(X, columns=names_of(X)), y)
    public = public_attributes(model)
    assert set(vars(model)) - set(model.get_params()) == public | RELEASED[type(model).__name__]
    other = declared(estimator).fit(pd.DataFrame(3 + X[:50], columns=names_of(X)), y[:50][::-1])
    for attribute in public:
        assert pickle.dumps(getattr(model, attribute)) == pickle.dumps(getattr(other, attribute))


@every_estimator
def test_pickle_predicts_tells_its_guarantee_and_does_not_grow(estimator):
    if isinstance(estimator, DPTableGenerator):
        pytest.skip("how large a model is follows from the released number of records: see its own tests")
    sizes = set()
    # How large a forest is follows from released counts, unless their number is given.
    given = {"expected_n": 1000} if type(estimator).__name__.startswith("DPRandomTree") else {}
    additive = type(estimator).__name__.startswith("DPAdditive")
    if additive:
        # So does the number of cells of tables.
        given = {"interactions": None}
    for n_rows in (50, 1000):
        X, y = data_for(estimator, n_rows=400 if additive else n_rows)
        if additive:
            # The same rows have the same bins.
            X, y = np.repeat(X, n_rows // 50, axis=0), np.repeat(y, n_rows // 50)
        model = declared(estimator, random_state=0).set_params(**given).fit(X, y)
        sizes.add(len(pickle.dumps(model)))
        other = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(output(model, X), output(other, X))
        assert other.privacy_ == model.privacy_
        assert repr(other.privacy_) == repr(model.privacy_)
    # Integers have a digit more or less.
    assert max(sizes) - min(sizes) < max(50, 0.01 * min(sizes))


@every_estimator
def test_nothing_warns(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Of few records.
        warnings.filterwarnings("ignore", "the released counts|all released quantiles")
        for n_rows in (0, 1, 2, 400):
            X, y = data_for(estimator)
            model = declared(estimator, epsilon=0.01).fit(X[:n_rows], y[:n_rows])
            assert np.all(np.isfinite(released(model)))
            assert np.all(np.isfinite(output(model, X).astype(float)))


@every_estimator
def test_numbers_whose_sum_overflows_are_nothing_to_warn_of(estimator):
    n_features = columns_up_to(estimator, 16)
    X, y = data_for(estimator, n_features=n_features)
    middle = n_features // 2
    X[0, [0, middle]], X[0, [1, middle + 1]] = np.finfo(float).max, -np.finfo(float).max
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Of few records.
        warnings.filterwarnings("ignore", "the released counts|all released quantiles")
        of_many_columns(estimator).fit(X, y)


@every_classifier_that_counts_rows
def test_unknown_labels_leave_no_trace(estimator):
    X, y = data_for(estimator)
    strange = np.concatenate([y, [7] * 40])
    more = np.concatenate([X, 5 + X[:40]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Of few records.
        warnings.filterwarnings("ignore", "the released counts|all released quantiles")
        plain = declared(estimator, random_state=3).fit(X, y)
        mixed = declared(estimator, random_state=3).fit(more, strange)
    np.testing.assert_array_equal(released(plain), released(mixed))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble, np.int8, np.uint64, bool])
def test_labels_are_read_by_their_values_whatever_type_others_give_them(kind):
    # One text among them makes objects of all labels.
    y, classes = np.array([0, 1, 1]).astype(kind), np.array([0, 1])
    np.testing.assert_array_equal(encode_labels(y, classes), [0, 1, 1])
    np.testing.assert_array_equal(encode_labels(np.array([*y, "x"], dtype=object), classes), [0, 1, 1, -1])


def test_labels_of_more_bits_are_rounded_alone_and_among_others():
    y, classes = np.array([np.longdouble("0.1"), np.longdouble("0.5")]), np.array([0.1, 0.5])
    np.testing.assert_array_equal(encode_labels(y, classes), [0, 1])
    np.testing.assert_array_equal(encode_labels(np.array([*y, "x"], dtype=object), classes), [0, 1, -1])


@every_classifier
def test_undeclared_labels_warn_and_declared_ones_do_not(estimator):
    X, y = data_for(estimator)
    with pytest.warns(PrivacyAssumptionWarning, match="classes"):
        clone(estimator).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Of few records.
        warnings.filterwarnings("ignore", "the released counts|all released quantiles")
        declared(estimator).fit(X, y)


@every_estimator
def test_seed_with_a_budget_warns(estimator):
    with pytest.warns(SeededNoiseWarning):
        declared(estimator, accountant=wide_accountant(), random_state=0).fit(*data_for(estimator))


@every_single_fit
def test_structure_has_bits_of_its_own(estimator, monkeypatch):
    # With equal names, what is shown of a structure would tell about the noise of a release.
    structure, noise, inside = [], [], []
    stream, release, steps = NoiseSource.stream, ReleaseSession.release, ReleaseSession.steps

    def note(self, label):
        (noise if inside else structure).append(label)
        return stream(self, label)

    def releasing(self, label, value):
        inside.append(label)
        out = release(self, label, value)
        inside.pop()
        return out

    def stepping(self, label, n_rows, attributes=None):
        inside.append(label)
        out = steps(self, label, n_rows, attributes)
        inside.pop()
        return out

    monkeypatch.setattr(NoiseSource, "stream", note)
    monkeypatch.setattr(ReleaseSession, "release", releasing)
    monkeypatch.setattr(ReleaseSession, "steps", stepping)
    # Without it, the plan reserves a part of the budget for releases that follow from class counts.
    kind = type(estimator).__name__.replace("Regressor", "")
    given = {"DPRandomTree": {"expected_n": 1000}, "DPAdditiveClassifier": {"interactions": None}}.get(kind, {})
    model = declared(estimator).set_params(**given).fit(*data_for(estimator))
    used = structure + noise
    assert len(used) == len(set(used))
    # Steps have a stream of samples, and one of noise.
    stated, drawn = {release.label for release in model.privacy_.releases}, {label.split(":")[0] for label in noise}
    reserved = stated & {"curves and tables", "tables"}
    if reserved:
        # A reserved part of the budget is divided during the fit.
        others = drawn - stated
        assert others
        assert all(
            label.startswith(("gradients", "choice", "table", "counts of columns", "number of records"))
            for label in others
        )
        stated = stated - reserved | others
    assert stated == drawn
    expected = {
        "DPKMeans": 1,
        "SampleAggKMeans": 3,
        "DPRandomTree": 1,
        "DPRandomTreeRegressor": 1,
        # Rows of the model, from a public seed.
        "DPTableGenerator": 1,
        "DPMLPClassifier": 1,
        "DPMLPRegressor": 1,
        "PATEClassifier": 3 + (getattr(model, "student", None) is not None),
        "SampleAggregate": 2,
    }
    assert len(structure) == expected.get(type(model).__name__, 0)


def notes_of_warnings():
    """What Python notes in modules that have warned, but for the version of its filters."""
    notes = {name: getattr(module, "__warningregistry__", {}) for name, module in list(sys.modules.items())}
    return {name: set(note) - {"version"} for name, note in notes.items() if set(note) - {"version"}}


@every_estimator
def test_no_module_remembers_a_warning(estimator):
    X, y = data_for(estimator)
    for data in ((X, y), (np.zeros_like(X), y), (X[:1], y[:1])):
        model = declared(estimator)
        before = notes_of_warnings()
        model.fit(*data)
        assert notes_of_warnings() == before


@one_of_each_classifier
def test_nothing_is_said_about_the_number_of_records(estimator):
    # scikit-learn wonders whether many labels are targets of a regression.
    X, _ = data_for(estimator, n_rows=30)
    if classes_up_to(estimator, 30) < 30:
        pytest.skip("for two classes only")
    model = clone(estimator)
    before = notes_of_warnings()
    with pytest.warns(PrivacyAssumptionWarning) as seen:
        model.fit(X, np.arange(30))
    assert len(seen) == 1
    after = notes_of_warnings()
    for notes in (before, after):
        notes.pop(__name__, None)
    assert after == before


@every_estimator
def test_warnings_point_to_the_call(estimator):
    X, y = data_for(estimator)
    with pytest.warns(SeededNoiseWarning) as seen:
        declared(estimator, accountant=wide_accountant(), random_state=0).fit(X, y)
    if is_classifier(estimator):
        with pytest.warns(PrivacyAssumptionWarning) as more:
            clone(estimator).fit(X, y)
        seen.list.extend(more.list)
    assert {warning.filename for warning in seen} == {__file__}


# --- what must not matter -----------------------------------------------------------------------------------------


# For each parameter, values to set after a fit, among them what a fit would refuse.
LATER = {
    "C": ("auto", 0.01),
    "aggregator": ("mean", "median", "mode"),
    "attributes": (None, ("coef_",)),
    "accountant": (None,),
    "alpha": (None, 2.0),
    "average": (0.0, 1.0),
    "batch_size": (None, 0.5),
    "bin_edges": (None, {0: [-1, 0, 1]}),
    "bounds": (None, (-1.0, 1.0)),
    "bounds_y": (None, (-1.0, 1.0)),
    "calibration": ("lda", "taylor"),
    "categorical_features": (None, [1]),
    "categories": (None, {1: 4}),
    "center": ("none", "private", [0.5] * 5),
    "centered_norm": (None, 0.5),
    "class_weight": (None, {0: 1.0}),
    "classes": (None, [5, 6, 7]),
    "clip": (1.0,),
    "cv": (None, 3),
    "data_norm": (None, 0.5),
    "delta": (0.0, 0.1),
    "dependence": (0.5,),
    "encode": ("ordinal", "onehot"),
    "epochs": (None, 3),
    "epsilon": (0.1, INF),
    "estimator": (None, "none"),
    "eta0": (None, 0.1),
    "expected_n": (None, 7),
    "fit_intercept": (True, False),
    "grid_size": (64,),
    "hidden_layer_sizes": ((), (3, 2)),
    "huber_threshold": (0.5,),
    "interactions": ("auto", None, [(2, 1)]),
    "l1_ratio": (0.5,),
    "label_weights": (None,),
    "learning_rate": ("constant", "auto"),
    "learning_rate_init": ("auto", 1.0),
    "loss": ("log_loss", "huber"),
    "loss_bound": (1.0,),
    "margin": ("auto", 1.0),
    "max_depth": (None, 1),
    "max_features": (None, 1),
    "max_grad_norm": ("auto", 0.1),
    "max_iter": (5,),
    "mean_runs": (None, 2.0),
    "most_cells": (64,),
    "structure": ("tree",),
    "max_queries": (None, 3),
    "max_score": (None, 1.0),
    "max_weight": (None, 2.0),
    "momentum": (0.5,),
    "n_bins": (3,),
    "n_bins_y": (None, 3),
    "n_blocks": (None, 7),
    "n_categories": (None, 2),
    "n_clusters": (2,),
    "n_components": (None, 1),
    "n_estimators": (None, 2),
    "n_jobs": (None, 2),
    "n_steps": (None, 3),
    "n_teachers": (None, 3),
    "n_thresholds": (3,),
    "n_reported": ("all", 1),
    "numeric": ("binned", "gaussian"),
    "param_grid": ({"C": [1.0]},),
    "penalty": (None, "l2"),
    "priors": (None, [0.9, 0.1]),
    "prune": (True, False),
    "public_X": (None, [[0.0] * 5]),
    "radius": (None, 1.0),
    "random_state": (None, 5),
    "reference": ("private", [[0.0] * 5] * 3),
    "refit": (True, False),
    "rows_per_group": (None, 3),
    "schema": (None, "census.toml", {"age": (0, 1)}),
    "scale": ("linear", "symlog"),
    "scoring": ("accuracy", "neg_log_loss"),
    "solver": ("auto", "matrix", "bingham", "gradient"),
    "strategy": ("auto", "holdout"),
    "structure_seed": (3,),
    "student": (None, "none"),
    "teacher": (None, "none"),
    "thresholds": ("uniform", "quantile"),
    "tol": (1e-3,),
    "unit": (2.0,),
    "validation_fraction": (0.5,),
    "var_smoothing": (0.1,),
    "variance_share": (0.0, 0.3),
    "verbose": (0, 1),
    "weights": ("newton", "equal"),
    "whiten": (True, False),
}

# What is done with rows, by a public number, as the parameter says at the time.
READ_LATER = {("DPStandardScaler", "clip"), ("DPQuantileBinner", "encode")}


@every_estimator
def test_parameters_do_not_matter_after_a_fit(estimator):
    X, y = data_for(estimator)
    model = declared(estimator).fit(pd.DataFrame(X, columns=names_of(X)), y)
    rows = pd.DataFrame(X[:20], columns=names_of(X))
    said = every_output(model, rows, y[:20])
    for name, own in model.get_params(deep=False).items():
        if (type(model).__name__, name) in READ_LATER:
            continue
        searched = is_search(model) and name == "estimator"
        for value in [ObjPertLogReg(data_norm=1.0)] if searched else LATER[name]:
            again = every_output(model.set_params(**{name: value}), rows, y[:20])
            assert again.keys() == said.keys(), (name, value)
            for method in said:
                np.testing.assert_array_equal(again[method], said[method], err_msg=f"{name}={value}: {method}")
        model.set_params(**{name: own})


@every_classifier
def test_labels_may_be_anything(estimator):
    X, y = data_for(estimator, 3)
    reference = declared(estimator, 3, random_state=1).fit(X, y)
    n_classes = classes_up_to(estimator, 3)
    names = np.array(["ash", "beech", "cedar"])
    declared_names = names[:n_classes]
    for labels, classes in [
        (names[y], declared_names[::-1].tolist()),
        (names[y].astype(object), declared_names),
        (pd.Series(names[y]), declared_names.tolist()),
        (y - 1.0, [-1, 0, 1][:n_classes]),
    ]:
        other = declared(estimator, classes=classes, random_state=1).fit(X, labels)
        np.testing.assert_array_equal(released(other), released(reference))
        np.testing.assert_array_equal(other.predict(X), np.sort(np.asarray(classes))[reference.predict(X)])


@every_estimator
def test_same_seed_same_noise_and_no_seed_new_noise(estimator):
    X, y = data_for(estimator)
    # Four blocks within (-40, 40): at a small epsilon nearly every entry is clipped to an end. Curves that noise hides
    # are zeros.
    epsilon = 50.0 if isinstance(estimator, SampleAggregate | DPAdditiveRegressor) else 0.5

    def fit(seed):
        return released(declared(estimator, epsilon=epsilon, random_state=seed).fit(X, y))

    def differ(one, other):
        # Parts may be public, such as the cells of additive models, or clipped to 0 in both.
        least = 0.005 if isinstance(estimator, DPAdditiveClassifier | DPAdditiveRegressor) else 0.25
        return one.shape != other.shape or np.mean(one != other) > least

    np.testing.assert_array_equal(fit(5), fit(5))
    assert differ(fit(5), fit(6))
    assert differ(fit(None), fit(None))
    np.testing.assert_array_equal(fit(np.random.RandomState(4)), fit(np.random.RandomState(4)))
    np.testing.assert_array_equal(fit(np.random.default_rng(4)), fit(np.random.default_rng(4)))
    # The global generator is not where noise comes from.
    np.random.seed(0)  # noqa: NPY002
    before = fit(None)
    np.random.seed(0)  # noqa: NPY002
    assert differ(before, fit(None))


@every_estimator
@pytest.mark.parametrize("n_rows", [0, 1])
def test_smallest_data_sets_are_fitted(estimator, n_rows):
    X, y = data_for(estimator, n_rows=10)
    model = declared(estimator).fit(X[:n_rows], y[:n_rows])
    assert np.all(np.isfinite(released(model)))
    assert len(output(model, X)) == 10


@every_classifier
def test_one_class_is_refused_unless_labels_are_declared(estimator):
    X, _ = data_for(estimator)
    y = np.ones(len(X), dtype=int)
    with pytest.raises(ValueError, match="1 class"):
        clone(estimator).fit(X, y)
    assert declared(estimator).fit(X, y).classes_.tolist() == [0, 1]


@every_estimator
def test_more_columns_than_rows(estimator):
    n_features = columns_up_to(estimator, 60)
    n_rows = min(10, n_features - 1)
    X, y = data_for(estimator, n_rows=n_rows, n_features=n_features)
    if isinstance(estimator, HISTOGRAMS):
        pytest.skip("a histogram of so many columns has too many cells, and is refused: see its own tests")
    model = declared(estimator).fit(X, y)
    assert model.n_features_in_ == n_features
    assert len(output(model, X)) == n_rows


@every_classifier
def test_probabilities(estimator):
    X, y = data_for(estimator, 3)
    model = declared(estimator, 3).fit(X, y)
    if not hasattr(model, "predict_proba"):
        pytest.skip("no probabilities belong to this loss")
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert np.all(probabilities >= 0)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), probabilities, atol=1e-12)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize("estimator", [one for one in ONE_EACH if not is_search(one)], ids=name_of)
@pytest.mark.parametrize("reaction", ["raise", "warn"])
def test_floating_point_errors_of_numpy_are_not_shown(estimator, reaction):
    """A user may ask NumPy to warn of subnormal numbers: one record could be told from others by that."""
    X, y = data_for(estimator)
    odd = np.array(X, dtype=np.float64)
    odd[:3] = [[5e-324], [1e308], [-1e-310]]
    odd = np.abs(odd).round() if is_local(estimator) and "categories" in estimator.get_params() else odd
    targets = y if is_classifier(estimator) else np.where(np.arange(len(y)) < 3, 5e-324, y)
    with np.errstate(all=reaction):
        model = declared(estimator).fit(odd, targets)
        output(model, X)
