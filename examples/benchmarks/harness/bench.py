"""Fit skdp and its peers to the same splits with the same bounds and budgets, each in its own environment.

    make bench                             everything: environments, utility, speed, noise, the page
    make bench BENCH_ARGS="--quick"        one split and three epsilons, without slow methods
    python examples/benchmarks/harness/bench.py --help

Each result is added to docs/benchmarks/utility.csv, and is not fitted again. Therefore you can stop the script at any
time. It first runs one draw of the first split for every cell of the table, then the next split, then the next draw.
The table is complete early, and its intervals shrink later.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import selectors
import subprocess
import sys
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import environments
import results
from methods import MODULES, all_methods, cells_of
from tasks import EPSILONS, TASKS

#: Seconds over its limit that a worker gets before it is ended.
GRACE = 60
#: Seconds between two lines of progress.
PROGRESS = 20


def plan(methods, epsilons=EPSILONS, n_splits=None, n_draws=None, tasks=None):
    """Return the cells to fit, in rounds of one split and draw: (environment, method, cell)."""
    planned = [
        (environment, method, cell)
        for environment, method in methods
        for cell in cells_of(method, epsilons)
        if (n_splits is None or cell.split < n_splits)
        and (n_draws is None or cell.draw < n_draws)
        and (tasks is None or cell.task in tasks)
    ]
    place = list(dict.fromkeys(environment for environment, _ in methods))
    return sorted(planned, key=lambda p: (p[2].draw, p[2].split, place.index(p[0])))


def remaining(planned, rows):
    """Return the cells without a result, except those that exceeded their time."""
    done = {results.cell_of(row) for row in rows}
    hopeless = {results.cell_of(row).configuration for row in rows if row["status"].startswith("timeout")}
    return [p for p in planned if p[2] not in done and p[2].configuration not in hopeless]


class Estimate:
    """An estimate of the remaining time, from the times of similar fits."""

    def __init__(self, rows):
        self.taken = defaultdict(list)
        for cell, seconds in {results.cell_of(row): row["seconds"] for row in rows}.items():
            self.add(cell, seconds or 0)

    def add(self, cell, seconds):
        """Record the time of a fit."""
        self.taken[cell.configuration].append(seconds)
        self.taken[cell.library].append(seconds)

    def seconds(self, left):
        """Return the seconds for the rest; a new kind of fit takes the mean time of its library."""

        def mean(values):
            return sum(values) / len(values)

        total, guess = 0.0, {}
        for _, _, cell in left:
            key = cell.configuration
            if key not in guess:
                guess[key] = mean(self.taken.get(key) or self.taken.get(cell.library) or [2.0])
            total += guess[key]
        return total


def clock(seconds):
    """Return a time in hours and minutes."""
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"


class Worker:
    """The process of a worker, which is started if needed, and again after it had to be ended."""

    def __init__(self, environment, python, suite="peers"):
        self.environment, self.python, self.suite = environment, python, suite
        self.process, self.answered = None, False

    def answer(self, cell, limit):
        """Fit a cell, and end the process if no answer comes in time."""
        if self.process is None:
            command = [str(self.python), str(environments.HERE / "worker.py"), self.environment, self.suite]
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environments.variables(),
                text=True,
                start_new_session=True,  # `run` ends it, and not the terminal
            )
        with contextlib.suppress(BrokenPipeError):  # of a process that died: no answer comes
            self.process.stdin.write(json.dumps(cell.__dict__) + "\n")
            self.process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            in_time = bool(selector.select(limit + GRACE))
        line = self.process.stdout.readline() if in_time else ""
        if line:
            self.answered = True
            return json.loads(line)
        self.end()
        if in_time and not self.answered:
            # Not a matter of this cell.
            raise SystemExit(f"{self.python} does not run worker.py {self.environment}; try it by hand")
        return failure("the process died" if in_time else f"timeout: no answer after {limit + GRACE:g} s")

    def kill(self):
        """Kill the process."""
        if self.process is not None:
            self.process.kill()

    def end(self):
        """End the process."""
        self.kill()
        if self.process is not None:
            self.process.stdout.close()
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
            self.process.wait()
            self.process = None


def failure(status):
    """Return the answer for a fit without a result."""
    return {"version": "", "metrics": {}, "seconds": None, "spent": None, "status": status}


def run(left, path, given=None, estimate=None, suite="peers", jobs=1):
    """Fit the remaining cells, and add them to the file. Each job has workers of its own."""
    estimate = estimate or Estimate([])
    pythons = {environment: environments.python_of(environment, given) for environment in {p[0] for p in left}}
    queue, hopeless, shown, start, lock = iter(enumerate(left)), set(), 0.0, time.monotonic(), threading.Lock()
    stopped = False
    workers = [{name: Worker(name, python, suite) for name, python in pythons.items()} for _ in range(jobs)]
    all_workers = [worker for own in workers for worker in own.values()]

    def work(own):
        nonlocal shown
        while True:
            with lock:
                i, (environment, method, cell) = next(queue, (None, (None, None, None)))
                if i is None:
                    return
                if cell.configuration in hopeless:
                    continue
                if time.monotonic() - shown > PROGRESS:
                    shown = time.monotonic()
                    print(
                        f"{i} of {len(left)} fits in {clock(shown - start)}, about "
                        f"{clock(estimate.seconds(left[i:]) / jobs)} left; split {cell.split}, draw {cell.draw}: "
                        f"{cell.task}, {method.key}, epsilon {cell.epsilon:g}",
                        flush=True,
                    )
            before = time.monotonic()
            answer = own[environment].answer(cell, method.limit)
            with lock:
                if stopped:
                    return
                estimate.add(cell, time.monotonic() - before)
                if answer["status"].startswith("timeout"):
                    hopeless.add(cell.configuration)
                results.write(path, results.rows_of(cell, answer), append=True)

    try:
        with ThreadPoolExecutor(jobs) as pool:
            try:
                for done in [pool.submit(work, own) for own in workers]:
                    done.result()
            except BaseException:
                stopped, queue = True, iter(())
                for worker in all_workers:
                    worker.kill()
                raise
    finally:
        for worker in all_workers:
            worker.end()


def at_hand(names):
    """Return the tasks with available data, and print those without."""
    found, missing = [], {}
    for name in names:
        try:
            TASKS[name].load()
            found.append(name)
        except FileNotFoundError as error:
            missing.setdefault(str(error), []).append(name)
    for error, left_out in missing.items():
        print(f"left out: {', '.join(left_out)}: {error}", flush=True)
    return found


@contextlib.contextmanager
def locked(path):
    """Prevent other processes from adding to the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_suffix(".lock"), "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(f"another process is adding to {path}") from None
        yield


