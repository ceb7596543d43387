"""skdp's own rules for trees: what is charged, when, what may be seen, and what must not matter."""

import math
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_regressor

from skdp import BudgetAccountant
from skdp.accounting import bounded_range_mu, gaussian_mu
from skdp.mechanisms import NoiseSource, quantile_depth
from tests.estimators import TREES, name_of
from tests.tree.data import MIXED, mixed

INF = math.inf
every = pytest.mark.parametrize("estimator", TREES, ids=name_of)
one_of_each = pytest.mark.parametrize("estimator", TREES[::4], ids=name_of)


def declared(estimator, n_classes=2, **parameters):
    """A copy for the data of these tests that neither warns nor depends on labels."""
    return clone(estimator).set_params(**{**MIXED, **outcomes(estimator, n_classes), **parameters})


def outcomes(estimator, n_classes=2):
    """Declared labels, or bounds of targets."""
    return {"bounds_y": (0, n_classes - 1)} if is_regressor(estimator) else {"classes": list(range(n_classes))}


def predicted(model, X):
    """Probabilities of classes, or numbers."""
    return model.predict(X) if is_regressor(model) else model.predict_proba(X)


def wide_accountant():
    return BudgetAccountant(epsilon=1e8, delta=0.5, composition="basic")


# --- the budget ---------------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("epsilon", [0.1, 3.0, INF])
def test_charge_equals_plan(estimator, epsilon):
    X, y = mixed(n_classes=3)
    accountant = BudgetAccountant(epsilon=INF, delta=0.5, composition="basic")
    model = declared(estimator, 3, accountant=accountant, epsilon=epsilon).fit(X, y)
    (record,) = accountant.records
    plan = model.privacy_plan(n_features=4)
    assert record.cost == plan.cost == model.privacy_.cost
    assert model.privacy_ == plan
    assert record.estimator == type(model).__name__
    assert [r.label for r in record.releases] == [r.label for r in plan.releases]
    assert accountant.total() == (epsilon, model.delta)


@every
def test_plan_composes_to_the_stated_guarantee_and_uses_all_of_it(estimator):
    plan = declared(estimator, epsilon=1.0).privacy_plan(n_features=4)
    assert (plan.epsilon, plan.delta) == (1.0, estimator.delta)
    assert sum(release.share for release in plan.releases) == pytest.approx(1)
    if estimator.delta:
        assert plan.cost.mu() == pytest.approx(gaussian_mu(1.0, estimator.delta), rel=1e-9)
    else:
        assert sum(event.epsilon for event in plan.events) == pytest.approx(1.0)


@every
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, RuntimeError])
def test_charge_precedes_noise_and_is_never_refunded(estimator, error, monkeypatch):
    whole = NoiseSource.stream

    def fail(self, label):
        if label == "leaf counts":
            raise error
        return whole(self, label)

    monkeypatch.setattr(NoiseSource, "stream", fail)
    accountant = wide_accountant()
    model = declared(estimator, accountant=accountant)
    with pytest.raises(error):
        model.fit(*mixed())
    assert len(accountant) == 1
    assert not hasattr(model, "leaf_counts_")
    assert not hasattr(model, "privacy_")


@every
def test_more_epsilon_never_means_more_noise(estimator):
    scales = []
    # More epsilon may also mean more trees, or deeper ones.
    fixed = {"n_estimators": 4} if "n_estimators" in estimator.get_params() else {"max_depth": 5}
    for epsilon in np.logspace(-3, 2, 11):
        plan = declared(estimator, epsilon=float(epsilon), **fixed).privacy_plan(n_features=4)
        scales.append([release.mechanism.scale for release in plan.releases])
    assert np.all(np.diff(scales, axis=0) < 0)


@every
def test_missing_bounds_are_refused(estimator):
    for parameter, match in (("bounds", "bounds"), ("n_categories", "n_categories")):
        model = declared(estimator).set_params(**{parameter: None})
        with pytest.raises(ValueError, match=match):
            model.fit(*mixed())
        with pytest.raises(ValueError, match=match):
            model.privacy_plan(n_features=4)


# --- what must not matter -----------------------------------------------------------------------------------------


