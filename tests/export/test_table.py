"""The table of exports in the documentation says what each estimator does."""

import re
from pathlib import Path

import pytest

from tests import export_table

WRITTEN = Path(__file__).resolve().parents[2] / "docs" / "user_guide" / "export_table.inc"


@pytest.mark.sample(always=True)
@pytest.mark.filterwarnings("ignore")
def test_the_table_of_exports_is_that_of_the_estimators():
    lines = re.findall(r"^   (?:\* -|  -) (.*)$", WRITTEN.read_text(encoding="utf-8"), flags=re.MULTILINE)
    width = len(export_table.HEADINGS) + 1
    head, *written = (lines[start : start + width] for start in range(0, len(lines), width))
    assert head == ["estimator", *export_table.HEADINGS]
    made = [[name, *cells.values()] for name, cells in export_table.rows()]
    assert [row[0] for row in made] == [row[0] for row in written]
    for row, expected in zip(made, written, strict=True):
        # Packages that are not installed here are those of another environment.
        assert [cell or known for cell, known in zip(row, expected, strict=True)] == expected
