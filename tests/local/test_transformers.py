"""Transformers of the local model: what is charged, what a report depends on, and what is estimated from reports.

A stochastic test refuses right code with probability 1e-6 at most, over the choice of its seed, which is fixed.
"""

import io
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse, stats
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin, clone, is_clusterer
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import DBSCAN, Birch, KMeans
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.cross_decomposition import PLSSVD
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel, SelectKBest, SelectPercentile
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import BernoulliNB
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skdp import BudgetAccountant, allocate
from skdp.accounting import Relation
from skdp.exceptions import BudgetError, PrivacyAssumptionWarning, SeededNoiseWarning
from skdp.local import HadamardResponse, LocalLaplace, PiecewiseMechanism, RandomizedResponse, UnaryEncoder
from skdp.schema.entries import encode_labels
from tests.estimators import LOCAL, name_of

# Two-sided, in standard errors: a normal deviate is beyond with probability 1e-6.
BEYOND = float(stats.norm.isf(0.5e-6))

CATEGORICAL = [RandomizedResponse, UnaryEncoder, HadamardResponse]
NUMERIC = [LocalLaplace, PiecewiseMechanism]

every = pytest.mark.parametrize("transformer", LOCAL, ids=name_of)
categorical = pytest.mark.parametrize("kind", CATEGORICAL)
numeric = pytest.mark.parametrize("kind", NUMERIC)


class Odd:
    def __hash__(self):
        raise ValueError("patient-7731")


class OddText(str):
    __slots__ = ()
    __hash__ = Odd.__hash__


#: What NumPy reads in a way of its own, or not at all.
ODD_ENTRIES = ((1, 2), [1, 2], [], np.array([1]), np.datetime64("2020"), np.timedelta64(1, "s"), Odd(), OddText("a"))

CODES = np.arange(300).reshape(100, 3) * 7 % 3


def same(a, b):
    return np.array_equal(np.asarray(a, dtype=float), np.asarray(b, dtype=float), equal_nan=True)


# --- what is charged --------------------------------------------------------------------------------------------------


@every
def test_every_transform_is_charged_and_fit_is_not(transformer):
    accountant = BudgetAccountant(10.0)
    one = clone(transformer).set_params(accountant=accountant, epsilon=2.0)
    one.fit(CODES)
    assert len(accountant) == 0
    one.transform(CODES)
    one.fit_transform(CODES)
    assert [(record.label, record.estimator, record.cost.epsilon) for record in accountant.records] == [
        ("transform", type(one).__name__, 2.0)
    ] * 2
    assert all(record.cost == one.privacy_.cost == one._fixed_cost() for record in accountant.records)
    assert len(accountant.records[0].releases) == 1


@every
def test_nothing_is_drawn_when_the_budget_is_too_small(transformer, monkeypatch):
    monkeypatch.setattr("skdp.mechanisms._base.os.urandom", lambda n: pytest.fail("noise was drawn"))
    one = clone(transformer).set_params(accountant=BudgetAccountant(0.5)).fit(CODES)
    with pytest.raises(BudgetError):
        one.transform(CODES)
    assert len(one.accountant) == 0


@every
def test_nothing_is_computed_when_the_budget_is_too_small(transformer, monkeypatch):
    one = clone(transformer).set_params(accountant=BudgetAccountant(0.5)).fit(CODES)
    monkeypatch.setattr(type(one), "_codes", lambda *args: pytest.fail("the rows were read"))
    with pytest.raises(BudgetError):
        one.transform(CODES)


@every
def test_messages_hold_no_data_and_cost_nothing(transformer):
    ragged = [list(row) for row in CODES[:20]]
    ragged[3].pop()
    cases = [CODES[:20, 0], CODES[:20, :0], ragged]
    if hasattr(transformer, "bounds"):
        for entry in (math.inf, 7731j, "patient-7731", {7731}, np.datetime64("2020-01-01"), Odd()):
            rows = CODES[:20].astype(object)
            rows[3, 1] = entry
            cases += [rows, rows.tolist(), pd.DataFrame(rows)]
    for rows in cases:
        one = clone(transformer).set_params(accountant=BudgetAccountant(10.0))
        for act in (one.fit, one.transform):
            with pytest.raises((ValueError, TypeError)) as failure:
                act(rows)
            message = str(failure.value)
            assert failure.value.__cause__ is failure.value.__context__ is None
            assert not any(word in message for word in ("7731", "20", "19", "Odd", "set", "complex'"))
        assert len(one.accountant) == 0


@every
def test_global_random_state_is_left_alone(transformer):
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    for seed in (None, 0):
        clone(transformer).set_params(random_state=seed).transform(CODES)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


