"""Scores of estimators on difficult tables, relative to a model that ignores the features.

    python examples/benchmarks/difficult.py fit [--estimators DPNaiveBayes ...] [--draws 2]
    python examples/benchmarks/difficult.py report

``fit`` writes a row for each fit to ``docs/benchmarks/difficult.csv``. It replaces earlier rows of the same estimators
and tables. ``report`` makes the table of the user guide, ``docs/user_guide/difficult_tables.inc``, from this file.
"""

import argparse
import csv
import math
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from skdp.accounting import gaussian_mu
from skdp.additive import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.cluster import DPKMeans, SampleAggKMeans
from skdp.decomposition import DPPCA, ExpMechPCA
from skdp.ensemble import PATEClassifier, SampleAggregate
from skdp.linear_model import (
    DPSGDClassifier,
    DPSGDRegressor,
    ExpMechERM,
    FunctionalMechLinReg,
    FunctionalMechLogReg,
    ObjPertLogReg,
    OutputPertLogReg,
)
from skdp.local import LocalDPNaiveBayes
from skdp.naive_bayes import DPNaiveBayes
from skdp.neural_network import DPMLPClassifier, DPMLPRegressor
from skdp.preprocessing import BoundsScaler, DPQuantileBinner, DPStandardScaler
from skdp.synthetic import HistogramClassifier, HistogramRegressor
from skdp.tree import DPGreedyTree, DPRandomTree, DPRandomTreeRegressor
from tests.difficult import KINDS, difficult
from tests.made_up import made_up

RESULTS = ROOT / "docs" / "benchmarks" / "difficult.csv"
REPORT = ROOT / "docs" / "user_guide" / "difficult_tables.inc"
EPSILONS = (0.3, 1.0, 3.0, 10.0, math.inf)
DELTAS = (0.0, 1e-6)
N_ROWS, FEW = 4500, 200
PURE, ANY, APPROXIMATE = (0.0,), DELTAS, DELTAS[1:]


def bounded(table):
    return {"bounds": table.bounds}


def normed(table):
    """Return ``data_norm`` for rows that are scaled to [-1, 1]."""
    return {"data_norm": math.sqrt(table.X.shape[1])}


def scaled(table, model):
    return make_pipeline(BoundsScaler(table.bounds), model)


def n_train(table):
    return FEW if table.kind == "few_rows" else len(table.y) * 2 // 3


def public_rows(table):
    """Return public rows without labels, scaled like those of `scaled`."""
    lower, upper = table.bounds
    rows = np.clip(table.X[n_train(table) :][:500], lower, upper)
    return (2 * rows - lower - upper) / (upper - lower)


def largest_target(table):
    return 2 * max(map(abs, table.target_bounds))


def labels(table):
    return {"classes": list(range(table.n_classes))}


def few_columns(table):
    return table.X.shape[1] <= 6


def for_exact_sampling(table):
    return table.X.shape[1] <= 3 and table.n_classes == 2


def two_classes(table):
    return table.n_classes == 2


class NoisyMean(RegressorMixin, BaseEstimator):
    """The mean of the targets, released with the whole budget. It is the limit for a private constant model."""

    def __init__(self, bounds_y, epsilon, delta, random_state):
        self.bounds_y = bounds_y
        self.epsilon = epsilon
        self.delta = delta
        self.random_state = random_state

    def fit(self, X, y):
        lower, upper = self.bounds_y
        part = (y - lower) / (upper - lower)
        # A record adds 1 to these two sums together.
        sums = np.array([np.sum(1 - part), np.sum(part)])
        rng = np.random.default_rng(self.random_state)
        if self.epsilon < math.inf:
            mu = gaussian_mu(self.epsilon, self.delta) if self.delta > 0 else self.epsilon
            sums += (rng.normal if self.delta > 0 else rng.laplace)(scale=1 / mu, size=2)
        self.mean_ = lower + (upper - lower) * float(np.clip(sums[1] / max(sums.sum(), 1.0), 0.0, 1.0))
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


def explained(model, X, n_components):
    """Return the share of the second moment, about the centre that the estimator looks for, that components explain."""
    if isinstance(model, DPPCA):
        X = X - X.mean(axis=0)
    rotated = X @ np.linalg.qr(model.components_.T)[0]
    total = float(np.sum(X**2))
    return float(np.sum(rotated**2)) / total if total > 1e-9 else n_components / X.shape[1]


