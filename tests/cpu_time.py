"""Print the CPU time of a test run: of all its processes together."""

import os

import pytest

#: What `make test` may take, on a core of 2024.
LIMIT = 240


def seconds():
    """Return the CPU seconds of this process, and of its children that have ended; Windows does not count those."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Plugin:
    """Add up the workers' CPU seconds and those of this process."""

    def __init__(self, config):
        self.config = config
        self.of_workers = []

    def pytest_sessionfinish(self):
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["cpu_seconds"] = seconds()

    # A hook of pytest-xdist, which may be switched off.
    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        # A worker that crashed has nothing to tell.
        self.of_workers.append(getattr(node, "workeroutput", {}).get("cpu_seconds", 0.0))

    def pytest_terminal_summary(self, terminalreporter):
        if self.of_workers:
            times = os.times()
            total = times.user + times.system + sum(self.of_workers)
        else:
            total = seconds()
        limit = f" (`make test` is to take at most {LIMIT} s)" if self.config.getoption("sample") else ""
        terminalreporter.write_line(f"CPU time: {total:.0f} s{limit}")