@every
def test_the_guarantee_is_of_a_row(transformer):
    one = clone(transformer).set_params(epsilon=0.7)
    plan = one.privacy_plan(n_features=3)
    assert plan == clone(one).fit(CODES).privacy_
    assert (plan.epsilon, plan.delta, plan.relation) == (0.7, 0.0, Relation.REPLACE_RECORD)
    assert plan.replace_one == (0.7, 0.0)
    assert "their number is public" in repr(plan)
    assert "implies" not in repr(plan)
    assert "their number is public" in plan._repr_html_()


@every
def test_seed_with_a_budget_warns(transformer):
    one = clone(transformer).set_params(accountant=BudgetAccountant(10.0), random_state=0)
    with pytest.warns(SeededNoiseWarning) as seen:
        one.transform(CODES)
    assert seen[0].filename == __file__


# --- what a report depends on -----------------------------------------------------------------------------------------


@every
def test_fit_learns_nothing(transformer):
    frame = pd.DataFrame(CODES, columns=list("abc"))
    fitted = [clone(transformer).fit(rows) for rows in (frame, frame[:0], 2 - frame[::-1])]
    assert len({pickle.dumps(one) for one in fitted}) == 1
    assert set(vars(fitted[0])) - set(transformer.get_params()) == {"n_features_in_", "feature_names_in_"}


@every
def test_a_report_depends_on_its_own_row_alone(transformer):
    # With the same bits, others' reports are the same, whatever one row holds.
    one = clone(transformer).set_params(random_state=5)
    before = one.transform(CODES)
    for content in ([2, 0, 1], [17, -3, 99]):
        changed = CODES.copy()
        changed[40] = content
        after = one.transform(changed)
        assert same(np.delete(before, 40, axis=0), np.delete(after, 40, axis=0))


@every
def test_each_call_has_noise_of_its_own(transformer):
    one = clone(transformer).set_params(epsilon=0.5)
    assert not same(one.transform(CODES), one.transform(CODES))
    assert same(*(clone(one).set_params(random_state=3).transform(CODES) for _ in range(2)))
    np.random.seed(0)  # noqa: NPY002
    before = one.transform(CODES)
    np.random.seed(0)  # noqa: NPY002
    assert not same(before, one.transform(CODES))


@every
def test_forms_of_the_data_do_not_matter(transformer):
    one = clone(transformer).set_params(random_state=1)
    reference = one.transform(CODES)
    for form in (CODES.tolist(), CODES.astype(np.float32), np.asfortranarray(CODES), pd.DataFrame(CODES)):
        assert same(one.transform(form), reference)


@every
def test_types_and_shapes_are_public(transformer):
    shapes, kinds = set(), set()
    for rows in (CODES, 0 * CODES, CODES + 50, -CODES - 1):
        out = clone(transformer).transform(rows)
        shapes.add(out.shape)
        kinds.add(out.dtype)
    assert len(shapes) == len(kinds) == 1
    for n in (0, 1):
        assert clone(transformer).transform(CODES[:n]).shape == (n, out.shape[1])


@every
def test_nothing_warns(transformer):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scale in (1e-310, 1e200, 1e307):
            clone(transformer).transform(CODES * scale)


@every
def test_what_is_refused(transformer):
    for bad in (np.nan, np.inf) if hasattr(transformer, "bounds") else ():
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            clone(transformer).transform(np.full((2, 3), bad))
    with pytest.raises(TypeError, match="sparse_output=False"):
        clone(transformer).fit(sparse.csr_array((2, 1001)))
    with pytest.raises(ValueError, match="features"):
        clone(transformer).fit(CODES).transform(CODES[:, :2])
    for name, value, error in [
        ("epsilon", 0, ValueError),
        ("epsilon", "1", TypeError),
        ("epsilon", math.nan, ValueError),
        ("n_reported", 0, ValueError),
        ("n_reported", 4, ValueError),
        ("n_reported", "some", ValueError),
        ("n_reported", 1.0, TypeError),
        ("accountant", "me", TypeError),
        ("random_state", -1, ValueError),
    ]:
        one = clone(transformer).set_params(**{name: value})
        with pytest.raises(error, match=name):
            one.fit(CODES)
        with pytest.raises(error, match=name):
            one.transform(CODES)


@categorical
def test_categories_are_required(kind):
    for value in (None, 1, [1], "ab", [["a", "b"]], [0, 0], 2.5, [["a"], 3, 3], ["a", None], 10**7):
        with pytest.raises((ValueError, TypeError), match="categories"):
            kind(value).fit(CODES)


@numeric
def test_bounds_are_required(kind):
    for value in (None, 3, (1, 1), (2, 1), ("a", "b"), (0, math.inf), ([0] * 2, [1] * 2)):
        with pytest.raises(ValueError, match="bounds"):
            kind(value).fit(CODES)


