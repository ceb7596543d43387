"""skdp's own rules, for every classifier: what is charged, when, what may be seen, and what must not matter."""

import copy
import pickle
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from skdp import BudgetAccountant
from skdp.exceptions import BudgetError, PrivacyAssumptionWarning, SeededNoiseWarning
from skdp.linear_model import _logistic
from skdp.mechanisms import NoiseSource
from tests.estimators import CLASSIFIERS, FITTED_ATTRIBUTES, name_of
from tests.linear_model.data import blobs

every_classifier = pytest.mark.parametrize("estimator", CLASSIFIERS, ids=name_of)


def declared(estimator, n_classes=2, **parameters):
    """A copy that neither warns nor depends on labels."""
    return clone(estimator).set_params(classes=list(range(n_classes)), **parameters)


# --- the budget ---------------------------------------------------------------------------------------------------


@every_classifier
def test_charge_equals_plan(estimator):
    X, y = blobs(3)
    accountant = BudgetAccountant(epsilon=1e5, delta=0.5, composition="basic")
    model = declared(estimator, 3, accountant=accountant).fit(X, y)
    (record,) = accountant.records
    plan = model.privacy_plan(n_features=X.shape[1])
    assert record.cost == plan.cost == model.privacy_.cost
    assert model.privacy_ == plan
    assert record.estimator == type(model).__name__
    assert len(record.releases) == len(plan.releases)
    assert accountant.total() == (model.epsilon, model.delta)


@every_classifier
def test_plan_states_the_parameters_guarantee_and_uses_all_of_it(estimator):
    plan = declared(estimator).privacy_plan(n_features=7)
    assert (plan.epsilon, plan.delta) == (estimator.epsilon, estimator.delta)
    assert sum(release.share for release in plan.releases) == pytest.approx(1)


@every_classifier
def test_nothing_is_computed_when_the_budget_is_too_small(estimator, monkeypatch):
    def touched(*args, **kwargs):
        raise AssertionError("the data were used")

    monkeypatch.setattr(_logistic, "clip_rows", touched)
    accountant = BudgetAccountant(epsilon=1.0, delta=1e-6)
    model = declared(estimator, accountant=accountant)
    with pytest.raises(BudgetError, match="remains"):
        model.fit(*blobs())
    assert len(accountant) == 0
    with pytest.raises(NotFittedError):
        model.predict(blobs()[0])


@every_classifier
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, RuntimeError])
def test_charge_precedes_noise_and_is_never_refunded(estimator, error, monkeypatch):
    def fail(self, label):
        raise error

    monkeypatch.setattr(NoiseSource, "stream", fail)
    accountant = BudgetAccountant(epsilon=1e5, delta=0.5, composition="basic")
    model = declared(estimator, accountant=accountant)
    with pytest.raises(error):
        model.fit(*blobs())
    assert len(accountant) == 1
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "privacy_")


@every_classifier
def test_clone_and_copies_share_the_accountant(estimator):
    accountant = BudgetAccountant(epsilon=1e5, delta=0.5, composition="basic")
    model = declared(estimator, accountant=accountant)
    for other in (clone(model), copy.copy(model), copy.deepcopy(model)):
        assert other.accountant is accountant
        other.fit(*blobs())
    assert len(accountant) == 3


