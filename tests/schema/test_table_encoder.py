"""Tables of any kind become the same numbers, each entry by itself, within the norm that is stated."""

import datetime
import decimal
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdp import (
    BudgetAccountant,
    Category,
    DPGridSearchCV,
    DPNaiveBayes,
    DPRandomTree,
    HistogramClassifier,
    HistogramRegressor,
    Number,
    ObjPertLogReg,
    Schema,
    TableEncoder,
    allocate,
    private_cross_val_score,
    private_score,
    stats,
)

NAN, INF = float("nan"), float("inf")

SCHEMA = Schema(
    {
        "age": Number(20, 80, step=1),
        "gain": Number(0, 1000, scale="log"),
        "work": ["private", "state", "7"],
        "code": Category([1, 2, 5], ordered=True),
        "flag": Category([False, True], other="missing"),
        "rate": Number(0.5, 2, scale="log"),
    },
    target=Category(["no", "yes"]),
)

ROWS = {
    "age": [20, 50, 80, 65, 10**6, -3],
    "gain": [0.0, 1000.0, 31.5, 2.0, 5e5, -1.0],
    "work": ["private", "state", "church", "7", "private", "state"],
    "code": [1, 2, 5, 3, 1, 2],
    "flag": [False, True, True, False, True, False],
    "rate": [0.5, 2.0, 1.0, 0.75, 1.25, 3.0],
}
N = 6
FORMS = ["linear", "codes"]
every_form = pytest.mark.parametrize("form", FORMS)


def encoded(table, form="linear", schema=SCHEMA):
    return TableEncoder(schema, form).fit_transform(table)


def rows_of(columns=ROWS):
    return list(zip(*columns.values(), strict=True))


def objects(columns=ROWS):
    array = np.empty((len(rows_of(columns)), len(columns)), dtype=object)
    array[:] = rows_of(columns)
    return array


def of_arrow(columns):
    pa = pytest.importorskip("pyarrow")
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def categorical(columns, values=("other", "state", "private", "7", "church")):
    frame = pd.DataFrame(columns)
    return frame.assign(work=pd.Categorical(frame["work"], categories=values), code=frame["code"].astype("category"))


CONTAINERS = {
    "pandas": pd.DataFrame,
    "objects in pandas": lambda columns: pd.DataFrame(columns, dtype=object),
    "text in pandas": lambda columns: pd.DataFrame(columns).astype({"work": "string"}),
    "nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "categories": categorical,
    "another index and order": lambda columns: pd.DataFrame(columns, index=range(N, 0, -1))[list(columns)[::-1]],
    "no names": lambda columns: pd.DataFrame(objects(columns)),
    "floats": lambda columns: pd.DataFrame(columns).astype({"age": "float64", "code": "float32", "flag": "int8"}),
    "sparse column": lambda columns: pd.DataFrame(columns).astype({"gain": "Sparse[float64]"}),
    "polars": pl.DataFrame,
    "polars categories": lambda columns: pl.DataFrame(columns).with_columns(pl.col("work").cast(pl.Categorical)),
    "arrow": of_arrow,
    "arrow in chunks": lambda columns: (
        __import__("pyarrow").concat_tables([of_arrow(columns)[:2], of_arrow(columns)[2:]])
        if pytest.importorskip("pyarrow")
        else None
    ),
    "arrow in pandas": lambda columns: of_arrow(columns).to_pandas(types_mapper=pd.ArrowDtype),
    "dict of lists": dict,
    "dict of arrays": lambda columns: {name: np.array(values) for name, values in columns.items()},
    "dict of anything": lambda columns: {
        **columns,
        "age": pd.Series(columns["age"]),
        "work": pl.Series(columns["work"]),
    },
    "rows": rows_of,
    "rows of lists": lambda columns: [list(row) for row in rows_of(columns)],
    "tuple of rows": lambda columns: tuple(rows_of(columns)),
    "objects": objects,
    "text": lambda columns: objects(columns).astype(str),
    "text of variable length": lambda columns: objects(columns).astype(np.dtypes.StringDType()),
    "structured": lambda columns: np.array(
        rows_of(columns),
        dtype=[("age", "i4"), ("gain", "f8"), ("work", "U9"), ("code", "u1"), ("flag", "?"), ("rate", "f8")],
    ),
}


