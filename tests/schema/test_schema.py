"""Schemas: what they refuse, how they print, and that files give back what was written."""

import copy
import json
import pickle
import string
import sys
import tomllib

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from skdp import Category, Number, Schema, TableEncoder
from skdp.schema.declared import read_cells
from skdp.schema.entries import meaning_of, read_column, spelled

CENSUS = Schema(
    {
        "age": Number(17, 90, step=1),
        "gain": Number(0, 99_999.5, scale="log", missing="error"),
        "work": ["private", "state"],
        "degree": Category(["none", "some", "all"], ordered=True, other="missing"),
        "flag": [False, True],
        "hours": (1, 99),
    },
    target={"income": Category(["<=50K", ">50K"])},
    group="person",
    rows_per_group=2,
)


def test_shorthands():
    assert CENSUS["hours"] == Number(1, 99)
    assert CENSUS["work"] == Category(["private", "state"])
    assert Category(3).values == Category(range(3)).values == (0, 1, 2)
    assert CENSUS["flag"].values == (False, True)


def test_it_is_a_mapping_with_an_order():
    assert list(CENSUS) == ["age", "gain", "work", "degree", "flag", "hours"]
    assert len(CENSUS) == 6
    assert "age" in CENSUS
    assert "income" not in CENSUS
    assert list(CENSUS.select("hours", "age")) == ["hours", "age"]
    assert list(CENSUS.drop("hours", "age")) == ["gain", "work", "degree", "flag"]
    assert CENSUS.select("age").target == CENSUS.target
    assert CENSUS.select("age").group == "person"
    other = Schema({"age": (0, 1), "new": (0, 2)}, target=(0, 5))
    both = CENSUS | other
    assert list(both) == [*CENSUS, "new"]
    assert both["age"] == Number(0, 1)
    assert both.target == Number(0, 5)
    assert both.target_name is None
    assert both.rows_per_group == 2
    assert (CENSUS | {"new": (0, 2)})["new"] == Number(0, 2)
    assert (other | CENSUS).target_name == "income"


def test_equal_by_content():
    again = CENSUS.drop() | {}
    assert again == CENSUS
    assert hash(again) == hash(CENSUS)
    assert again is not CENSUS
    assert CENSUS.select(*list(CENSUS)[::-1]) != CENSUS
    assert Schema({"a": (0, 1)}) != Schema({"a": (0, 1)}, target=(0, 1)) != {"a": Number(0, 1)}
    assert len({CENSUS, again}) == 1


def test_copies_are_kept():
    for copied in (copy.copy(CENSUS), copy.deepcopy(CENSUS), pickle.loads(pickle.dumps(CENSUS))):
        assert copied == CENSUS
        assert repr(copied) == repr(CENSUS)
    assert clone(TableEncoder(CENSUS)).schema == CENSUS


def test_it_cannot_be_changed():
    with pytest.raises(AttributeError, match="cannot be changed"):
        CENSUS.group = "other"
    with pytest.raises(AttributeError, match="cannot be changed"):
        del CENSUS.group
    with pytest.raises(TypeError):
        CENSUS["age"] = (0, 1)
    with pytest.raises(AttributeError):
        CENSUS["age"].low = 3


def test_html_is_escaped():
    html = Schema({"<b>": ["<script>", "&"]}, target=(0, 1))._repr_html_()
    assert "<b>" not in html
    assert "<script>" not in html
    assert "&lt;b&gt;" in html
    assert "(target)" in html
    assert len(repr(Schema({"a": Category([f"value {i}" for i in range(1000)])}))) < 300