@every
def test_frames_and_names(transformer):
    frame = pd.DataFrame(CODES, columns=list("abc"))
    one = clone(transformer).set_output(transform="pandas").fit(frame)
    out = one.transform(frame)
    assert list(out.columns) == list(one.get_feature_names_out())
    assert out.columns[0] == ("a_0" if isinstance(one, UnaryEncoder) else "a")


# --- categories -------------------------------------------------------------------------------------------------------


@categorical
def test_text_numbers_and_mixed_columns(kind):
    frame = pd.DataFrame({"color": ["red", "blue", "red", "?"], "size": [4, 2, 9, 2], "ok": [True, False, True, True]})
    one = kind([["red", "blue"], [9, 4, 2], 2], epsilon=math.inf).fit(frame)
    color, size, ok = one.frequencies(one.transform(frame))
    if kind is RandomizedResponse:
        # What is no category is anything.
        assert one.transform(frame)[:3].tolist() == [["red", 4, 1], ["blue", 2, 0], ["red", 9, 1]]
    elif kind is UnaryEncoder:
        np.testing.assert_allclose(color, [0.5, 0.25])
    np.testing.assert_allclose(size, [0.25, 0.25, 0.5])
    np.testing.assert_allclose(ok, [0.25, 0.75])


@categorical
def test_one_entry_does_not_decide_how_others_are_read(kind):
    column = np.array([["a"], ["b"], ["a"], ["b"]] * 20, dtype=object)
    one = kind(["a", "b"], random_state=0)
    before = one.transform(column)
    for odd in ("x", 1, 1.5, b"a", None, {"a": 1}, math.nan, pd.NA, pd.NaT, 1j, *ODD_ENTRIES):
        changed = column.copy()
        changed[3, 0] = odd
        for form in (changed, changed.tolist(), pd.DataFrame(changed)):
            np.testing.assert_array_equal(np.delete(one.transform(form), 3, 0), np.delete(before, 3, 0))
    numbers = [[0], [1], [1], [0]]
    one = kind([0, 1], random_state=0)
    for odd in (math.nan, math.inf, 0.5, 2):
        rows = np.array([*numbers, [odd]])
        np.testing.assert_array_equal(one.transform(rows)[:4], one.transform([*numbers, [0]])[:4])
    for odd in ("x", 1j, *ODD_ENTRIES):
        entries = np.empty((5, 1), dtype=object)
        entries[:4] = numbers
        entries[4, 0] = odd
        for form in ([*numbers, [odd]], entries, pd.DataFrame(entries), pd.DataFrame({"a": [0, 1, 1, 0, odd]})):
            np.testing.assert_array_equal(one.fit_transform(form)[:4], one.fit_transform([*numbers, [0]])[:4])


def test_what_is_of_another_kind_is_no_category():
    numbers = UnaryEncoder([0, 1], epsilon=math.inf)
    text = UnaryEncoder(["0", "1"], epsilon=math.inf)
    times = np.array([["2020-01-01"], ["NaT"]], dtype="M8[ns]")
    steps = np.array([[0], [1]], dtype="m8[s]")
    for strange in (
        times,
        times.tolist(),
        [[times[0, 0]], [times[1, 0]]],
        list(times),
        pd.DataFrame(times),
        pd.DataFrame(times).apply(lambda column: column.dt.tz_localize("UTC")),
        steps,
        list(steps),
        pd.DataFrame(steps),
        pd.DataFrame({"a": pd.Categorical(times[:, 0])}),
    ):
        assert not numbers.fit_transform(strange).any()
    for strange in ([[2], ["x"]], np.array([[0.5], [2]]), [[1j], ["0_0"]], pd.DataFrame({"a": [2, None]}), steps):
        assert not text.fit_transform(strange).any()
        assert not numbers.fit_transform(strange).any()
    for form in ([[0], [1], [1j]], list(np.array([[0], [1], [1j]])), pd.DataFrame({"a": [0, 1, 1j]})):
        np.testing.assert_array_equal(numbers.fit_transform(form), [[1, 0], [0, 1], [0, 0]])


def one_array(entries):
    return np.array([[entry] for entry in entries])


def one_file(entries):
    return pd.read_csv(io.StringIO("a\n" + "\n".join(map(str, entries)) + "\n"))