@every_form
@pytest.mark.parametrize("container", CONTAINERS)
def test_the_container_does_not_matter(container, form):
    expected = encoded(ROWS, form)
    assert np.array_equal(encoded(CONTAINERS[container](ROWS), form), expected)


def test_what_linear_models_get():
    schema = Schema({"age": (20, 80), "gain": Number(1, 100, scale="log"), "work": ["a", "b"]})
    rows = [(35, 10, "b"), (None, 1000, "c"), (100, NAN, None)]
    assert encoded(rows, schema=schema).tolist() == [
        [-0.5, 0, 0.0, 0, 0, 1, 0, 0],
        [0.0, 1, 1.0, 0, 0, 0, 1, 0],
        [1.0, 0, 0.0, 1, 0, 0, 0, 1],
    ]
    names = ["age", "age_missing", "gain", "gain_missing", "work_a", "work_b", "work_not in list", "work_missing"]
    assert TableEncoder(schema).get_feature_names_out().tolist() == names


def test_what_others_get():
    schema = Schema(
        {"age": (20, 80), "gain": Number(0, 100, scale="log", missing="error"), "work": Category(["a", "b"])}
    )
    encoder = TableEncoder(schema, "codes")
    rows = [(35, 10, "b"), (None, 1000, "c"), (100, -3, None)]
    largest = math.asinh(100)
    found = encoder.fit_transform(rows)
    assert np.allclose(found, [[35, 0, math.asinh(10), 1], [50, 1, largest, 2], [80, 0, 0, 3]], rtol=1e-15)
    assert encoder.get_feature_names_out().tolist() == ["age", "age_missing", "gain", "work"]
    assert encoder.categorical_features == [1, 3]
    assert encoder.n_categories == [2, 4]
    assert np.allclose(encoder.bounds, [[20, 0], [80, largest]])
    assert TableEncoder(Schema({"a": ["x"]}), "codes").bounds is None


def test_cells_follow_the_schema():
    for missing, other, cells in [
        ("cell", "cell", ["x_a", "x_b", "x_not in list", "x_missing"]),
        ("cell", "missing", ["x_a", "x_b", "x_missing"]),
        ("cell", "error", ["x_a", "x_b", "x_missing"]),
        ("error", "cell", ["x_a", "x_b", "x_not in list"]),
        ("error", "error", ["x_a", "x_b"]),
    ]:
        schema = Schema({"x": Category(["a", "b"], missing=missing, other=other)})
        assert TableEncoder(schema).get_feature_names_out().tolist() == cells
        for entry, rule, place in (
            (None, missing, cells[-1]),
            ("c", other, "x_not in list" if other == "cell" else cells[-1]),
        ):
            if rule == "error":
                with pytest.raises(ValueError, match="column 'x' of X holds"):
                    encoded([("a",), (entry,)], schema=schema)
            else:
                assert encoded([("a",), (entry,)], schema=schema)[1].tolist() == [cell == place for cell in cells]


# ---------------------------------------------------------------- each entry by itself

NUMBERS_OF_50 = [
    50,
    50.0,
    np.int8(50),
    np.float32(50),
    "50",
    " 5e1 ",
    "+50.",
    Fraction(50),
    decimal.Decimal(50),
    50 + 0j,
]
MISSING = [
    None,
    NAN,
    pd.NA,
    pd.NaT,
    np.float32("nan"),
    np.datetime64("NaT"),
    "",
    "nan",
    "<NA>",
    decimal.Decimal("nan"),
]


class Hostile:
    """An object that claims to equal anything, and fails when it is asked for its value."""

    def _fail(self, *args):
        raise RuntimeError("patient-7731")

    __float__ = __repr__ = __str__ = __int__ = __index__ = _fail

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash("private")


OTHERS = ["church", b"private", "1_000", "x50", [1], {"a": 1}, 1 + 1j, Hostile(), object(), (1, 2)]


@pytest.mark.parametrize("entry", NUMBERS_OF_50, ids=repr)
def test_a_number_is_read_by_its_value(entry):
    assert encoded({**ROWS, "age": [20, entry, 80, 65, 1, 2]})[1, 0] == 0.0
    assert encoded({**ROWS, "age": [20, entry, 80, 65, 1, 2]})[1, 1] == 0.0