@every
def test_form_of_the_data_does_not_matter(estimator):
    X, y = mixed()
    X = np.round(X * 8) / 8
    reference = declared(estimator, random_state=1).fit(X, y)
    read_only = X.copy()
    read_only.flags.writeable = False
    for form in (X.tolist(), X.astype(np.float32), np.asfortranarray(X), read_only, pd.DataFrame(X)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # Of few records.
            warnings.filterwarnings("ignore", "the released counts|all released quantiles")
            other = declared(estimator, random_state=1).fit(form, y)
        np.testing.assert_array_equal(other.leaf_counts_, reference.leaf_counts_)
        np.testing.assert_array_equal(predicted(other, form), predicted(reference, X))


@every
def test_order_of_the_rows_does_not_matter(estimator):
    X, y = mixed(5000)
    order = np.random.default_rng(0).permutation(len(y))
    one, other = (declared(estimator, random_state=1).fit(*data) for data in ((X, y), (X[order], y[order])))
    np.testing.assert_array_equal(one.leaf_counts_, other.leaf_counts_)
    np.testing.assert_array_equal(predicted(one, X), predicted(other, X))


@every
def test_memory_mapped_rows_are_read_in_blocks(estimator, tmp_path):
    X, y = mixed(100_000)
    np.save(tmp_path / "X.npy", np.tile(X, (1, 5)))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = clone(estimator).set_params(**outcomes(estimator), bounds=(0, 3), random_state=0)
    if "n_estimators" in model.get_params():
        model.set_params(n_estimators=10)
    model.fit(mapped[:10], y[:10])
    tracemalloc.start()
    model.fit(mapped, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * mapped.nbytes
    in_memory = clone(model).fit(np.array(mapped), y)
    np.testing.assert_array_equal(model.leaf_counts_, in_memory.leaf_counts_)


@every
@pytest.mark.parametrize("n_rows", [0, 1])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, INF])
def test_smallest_data_sets_are_fitted_when_labels_are_declared(estimator, n_rows, epsilon):
    X, y = mixed(10)
    model = declared(estimator, 3, epsilon=epsilon).fit(X[:n_rows], y[:n_rows])
    proba = predicted(model, X)
    if is_regressor(model):
        assert np.all((proba > 0) & (proba < 2))
        return
    assert np.all(proba > 0)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), proba)
    assert model.predict(X).shape == (10,)


@pytest.mark.filterwarnings("ignore:bounds_y are far too wide")
@every
def test_one_class_and_constant_columns(estimator):
    X, _ = mixed()
    X[:, 0] = 0.5
    model = declared(estimator).fit(X, np.ones(len(X), dtype=int))
    if not is_regressor(model):
        assert np.all(model.predict(X) == 1)
    assert np.all(predicted(model, X)[..., -1] > 0.95)


@every
@pytest.mark.parametrize("scale", [-1e307, 1e-310, 1e307])
def test_extreme_magnitudes_stay_finite(estimator, scale):
    X, y = mixed()
    model = declared(estimator).fit(X * scale, y)
    assert np.all(np.isfinite(predicted(model, X * scale)))


@every
def test_values_beyond_the_bounds_count_as_the_bounds(estimator):
    X, y = mixed()
    far = X.copy()
    far[:, [0, 2]] = 9 * far[:, [0, 2]] - 4
    near = far.copy()
    near[:, [0, 2]] = np.clip(near[:, [0, 2]], 0, 1)
    one, other = (declared(estimator, random_state=0).fit(data, y) for data in (far, near))
    np.testing.assert_array_equal(one.leaf_counts_, other.leaf_counts_)


@every
@pytest.mark.parametrize("depth", [0, 1, 8])
def test_any_depth(estimator, depth):
    X, y = mixed()
    model = declared(estimator, max_depth=depth).fit(X, y)
    assert model.leaf_counts_.shape[1] == 2**depth
    assert predicted(model, X).shape == ((len(X),) if is_regressor(model) else (len(X), 2))
    assert np.all((model.apply(X) >= 0) & (model.apply(X) < 2**depth))


BAD = [
    *[("max_depth", value, ValueError) for value in (-1, 17)],
    *[("max_depth", value, TypeError) for value in (1.5, "5", True)],
    ("bounds", (1, 0), ValueError),
    ("bounds", (0, [1, 1, 1]), ValueError),
    ("bounds", 3, ValueError),
    ("categorical_features", [1, 1], ValueError),
    ("categorical_features", [1, 9], ValueError),
    ("categorical_features", [1, -3], ValueError),
    ("categorical_features", "b", ValueError),
    ("categorical_features", ["b", "x"], ValueError),
    ("categorical_features", [True, True, False], ValueError),
    ("n_categories", [4], ValueError),
    ("n_categories", [4, 0], ValueError),
    ("n_categories", 2.5, TypeError),
    ("n_categories", 10**6, ValueError),
]


