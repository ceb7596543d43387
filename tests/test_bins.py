"""Numbers of bins from a table are those of a search, to the last bit."""

import numpy as np
import pytest

from skdp.schema.declared import Bins

RNG = np.random.default_rng(0)

EDGES = {
    "even": np.arange(1, 32) / 32,
    "random": np.sort(RNG.random(100)),
    "one": np.array([0.5]),
    "two": np.array([0.25, 0.5]),
    "none": np.empty(0),
    "equal": np.array([0.1, 0.5, 0.5, 0.5, 0.9]),
    "all equal": np.full(3, 0.5),
    "logarithmic": np.geomspace(1e-12, 1, 40),
    "far away": 1e9 + np.arange(20.0),
    "next to each other": 1 + np.arange(5) * 2.0**-52,
    "tiny": np.arange(1, 5) * 5e-324,
    "huge": np.array([-1.7e308, 0, 1.7e308]),
}


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("name", EDGES)
def test_numbers_are_those_of_a_search(name, dtype, right):
    edges = EDGES[name]
    around = [edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)]
    span = (edges[-1] / 2 - edges[0] / 2) if len(edges) else 1.0
    start = edges[0] if len(edges) else 0.0
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        spread = start + span * RNG.uniform(-1, 3, 3000)
        values = np.concatenate([*around, spread, [-1.7e308, 1.7e308, 0, -0.0]])
        values = np.clip(values, -(2.0**62), 2.0**62) if dtype == np.int64 else values
        values = values.astype(dtype)
    values = values[np.isfinite(values)]
    side = "right" if right else "left"
    expected = np.searchsorted(edges, values.astype(np.float64), side=side)
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(Bins(edges, right)(values), expected)
        np.testing.assert_array_equal(Bins(edges, right)(values[:5]), expected[:5])


def test_tables_are_used_where_edges_are_spread():
    for name in ("even", "random", "two", "equal", "far away"):
        assert Bins(EDGES[name], True)._table is not None
    for name in ("one", "none", "all equal", "logarithmic", "tiny", "huge"):
        assert Bins(EDGES[name], True)._table is None
