"""Measure how time and memory of a fit grow with rows, columns, classes and categories. It takes about half an hour.

    python examples/benchmarks/harness/growth.py [--quick] [--axes AXIS ...]

Each fit has a process of its own, a copy of one that has made small fits, so that no module is loaded in the measured
fit. Time is CPU time, which depends little on other load. Many rows are in a memory-mapped file. Results are added to
docs/benchmarks/growth.csv, and are not measured again. After a fit beyond the limits, larger sizes are not tried.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import os
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent))

import environments

# NumPy reads the number of threads when it is imported.
os.environ.update(environments.variables())

import growth_summary
import numpy as np
import results
from speed_cases import BASE_COLUMNS, BASE_ROWS, make_rows, make_target, public
from speed_worker import MOST_NUMBERS, peak
from tasks import DELTA

#: Limits of one fit: CPU seconds, and bytes of memory without mapped files.
SECONDS, MEMORY = 60, 10 * 2**30
#: A fit that takes less time is repeated.
SHORT = 2.0
REPETITIONS = 3
#: The largest size with `--quick`.
QUICK = 10_000
#: Stored entries of each sparse row.
STORED = 10

#: The parameters of a model that are public facts.
PARAMETERS = {
    "DPAdditiveClassifier": ("bounds", "classes"),
    "ObjPertLogReg": ("data_norm", "classes"),
    "DPSGDClassifier": ("data_norm", "classes"),
    "DPNaiveBayes": ("bounds", "classes"),
    "DPRandomTree": ("bounds", "classes"),
    "DPKMeans": ("bounds",),
    "DPPCA": ("data_norm",),
    "FunctionalMechLinReg": ("bounds", "bounds_y"),
}
CLASSIFIERS = tuple(name for name, parameters in PARAMETERS.items() if "classes" in parameters)


@dataclass(frozen=True)
class Axis:
    """What grows, and the other dimensions of the rows."""

    sizes: tuple[int, ...]
    models: tuple[str, ...]
    rows: int = BASE_ROWS
    columns: int = BASE_COLUMNS


AXES = {
    "rows": Axis((10**4, 10**5, 10**6, 10**7, 10**8), tuple(PARAMETERS), columns=4),
    "columns": Axis((10, 100, 1000, 3000, 10**4), tuple(PARAMETERS)),
    "sparse columns": Axis(
        (100, 1000, 3000, 10**4, 10**5),
        ("ObjPertLogReg", "DPSGDClassifier", "DPNaiveBayes", "DPKMeans", "DPPCA", "FunctionalMechLinReg"),
    ),
    "classes": Axis((2, 5, 10, 30, 100), CLASSIFIERS),
    "categories": Axis((10, 100, 1000, 10**4, 10**5), tuple(PARAMETERS)),
}


def categories(size):
    """Return the categories of the column."""
    return [f"value {i}" for i in range(size)]


def make(folder, name, size):
    """Write rows, numbers in [0, 1] and labels of one size of an axis."""
    axis = AXES[name]
    n_rows = size if name == "rows" else axis.rows
    n_columns = size if name.endswith("columns") else axis.columns
    rng = np.random.default_rng(2)
    if name == "sparse columns":
        from scipy import sparse

        indices = rng.integers(size, size=n_rows * STORED, dtype=np.int32)
        starts = np.arange(0, len(indices) + 1, STORED, dtype=np.int32)
        X = sparse.csr_array((public(STORED) * rng.random(len(indices)), indices, starts), shape=(n_rows, size))
        sparse.save_npz(folder / "X.npz", X, compressed=False)
        numbers = np.clip(X @ rng.random(size), 0, 1)
    elif name == "categories":
        codes = rng.integers(size, size=n_rows)
        np.save(folder / "X.npy", np.array(categories(size))[codes, None])
        numbers = np.clip((codes % 10 + rng.random(n_rows)) / 11, 0, 1)
    else:
        X = np.lib.format.open_memmap(folder / "X.npy", "w+", shape=(n_rows, n_columns))
        make_rows(n_rows, n_columns, lambda first, rows: X.__setitem__(slice(first, first + len(rows)), rows))
        numbers = make_target(X, "numbers")
    np.save(folder / "numbers.npy", numbers)
    n_classes = size if name == "classes" else 2
    quantiles = np.quantile(numbers, np.arange(1, n_classes) / n_classes)
    np.save(folder / "labels.npy", np.searchsorted(quantiles, numbers).astype(np.int8))


def read(folder, model):
    """Return rows, and what the model takes as labels. Many rows are memory-mapped."""
    mode = None
    if (folder / "X.npz").exists():
        from scipy import sparse

        X = sparse.load_npz(folder / "X.npz")
    else:
        path = folder / "X.npy"
        mode = "r" if path.stat().st_size > 8 * MOST_NUMBERS else None
        X = np.load(path, mmap_mode=mode)
    target = "numbers" if "bounds_y" in PARAMETERS[model] else "labels"
    return X, np.load(folder / f"{target}.npy", mmap_mode=mode)


def estimator(model, name, size):
    """Return an estimator for one size of an axis."""
    import skdp

    n_classes = size if name == "classes" else 2
    given = {"n_components": 2} if model == "DPPCA" else {}
    if name == "categories":
        target = skdp.Number(0, 1) if "bounds_y" in PARAMETERS[model] else skdp.Category([0, 1])
        given["schema"] = skdp.Schema({"x": skdp.Category(categories(size))}, target=target)
    else:
        side = public(size if name == "columns" else AXES[name].columns)
        known = {
            "bounds": (-public(STORED), public(STORED)) if name == "sparse columns" else (0, side),
            "bounds_y": (0, 1),
            "data_norm": 1.0,
            "classes": list(range(n_classes)),
        }
        given |= {parameter: known[parameter] for parameter in PARAMETERS[model]}
    return getattr(skdp, model)(delta=DELTA, **given)


def fit(folder, model, name, size):
    """Return the CPU seconds of a fit, and the MiB that it adds to the process with all rows in memory."""
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    X, y = read(folder, model)
    # The pages of a mapped file count as memory of the process as soon as they are read.
    for array in (X, y) if isinstance(X, np.memmap) else ():
        for first in range(0, len(array), 10**6):
            np.max(array[first : first + 10**6])
    used = time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (int(used) + SECONDS + 1,) * 2)
    before, seconds, memory = peak(), [], None
    while not seconds or (sum(seconds) < SHORT and len(seconds) < REPETITIONS):
        start = time.process_time()
        estimator(model, name, size).fit(X, y)
        seconds.append(time.process_time() - start)
        memory = peak() - before if memory is None else memory
    return results.short(median(seconds)), results.short(memory)


def in_a_process(function, *arguments):
    """Return the value of a call in a copy of this process, or None if it fails or is ended by a limit."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=lambda: there.send(function(*arguments)))
    process.start()
    there.close()
    try:
        return here.recv()
    except EOFError:
        return None
    finally:
        process.join()