#: Ways to a table in which the type of a column depends on all of its entries, or not.
WAYS = (
    *(
        one_array,
        one_file,
        lambda entries: [[entry] for entry in entries],
        lambda entries: pd.DataFrame({"a": entries}),
    ),
    *(lambda entries: list(one_array(entries)), lambda entries: one_array(entries).astype(object)),
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("categories", "entries"),
    [
        ([1, 2, 3], [3, 1, 2, 4, 1]),
        ([0.1, 2.0, 2e10], [2e10, 0.1, 2.0, 0.2, 2]),
        ([0.1, 2.0, 2e10], list(np.array([0.1, 2, 3], dtype=np.float32))),
        ([False, True], [True, False, True]),
        (["a", "b", "c"], ["a", "c", "d"]),
        (["1", "2", "x"], [1, 2, 3, 1]),
        (["007", "012", "3.5"], [7, 12, 3.5, 8]),
        (["0.1", "0.2"], list(np.array([0.1, 0.2, 0.3], dtype=np.float32))),
        (["True", "False"], [True, False, False]),
        (["yes", "nan"], ["yes", "nan", "no"]),
        (["nan", "x"], [1.5, math.nan, 2.0]),
    ],
)
def test_one_text_does_not_decide_how_other_entries_of_a_column_are_read(way, categories, entries):
    one = UnaryEncoder([categories], epsilon=math.inf)
    before = one.fit_transform(way(entries))
    np.testing.assert_array_equal(one.fit_transform([[entry] for entry in entries]), before)
    for odd in ("y", "", "nan", "2", " 2", "1e400", "٣", "9" * 5000, "é"):
        np.testing.assert_array_equal(one.fit_transform(way([*entries, odd]))[: len(entries)], before)


def test_a_category_nan_is_that_of_missing_values():
    model = UnaryEncoder([["yes", "nan"]], epsilon=math.inf)
    for form in ([["nan"], ["yes"]], np.array([["nan"], ["yes"]]), [[math.nan], ["yes"]], [[None], ["yes"]]):
        assert model.fit_transform(form).tolist() == [[0, 1], [1, 0]]


def test_text_is_the_number_that_it_says():
    numbers = UnaryEncoder([[3, 0.1, 2**52 + 1]], epsilon=math.inf)
    assert numbers.fit_transform([["3"], ["0.1"], [b"3"], [" 3.0"], ["3_0"]]).tolist() == [
        *([1, 0, 0], [0, 1, 0], [1, 0, 0], [1, 0, 0], [0, 0, 0])
    ]
    exact = UnaryEncoder([[2**52, 2**52 + 1]], epsilon=math.inf)
    for form in ([[str(2**52 + 1)]], np.array([[2**52 + 1]]), np.array([[2**52 + 1], ["x"]])):
        assert exact.fit_transform(form)[0].tolist() == [0, 1]
    for alike in (["7", "007"], ["NA", "null"]):
        with pytest.raises(ValueError, match="categories must not hold two texts that spell the same number"):
            UnaryEncoder([alike]).fit([["7"]])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [LocalLaplace, PiecewiseMechanism])
def test_one_text_does_not_decide_how_other_numbers_are_read(kind, way):
    entries, one = [1, 0.25, 2, 3], kind((0, 4), epsilon=math.inf)
    before = one.fit_transform(way(entries))
    for odd in ("2", "x", "", "nan"):
        try:
            after = one.fit_transform(way([*entries, odd]))
        except ValueError:
            # The whole table is refused.
            continue
        np.testing.assert_array_equal(after[: len(entries)], before)


def test_numbers_in_single_precision_are_the_categories_they_came_from():
    encoder = UnaryEncoder([[0.1, 0.2, 2**24 + 1.0]], epsilon=math.inf)
    column = np.array([[0.1], [0.2], [0.3], [np.nan]], dtype=np.float32)
    expected = [[1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 0]]
    for form in (column, list(column), pd.DataFrame(column)):
        np.testing.assert_array_equal(encoder.fit_transform(form), expected)
    entries = np.empty((4, 1), dtype=object)
    entries[:, 0] = list(column[:, 0])
    np.testing.assert_array_equal(encoder.fit_transform(entries), expected)
    exact = UnaryEncoder([[2.0**24, 2.0**24 + 1, 0.5]], epsilon=math.inf)
    np.testing.assert_array_equal(exact.fit_transform(np.array([[2**24]], dtype=np.float32)), [[1, 0, 0]])


