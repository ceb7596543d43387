"""What diffprivlib's own tests require of its tools, asked of the functions of the same purpose.

Documented differences: bounds and a schema are required and never read from the data; an array with NaN is refused, and
a column with missing values leaves them out; columns take the place of ``axis``, and there is no ``keepdims``; one call
is one charge, also of several outputs; counts and histograms may be negative.

The false-alarm probability of the accuracy tests is below 1e-9 each: seeds are fixed.
"""

import math

import numpy as np
import pytest

from skdp import BudgetAccountant, Number, Schema, stats
from skdp.exceptions import BudgetError

TOOLS = {
    "sum": (stats.sum, np.sum),
    "mean": (stats.mean, np.mean),
    "var": (stats.var, np.var),
    "std": (stats.std, np.std),
    "median": (stats.median, np.median),
    "quantile": (lambda x, **k: stats.quantile(x, 0.3, **k), lambda x, **k: np.quantile(x, 0.3, **k)),
}
every_tool = pytest.mark.parametrize("name", TOOLS)
UNIT = {"bounds": (0, 1)}


def uniform(*shape):
    return np.random.default_rng(0).random(shape)


@every_tool
def test_bounds_are_required_and_checked(name):
    with pytest.raises(ValueError, match="bounds"):
        TOOLS[name][0]([1, 2, 3])
    with pytest.raises(ValueError, match="bounds"):
        TOOLS[name][0]([1, 2, 3], bounds=(0, -1))


@every_tool
def test_with_a_large_epsilon_the_answer_is_close(name):
    ours, exact = TOOLS[name]
    for x in (uniform(1000), uniform(1000, 5)):
        found = ours(x, epsilon=50.0, random_state=0, **UNIT).value
        np.testing.assert_allclose(found, exact(x, axis=0), rtol=0.05, atol=0.02)


@every_tool
def test_without_noise_the_answer_is_exact(name):
    ours, exact = TOOLS[name]
    x = uniform(1000)
    np.testing.assert_allclose(ours(x, epsilon=math.inf, **UNIT).value, exact(x), rtol=1e-3, atol=1e-3)


@every_tool
def test_lists_and_tuples_are_read_and_one_column_has_one_number(name):
    for x in ([1, 2, 3], (1, 2, 3)):
        assert isinstance(TOOLS[name][0](x, bounds=(1, 3)).value, float)


@every_tool
def test_outputs_stay_within_their_range(name):
    most = {"sum": math.inf, "var": 0.25, "std": 0.5}.get(name, 1.0)
    for _ in range(20):
        assert 0 <= TOOLS[name][0](uniform(10), epsilon=1e-5, **UNIT).value <= most


@every_tool
def test_missing_values_are_refused_in_arrays_and_left_out_of_columns(name):
    x = uniform(1000)
    lacking = np.append(x, np.nan)
    with pytest.raises(ValueError, match="NaN"):
        TOOLS[name][0](lacking, **UNIT)
    given = {"epsilon": math.inf, "schema": Schema({"x": Number(0, 1)}), "columns": "x"}
    found = [TOOLS[name][0]({"x": rows}, **given).value for rows in (x, lacking)]
    assert found[0] == found[1]


@every_tool
def test_one_call_is_one_charge(name):
    budget = BudgetAccountant(1.5)
    TOOLS[name][0](uniform(1000, 5), accountant=budget, **UNIT)
    assert (len(budget), budget.total().epsilon) == (1, 1.0)
    with pytest.raises(BudgetError):
        TOOLS[name][0](uniform(1000, 5), accountant=budget, **UNIT)


@every_tool
def test_a_generator_goes_on_and_a_seed_starts_anew(name):
    ours, x = TOOLS[name][0], uniform(1000)
    rng = np.random.default_rng(0)
    assert ours(x, random_state=rng, **UNIT).value != ours(x, random_state=rng, **UNIT).value
    assert ours(x, random_state=0, **UNIT).value == ours(x, random_state=0, **UNIT).value


def test_counts_of_nonzero_entries_are_counts_of_a_column_or_of_a_value():
    x = np.rint(uniform(1000))
    share = stats.proportion(x, [1], epsilon=math.inf)
    assert share.value * share.details["count"] == np.count_nonzero(x)
    close = stats.proportion(x, [1], epsilon=5.0, random_state=0)
    assert close.value * close.details["count"] == pytest.approx(np.count_nonzero(x), abs=10)
    texts = ["", "", "skdp", "skdp", "Python", "NumPy"]
    assert stats.proportion(texts, "", epsilon=math.inf).value == pytest.approx(1 / 3)


def test_histograms_have_the_edges_of_numpy_and_noise():
    x = [1, 2, 3, 4, 5]
    counts, edges = np.histogram(x, 3, (0, 10))
    found = stats.histogram(x, 3, bounds=(0, 10), epsilon=0.1, random_state=0)
    np.testing.assert_array_equal(found.details["bin_edges"], edges)
    assert np.any(found.value != counts)
    np.testing.assert_array_equal(stats.histogram(x, 3, bounds=(0, 10), epsilon=math.inf).value, counts)
    # Many bins are counted by another rule than few bins.
    for bins in (1, 2, 32, 33, 100):
        many = np.append(uniform(5000), np.linspace(0, 1, bins + 1))
        np.testing.assert_array_equal(
            stats.histogram(many, bins, epsilon=math.inf, **UNIT).value, np.histogram(many, bins, (0, 1))[0]
        )


@pytest.mark.parametrize("q", [-0.5, 1.5])
def test_levels_beyond_the_unit_interval_are_refused(q):
    with pytest.raises(ValueError, match="q must"):
        stats.quantile([1.0], q, **UNIT)


def test_several_levels_have_increasing_quantiles():
    q = [0.1, 0.25, 0.5, 0.75, 0.9]
    found = stats.quantile(uniform(1000), q, epsilon=5.0, random_state=0, **UNIT).value
    np.testing.assert_allclose(found, q, atol=0.06)
    assert np.all(np.diff(found) >= 0)


@pytest.mark.parametrize("epsilon", [0.3, 0.5, 1.0])
def test_a_value_that_most_records_have_is_the_median(epsilon):
    rng = np.random.default_rng(0)
    x = np.concatenate([np.full(80_000, 65_000), rng.integers(0, 500_000, 20_000)])
    found = stats.median(x, bounds=(0, 500_000), epsilon=epsilon, random_state=0).value
    assert found == pytest.approx(65_000, abs=1000)
    assert stats.median(np.ones(1000), bounds=(0, 2), random_state=0).value == pytest.approx(1, abs=0.01)
