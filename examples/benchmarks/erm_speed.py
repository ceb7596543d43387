"""Time of the exponential mechanism over a ball, and of objective perturbation and the functional mechanism.

    python examples/benchmarks/erm_speed.py

Each line is a median of fits to data that scikit-learn simulates.
"""

from statistics import median
from time import perf_counter

import numpy as np
from sklearn.datasets import make_classification

from skdp.linear_model import ExpMechERM, FunctionalMechLinReg, ObjPertLogReg


def seconds(model, X, y, repeats=5):
    """Return the median time of a fit."""
    taken = []
    for seed in range(repeats):
        start = perf_counter()
        model.set_params(random_state=seed).fit(X, y)
        taken.append(perf_counter() - start)
    return median(taken)


def main():
    """Print a table."""
    print("rows     columns  loss            seconds  against     ratio")
    for n_rows in (1_000, 20_000):
        for n_features in (1, 2, 3):
            X, label = make_classification(
                n_rows,
                n_features,
                n_informative=n_features,
                n_redundant=0,
                n_clusters_per_class=1,
                flip_y=0.2,
                random_state=0,
            )
            X = np.clip(X / 3, -1, 1)
            y = np.clip(X @ np.ones(n_features) / 2 + label / 4, -1, 1)
            norm = n_features**0.5
            objective = seconds(ObjPertLogReg(data_norm=norm, classes=[0, 1]), X, label)
            functional = seconds(FunctionalMechLinReg(bounds=(-1, 1), bounds_y=(-1, 1)), X, y)
            for loss in ("log_loss", "absolute_error"):
                if loss == "log_loss":
                    other, base = "objective", objective
                    taken = seconds(ExpMechERM(loss, data_norm=norm, classes=[0, 1]), X, label)
                else:
                    other, base = "functional", functional
                    taken = seconds(ExpMechERM(loss, data_norm=norm, bounds_y=(-1, 1)), X, y)
                print(f"{n_rows:<8} {n_features:<8} {loss:<15} {taken:<8.4f} {other:<11} {taken / base:.2f}")


if __name__ == "__main__":
    main()