@pytest.mark.parametrize("entry", MISSING, ids=repr)
def test_what_is_missing(entry):
    expected = encoded({name: [None if i == 2 else v for i, v in enumerate(values)] for name, values in ROWS.items()})
    found = encoded({name: [entry if i == 2 else v for i, v in enumerate(values)] for name, values in ROWS.items()})
    assert np.array_equal(found, expected)
    names = TableEncoder(SCHEMA).get_feature_names_out().tolist()
    assert all(expected[2, names.index(f"{name}_missing")] == 1 for name in SCHEMA)
    assert np.linalg.norm(expected[2]) == math.sqrt(len(SCHEMA))


def test_missing_entries_are_in_the_category_that_is_spelled_as_they_are():
    """Readers may turn the text of this category into missing entries."""
    rows = [("",), ("None",), (None,), (NAN,), ("nan",), ("NA",), ("x",)]
    for values, cells in [
        (["", "None"], [0, 1, 0, 0, 0, 0, 2]),
        (["None", "NA"], [1, 0, 1, 1, 1, 1, 2]),
        (["x", "y"], [3, 3, 3, 3, 3, 3, 0]),
    ]:
        assert encoded(rows, "codes", Schema({"x": values}))[:, 0].tolist() == cells


def test_masked_entries_are_missing():
    # NumPy shows masked objects as "?", which is also a category of some tables.
    schema = Schema({"x": ["a", "?"]})
    mask = [False, True, False]
    for entries in (["a", "a", "?"], np.array(["a", 3, "?"], dtype=object)):
        column = np.ma.MaskedArray(entries, mask)
        for table in ({"x": column}, column[:, None]):
            assert encoded(table, "codes", schema)[:, 0].tolist() == [0, 3, 1]
    times = np.ma.MaskedArray(np.array(["2020-01-01"] * 3, dtype="datetime64[ns]"), mask)
    assert encoded({"x": times}, "codes", Schema({"x": ["2020-01-01", "?"]}))[:, 0].tolist() == [0, 3, 0]


def test_numbers_and_text_that_spells_them():
    schema = Schema({"code": [1, 2, 5], "text": ["1", "2.50", "x"]})
    rows = [("1", 1), ("5.0", 2.5), (2.0, "x"), (True, True), ("x", "1.0"), (False, b"1")]
    assert encoded(rows, "codes", schema).tolist() == [[0, 0], [2, 1], [1, 2], [0, 0], [4, 0], [3, 0]]
    schema = Schema({"text": ["1", "2.50", "x"]})
    assert encoded([(1,), (1.0,), ("1",), ("1.0",), (2.5,), ("2.5",), ("x",)], "codes", schema)[:, 0].tolist() == [
        *(0, 0, 0, 0, 1, 1, 2),
    ]


def tables_with(entry):
    """The same rows and one more, in every container that takes it."""
    more = {name: [*values, entry] for name, values in ROWS.items()}
    yield "dict", more
    yield "rows", rows_of(more)
    yield "objects", objects(more)
    for name, make in {
        "pandas": pd.DataFrame,
        "nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
        "polars": pl.DataFrame,
        "category": lambda columns: pd.DataFrame(columns).astype({"work": "category", "age": "category"}),
        "text": lambda columns: objects(columns).astype(str),
        "arrays": lambda columns: {key: np.array(values) for key, values in columns.items()},
        "masked": lambda columns: np.ma.masked_invalid(objects(columns).astype(float)),
    }.items():
        try:
            yield name, make(more)
        except (Exception, pl.exceptions.PanicException):
            # This library does not put such an entry into a column.
            continue


@every_form
@pytest.mark.parametrize(
    "entry",
    [*NUMBERS_OF_50, *MISSING, *OTHERS, INF, -INF, 10**400, 2**63, 0.1, True, "private"],
    ids=lambda v: type(v).__name__,
)
def test_one_record_moves_no_other(entry, form):
    expected = encoded(ROWS, form)
    for name, table in tables_with(entry):
        found = encoded(table, form)
        assert np.array_equal(found[:N], expected), name
        assert np.isfinite(found).all(), name


