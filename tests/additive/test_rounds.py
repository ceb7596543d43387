"""Objectives whose records have weights: features, weights, certificates, plans, and what may depend on the data.

Nothing is left to chance: seeds are fixed, and comparisons are exact but for rounding.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from skdp import BudgetAccountant, DPAdditiveClassifier, Number, Schema
from skdp.accounting import gaussian_mu
from skdp.additive import _classifier, _rounds, _rounds_noise, _uncertainty, _weighted
from skdp.additive._groups import Centred, default_weights, mean_squares
from skdp.additive._weighted import WeightedLogLoss, WeightedObjective
from skdp.sensitivity import ClippedRows
from skdp.solvers.certified import Objective, certified_minimizer
from tests.trust.subjects import replaced
from tests.trust.transcripts import transcript

PUBLIC = {"bounds": (0, 100), "categories": {1: [0, 1, 2, 3]}, "n_bins": 6, "classes": [0, 1]}


def table(n_rows, seed=0):
    """Two numbers, one of which is 0 for most, and a category, some of which are unknown."""
    rng = np.random.default_rng(seed)
    skewed = np.where(rng.random(n_rows) < 0.9, 0.0, 100 * rng.random(n_rows))
    X = np.column_stack([rng.integers(101, size=n_rows), rng.integers(5, size=n_rows), skewed])
    score = np.sin(X[:, 0] / 15) + (X[:, 1] == 2) + 2 * (X[:, 2] > 50) - 0.5
    return X, (score + rng.logistic(size=n_rows) > 0).astype(int)


def model(**parameters):
    given = {"epsilon": 1.0, "delta": 1e-5, "fine_cells": {0: 1}, "random_state": 0, "rounds": 2}
    return DPAdditiveClassifier(**PUBLIC | given | parameters)


def parts(n_rows, **parameters):
    """A design, made-up shares of records in its cells, centred features, and codes of rows."""
    own = model(**{"interactions": [(0, 1)], **parameters})
    X, y = table(n_rows)
    checked = own._check_parameters()
    columns, layout, *_ = own._plan(checked, own._declared_shape(checked, 3, 2))[1]
    counts = [10 + np.arange(size) % 7 * 40.0 for size in columns.sizes]
    counts[2][0] = 10_000.0
    shares = layout.probabilities(counts, 1.0)
    weights = default_weights(layout, mean_squares(layout, shares))
    codes = layout.codes(columns.codes(list(X.T)))
    return layout, shares, Centred.of(layout, shares, weights), codes, y


# --- features and weights ---------------------------------------------------------------------------------------------


def test_features_have_mean_0_and_the_stated_mean_square():
    layout, shares, features, _, _ = parts(10)
    total = 0.0
    for t, own in enumerate(shares):
        rows = features.cell_rows(t)
        assert own.sum() == pytest.approx(1)
        np.testing.assert_allclose(own @ rows, 0, atol=1e-12)
        total += own @ (rows**2).sum(axis=1)
        np.testing.assert_allclose((rows**2).sum(axis=1), features.squares[t][:-1], rtol=1e-9, atol=1e-12)
    assert total == pytest.approx(layout.data_norm**2)


def test_no_record_is_longer_than_its_weight_admits():
    layout, _, features, _, _ = parts(10)
    sizes = [size + 1 for size in layout.sizes[:3]]
    every = np.stack([own.ravel() for own in np.meshgrid(*map(np.arange, sizes), indexing="ij")]).astype(np.int32)
    codes = layout.codes(every)
    rows = np.hstack([features.features(codes), np.full((codes.shape[1], 1), layout.constant)])
    lengths, weights = np.linalg.norm(rows, axis=1), features.record_weights(codes)
    assert np.all(weights > 0)
    assert np.all(weights <= 1)
    assert np.all(weights * lengths <= layout.norm)
    assert np.all(weights * lengths**2 <= features.length_ratio * layout.norm**2)
    # Without weights, the bounds would not hold.
    assert lengths.max() > 1.5 * layout.norm
    assert 1 <= features.length_ratio <= 2


def test_weights_depend_on_the_record_alone():
    _, _, features, codes, _ = parts(500)
    every = features.record_weights(codes)
    for i in (0, 17, 499):
        assert features.record_weights(codes[:, [i]])[0] == every[i]
    np.testing.assert_array_equal(features.record_weights(codes[:, ::-1]), every[::-1])


# --- the objective ----------------------------------------------------------------------------------------------------


class Dense(Objective):
    """The objective from rows that are written down."""

    _rows_of_matrix = 0

    def __init__(self, own, features):
        rows = ClippedRows(own.dense(slice(None)), own.norm)
        super().__init__(rows, np.zeros(own.n_rows, dtype=np.intp), own.loss, own.C, own.strong_convexity, own.linear)
        self.target = own.target


def both(n_rows, **parameters):
    layout, _, features, codes, y = parts(n_rows, **parameters)
    rng, loss = np.random.default_rng(1), WeightedLogLoss(0.7)
    target = loss.encode(y)
    target[:, 1], target[:, 2] = features.record_weights(codes), rng.standard_normal(n_rows)
    own = WeightedObjective(features, codes, target, loss, 0.02, 1.3, rng.standard_normal((1, layout.n_features + 1)))
    return own, Dense(own, features)


@pytest.mark.parametrize("n_rows", [0, 1, 129, 20_000])
def test_products_are_those_of_the_features(n_rows):
    own, dense = both(n_rows)
    rng = np.random.default_rng(2)
    theta, weights = rng.standard_normal(own.shape), rng.standard_normal((n_rows, 1))
    np.testing.assert_allclose(own.predictor(theta), dense.predictor(theta), atol=1e-11)
    np.testing.assert_allclose(own.adjoint(weights), dense.adjoint(weights), atol=1e-9)
    z = own.predictor(theta)
    np.testing.assert_allclose(own.gradient(theta, z), dense.gradient(theta, z), atol=1e-9)


@pytest.mark.parametrize("fine", [None, {0: 1}, {0: 1, 2: "log"}])
def test_newton_steps_are_those_of_the_features(fine):
    # Without fine cells and pairs, there are no indicators that are solved for by iteration.
    own, dense = both(3000, fine_cells=fine, interactions=None if fine is None else [(0, 1)])
    rng = np.random.default_rng(3)
    theta, gradient = 0.3 * rng.standard_normal(own.shape), rng.standard_normal(own.shape)
    expected = dense.newton_solver(dense.predictor(theta))(gradient)
    found = own.newton_solver(own.predictor(theta))(gradient)
    assert np.linalg.norm(found - expected) <= (1e-8 if fine is None else 0.02) * np.linalg.norm(expected)


@pytest.mark.parametrize("n_rows", [0, 1, 129, 20_000])
def test_gradients_are_within_what_is_certified(n_rows):
    own, dense = both(n_rows)
    for size in (0.1, 10.0):
        theta = size * np.random.default_rng(3).standard_normal(own.shape)
        exact, slack = dense.precise_gradient(theta)
        found, error = own.certified_gradient(theta)
        assert np.linalg.norm(found - exact) <= error + slack
        np.testing.assert_allclose(own.precise_gradient(theta)[0], exact, atol=1e-12)


def test_minimisers_are_certified():
    # So many rows that the search starts from a part of them.
    own, dense = both(40_000)
    tau = 1e-5 * own.C
    gradient, error = dense.precise_gradient(certified_minimizer(own, tau, 100))
    assert np.linalg.norm(gradient) + error <= tau


def test_without_noise_it_is_logistic_regression_with_weights():
    X, y = table(4000)
    fitted = model(epsilon=math.inf, rounds=1, C=0.5).fit(X, y)
    layout, codes = fitted._layout, fitted._curve_codes(fitted._codes(X))
    shares = layout.probabilities(fitted.cell_counts_, 0.0)
    features = Centred.of(layout, shares, default_weights(layout, mean_squares(layout, shares)))
    Z = np.column_stack([features.features(codes), np.full(len(X), layout.constant)])
    reference = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10, max_iter=5000)
    reference.fit(Z, y, sample_weight=features.record_weights(codes))
    np.testing.assert_allclose(fitted.decision_function(X), reference.decision_function(Z), atol=1e-3)


# --- the plan ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", ["auto", 0, 1, 2])
@pytest.mark.parametrize("thresholds", ["uniform", "quantile"])
def test_parts_are_the_budget(rounds, thresholds):
    own = model(rounds=rounds, thresholds=thresholds, epsilon=0.7)
    plan = own.privacy_plan(n_features=3)
    assert math.fsum(release.share for release in plan.releases) == pytest.approx(1.0)
    squares = math.fsum(event.noise_mu**2 for event in plan.events)
    assert squares <= gaussian_mu(0.7, 1e-5) ** 2
    assert squares >= gaussian_mu(0.7, 1e-5) ** 2 * (1 - 1e-6)
    assert own._fixed_cost() == plan.cost
    assert own.fit(*table(3000)).privacy_ == plan
    budget = BudgetAccountant(0.7, 1e-5)
    with pytest.warns(match="random_state"):
        own.set_params(accountant=budget).fit(*table(3000))
    assert len(budget) == 1


@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("C", ["auto", 1e-4, 1e6])
def test_every_round_is_within_the_theorem(rounds, C):
    own = model(rounds=rounds, C=C)
    found = []
    with replaced(_rounds, "certified_minimizer", lambda true: lambda *args: found.append(args[0]) or true(*args)):
        own.fit(*table(3000))
    engine = own._engine
    assert len(found) == len(engine.rounds) == rounds
    for objective, one in zip(found, engine.rounds, strict=True):
        mechanism = one.mechanisms[0]
        mu = one.mu * math.sqrt(1 - 4e-4)
        norm = own._layout.norm
        assert mechanism.sensitivity == objective.C * norm
        assert mechanism.scale >= objective.C * norm / mu
        q = objective._features.length_ratio
        assert q * objective.C * norm**2 / objective.strong_convexity <= 3.7 * mu
        assert objective.strong_convexity >= 1
        if C == 1e-4:
            assert objective.C == 1e-4


def test_few_records_have_no_weights():
    X, y = table(3000)
    for n_rows, expected in ((100, 0), (3000, 2)):
        plain, auto = model(rounds=expected), model(rounds="auto")
        fits = [one.fit(X[:n_rows], y[:n_rows]) for one in (plain, auto)]
        assert [one.rounds_ for one in fits] == [expected, expected]
        # With two rounds, both draw the same noise.
        if expected:
            np.testing.assert_array_equal(fits[0].decision_function(X), fits[1].decision_function(X))
        scores = fits[1].contributions(X).sum(axis=1) + fits[1].intercept_[0]
        np.testing.assert_allclose(scores, fits[1].decision_function(X), atol=1e-9)
    for n_rows, solver in ((20, "objective"), (400, "gradient")):
        without = model(rounds="auto", fine_cells=None).fit(X[:n_rows], y[:n_rows])
        plain = model(rounds=0, fine_cells=None, solver=solver).fit(X[:n_rows], y[:n_rows])
        assert (without.C_ is None) == (solver == "gradient")
        np.testing.assert_allclose(without.decision_function(X), plain.decision_function(X), atol=1e-6)


def test_two_rounds_are_for_two_classes_and_a_positive_delta():
    X, y = table(3000)
    assert model(delta=0.0).fit(X, y).rounds_ == 0
    assert model(solver="gradient", n_steps=5).fit(X, y).rounds_ == 0
    assert model(classes=[0, 1, 2], n_steps=5).fit(X, y).rounds_ == 0
    assert model(epsilon=math.inf, rounds="auto").fit(X, y).rounds_ == 2
    assert model(epsilon=math.inf, rounds="auto", fine_cells=None).fit(X, y).rounds_ == 2
    for wrong in (3, -1, "two"):
        with pytest.raises((TypeError, ValueError), match="rounds"):
            model(rounds=wrong).privacy_plan(n_features=3)


# --- what may depend on the data --------------------------------------------------------------------------------------


def seen(data, forced=None):
    """The objectives of a fit, for released values that are given; and all that was released."""
    found = []
    with replaced(_rounds, "certified_minimizer", lambda true: lambda *args: found.append(args[0]) or true(*args)):
        released = transcript(model(), data, forced)
    return found, released


def differences():
    """What differs between the objectives of two data sets for the same released values, apart from their records."""
    X, y = table(3000)
    others = table(2500, seed=9)
    data = np.vstack([others[0], X[:1]]), np.append(others[1], y[0])
    first, released = seen((X, y))
    second, _ = seen(data, released)
    found = set()
    for one, other in zip(first, second, strict=True):
        pairs = zip(
            one._features.rows + one._features.shares, other._features.rows + other._features.shares, strict=True
        )
        if any(a is not None and not np.array_equal(a, b) for a, b in pairs):
            found.add("features")
        if one._features.scales != other._features.scales or not np.array_equal(
            one._features.weights, other._features.weights
        ):
            found.add("weights of groups")
        if (one.C, one.strong_convexity, one.loss.margin) != (other.C, other.strong_convexity, other.loss.margin):
            found.add("numbers")
        # The record that both data sets hold.
        if one.target[0, 1] != other.target[-1, 1]:
            found.add("weights of records")
        if one.target[0, 2] != other.target[-1, 2]:
            found.add("scores")
    return found


def test_objectives_depend_on_other_records_through_releases_only():
    assert differences() == set()


def true_counts(true):
    def release_cells(session, columns, X, names, known=None):
        cells = true(session, columns, X, names, known)
        codes = columns.codes(X)
        counts = [np.bincount(own, minlength=n + 1)[:n] + 0.0 for own, n in zip(codes, columns.sizes, strict=True)]
        return replace(cells, counts=counts)

    return release_cells


def scores_before_the_noise(true):
    def solved(fit, *args):
        solutions = []
        note = replaced(
            _rounds, "certified_minimizer", lambda old: lambda *args: solutions.append(old(*args)) or solutions[-1]
        )
        with note:
            after = true(fit, *args)
        return replace(after, theta=solutions[-1][0])

    return solved


@pytest.mark.parametrize(
    ("owner", "name", "mutant", "leak"),
    [
        (_classifier, "release_cells", true_counts, "features"),
        (_rounds.Fitted, "solved", scores_before_the_noise, "scores"),
        (
            _classifier,
            "release_cells",
            lambda true: (
                lambda session, columns, X, names, known: replace(
                    true(session, columns, X, names, known), total=float(len(X[0]))
                )
            ),
            "weights of groups",
        ),
        (
            Centred,
            "record_weights",
            lambda true: lambda self, codes: 0.5 * true(self, codes) / true(self, codes).mean(),
            "weights of records",
        ),
    ],
)
def test_leaks_are_seen(owner, name, mutant, leak):
    with replaced(owner, name, mutant):
        found = differences()
    assert leak in found


# --- fine cells -------------------------------------------------------------------------------------------------------


def test_fine_cells_refine_the_bins():
    X, y = table(3000)
    own = model(fine_cells={0: 1, 2: "log"}).fit(X, y)
    whole = set(np.round(np.linspace(0, 100, 7), 9))
    for j in (0, 2):
        assert whole <= set(np.round(own.bin_edges_[j], 9))
        assert len(own.terms_[j]) == len(own.bin_edges_[j]) - 1 == len(own.cell_counts_[j])
        assert own.bin_edges_[j][[0, -1]].tolist() == [0, 100]
    # Every whole number has a cell of its own.
    cells = np.searchsorted(own.bin_edges_[0][1:-1], np.arange(101), side="right")
    assert len(set(cells.tolist())) == 101
    edges = model(fine_cells={2: [0, 10, 11, 12]}).fit(X, y).bin_edges_[2]
    assert {10, 11, 12} <= set(edges.tolist())


def test_logarithmic_cells():
    X, y = table(300)
    wide = {"bounds": (-1000, 10**6), "categories": {1: 4}}
    edges = model(fine_cells={0: "log"}, **wide).fit(X, y).bin_edges_[0]
    assert len(edges) < 2200
    cells = np.searchsorted(edges[1:-1], [-3, -2, -1, 0, 1, 2, 3, 99, 100, 2e5, 2.03e5, 9e5, 9.2e5], side="right")
    assert np.all(np.diff(cells) > 0)
    middle = edges[(edges > 200) & (edges < 1e5)]
    assert np.max(np.diff(middle) / middle[:-1]) <= 0.01 + 1e-9


def test_a_schema_gives_fine_cells_and_a_cell_for_missing_numbers():
    X, y = table(3000)
    columns = {
        "age": Number(0, 100, step=1),
        "kind": [0, 1, 2, 3],
        "gain": Number(0, 100, scale="log", missing="error"),
        "any": (0, 100),
        "fine": Number(0, 100, step=1e-9),
    }
    schema = Schema(columns, target=[0, 1])
    rows = {"age": [None, *X[1:, 0]], "kind": X[:, 1], "gain": X[:, 2], "any": X[:, 0], "fine": X[:, 0]}
    own = DPAdditiveClassifier(schema=schema, n_bins=6, epsilon=1.0, delta=1e-5, random_state=0).fit(rows, y)
    assert own.rounds_ == 2
    # Bins of numbers without a step, or with a tiny one, and a cell for missing numbers.
    assert [len(own.terms_[j]) for j in (3, 4)] == [7, 7]
    assert own.cell_names_[0][-1] == own.cell_names_[3][-1] == "missing"
    cells = np.searchsorted(own.bin_edges_[0][1:-1], np.arange(101), side="right")
    assert len(set(cells.tolist())) == 101
    assert len(own.terms_[0]) == len(own.cell_names_[0]) == len(own.cell_counts_[0]) == len(own.bin_edges_[0]) - 1
    missing = own.contributions({name: [None if name != "gain" else 5] for name in columns})
    assert missing[0, 0] == own.terms_[0][-1]
    given = DPAdditiveClassifier(schema=schema, fine_cells={}, epsilon=1.0, delta=1e-5, n_bins=6).fit(rows, y)
    assert [len(values) for values in given.terms_] == [7, 6, 6, 7, 7]


def test_fine_cells_that_cannot_be():
    X, y = table(50)
    for wrong, message in (
        ({0: "fine"}, "fine_cells"),
        ({0: -1}, "fine_cells"),
        ({0: [3, 2]}, "fine_cells"),
        ({1: 1}, "categories"),
        ({7: 1}, "does not have"),
        ({0: 1e-9}, "at most"),
    ):
        budget = BudgetAccountant(10.0, 0.1)
        with pytest.raises(ValueError, match=message):
            model(fine_cells=wrong, accountant=budget, random_state=None).fit(X, y)
        assert len(budget) == 0
    with pytest.raises(TypeError, match="fine_cells"):
        model(fine_cells=[1]).fit(X, y)


def test_fine_cells_find_what_bins_hide():
    rng = np.random.default_rng(0)
    x = rng.integers(101, size=20_000).astype(float)
    y = (rng.random(len(x)) < np.where(x % 7 == 0, 0.9, 0.2)).astype(int)
    X = np.column_stack([x, rng.integers(4, size=len(x)), x])
    bins, cells = (model(fine_cells=fine).fit(X, y) for fine in (None, {0: 1}))
    areas = [roc_auc_score(y, one.decision_function(X)) for one in (bins, cells)]
    assert areas[0] < 0.6 < 0.7 < areas[1]


@pytest.mark.parametrize("rounds", [0, 1, 2, "auto"])
def test_bands_have_the_shape_of_the_curves(rounds):
    X, y = table(3000)
    own = model(rounds=rounds, interactions=[(0, 2)], epsilon=0.1 if rounds == "auto" else 2.0).fit(X, y)
    for rows in (None, X[:500]):
        estimates, bounds = own._term_noise(rows)
        for values, estimate, bound in zip(own.terms_, estimates, bounds, strict=True):
            assert estimate.shape == bound.shape == values.shape
            assert np.all(estimate <= bound * (1 + 1e-9))


@pytest.mark.parametrize("rounds", [1, 2])
def test_noise_of_many_features_follows_from_products_of_records(rounds, monkeypatch):
    X, y = table(3000)
    own = model(rounds=rounds, interactions=[(0, 2)], fine_cells={0: 20}).fit(X, y)
    monkeypatch.setattr(_uncertainty, "N_PSEUDO", 80)

    def deviations(most):
        sizes = []
        monkeypatch.setattr(_rounds_noise, "N_PSEUDO", most)
        monkeypatch.setattr(_rounds_noise, "inverse", lambda m: sizes.append(len(m)) or np.linalg.inv(m))
        cells = [np.ravel(values) for found in own._term_noise(X[:90]) for values in found]
        return np.concatenate([*cells, own.noise_std(X[:5]), own.noise_std(X[:0])]), max(sizes)

    n_features = own._layout.n_features
    by_features, of_features = deviations(n_features)
    by_records, of_records = deviations(n_features - 1)
    assert by_records == pytest.approx(by_features, rel=1e-9)
    assert of_features == n_features + 1
    # The matrices are no larger than the number of records, which is limited.
    assert of_records == 90
    assert deviations(40)[1] == 40


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("rounds", [1, 2])
def test_bands_are_as_wide_as_the_noise(rounds):
    X, y = table(4000)
    fits = [model(rounds=rounds, epsilon=3.0, random_state=seed).fit(X, y) for seed in range(40)]
    for values, estimate in zip(
        zip(*(fit.terms_ for fit in fits), strict=True), fits[0]._term_noise(X)[0], strict=True
    ):
        # The second round's weights of groups vary with the first one's noise, which the bands take as given.
        assert 0.6 < np.sqrt(np.mean(np.var(values, axis=0, ddof=1)) / np.mean(estimate**2)) < 2


def test_columns_that_are_almost_constant_have_a_certificate():
    # Weights of groups in which nearly all records share a bin must not grow without bound.
    rng = np.random.default_rng(0)
    X = (rng.random((200_000, 6)) < 1e-5) * 1.0
    y = ((X.sum(axis=1) > 0) ^ (rng.random(len(X)) < 0.01)) * 1
    model = DPAdditiveClassifier(
        epsilon=10.0, delta=1e-8, categories={j: 2 for j in range(6)}, classes=[0, 1], random_state=0
    ).fit(X, y)
    assert model.rounds_ == 2
    assert model.score(X, y) > 0.98


def test_the_bound_on_scores_is_a_function_of_released_numbers():
    rng = np.random.default_rng(1)
    X, y = rng.random((3000, 2)), rng.integers(0, 2, 3000)
    seen = []

    class Watched(_weighted.WeightedObjective):
        def __init__(self, *args):
            super().__init__(*args)
            seen.append((self._largest_start, np.abs(self.target[:, 2]).max()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_weighted, "WeightedObjective", Watched)
        DPAdditiveClassifier(
            bounds=(0, 1), n_bins=4, classes=[0, 1], epsilon=3.0, delta=1e-6, rounds=2, random_state=0
        ).fit(X, y)
    (first, none), (second, largest) = seen[0], seen[-1]
    assert first == none == 0
    # The last bits of both depend on the processor.
    assert second * (1 + 2.0**-40) >= largest > 0


def test_solutions_by_factorisations_and_by_conjugate_gradients_are_equal(monkeypatch):
    rng = np.random.default_rng(4)
    X = rng.random((4000, 3))
    y = (X.sum(axis=1) + rng.logistic(scale=0.2, size=4000) > 1.5).astype(int)
    model = DPAdditiveClassifier(bounds=(0, 1), n_bins=40, classes=[0, 1], epsilon=4.0, delta=1e-6, random_state=0)
    found = []
    for few, time in ((1000, 4e-4), (50, np.inf), (50, 0.0)):
        monkeypatch.setattr(_weighted, "_FEW_FEATURES", few)
        monkeypatch.setattr(_weighted, "_TIME", time)
        found.append(np.concatenate([*clone(model).fit(X, y).terms_]))
    np.testing.assert_allclose(found[1], found[0], rtol=0, atol=1e-6)
    np.testing.assert_array_equal(found[2], found[0])
    assert np.any(found[1] != found[0]), "conjugate gradients have other rounding errors"
