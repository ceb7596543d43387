"""Curves from means of the targets in groups of cells, for ``delta=0``. Seeds are fixed."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score

from skdp import Category, DPAdditiveRegressor, Number, Schema
from skdp.additive._means import MeanEngine, grouped_cells, weights_in_groups
from skdp.additive._terms import Layout


def engine_of(model, **shape):
    parameters = model._check_parameters()
    columns = parameters.table(shape["n_features"], model._names())
    layout = Layout.of(columns, parameters.smoothness(sum(columns.sizes)))
    return MeanEngine.of(1.0, 0.2, layout, columns), layout


def model(**parameters):
    return DPAdditiveRegressor(**{"bounds": (0, 1), "bounds_y": (0, 1), "random_state": 0, **parameters})


@pytest.mark.parametrize("pairs", [None, [(0, 1)]])
def test_a_record_moves_the_sums_by_the_number_of_terms(pairs):
    engine, layout = engine_of(model(interactions=pairs, categories={2: 3}), n_features=3)
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(33, size=400), rng.integers(33, size=400), rng.integers(4, size=400)])
    terms = layout.codes(codes)
    targets = np.concatenate(
        [rng.uniform(-1, 1, 380), [-1, 1, 0, 1e300, -1e300, np.inf, -np.inf, np.nan], np.zeros(12)]
    )
    moved = [
        np.abs(weights_in_groups(engine.groups, engine.sizes, terms[:, [i]], targets[[i]])).sum() for i in range(400)
    ]
    of_all = weights_in_groups(engine.groups, engine.sizes, terms, targets)
    others = weights_in_groups(engine.groups, engine.sizes, terms[:, 1:], targets[1:])
    assert np.abs(of_all - others).sum() == moved[0]
    assert max(moved) == len(layout.terms) <= engine.mechanism.sensitivity <= len(layout.terms) * (1 + 1e-3)
    assert of_all.min() >= 0


def test_cells_after_the_declared_ones_are_groups_of_their_own():
    assert grouped_cells(10, True, 8, 4).tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 5]
    assert grouped_cells(3, False, 2, 8).tolist() == [0, 1, 2]
    engine, _ = engine_of(
        model(bounds=None, bounds_y=None, schema=Schema({"a": (0, 1)}, target=Number(0, 1))), n_features=1
    )
    assert engine.groups[0].max() == 8
    assert engine.sizes == (10,)


def wide(n_columns=30, n_rows=5600):
    """Targets depend on eight of the columns."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n_rows, n_columns))
    y = X[:, :8] @ rng.normal(size=8) + 0.5 * np.sin(6 * X[:, 0]) + 0.3 * rng.normal(size=n_rows)
    return X, (y - y.mean()) / y.std()


def test_thirty_columns():
    """It was 0 from the moments of all cells."""
    X, y = wide()
    scores = [r2_score(y, model(bounds_y=(-5, 5), random_state=seed).fit(X, y).predict(X)) for seed in range(6)]
    assert np.mean(scores) > 0.15
    assert r2_score(y, model(bounds_y=(-5, 5), epsilon=10.0).fit(X, y).predict(X)) > 0.7


def test_correlated_columns_are_not_added_up():
    X, y = wide(8)
    X = np.repeat(X[:, :1], 6, axis=1)
    lone = model(bounds_y=(-5, 5), epsilon=10.0).fit(X[:, :1], y)
    six = model(bounds_y=(-5, 5), epsilon=10.0).fit(X, y)
    assert np.corrcoef(six.predict(X), lone.predict(X[:, :1]))[0, 1] > 0.95
    assert np.std(six.predict(X)) < 1.2 * np.std(lone.predict(X[:, :1]))


def test_columns_without_signal_give_a_constant():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(3000, 10)), rng.uniform(size=3000)
    assert np.std(model().fit(X, y).predict(X)) < 0.1


def test_a_pair_explains_what_its_columns_do_not():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.choice(["x", "y"], 20_000), "b": rng.choice(["u", "v"], 20_000)})
    y = 0.3 * (frame["a"] == "y") + 0.4 * ((frame["a"] == "x") == (frame["b"] == "u")) + rng.uniform(0, 0.2, 20_000)
    schema = Schema({"a": Category(["x", "y"]), "b": Category(["u", "v"])}, target=Number(0, 1))
    fitted = DPAdditiveRegressor(schema=schema, epsilon=3.0, interactions=[("a", "b")], random_state=0).fit(frame, y)
    assert r2_score(y, fitted.predict(frame)) > 0.9
    alone = DPAdditiveRegressor(schema=schema, epsilon=3.0, random_state=0).fit(frame, y)
    assert r2_score(y, alone.predict(frame)) < 0.5


def test_noise_std_is_that_of_repeated_fits():
    X, y = wide(8)
    rows = np.random.default_rng(1).uniform(size=(40, 8))
    fits = [model(bounds_y=(-5, 5), epsilon=3.0, random_state=seed).fit(X, y) for seed in range(60)]
    spread = np.std([fit.predict(rows) for fit in fits], axis=0)
    stated = np.mean([fit.noise_std(rows) for fit in fits], axis=0)
    assert 0.4 < np.median(spread / stated) < 2.5