#: Name: kind of score, deltas, whether a table fits, and the estimator from a table and the parameters of the budget.
CASES = {
    "FunctionalMechLogReg": (
        "accuracy", ANY, None, lambda t, b: FunctionalMechLogReg(**b, **bounded(t), **labels(t)),
    ),
    "FunctionalMechLogReg, taylor": (
        "accuracy", ANY, None,
        lambda t, b: FunctionalMechLogReg(**b, **bounded(t), **labels(t), calibration="taylor"),
    ),
    "FunctionalMechLinReg": (
        "r2", ANY, None, lambda t, b: FunctionalMechLinReg(**b, **bounded(t), bounds_y=t.target_bounds),
    ),
    "ObjPertLogReg": ("accuracy", ANY, None, lambda t, b: scaled(t, ObjPertLogReg(**b, **normed(t), **labels(t)))),
    "OutputPertLogReg": (
        "accuracy", ANY, None, lambda t, b: scaled(t, OutputPertLogReg(**b, **normed(t), **labels(t))),
    ),
    "DPSGDClassifier": (
        "accuracy", APPROXIMATE, None, lambda t, b: scaled(t, DPSGDClassifier(**b, **normed(t), **labels(t))),
    ),
    "DPSGDClassifier, hinge": (
        "accuracy", APPROXIMATE, None,
        lambda t, b: scaled(t, DPSGDClassifier(**b, **normed(t), **labels(t), loss="hinge")),
    ),
    "DPSGDRegressor": (
        "r2", APPROXIMATE, None,
        lambda t, b: scaled(t, DPSGDRegressor(**b, **normed(t), bounds_y=t.target_bounds)),
    ),
    "DPMLPRegressor": (
        "r2", APPROXIMATE, None,
        lambda t, b: scaled(
            t, DPMLPRegressor((16,), **b, **normed(t), bounds_y=t.target_bounds, expected_n=2000)
        ),
    ),
    "DPMLPClassifier": (
        "accuracy", APPROXIMATE, None,
        lambda t, b: scaled(t, DPMLPClassifier((16,), **b, **normed(t), **labels(t), expected_n=2000)),
    ),
    "DPAdditiveClassifier": ("accuracy", ANY, None, lambda t, b: DPAdditiveClassifier(**b, **bounded(t), **labels(t))),
    "mean of the targets": ("r2", ANY, None, lambda t, b: NoisyMean(bounds_y=t.target_bounds, **b)),
    "DPAdditiveRegressor": (
        "r2", ANY, None, lambda t, b: DPAdditiveRegressor(**b, **bounded(t), bounds_y=t.target_bounds),
    ),
    "DPNaiveBayes": ("accuracy", ANY, None, lambda t, b: DPNaiveBayes(**b, **bounded(t), **labels(t))),
    "DPNaiveBayes, dependence=0": (
        "accuracy", ANY, None, lambda t, b: DPNaiveBayes(**b, **bounded(t), **labels(t), dependence=0.0),
    ),
    "DPNaiveBayes, gaussian": (
        "accuracy", ANY, None, lambda t, b: DPNaiveBayes(**b, **bounded(t), **labels(t), numeric="gaussian"),
    ),
    "LocalDPNaiveBayes": (
        "accuracy", PURE, None,
        lambda t, b: LocalDPNaiveBayes(
            epsilon=b["epsilon"], random_state=b["random_state"], **bounded(t), **labels(t)
        ),
    ),
    "DPGreedyTree": ("accuracy", ANY, None, lambda t, b: DPGreedyTree(**b, **bounded(t), **labels(t))),
    "DPRandomTree": ("accuracy", ANY, None, lambda t, b: DPRandomTree(**b, **bounded(t), **labels(t))),
    "DPRandomTreeRegressor": (
        "r2", ANY, None, lambda t, b: DPRandomTreeRegressor(**b, **bounded(t), bounds_y=t.target_bounds),
    ),
    "PATEClassifier": (
        "accuracy", ANY, None,
        lambda t, b: scaled(
            t,
            PATEClassifier(
                GaussianNB(var_smoothing=1e-3), public_X=public_rows(t), **b, **labels(t), expected_n=2000
            ),
        ),
    ),
    "SampleAggregate, mean of LogisticRegression": (
        "accuracy", ANY, two_classes,
        lambda t, b: scaled(t, SampleAggregate(LogisticRegression(), radius=5.0, expected_n=2000, **b, **labels(t))),
    ),
    "SampleAggregate, median of LogisticRegression": (
        "accuracy", ANY, two_classes,
        lambda t, b: scaled(
            t,
            SampleAggregate(
                LogisticRegression(), aggregator="median", bounds=(-5, 5), expected_n=2000, **b, **labels(t)
            ),
        ),
    ),
    "SampleAggregate, mean of LinearRegression": (
        "r2", ANY, None,
        lambda t, b: scaled(
            t,
            SampleAggregate(
                LinearRegression(), bounds=(-largest_target(t), largest_target(t)), expected_n=2000, **b
            ),
        ),
    ),
    "SampleAggregate, median of LinearRegression": (
        "r2", ANY, None,
        lambda t, b: scaled(
            t,
            SampleAggregate(
                LinearRegression(), aggregator="median", bounds=(-largest_target(t), largest_target(t)),
                expected_n=2000, **b,
            ),
        ),
    ),
    "ExpMechERM, log_loss": (
        "accuracy", PURE, for_exact_sampling, lambda t, b: scaled(t, ExpMechERM(**b, **normed(t), **labels(t))),
    ),
    "ExpMechERM, absolute_error": (
        "r2", PURE, for_exact_sampling,
        lambda t, b: scaled(t, ExpMechERM("absolute_error", **b, **normed(t), bounds_y=t.target_bounds)),
    ),
    "HistogramClassifier": (
        "accuracy", ANY, few_columns,
        lambda t, b: HistogramClassifier(**b, **bounded(t), **labels(t), expected_n=2000),
    ),
    "HistogramClassifier, n_bins=4": (
        "accuracy", ANY, few_columns, lambda t, b: HistogramClassifier(**b, **bounded(t), **labels(t), n_bins=4),
    ),
    "HistogramRegressor": (
        "r2", ANY, few_columns,
        lambda t, b: HistogramRegressor(**b, **bounded(t), bounds_y=t.target_bounds, expected_n=2000),
    ),
    "DPKMeans": ("inertia", ANY, None, lambda t, b: DPKMeans(3, **b, **bounded(t))),
    "SampleAggKMeans": ("inertia", ANY, None, lambda t, b: SampleAggKMeans(3, **b, **bounded(t))),
    "DPPCA": ("explained", ANY, None, lambda t, b: scaled(t, DPPCA(2, **b, **normed(t)))),
    "ExpMechPCA": ("explained", ANY, None, lambda t, b: scaled(t, ExpMechPCA(2, **b, **normed(t)))),
    "DPStandardScaler": (
        "accuracy", ANY, None,
        lambda t, b: make_pipeline(DPStandardScaler(**b, **bounded(t)), LogisticRegression(max_iter=300)),
    ),
    "DPQuantileBinner": (
        "accuracy", ANY, None,
        lambda t, b: make_pipeline(DPQuantileBinner(**b, **bounded(t)), LogisticRegression(max_iter=300)),
    ),
}  # fmt: skip