FORMS = {
    "object": lambda column: column.astype(object),
    "frame beside objects": lambda column: pd.DataFrame({"a": column, "b": ["?"] * len(column)}, dtype=object)[["a"]],
    **{name: lambda column, name=name: column.astype(name) for name in ("float32", "float64", "longdouble")},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("first", [np.float32, np.float64])
def test_numbers_are_read_by_their_values_whatever_type_others_give_the_column(form, first):
    # Of a column of floats of four bytes, and one of objects beside it, NumPy makes objects of Python's floats.
    column = np.array([0.1, 0.2, 1.0, 1e-60, 0.0, 3.0, np.nan, np.inf]).astype(first)[:, None]
    encoder = UnaryEncoder([[0.2, 0.1, 1.0, 1e-60, 1e15]], epsilon=math.inf)
    expected = np.zeros((8, 5))
    expected[[0, 1, 2], [1, 0, 2]] = 1
    expected[3, 3] = first is np.float64 and form != "float32"
    given = FORMS[form](column) if form != "frame beside objects" else FORMS[form](column[:, 0])
    np.testing.assert_array_equal(encoder.fit_transform(given), expected)
    row = np.array([[column[0, 0]]])
    np.testing.assert_array_equal(encoder.fit_transform(row), expected[:1])
    np.testing.assert_array_equal(encoder.fit_transform(row.astype(np.float64)), expected[:1])


@pytest.mark.parametrize("values", [[1, 2], [1.0, 2.0]])
def test_whole_numbers_are_read_by_their_values(values):
    encoder = UnaryEncoder([values], epsilon=math.inf)
    for kind in (bool, np.int8, np.uint64, np.float16, np.longdouble, object):
        column = np.array([[1], [0], [1]]).astype(kind)
        np.testing.assert_array_equal(encoder.fit_transform(column), [[1, 0], [0, 0], [1, 0]])


@categorical
def test_categories_that_could_be_numbers_of_categories(kind):
    with pytest.raises(ValueError, match=r"\[\[3, 4\]\] \* 2 or \[range\(3\), range\(4\)\]"):
        kind([3, 4]).fit([[0, 0]])
    for value, sizes in (([3, 4], [2]), ([0, 1], [2, 2]), (["a", "b"], [2, 2]), ([range(3), range(4)], [3, 4])):
        one = kind(value).fit(np.zeros((1, len(sizes))))
        assert [channel.n_categories for channel in one.privacy_.releases[0].mechanism.channels] == sizes
    for value in ({"a", "b"}, {"a": 0, "b": 1}, iter("ab"), [{"a", "b"}], [iter("ab")], frozenset("ab")):
        with pytest.raises(ValueError, match="categories must be"):
            kind(value).fit([["a"]])


def z_scores(found, errors, truth):
    return np.concatenate([(f - t) / e for f, e, t in zip(found, errors, truth, strict=True)])


@categorical
@pytest.mark.parametrize("n_reported", ["all", 1, "auto"])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_frequencies_are_unbiased_and_deviate_as_said(kind, n_reported, epsilon):
    n = 4000
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice(4, n, p=[0.6, 0.3, 0.1, 0]), rng.choice(6, n)])
    truth = [np.bincount(X[:, 0], minlength=4) / n, np.bincount(X[:, 1], minlength=6) / n]
    scores = []
    for seed in range(60):
        one = kind([range(4), range(6)], epsilon=epsilon, n_reported=n_reported, random_state=seed)
        scores.append(z_scores(*one.frequencies(one.fit_transform(X), return_std=True), truth))
    scores = np.array(scores)
    # Means of 60 draws, ten of them. The errors said hold for the draw of the rows as well, which is not made here.
    assert np.abs(scores.mean(axis=0)).max() * math.sqrt(60) < BEYOND + 0.5
    assert 0.7 < scores.std() < 1.1
    half = np.array([z / 2 for z in scores])
    assert not 0.7 < half.std() < 1.1


@categorical
def test_projected_frequencies_are_probabilities(kind):
    one = kind(20, epsilon=0.3, random_state=0)
    Z = one.fit_transform(np.arange(500)[:, None] % 3)
    rough, fine = one.frequencies(Z)[0], one.frequencies(Z, project=True)[0]
    assert rough.min() < 0
    assert fine.min() >= 0
    assert fine.sum() == pytest.approx(1)
    truth = np.bincount(np.arange(500) % 3, minlength=20) / 500
    assert np.linalg.norm(fine - truth) < np.linalg.norm(rough - truth)