@every_form
def test_rows_alone_are_encoded_as_among_others(form):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.normal(50, 30, 71),
            "gain": np.where(rng.random(71) < 0.1, NAN, rng.lognormal(3, 3, 71)),
            "work": rng.choice(["private", "state", "church"], 71),
            "code": rng.integers(0, 7, 71),
            "flag": rng.random(71) < 0.5,
            "rate": rng.lognormal(0, 1, 71),
        }
    )
    together = encoded(table, form)
    alone = np.vstack([encoded(table.iloc[[i]], form) for i in range(len(table))])
    assert np.array_equal(together, alone)
    assert np.array_equal(together[::3], encoded(table[::3], form))
    assert np.array_equal(together[::-1], encoded(table.to_numpy()[::-1], form))


def test_points_in_time_are_read_as_their_text():
    """One record determines whether a reader converts the text of a column to points in time."""
    day = datetime.date(2020, 1, 2)
    schema = Schema({"age": (0, 100), "work": ["2020-01-02", "x"], "code": [1, 2]})
    for values in (
        [day] * N,
        [np.datetime64("2020-01-02")] * N,
        [pd.Timestamp(day)] * N,
        pd.Series(["2020-01-02"] * N).astype("datetime64[s]"),
        pd.Series(["2020-01-02"] * N).astype("datetime64[s]").astype("category"),
        np.array(["2020-01-02"] * N, dtype="M8[D]"),
        pl.Series([day] * N),
        pl.Series([datetime.datetime(2020, 1, 2)] * N),
    ):
        found = encoded(dict.fromkeys(schema, values), "codes", schema)
        assert found.tolist() == [[50, 1, 0, 3]] * N
    for values in (
        pd.Series(["2020-01-02"] * N).astype("datetime64[s, UTC]"),
        pd.Series([datetime.timedelta(1)] * N),
        pl.Series([datetime.timedelta(1)] * N),
        [datetime.time(8)] * N,
        [np.timedelta64(1, "D")] * N,
    ):
        found = encoded(dict.fromkeys(schema, values), "codes", schema)
        assert found.tolist() == [[50, 1, 2, 3]] * N
    missing = {**ROWS, "age": [None] * N}
    for values in (pd.Series([pd.NaT] * N), np.array(["NaT"] * N, dtype="M8[D]"), pl.Series([None] * N, dtype=pl.Date)):
        assert np.array_equal(encoded({**ROWS, "age": values}), encoded(missing))


# ---------------------------------------------------------------- norm, names, other columns


@st.composite
def columns_and_entries(draw):
    low = draw(st.floats(-1e6, 1e6))
    width = draw(st.floats(1e-3, 1e6))
    column = draw(
        st.builds(
            Number,
            st.just(low),
            st.just(low + width),
            scale=st.sampled_from(["linear", "log"]),
            step=st.none() | st.floats(1e-3, 10),
        )
        | st.builds(Category, st.lists(st.sampled_from(["a", "b", "c", "1"]), min_size=1, unique=True))
    )
    entry = st.none() | st.floats() | st.sampled_from([low, low + width, low + width / 2, "a", "b", "1", "x", INF])
    return column, draw(st.lists(entry, min_size=4, max_size=4))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(drawn=st.lists(columns_and_entries(), min_size=1, max_size=5))
def test_the_norm_is_never_exceeded_and_reached(drawn):
    schema = Schema({f"c{j}": column for j, (column, _) in enumerate(drawn)})
    table = {f"c{j}": entries for j, (_, entries) in enumerate(drawn)}
    corner = {name: [getattr(column, "high", "a")] for name, column in schema.items()}
    for form in FORMS:
        encoder = TableEncoder(schema, form)
        found = encoder.fit_transform(table)
        assert np.linalg.norm(found, axis=1).max() <= encoder.data_norm == encoder.data_norm_
        if form == "linear":
            reached = np.linalg.norm(encoder.transform(corner))
            assert reached >= encoder.data_norm * (1 - 1e-9)
            assert np.array_equal(TableEncoder(schema, sparse_output=True).fit_transform(table).toarray(), found)
        else:
            numeric = np.setdiff1d(np.arange(found.shape[1]), encoder.categorical_features)
            if len(numeric):
                lower, upper = encoder.bounds
                assert np.all(found[:, numeric] >= lower)
                assert np.all(found[:, numeric] <= upper)
            codes = found[:, encoder.categorical_features]
            assert np.all((codes >= 0) & (codes < np.array(encoder.n_categories)) & (codes == np.rint(codes)))


