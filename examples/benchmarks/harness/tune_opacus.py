"""Try settings of Opacus on a fifth of the training rows of the first split, and print the best.

This script found the `SETTINGS` in `models_opacus` for these tasks:

    .venv-bench-opacus/bin/python examples/benchmarks/harness/tune_opacus.py cancer digits nursery nursery-binary
    .venv-bench-opacus/bin/python examples/benchmarks/harness/tune_opacus.py --suite tables --kinds linear bank hpc
"""

from __future__ import annotations

import argparse
from itertools import product

import models_opacus
import scores
from methods import task_of
from tasks import DELTA, split

GRID = {
    "linear": {"rate": (1.0, 4.0, 16.0, 64.0), "steps": ((4, 30), (2, 60)), "clip": (0.3, 1.0)},
    "network": {"rate": (0.05, 0.2, 0.8, 3.2), "steps": ((8, 10), (4, 30)), "clip": (0.3, 1.0)},
}
EPSILONS = (0.1, 1.0, 10.0)


def main():
    parser = argparse.ArgumentParser(description="Try settings of Opacus.")
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--suite", default="peers")
    parser.add_argument("--kinds", nargs="+", default=list(GRID))
    arguments = parser.parse_args()
    for name in arguments.tasks:
        task = task_of(arguments.suite, name)
        data, y = task.load()
        known, _ = split(len(y), 0)
        train, valid = known[: int(0.8 * len(known))], known[int(0.8 * len(known)) :]
        for kind in arguments.kinds:
            grid = GRID[kind]
            X = data.view("norm" if kind == "linear" else "unit")
            for epsilon in EPSILONS:
                found = []
                for rate, (n_batches, epochs), clip in product(grid["rate"], grid["steps"], grid["clip"]):
                    settings = {"rate": rate, "batches": n_batches, "epochs": epochs, "clip": clip}
                    model = models_opacus.Trained(kind, task.n_classes, len(train), 0, epsilon, DELTA, **settings)
                    model.fit(X[train], y[train])
                    reached = scores.classification(y[valid], model.predict(X[valid]), model.predict_proba(X[valid]))
                    found.append((reached["accuracy"] + reached["auc"], n_batches, epochs, rate, clip))
                print(name, kind, epsilon, sorted(found)[:-4:-1], flush=True)


if __name__ == "__main__":
    main()
