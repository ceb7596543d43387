"""Accuracy on Adult of each strategy of a private search, and of the defaults.

Run it with the directory of the data in ``SKDP_DATA``:

    python examples/benchmarks/search_utility.py [--splits 3] [--draws 2] [--candidates 5 20] [--epsilons 0.5 1 3]

Each row of the output is one cell of the table in the user guide: the mean test accuracy over splits and draws of
noise. If diffprivlib can be imported (it needs scikit-learn 1.7 or older), there is a row for scikit-learn's
GridSearchCV with diffprivlib's LogisticRegression. Its budget is split among candidates x 5 folds + 1 fits by
diffprivlib's accountant. The exact scores of the choice are not charged, which favours this row. ``--peer-only`` leaves
out the other rows.
"""

import argparse
import os
import sys
import time
import warnings

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, ParameterGrid

from skdp import DPGridSearchCV, ObjPertLogReg

DELTA = 1e-5

C_FEW = [1e-3, 1e-2, 0.05, 0.2, "auto"]
C_MANY = [1e-3, 3e-3, 1e-2, 2e-2, 0.05, 0.1, 0.2, 0.4, 0.8, "auto"]
GRIDS = {5: {"C": C_FEW}, 20: {"C": C_MANY, "data_norm": [0.85, 1.0]}}

try:
    import diffprivlib
except ImportError:
    diffprivlib = None

STRATEGIES = [
    ("holdout", False),
    ("holdout", True),
    ("repeat", "auto"),
    ("auto", "auto"),
]


def peer(epsilon):
    """Return diffprivlib's model with defaults."""
    return diffprivlib.models.LogisticRegression(
        epsilon=epsilon, data_norm=1.0, accountant=diffprivlib.BudgetAccountant()
    )


def peer_search(epsilon, grid):
    """Return scikit-learn's search with diffprivlib's model, with a budget for each of its fits."""
    grid = {name: [1.0 if value == "auto" else value for value in values] for name, values in grid.items()}
    n_fits = 5 * len(ParameterGrid(grid)) + 1
    each, _ = diffprivlib.BudgetAccountant(epsilon, DELTA, slack=DELTA).remaining(n_fits)
    return GridSearchCV(peer(each), grid)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--candidates", type=int, nargs="+", default=[5, 20])
    parser.add_argument("--peer-only", action="store_true")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 3.0])
    arguments = parser.parse_args()
    sys.path.insert(0, os.environ["SKDP_DATA"])
    import datasets

    data = datasets.adult()
    X, y = data["X"], data["y"]
    splits = list(datasets.splits(len(y)))[: arguments.splits]
    model = ObjPertLogReg(data_norm=1.0, classes=[0, 1])

    def mean_accuracy(estimator):
        scores, chosen, start = [], set(), time.perf_counter()
        for train, test in splits:
            for _ in range(arguments.draws):
                fitted = clone(estimator).fit(X[train], y[train])
                scores.append(fitted.score(X[test], y[test]))
                chosen.add(getattr(fitted, "strategy_", "-"))
        seconds = (time.perf_counter() - start) / len(scores)
        error = np.std(scores) / np.sqrt(len(scores))
        return f"{100 * np.mean(scores):6.2f} +- {100 * error:.2f}   {seconds:6.1f} s   {'/'.join(sorted(chosen))}"

    if diffprivlib is not None:
        # It says for each fit that records beyond the norm are clipped, and that the solver is not done.
        warnings.filterwarnings("ignore", module="diffprivlib|sklearn")
    for epsilon in arguments.epsilons:
        print(f"epsilon={epsilon}", flush=True)
        untuned = clone(model).set_params(epsilon=epsilon, delta=DELTA)
        if not arguments.peer_only:
            print(f"   1 candidate   defaults           {mean_accuracy(untuned)}", flush=True)
        if diffprivlib is not None:
            print(f"   1 candidate   diffprivlib        {mean_accuracy(peer(epsilon))}", flush=True)
        for n_candidates in arguments.candidates:
            if diffprivlib is not None:
                cell = mean_accuracy(peer_search(epsilon, GRIDS[n_candidates]))
                print(f"  {n_candidates:2d} candidates  diffprivlib        {cell}", flush=True)
            for strategy, refit in [] if arguments.peer_only else STRATEGIES:
                search = DPGridSearchCV(
                    model, GRIDS[n_candidates], epsilon=epsilon, delta=DELTA, strategy=strategy, refit=refit
                )
                name = strategy + (" + refit" if refit is True else "")
                print(f"  {n_candidates:2d} candidates  {name:18s} {mean_accuracy(search)}", flush=True)


if __name__ == "__main__":
    main()
