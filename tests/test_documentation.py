"""The code of README.md and docs/ runs, and gives what it says.

Examples with prompts are doctests, one a page. Blocks without prompts are run as one script a file, where whoever
reads it would run it: in a folder that holds the files that the text speaks of. Nothing that is printed depends on
noise.
"""

import doctest
import re
import runpy
import shutil
import warnings
from pathlib import Path

import pytest
import sklearn
from sklearn.base import is_classifier

from skdp.exceptions import PrivacyAssumptionWarning
from tests import supported_inputs
from tests.estimators import ONE_EACH

ROOT = Path(__file__).resolve().parents[1]
# What builds leave in docs/ is made from the docstrings and from examples/.
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "docs").rglob("*.rst")
    if not {"_build", "_templates", "auto_examples", "generated"} & set(path.parts)
)
SCRIPTS = ["README.md", "docs/index.rst", "docs/getting_started.rst"]
# Pages that need an optional library.
NEEDS = {"docs/user_guide/dask.rst": "dask"}
# Blocks that are not run, by page and first line.
NOT_RUN = {
    (
        "docs/developer/add_an_estimator.rst",
        "# The page of the user guide, and the number of the theorem on it.",
    ): "a sketch",
    ("docs/user_guide/from_diffprivlib.rst", "# diffprivlib"): "needs another library",
}
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(name):
    """Line numbers and texts of the Python blocks of a file."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    start = r"( *)```python$" if name.endswith(".md") else r"( *)\.\. code-block:: python$"
    found = []
    for number, line in enumerate(lines):
        if not (match := re.match(start, line)):
            continue
        body, indent = [], len(match.group(1))
        for later in lines[number + 1 :]:
            ends = (
                later.strip() == "```"
                if name.endswith(".md")
                else later.strip() and not later.startswith(" " * (indent + 1))
            )
            if ends:
                break
            body.append(later)
        margin = min(len(text) - len(text.lstrip()) for text in body if text.strip())
        found.append((number + 2, [text[margin:] for text in body]))
    return found


def first_line(body):
    return next(line for line in body if line.strip())


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_need_only_what_the_page_installs(name):
    """The install command of a page includes pandas, because the script of the page needs a table with names."""
    text = (ROOT / name).read_text(encoding="utf-8")
    command = re.search(r"pip install (.*)", text).group(1)
    code = "\n".join("\n".join(body) for _, body in blocks(name))
    assert re.search(r"\.sample\(|import pandas", code)
    assert "pandas" in command.split()
    assert "plot" in command or "plot" not in code


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts(name, tmp_path, monkeypatch):
    shutil.copy(ROOT / "examples" / "data" / "adult.csv.gz", tmp_path)
    monkeypatch.chdir(tmp_path)
    script = []
    for number, body in blocks(name):
        # Line numbers of errors are those of the file.
        script += [""] * (number - 1 - len(script)) + body
    assert "".join(script)
    exec(compile("\n".join(script), ROOT / name, "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("name", PAGES)
def test_examples(name, tmp_path, monkeypatch):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"needs {NEEDS[name]}")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / name).read_text(encoding="utf-8")
    test = doctest.DocTestParser().get_doctest(text, {"__name__": "__main__"}, name, str(ROOT / name), 0)
    report = []
    with sklearn.config_context(), warnings.catch_warnings():
        # Some examples are about what is warned of.
        warnings.simplefilter("ignore", PrivacyAssumptionWarning)
        doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append)
    if report:
        pytest.fail("".join(report), pytrace=False)


def test_no_block_is_left_out():
    """Every block is a part of a script or a doctest, or is in the list of exceptions, which holds nothing else."""
    neither = {
        (name, first_line(body))
        for name in PAGES
        for _, body in blocks(name)
        if name not in SCRIPTS and not first_line(body).startswith(">>> ")
    }
    assert neither == set(NOT_RUN)
    assert all(blocks(name) for name in SCRIPTS)
    assert not any(">>> " in "\n".join(body) for name in SCRIPTS for _, body in blocks(name))


def test_the_table_of_supported_inputs_is_that_of_the_estimators():
    written = (ROOT / "docs" / "user_guide" / "supported_inputs.inc").read_text(encoding="utf-8")
    assert written == supported_inputs.table()
    for estimator in ONE_EACH:
        if is_classifier(estimator) and supported_inputs.takes(estimator, "sample_weight"):
            assert "class_weight" in estimator.get_params(deep=False), type(estimator).__name__


def test_links_of_the_description_on_an_index_lead_to_the_site():
    pytest.importorskip("setuptools", reason="setup.py needs it, and it is not in every environment")
    build = runpy.run_path(str(ROOT / "setup.py"), run_name="description")
    description = build["description"]((ROOT / "README.md").read_text(encoding="utf-8"))
    targets = re.findall(r'(?:\]\(|src=|srcset=)"?([^")#]*)', description)
    assert len(targets) > 8
    for target in targets:
        page = target.removeprefix(build["SITE"])
        assert page != target, target
        assert (ROOT / "docs" / page).with_suffix(".rst" if page.endswith(".html") else Path(page).suffix).exists(), (
            target
        )
