"""Print the CPU time of a test run: of all its processes together; and write down which functions take long."""

import os

import pytest

from tests.sampling import SECONDS, function_of, read_seconds

#: What `make test` may take, on a core of 2024.
LIMIT = 240


#: Functions whose tests take less on the average are not in the table.
SHORT = 0.02


def add_options(parser):
    """Add the options of this module."""
    parser.getgroup("skdp").addoption(
        "--write-seconds", action="store_true", help=f"write the CPU times of the functions that are run into {SECONDS}"
    )


def seconds():
    """Return the CPU seconds of this process, and of its children that have ended; Windows does not count those."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Plugin:
    """Add up the workers' CPU seconds and those of this process."""

    def __init__(self, config):
        self.config = config
        self.of_workers = []
        self.of_functions = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        before = seconds()
        try:
            return (yield)
        finally:
            self.add({function_of(item): (seconds() - before, 1)})

    def add(self, others):
        for function, (total, count) in others.items():
            mine = self.of_functions.get(function, (0.0, 0))
            self.of_functions[function] = mine[0] + total, mine[1] + count

    def pytest_sessionfinish(self):
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["cpu_seconds"] = seconds()
            self.config.workeroutput["of_functions"] = self.of_functions

    # A hook of pytest-xdist, which may be switched off.
    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        # A worker that crashed has nothing to tell.
        output = getattr(node, "workeroutput", {})
        self.of_workers.append(output.get("cpu_seconds", 0.0))
        self.add(output.get("of_functions", {}))

    def pytest_terminal_summary(self, terminalreporter):
        if self.of_workers:
            times = os.times()
            total = times.user + times.system + sum(self.of_workers)
        else:
            total = seconds()
        limit = f" (`make test` is to take at most {LIMIT} s)" if self.config.getoption("sample") else ""
        terminalreporter.write_line(f"CPU time: {total:.0f} s{limit}")
        if self.config.getoption("write_seconds"):
            write_seconds(self.of_functions)


def write_seconds(of_functions, path=SECONDS):
    """Renew the lines of the functions that were run."""
    found = read_seconds(path) if path.exists() else {}
    found.update({function: total / count for function, (total, count) in of_functions.items()})
    lines = [f"{mean:.3f} {function}" for function, mean in sorted(found.items()) if mean >= SHORT]
    path.write_text("\n".join(["# CPU seconds of a test; `pytest --write-seconds` renews them.", *lines, ""]))
