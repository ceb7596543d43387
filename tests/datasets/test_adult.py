"""The Adult data set of the examples, and where it is looked for. Everything here is certain."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from skdp import DPNaiveBayes
from skdp.datasets import load_adult

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "data"
LIMIT = 650_000


@pytest.fixture(scope="module")
def adult():
    return load_adult()


def test_the_file_ships_with_its_licence():
    assert (EXAMPLES / "adult.csv.gz").stat().st_size < LIMIT
    text = (EXAMPLES / "LICENSE.md").read_text()
    assert all(fact in text for fact in ("CC BY 4.0", "Becker", "Kohavi", "10.24432/C5XW20", "Changes"))


def test_shapes(adult):
    assert adult.data.shape == (45_222, 104)
    assert np.linalg.norm(adult.data, axis=1).max() <= adult.data_norm
    assert adult.target.sum() == 11_208
    assert {column.shape for column in adult.table.values()} == {(45_222,)}


def test_the_schema_declares_what_occurs(adult):
    assert list(adult.schema) == list(adult.table)[:-1]
    lines = str(adult.schema.check(adult.table)).splitlines()[2:]
    assert len(lines) == 14
    assert all(line.split()[-3:] == ["0", "0", "0"] for line in lines)


def test_estimators_take_table_and_schema(adult):
    model = DPNaiveBayes(schema=adult.schema, epsilon=1.0, delta=1e-6, random_state=0)
    model.fit(adult.table, adult.table["income"])
    # The larger class has .752; the standard deviation of a draw is below .002.
    assert model.score(adult.table, adult.table["income"]) > 0.82


def test_files_of_the_repository_are_read_alike(adult, tmp_path, monkeypatch):
    with gzip.open(EXAMPLES / "adult.csv.gz", "rt", newline="") as file:
        header, *rows = csv.reader(file)
    for name, part, end in (("adult.data.gz", rows[:32_561], ""), ("adult.test.gz", rows[32_561:], ".")):
        lines = [", ".join([entry or "?" for entry in row]) + end for row in part]
        with gzip.open(tmp_path / name, "wt") as file:
            file.write("\n".join([",".join([*header[:-1], "target"]), *lines, "", ""]))
    again = load_adult(tmp_path)
    assert np.array_equal(again.data, adult.data)
    assert np.array_equal(again.table["income"], adult.table["income"])
    monkeypatch.setattr("skdp.datasets._adult._REPOSITORY", tmp_path / "nowhere")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SKDP_DATA", str(tmp_path))
    assert np.array_equal(load_adult().target, adult.target)


def test_an_installed_package_reads_the_examples_of_the_working_directory(adult, tmp_path, monkeypatch):
    monkeypatch.setattr("skdp.datasets._adult._REPOSITORY", tmp_path)
    monkeypatch.delenv("SKDP_DATA", raising=False)
    monkeypatch.chdir(EXAMPLES.parents[1])
    assert np.array_equal(load_adult().target, adult.target)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="none of the folders"):
        load_adult()


def test_a_folder_without_the_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none of the folders .*SKDP_DATA, to a folder with adult\.csv\.gz"):
        load_adult(tmp_path)