def measure(name, chosen, path, done):
    """Add the figures of one axis, for those of its sizes that are chosen, to the file."""
    stopped = {model for axis, _, model, seconds in done if axis == name and not seconds}
    known = {(size, model) for axis, size, model, _ in done if axis == name}
    with tempfile.TemporaryDirectory() as folder:
        for size in chosen:
            left = [m for m in AXES[name].models if m not in stopped and (size, m) not in known]
            part = Path(folder, str(size))
            if left or size == chosen[0]:
                part.mkdir()
                in_a_process(make, part, name, size)
            if size == chosen[0]:
                for model in AXES[name].models:
                    estimator(model, name, size).fit(*read(part, model))
            for model in left:
                figures = in_a_process(fit, part, model, name, size)
                print(time.strftime("%H:%M"), name, size, model, figures or "beyond the limits", flush=True)
                if figures is None:
                    stopped.add(model)
                new = not path.exists()
                with open(path, "a", newline="") as file:
                    lines = [(name, size, model, *(figures or ("", "")))]
                    csv.writer(file, lineterminator="\n").writerows([growth_summary.HEADER, *lines] if new else lines)
            for array in part.glob("*"):
                array.unlink()


def main():
    parser = argparse.ArgumentParser(description="Measures how time and memory of a fit grow.")
    parser.add_argument("--quick", action="store_true", help=f"sizes of at most {QUICK:,}")
    parser.add_argument("--axes", nargs="+", choices=AXES, default=list(AXES))
    parser.add_argument("--results", type=Path, default=results.FOLDER / "growth.csv")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    done = [row[:4] for row in growth_summary.read(arguments.results)]
    for name in arguments.axes:
        chosen = [size for size in AXES[name].sizes if not arguments.quick or size <= QUICK]
        measure(name, chosen, arguments.results, done)


if __name__ == "__main__":
    main()
