"""Readers of CSV files choose the type of a column by all of its entries. No record changes how the others are read."""

import csv
import io
import itertools
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdp import DPPCA, Category, DPNaiveBayes, Number, Schema, TableEncoder
from skdp.schema.declared import read_cells, read_numbers
from skdp.schema.entries import read_column
from tests.neighbours import inputs_of_both

try:
    import pyarrow
    import pyarrow.csv
except ImportError:
    pyarrow = None

needs_pyarrow = pytest.mark.skipif(pyarrow is None, reason="this reader is PyArrow's, which is not installed")


def plain(file):
    rows = list(csv.reader(io.StringIO(file.decode())))
    return dict(zip(rows[0], map(list, zip(*rows[1:], strict=True)), strict=True))


def of_arrow(file, **options):
    return pyarrow.csv.read_csv(io.BytesIO(file), convert_options=pyarrow.csv.ConvertOptions(**options))


def reader(library, needs_arrow=False, **options):
    def read(file):
        return library(io.BytesIO(file), **options)

    return pytest.param(read, marks=needs_pyarrow if needs_arrow else ())


READERS = {
    "csv": pytest.param(plain),
    "pandas": reader(pd.read_csv),
    "pandas, in Python": reader(pd.read_csv, engine="python"),
    "pandas, nullable": reader(pd.read_csv, dtype_backend="numpy_nullable"),
    "pandas, types of PyArrow": reader(pd.read_csv, True, dtype_backend="pyarrow"),
    "pandas, by PyArrow": reader(pd.read_csv, True, engine="pyarrow"),
    "pandas, all of PyArrow": reader(pd.read_csv, True, engine="pyarrow", dtype_backend="pyarrow"),
    "Polars": reader(pl.read_csv, infer_schema_length=None),
    "Polars, by PyArrow": reader(pl.read_csv, True, use_pyarrow=True),
    "PyArrow": pytest.param(of_arrow, marks=needs_pyarrow),
    "PyArrow, null text": pytest.param(lambda file: of_arrow(file, strings_can_be_null=True), marks=needs_pyarrow),
    "PyArrow, dictionaries": pytest.param(lambda file: of_arrow(file, auto_dict_encode=True), marks=needs_pyarrow),
}
every_reader = pytest.mark.parametrize("read", READERS.values(), ids=READERS)

NOTHING = ["", "NA", "N/A", "n/a", "#NA", "#N/A", "#N/A N/A", "null", "NULL", "<NA>", "nan", "NaN", "-nan", "NAN"]
NOTHING += ["1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"]
NUMBERS = ["0", "1", "2", "-1", "7", "007", "+7", "7.", "7.0", ".5", "5e-1", "1e3", "1e400", "-1e400", "inf", "-inf"]
NUMBERS += ["0x1F", "0X1f", "0xffffffffffffffff", " 1", "1 ", "0.1", "0.30000000000000004", "9007199254740993"]
TRUTHS = ["true", "True", "TRUE", "tRue", "false", "False", "FALSE"]
TIMES = ["2020-01-01", "2020-01-02", "9999-12-31", "10000-01-01", "20200101", "08:00", "08:00:00", "24:00"]
TIMES += ["2020-01-01 08:00", "2020-01-01T08:00", "2020-01-01 08:00:00", "2020-01-01T06:00Z", "2020-01-01T08:00+02:00"]
TIMES += ["2020-01-01T08:00:00.123456789"]
TEXTS = ["private", "x", "yes", "-", "?", "1_000", "1,5", "1d", "(1)", " NA", "0b1", "2020-1-1", "é", "None"]

#: Texts of each type that a reader may choose.
PARTNERS = ["NA", "1", "0", "1.5", "true", "2020-01-01", "2020-01-01 08:00", "2020-01-01T08:00Z", "08:00", "zzz"]

COLUMNS = {
    "number": Number(0, 100),
    "steps": Number(0, 2000, step=1),
    "logarithms": Number(1, 1e6, scale="log"),
    "codes": Category([0, 1, 2, 7, 31]),
    "fractions": Category([0.1, 0.5, 7.0], ordered=True),
    "codes without a cell for others": Category([1, 2, 3], other="missing"),
    "booleans": Category([False, True]),
    "text": Category(["private", "x"]),
    "ordered text": Category(["x", "?", "private"], ordered=True),
    "text of numbers": Category(["1", "0.5", "007", "0x1F", "zzz"]),
    "text of booleans": Category(["TRUE", "false", "x"]),
    "text of times": Category(["2020-01-01", "08:00", "2020-01-01 08:00", "2020-01-01T08:00+02:00"]),
    "text of missing entries": Category(["NA", "x"]),
}


