"""Choose the tests that `make test` runs: the same ones each time, and each of them costs little.

`pytest --sample` runs of each function

- without parameters: the test;
- with estimators among its parameters: for each class, one of the tests with an instance of that class;
- otherwise one of its tests, or one for each group, where it is marked ``sample(by=...)``.

A function that takes long runs for fewer groups, or not at all. Its CPU time is in the table `SECONDS`, and what it may
take follows from `LONGEST` and `FOR_EACH_GROUP`. The mark ``sample(every=n)`` divides this by n, for functions whose
lines are covered by others. Theorems and functions with the mark ``sample(always=True)`` are not limited.

A hash of the names decides which test of a group is run, and which groups are left out. Therefore a test that is added
or renamed changes nothing for other functions.
"""

import hashlib
import inspect
import math
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

ROOT = Path(__file__).resolve().parents[1]

#: CPU seconds of a test of the functions that take long, as they were measured; `--write-seconds` renews them.
SECONDS = ROOT / "tests" / "seconds.txt"

#: What a function may take, in CPU seconds of the table, ...
LONGEST = 0.22

#: ... and for each of its classes or subjects besides.
FOR_EACH_GROUP = 0.007


def hashed(text):
    """Return an integer that depends on a text alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


def function_of(item):
    """Return the node id of the function of a test."""
    return item.nodeid.partition("[")[0]


def group_of(item):
    """Return what is to be represented in the selection."""
    values = item.callspec.params
    for mark in item.iter_markers("sample"):
        if "by" in mark.kwargs:
            by = mark.kwargs["by"]
            return by(**{name: values[name] for name in inspect.signature(by).parameters})
    kinds = [
        (value if isinstance(value, type) else type(value)).__name__
        for value in values.values()
        if isinstance(value, BaseEstimator) or (isinstance(value, type) and issubclass(value, BaseEstimator))
    ]
    if "check" in values and kinds:
        # One of scikit-learn's, with its options.
        check = values["check"]
        kinds += [check.func.__name__, *map(str, check.keywords.values())]
    return "-".join(kinds)


def read_seconds(path=SECONDS):
    """Return a dict: for each function that takes long, the CPU seconds of one of its tests."""
    lines = [line.split(maxsplit=1) for line in path.read_text().splitlines() if not line.startswith("#")]
    return {function: float(seconds) for seconds, function in lines}


def chosen(items, seconds=None):
    """Return the node ids of the tests that are run."""
    seconds = read_seconds() if seconds is None else seconds
    groups, shares = {}, {}
    for item in items:
        function, marks = function_of(item), list(item.iter_markers("sample"))
        name = group_of(item) if hasattr(item, "callspec") else ""
        groups.setdefault(function, {}).setdefault(name, []).append(item.nodeid)
        always = any(True for _ in item.iter_markers("theorem")) or any("always" in mark.kwargs for mark in marks)
        shares[function] = math.inf if always else 1 / max([mark.kwargs.get("every", 1) for mark in marks], default=1)
    found = set()
    for function, by_name in groups.items():
        tests = sorted((min(tests, key=hashed) for tests in by_name.values()), key=hashed)
        allowed = shares[function] * (LONGEST + FOR_EACH_GROUP * len(tests))
        found.update(test for k, test in enumerate(tests, 1) if k * seconds.get(function, 0.0) <= allowed)
    return found


def add_options(parser):
    """Add the options of this module."""
    group = parser.getgroup("skdp")
    group.addoption("--sample", action="store_true", help="run the quick tests of `make test`")
    group.addoption("--shuffle", metavar="SEED", help="run the tests in another order; 'reverse' is one")


class Plugin:
    """Choose, order, and tell how to run the rest."""

    def __init__(self, config):
        self.config = config
        self.sample = config.getoption("sample")

    def pytest_report_header(self):
        return "a selection of the tests; `make test-all` runs all" if self.sample else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config, items):
        self.collected = list(items)
        if self.sample:
            sample = chosen(items)
            config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in sample])
            items[:] = [item for item in items if item.nodeid in sample]
        seed = config.getoption("shuffle")
        if seed == "reverse":
            items.reverse()
        elif seed is not None:
            # Files in another order, and the tests of each.
            items.sort(key=lambda item: (hashed(seed + item.nodeid.partition("::")[0]), hashed(seed + item.nodeid)))

    def pytest_terminal_summary(self, terminalreporter):
        if not self.sample:
            return
        stats = terminalreporter.stats
        failed = {report.nodeid.partition("[")[0] for kind in ("failed", "error") for report in stats.get(kind, [])}
        if failed:
            terminalreporter.section("all tests of the functions that failed")
        for function in sorted(failed):
            terminalreporter.write_line(f"make test PYTEST_ARGS='{function}'")
