"""The rules of the building, read off the source: imports point down, and no tool is configured twice."""

import ast
import configparser
import graphlib
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "skdp"
SOURCES = sorted(PACKAGE.rglob("*.py"))

# Lower floors first. A room may import from its own floor's package and from floors below.
FLOORS = [
    {"exceptions"},
    {"parts"},
    {"checks"},
    {"accounting"},
    {"mechanisms"},
    {"sensitivity"},
    {"schema"},
    {"release"},
    {"solvers"},
    {"cluster", "decomposition", "ensemble", "linear_model", "naive_bayes", "neural_network", "preprocessing"}
    | {"stats", "synthetic", "tree"},
    {"local"},
    {"additive"},
    {"audit", "datasets", "export", "inspection", "model_selection"},
    {"__main__"},
]
FLOOR = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}


def room_of(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[0]


@cache
def imports(path):
    """Absolute dotted names of what a file imports, anywhere in it."""
    return tuple(_imports(path))


def _imports(path):
    package = ("skdp", *path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                base = package[: len(package) - node.level + 1]
                module = ".".join((*base, *((node.module,) if node.module else ())))
            else:
                module = node.module
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def test_every_room_has_a_floor():
    rooms = {room_of(path) for path in SOURCES} - {"__init__"}
    assert rooms == set(FLOOR)


@pytest.mark.sample(always=True)
def test_imports_point_down():
    for path in SOURCES:
        room = room_of(path)
        if room == "__init__":
            continue
        for name in imports(path):
            parts = name.split(".")
            if parts[0] == "skdp" and len(parts) > 1 and parts[1] != room and parts[1] in FLOOR:
                assert FLOOR[parts[1]] < FLOOR[room], f"{path.relative_to(PACKAGE)} imports {name}"


@pytest.mark.sample(always=True)
def test_there_is_no_circle_of_files():
    files = {}
    for path in SOURCES:
        name = ".".join(("skdp", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        files[name] = path
    graph = {name: {other for other in imports(path) if other in files} for name, path in files.items()}
    # A package that holds a module is no import of its own.
    graph = {name: others - {name, name.rpartition(".")[0]} for name, others in graph.items()}
    assert graph["skdp.tree._forest"] >= {"skdp.tree._structure"}
    graphlib.TopologicalSorter(graph).prepare()


def private_crossings():
    """Private modules and names of a package of skdp that another package imports."""
    for path in SOURCES:
        room = room_of(path)
        for name in imports(path):
            root, *parts = name.split(".")
            private = [k for k, part in enumerate(parts) if part.startswith("_") and not part.startswith("__")]
            # The root is no package with names of its own: it makes those of the packages public.
            if root == "skdp" and private and room not in (parts[0], "__init__"):
                yield room, ".".join(parts[: private[0] + 1])


@pytest.mark.sample(always=True)
def test_nothing_private_crosses_packages():
    assert not set(private_crossings())


@pytest.mark.sample(always=True)
def test_no_private_name_of_another_library():
    for path in SOURCES:
        for name in imports(path):
            parts = name.split(".")
            if parts[0] in ("sklearn", "scipy", "numpy", "dp_accounting"):
                assert not any(part.startswith("_") for part in parts), f"{path.relative_to(PACKAGE)} imports {name}"


def test_randomness_comes_from_one_file():
    for path in set(SOURCES) - {PACKAGE / "mechanisms" / "_base.py"}:
        assert not {"random", "secrets", "ssl", "os.urandom", "numpy.random"} & set(imports(path)), path
        # Examples in docstrings do without as well, so that a search for it finds nothing.
        assert "np.random" not in path.read_text(), path


def test_no_concrete_scikit_learn_estimator_is_subclassed():
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                bases = {ast.unparse(base) for base in node.bases}
                assert not bases & {"LogisticRegression", "LinearRegression", "GaussianNB", "KMeans", "PCA"}


def test_no_tool_is_configured_twice():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    # Setuptools adds a section of its own to the file in a source distribution.
    in_setup = {section.split(":")[0].split("-")[0] for section in setup.sections()} - {"egg_info"}
    in_pyproject = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"])
    assert in_setup == {"mypy", "coverage"}
    assert not in_setup & in_pyproject
    assert {"pytest", "ruff", "numpydoc_validation"} <= in_pyproject


def test_commands_install_packages_that_are_on_an_index():
    """Anybody could register another package by the name of this library."""
    places = [ROOT / "README.md", *(path for top in ("skdp", "docs", "examples") for path in (ROOT / top).rglob("*"))]
    texts = [path.read_text(encoding="utf-8") for path in places if path.suffix in (".py", ".md", ".rst", ".inc")]
    commands = [line for text in texts for line in re.findall(r"pip install ([^\n`]*)", text)]
    assert len(commands) > 5
    assert not [command for command in commands if re.search(r"\bskdp\b", command)]


def test_version_is_that_of_the_citation_and_of_the_changelog():
    import skdp

    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    released = re.search(r"^version: (\S+)$", citation, re.MULTILINE)[1]
    newest = re.search(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[1]
    if skdp.__version__.endswith(".dev0"):
        assert newest == "Unreleased"
        assert tuple(skdp.__version__.split(".")) > tuple(released.split("."))
    else:
        date = re.search(r'^date-released: "(.*)"$', citation, re.MULTILINE)[1]
        assert (skdp.__version__, newest) == (released, f"{released} ({date})")


@pytest.mark.sample(always=True)
def test_import_is_light():
    code = (
        "import sys, skdp; "
        "heavy = {'sklearn', 'scipy', 'dp_accounting', 'matplotlib', 'pandas', 'dask'} & set(sys.modules); "
        "assert not heavy, heavy; "
        "skdp.ObjPertLogReg; skdp.BudgetAccountant; "
        "assert not {'dp_accounting', 'dask'} & set(sys.modules); "
        "assert set(skdp.__all__) == {*skdp._HOME, '__version__'}; "
        "names = ['tree', 'stats', 'audit', 'datasets', 'exceptions', 'mechanisms', 'schema', 'inspection']; "
        "assert [getattr(skdp, name).__name__ for name in names] == ['skdp.' + name for name in names]; "
        "assert set(names) <= set(dir(skdp))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_unknown_name_is_an_attribute_error():
    import skdp

    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = skdp.no_such_thing
