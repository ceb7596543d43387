"""Run a sample of the tests at each commit, so that consecutive commits run all of them.

`pytest --sample` (`make test`) runs of each function

- without parameters: the test;
- with estimators among its parameters: for each class, one of the tests with an instance of that class;
- otherwise `FEW` of its tests, or one for each group, where it is marked ``sample(by=...)``.

A function that takes long runs less at some commits. Its CPU time is in the table `SECONDS`, and what it may take on
the average follows from `LONGEST` and `FOR_EACH_GROUP`; a class and a rule then meet at one of several commits. The
mark ``sample(every=n)`` asks for one of n commits at most. Theorems are run at every commit. Where all of this would
take more than `PERIOD` commits to come round, more tests are run at each of them.

The tests of a group are ordered by a hash of their names, with gaps between them if they are not run at each commit.
Commit number c runs those at places c·k to c·k + k − 1, modulo the number n of places, where k is how many places
belong to a commit. Any ceil(n / k) consecutive commits, and therefore any `PERIOD` of them, run all tests of the group.
"""

import hashlib
import inspect
import math
import os
import subprocess
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

ROOT = Path(__file__).resolve().parents[1]

#: So many consecutive commits run every test.
PERIOD = 30

#: Tests of a function whose parameters hold no estimator.
FEW = 1

#: CPU seconds of a test of the functions that take long, as they were measured; `--write-seconds` renews them.
SECONDS = ROOT / "tests" / "seconds.txt"

#: What a function may take at a commit, in CPU seconds of the table, ...
LONGEST = 0.1

#: ... and for each of its classes or subjects besides.
FOR_EACH_GROUP = 0.01

#: The variable of the environment that holds the number of the commit; any integer.
VARIABLE = "SKDP_SAMPLE"


def hashed(text):
    """Return an integer that depends on a text alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


def _git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def commit_number():
    """Return how many commits led to this one, or another number if that is not known."""
    if VARIABLE in os.environ:
        return int(os.environ[VARIABLE])
    try:
        if Path(_git("rev-parse", "--show-toplevel")).resolve() == ROOT:
            if _git("rev-parse", "--is-shallow-repository") == "false":
                return int(_git("rev-list", "--count", "--first-parent", "HEAD"))
            return hashed(_git("rev-parse", "HEAD"))
    except (OSError, subprocess.CalledProcessError):
        pass
    from skdp import __version__

    return hashed(__version__)


def function_of(item):
    """Return the node id of the function of a test."""
    return item.nodeid.partition("[")[0]


def group_of(item):
    """Return what is to be represented at each commit, and how many tests of it are the least to be run."""
    values = item.callspec.params
    for mark in item.iter_markers("sample"):
        if "by" in mark.kwargs:
            by = mark.kwargs["by"]
            return by(**{name: values[name] for name in inspect.signature(by).parameters}), 1
    kinds = [
        (value if isinstance(value, type) else type(value)).__name__
        for value in values.values()
        if isinstance(value, BaseEstimator) or (isinstance(value, type) and issubclass(value, BaseEstimator))
    ]
    if "check" in values and kinds:
        # One of scikit-learn's, with its options.
        check = values["check"]
        kinds += [check.func.__name__, *map(str, check.keywords.values())]
    return ("-".join(kinds), 1) if kinds else ("", FEW)


def read_seconds(path=SECONDS):
    """Return a dict: for each function that takes long, the CPU seconds of one of its tests."""
    lines = [line.split(maxsplit=1) for line in path.read_text().splitlines() if not line.startswith("#")]
    return {function: float(seconds) for seconds, function in lines}


def one_commit_of(seconds, n_groups):
    """Return n such that a function is run at one of n commits, from the CPU seconds of a test of each group."""
    allowed = LONGEST + (FOR_EACH_GROUP * n_groups if n_groups > 1 else 0.0)
    return min(PERIOD, max(1, math.ceil(seconds * n_groups / allowed)))


def groups_of(items, seconds=None):
    """Return a dict: for each group, the node ids of its tests in order, and how many of them are run at a commit.

    Tests that are not run at each commit have places without a test between them, which are None.
    """
    seconds = read_seconds() if seconds is None else seconds
    found, marked, groups = {}, {}, {}
    for item in items:
        function = function_of(item)
        name, least = group_of(item) if hasattr(item, "callspec") else ("", 1)
        tests, _ = found.setdefault(function, {}).setdefault(name, ([], least))
        tests.append(item.nodeid)
        if function not in marked:
            if any(True for _ in item.iter_markers("theorem")):
                marked[function] = None
            else:
                marked[function] = max([mark.kwargs.get("every", 1) for mark in item.iter_markers("sample")], default=1)
    for function, by_name in found.items():
        every = marked[function]
        every = 1 if every is None else max(every, one_commit_of(seconds.get(function, 0.0), len(by_name)))
        for name, (tests, least) in by_name.items():
            places = [place for test in sorted(tests, key=hashed) for place in (test, *[None] * (every - 1))]
            groups[function, name] = places, min(len(places), max(least, -(-len(places) // PERIOD)))
    return groups


def chosen(groups, commit):
    """Return the node ids of the tests that are run at a commit."""
    found = set()
    for (function, name), (tests, k) in groups.items():
        # Groups do not start together, or all would be at their first test at the same commit.
        start = hashed(f"{function} {name}") + commit * k
        found.update(tests[(start + j) % len(tests)] for j in range(k))
    return found - {None}


def add_options(parser):
    """Add the options of this module."""
    group = parser.getgroup("skdp")
    group.addoption(
        "--sample", action="store_true", help="run a sample of the tests, which changes from commit to commit"
    )
    group.addoption("--shuffle", metavar="SEED", help="run the tests in another order; 'reverse' is one")


class Plugin:
    """Choose, order, and tell how to run the rest."""

    def __init__(self, config):
        self.config = config
        self.commit = None
        if config.getoption("sample"):
            self.commit = commit_number()
            # For the workers.
            os.environ[VARIABLE] = str(self.commit)

    def pytest_report_header(self):
        if self.commit is not None:
            return f"a sample of the tests: {VARIABLE}={self.commit} is the same one, `make test-all` runs all"
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config, items):
        self.collected = list(items)
        if self.commit is not None:
            sample = chosen(groups_of(items), self.commit)
            config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in sample])
            items[:] = [item for item in items if item.nodeid in sample]
        seed = config.getoption("shuffle")
        if seed == "reverse":
            items.reverse()
        elif seed is not None:
            # Files in another order, and the tests of each.
            items.sort(key=lambda item: (hashed(seed + item.nodeid.partition("::")[0]), hashed(seed + item.nodeid)))

    def pytest_terminal_summary(self, terminalreporter):
        if self.commit is None:
            return
        stats = terminalreporter.stats
        failed = {report.nodeid.partition("[")[0] for kind in ("failed", "error") for report in stats.get(kind, [])}
        if failed:
            terminalreporter.section("all tests of the functions that failed")
        for function in sorted(failed):
            terminalreporter.write_line(f"make test-all PYTEST_ARGS='{function}'")
