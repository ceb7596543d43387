"""Time and memory of fits to a memory-mapped array of 20 columns in single precision.

The array is made in a temporary folder, which needs 80 bytes for each row. Each fit runs in a process of its own. The
memory is the largest resident size, without the pages of the mapped file, beyond that of the process before the fit.

Run with::

    python examples/benchmarks/mapped_rows.py 1e6 1e7 1e8
"""

import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np

COLUMNS = 20
MODELS = {
    "FunctionalMechLinReg": {"bounds": (-4, 4), "bounds_y": (0, 1)},
    "DPNaiveBayes": {"bounds": (-4, 4), "classes": [0, 1]},
    "DPPCA": {"n_components": 5, "data_norm": 8.0, "delta": 1e-9},
    "DPSGDClassifier": {
        "data_norm": 8.0,
        "delta": 1e-9,
        "classes": [0, 1],
        "n_steps": 100,
        "batch_size": 0.1,
    },
    "ObjPertLogReg": {"data_norm": 8.0, "delta": 1e-9, "classes": [0, 1]},
}


def make(path, n_rows):
    """Write rows and labels."""
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(path / "X.npy", mode="w+", dtype=np.float32, shape=(n_rows, COLUMNS))
    y = np.lib.format.open_memmap(path / "y.npy", mode="w+", dtype=np.int8, shape=(n_rows,))
    for start in range(0, n_rows, 10**6):
        rows = rng.standard_normal((min(10**6, n_rows - start), COLUMNS), dtype=np.float32)
        X[start : start + len(rows)] = rows
        y[start : start + len(rows)] = rows[:, 0] + rows[:, 1] > rng.standard_normal(len(rows))


def own_memory():
    """Return the resident memory of this process without mapped files, in bytes."""
    with open("/proc/self/status") as lines:
        sizes = dict(line.split(":", 1) for line in lines)
    return 1024 * int(sizes["RssAnon"].split()[0])


def fit(path, name):
    """Fit one model, and print its CPU time, its wall time and its memory."""
    import skdp

    warnings.simplefilter("ignore")
    X, y = (np.load(path / file, mmap_mode="r") for file in ("X.npy", "y.npy"))
    model = getattr(skdp, name)(epsilon=1.0, **MODELS[name])
    model.fit(np.array(X[:1000]), np.array(y[:1000]))
    before = largest = own_memory()
    done = threading.Event()

    def watch():
        nonlocal largest
        while not done.wait(0.02):
            largest = max(largest, own_memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    cpu, wall = time.process_time(), time.perf_counter()
    model.fit(X, y)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    done.set()
    watcher.join()
    print(f"{name},{len(X)},{cpu:.2f},{wall:.2f},{(largest - before) / 2**20:.0f}", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "fit":
        fit(Path(sys.argv[2]), sys.argv[3])
    else:
        print("model,rows,CPU seconds,seconds,MiB", flush=True)
        for size in sys.argv[1:]:
            with tempfile.TemporaryDirectory() as folder:
                make(Path(folder), int(float(size)))
                for model in MODELS:
                    subprocess.run([sys.executable, __file__, "fit", folder, model], check=False)
