"""Time and memory of fits to a large sparse matrix, each in its own process, for the user guide.

OMP_NUM_THREADS=1 python examples/benchmarks/sparse_rows.py [NAME ...]
"""

import subprocess
import sys
import time

import numpy as np
from scipy import sparse

from skdp import decomposition, linear_model, naive_bayes

N_ROWS, N_STORED = 10**6, 20

LABELS = {"classes": [0, 1], "delta": 1e-5}
CASES = {
    "DPSGDClassifier": (10**5, {"data_norm": 3.0, **LABELS}),
    "DPSGDRegressor": (10**5, {"data_norm": 3.0, "bounds_y": (-2, 2)}),
    "ObjPertLogReg": (10**5, {"data_norm": 3.0, **LABELS}),
    "OutputPertLogReg": (10**5, {"data_norm": 3.0, **LABELS}),
    "DPNaiveBayes": (10**5, {"bounds": (0, 1), "n_bins": 2, **LABELS}),
    "FunctionalMechLinReg": (3000, {"bounds": (-1, 1), "bounds_y": (-2, 2), "delta": 1e-5}),
    "FunctionalMechLogReg": (3000, {"bounds": (-1, 1), **LABELS}),
    "DPPCA": (3000, {"n_components": 10, "data_norm": 3.0, "delta": 1e-5}),
    "ExpMechPCA": (1000, {"n_components": 2, "data_norm": 3.0}),
}


def measure(name):
    """Fit one estimator, and print the seconds and the largest memory of the process."""
    # Windows does not have the module.
    from resource import RUSAGE_SELF, getrusage

    n_columns, parameters = CASES[name]
    rng = np.random.default_rng(0)
    places = rng.integers(n_columns, size=N_ROWS * N_STORED, dtype=np.int32)
    ends = np.arange(0, len(places) + 1, N_STORED, dtype=np.int32)
    X = sparse.csr_array((rng.random(len(places)), places, ends), shape=(N_ROWS, n_columns))
    y = X @ rng.normal(size=n_columns)
    y = (y - y.mean()) / y.std()
    room = next(each for each in (linear_model, naive_bayes, decomposition) if hasattr(each, name))
    start = time.perf_counter()
    getattr(room, name)(**parameters).fit(X, y > 0 if "classes" in parameters else y)
    seconds = time.perf_counter() - start
    memory = getrusage(RUSAGE_SELF).ru_maxrss / (2**30 if sys.platform == "darwin" else 2**20)
    print(f"{name}, {N_ROWS} x {n_columns}: {seconds:.0f} s, {memory:.2f} GiB", flush=True)


def main():
    """Measure all estimators, or the named ones."""
    if sys.argv[1:2] == ["--one"]:
        return measure(sys.argv[2])
    for name in sys.argv[1:] or CASES:
        subprocess.run([sys.executable, __file__, "--one", name], check=True)


if __name__ == "__main__":
    main()
