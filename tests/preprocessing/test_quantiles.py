"""Private quantiles, bounds and bins: known answers and charges."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skdp import BudgetAccountant, DPQuantileBinner
from skdp.accounting import GaussianEvent, PureEvent, gaussian_mu
from skdp.exceptions import BudgetError, ResolutionWarning, SeededNoiseWarning
from skdp.mechanisms import NoiseSource
from skdp.preprocessing import private_bounds
from skdp.preprocessing._quantiles import QUANTILE_SCALES
from skdp.schema.declared import check_grid

RNG = np.random.default_rng(0)
SKEWED = np.exp(RNG.normal(8, 2, size=(20_000, 2)))


# --- grids ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bounds", "scale"),
    [
        ((-3.0, 9.0), "linear"),
        ((0.01, 1e6), "log"),
        ((-1e9, 1e12), "symlog"),
        ((0, 1e9), "symlog"),
        ((0, 1e9), "auto"),
        ((-2.0, 1e5), "auto"),
        ((5.0, 6.0), "auto"),
    ],
)
def test_records_are_counted_between_the_edges_that_are_returned(bounds, scale):
    grid = check_grid(bounds, 64, scale, 2.0, QUANTILE_SCALES).of(2)
    edges = grid.values(np.tile(np.arange(65), (2, 1)))
    assert edges[0, 0] == bounds[0]
    assert edges[0, -1] == bounds[1]
    assert np.all(np.diff(edges) > 0)
    X = np.concatenate([SKEWED[:3000] - 50, -SKEWED[:300], [[-1e300, 1e300], bounds]])
    counts = grid.counts(X)
    for column, values in zip(counts, X.T, strict=True):
        inside = np.clip(values, *bounds)
        expected = np.bincount(np.searchsorted(edges[0, 1:-1], inside, side="right"), minlength=64)
        # A value at an edge may fall to either side.
        assert np.abs(column - expected).sum() <= 4
        assert column.sum() == len(X)


def test_one_record_is_in_one_cell_of_each_column():
    grid = check_grid((0, 1e6), 100, "symlog", 1.0).of(2)
    one = grid.counts(SKEWED[:500])
    other = grid.counts(SKEWED[:501])
    np.testing.assert_array_equal((other - one).sum(axis=1), 1)
    assert np.count_nonzero(other - one) == 2


@pytest.mark.parametrize("bounds", [(1e10, 1e10 + 2e-6), (1e-100, 1e100), (1, 1 + 1e-15)])
@pytest.mark.parametrize("scale", QUANTILE_SCALES)
def test_extreme_bounds(bounds, scale):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        binner = DPQuantileBinner(4, bounds=bounds, scale=scale, grid_size=4096).fit([[1.0], [1e10], [-5.0]])
        values = binner.bin_edges_[0, 1:-1]
    assert np.all((values >= bounds[0]) & (values <= bounds[1]))


# --- bounds that are wider than the data ------------------------------------------------------------------------------

SHAPES = {
    "lognormal": (np.exp(RNG.normal(10, 0.6, 3000)), (0, 150_000)),
    "uniform": (RNG.uniform(size=3000), (0, 1)),
    "normal": (RNG.normal(170, 10, 3000), (120, 220)),
    "integers": (RNG.integers(0, 10, 3000), (0, 9)),
}


@pytest.mark.parametrize("wider", [1, 10, 1e3, 1e5])
@pytest.mark.parametrize("shape", SHAPES)
def test_quantiles_between_bounds_that_are_much_wider(shape, wider):
    x, (low, high) = SHAPES[shape]
    levels = np.array([0.25, 0.5, 0.75])
    for bounds in ((low, low + wider * (high - low)), (-wider * high, wider * high)):
        binner = DPQuantileBinner(4, bounds=bounds, grid_size=4096, random_state=0).fit(x[:, None])
        values = binner.bin_edges_[0, 1:-1]
        tolerance = 0.05 * np.ptp(np.quantile(x, [0.05, 0.95]))
        np.testing.assert_allclose(values, np.quantile(x, levels), atol=tolerance + (shape == "integers"))


@pytest.mark.parametrize("wider", [1, 10, 1e3, 1e5])
def test_quantiles_of_one_value_are_that_value_and_a_warning(wider):
    binner = DPQuantileBinner(4, bounds=(0, 100 * wider), grid_size=4096, random_state=0)
    with pytest.warns(ResolutionWarning, match="all released quantiles of column 0 lie within one cell of the grid"):
        binner.fit(np.full((3000, 1), 30.0))
    np.testing.assert_allclose(binner.bin_edges_[0, 1:-1], 30, rtol=0.02)


def test_what_a_grid_does_not_resolve_is_said():
    x = np.column_stack([np.exp(RNG.normal(10, 0.6, 3000)), RNG.uniform(0, 1e9, 3000)])
    given = {"epsilon": 10.0, "bounds": (0, 1e9), "scale": "linear", "grid_size": 4096, "random_state": 0}
    with pytest.warns(ResolutionWarning, match="column 0 lie"):
        edges = DPQuantileBinner(4, **given).fit(x).bin_edges_
    assert np.all(edges[0, 1:-1] <= 1e9 / 4096)
    # A single quantile does not tell.
    assert DPQuantileBinner(2, **given).fit(x[:, :1]).bin_edges_[0, 1] <= 1e9 / 4096
    DPQuantileBinner(4, **given).fit(x[:, 1:])


# --- quantiles --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_ranks_are_near_with_noise(delta):
    binner = DPQuantileBinner(8, delta=delta, bounds=(0, 1e9), scale="symlog", grid_size=4096, random_state=0)
    edges = binner.fit(SKEWED).bin_edges_[:, 1:-1]
    ranks = (SKEWED[:, :, None] < edges).mean(axis=0)
    # A record counts as 1/12 in the exponent (3 levels, 2 columns, a factor of 2 for the tails): 300 for 4096 edges.
    np.testing.assert_allclose(ranks, np.tile(np.arange(1, 8) / 8, (2, 1)), atol=0.02)


def test_budget_is_split_over_columns_and_depth():
    accountant = BudgetAccountant(2.0, 1e-5, composition="basic")
    for delta in (0.0, 1e-5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResolutionWarning)
            DPQuantileBinner(5, delta=delta, bounds=(0, 1), accountant=accountant).fit(SKEWED[:50])
    pure, gaussian = accountant.records
    assert (pure.estimator, pure.cost.events) == ("DPQuantileBinner", (PureEvent(1.0),))
    assert gaussian.cost.events == (GaussianEvent(gaussian_mu(1.0, 1e-5)),)
    assert accountant.total().epsilon == pytest.approx(2.0)
    # Four quantiles take three cuts in depth, of two columns.
    assert pure.releases[0].scale == pytest.approx(6)
    assert gaussian.releases[0].scale < 6
    with pytest.raises(BudgetError):
        DPQuantileBinner(2, bounds=(0, 1), accountant=accountant).fit(SKEWED)


def test_functions_warn_of_a_seed_with_a_budget():
    with pytest.warns(SeededNoiseWarning):
        private_bounds([1], epsilon=1.0, accountant=BudgetAccountant(1.0), random_state=0)


# --- bounds -----------------------------------------------------------------------------------------------------------

RANGES = {
    "ages": (RNG.uniform(17, 90, 20_000), (0, 128)),
    "temperatures": (RNG.normal(-40, 5, 20_000), (-64, 0)),
    "both signs": (RNG.normal(0, 1200, 20_000), (-4096, 4096)),
    "amounts, mostly 0": (np.where(RNG.uniform(size=20_000) < 0.9, 0.0, RNG.uniform(3e4, 5e4, 20_000)), (0, 2**16)),
    "outliers": (np.concatenate([RNG.uniform(5, 7, 19_960), [1e12] * 40]), (0, 8)),
    "small": (RNG.uniform(1, 2, 20_000) * 1e-4, (0, 2**-12)),
    "one value": (np.full(20_000, 30.0), (0, 32)),
}


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (1.0, 1e-5), (math.inf, 0.0)])
def test_bounds_of_unknown_ranges(name, epsilon, delta):
    x, (low, high) = RANGES[name]
    for seed in range(10, 15):
        lower, upper = private_bounds(x, epsilon=epsilon, delta=delta, random_state=seed)
        assert np.mean((x < lower) | (x > upper)) <= 0.06
        if epsilon == math.inf:
            assert lower == low or lower / low == 2
            assert upper == high
        else:
            # Each step farther has e^-2 of the probability: three have one of 0.0025.
            assert min(low, 0) * 4 - 1e-3 <= lower <= max(low, 2**-5)
            assert upper <= 4 * max(high, 1e-3)


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_bounds_of_nothing_are_around_zero(epsilon):
    for x in ([], [5.0]):
        lower, upper = private_bounds(x, epsilon=epsilon, random_state=0)
        assert lower < upper
        assert max(-lower, upper) <= 2**3


def test_bounds_of_columns_fit_what_follows():
    lower, upper = private_bounds(pd.DataFrame(SKEWED), epsilon=1.0, delta=1e-6)
    assert lower.shape == upper.shape == (2,)
    DPQuantileBinner(bounds=(lower, upper)).fit(SKEWED)
    assert np.mean(upper < SKEWED) < 0.05
    assert np.all(lower <= 64)


def test_charge_of_bounds():
    accountant = BudgetAccountant(2.0, 1e-5)
    private_bounds(SKEWED, epsilon=1.0, delta=1e-6, accountant=accountant)
    (record,) = accountant.records
    assert record.cost.events == (GaussianEvent(gaussian_mu(1.0, 1e-6)),)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"tail": 0.5}, "tail"),
        ({"tail": 0}, "tail"),
        ({"tail": "a"}, "tail"),
        ({"tail": [0.1, 0.2]}, "tail"),
        ({"exponents": 3}, "exponents"),
        ({"exponents": (3, 3)}, "exponents"),
        ({"exponents": (0.5, 3)}, "exponents"),
        ({"exponents": (0, 400)}, "exponents"),
        ({"epsilon": -1}, "epsilon"),
    ],
    ids=str,
)
def test_bad_arguments_of_bounds(changed, name):
    with pytest.raises((ValueError, TypeError), match=name):
        private_bounds(SKEWED, **{"epsilon": 1.0, **changed})


# --- bins -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_bins", [2, 5, 8])
def test_bins_without_noise_hold_equally_many(n_bins):
    binner = DPQuantileBinner(n_bins, epsilon=math.inf, bounds=(1, 1e7), scale="log", grid_size=2**14).fit(SKEWED)
    expected = np.quantile(SKEWED, np.arange(1, n_bins) / n_bins, axis=0).T
    np.testing.assert_allclose(binner.bin_edges_[:, 1:-1], expected, rtol=0.01)
    np.testing.assert_allclose(binner.transform(SKEWED).mean(axis=0), 1 / n_bins, atol=0.003)


@pytest.mark.parametrize(("delta", "tolerance"), [(0.0, 0.02), (1e-5, 0.02)])
def test_bins_with_noise_hold_about_equally_many(delta, tolerance):
    binner = DPQuantileBinner(8, epsilon=1.0, delta=delta, bounds=(-1e12, 1e12), scale="symlog", random_state=0)
    np.testing.assert_allclose(binner.fit_transform(SKEWED).mean(axis=0), 1 / 8, atol=tolerance)


def test_ties_leave_empty_bins_and_a_public_shape():
    X = np.zeros((5000, 1))
    X[:500, 0] = RNG.uniform(1, 2, 500)
    with pytest.warns(ResolutionWarning, match="column 0 lie within one cell"):
        binner = DPQuantileBinner(8, epsilon=1.0, delta=1e-5, bounds=(0, 2), random_state=0).fit(X)
    assert binner.bin_edges_.shape == (1, 9)
    assert np.all(np.diff(binner.bin_edges_) >= 0)
    out = binner.transform(X)
    assert out.shape == (5000, 8)
    np.testing.assert_array_equal(out.sum(axis=1), 1)
    with pytest.warns(ResolutionWarning):
        ordinal = clone(binner).set_params(encode="ordinal").fit(X)
    assert ordinal.data_norm_ == pytest.approx(7)
    inverse = ordinal.inverse_transform(ordinal.transform(X))
    assert np.all((inverse >= 0) & (inverse <= 2))


def test_what_comes_out_does_not_depend_on_how_far_out_a_value_is():
    binner = DPQuantileBinner(4, epsilon=1.0, bounds=(0, 1e6), random_state=0).fit(SKEWED)
    np.testing.assert_array_equal(binner.transform([[2e6, -5]]), binner.transform([[1e300, -1e300]]))


def test_streams_are_new_without_a_seed():
    binner = DPQuantileBinner(2, epsilon=0.1, bounds=(0, 1e5))
    values = {float(binner.fit(SKEWED[:20, :1]).bin_edges_[0, 1]) for _ in range(5)}
    assert len(values) > 1
    assert NoiseSource(None).seeded is False
