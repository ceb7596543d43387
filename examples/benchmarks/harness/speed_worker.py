"""Time cases in one environment: one request per line on stdin, and one line for each repetition on stdout.

A request is {"case": name, "rows": n, "columns": d, "seconds": budget}. skdp and the counterpart take turns, in an
order that changes from one repetition to the next. With {"memory": "ours"}, the request is one fit in this process,
which should be fresh.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from speed_cases import PREDICTED, cases, make_rows, make_target
from worker import Limit

#: Rows of the fit that comes before the clock starts: imports, caches.
WARM = 2000
#: More numbers are memory-mapped.
MOST_NUMBERS = 20_000_000
#: Seconds that a call may take.
LIMIT = 90
MOST_REPETITIONS = 9


def timed(call):
    """Return the seconds of a call, or raise TimeoutError if it exceeds the limit."""
    with Limit(LIMIT):
        start = time.perf_counter()
        call()
        return time.perf_counter() - start


def rows_of(folder, n_rows, n_columns):
    """Return rows in memory, or if there are many, memory-mapped. Their file is made once for each shape."""
    path = Path(folder, f"{n_rows}-{n_columns}.npy")
    if not path.exists():
        for old in Path(folder).glob("*.npy"):
            old.unlink()
        file = np.lib.format.open_memmap(path, "w+", shape=(n_rows, n_columns))
        make_rows(n_rows, n_columns, lambda first, rows: file.__setitem__(slice(first, first + len(rows)), rows))
        del file
    return np.load(path, mmap_mode="r" if n_rows * n_columns > MOST_NUMBERS else None)


def application(model, X):
    """Return the method of a fitted model that is timed: predict or transform."""
    return (model.predict if hasattr(model, "predict") else model.transform)(X)


def run(case, X, y, seconds):
    """Yield repetitions of fit and of predict: (operation, seconds of skdp, seconds of the counterpart)."""
    shape = X.shape
    few = (X[:WARM],) if y is None else (X[:WARM], y[:WARM])
    full = (X,) if y is None else (X, y)
    sides = [lambda: case.ours(*shape), lambda: case.other(*shape)]
    for side in sides:
        with Limit(LIMIT):
            application(side().fit(*few), few[0])
    start = time.perf_counter()
    fitted = [None, None]
    for repetition in range(MOST_REPETITIONS):
        taken = [0.0, 0.0]
        for i in (0, 1) if repetition % 2 == 0 else (1, 0):
            model = sides[i]()
            taken[i] = timed(lambda model=model: model.fit(*full))
            fitted[i] = model
        yield "fit", *taken
        if repetition >= 2 and time.perf_counter() - start > seconds:
            break
        if time.perf_counter() - start > 4 * seconds:
            break
    rows = X[:PREDICTED]
    start = time.perf_counter()
    for repetition in range(MOST_REPETITIONS):
        taken = [0.0, 0.0]
        for i in (0, 1) if repetition % 2 == 0 else (1, 0):
            taken[i] = timed(lambda i=i: application(fitted[i], rows))
        yield "predict", *taken
        if repetition >= 2 and time.perf_counter() - start > seconds / 4:
            break


def peak():
    """Return the largest memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def memory(case, side, n_rows, n_columns):
    """Return the MiB that a fit adds to a process with its rows in memory."""
    X = np.empty((n_rows, n_columns))
    make_rows(n_rows, n_columns, lambda first, rows: X.__setitem__(slice(first, first + len(rows)), rows))
    y = None if case.target == "none" else make_target(X, case.target)
    make = case.ours if side == "ours" else case.other
    make(WARM, n_columns).fit(*((X[:WARM],) if y is None else (X[:WARM], y[:WARM])))
    before = peak()
    with Limit(LIMIT):
        make(n_rows, n_columns).fit(*((X,) if y is None else (X, y)))
    return peak() - before


def answers(request, known, folder):
    """Yield the results of a request."""
    case, n_rows, n_columns = known[request["case"]], request["rows"], request["columns"]
    try:
        if "memory" in request:
            yield {"operation": "memory", "value": memory(case, request["memory"], n_rows, n_columns)}
        else:
            X = rows_of(folder, n_rows, n_columns)
            y = None if case.target == "none" else make_target(X, case.target)
            for operation, ours, other in run(case, X, y, request["seconds"]):
                yield {"operation": operation, "ours": ours, "other": other}
    except Exception as error:
        yield {"operation": "fit", "status": f"{type(error).__name__}: {' '.join(str(error).split())}"[:120]}
    yield {"operation": "done"}


def main():
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    known = {case.name: case for case in cases()}
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        for line in sys.stdin:
            for answer in answers(json.loads(line), known, folder):
                print(json.dumps(answer), file=output, flush=True)


if __name__ == "__main__":
    main()
