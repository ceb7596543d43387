"""The graphical model: junction trees, calibration, fits and draws, against the full table."""

from itertools import combinations, product

import numpy as np
import pytest

from skdp.mechanisms import NoiseSource
from skdp.synthetic import _graph
from skdp.synthetic._graph import JunctionTree, Model, cliques_of, n_cells, nearest_counts, table_counts

SIZES = (2, 3, 2, 4, 2)
GRAPHS = {
    "columns": [(j,) for j in range(5)],
    "chain": [(0, 1), (1, 2), (2, 3), (3, 4)],
    "circle": [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)],
    "triples": [(0, 1, 4), (1, 2, 4), (2, 3, 4)],
    "parts": [(0, 1), (2, 3)],
    "all": list(combinations(range(5), 2)),
}
EVERY_GRAPH = pytest.mark.parametrize("tables", GRAPHS.values(), ids=GRAPHS)
RNG = np.random.default_rng(0)
TABLE = RNG.dirichlet(np.full(96, 0.5)).reshape(SIZES)


def rng(seed=0):
    return NoiseSource(seed).simulator("test")


def summed(table, columns):
    return table.sum(axis=tuple(j for j in range(table.ndim) if j not in columns))


def joint(model):
    """The probability of each row, by the product of the conditionals."""
    out = np.zeros(SIZES)
    for row in product(*map(range, SIZES)):
        out[row] = 1.0
        for clique, conditional in zip(model.tree.cliques, model.conditionals, strict=True):
            shape = model.tree.shape(clique)
            out[row] *= conditional.ravel()[np.ravel_multi_index([row[j] for j in clique], shape)]
    return out


def fitted(tables, n=5000.0, n_steps=400):
    model = Model(SIZES)
    for j in range(5):
        model.add((j,), n * summed(TABLE, (j,)), 1.0)
    for table in tables:
        model.add(table, n * summed(TABLE, table), 1.0)
    model.fit(n_steps)
    return model


@EVERY_GRAPH
def test_cliques_are_a_junction_tree(tables):
    cliques = cliques_of(tables, SIZES)
    assert all(any(set(table) <= clique for clique in cliques) for table in tables)
    assert not any(a < b or (a == b and i != k) for i, a in enumerate(cliques) for k, b in enumerate(cliques))
    assert n_cells(tables, SIZES) == sum(np.prod([SIZES[j] for j in clique]) for clique in cliques)
    tree = JunctionTree.of(tables, SIZES)
    assert sorted(map(sorted, tree.cliques)) == sorted(map(sorted, cliques))
    seen = set()
    for clique, parent, n_shared in zip(tree.cliques, tree.parents, tree.separators, strict=True):
        # What a clique has in common with all cliques before it is in its parent.
        assert set(clique) & seen == set(clique[:n_shared])
        assert parent < 0 or set(clique[:n_shared]) <= set(tree.cliques[parent])
        seen |= set(clique)
    assert seen == set(range(5))


@EVERY_GRAPH
def test_model_is_a_distribution_that_fits_its_tables(tables):
    model = fitted(tables)
    whole = joint(model)
    assert whole.sum() == pytest.approx(1)
    for clique, probabilities in zip(model.tree.cliques, model.probabilities, strict=True):
        own = summed(whole, clique).transpose(np.argsort(np.argsort(clique)))
        np.testing.assert_allclose(probabilities, own, atol=1e-12)
    for table in tables:
        np.testing.assert_allclose(summed(whole, table), summed(TABLE, table), atol=2e-3)
        np.testing.assert_allclose(model.table(table), 5000 * summed(whole, table), rtol=1e-9)
    rows = np.array(list(product(*map(range, SIZES))))
    weights = np.exp(model.log_probabilities(rows))
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(weights, whole.ravel(), atol=1e-2)


def test_tables_in_no_clique_are_counted_in_rows(monkeypatch):
    monkeypatch.setattr(_graph, "_ROWS_OF_TABLES", 2**16)
    model = fitted(GRAPHS["chain"])
    np.testing.assert_allclose(model.table((0, 4)) / 5000, summed(joint(model), (0, 4)), atol=4e-3)
    np.testing.assert_allclose(model.table((4, 0)), model.table((0, 4)).T, atol=40)
    independent = np.multiply.outer(summed(TABLE, (0,)), summed(TABLE, (3,))).ravel()
    np.testing.assert_allclose(model.product((0, 3)) / 5000, independent, atol=2e-3)


@EVERY_GRAPH
@pytest.mark.parametrize("n", [0, 1, 7, 3000])
def test_rows_have_nearly_exact_counts(tables, n):
    model = fitted(tables)
    rows = model.sample(n, rng())
    assert rows.shape == (n, 5)
    assert np.all((rows >= 0) & (rows < SIZES))
    for table in tables if n == 3000 else ():
        counts = table_counts(rows, table, SIZES).reshape([SIZES[j] for j in table])
        # Draws of independent rows would differ by up to 4 * sqrt(3000 / 4).
        assert np.abs(counts - 3000 * model.table(table) / 5000).max() < 25


def test_no_counts_break_the_model():
    for scale in (0.0, -1e6, 1e15, 1e300):
        model = Model((2, 3))
        model.add((0,), np.full(2, scale), 1.0)
        model.add((1,), np.full(3, scale / 7), 1e6)
        model.add((0, 1), scale * RNG.normal(size=(2, 3)), 10.0)
        with np.errstate(all="ignore"):
            model.fit(50)
        assert 1 <= model.total <= 2.0**40
        assert np.all(np.isfinite(model.probabilities[0]))
        assert model.sample(10, rng()).shape == (10, 2)


def test_counts_of_a_table_that_is_released_twice_are_averaged():
    model = Model((2,))
    model.add((0,), np.array([10.0, 30.0]), 1.0)
    model.add((0,), np.array([20.0, 40.0]), 0.5)
    np.testing.assert_allclose(model.counts[(0,)], [18, 38])
    assert model.precisions[(0,)] == 5


def test_nearest_counts():
    for seed in range(20):
        counts = np.random.default_rng(seed).normal(size=6) * 10
        nearest = nearest_counts(counts, 12.0)
        assert nearest.min() >= 0
        assert nearest.sum() == pytest.approx(12)
        # No other vector on the simplex is nearer.
        for other in np.random.default_rng(seed + 99).dirichlet(np.ones(6), 200) * 12:
            assert np.linalg.norm(counts - nearest) <= np.linalg.norm(counts - other) + 1e-9