def tables():
    """Yield names and tables. Two thirds of the rows are for training, or 200 rows of a small table."""
    for kind in KINDS:
        # The generator divides the number of rows by 25.
        yield kind, difficult(kind, 25 * (FEW + 2000) if kind == "few_rows" else N_ROWS)
    for number in range(8):
        table = made_up(number)
        yield f"made up, {table.kind}", table


def score(kind, model, table):
    """Fit, and return the score on rows for testing, and the score of the model that ignores the features."""
    n = n_train(table)
    X, X_test = np.clip(table.X[:n], *table.bounds), np.clip(table.X[n:], *table.bounds)
    y, y_test, target = table.y[:n], table.y[n:], np.clip(table.target, *table.target_bounds)
    if kind == "accuracy":
        last = model[-1] if isinstance(model, Pipeline) else model
        if isinstance(last, LogisticRegression) and len(set(y)) == 1:
            # It needs two classes.
            return math.nan, math.nan
        accuracy = np.mean(model.fit(X, y).predict(X_test) == y_test)
        return float(accuracy), float(np.mean(y_test == np.bincount(y).argmax()))
    if kind == "r2":
        width = table.target_bounds[1] - table.target_bounds[0]
        spread = max(target[n:].var(), (0.01 * width) ** 2)
        errors = (target[n:] - model.fit(X, target[:n]).predict(X_test)) ** 2
        return 1 - float(errors.mean()) / spread, 1 - float(np.mean((target[n:] - target[:n].mean()) ** 2)) / spread
    if kind == "inertia":
        width = table.bounds[1] - table.bounds[0]
        lone = max(float(np.mean(np.sum((X_test - X.mean(axis=0)) ** 2, axis=1))), (0.01 * width) ** 2 * X.shape[1])
        centres = model.fit(X).cluster_centers_
        return 1 - float(np.mean(np.min(np.sum((X_test[:, None] - centres) ** 2, axis=2), axis=1))) / lone, 0.0
    n_components = min(2, X.shape[1])
    if n_components < 2:
        return math.nan, math.nan
    model.fit(X)
    return explained(model[-1], model[:-1].transform(X_test), n_components), n_components / X.shape[1]