@every_classifier
def test_model_selection_charges_every_fit(estimator):
    X, y = blobs()
    accountant = BudgetAccountant(epsilon=1e5, delta=0.5, composition="basic")
    model = declared(estimator, accountant=accountant)
    cross_val_score(make_pipeline(MaxAbsScaler(), model), X, y, cv=5)
    assert len(accountant) == 5
    GridSearchCV(model, {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    assert len(accountant) == 5 + 2 * 3 + 1


@every_classifier
def test_ceiling_holds_under_threads(estimator):
    X, y = blobs()
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
    assert sum(hasattr(model, "coef_") for model in models) == len(accountant) == 3
    assert len(refused) == 5


@every_classifier
def test_more_epsilon_never_means_more_noise(estimator):
    # Relative to the weight C, because C="auto" moves with epsilon.
    noise = []
    for epsilon in np.logspace(-3, 2, 21):
        model = declared(estimator, epsilon=float(epsilon), C="auto")
        plan = model.privacy_plan(n_features=6)
        noise.append(plan.releases[0].mechanism.scale / plan.releases[0].sensitivity)
    assert np.all(np.diff(noise) < 0)


@every_classifier
def test_more_delta_never_means_more_noise(estimator):
    if estimator.delta == 0:
        pytest.skip("pure variant")
    noise = []
    for delta in np.logspace(-15, -2, 14):
        plan = declared(estimator, epsilon=1.0, delta=float(delta)).privacy_plan(n_features=6)
        noise.append(plan.releases[0].mechanism.scale / plan.releases[0].sensitivity)
    assert np.all(np.diff(noise) < 0)


# --- what may be seen ---------------------------------------------------------------------------------------------


@every_classifier
def test_only_declared_attributes(estimator):
    X, y = blobs()
    model = declared(estimator).fit(pd.DataFrame(X, columns=list("abcde")), y)
    assert set(vars(model)) - set(model.get_params()) == FITTED_ATTRIBUTES[type(model).__name__]
    public = {"classes_", "n_features_in_", "feature_names_in_", "C_", "privacy_"}
    other = declared(estimator).fit(pd.DataFrame(3 + 10 * X[:50], columns=list("abcde")), 1 - y[:50])
    for attribute in public:
        np.testing.assert_array_equal(getattr(model, attribute), getattr(other, attribute))


@every_classifier
def test_pickle_does_not_grow_with_the_rows(estimator):
    sizes = {len(pickle.dumps(declared(estimator, random_state=0).fit(*blobs(n_rows=n)))) for n in (50, 5000)}
    assert max(sizes) - min(sizes) < 50


@every_classifier
def test_pickled_model_predicts_and_tells_its_guarantee(estimator):
    X, y = blobs()
    model = declared(estimator).fit(X, y)
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    assert other.privacy_ == model.privacy_
    assert repr(other.privacy_) == repr(model.privacy_)


@every_classifier
def test_messages_hold_no_data(estimator):
    secret = "patient-7731"
    X, _ = blobs(n_rows=20)
    text = X.astype(object)
    text[3, 1] = secret
    infinite = X.copy()
    infinite[3, 1] = np.inf
    labels = np.array(["a", "b"] * 10)
    attempts = [
        (clone(estimator), X, np.array([secret] * 20)),
        (clone(estimator).set_params(classes=[0, 1]), X, np.array([secret, "b"] * 10)),
        (clone(estimator).set_params(classes=["a", "b"]), text, labels),
        (clone(estimator).set_params(classes=["a", "b"]), infinite, labels),
    ]
    for model, data, target in attempts:
        with pytest.raises((ValueError, TypeError)) as failure:
            model.fit(data, target)
        assert secret not in str(failure.value)
        assert "7731" not in str(failure.value)
        assert failure.value.__cause__ is None


@every_classifier
def test_unknown_labels_leave_no_trace(estimator):
    X, y = blobs()
    strange = np.concatenate([y, [7] * 40])
    more = np.concatenate([X, 5 + X[:40]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = declared(estimator, random_state=3).fit(X, y)
        mixed = declared(estimator, random_state=3).fit(more, strange)
    np.testing.assert_array_equal(plain.coef_, mixed.coef_)


@every_classifier
def test_undeclared_labels_warn_and_declared_ones_do_not(estimator):
    X, y = blobs()
    with pytest.warns(PrivacyAssumptionWarning, match="classes"):
        clone(estimator).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        declared(estimator).fit(X, y)


@every_classifier
def test_seed_with_a_budget_warns(estimator):
    accountant = BudgetAccountant(epsilon=1e5, delta=0.5, composition="basic")
    with pytest.warns(SeededNoiseWarning):
        declared(estimator, accountant=accountant, random_state=0).fit(*blobs())


# --- what must not matter -----------------------------------------------------------------------------------------


@every_classifier
def test_form_of_the_data_does_not_matter(estimator):
    X = np.round(blobs()[0] * 4)
    y = blobs()[1]
    reference = declared(estimator, random_state=1).fit(X, y).coef_
    read_only = X.copy()
    read_only.flags.writeable = False
    forms = [X.tolist(), X.astype(np.float32), X.astype(np.int64), np.asfortranarray(X), read_only, pd.DataFrame(X)]
    for form in forms:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            other = declared(estimator, random_state=1).fit(form, y).coef_
        np.testing.assert_allclose(other, reference, rtol=1e-12, atol=1e-12)


@every_classifier
def test_labels_may_be_anything(estimator):
    X, y = blobs(3)
    reference = declared(estimator, 3, random_state=1).fit(X, y)
    names = np.array(["ash", "beech", "cedar"])
    for labels, classes in [
        (names[y], ["cedar", "ash", "beech"]),
        (names[y].astype(object), names),
        (pd.Series(names[y]), names.tolist()),
        (y - 1.0, [-1, 0, 1]),
    ]:
        other = clone(estimator).set_params(classes=classes, random_state=1).fit(X, labels)
        np.testing.assert_array_equal(other.coef_, reference.coef_)
        np.testing.assert_array_equal(other.predict(X), np.sort(np.asarray(classes))[reference.predict(X)])


@every_classifier
def test_same_seed_same_noise_and_no_seed_new_noise(estimator):
    X, y = blobs()

    def fit(seed):
        return declared(estimator, random_state=seed).fit(X, y).coef_

    np.testing.assert_array_equal(fit(5), fit(5))
    assert np.all(fit(5) != fit(6))
    assert np.all(fit(None) != fit(None))
    np.testing.assert_array_equal(fit(np.random.RandomState(4)), fit(np.random.RandomState(4)))
    np.testing.assert_array_equal(fit(np.random.default_rng(4)), fit(np.random.default_rng(4)))


@every_classifier
def test_global_seed_does_not_reach_the_noise(estimator):
    X, y = blobs()

    def fit():
        np.random.seed(0)  # noqa: NPY002
        return declared(estimator).fit(X, y).coef_

    assert np.all(fit() != fit())


@every_classifier
@pytest.mark.parametrize("n_rows", [0, 1])
def test_smallest_data_sets_are_fitted_when_labels_are_declared(estimator, n_rows):
    X, y = blobs(n_rows=10)
    model = declared(estimator).fit(X[:n_rows], y[:n_rows])
    assert np.all(np.isfinite(model.coef_))
    assert model.predict(X).shape == (10,)


@every_classifier
def test_one_class_is_refused_unless_labels_are_declared(estimator):
    X, _ = blobs()
    y = np.ones(len(X), dtype=int)
    with pytest.raises(ValueError, match="1 class"):
        clone(estimator).fit(X, y)
    assert declared(estimator).fit(X, y).classes_.tolist() == [0, 1]


@every_classifier
@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e200, 1e307])
def test_extreme_magnitudes_stay_finite(estimator, scale):
    X, y = blobs()
    model = declared(estimator, data_norm=1.0).fit(X / np.abs(X).max() * scale, y)
    assert np.all(np.isfinite(model.coef_))


@every_classifier
def test_more_columns_than_rows(estimator):
    rng = np.random.default_rng(0)
    model = declared(estimator).fit(rng.normal(size=(10, 60)), np.arange(10) % 2)
    assert model.coef_.shape == (1, 60)


@every_classifier
def test_probabilities_belong_to_the_log_loss(estimator):
    X, y = blobs(3)
    model = declared(estimator, 3).fit(X, y)
    assert hasattr(model, "predict_proba") == (model.loss == "log_loss")
    if model.loss == "log_loss":
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X), atol=1e-12)


