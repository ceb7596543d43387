"""The objective from cells is the one from features, and its certificate holds."""

import numpy as np
import pytest

from skdp.additive import DPAdditiveClassifier, _engines
from skdp.additive._objective import CellObjective
from skdp.sensitivity import ClippedRows
from skdp.solvers.certified import Objective, certified_minimizer
from skdp.solvers.losses import LogLoss, MultinomialLogLoss

LOSSES = [LogLoss(0.4), MultinomialLogLoss(3)]


def table(n_rows):
    """Rows of two numbers and a category, some of them unknown."""
    rng = np.random.default_rng(n_rows)
    return np.column_stack([rng.random((n_rows, 2)) * 1.2 - 0.1, rng.integers(5, size=n_rows)])


def model(X, n_classes, **parameters):
    y = np.random.default_rng(0).integers(n_classes, size=len(X))
    given = {"bounds": (0, 1), "categories": {2: [0, 1, 2, 3]}, "interactions": [(0, 2)], "n_bins": 7}
    return DPAdditiveClassifier(**given, classes=np.arange(n_classes), random_state=0, **parameters).fit(X, y)


def both(loss, n_rows, C=2.0):
    """The two objectives, from the same cells."""
    X = table(n_rows)
    fitted, rng = model(X, 2), np.random.default_rng(1)
    layout, codes = (
        fitted._layout,
        fitted._curve_codes(X) if n_rows else np.empty((4, 0), dtype=np.int32),
    )
    labels = rng.integers(loss.outputs + 1, size=n_rows)
    linear = rng.standard_normal((loss.outputs, layout.n_features + 1))
    cells = CellObjective(layout, loss, C, 1.0, linear, codes, labels)
    rows = cells.dense(slice(None))
    assert np.all(np.linalg.norm(rows, axis=1) <= cells.norm)
    return cells, Objective(ClippedRows(rows, cells.norm), labels, loss, C, 1.0, linear)


@pytest.mark.parametrize("n_rows", [0, 1, 129, 20_000])
@pytest.mark.parametrize("loss", LOSSES)
def test_products_are_those_of_the_features(loss, n_rows):
    cells, dense = both(loss, n_rows)
    rng = np.random.default_rng(2)
    theta = rng.standard_normal(cells.shape)
    weights = rng.standard_normal((n_rows, loss.outputs))
    np.testing.assert_allclose(cells.predictor(theta), dense.predictor(theta), atol=1e-12)
    np.testing.assert_allclose(cells.adjoint(weights), dense.adjoint(weights), atol=1e-9)
    np.testing.assert_allclose(cells.gram(weights[:, 0], False), dense.gram(weights[:, 0], False), atol=1e-9)
    np.testing.assert_allclose(cells.gram(weights[:, 0] ** 2, True), dense.gram(weights[:, 0] ** 2, True), atol=1e-9)


@pytest.mark.parametrize("n_rows", [0, 1, 129, 20_000])
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_are_within_what_is_certified(loss, n_rows):
    cells, dense = both(loss, n_rows)
    for size in (0.1, 10.0):
        theta = size * np.random.default_rng(3).standard_normal(cells.shape)
        exact, slack = dense.precise_gradient(theta)
        found, error = cells.certified_gradient(theta)
        assert np.linalg.norm(found - exact) <= error + slack
        assert error <= 2 * dense.certified_gradient(theta)[1], "the bound is of the same size"
        np.testing.assert_array_equal(cells.precise_gradient(theta)[0], exact)


@pytest.mark.parametrize("loss", LOSSES)
def test_minimisers_are_certified(loss):
    # So many rows that the search starts from a part of them.
    cells, dense = both(loss, 40_000)
    tau = 1e-6 * cells.C * loss.lipschitz * cells.norm
    theta = certified_minimizer(cells, tau, 100)
    gradient, error = dense.precise_gradient(theta)
    assert np.linalg.norm(gradient) + error <= tau


@pytest.mark.parametrize("n_classes", [2, 3])
def test_terms_of_many_cells_are_fitted_by_their_features(monkeypatch, n_classes):
    X = table(500)
    fits = [model(X, n_classes, epsilon=5.0)]
    monkeypatch.setattr(_engines, "MOST_CELLS", 3)
    fits.append(model(X, n_classes, epsilon=5.0))
    for own, other in zip(fits[0].terms_, fits[1].terms_, strict=True):
        np.testing.assert_allclose(own, other, atol=1e-4)