@one_of_each
@pytest.mark.parametrize(("name", "value", "error"), BAD, ids=lambda p: str(p)[:20])
def test_bad_parameter_is_named_and_costs_nothing(estimator, name, value, error):
    accountant = wide_accountant()
    model = declared(estimator, accountant=accountant).set_params(**{name: value})
    with pytest.raises(error, match=name):
        model.fit(*mixed())
    assert len(accountant) == 0


OF_FORESTS = [
    *[("n_estimators", value, ValueError) for value in (0, -3, 10**6)],
    *[("n_estimators", value, TypeError) for value in (2.0, "10", True)],
    *[("max_features", value, ValueError) for value in (0, 10**6)],
    ("max_features", 0.5, TypeError),
    ("expected_n", 0, ValueError),
    ("expected_n", 1e4, TypeError),
    ("thresholds", "median", ValueError),
    ("weights", None, ValueError),
    ("structure_seed", -1, ValueError),
    ("structure_seed", None, TypeError),
]

OWN = {
    "DPRandomTree": OF_FORESTS,
    "DPRandomTreeRegressor": [
        *OF_FORESTS,
        *[("bounds_y", value, ValueError) for value in (None, 3.0, (1, 0), ([0, 0], [1, 1]), (0, math.inf))],
    ],
    "DPGreedyTree": [
        ("n_thresholds", 0, ValueError),
        ("n_thresholds", 10**5, ValueError),
        ("n_thresholds", 3.5, TypeError),
        ("prune", 1, TypeError),
    ],
}


@pytest.mark.parametrize(
    ("estimator", "name", "value", "error"),
    [(estimator, *case) for estimator in TREES[::4] for case in OWN[type(estimator).__name__]],
    ids=lambda p: str(p)[:20],
)
def test_bad_parameter_of_its_own_is_named_and_costs_nothing(estimator, name, value, error):
    accountant = wide_accountant()
    model = declared(estimator, accountant=accountant).set_params(**{name: value})
    with pytest.raises(error, match=name):
        model.fit(*mixed())
    with pytest.raises(error, match=name):
        model.privacy_plan(n_features=4)
    assert len(accountant) == 0


@one_of_each
def test_columns_by_position_name_and_mask_are_the_same(estimator):
    X, y = mixed()
    frame = pd.DataFrame(X, columns=list("abcd"))
    fits = [
        declared(estimator, categorical_features=columns, random_state=0).fit(frame, y).leaf_counts_
        for columns in ([1, 3], ["b", "d"], [False, True, False, True], np.array([False, True, False, True]))
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0], other)


@every
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("n_features", [4, 30])
def test_each_mechanism_costs_no_more_than_its_event(estimator, epsilon, n_features):
    model = clone(estimator).set_params(epsilon=epsilon, **outcomes(estimator), bounds=(0, 1))
    plan = model.privacy_plan(n_features=n_features)
    for release, event in zip(plan.releases, plan.events, strict=True):
        mechanism = release.mechanism
        # Choices of a level cost one; cuts of a column cost one a level, and columns add up.
        choices = {"GroupChoices": 1, "GridQuantiles": 0}.get(type(mechanism).__name__)
        if choices is None:
            continue
        choices = choices or quantile_depth(len(mechanism.levels)) * n_features
        if estimator.delta:
            assert math.sqrt(choices) * bounded_range_mu(mechanism.epsilon) <= event.noise_mu * (1 + 1e-12)
        else:
            assert choices * mechanism.epsilon <= event.epsilon * (1 + 1e-12)


@pytest.mark.filterwarnings("ignore:bounds_y are far too wide")
@every
def test_counts_are_right_with_next_to_no_noise(estimator):
    X, y = np.full((200_000, 1), 0.9), np.ones(200_000, dtype=int)
    for epsilon in (1e7, 1e9):
        model = (
            clone(estimator).set_params(epsilon=epsilon, max_depth=0, bounds=(0, 1), **outcomes(estimator)).fit(X, y)
        )
        counts = model.leaf_counts_.reshape(len(model.leaf_counts_), -1).sum(axis=1)
        np.testing.assert_allclose(counts, 200_000, atol=1)


@every
def test_settings_of_numpy_do_not_let_values_speak(estimator):
    model = clone(estimator).set_params(bounds=(0, 1e6), **outcomes(estimator), delta=1e-5, epsilon=1.0)
    with np.errstate(all="raise"):
        for value in (0.5, 1e-310, 5e-324, 1e308):
            model.fit([[value]], [1])