def test_sparse_rows_have_one_entry_for_each_column():
    rows = TableEncoder(SCHEMA, sparse_output=True).fit_transform(ROWS)
    assert rows.format == "csr"
    assert rows.nnz == N * len(SCHEMA)
    assert rows.has_sorted_indices
    with pytest.raises(ValueError, match="sparse_output"):
        TableEncoder(SCHEMA, "codes", True).fit(ROWS)


def test_names_are_never_equal():
    schema = Schema({"a": ["b_c", "other", "missing"], "a_b": ["c"], "a_other": (0, 1)})
    names = TableEncoder(schema).get_feature_names_out()
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_output_in_frames(container):
    table = CONTAINERS[container](ROWS)
    encoder = TableEncoder(SCHEMA, "codes").set_output(transform=container)
    found = encoder.fit_transform(table)
    assert list(found.columns) == encoder.get_feature_names_out().tolist()
    assert np.array_equal(found.to_numpy(), encoded(ROWS, "codes"))
    assert encoder.feature_names_in_.tolist() == list(ROWS)
    assert encoder.n_features_in_ == len(ROWS)
    assert encoder.get_feature_names_out(list(ROWS)).tolist() == list(found.columns)


def test_the_target_in_a_table_is_no_feature():
    columns, target = {"age": (18, 90), "work": ["a", "b"]}, {"paid": ["no", "yes"]}
    schema = Schema(columns, target=target, group="person", rows_per_group=2)
    table = schema.sample(50)
    assert {"paid", "person"} < set(table)
    for rows in (table, table.drop(columns=["paid", "person"])[["work", "age"]], table[["age", "work"]].to_numpy()):
        encoder = TableEncoder(schema).fit(rows)
        assert encoder.feature_names_in_.tolist() == ["age", "work"]
        assert encoder.n_features_in_ == 2


def test_a_table_that_is_not_read_is_refused():
    frame = pl.DataFrame({"a": [0.1, 0.2], "b": ["x", "y"]})
    schema = Schema({"a": (0, 1), "b": ["x", "y"]}, target=[0, 1])
    for call in (
        lambda: TableEncoder(schema).fit(frame.lazy()),
        lambda: TableEncoder(schema).fit(frame).transform(frame.lazy()),
        lambda: DPNaiveBayes(schema=schema).fit(frame.lazy(), [0, 1]),
        lambda: DPNaiveBayes(bounds=(0, 1), classes=[0, 1]).fit(frame.select("a").lazy(), [0, 1]),
        lambda: stats.mean(frame.lazy(), schema=schema),
        lambda: private_score(DPNaiveBayes(schema=schema).fit(frame, [0, 1]), frame.lazy(), [0, 1]),
        lambda: DPGridSearchCV(DPNaiveBayes(schema=schema), {"n_bins": [2]}, epsilon=1.0, delta=1e-5).fit(
            frame.lazy(), [0, 1]
        ),
    ):
        with pytest.raises(TypeError, match=r"LazyFrame of Polars: pass X.collect\(\)"):
            call()


def test_columns_are_found_by_name():
    schema = Schema(dict(SCHEMA), target={"y": ["no", "yes"]}, group="person", rows_per_group=1)
    frame = pd.DataFrame({**ROWS, "y": ["no"] * N, "person": range(N)})
    assert np.array_equal(encoded(frame[list(frame)[::-1]], schema=schema), encoded(ROWS))
    for table, message in (
        (frame.drop(columns=["age", "rate"]), "X lacks columns of the schema: 'age', 'rate'"),
        (frame.assign(extra=1, more=2), "X has columns that the schema does not declare: 'extra', 'more'"),
        (pd.concat([frame, frame[["age"]]], axis=1), "X has several columns of one name: 'age'"),
        # Otherwise, it would not be known which one counts.
        (pd.concat([frame, frame[["y", "person"]]], axis=1), "X has several columns of one name: 'y', 'person'"),
        (np.ones((3, 5)), "X has 5 features, but Schema is expecting 6"),
        ([[1, 2], [3]], "rows must all have the same length"),
        ({**ROWS, "age": [1]}, "the columns of X must all have the same length"),
        (np.ones(6), "Expected 2D array"),
    ):
        encoder = TableEncoder(schema)
        with pytest.raises(ValueError, match=message):
            encoder.fit_transform(table)
    with pytest.raises(ValueError, match="X has columns that the schema does not declare: None"):
        encoded({**ROWS, None: ROWS["age"]})