# --- bad input: a clear error, and nothing spent ------------------------------------------------------------------

NAN, INF = float("nan"), float("inf")

BAD_PARAMETERS = [
    *[("epsilon", value, ValueError) for value in (0, 0.0, -1, NAN, -INF, 5e-324, 1e300)],
    *[("epsilon", value, TypeError) for value in ("1", None, [1.0], True, 1j, np.array([1.0, 2.0]))],
    *[("delta", value, ValueError) for value in (NAN, -1e-9, 1, 1.0, 1.5)],
    *[("delta", value, TypeError) for value in ("x", None, False)],
    *[("data_norm", value, ValueError) for value in (None, NAN, INF, 0, -1, 5e-324, 1e200)],
    *[("data_norm", value, TypeError) for value in ("1", [1.0], True)],
    *[("C", value, ValueError) for value in (0, -1, NAN, INF)],
    *[("C", value, TypeError) for value in ("automatic", None, True)],
    ("loss", "hinge", ValueError),
    ("loss", 3, ValueError),
    ("fit_intercept", "yes", TypeError),
    ("fit_intercept", 1, TypeError),
    *[("tol", value, ValueError) for value in (0, -1e-6, NAN, 1.0)],
    *[("max_iter", value, ValueError) for value in (0, -1)],
    *[("max_iter", value, TypeError) for value in (2.5, "9", True)],
    *[("classes", value, ValueError) for value in ([0], [], [0, 0, 1], [0.0, NAN], [[0, 1]], ["a", None])],
    ("random_state", "abc", ValueError),
    ("random_state", -1, ValueError),
    ("random_state", 0.5, ValueError),
]