def written(columns):
    """Return a CSV file of columns with equally many entries."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return file.getvalue().encode()


def meanings(table, name):
    """Return what estimators get of a column, by its kind."""
    entries = read_column(table.column(name) if hasattr(table, "column_names") else table[name], name)
    return {
        kind: (
            read_cells(column, entries) if isinstance(column, Category) else read_numbers(column, entries)[0]
        ).tolist()
        for kind, column in COLUMNS.items()
    }


@pytest.mark.sample(every=4)
@every_reader
def test_an_entry_has_one_meaning_beside_any_other(read):
    pairs = list(itertools.product([*NOTHING, *NUMBERS, *TRUTHS, *TIMES, *TEXTS], PARTNERS))
    file = written({f"c{i}": pair for i, pair in enumerate(pairs)})
    table, text = read(file), plain(file)
    wrong = {pair for i, pair in enumerate(pairs) if meanings(table, f"c{i}") != meanings(text, f"c{i}")}
    assert wrong == set()


def test_the_meaning_of_text():
    for kind, entry, cell in [
        *(("codes", entry, "missing") for entry in [*NOTHING, *TEXTS, "2020-01-01"]),
        *(("booleans", entry, "missing") for entry in ["yes", "NA", "08:00"]),
        *(("text", entry, "missing") for entry in NOTHING),
        *(("text", entry, "not in list") for entry in ["church", "7", "true", "2020-01-01", "-"]),
        *(("text of missing entries", entry, "NA") for entry in NOTHING),
        ("codes", "3", "not in list"),
        ("codes", "0x1f", "31"),
        ("codes", "True", "1"),
        ("booleans", "1", "True"),
        ("booleans", "2", "not in list"),
        ("text of booleans", "tRue", "TRUE"),
        ("text of numbers", "7.0", "007"),
        ("text of times", "2020-01-01T06:00:00Z", "2020-01-01T08:00+02:00"),
    ]:
        encoder = TableEncoder(Schema({"c": COLUMNS[kind]})).fit({"c": [entry]})
        [place] = np.flatnonzero(encoder.transform({"c": [entry]})[0])
        assert encoder.get_feature_names_out()[place] == f"c_{cell}", (kind, entry)


@needs_pyarrow
def test_points_in_time_that_python_lacks_are_read():
    """Neither Python nor pandas has the year 0. PyArrow and Polars have it."""
    file = written({"c": ["0000-01-01", "NA"], "d": ["0000-01-01 08:00", "NA"]})
    schema = Schema({"c": COLUMNS["text"], "d": Number(0, 1)})
    for table in (of_arrow(file), pl.read_csv(io.BytesIO(file), use_pyarrow=True), plain(file)):
        assert TableEncoder(schema).fit_transform(table).tolist() == [[0, 0, 1, 0, 0, 1], [0, 0, 0, 1, 0, 1]]


# ---------------------------------------------------------------- what is released

#: A record of text, a point in time, a boolean, a number, and none.
ADDED = ["zzz", "2020-01-01", "08:00", "true", "0.5", "NA"]

#: Entries of a column before the record is added. A reader chooses another type for most of them.
BEFORE = [["NA", ""], ["0", "1", "NA"], ["0.5", "NA"], ["true", "NA", "false"], ["2020-01-01", "NA"], ["08:00", ""]]


def models(schema):
    yield DPNaiveBayes(schema=schema, epsilon=1.0, random_state=0)
    yield DPPCA(schema=schema, n_components=1, epsilon=1.0, delta=1e-6, random_state=0)


@pytest.mark.sample(every=4)
@every_reader
@pytest.mark.parametrize("added", ADDED)
def test_one_record_changes_a_release_by_its_sensitivity(read, added):
    for kind, before in itertools.product(COLUMNS, BEFORE):
        columns = {"c": before * 15, "y": ["no", "yes", "no"] * (len(before) * 5)}
        more = {"c": [*columns["c"], added], "y": [*columns["y"], "no"]}
        schema = Schema({"c": COLUMNS[kind]}, target={"y": ["no", "yes"]})
        tables = [read(written(each)) for each in (columns, more)]
        data = [(table, table.column("y") if hasattr(table, "column_names") else table["y"]) for table in tables]
        for model in models(schema):
            first, second = inputs_of_both(model, *data)
            for place, release in first.items():
                mechanism = release.mechanism
                moved = second[place].value - release.value
                size = {"L1": np.abs(moved).sum(), "L2": np.linalg.norm(moved)}.get(mechanism.norm, 0.0)
                assert size <= mechanism.sensitivity * (1 + 1e-9), (type(model).__name__, kind, before)


@every_reader
def test_labels_have_one_meaning_beside_any_other(read):
    for target, values, added, counts in [
        (Category([0, 1]), ["0", "1", "1.0"], "2", [1, 2]),
        (Category([0, 1]), ["0", "1", "1.0"], "true", [1, 3]),
        (Category([0.5, 1]), ["1", "0.5", "1.0"], "inf", [1, 2]),
        (Category([False, True]), ["0", "1", "true"], "7", [1, 2]),
        (Category(["no", "1", "2020-01-01"]), ["1", "no", "2020-01-01"], "zzz", [1, 1, 1]),
        (Category(["no", "yes"]), ["no", "yes", "yes"], "2020-01-01", [1, 2]),
    ]:
        schema = Schema({"c": (0, 1)}, target={"y": target})
        for rows in (values, [*values, added]):
            table = read(written({"c": ["0.5"] * len(rows), "y": rows}))
            model = DPNaiveBayes(schema=schema, epsilon=math.inf, random_state=0)
            y = table.column("y") if hasattr(table, "column_names") else table["y"]
            expected = dict(zip(target.values, counts, strict=True))
            if added == "true" and len(rows) == 3:
                expected[1] -= 1
            model.fit(table, y)
            assert dict(zip(model.classes_.tolist(), np.rint(model.class_count_), strict=True)) == expected
