"""Switch off one part of the additive models at a time, and print what is lost on each table.

    python examples/benchmarks/harness/ablation.py [--tables adult bank] [--epsilon 0.1 1 10] [--splits 2]

A part is switched off by replacing a constant or a function of the package. Each fit is a default call with a schema
and a budget. The splits and seeds are the same with and without the part, and differences are paired. Numbers are
areas under the ROC curve for labels, and R2 for numbers. ``--csv FILE`` also writes them to a file, and ``--guide``
writes the table of the guide from such a file.
"""

from __future__ import annotations

import argparse
import csv
import math
import warnings
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import numpy as np
import scores
import tables

from skdp.additive import (
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    _cells,
    _classifier,
    _curves,
    _stages,
)


def unshrunk(engine, features, coef, intercept, count, link):
    """Return the values of bins as gradient steps leave them."""
    values = [np.stack(outputs, axis=1) for outputs in zip(*map(features.tables, coef), strict=True)]
    _, kept, bend = _curves.shrunk(engine, features, coef, intercept, count, link)
    return values, [np.ones_like(factors) for factors in kept], bend


def without_link(most=math.inf, power=1.0):
    """Return a link that takes scores for log-odds."""
    return _curves.Link(math.inf, power)


#: Parts that fits of labels have, and those of numbers have not.
OF_LABELS = ("shrinkage of curves", "link of clipped gradients", "power of probabilities")

#: What replaces each part: parameters of the estimator, and attributes of modules.
PARTS = {
    "bins of equal counts": ({}, [(_cells, "_EVIDENT", math.inf)]),
    "shrinkage of curves": ({}, [(_classifier, "shrunk", unshrunk)]),
    "link of clipped gradients": ({}, [(_classifier, "Link", without_link)]),
    "power of probabilities": ({}, [(_curves, "_LEAST_GAIN", 1e6)]),
    "stages": ({"interactions": None}, []),
    "second fit of curves": ({}, [(_stages, "LEAST_REST", math.inf)]),
}


def fitted_score(task, epsilon, split, parameters):
    """Return the area under the ROC curve, or R2, of one fit, and its log loss if it has one."""
    train, test = task.split(len(task.records.y), split)
    table, y = task.records.table, task.as_in_table(task.records.y)
    kind = DPAdditiveClassifier if task.kind == "classification" else DPAdditiveRegressor
    model = kind(epsilon=epsilon, delta=task.deltas[-1], schema=task.schema, random_state=split, **parameters)
    rows = table.iloc[test]
    model.fit(table.iloc[train], y[train])
    if task.kind == "regression":
        target = task.schema.target
        predictions = (model.predict(rows) - target.low) / (target.high - target.low)
        return scores.regression(task.records.y[test], predictions)["r2"], math.nan
    codes = task.as_codes(model.classes_)
    probabilities = scores.aligned(model.predict_proba(rows), codes, task.n_classes)
    found = scores.classification(task.records.y[test], task.as_codes(model.predict(rows)), probabilities)
    return found["auc"], found["log_loss"]


def write_guide(path, rows):
    """Write means over tables as a table of the guide, with the table that gains least."""
    epsilons = sorted({float(row["epsilon"]) for row in rows})
    lines = [".. list-table::", "   :header-rows: 1", "", "   * - part"]
    for metric in ("area", "log loss", "R2"):
        lines += [f"     - {metric}, epsilon {epsilon:g}" for epsilon in epsilons]
    for part in PARTS:
        lines.append(f"   * - {part}")
        for column, of_labels in (("score_gain", True), ("log_loss_gain", True), ("score_gain", False)):
            for epsilon in epsilons:
                gains = {
                    row["table"]: float(row[column])
                    for row in rows
                    if row["part"] == part
                    and float(row["epsilon"]) == epsilon
                    # Fits of numbers have no log loss.
                    and math.isnan(float(row["log_loss"])) != of_labels
                }
                worst = min(gains, key=gains.get, default=None)
                mean = np.mean([*gains.values()]) if gains else None
                lines.append(f"     - {mean:+.3f} ({worst} {gains[worst]:+.3f})" if gains else "     -")
    path.write_text("\n".join(lines) + "\n")


def main():
    """Print a table for each part and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=tables.names())
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--guide", type=Path)
    arguments = parser.parse_args()
    if arguments.guide:
        return write_guide(arguments.guide, [*csv.DictReader(arguments.csv.open())])
    warnings.simplefilter("ignore")
    rows = []
    for name in arguments.tables:
        task = tables.task(name)
        for epsilon in arguments.epsilon:
            seeds = range(arguments.splits)
            whole = np.array([fitted_score(task, epsilon, seed, {}) for seed in seeds])
            for part, (parameters, replaced) in PARTS.items():
                if part in OF_LABELS and task.kind == "regression":
                    continue
                with ExitStack() as stack:
                    for module, attribute, value in replaced:
                        stack.enter_context(mock.patch.object(module, attribute, value))
                    others = np.array([fitted_score(task, epsilon, seed, parameters) for seed in seeds])
                lost = (whole - others).mean(axis=0) * [1, -1]
                rows.append([part, name, epsilon, *np.append(whole.mean(axis=0), lost).round(4).tolist()])
                score, _, gain, log_loss_gain = rows[-1][3:]
                print(f"{part:27} {name:11} {epsilon:5g} {score:.3f} {gain:+.4f} {log_loss_gain:+.4f}", flush=True)
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["part", "table", "epsilon", "score", "log_loss", "score_gain", "log_loss_gain"])
            writer.writerows(rows)


if __name__ == "__main__":
    main()