@categorical
def test_frequencies_read_reports_of_others(kind):
    one = kind(3, epsilon=2.0, n_reported="auto").fit(CODES)
    Z = one.transform(CODES)
    for form in (Z, Z.tolist(), pd.DataFrame(Z), Z.astype(float)):
        np.testing.assert_array_equal(np.concatenate(one.frequencies(form)), np.concatenate(one.frequencies(Z)))
    parts = np.vstack([kind(3, epsilon=2.0, n_reported="auto").transform(CODES[i : i + 1]) for i in range(100)])
    assert np.concatenate(one.frequencies(parts)).shape == (9,)
    with pytest.raises(NotFittedError):
        kind(3).frequencies(Z)
    with pytest.raises(ValueError, match="columns"):
        one.frequencies(Z[:, :2])
    if kind is not RandomizedResponse:
        for bad in (Z + 50, Z + 0.5, Z.astype(str).astype(object) + "x", np.full(Z.shape, 1e300).tolist()):
            with pytest.raises(ValueError, match="reports"):
                one.frequencies(bad)
    else:
        with pytest.raises(TypeError, match="categories"):
            one.frequencies(Z.astype(str))
        with pytest.raises(TypeError, match="categories"):
            RandomizedResponse(["a", "b"]).fit([["a"]]).frequencies(np.array([[0.0]]))
    nothing, errors = one.frequencies(Z[:0], return_std=True)
    assert np.all(np.concatenate(nothing) == 0)
    assert np.all(np.isinf(np.concatenate(errors)))


@pytest.mark.parametrize("n_reported", ["all", 1])
def test_frequencies_read_text_in_frames(n_reported):
    frame = pd.DataFrame({"a": ["x", "y"] * 200, "b": ["y", "z"] * 200})
    one = RandomizedResponse(["x", "y", "z"], epsilon=8.0, n_reported=n_reported).fit(frame)
    Z = one.transform(frame)
    found = one.frequencies(Z)
    for form in (pd.DataFrame(Z), pd.DataFrame(Z, dtype="str"), Z.tolist()):
        np.testing.assert_array_equal(np.concatenate(one.frequencies(form)), np.concatenate(found))
    np.testing.assert_allclose(found, [[0.5, 0.5, 0], [0, 0.5, 0.5]], atol=0.25)


def test_missing_reports_are_marked():
    text = np.array(["a", "b"])[CODES % 2]
    out = RandomizedResponse(["a", "b"], n_reported=1).transform(text)
    assert np.all(np.sum(out != np.array(None), axis=1) == 1)
    out = RandomizedResponse(3, n_reported=1).transform(CODES)
    assert np.all(np.isnan(out).sum(axis=1) == 2)
    assert np.all((HadamardResponse(3, n_reported=2).transform(CODES) == -1).sum(axis=1) == 1)
    assert np.all((UnaryEncoder(3, n_reported=2).transform(CODES) == -1).sum(axis=1) == 3)


def test_masked_entries_are_no_category():
    rows = np.ma.MaskedArray([["a"], ["a"], ["?"]], [[False], [True], [False]])
    assert UnaryEncoder(["a", "?"]).fit(rows).encode(rows).tolist() == [[1, 0], [0, 0], [0, 1]]
    assert encode_labels(rows, np.array(["?", "a"])).tolist() == [1, -1, 0]
    # The integers of points in time are no categories either.
    times = np.ma.MaskedArray(np.zeros((2, 1), dtype="datetime64[ns]"), [[False], [True]])
    assert UnaryEncoder(2).fit(times).encode(times).tolist() == [[0, 0], [0, 0]]
    for dtype in (pl.Datetime("ns"), pl.Duration("ns")):
        table = pl.DataFrame({"time": pl.Series([0, None], dtype=pl.Int64).cast(dtype), "code": [1, 0]})
        assert UnaryEncoder(2).fit(table).encode(table).tolist() == [[0, 0, 0, 1], [0, 0, 1, 0]]


def test_encode_is_a_one_hot_encoder():
    encoder = UnaryEncoder(["x", "y", "z"], epsilon=0.1).fit([["x"]])
    reference = OneHotEncoder(categories=[["x", "y", "z"]], handle_unknown="ignore", sparse_output=False)
    rows = [["y"], ["x"], ["w"], ["z"]]
    np.testing.assert_array_equal(encoder.encode(rows), reference.fit([["x"]]).transform(rows))
    np.testing.assert_array_equal(encoder.set_params(epsilon=math.inf).transform(rows), encoder.encode(rows))


@categorical
def test_auto_reports_one_column_for_a_small_budget_and_all_for_a_large_one(kind):
    def k(epsilon):
        one = kind(4, epsilon=epsilon, n_reported="auto")
        return one.privacy_plan(n_features=6).releases[0].mechanism.n_reported

    assert k(0.5) == k(1.0) == 1
    assert [k(e) for e in (1.0, 4.0, 10.0, 30.0)] == sorted(k(e) for e in (1.0, 4.0, 10.0, 30.0))
    assert k(60.0) > 3
    assert k(math.inf) == 6


# --- numbers ----------------------------------------------------------------------------------------------------------