def fit(names, draws, only=None):
    for name in names:
        new = []
        kind, deltas, accepts, make = CASES[name]
        start = time.perf_counter()
        for title, table in tables():
            if (accepts is not None and not accepts(table)) or (only and title not in only):
                continue
            for delta in deltas:
                line = []
                for epsilon in EPSILONS:
                    gaps = []
                    for draw in range(draws):
                        model = make(table, {"epsilon": epsilon, "delta": delta, "random_state": draw})
                        value, constant = score(kind, model, table)
                        if not math.isnan(constant):
                            new.append(
                                dict(estimator=name, table=title, delta=delta, epsilon=epsilon, draw=draw,
                                     score=round(value, 4), constant=round(constant, 4))
                            )  # fmt: skip
                        gaps.append(value - constant)
                    line.append(float(np.mean(gaps)))
                print(f"{name:32} {title:24} {delta:6} " + " ".join(f"{gap:7.3f}" for gap in line), flush=True)
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
        replaced = {(row["estimator"], row["table"]) for row in new}
        write([row for row in read() if (row["estimator"], row["table"]) not in replaced] + new)


def read():
    if not RESULTS.exists():
        return []
    with RESULTS.open(newline="") as file:
        return list(csv.DictReader(file))


def write(rows):
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def report(rows):
    """Return lines of a table: the worst gap of each estimator at each epsilon, and the worst loss as epsilon grows."""
    gaps = defaultdict(list)
    for row in rows:
        key = row["estimator"], (row["table"], float(row["delta"])), float(row["epsilon"])
        gaps[key].append(float(row["score"]) - float(row["constant"]))
    means = {key: float(np.mean(values)) for key, values in gaps.items()}
    cells = [
        [
            "Estimator",
            "tables",
            *(f"epsilon={epsilon:g}" for epsilon in EPSILONS),
            "worst at 1",
            "loss as epsilon grows",
        ]
    ]
    for name in sorted({key[0] for key in means}):
        series = sorted({key[1] for key in means if key[0] == name})
        lines = np.array([[means[name, one, epsilon] for epsilon in EPSILONS] for one in series])
        loss = (np.maximum.accumulate(lines, axis=1) - lines).max()
        worst = series[int(lines[:, EPSILONS.index(1.0)].argmin())][0]
        n_tables = len({title for title, _ in series})
        cells.append([name, str(n_tables), *(f"{gap:.3f}" for gap in lines.min(axis=0)), worst, f"{loss:.3f}"])
    out = [".. list-table::", "   :header-rows: 1", ""]
    for row in cells:
        out += [("   * - " if i == 0 else "     - ") + cell for i, cell in enumerate(row)]
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["fit", "report"])
    parser.add_argument("--estimators", nargs="+", choices=list(CASES), default=list(CASES), metavar="NAME")
    parser.add_argument("--tables", nargs="+", metavar="NAME", help="only these tables")
    parser.add_argument("--draws", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.task == "report":
        REPORT.write_text(report(read()))
        return
    warnings.simplefilter("ignore")
    fit(arguments.estimators, arguments.draws, arguments.tables)


if __name__ == "__main__":
    main()