@pytest.mark.parametrize(("size", "end"), [(5, "'v4'"), (10, "'v9'"), (11, "'v9', and 1 more")])
def test_repr_shows_ten_categories(size, end):
    column = Category([f"v{i}" for i in range(size)])
    text = repr(Schema({"a": column}))
    assert text.endswith(end)
    assert all(repr(value) in text for value in column.values[:10])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Schema([("a", (0, 1))]), TypeError, "columns must map names"),
        (lambda: Schema({}), ValueError, "one column or more"),
        (lambda: Schema({1: (0, 1)}), TypeError, "columns must name columns by text, got 1"),
        (lambda: Schema({"a": 3}), TypeError, "column 'a': must be a Number"),
        (lambda: Schema({"a": "text"}), TypeError, "column 'a': must be a Number"),
        (lambda: Schema({"a": (1, 0)}), ValueError, "column 'a': low must be less than high, got 1 and 0"),
        (lambda: Schema({"a": ("x", "y")}), TypeError, "column 'a': must be a Number, a Category, a tuple"),
        (lambda: Schema({"a": [1, 1]}), ValueError, "column 'a': values must not contain a label twice"),
        (lambda: Schema({"a": [1, "b"]}), ValueError, "column 'a': values must be all text, or all numbers"),
        (lambda: Schema({"a": [None, "b"]}), ValueError, "column 'a': values must be all text, or all numbers"),
        (lambda: Schema({"a": (0, 1)}, target="income"), TypeError, "target: must be a Number"),
        (lambda: Schema({"a": (0, 1)}, target={}), ValueError, "target must be"),
        (lambda: Schema({"a": (0, 1)}, target={"a": (0, 1)}), ValueError, "must be a column, the target or the group"),
        (lambda: Schema({"a": (0, 1)}, {"b": (0, 1)}, "b", 2), ValueError, "must be a column, the target or the group"),
        (
            lambda: Schema({"a": (0, 1)}, group="a", rows_per_group=1),
            ValueError,
            "must be a column, the target or the group",
        ),
        (lambda: Schema({"a": (0, 1)}, group="b"), ValueError, "rows_per_group must be given"),
        (lambda: Schema({"a": (0, 1)}, rows_per_group=1), ValueError, "rows_per_group needs group"),
        (lambda: Schema({"a": (0, 1)}, group="b", rows_per_group=0), ValueError, "rows_per_group must be at least 1"),
        (lambda: Number(0, np.inf), ValueError, "low, high"),
        (lambda: Number([0, 1], [2, 3]), ValueError, "low and high must be numbers"),
        (lambda: Number(0, 1, step=0), ValueError, "step must lie in"),
        (lambda: Number(0, 1, step="1"), TypeError, "step must be a real number"),
        (lambda: Number(0, 1, scale="sqrt"), ValueError, "scale must be one of"),
        (lambda: Number(0, 1, missing="other"), ValueError, "missing must be one of"),
        (lambda: Category("abc"), ValueError, "values must be a number, a list"),
        (lambda: Category([]), ValueError, "values must"),
        (lambda: Category(["a"], ordered=1), TypeError, "ordered must be True or False"),
        (lambda: Category(["a"], missing="x"), ValueError, "missing must be one of"),
        (lambda: Category(["a"], other="x"), ValueError, "other must be one of"),
        (lambda: CENSUS.select("agee"), ValueError, "names must be columns of the schema, which are 'age'"),
        (lambda: CENSUS.drop("agee"), ValueError, "names must be columns of the schema, which are"),
        (lambda: CENSUS.save("census.txt"), ValueError, "must end in .toml or .json"),
        (lambda: CENSUS.sample(-1), ValueError, "n must be at least 0"),
    ],
)
def test_wrong_declarations_are_refused_by_name(make, error, message):
    with pytest.raises(error, match=message):
        make()