def test_without_rows():
    for table in (pd.DataFrame(ROWS)[:0], pl.DataFrame(ROWS)[:0], objects()[:0], {name: [] for name in ROWS}):
        assert encoded(table).shape == (0, len(TableEncoder(SCHEMA).get_feature_names_out()))


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"schema": None}, ValueError, "schema must be given"),
        ({"schema": 3}, TypeError, "schema must be a skdp.Schema, got 3"),
        ({"schema": {"age": "x"}}, TypeError, "column 'age'"),
        ({"form": "onehot"}, ValueError, "form must be one of"),
        ({"form": 3}, ValueError, "form must be one of"),
        ({"sparse_output": "yes"}, TypeError, "sparse_output must be True or False"),
    ],
)
def test_wrong_parameters(parameters, error, message):
    encoder = clone(TableEncoder(SCHEMA)).set_params(**parameters)
    for call in (lambda: encoder.fit(ROWS), lambda: encoder.transform(ROWS), lambda: encoder.data_norm):
        with pytest.raises(error, match=message):
            call()


def test_messages_hold_no_data():
    schema = Schema({"x": Number(0, 1, missing="error"), "y": Category(["a"], missing="error", other="error")})
    for rows in ([("patient-7731", "a")], [(1, "patient-7731")], [(1, Hostile())], [(Hostile(), "a")]):
        with pytest.raises(ValueError, match=r"column '[xy]' of X holds") as failure:
            encoded(rows, schema=schema)
        assert "7731" not in str(failure.value)
        assert failure.value.__context__ is None


# ---------------------------------------------------------------- with models


def polars_of(frame):
    """The same rows without pyarrow, which polars needs to read pandas."""
    return pl.DataFrame({key: [None if pd.isna(v) else v for v in frame[key].tolist()] for key in frame})


def made_up(n=3000):
    rows = SCHEMA.sample(n, seed=2)
    y = np.where(rows["age"].fillna(50) + 20 * (rows["work"] == "private") > 55, "yes", "no")
    return rows, y


def test_parameters_of_models():
    linear, codes = TableEncoder(SCHEMA), TableEncoder(SCHEMA, "codes")
    assert linear.parameters() == {"data_norm": linear.data_norm}
    assert set(codes.parameters()) == {"bounds", "categorical_features", "n_categories"}
    assert linear.parameters(ObjPertLogReg) == {"data_norm": linear.data_norm, "classes": ["no", "yes"]}
    assert set(codes.parameters(DPNaiveBayes())) == {"bounds", "categorical_features", "n_categories", "classes"}
    regression = TableEncoder(Schema({"a": (0, 1)}, target=(0, 10)))
    assert regression.parameters(HistogramRegressor)["bounds_y"] == (0.0, 10.0)
    with pytest.raises(ValueError, match="declares the target as a Number, and HistogramClassifier is a classifier"):
        regression.parameters(HistogramClassifier)


@pytest.mark.parametrize(
    ("form", "model"), [("linear", ObjPertLogReg), ("codes", DPNaiveBayes), ("codes", DPRandomTree)], ids=str
)
def test_models_learn_from_any_container(form, model):
    X, y = made_up()
    encoder = TableEncoder(SCHEMA, form)
    fitted = [
        make_pipeline(encoder, model(epsilon=20.0, delta=1e-6, random_state=0, **encoder.parameters(model)))
        .fit(table, y)
        .predict_proba(table)
        for table in (X, polars_of(X), X.to_numpy())
    ]
    assert np.array_equal(fitted[0], fitted[1])
    assert np.array_equal(fitted[0], fitted[2])
    # Noise of this scale moves accuracy by less than 0.01; the floor is what the age alone gives.
    assert np.mean((fitted[0][:, 1] > 0.5) == (y == "yes")) > 0.8