def drop(path, wanted):
    """Remove rows from the file, so that they are fitted again."""
    rows = results.read(path)
    kept = [row for row in rows if not wanted(row)]
    if len(kept) < len(rows):
        results.write(path, [results.text_of(row) for row in kept])


def named(names, library, method):
    """Return whether a library or one of its methods is among the names."""
    return library in names or f"{library}/{method}" in names


def main():
    parser = argparse.ArgumentParser(description="Fits skdp and its peers to the same splits.")
    parser.add_argument("--quick", action="store_true", help="one split, epsilons 0.1, 1 and 10; leaves out Opacus")
    parser.add_argument("--splits", type=int, help="at most so many splits")
    parser.add_argument("--draws", type=int, help="at most so many draws of noise a split")
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS))
    parser.add_argument("--only", nargs="+", metavar="LIBRARY", help="only these libraries, or library/method")
    parser.add_argument("--without", nargs="+", metavar="LIBRARY", default=[], help="not these")
    parser.add_argument(
        "--redo", nargs="+", metavar="LIBRARY", default=[], help="forget what these have, and fit again"
    )
    parser.add_argument("--retry", action="store_true", help="fit again what failed or ran out of time")
    parser.add_argument("--python", nargs="+", metavar="ENVIRONMENT=PATH", default=[], help="a Python for a peer")
    parser.add_argument("--results", type=Path, default=results.FOLDER / "utility.csv")
    parser.add_argument("--dry-run", action="store_true", help="say what there is to do, and how long it may take")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.splits, arguments.draws = arguments.splits or 1, arguments.draws or 1
        arguments.epsilons = (0.1, 1.0, 10.0)
        arguments.without.append("opacus")

    methods = [
        (environment, method)
        for environment, method in all_methods()
        if (arguments.only is None or named(arguments.only, method.library, method.name))
        and not named(arguments.without, method.library, method.name)
    ]
    given = dict(pair.split("=", 1) for pair in arguments.python)
    if unknown := set(given) - set(MODULES):
        parser.error(f"no environment is called {', '.join(sorted(unknown))}")
    with locked(arguments.results):
        work(arguments, methods, given)


def work(arguments, methods, given):
    """Run the command line."""
    if arguments.redo:
        drop(arguments.results, lambda row: named(arguments.redo, row["library"], row["method"]))
    if arguments.retry:
        drop(arguments.results, lambda row: row["status"] != "ok")
    rows = results.read(arguments.results)
    tasks = at_hand(arguments.tasks or TASKS)
    planned = plan(methods, arguments.epsilons, arguments.splits, arguments.draws, tasks)
    left = remaining(planned, rows)
    estimate = Estimate(rows)
    print(f"{len(planned)} fits, {len(left)} to do; about {clock(estimate.seconds(left))}", flush=True)
    if not arguments.dry_run:
        run(left, arguments.results, given, estimate)
        print(f"done: {arguments.results}")


if __name__ == "__main__":
    main()