@numeric
@pytest.mark.parametrize("n_reported", ["all", 1, "auto"])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_means_are_unbiased_and_deviate_as_said(kind, n_reported, epsilon):
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.uniform(0, 10, 3000), rng.normal(2, 1, 3000), np.full(3000, 25.0)])
    lower, upper = np.array([0.0, -1, 0]), np.array([10.0, 5, 20])
    truth = np.clip(X, lower, upper).mean(axis=0)
    scores = []
    for seed in range(80):
        one = kind((lower, upper), epsilon=epsilon, n_reported=n_reported, random_state=seed)
        means, std = one.means(one.fit_transform(X), return_std=True)
        scores.append((means - truth) / std)
    scores = np.array(scores)
    assert np.abs(scores.mean(axis=0)).max() * math.sqrt(80) < BEYOND
    assert 0.8 < scores.std() < 1.2


@numeric
def test_reports_lie_on_a_public_lattice(kind):
    one = kind((0.0, 1.0), epsilon=1.0, random_state=0)
    X = np.random.default_rng(0).uniform(size=(5000, 1))
    out = one.fit_transform(X)
    mechanism = one.privacy_.releases[0].mechanism
    channel = mechanism.channels[0]
    # Counted in steps, reports are integers, wherever the values are.
    if kind is LocalLaplace:
        steps = out * channel.largest
    else:
        steps = (out - 0.5) * channel.largest * channel.weight + (channel.n_reports - 1) / 2
        assert steps.min() > -0.01
        assert steps.max() < channel.n_reports - 0.99
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-6 * channel.largest / 100)
    # The same report for values that round alike.
    close = kind((0.0, 1.0), epsilon=1.0, random_state=0).transform(np.round(X * 2**20) / 2**20)
    np.testing.assert_array_equal(out, close)


@numeric
def test_means_read_reports_only(kind):
    model = kind((0, 1), epsilon=1.0).fit(np.zeros((1, 2)))
    for Z in ([["a", "b"]], [[math.nan, 1.0]], [[0.0, 1.0], [math.inf, 1.0]], [[None, 1.0]]):
        with pytest.raises(ValueError, match="Z must hold reports as transform returns them"):
            model.means(Z)
    with pytest.raises(TypeError, match="return_std"):
        model.means([[0.0, 1.0]], return_std="yes")


@numeric
def test_numbers_without_noise_are_rounded_and_clipped(kind):
    X = np.array([[-5.0, 0.25], [0.5, 3.0]])
    out = kind((0, 1), epsilon=math.inf).transform(X)
    np.testing.assert_allclose(out, [[0, 0.25], [0.5, 1]], atol=1e-6)


@numeric
@pytest.mark.parametrize("epsilon", [2.0**-20, 1e9])
def test_extreme_epsilons(kind, epsilon):
    out = kind((0, 1), epsilon=epsilon, n_reported="all").transform(np.full((50, 200), 0.5))
    assert np.all(np.isfinite(out))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 8.0])
def test_piecewise_has_less_error_than_laplace(epsilon):
    def spread(kind):
        return kind((-1, 1), epsilon=epsilon).privacy_plan(n_features=1).releases[0].mechanism.scale

    assert spread(PiecewiseMechanism) < 0.85 * spread(LocalLaplace)


# --- pipelines and allocation -----------------------------------------------------------------------------------------


@every
def test_a_pipeline_charges_once_for_its_fit_and_again_for_each_prediction(transformer):
    if transformer.n_reported != "all" and isinstance(transformer, RandomizedResponse):
        pytest.skip("missing reports are not for this model")
    accountant = BudgetAccountant(10.0)
    model = make_pipeline(clone(transformer).set_params(accountant=accountant), KMeans(2, n_init=1))
    model.fit(CODES)
    assert len(accountant) == 1
    model.predict(CODES)
    assert len(accountant) == 2


@every
def test_allocate_gives_the_whole_budget_where_reports_alone_are_seen(transformer):
    model = make_pipeline(clone(transformer), StandardScaler(), KMeans(2))
    accountant = BudgetAccountant(3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyAssumptionWarning)
        allocation = allocate(model, 3.0, accountant=accountant)
    (name,) = allocation
    assert allocation[name] == (3.0, 0.0)
    assert allocation.not_private == ()
    assert model[0].epsilon == 3.0
    assert model[0].accountant is accountant


def test_allocate_names_what_sees_labels_or_rows_as_they_are():
    def not_private(model):
        with pytest.warns(PrivacyAssumptionWarning):
            return allocate(model, 1.0).not_private

    assert not_private(make_pipeline(UnaryEncoder(3), BernoulliNB())) == ("bernoullinb",)
    assert not_private(make_pipeline(StandardScaler(), LocalLaplace((-1, 1)), KMeans(2))) == ("standardscaler",)
    part = make_column_transformer((UnaryEncoder(3), [0]), remainder="passthrough")
    assert not_private(make_pipeline(part, KMeans(2))) == ("kmeans",)