def test_it_is_a_step_that_learns_nothing():
    X, y = made_up(400)
    encoder = TableEncoder(SCHEMA, "codes")
    model = make_pipeline(encoder, DPNaiveBayes(**encoder.parameters(DPNaiveBayes)))
    accountant = BudgetAccountant(epsilon=1.0, delta=1e-6)
    paid = clone(model)
    allocate(paid, epsilon=1.0, delta=1e-6, accountant=accountant)
    paid.fit(X, y)
    assert accountant.remaining().epsilon < 1e-6
    found = [
        DPGridSearchCV(model, {"dpnaivebayes__n_bins": [4, 8]}, epsilon=5.0, delta=1e-5, random_state=0)
        .fit(table, y)
        .predict(table)
        for table in (X, polars_of(X), X.convert_dtypes(), X.to_numpy(), X.to_numpy().tolist())
    ]
    assert all(np.array_equal(found[0], each) for each in found)
    assert len(private_cross_val_score(model, X, y, epsilon=3.0, delta=1e-5, cv=2, random_state=0)) == 2
    assert private_score(paid, X, y, epsilon=3.0, random_state=0) is not None


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (TableEncoder(SCHEMA | {"age": Number(20, 80, missing="error")}), "columns 'age'"),
        (TableEncoder(SCHEMA | {"work": Category(["a"], other="error")}), "columns 'work'"),
    ],
)
def test_searches_refuse_steps_that_fail_on_one_record(encoder, message):
    X, y = made_up(50)
    model = make_pipeline(encoder, ObjPertLogReg(data_norm=3.0, classes=["no", "yes"]))
    accountant = BudgetAccountant(epsilon=10.0, delta=1e-3)
    search = DPGridSearchCV(model, {"objpertlogreg__fit_intercept": [True]}, epsilon=5.0, delta=1e-5)
    with pytest.raises(ValueError, match=message):
        search.set_params(accountant=accountant).fit(X, y)
    assert accountant.remaining().epsilon == 10.0


def test_integers_of_any_size_are_read():
    """One record can make Polars store a column as integers of 128 bits."""
    schema = Schema({"a": (0, 100), "b": ["x", "y"]})
    table = {"a": [5, 2**70, 70], "b": ["x", "y", "x"]}
    found = TableEncoder(schema=schema).fit(table).transform(pl.DataFrame(table, strict=False))
    np.testing.assert_array_equal(found, TableEncoder(schema=schema).fit(table).transform(table))


BACK = Schema(
    {
        "age": Number(18, 90),
        "income": Number(1, 10_000, scale="log", missing="error"),
        "work": Category(["private", "state"]),
        "rank": Category([3, 5, 8], missing="error", other="missing"),
    }
)


@pytest.mark.parametrize("form", ["linear", "codes"])
def test_encoded_rows_are_decoded(form):
    table = pd.DataFrame(
        {
            "age": [18.0, None, 90.0, 41.0],
            "income": [1.0, 10.0, 10_000.0, 250.0],
            "work": ["state", "church", None, "private"],
            "rank": [5, 8, 3, 5],
        }
    )
    encoder = TableEncoder(BACK, form=form)
    rows = encoder.transform(table)
    back = encoder.inverse_transform(rows)
    assert list(back.columns) == list(table.columns)
    np.testing.assert_allclose(back["age"].astype(float), table["age"])
    np.testing.assert_allclose(back["income"], table["income"])
    assert back["work"].fillna("gone").tolist() == ["state", "not in list", "gone", "private"]
    assert back["rank"].tolist() == [5, 8, 3, 5]
    np.testing.assert_allclose(encoder.transform(back), rows, atol=1e-12)
    assert encoder.inverse_transform(rows[:0]).shape == (0, 4)
    with pytest.raises(ValueError, match="X has 2 columns, and the encoded table has"):
        encoder.inverse_transform(rows[:, :2])


def test_means_of_encoded_rows_are_decoded():
    table = {"age": [20, 40, None], "income": [10, 10, 1000], "work": ["state", "state", None], "rank": [3, 8, 8]}
    for sparse_output in (False, True):
        encoder = TableEncoder(BACK, sparse_output=sparse_output)
        rows = encoder.transform(table)
        centre = rows.mean(axis=0)[None]
        decoded = encoder.inverse_transform(csr_array(centre) if sparse_output else centre)
        # The mean of the numbers that are there, and on the scale of the column.
        assert decoded["age"][0] == pytest.approx(30)
        assert decoded["income"][0] == pytest.approx(10 ** (5 / 3))
        assert decoded["work"][0] == "state"
        assert decoded["rank"][0] == 8