# ---------------------------------------------------------------- files

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\\n\r\t\x00\x1f\x7f\u2028'), max_size=8)
_NAMES = _TEXTS.filter(bool)
_FINITE = st.floats(-1e99, 1e99) | st.integers(-(2**53) + 1, 2**53 - 1)
_ENDS = st.tuples(_FINITE, _FINITE).filter(lambda ends: ends[1] - ends[0] >= 1e-100)
_MISSING = st.sampled_from(["cell", "error"])
_NUMBERS = st.builds(
    lambda ends, **more: Number(*ends, **more),
    _ENDS,
    step=st.none() | st.floats(1e-99, 1e99) | st.integers(1, 10**6),
    scale=st.sampled_from(["linear", "log"]),
    missing=_MISSING,
)
_LISTS = [
    st.lists(values, min_size=1, max_size=5, unique_by=lambda value: spelled(meaning_of(value)))
    for values in (_TEXTS, st.booleans(), st.integers(-(2**52), 2**52), st.floats(-1e15, 1e15))
]
_CATEGORIES = st.builds(
    Category,
    st.one_of(_LISTS),
    ordered=st.booleans(),
    missing=_MISSING,
    other=st.sampled_from(["cell", "missing", "error"]),
)
_COLUMNS = _NUMBERS | _CATEGORIES


@st.composite
def schemas(draw):
    names = draw(st.lists(_NAMES, min_size=3, max_size=6, unique=True))
    target = draw(st.none() | _COLUMNS)
    if target is not None and draw(st.booleans()):
        target = {names[0]: target}
    group = (names[1], draw(st.integers(1, 5))) if draw(st.booleans()) else (None, None)
    return Schema({name: draw(_COLUMNS) for name in names[2:]}, target, *group)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(schema=schemas(), ending=st.sampled_from(["toml", "json"]))
def test_files_give_back_what_was_written(schema, ending, tmp_path_factory):
    place = tmp_path_factory.getbasetemp() / f"schema.{ending}"
    schema.save(place)
    again = Schema.load(place)
    # Equality does not tell 1 from 1.0 and True.
    assert again == schema
    assert again._as_dict().__repr__() == schema._as_dict().__repr__()


def test_the_format_is_as_documented(tmp_path):
    CENSUS.save(tmp_path / "census.toml")
    CENSUS.save(tmp_path / "census.json")
    read = tomllib.loads((tmp_path / "census.toml").read_text(encoding="utf-8"))
    assert read == json.loads((tmp_path / "census.json").read_text(encoding="utf-8"))
    assert read["fields"][0] == {"name": "age", "type": "integer", "minimum": 17, "maximum": 90, "step": 1}
    assert read["target"] == {"name": "income", "type": "string", "enum": ["<=50K", ">50K"]}
    assert (read["group"], read["rows_per_group"]) == ("person", 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "format"),
        ('format = "skdp.Schema"\nversion = 2', "version"),
        ('format = "skdp.Schema"\nversion = 1\nfield = 3', "unknown keys: 'field'"),
        ('format = "skdp.Schema"\nversion = 1', "list of fields"),
        ('format = "skdp.Schema"\nversion = 1\n[[fields]]\ntype = "integer"', "each with a name"),
        ('format = "skdp.Schema"\nversion = 1\n[[fields]]\nname = "a"\nminimum = 1', "field 'a' must have minimum"),
        ('format = "skdp.Schema"\nversion = 1\n[[fields]]\nname = "a"\nenum = ["x"]\nstep = 1', "field 'a': .*step"),
        (
            'format = "skdp.Schema"\nversion = 1\n[[fields]]\nname = "a"\nenum = ["x"]\ntype = "integer"',
            "field 'a' has the type 'integer'",
        ),
        (
            'format = "skdp.Schema"\nversion = 1\n[[fields]]\nname = "a"\nenum = [1]\n'
            '[[fields]]\nname = "a"\nenum = [2]',
            "two fields of one name",
        ),
    ],
)
def test_wrong_files_are_refused(text, message, tmp_path):
    place = tmp_path / "wrong.toml"
    place.write_text(text)
    with pytest.raises(ValueError, match=message):
        Schema.load(place)


# ---------------------------------------------------------------- tables


