"""The page with a slider shows the releases in its file. Everything here is certain, because the file is fixed."""

import json
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from skdp.datasets import load_adult

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.fixture(scope="module")
def script():
    spec = spec_from_file_location("epsilon_tables", DOCS / "epsilon_tables.py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def data(script):
    return json.loads(script.RELEASES.read_text(encoding="utf-8"))


def test_each_epsilon_has_a_release_of_each_table(script, data):
    assert [float(epsilon) for epsilon in data["releases"]] == script.EPSILONS
    for releases in data["releases"].values():
        for table in script.FORMATS:
            assert {len(values) for values in releases[table]} == {len(data["names"][table])}


def test_intervals_hold_the_exact_numbers_and_shrink_with_epsilon(script, data):
    releases = list(data["releases"].values())
    for table in ("counts", "hours"):
        values = np.array([release[table] for release in releases])
        exact = np.array(data["exact"][table])
        assert np.mean((values[:, 1] <= exact) & (exact <= values[:, 2])) > 0.9
        widths = (values[:, 2] - values[:, 1]).mean(axis=1)
        assert all(wide >= narrow for wide, narrow in pairwise(widths[1:]))
    assert sum(data["exact"]["counts"]) == script.N_ROWS


def test_the_page_shows_the_file(script, data, tmp_path):
    script.main(tmp_path)
    page = (tmp_path / "epsilon_tables.html").read_text(encoding="utf-8")
    contents = json.loads(re.search(r'<script type="application/json">(.*?)</script>', page, re.DOTALL).group(1))
    rows = re.findall(r'<tr class="released"><th>.*?</th><td>(.*?)</td><td>(.*?)</td>', page)
    assert rows == [tuple(cell[:2]) for cell in contents[f"{script.START:g}"]]
    assert {len(cells) for cells in contents.values()} == {len(rows)}
    assert list(contents) == list(data["releases"])


def test_numbers_in_the_text_are_those_of_the_file(script, data):
    text = " ".join((DOCS / "user_guide" / "epsilon_tables.rst").read_text(encoding="utf-8").split())
    assert f"{script.N_ROWS:,} people of the census" in text
    assert f"on {len(load_adult().target) - script.N_ROWS:,} other people" in text
    assert f"correct for {100 * data['most_common']:.0f} of 100 people" in text
    value, low, high = (np.array(values) for values in data["releases"]["0.3"]["counts"])
    assert "At epsilon 0.3, the interval of a count reaches 10 people to each side" in text
    assert set(np.round(high - value)) == {10}
    assert set(np.round((value - low)[low > 0])) == {10}
    worse = [e for e, release in data["releases"].items() if release["accuracy"][0][0] < data["most_common"]]
    assert worse == ["0.003", "0.01"]
    assert "At an epsilon of 0.01 or less, the model is worse than that" in text
