"""What a ledger shows: text, notebook, data frame, JSON, command line."""

import json
import math
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from skdp import BudgetAccountant, ObjPertLogReg, __version__
from skdp.__main__ import main
from skdp.accounting import Budget, PureEvent, RecordedRelease
from tests.accounting.costs import gaussian_cost, pure_cost


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "budget.db"
    accountant = BudgetAccountant(2.0, 1e-5, ledger=path, composition="gdp")
    accountant.spend(0.01, label="a histogram")
    release = RecordedRelease("coef", "Gaussian", "L2", 1.0, 2.5)
    accountant.charge(gaussian_cost(0.1), label="fit", estimator="Model", releases=[release])
    with accountant.parallel(by=["n", "s"], parts=["n", "s"]) as parts:
        parts["s"].accountant.charge(pure_cost(0.02), label="of the south")
    return path


def test_the_command_line_prints_the_ledger(ledger, capsys):
    assert main(["ledger", str(ledger)]) == 0
    printed = capsys.readouterr().out
    accountant = BudgetAccountant.from_ledger(ledger)
    for part in (
        "ceiling    epsilon=2, delta=1e-05, composition='gdp'",
        f"spent      epsilon={accountant.total().epsilon:.6g}, delta=1e-05, in 3 charges",
        f"remaining  epsilon={accountant.remaining().epsilon:.6g}, delta=1e-05 for one more release with Gaussian",
        ", by 'gdp' composition less than the sum of epsilons, 0.",
        f"the guarantee of all releases together: {accountant.attack(ceiling=True)._in_short()}\n",
        "budget.remaining(like=model)",
    ):
        assert part in printed
    table = printed.split("\n\n")[1].splitlines()
    assert re.split(r"\s{2,}", table[0].strip()) == ["time (UTC)", "estimator", "label", "part", "epsilon", "delta"]
    assert "a histogram" in table[1]
    assert "Model" in table[2]
    assert "s (division 0)" in table[3]
    assert len(table) == 4


def test_the_newest_charges_alone(ledger, capsys):
    main(["ledger", str(ledger), "--last", "1"])
    printed = capsys.readouterr().out
    assert "... 2 earlier" in printed
    assert "of the south" in printed
    assert "a histogram" not in printed
    main(["ledger", str(ledger), "--last", "0"])
    assert "of the south" not in capsys.readouterr().out


def test_json_holds_events_and_releases(ledger, capsys):
    main(["ledger", str(ledger), "--json"])
    data = json.loads(capsys.readouterr().out)
    assert data["ceiling"] == {"epsilon": 2.0, "delta": 1e-5}
    assert data["n_records"] == 3
    assert data["records"][1]["events"] == [{"kind": "gaussian", "noise_mu": 0.1}]
    assert data["records"][1]["releases"] == [
        {"label": "coef", "mechanism": "Gaussian", "norm": "L2", "sensitivity": 1.0, "scale": 2.5}
    ]
    assert [record["part"] for record in data["records"]] == ["", "", "s"]
    main(["ledger", str(ledger), "--json", "--last", "2"])
    assert [record["label"] for record in json.loads(capsys.readouterr().out)["records"]] == ["fit", "of the south"]


def test_json_without_a_ceiling_is_json():
    accountant = BudgetAccountant(math.inf)
    accountant.spend(math.inf)

    def refuse(constant):
        raise AssertionError(constant)

    data = json.loads(accountant.to_json(), parse_constant=refuse)
    assert data["spent"]["epsilon"] == data["records"][0]["epsilon"] == "inf"


def test_the_ledger_counts_one_charge():
    accountant = BudgetAccountant(1.0)
    assert "in 0 charges" in accountant.to_text()
    accountant.spend(0.1)
    assert "in 1 charge\n" in accountant.to_text()


def test_the_command_says_its_version(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"skdp {__version__}\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a pipe is closed as on POSIX")
@pytest.mark.parametrize("arguments", [["--json"], []])
def test_a_reader_that_has_seen_enough_is_no_error(ledger, arguments):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        command = [sys.executable, "-m", "skdp", "ledger", str(ledger), *arguments]
        run = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    finally:
        os.close(writer)
    assert (run.returncode, run.stderr) == (0, "")