def test_sample_conforms():
    rows = CENSUS.sample(500, seed=3)
    assert list(rows) == ["person", *CENSUS, "income"]
    assert len(rows) == 500
    pd.testing.assert_frame_equal(rows, CENSUS.sample(500, seed=3))
    assert not rows.equals(CENSUS.sample(500, seed=4))
    assert rows["person"].value_counts().max() == 2
    assert {"<=50K", ">50K"} == set(rows["income"])
    assert rows["gain"].notna().all()
    assert rows["age"].isna().any()
    assert set(rows["age"].dropna()) <= set(range(17, 91))
    assert rows["gain"].median() < 5000
    assert all(own["outside"] == 0 for own in CENSUS.check(rows).counts.values())


def test_rows_without_pandas(monkeypatch):
    expected = CENSUS.sample(50, seed=3)
    monkeypatch.setitem(sys.modules, "pandas", None)
    frame = CENSUS.sample(50, seed=3)
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == list(expected.columns)
    monkeypatch.setitem(sys.modules, "polars", None)
    array = CENSUS.sample(50, seed=3)
    assert array.dtype == object
    assert CENSUS.sample(0).shape == (0, array.shape[1])
    monkeypatch.undo()
    for rows in (frame.to_numpy(), array):
        assert np.array_equal(pd.isna(rows), expected.isna())
        assert np.array_equal(rows[~pd.isna(rows)], expected.to_numpy(dtype=object)[~expected.isna()])


def test_check_counts_and_says_that_it_is_not_private():
    rows = CENSUS.select("age", "work").sample(50)[["age", "work"]].dropna()
    rows = pd.concat([rows, pd.DataFrame({"age": [16, 91, None], "work": ["church", "state", None]})])
    checked = CENSUS.select("age", "work").check(rows)
    assert checked.counts == {
        "age": {"missing": 1, "unreadable": 0, "outside": 2},
        "work": {"missing": 1, "unreadable": 0, "outside": 1},
    }
    assert checked.n_rows == len(rows)
    further = CENSUS.select("age").check({"age": ["20", "2001-01-01", "1,5", "", None], "income": ["no"] * 5})
    assert further.counts["age"] == {"missing": 2, "unreadable": 2, "outside": 0}
    for text in (repr(checked), checked._repr_html_()):
        assert "Not private, for the curator's eyes only" in text
        assert "church" not in text


def test_check_counts_rows_beyond_the_limit_of_a_group():
    schema = Schema({"age": (0, 99)}, group="who", rows_per_group=2)
    for who in (["a", "b", "a", "a", "a", None, "b"], [1, 2, 1, 1, 1, None, 2]):
        checked = schema.check({"age": [30] * 7, "who": who})
        assert checked.counts["who (group)"] == {"missing": 1, "unreadable": 0, "outside": 2}
    assert list(schema.check({"age": [30]}).counts) == ["age"]


def test_text_of_every_kind_survives(tmp_path):
    schema = Schema({string.printable: [string.printable, "é\u2028\U0001f600", ""]})
    schema.save(tmp_path / "odd.toml")
    assert Schema.load(tmp_path / "odd.toml") == schema


def test_categories_are_read_alike_for_every_type_of_column():
    # One entry that is no number makes text or objects of a column of numbers.
    for values, entries in (
        ([20000001.0, 19999999.0], [20000000.0, 20000001.0, 19999999.0]),
        ([0.3, 0.1 + 2e-10, 0.1], [0.1, 0.3, float(np.float32(0.1)), float(np.float32(0.3))]),
    ):
        for dtype in (np.float64, np.float32):
            column = np.array(entries, dtype=dtype)
            plain = read_cells(Category(values), read_column(column, "x"))
            more = read_cells(Category(values), read_column(np.array([*column, "unknown"], dtype=object), "x"))
            assert more[:-1].tolist() == plain.tolist()
    with pytest.raises(ValueError, match="two texts that spell the same number"):
        Category(["01", "1", "2"])


def test_no_number_of_rows_in_messages():
    with pytest.raises(ValueError, match="rows must all have the same length") as caught:
        TableEncoder(Schema({"a": (0, 1), "b": ["u"]})).fit([[0.1, "u"]] * 6 + ["SECRET"])
    assert "7" not in str(caught.value)
