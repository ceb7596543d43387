"""The tasks of the benchmark: data sets, splits and public preprocessing, which are the same for every library.

No number is chosen by looking at the records. Bounds, lists of categories and norms are constants from the
documentation of the data sets. The files of Adult, California housing and Nursery are in the folder that ``SKDP_DATA``
names.

A task has several views of its rows. Each method names its view:

``unit``
    Numbers in [0, 1], categories one-hot.
``norm``
    As ``unit``, clipped to a public norm and divided by it. No row has a norm above 1, and entries are in
    [0, ``upper``].
``centred``
    Numbers in [-1, 1], divided by the root of their number. No row has a norm above 1. Only without categories.
``ordinal``
    Numbers and codes of categories, both in [0, 1].
``columns``
    Numbers in [0, 1], and codes 0, 1, ... of categories.
``table``
    Numbers in their units, and text. Only for Adult.
"""

from __future__ import annotations

import csv
import gzip
import math
import os
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import ClassVar

import numpy as np

EPSILONS = (0.1, 0.5, 1.0, 3.0, 10.0)
DELTA = 1e-5
N_SPLITS = 5
N_DRAWS = 3
TRAIN_SHARE = 0.8

HOUSING_LOWER = (-124.5, 32.5, 1, 0, 0, 0, 0, 0)
HOUSING_UPPER = (-114, 42, 52, 40_000, 6_500, 36_000, 6_100, 15.01)
HOUSING_MOST = 500_001

NURSERY = (
    "usual pretentious great_pret",
    "proper less_proper improper critical very_crit",
    "complete completed incomplete foster",
    "1 2 3 more",
    "convenient less_conv critical",
    "convenient inconv",
    "nonprob slightly_prob problematic",
    "recommended priority not_recom",
)
NURSERY_CLASSES = "not_recom recommend very_recom priority spec_prior"

# Least and largest values in scikit-learn's description of the data set: means, standard errors, worst.
CANCER_LOWER = (
    *(6.981, 9.71, 43.79, 143.5, 0.053, 0.019, 0, 0, 0.106, 0.05),
    *(0.112, 0.36, 0.757, 6.802, 0.002, 0.002, 0, 0, 0.008, 0.001),
    *(7.93, 12.02, 50.41, 185.2, 0.071, 0.027, 0, 0, 0.156, 0.055),
)
CANCER_UPPER = (
    *(28.11, 39.28, 188.5, 2501, 0.163, 0.345, 0.427, 0.201, 0.304, 0.097),
    *(2.873, 4.885, 21.98, 542.2, 0.031, 0.135, 0.396, 0.053, 0.079, 0.03),
    *(36.04, 49.54, 251.2, 4254, 0.223, 1.058, 1.252, 0.291, 0.664, 0.208),
)

# Rows of digits (64 pixels) and of breast cancer (30 numbers) are clipped to these.
DIGITS_NORM = 5.0
CANCER_NORM = 3.0


@dataclass
class Data:
    """The rows of one data set, and the public facts about them."""

    unit: np.ndarray
    norm: float  # rows of `unit` are clipped to this
    y: np.ndarray | None = None
    codes: np.ndarray | None = None  # categories, after the numbers
    numbers: np.ndarray | None = None
    sizes: tuple[int, ...] = ()
    table: np.ndarray | None = None

    def view(self, name):
        """Return the rows in a view."""
        if name == "table":
            return self.table
        if name == "unit":
            return self.unit
        if name == "norm":
            lengths = np.linalg.norm(self.unit, axis=1, keepdims=True)
            return self.unit / np.maximum(lengths, self.norm)
        if name == "centred":
            return (2 * self.unit - 1) / math.sqrt(self.unit.shape[1])
        numbers = self.unit if self.codes is None else self.numbers
        if self.codes is None:
            return numbers
        return np.column_stack([numbers, self.codes / (np.array(self.sizes) - 1 if name == "ordinal" else 1)])


@dataclass(frozen=True)
class Task:
    """A prediction task on one data set."""

    name: str
    kind: str  # classification, regression, clustering, components or scaling
    data: str
    metrics: tuple[str, ...]
    n_classes: int = 0
    parameters: dict = field(default_factory=dict)
    # What is public about the rows.
    n_numbers: int = 0
    sizes: tuple[int, ...] = ()  # numbers of categories
    upper: float = 1.0  # of an entry of the view `norm`
    suite: ClassVar[str] = "peers"

    def split(self, n_rows, seed):
        """Return the row numbers of a training and a test part."""
        return split(n_rows, seed)

    @property
    def classes(self):
        """The labels."""
        return list(range(self.n_classes))

    @property
    def categorical(self):
        """Which columns of the view `columns` are categories."""
        return list(range(self.n_numbers, self.n_numbers + len(self.sizes)))

    @property
    def n_columns(self):
        """Number of columns of the view `columns`."""
        return self.n_numbers + len(self.sizes)

    def load(self):
        """Return rows and target. A binary task from several classes is one class against the rest."""
        data = _load(self.data)
        y = data.y
        if "positive" in self.parameters:
            y = (y == self.parameters["positive"]).astype(int)
        return data, y


def find(name, variable="SKDP_DATA", shared="data"):
    """Return the path of a data file."""
    folders = [os.environ.get(variable) or ".", Path("..", "shared", shared)]
    path = next((p for p in (Path(folder, name) for folder in folders) if p.exists()), None)
    if path is None:
        raise FileNotFoundError(f"{name} is not at hand: the environment variable {variable} is to name its folder")
    return path


def one_hot(codes, sizes):
    """Return indicators of categories."""
    return np.hstack([codes[:, [j]] == np.arange(size) for j, size in enumerate(sizes)]).astype(float)


