"""Fits to partitions of Parquet files on two workers of one thread, next to fits to the same rows in memory.

    python examples/benchmarks/dask_speed.py [--rows 1000000 10000000] [--folder /tmp/rows]

For each number of rows, tables of 20 columns are written once, by the workers. Each fit is made twice: to the
collection, and to the rows in memory in a process of its own. Reported are CPU seconds of the workers and of the client
(with the scheduler, which is in its process), the largest memory of a worker, and whether the released numbers are
equal. At last, the cost of a partition and pass, and the growth with the rows from three sizes.
"""

import argparse
import itertools
import json
import logging
import math
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np
import pandas as pd

from skdp import (
    DPPCA,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPKMeans,
    DPNaiveBayes,
    DPSGDClassifier,
    FunctionalMechLinReg,
    ObjPertLogReg,
)

COLUMNS = [f"x{j}" for j in range(20)]
BUDGET = {"epsilon": 1.0, "delta": 1e-9, "random_state": 0}

#: Models with the column that they learn, and the attributes that are compared.
MODELS = {
    "FunctionalMechLinReg": (FunctionalMechLinReg(bounds=(-4, 4), bounds_y=(-20, 20), **BUDGET), "t", ["coef_"]),
    "DPNaiveBayes": (DPNaiveBayes(bounds=(-4, 4), classes=[0, 1], **BUDGET), "y", ["class_count_"]),
    "DPPCA": (DPPCA(3, data_norm=6.0, **BUDGET), None, ["components_"]),
    "DPKMeans": (DPKMeans(8, bounds=(-4, 4), **BUDGET), None, ["cluster_centers_"]),
    "DPSGDClassifier, 60 steps": (
        DPSGDClassifier(data_norm=6.0, classes=[0, 1], n_steps=60, **BUDGET),
        "y",
        ["coef_", "intercept_"],
    ),
    "DPAdditiveRegressor": (
        DPAdditiveRegressor(bounds=(-4, 4), bounds_y=(-20, 20), **BUDGET),
        "t",
        ["intercept_", "_coef"],
    ),
    "DPAdditiveClassifier": (DPAdditiveClassifier(bounds=(-4, 4), classes=[0, 1], **BUDGET), "y", ["intercept_"]),
    "ObjPertLogReg": (ObjPertLogReg(data_norm=6.0, classes=[0, 1], **BUDGET), "y", ["coef_", "intercept_"]),
}


def table(part, n_rows):
    """Return a part of the rows, which its number determines."""
    rng = np.random.default_rng(part)
    X = rng.normal(size=(n_rows, len(COLUMNS)))
    t = X @ np.linspace(-1, 1, len(COLUMNS)) + rng.normal(size=n_rows)
    return pd.DataFrame(X, columns=COLUMNS).assign(t=t, y=(t > 0).astype(np.int64))


def written(folder, n_rows, n_parts, client):
    """Write the rows in equal parts, unless they are there."""
    path = folder / f"{n_rows}-{n_parts}"
    if not path.exists():
        path.mkdir(parents=True)
        ends = np.linspace(0, n_rows, n_parts + 1).astype(int)
        client.gather(
            [
                client.submit(_write, str(path / f"{i:04}.parquet"), i, int(b - a), pure=False)
                for i, (a, b) in enumerate(itertools.pairwise(ends))
            ]
        )
    return path


def _write(path, part, n_rows):
    table(part, n_rows).to_parquet(path)


def cpu():
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


