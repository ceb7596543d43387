"""Fit cells in the environment of one peer: one cell per line on stdin, and one line of results for each on stdout.

A line of results is written after each fit, so that no result is lost if a later fit hangs. If a fit in Python code
exceeds its time, it is stopped here. Other fits are stopped by `bench`, which ends the process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
import zlib
from functools import cache
from importlib import metadata
from pathlib import Path

for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM"):
    os.environ.setdefault(f"{name}_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
import scores
from methods import Cell, method_of, methods_of, task_of

DISTRIBUTIONS = {"interpret": "interpret-core"}


@cache
def version_of(library):
    """Return the version of an installed library, and for skdp the version of the source tree with its last change."""
    if library == "skdp":
        import skdp

        command = ["git", "log", "-1", "--format=+%h", "--", "skdp"]
        root = Path(skdp.__file__).parents[1]
        change = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout
        return skdp.__version__ + change.strip()
    return metadata.version(DISTRIBUTIONS.get(library, library))


class Limit:
    """Raise TimeoutError in the main thread after some seconds."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __enter__(self):
        def stop(*_):
            raise TimeoutError(f"not done after {self.seconds:g} s")

        signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *_):
        signal.setitimer(signal.ITIMER_REAL, 0)


def seed_of(cell):
    """Return the seed of a task, epsilon, split and draw, which is the same for all methods.

    With one seed for all epsilons, a lucky draw would be lucky at all of them.
    """
    return zlib.crc32(repr((cell.task, cell.epsilon, cell.split, cell.draw)).encode()) % 2**31


def rows_of(X, numbers):
    """Return rows of an array or of a data frame."""
    return X.iloc[numbers] if hasattr(X, "iloc") else X[numbers]


def scored(task, model, X, y, train, test):
    """Return the scores of a fitted model, on test rows for predictions and on training rows for descriptions."""
    if task.kind == "classification":
        rows, probabilities = rows_of(X, test), None
        if hasattr(model, "predict_proba"):
            probabilities = scores.aligned(model.predict_proba(rows), model.classes_, task.n_classes)
        found = scores.classification(y[test], np.asarray(model.predict(rows)), probabilities)
        return {metric: found[metric] for metric in task.metrics if metric in found}
    if task.kind == "regression":
        return scores.regression(y[test], model.predict(rows_of(X, test)))
    if task.kind == "clustering":
        return scores.clustering(X[train], model.cluster_centers_)
    if task.kind == "components":
        return scores.components(X[train], model.components_)
    return scores.scaling(X[train], model.mean_, model.scale_)


def run(cell, method, suite="peers"):
    """Fit one cell. The answer contains the error if there is one."""
    task = task_of(suite, cell.task)
    answer = {"version": version_of(method.library), "metrics": {}, "seconds": None, "spent": None, "status": "ok"}
    if method.spent is not None:
        answer["spent"] = method.spent(task, cell.epsilon)
    try:
        data, y = task.load()
        X = data.view(method.view)
        train, test = task.split(len(X), cell.split)
        model = method.build(task, cell.epsilon, cell.delta, seed_of(cell))
        target = () if y is None or task.kind not in ("classification", "regression") else (y[train],)
        rows = (rows_of(X, train), *target)
        with Limit(method.limit), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            model.fit(*rows)
            answer["seconds"] = time.perf_counter() - start
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            answer["metrics"] = scored(task, model, X, y, train, test)
    except TimeoutError as error:
        answer["status"] = f"timeout: {error}"
    except Exception as error:
        answer["status"] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:160]
    return answer


def main():
    # Whatever libraries print is not to be mixed with results.
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    environment, suite = sys.argv[1:]
    methods = methods_of(environment)
    for line in sys.stdin:
        cell = Cell(**json.loads(line))
        answer = run(cell, method_of(cell, methods, suite), suite)
        print(json.dumps(answer), file=results, flush=True)


if __name__ == "__main__":
    main()