def test_allocate_splits_over_two_transformers():
    model = make_column_transformer((UnaryEncoder(3), [0]), (LocalLaplace((0, 1)), [1, 2]))
    accountant = BudgetAccountant(2.0)
    assert set(allocate(model, 2.0, accountant=accountant).values()) == {(1.0, 0.0)}
    model.fit_transform(CODES)
    assert accountant.total() == (2.0, 0.0)


def test_allocate_refuses_what_hands_rows_on_again():
    with pytest.raises(ValueError, match="CalibratedClassifierCV is not known to fit each of its parts once"):
        allocate(CalibratedClassifierCV(make_pipeline(UnaryEncoder(3), LogisticRegression())), 1.0)


class CountsLabels(TransformerMixin, BaseEstimator):
    """A transformer of another library, which keeps what labels say, and does not say that it needs them."""

    def fit(self, X, y=None):
        self.counts_ = None if y is None else np.bincount(y)
        return self

    def transform(self, X):
        return X


class CountsLabelsOfClusters(ClusterMixin, CountsLabels):
    """A clusterer of another library, which does so too."""


class OwnPCA(PCA):
    """What a class of another library does with labels, no one knows."""


@pytest.mark.parametrize(
    "step",
    [SelectKBest(k=1), SelectPercentile(), PLSSVD(1), CountsLabels(), CountsLabelsOfClusters(), OwnPCA()],
    ids=lambda step: type(step).__name__,
)
def test_allocate_names_what_may_learn_from_labels_behind_reports(step):
    model = make_pipeline(LocalLaplace((0, 3)), step)
    with pytest.warns(PrivacyAssumptionWarning, match=type(step).__name__.lower()):
        allocation = allocate(model, 1.0)
    assert allocation.not_private == (type(step).__name__.lower(),)
    assert is_clusterer(step) == isinstance(step, CountsLabelsOfClusters)


@pytest.mark.parametrize("step", [DBSCAN(), Birch(), IsolationForest(), GaussianMixture(), KernelDensity(), PCA(2)])
def test_allocate_does_not_name_what_leaves_labels_alone(step):
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyAssumptionWarning)
        assert allocate(make_pipeline(UnaryEncoder(3), step), 1.0).not_private == ()


def prefit():
    return make_pipeline(LocalLaplace((0, 1), epsilon=50.0), LogisticRegression())


@pytest.mark.parametrize(
    ("within", "model"),
    [
        ("FrozenEstimator", make_pipeline(FrozenEstimator(LocalLaplace((0, 1), epsilon=50.0)), LocalLaplace((0, 1)))),
        ("FrozenEstimator", FrozenEstimator(prefit())),
        ("SelectFromModel", SelectFromModel(prefit(), prefit=True)),
        (
            "TransformedTargetRegressor",
            make_pipeline(
                LocalLaplace((0, 1)), TransformedTargetRegressor(LinearRegression(), transformer=LocalLaplace((0, 1)))
            ),
        ),
        ("TransformedTargetRegressor", TransformedTargetRegressor(LinearRegression(), transformer=prefit()[:1])),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_allocate_refuses_what_releases_without_a_fit(within, model):
    with pytest.raises(ValueError, match=f"{within} passes rows"):
        allocate(model, 1.0)


def test_allocate_counts_a_local_transformer_before_a_regressor_once():
    model = TransformedTargetRegressor(make_pipeline(LocalLaplace((0, 1)), LinearRegression()))
    accountant = BudgetAccountant(1.0)
    with pytest.warns(PrivacyAssumptionWarning):
        allocate(model, 1.0, accountant=accountant)
    # The regression reads the targets.
    with pytest.warns(PrivacyAssumptionWarning, match="LinearRegression"):
        model.fit(CODES, CODES[:, 0])
    assert accountant.total() == (1.0, 0.0)


def test_allocate_refuses_pipelines_that_remember_reports(tmp_path):
    steps = [("u", UnaryEncoder(3)), ("cluster", KMeans(2))]
    inner = Pipeline([("all", Pipeline(steps[:1])), steps[1]], memory=str(tmp_path))
    for model in (Pipeline(steps, memory=str(tmp_path)), make_pipeline(inner, "passthrough")):
        with pytest.raises(ValueError, match="memory of the pipeline must be None"):
            allocate(model, 1.0)


def test_allocate_takes_arrays_called_delta_for_what_they_are():
    step = CountsLabels()
    step.delta = np.zeros(3)
    with pytest.warns(PrivacyAssumptionWarning):
        assert list(allocate(make_pipeline(step, UnaryEncoder(3)), 1.0)) == ["unaryencoder"]