def peak():
    """Largest memory of this process, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def arguments(rows, target):
    return (rows[COLUMNS],) if target is None else (rows[COLUMNS], rows[target])


def numbers(model, names):
    return [np.ravel(getattr(model, name)).tolist() for name in names]


def in_memory(name, path):
    """Fit to the rows in memory, reading included, and print what it took."""
    model, target, names = MODELS[name]
    before = cpu()
    wanted = COLUMNS + ([] if target is None else [target])
    rows = pd.concat([pd.read_parquet(p, columns=wanted) for p in sorted(Path(path).iterdir())], ignore_index=True)
    model.fit(*arguments(rows, target))
    print(json.dumps({"cpu": cpu() - before, "memory": peak(), "numbers": numbers(model, names)}))


def in_partitions(name, path):
    """Fit to the collection on a fresh cluster."""
    import dask.dataframe as dd

    with cluster() as (_, client):
        model, target, names = MODELS[name]
        rows = dd.read_parquet(path)
        workers = sum(client.run(cpu).values())
        own, start = cpu(), time.perf_counter()
        model.fit(*arguments(rows, target))
        return {
            "seconds": time.perf_counter() - start,
            "workers": sum(client.run(cpu).values()) - workers,
            "client": cpu() - own,
            "memory": max(client.run(peak).values()),
            "numbers": numbers(model, names),
        }


def _imported():
    """Import what a fit needs, which takes some seconds once."""
    import dask.dataframe
    import pyarrow.parquet

    import skdp.linear_model

    return all((dask.dataframe, pyarrow.parquet, skdp.linear_model))


class cluster:  # noqa: N801
    """Two workers of one thread, as a context."""

    def __enter__(self):
        from dask.distributed import Client, LocalCluster

        self._cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
        )
        self._client = Client(self._cluster)
        self._client.run(_imported)
        return self._cluster, self._client

    def __exit__(self, *failure):
        self._client.close()
        self._cluster.close()


def compare(name, path, memory=True):
    """Print a line about both fits, and return the one to the partitions."""
    found = in_partitions(name, path)
    line = (
        f"{path.name:>14}  {name:26} {found['seconds']:7.1f} s, CPU: workers {found['workers']:7.1f} s, client "
        f"{found['client']:5.2f} s; {found['memory']:.2f} GiB a worker"
    )
    if memory:
        script = [sys.executable, __file__, "--in-memory", name, str(path)]
        own = json.loads(subprocess.run(script, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        pairs = zip(own["numbers"], found["numbers"], strict=True)
        apart = max(float(np.abs(np.subtract(a, b)).max()) for a, b in pairs)
        line += f"; in memory {own['cpu']:6.1f} s and {own['memory']:.2f} GiB; difference {apart:.1e}"
    print(line, flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--folder", type=Path, default=Path("/tmp/skdp-rows"))
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--in-memory", nargs=2, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.in_memory:
        in_memory(*options.in_memory)
        return
    for n_rows in options.rows:
        # Partitions of about 100 MB in memory.
        n_parts = max(2, round(n_rows * 22 * 8 / 1e8))
        with cluster() as (_, client):
            path = written(options.folder, n_rows, n_parts, client)
        for name in options.models:
            compare(name, path)

    # The same rows in few and in many partitions.
    n_rows, counts = 1_000_000, (8, 128)
    name = "FunctionalMechLinReg"
    found = []
    for n_parts in counts:
        with cluster() as (_, client):
            path = written(options.folder, n_rows, n_parts, client)
        found.append(compare(name, path, memory=False))
    # Two passes: one validates.
    passes = 2 * (counts[1] - counts[0])
    for part in ("client", "workers"):
        print(f"a partition and pass, {part}: {1e3 * (found[1][part] - found[0][part]) / passes:.2f} ms")

    sizes = [max(options.rows) // 4, max(options.rows) // 2, max(options.rows)]
    seconds = []
    for size in sizes:
        with cluster() as (_, client):
            path = written(options.folder, size, max(2, round(size * 22 * 8 / 1e8)), client)
        seconds.append(compare(name, path, memory=False)["workers"])
    slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    print(f"CPU of the workers grows as rows to the power of {slope:.2f}")
    print(f"by extrapolation to 100,000,000 rows: {seconds[-1] * math.pow(1e8 / sizes[-1], slope):.0f} s")


if __name__ == "__main__":
    main()
