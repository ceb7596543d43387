"""Pairs of models that are timed against each other. Both run in one process, so that they meet the same load."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tasks import DELTA

ROWS = (10_000, 100_000, 1_000_000, 10_000_000)
COLUMNS = (10, 100, 1000)
#: Columns where the rows vary, and rows where the columns do.
BASE_COLUMNS = 20
BASE_ROWS = 10_000
#: Rows and columns of the comparison of one thread with two, and of memory.
THREADS_SHAPE = (100_000, 100)
MEMORY_SHAPE = (1_000_000, BASE_COLUMNS)
#: Rows that are predicted.
PREDICTED = 100_000

CLASSES = [0, 1]


@dataclass(frozen=True)
class Case:
    """A model of skdp and a counterpart: `ours(n_rows, n_columns)` and `other(n_rows, n_columns)` return estimators."""

    environment: str
    model: str
    library: str  # of the counterpart
    counterpart: str
    target: str  # labels, numbers or none
    ours: Callable[[int, int], Any]
    other: Callable[[int, int], Any]
    most_rows: int = ROWS[-1]
    most_columns: int = COLUMNS[-1]
    threads: bool = False

    @property
    def name(self):
        """Both names."""
        return f"{self.model} / {self.library} {self.counterpart}"


def public(n_columns):
    """Return the side of a cube in which no row has a norm above 1. The rows are uniform in this cube."""
    return 1 / math.sqrt(n_columns)


def make_rows(n_rows, n_columns, fill):
    """Call `fill(first, rows)` with small blocks of rows, which are freed at once: ten clusters in the cube."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(0.1, 0.9, (10, n_columns))
    block = max(100, 200_000 // n_columns)
    for first in range(0, n_rows, block):
        size = min(block, n_rows - first)
        rows = centres[rng.integers(10, size=size)] + 0.1 * rng.standard_normal((size, n_columns))
        fill(first, np.clip(rows, 0, 1) * public(n_columns))


def make_target(X, kind):
    """Return labels, or numbers in [0, 1], that depend on the rows, in blocks."""
    rng = np.random.default_rng(1)
    weights = rng.standard_normal(X.shape[1])
    y = np.empty(len(X))
    for first in range(0, len(X), 10_000):
        part = np.asarray(X[first : first + 10_000])
        y[first : first + 10_000] = (part / public(X.shape[1]) - 0.5) @ weights
    y = y / np.std(y[:100_000]) + rng.logistic(scale=0.5, size=len(y))
    return (y > 0).astype(int) if kind == "labels" else np.clip(0.5 + y / 8, 0, 1)


def skdp(name, in_cube=False, **parameters):
    """Return an estimator of skdp at epsilon 1, with or without the bounds of the cube."""

    def make(n_rows, n_columns):
        import skdp as library

        given = {"bounds": (0, public(n_columns))} if in_cube else {}
        return getattr(library, name)(**given, **parameters)

    return make


def sklearn(module, name, **parameters):
    """Return an estimator of scikit-learn."""

    def make(n_rows, n_columns):
        from importlib import import_module

        return getattr(import_module(f"sklearn.{module}"), name)(**parameters)

    return make


def diffprivlib(name, *parameters, bounds=None, **named):
    """Return a model of diffprivlib at epsilon 1."""

    def make(n_rows, n_columns):
        from diffprivlib import models

        given = {} if bounds is None else {bounds: (0, public(n_columns))}
        return getattr(models, name)(*parameters, **given, **named)

    return make


def interpret(name, **parameters):
    """Return a DP-EBM at epsilon 1."""

    def make(n_rows, n_columns):
        from interpret import privacy

        return getattr(privacy, name)(
            delta=DELTA,
            n_jobs=1,
            feature_names=[f"x{j}" for j in range(n_columns)],
            feature_types=["continuous"] * n_columns,
            privacy_bounds={f"x{j}": (0.0, public(n_columns)) for j in range(n_columns)},
            **parameters,
        )

    return make


BATCH, EPOCHS = 1024, 5


def opacus(kind):
    """Return a model that Opacus trains for five epochs. Its noise multiplier is computed before the timing."""

    def make(n_rows, n_columns):
        from models_opacus import Trained

        return Trained(kind, 2, n_rows, 0, 1.0, DELTA, rate=1.0, batch=BATCH, epochs=EPOCHS, clip=1.0)

    return make


def same_steps(name, **parameters):
    """Return a model of skdp with the steps and batches of `opacus`. The calibration of its noise is timed."""

    def make(n_rows, n_columns):
        import skdp as library

        return getattr(library, name)(
            delta=DELTA,
            data_norm=1.0,
            classes=CLASSES,
            expected_n=n_rows,
            batch_size=min(BATCH, n_rows),
            epochs=EPOCHS,
            **parameters,
        )

    return make


LINEAR = {"data_norm": 1.0, "classes": CLASSES}
#: Bounds of the target, as interpret takes them.
TARGET = {"privacy_target_min": 0.0, "privacy_target_max": 1.0}


def cases():
    """Yield all pairs."""
    yield from _without_privacy()
    yield from _diffprivlib()
    yield from _interpret()
    yield from _opacus()


def _without_privacy():
    def case(model, other, target, ours, theirs, **options):
        return Case("skdp", model, "scikit-learn", other, target, ours, theirs, **options)

    logistic = sklearn("linear_model", "LogisticRegression")
    functional = skdp("FunctionalMechLogReg", delta=DELTA, bounds=(-1, 1), **LINEAR)
    for name in ("ObjPertLogReg", "OutputPertLogReg"):
        ours = skdp(name, delta=DELTA, **LINEAR)
        yield case(name, "LogisticRegression", "labels", ours, logistic, threads=name == "ObjPertLogReg")
    yield case(
        "DPSGDClassifier",
        "LogisticRegression",
        "labels",
        skdp("DPSGDClassifier", delta=DELTA, **LINEAR),
        logistic,
        threads=True,
    )
    yield case(
        "FunctionalMechLogReg",
        "LogisticRegression",
        "labels",
        # Bounds with a middle of 0, as rows would be clipped else.
        functional,
        logistic,
    )
    yield case(
        "DPMLPClassifier",
        "MLPClassifier",
        "labels",
        skdp("DPMLPClassifier", delta=DELTA, **LINEAR),
        sklearn("neural_network", "MLPClassifier", hidden_layer_sizes=(64,), early_stopping=True),
        most_rows=1_000_000,
        threads=True,
    )
    yield case(
        "DPNaiveBayes",
        "GaussianNB",
        "labels",
        skdp("DPNaiveBayes", True, delta=DELTA, classes=CLASSES),
        sklearn("naive_bayes", "GaussianNB"),
    )
    yield case(
        "DPRandomTree",
        "RandomForestClassifier (10 trees, depth 5)",
        "labels",
        skdp("DPRandomTree", True, delta=DELTA, classes=CLASSES),
        sklearn("ensemble", "RandomForestClassifier", n_estimators=10, max_depth=5),
    )
    yield case(
        "DPGreedyTree",
        "DecisionTreeClassifier (depth 5)",
        "labels",
        skdp("DPGreedyTree", True, delta=DELTA, classes=CLASSES),
        sklearn("tree", "DecisionTreeClassifier", max_depth=5),
    )
    yield case(
        "FunctionalMechLinReg",
        "LinearRegression",
        "numbers",
        skdp("FunctionalMechLinReg", True, bounds_y=(0, 1), delta=DELTA),
        sklearn("linear_model", "LinearRegression"),
        threads=True,
    )
    yield case(
        "DPSGDRegressor",
        "LinearRegression",
        "numbers",
        skdp("DPSGDRegressor", data_norm=1.0, bounds_y=(0, 1), delta=DELTA),
        sklearn("linear_model", "LinearRegression"),
        most_rows=1_000_000,
    )
    yield case(
        "DPKMeans",
        "KMeans (10 clusters, 1 start)",
        "none",
        skdp("DPKMeans", True, n_clusters=10, delta=DELTA),
        sklearn("cluster", "KMeans", n_clusters=10, n_init=1),
        threads=True,
    )
    for name, delta in (("DPPCA", DELTA), ("ExpMechPCA", 0.0)):
        yield case(
            name,
            "PCA (5 components)",
            "none",
            skdp(name, n_components=5, data_norm=1.0, center="private", delta=delta),
            sklearn("decomposition", "PCA", n_components=5, svd_solver="covariance_eigh"),
            threads=name == "DPPCA",
        )
    yield case(
        "DPStandardScaler",
        "StandardScaler",
        "none",
        skdp("DPStandardScaler", True),
        sklearn("preprocessing", "StandardScaler"),
    )


def _diffprivlib():
    def case(model, other, target, ours, theirs, **options):
        options.setdefault("most_rows", 1_000_000)
        options.setdefault("most_columns", 100)
        return Case("diffprivlib", model, "diffprivlib", other, target, ours, theirs, **options)

    yield case(
        "ObjPertLogReg",
        "LogisticRegression",
        "labels",
        skdp("ObjPertLogReg", **LINEAR),
        diffprivlib("LogisticRegression", data_norm=1.0),
    )
    yield case(
        "DPNaiveBayes",
        "GaussianNB",
        "labels",
        skdp("DPNaiveBayes", True, classes=CLASSES),
        diffprivlib("GaussianNB", bounds="bounds"),
    )
    yield case(
        "DPRandomTree",
        "RandomForestClassifier",
        "labels",
        skdp("DPRandomTree", True, classes=CLASSES),
        diffprivlib("RandomForestClassifier", bounds="bounds", classes=CLASSES),
    )
    yield case(
        "DPGreedyTree",
        "DecisionTreeClassifier",
        "labels",
        skdp("DPGreedyTree", True, classes=CLASSES),
        diffprivlib("DecisionTreeClassifier", bounds="bounds", classes=CLASSES),
    )
    # diffprivlib's tree draws its splits, as this one does; DPGreedyTree looks for them.
    yield case(
        "DPRandomTree (one tree)",
        "DecisionTreeClassifier",
        "labels",
        skdp("DPRandomTree", True, n_estimators=1, classes=CLASSES),
        diffprivlib("DecisionTreeClassifier", bounds="bounds", classes=CLASSES),
    )
    yield case(
        "FunctionalMechLinReg",
        "LinearRegression",
        "numbers",
        skdp("FunctionalMechLinReg", True, bounds_y=(0, 1)),
        diffprivlib("LinearRegression", bounds="bounds_X", bounds_y=(0, 1)),
    )
    yield case(
        "DPKMeans",
        "KMeans",
        "none",
        skdp("DPKMeans", True, n_clusters=10),
        diffprivlib("KMeans", 10, bounds="bounds"),
    )
    yield case(
        "ExpMechPCA",
        "PCA",
        "none",
        skdp("ExpMechPCA", n_components=5, data_norm=1.0, center="private"),
        diffprivlib("PCA", 5, data_norm=1.0, bounds="bounds"),
        most_rows=100_000,
    )
    yield case(
        "DPStandardScaler",
        "StandardScaler",
        "none",
        skdp("DPStandardScaler", True),
        diffprivlib("StandardScaler", bounds="bounds"),
    )


def _interpret():
    # Naive Bayes and linear models are additive in the columns as well.
    for model, target, theirs, named, others in (
        ("DPAdditiveClassifier", "labels", "DPExplainableBoostingClassifier", {"classes": CLASSES}, {}),
        ("DPNaiveBayes", "labels", "DPExplainableBoostingClassifier", {"classes": CLASSES}, {}),
        ("DPAdditiveRegressor", "numbers", "DPExplainableBoostingRegressor", {"bounds_y": (0, 1)}, TARGET),
        ("FunctionalMechLinReg", "numbers", "DPExplainableBoostingRegressor", {"bounds_y": (0, 1)}, TARGET),
    ):
        yield Case(
            "interpret",
            model,
            "interpret",
            theirs,
            target,
            skdp(model, True, delta=DELTA, **named),
            interpret(theirs, **others),
            most_rows=1_000_000,
            most_columns=100,
        )


def _opacus():
    for model, kind, ours in (
        ("DPSGDClassifier", "linear", same_steps("DPSGDClassifier")),
        ("DPMLPClassifier", "network", same_steps("DPMLPClassifier", hidden_layer_sizes=(32,))),
    ):
        yield Case(
            "opacus",
            f"{model} ({EPOCHS} epochs, batches of {BATCH})",
            "opacus",
            f"{kind} (same steps)",
            "labels",
            ours,
            opacus(kind),
            most_rows=100_000,
            most_columns=100,
        )
