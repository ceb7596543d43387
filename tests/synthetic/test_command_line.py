"""``python -m skdp synthesize`` writes a synthetic table, and charges nothing before all is well.

False alarms: limits of noisy numbers are at six standard deviations or more.
"""

import csv
import gzip
import json

import numpy as np
import pytest

from skdp import BudgetAccountant, Category, Number, ObjPertLogReg, Schema
from skdp.__main__ import main

SCHEMA = Schema(
    {
        "age": Number(18, 90, step=1, missing="cell"),
        "height": Number(1.0, 2.5, missing="error"),
        "work": Category(["private", "state"]),
    },
    target={"paid": Category(["no", "yes"], other="error", missing="error")},
)


@pytest.fixture
def files(tmp_path):
    """Write a table with missing entries, its schema and a ledger, and return the options of a command."""
    SCHEMA.save(tmp_path / "census.toml")
    rng = np.random.default_rng(0)
    columns = {
        "paid": rng.choice(["no", "yes"], 2000),
        "age": np.where(rng.random(2000) < 0.3, "", rng.integers(18, 91, 2000).astype(str)),
        "height": rng.uniform(1, 2.5, 2000),
        "work": rng.choice(["private", "state", "church", ""], 2000),
    }
    with open(tmp_path / "census.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    BudgetAccountant(1.0, 1e-6, ledger=str(tmp_path / "budget.db"))
    return tmp_path


def command(folder, out="synthetic.csv", epsilon="0.6", **options):
    more = {"schema": folder / "census.toml", "ledger": folder / "budget.db", "delta": "1e-7", **options}
    words = [word for name, value in more.items() if value is not None for word in (f"--{name}", str(value))]
    return ["synthesize", str(folder / "census.csv"), "--epsilon", epsilon, "--out", str(folder / out), *words]


def charges(folder):
    return len(BudgetAccountant.from_ledger(str(folder / "budget.db")))


@pytest.mark.parametrize("out", ["synthetic.csv", "synthetic.csv.gz"])
def test_a_table_is_written_and_the_ledger_charged(files, capsys, out):
    assert main(command(files, out)) == 0
    printed = capsys.readouterr().out
    assert "(epsilon=0.6, delta=1e-07)-differentially private" in printed
    assert "[Synthetic tables, theorem" in printed
    assert printed.endswith(f"{files / out} was written\n")
    assert charges(files) == 1
    opened = gzip.open if out.endswith("gz") else open
    with opened(files / out, "rt", newline="") as file:
        names, *rows = csv.reader(file)
    # The columns are in the order of the table.
    assert names == ["paid", "age", "height", "work"]
    paid, ages, heights, work = zip(*rows, strict=True)
    assert 1400 < len(rows) < 2600
    assert set(paid) <= {"no", "yes"}
    # Whole numbers have no fraction, and missing entries are empty.
    assert {int(age) for age in ages if age} <= set(range(18, 91))
    assert 0.2 < np.mean([age == "" for age in ages]) < 0.4
    assert all(1 <= float(height) <= 2.5 for height in heights)
    assert {"private", "state"} < set(work)


def test_a_number_of_rows_and_no_ledger(files, capsys):
    assert main(command(files, ledger=None, rows=7)) == 0
    assert len((files / "synthetic.csv").read_text().splitlines()) == 8
    assert "No ledger was charged" in capsys.readouterr().out
    assert charges(files) == 0


def test_a_card_the_release_as_json_and_a_label(files, capsys):
    card, content = files / "card.md", files / "release.json"
    assert main(command(files, card=card, json=content, label="for the survey")) == 0
    assert "card.md" in capsys.readouterr().out.splitlines()[-1]
    text = card.read_text()
    assert text.startswith("# Synthetic table\n\nAll releases about these records")
    assert "together (epsilon=1, delta=1e-06)-differentially private" in text
    assert "\n\nThis model is (epsilon=0.6, delta=1e-07)-differentially private" in text
    assert json.loads(content.read_text())["format"] == "skdp.TableGenerator"
    [charge] = BudgetAccountant.from_ledger(str(files / "budget.db")).records
    assert charge.label == "for the survey"


def test_means_that_noise_biases_are_named(files, capsys):
    """The cost is skewed and its bounds are wide: its mean in the synthetic table is several times the real one."""
    schema = Schema({"cost": Number(0, 100_000), "age": Number(18, 90, step=1, missing="error")})
    schema.save(files / "wide.toml")
    rng = np.random.default_rng(0)
    rows = zip(np.minimum(np.exp(5 + 1.3 * rng.normal(size=2000)), 1e5), rng.integers(18, 91, 2000), strict=True)
    (files / "census.csv").write_text("cost,age\n" + "\n".join(f"{cost:.2f},{age}" for cost, age in rows))
    assert main(command(files, schema=files / "wide.toml", card=files / "card.md")) == 0
    assert "warning: noise in empty bins can bias the synthetic means of cost\n" in capsys.readouterr().out
    assert "noise in empty bins can bias those of cost. Do not use" in (files / "card.md").read_text()


@pytest.mark.parametrize("out", ["synthetic.csv", "synthetic.parquet"])
@pytest.mark.parametrize("source", ["census.csv", "census.parquet"])
def test_parquet_files(files, source, out):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import csv as arrow_csv
    from pyarrow import parquet

    parquet.write_table(arrow_csv.read_csv(files / "census.csv"), files / "census.parquet")
    words = [word.replace("census.csv", source) for word in command(files, out, rows=50)]
    assert main(words) == 0
    found = parquet.read_table(files / out) if out.endswith("parquet") else arrow_csv.read_csv(files / out)
    assert found.num_rows == 50
    assert found.schema.field("height").type == pa.float64()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"out": "census.csv"}, "exists. Pass another file. Nothing was charged"),
        ({"rows": 0}, "--rows must be at least 1. Nothing was charged"),
        ({"epsilon": "-1"}, "epsilon must be positive"),
        ({"epsilon": "2"}, "budget"),
        ({"schema": "nothing.toml"}, "nothing.toml"),
        ({"ledger": "nothing.db"}, "nothing.db"),
        ({"out": "nowhere/synthetic.csv"}, "nowhere"),
        ({"card": "nowhere/card.md"}, "nowhere"),
        ({"json": "/"}, "exists. Pass another file. Nothing was charged"),
        ({"ledger": None, "label": "a"}, "--label is for the charge of a ledger, and needs --ledger"),
    ],
)
def test_errors_charge_nothing_and_leave_no_file(files, capsys, change, message):
    before = sorted(path.name for path in files.iterdir())
    assert main(command(files, **change)) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert charges(files) == 0
    assert sorted(path.name for path in files.iterdir()) == before