def scaled(X, lower, upper):
    """Return numbers in [0, 1] by public bounds."""
    lower, upper = np.array(lower, float), np.array(upper, float)
    return (np.clip(X, lower, upper) - lower) / (upper - lower)


@cache
def _load(name):
    return _LOADERS[name]()


def _adult():
    from skdp.datasets import load_adult

    adult = load_adult()
    unit = adult.data * math.sqrt(13)
    columns = [n.split("=")[0] for n in adult.feature_names[5:]]
    names = list(dict.fromkeys(columns))
    codes = np.column_stack([unit[:, 5:][:, np.array(columns) == name].argmax(axis=1) for name in names])
    sizes = tuple(columns.count(name) for name in names)
    table = np.column_stack([adult.table[name].astype(object) for name in adult.schema])
    return Data(unit, math.sqrt(13), adult.target, codes, unit[:, :5], sizes, table)


def _housing(log):
    with gzip.open(find("cal_housing.data.gz"), "rt") as file:
        table = np.loadtxt(file, delimiter=",")
    lower, upper = np.array(HOUSING_LOWER, float), np.array(HOUSING_UPPER, float)
    X = np.clip(table[:, :8], lower, upper)
    if log:  # totals and incomes
        X, lower, upper = (np.concatenate([a[..., :3], np.log1p(a[..., 3:])], axis=-1) for a in (X, lower, upper))
    return Data(scaled(X, lower, upper), math.sqrt(8), np.clip(table[:, 8], 0, HOUSING_MOST) / HOUSING_MOST)


def _nursery():
    codes = [{name: i for i, name in enumerate(names.split())} for names in (*NURSERY, NURSERY_CLASSES)]
    with gzip.open(find("nursery.data.gz"), "rt", newline="") as file:
        rows = [row for row in csv.reader(file) if len(row) == 9]
    # A file may have a line of names.
    rows = [row for row in rows if row[8] in codes[8]]
    table = np.array([[code[value] for code, value in zip(codes, row, strict=True)] for row in rows])
    sizes = tuple(len(names.split()) for names in NURSERY)
    X = table[:, :8]
    return Data(one_hot(X, sizes), math.sqrt(8), table[:, 8], X, np.empty((len(X), 0)), sizes)


def _digits():
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return Data(np.clip(X, 0, 16) / 16, DIGITS_NORM, y)


def _cancer():
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    return Data(scaled(X, CANCER_LOWER, CANCER_UPPER), CANCER_NORM, y)


def _mixture(n_columns, n_rows=50_000, n_clusters=10, deviation=0.03):
    rng = np.random.default_rng(0)
    centres = rng.uniform(0.1, 0.9, (n_clusters, n_columns))
    X = centres[rng.integers(n_clusters, size=n_rows)]
    return Data(np.clip(X + deviation * rng.standard_normal(X.shape), 0, 1), math.sqrt(n_columns))


_LOADERS = {
    "adult": _adult,
    "housing": lambda: _housing(log=False),
    "housing-log": lambda: _housing(log=True),
    "nursery": _nursery,
    "digits": _digits,
    "cancer": _cancer,
    "mixture-2d": lambda: _mixture(2),
    "mixture-10d": lambda: _mixture(10),
}

_ADULT = {"n_numbers": 5, "sizes": (8, 16, 7, 14, 6, 5, 2, 41), "upper": 1 / math.sqrt(13)}
_NURSERY = {"sizes": tuple(len(names.split()) for names in NURSERY), "upper": 1 / math.sqrt(8)}
_HOUSING = {"n_numbers": 8, "upper": 1 / math.sqrt(8)}
_DIGITS = {"n_numbers": 64, "upper": 1 / DIGITS_NORM}
_CANCER = {"n_numbers": 30, "upper": 1 / CANCER_NORM}
_CLASSIFICATION = ("accuracy", "auc", "log_loss")

TASKS = {
    task.name: task
    for task in (
        Task("adult", "classification", "adult", _CLASSIFICATION, 2, **_ADULT),
        Task("nursery", "classification", "nursery", _CLASSIFICATION, 5, **_NURSERY),
        # For methods that take two classes only: class spec_prior against the others.
        Task("nursery-binary", "classification", "nursery", _CLASSIFICATION, 2, {"positive": 4}, **_NURSERY),
        Task("digits", "classification", "digits", _CLASSIFICATION, 10, **_DIGITS),
        Task("cancer", "classification", "cancer", _CLASSIFICATION, 2, **_CANCER),
        Task("housing", "regression", "housing", ("r2",), **_HOUSING),
        Task("housing-log", "regression", "housing-log", ("r2",), **_HOUSING),
        *(
            Task(f"clusters-{data}", "clustering", data, ("inertia",), parameters={"k": 10}, n_numbers=n)
            for data, n in (("mixture-2d", 2), ("mixture-10d", 10), ("housing", 8), ("digits", 64))
        ),
        *(
            Task(f"components-{data}-{k}", "components", data, ("captured",), parameters={"k": k}, **public)
            for data, public in (("adult", _ADULT), ("digits", _DIGITS), ("cancer", _CANCER))
            for k in (2, 10)
        ),
        *(
            Task(f"scaling-{data}", "scaling", data, ("mean_error", "scale_error"), n_numbers=n)
            for data, n in (("housing", 8), ("cancer", 30))
        ),
    )
}


def split(n_rows, seed):
    """Return the row numbers of a training and a test part."""
    order = np.random.default_rng(seed).permutation(n_rows)
    return np.split(order, [round(TRAIN_SHARE * n_rows)])
