"""``python -m skdp schema`` shows a schema, and compares a table with it, without a line of Python."""

import gzip
import re

import numpy as np
import pytest

from skdp import BudgetAccountant, Number, ObjPertLogReg, Schema
from skdp.__main__ import main

SCHEMA = Schema({"age": Number(0, 100), "work": ["private", "state"]}, {"income": ["no", "yes"]})
CSV = "work,age,income\nprivate,30,no\nchurch,,yes\n,200,no\n"


@pytest.fixture
def files(tmp_path):
    SCHEMA.save(tmp_path / "census.toml")
    (tmp_path / "census.csv").write_text(CSV)
    return str(tmp_path / "census.toml"), str(tmp_path / "census.csv")


def test_show(files, capsys):
    assert main(["schema", "show", files[0]]) == 0
    assert capsys.readouterr().out == repr(SCHEMA) + "\n"


def test_check(files, capsys):
    assert main(["schema", "check", *files]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Not private, for the curator's eyes only: 3 rows\n")
    assert [line.split() for line in out.splitlines()[2:]] == [
        ["age", "1", "0", "1"],
        ["work", "1", "0", "1"],
        ["income", "(target)", "0", "0", "0"],
    ]


def test_other_columns_are_left_out_and_marks_are_missing(files, tmp_path, capsys):
    (tmp_path / "marks.csv").write_text("id,work,age,income\n1,?,-9,no\n2,-9,30,?\n3,state,?,yes\n")
    marked = ["schema", "check", files[0], str(tmp_path / "marks.csv"), "--missing", "?", "--missing", "age=-9"]
    assert main(marked) == 0
    shown = capsys.readouterr()
    assert [line.split()[-3:] for line in shown.out.splitlines()[2:]] == [
        ["2", "0", "0"],
        ["1", "0", "1"],
        ["1", "0", "0"],
    ]
    assert shown.err == "note: left out, because the schema does not declare them: 'id'\n"
    assert main([*marked, "--missing", "id=3"]) == 1
    assert "'id', which is no declared column" in capsys.readouterr().err


def test_a_first_record_in_place_of_names_is_not_shown(files, tmp_path, capsys):
    (tmp_path / "headless.csv").write_text("71,private,yes\n30,state,no\n")
    assert main(["schema", "check", files[0], str(tmp_path / "headless.csv")]) == 1
    shown = capsys.readouterr()
    assert "3 columns" in shown.err
    assert "71" not in shown.out + shown.err


def test_marks_are_for_csv_files(files, tmp_path, capsys):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"age": [1], "work": ["private"], "id": [3]}), tmp_path / "census.parquet")
    command = ["schema", "check", files[0], str(tmp_path / "census.parquet")]
    assert main(command) == 0
    assert "'id'" in capsys.readouterr().err
    assert main([*command, "--missing", "?"]) == 1
    assert "--missing is for CSV files" in capsys.readouterr().err


def test_check_of_a_compressed_file(files, tmp_path, capsys):
    assert main(["schema", "check", *files]) == 0
    expected = capsys.readouterr().out
    with gzip.open(tmp_path / "census.csv.gz", "wt") as file:
        file.write(CSV)
    assert main(["schema", "check", files[0], str(tmp_path / "census.csv.gz")]) == 0
    assert capsys.readouterr().out == expected


def test_check_of_a_parquet_file(files, tmp_path, capsys):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"age": [1, None], "work": ["private", "x"]}), tmp_path / "census.parquet")
    assert main(["schema", "check", files[0], str(tmp_path / "census.parquet")]) == 0
    assert capsys.readouterr().out.splitlines()[2].split() == ["age", "1", "0", "0"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("age\n1\n", "X lacks columns of the schema: 'work'"),
        ("age,work\n1\n", "must have names of columns in its first line"),
        ("", "must have names of columns in its first line"),
    ],
)
def test_what_cannot_be_read_is_said(files, tmp_path, capsys, content, message):
    (tmp_path / "census.csv").write_text(content)
    assert main(["schema", "check", *files]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error


def test_a_file_that_is_not_there(files, capsys):
    assert main(["schema", "check", "nothing.toml", files[1]]) == 1
    assert main(["schema", "show", "nothing.toml"]) == 1
    assert "nothing.toml" in capsys.readouterr().err


# --- descriptions ----------------------------------------------------------------------------------------------------


def test_describe_charges_a_ledger(files, tmp_path, capsys):
    ledger = str(tmp_path / "budget.db")
    BudgetAccountant(1.0, ledger=ledger)
    html = str(tmp_path / "found.html")
    command = ["describe", files[1], "--schema", files[0], "--ledger", ledger, "--epsilon", "0.6"]
    assert main([*command, "--html", html]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0].split() == ["column", "missing", "mean", "std", "25%", "50%", "75%"]
    # Three records cannot be told from noise.
    assert lines[1].split() == ["age", *["unknown"] * 6]
    assert "(epsilon=0.6, delta=0)-differentially private" in out
    assert (tmp_path / "found.html").read_text().startswith("<table>")
    assert BudgetAccountant.from_ledger(ledger).total().epsilon == 0.6
    # The budget does not admit it a second time.
    assert main(command) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_describe_stops_before_it_uses_much_more_of_the_budget(files, tmp_path, capsys):
    ledger = str(tmp_path / "budget.db")
    budget = BudgetAccountant(3.0, 1e-6, composition="gdp", ledger=ledger)
    model = ObjPertLogReg(epsilon=0.3, delta=1e-7, data_norm=1.0, classes=[0, 1], accountant=budget)
    model.fit(np.zeros((4, 1)), [0, 1, 0, 1])
    command = ["describe", files[1], "--schema", files[0], "--ledger", ledger, "--epsilon", "0.5"]
    assert main(command) == 1
    error = capsys.readouterr().err
    assert re.search(r"uses \d\d% of this budget under 'gdp'.*Nothing was charged\. Pass --delta, or --anyway", error)
    assert len(budget) == 1
    assert main([*command, "--anyway"]) == 0
    assert len(budget) == 2


def test_describe_needs_a_ledger_that_is_there(files, tmp_path, capsys):
    missing = str(tmp_path / "nothing.db")
    assert main(["describe", files[1], "--schema", files[0], "--ledger", missing, "--epsilon", "1"]) == 1
    assert capsys.readouterr().err.startswith("error: ")
