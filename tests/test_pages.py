"""Layout, titles and links of the pages of the documentation. Everything here is certain."""

import re
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
# Builds leave these folders in docs/.
BUILT = {"_build", "_templates", "auto_examples", "generated"}
PAGES = [
    ROOT / "README.md",
    *(p for p in sorted([*DOCS.rglob("*.rst"), *DOCS.rglob("*.md")]) if not BUILT & set(p.parts)),
]
GALLERY = [p for p in sorted((ROOT / "examples").rglob("plot_*.py")) if "benchmarks" not in p.parts]
#: What fits into the column of a page without scrolling.
WIDTH = 79


def code_lines(text):
    """Number, text and margin of the lines of code blocks, of reStructuredText and of Markdown."""
    fenced, block, margin = False, None, None
    for number, line in enumerate(text.splitlines(), 1):
        indent = len(line) - len(line.lstrip())
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced:
            yield number, line, 0
        elif match := re.match(r"( *)\.\. code-block::", line):
            block, margin = len(match.group(1)), None
        elif block is not None and line.strip():
            if indent <= block:
                block = None
            elif margin is not None or not line.strip().startswith(":"):
                margin = indent if margin is None else margin
                yield number, line, margin


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_code_fits_into_the_column(page):
    lines = code_lines(page.read_text(encoding="utf-8"))
    wide = [number for number, line, margin in lines if len(line) - margin > WIDTH]
    assert not wide, f"lines {wide} of {page.name} are wider than {WIDTH} characters"


def test_wide_lines_are_found():
    for form in ("```python\n{}\n```", "text\n\n.. code-block:: python\n   :caption: b\n\n   a\n   {}\n\ntext"):
        assert max(len(line) - margin for _, line, margin in code_lines(form.format("x" * 80))) == 80


def gallery_code(text):
    """Number and text of the lines of code of a script of the gallery. The lines of text may be wider."""
    is_text = False
    for number, line in enumerate(text.splitlines(), 1):
        is_text = line.startswith("# %%") or (is_text and line.startswith("#"))
        if number > text.count("\n", 0, text.index('"""', 4)) + 1 and not is_text:
            yield number, line


@pytest.mark.parametrize("script", GALLERY, ids=lambda p: p.stem)
def test_code_of_the_gallery_fits_into_the_column(script):
    wide = [number for number, line in gallery_code(script.read_text(encoding="utf-8")) if len(line) > WIDTH]
    assert not wide, f"lines {wide} of {script.name} are wider than {WIDTH} characters"


def test_wide_lines_of_code_of_the_gallery_are_found():
    wide = "x" * 80
    text = f'"""\nTitle {wide}\n"""\n\n# %%\n# Text {wide}\n\na = 1\n# {wide}\n'
    assert [number for number, line in gallery_code(text) if len(line) > WIDTH] == [9]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_examples_of_pages_exist(page):
    text = page.read_text(encoding="utf-8")
    scripts = {str(path.relative_to(ROOT / "examples").with_suffix("")) for path in GALLERY}
    links = re.findall(r"sphx_glr_auto_examples_(\w+)\.py", text)
    pictures = re.findall(r"/auto_examples/(.*?)images/sphx_glr_(\w+)_\d{3}\.png", text)
    assert set(links) <= {script.replace("/", "_") for script in scripts}
    assert {folder + name for folder, name in pictures} <= scripts


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_pages_with_a_bibliography_cite(page):
    """A page that cites nothing would end with an empty section."""
    text = page.read_text(encoding="utf-8")
    assert ("bibliography::" in text) <= (":cite:" in text)


def joined_headings(text):
    """Numbers of headings without a blank line above, which are shown as text."""
    lines = ["", *text.splitlines()]
    is_line = [bool(re.fullmatch(r"([=\-~^])\1{3,}", line)) for line in lines]
    return [
        k - 1
        for k in range(2, len(lines))
        if is_line[k] and lines[k - 1].strip() and lines[k - 2].strip() and not is_line[k - 2]
    ]


@pytest.mark.parametrize("page", [p for p in PAGES if p.suffix == ".rst"], ids=lambda p: str(p.relative_to(ROOT)))
def test_headings_begin_after_a_blank_line(page):
    assert not joined_headings(page.read_text(encoding="utf-8"))


def test_joined_headings_are_found():
    assert joined_headings("text\nHeading\n=======\n") == [2]
    assert not joined_headings("text\n\nHeading\n=======\n\n====\nTitle\n====\n")


def titles(page):
    """All headings of a page of reStructuredText, in lower case."""
    lines = page.read_text(encoding="utf-8").splitlines()
    return " / ".join(
        above.lower() for above, below in pairwise(lines) if re.fullmatch(r"([=\-~^])\1{2,}", below) and above
    )


@pytest.mark.parametrize("query", ["missing values", "choose epsilon", "ledger command line", "multiclass"])
def test_titles_answer_what_readers_search_for(query):
    """The search of the site ranks titles first, so that a page with these words in its headings is found."""
    pages = [page for page in PAGES if page.suffix == ".rst"]
    assert any(all(word in titles(page) for word in query.split()) for page in pages)


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("logistic regression", "user_guide/objective_perturbation.rst"),
        ("multiple rows per person", "user_guide/units.rst"),
        ("GDPR", "user_guide/faq.rst"),
        ("save a model", "getting_started.rst"),
        ("free text", "user_guide/preprocessing.rst"),
    ],
)
def test_searches_have_a_main_entry_of_the_index(query, page):
    """The search of the site ranks main entries of the index above titles and texts."""
    entries = re.findall(r"^\.\. index:: (.*)$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert f"! {query}" in [entry.strip() for line in entries for entry in line.split(",")]


def test_links_of_the_map_lead_to_pages():
    links = re.findall('href="(.*?)"', (DOCS / "_static" / "which_estimator.svg").read_text(encoding="utf-8"))
    listed = (DOCS / "api.rst").read_text(encoding="utf-8").split()
    assert len(links) > 10
    for link in links:
        page = link.removesuffix(".html")
        if page.startswith("generated/"):
            module, name = page.removeprefix("generated/").rsplit(".", 1)
            assert hasattr(import_module(module), name)
            assert any(entry.endswith(f".{name}") for entry in listed), name
        else:
            assert (DOCS / f"{page}.rst").is_file()


def test_the_number_of_mutants_is_that_of_the_table():
    table = (DOCS / "user_guide" / "kill_table.inc").read_text(encoding="utf-8")
    counts = re.findall(r"(\d+)/(\d+)", table[table.rindex("* - together") :].split("\n\n")[0])
    killed, tried = (f"{sum(map(int, side)):,}" for side in zip(*counts, strict=True))
    for page in (ROOT / "README.md", DOCS / "index.rst", DOCS / "user_guide" / "reliability.rst"):
        text = page.read_text(encoding="utf-8")
        assert killed in text, page
        assert tried in text, page


def directives_without_a_blank_line(text):
    """Numbers of lines with a directive that continues a paragraph, so that its content is shown as text."""
    pairs = enumerate(pairwise(text.splitlines()), 2)
    return [k for k, (above, line) in pairs if re.match(r" *\.\. [a-z:-]+::", line) and re.match(r" *[^. \n]", above)]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_directives_begin_after_a_blank_line(page):
    assert not directives_without_a_blank_line(page.read_text(encoding="utf-8"))


def test_directives_without_a_blank_line_are_found():
    assert directives_without_a_blank_line("text\n.. dropdown:: A\n\n   b\n") == [2]
    assert not directives_without_a_blank_line("text\n\n.. dropdown:: A\n   :open:\n\n   b\n\n.. image:: a\n")