@pytest.mark.parametrize("estimator", CLASSIFIERS[::4], ids=name_of)
@pytest.mark.parametrize(("name", "value", "error"), BAD_PARAMETERS, ids=lambda p: str(p)[:20])
def test_bad_parameter_is_named_and_costs_nothing(estimator, name, value, error):
    accountant = BudgetAccountant(epsilon=1e5, delta=0.5, composition="basic")
    model = declared(estimator, accountant=accountant).set_params(**{name: value})
    with pytest.raises(error, match=name):
        model.fit(*blobs())
    if name not in ("random_state",):
        with pytest.raises(error, match=name):
            model.privacy_plan(n_features=3)
    assert len(accountant) == 0


@pytest.mark.parametrize("estimator", CLASSIFIERS[::4], ids=name_of)
@pytest.mark.parametrize("accountant", ["me", 1.0, BudgetAccountant], ids=str)
def test_accountant_of_the_wrong_type(estimator, accountant):
    with pytest.raises(TypeError, match="accountant"):
        declared(estimator, accountant=accountant).fit(*blobs())


def bad_data():
    X, y = blobs(n_rows=12)
    holed = X.copy()
    holed[2, 2] = NAN
    infinite = X.copy()
    infinite[2, 2] = -INF
    yield "nan", holed, y
    yield "infinity", infinite, y
    yield "one dimension", X[:, 0], y
    yield "three dimensions", X[None], y
    yield "no columns", X[:, :0], y
    yield "complex", X.astype(complex), y
    yield "text", np.full(X.shape, "a"), y
    yield "short y", X, y[:-1]
    yield "no y", X, None
    yield "two columns of y", X, np.column_stack([y, y])
    yield "y not finite", X, np.where(y == 1, NAN, 0.0)


@pytest.mark.parametrize("estimator", CLASSIFIERS[::4], ids=name_of)
@pytest.mark.parametrize(("X", "y"), [case[1:] for case in bad_data()], ids=[case[0] for case in bad_data()])
def test_bad_data_costs_nothing(estimator, X, y):
    accountant = BudgetAccountant(epsilon=1e5, delta=0.5, composition="basic")
    with pytest.raises((ValueError, TypeError)):
        declared(estimator, accountant=accountant).fit(X, y)
    assert len(accountant) == 0


@pytest.mark.parametrize("estimator", CLASSIFIERS[::4], ids=name_of)
def test_empty_data_without_declared_labels(estimator):
    accountant = BudgetAccountant(epsilon=1e5, delta=0.5, composition="basic")
    with pytest.raises(ValueError, match="0 sample"):
        clone(estimator).set_params(accountant=accountant).fit(np.empty((0, 3)), np.empty(0))
    assert len(accountant) == 0


@pytest.mark.parametrize("estimator", CLASSIFIERS[::4], ids=name_of)
def test_sample_weight_is_not_taken(estimator):
    X, y = blobs()
    with pytest.raises(TypeError, match="sample_weight"):
        declared(estimator).fit(X, y, sample_weight=np.ones(len(X)))


@pytest.mark.parametrize("estimator", CLASSIFIERS[::4], ids=name_of)
def test_predicting_with_other_columns(estimator):
    X, y = blobs()
    model = declared(estimator).fit(X, y)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.full_like(X, NAN))


@pytest.mark.parametrize("estimator", CLASSIFIERS[::4], ids=name_of)
def test_plan_needs_the_number_of_classes(estimator):
    with pytest.raises(ValueError, match="n_classes"):
        clone(estimator).privacy_plan(n_features=3)
    with pytest.raises(ValueError, match="n_features"):
        clone(estimator).privacy_plan(n_features=0, n_classes=2)
    assert clone(estimator).privacy_plan(n_features=3, n_classes=2) == declared(estimator).privacy_plan(n_features=3)


@pytest.mark.parametrize("estimator", CLASSIFIERS[::4], ids=name_of)
def test_shape_errors_print_no_values(estimator):
    X, y = blobs(n_rows=30)
    X[:] = 77.125
    ragged = [list(row) for row in X]
    ragged[3].pop()
    cases = [(X[:, 0], y), (X + 1j, y), (X, y[:-1]), (X, np.column_stack([y, y])), (X[:, :0], y), (ragged, y)]
    for data, target in cases:
        with pytest.raises(ValueError, match=r"2D array|Complex|same number|1d array|0 feature|same length") as failure:
            declared(estimator).fit(data, target)
        text = str(failure.value) + str(failure.value.__context__)
        assert "77" not in text
        assert "29" not in text
        assert "30" not in text