def test_a_failed_write_says_that_the_budget_was_charged(files, capsys, monkeypatch):
    def full(path, table):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("skdp.__main__._write", full)
    assert main(command(files)) == 1
    error = capsys.readouterr().err
    assert "No space left on device" in error
    assert error.endswith("The budget was charged\n")
    assert charges(files) == 1


def test_a_table_without_a_declared_column_charges_nothing(files, capsys):
    (files / "census.csv").write_text("age,work\n30,state\n")
    assert main(command(files)) == 1
    assert "lacks columns of the schema: 'height'" in capsys.readouterr().err
    assert charges(files) == 0
    assert not (files / "synthetic.csv").exists()


def test_much_more_of_the_budget_needs_anyway(files, capsys):
    ledger = files / "gdp.db"
    budget = BudgetAccountant(3.0, 1e-6, composition="gdp", ledger=str(ledger))
    ObjPertLogReg(epsilon=0.3, delta=1e-7, data_norm=1.0, classes=[0, 1], accountant=budget).fit(
        np.zeros((4, 1)), [0, 1, 0, 1]
    )
    words = command(files, epsilon="0.5", delta=0, ledger=ledger)
    assert main(words) == 1
    assert "Nothing was charged. Pass --delta, or --anyway" in capsys.readouterr().err
    assert not (files / "synthetic.csv").exists()
    assert main([*words, "--anyway"]) == 0
    assert (files / "synthetic.csv").exists()