def test_the_command_says_that_a_ledger_was_moved(ledger, capsys):
    moved = ledger.rename(ledger.with_name("moved.db"))
    assert main(["ledger", str(moved)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("ceiling")
    assert str(ledger) in captured.err
    assert "--moved" in captured.err
    for arguments in (["--moved"], []):
        assert main(["ledger", str(moved), *arguments]) == 0
        assert capsys.readouterr().err == ""
    BudgetAccountant.from_ledger(moved).spend(0.001)


def test_the_command_runs_as_a_program(ledger):
    run = subprocess.run(
        [sys.executable, "-m", "skdp", "ledger", str(ledger)], capture_output=True, text=True, check=True
    )
    assert run.stdout.startswith("ceiling")
    assert run.stderr == ""


@pytest.mark.parametrize("content", [None, b"", b"not a ledger at all, but long enough to look at" * 100])
def test_the_command_says_what_is_wrong(tmp_path, capsys, content):
    path = tmp_path / "budget.db"
    if content is not None:
        path.write_bytes(content)
    assert main(["ledger", str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert str(path) in captured.err
    assert (path.read_bytes() if path.exists() else None) == content


@pytest.mark.parametrize("arguments", [[], ["ledger"], ["ledger", "x", "--last", "-1"], ["ledger", "x", "--last", "b"]])
def test_the_command_refuses_what_it_does_not_know(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_text_has_no_control_characters():
    accountant = BudgetAccountant(1.0)
    accountant.spend(0.1, label="\x1b[2Jcleared\nnext line\t\r")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", accountant.to_text())
    assert len(accountant.to_text().splitlines()) == 8


def test_text_of_a_plan():
    accountant = BudgetAccountant(1.0, 1e-5, plan=[pure_cost(0.1), pure_cost(0.2)])
    accountant.charge(pure_cost(0.1))
    assert "planned    1 entries not charged yet" in accountant.to_text()


def test_frame():
    accountant = BudgetAccountant(2.0, 1e-5)
    empty = accountant.to_frame()
    accountant.spend(0.1, label="x")
    X = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    ObjPertLogReg(epsilon=0.5, delta=1e-6, data_norm=2, classes=[0, 1], accountant=accountant).fit(X, X[:, 0] > 0)
    frame = accountant.to_frame()
    assert list(frame.columns) == list(empty.columns)
    assert empty["time"].dtype.tz is not None
    assert frame["epsilon"].tolist() == [0.1, 0.5]
    assert frame["estimator"].tolist() == ["", "ObjPertLogReg"]
    assert frame["events"][0] == (PureEvent(0.1),)
    assert [release.label for release in frame["releases"][1]] == ["objective", "solution"]
    assert isinstance(frame["time"].dtype, pd.DatetimeTZDtype)


def test_frame_without_pandas_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        BudgetAccountant(1.0).to_frame()


def test_a_notebook_is_shown_the_newest_hundred():
    accountant = BudgetAccountant(math.inf)
    for number in range(130):
        accountant.spend(0.1, label=f"charge {number}.")
    page = accountant._repr_html_()
    assert page.count("<tr>") == 101
    assert "30 earlier records are not shown" in page
    assert "charge 29." not in page
    assert "charge 30." in page
    assert "charge 129." in page


def test_views_of_a_ledger_that_has_gone_do_not_raise(ledger):
    accountant = BudgetAccountant.from_ledger(ledger)
    ledger.unlink()
    for view in (repr(accountant), accountant._repr_html_()):
        assert "exists no longer" in view
        assert "epsilon=2" in view


def test_representation_names_the_file(ledger):
    assert f"ledger={str(ledger)!r}" in repr(BudgetAccountant.from_ledger(ledger))


def test_from_ledger_opens_what_is_there(ledger, tmp_path):
    accountant = BudgetAccountant.from_ledger(ledger)
    assert accountant.ledger == ledger
    assert (accountant.epsilon, accountant.delta, accountant.composition) == (2.0, 1e-5, "gdp")
    accountant.spend(0.05)
    again = BudgetAccountant(2.0, 1e-5, ledger=ledger, composition="gdp")
    assert len(again) == 4
    assert again.records == accountant.records
    assert again.total() == accountant.total() != Budget(0.0, 0.0)
    with pytest.raises(OSError, match="does not exist"):
        BudgetAccountant.from_ledger(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()
