"""Measure synthetic tables: errors of marginals, and models that are trained on synthetic and tested on real rows.

    python examples/benchmarks/harness/bench_synthetic.py
    python examples/benchmarks/harness/bench_synthetic.py --tables nursery --methods skdp --epsilon 1 --splits 1
    python examples/benchmarks/harness/bench_synthetic.py --mbi CHECKOUT --python mbi=/path/to/python

Each method gets the training rows of a split, a schema and a budget. Results are added to
docs/benchmarks/synthetic.csv, one row for each score of a fit. What is there is not fitted again. Tables that are not
at hand are left out. The mechanisms of mbi are left out unless CHECKOUT is its repository (see synthetic_mbi.py). They
get columns of numbers in 32 bins of the schema, because they need codes.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from itertools import combinations
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import environments
import numpy as np
import results
import tables
from methods import Cell
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.preprocessing import StandardScaler
from tasks import find, split
from worker import version_of

from skdp import Category, DPAdditiveClassifier, DPAdditiveRegressor, DPTableGenerator, Number, Schema
from skdp.datasets._adult import _CATEGORIES
from skdp.schema.declared import cells_of, edges_of, read_cells
from skdp.schema.entries import read_column

TABLES = ("compas", "nursery", "hpc", "adult", "bank", "default", "bike", "diamonds")
EPSILONS = (0.1, 1.0, 3.0)
DELTA = 1e-9

#: Public bins of a column of numbers, for errors of marginals and for peers.
BINS = 32

#: Number of tables of three columns whose errors are measured.
TRIPLES = 60

#: Labels with fewer test rows do not count in the AUC.
FEWEST = 20

TARGET = "target"

#: The commit of mbi whose mechanisms were measured.
VERSIONS = {"mbi": "1.0.0+4d2b3c5"}


@dataclass(frozen=True)
class Method:
    """One way to a table or to scores."""

    library: str
    name: str
    run: object  # From a method's own name, training rows, schema, epsilon and seed to rows, or to a fitted model.
    parameters: dict = field(default_factory=dict)
    is_private: bool = True

    @property
    def key(self):
        return f"{self.library}/{self.name}"


@cache
def table(name):
    """Return a table with its target, and its schema."""
    if name == "adult":
        return _adult()
    task = tables.task(name)
    rows = task.records.table.copy()
    rows[TARGET] = task.as_in_table(task.records.y)
    # No target is missing, so that a synthetic one must not be either.
    refused = dict.fromkeys(("missing", "other") if isinstance(task.schema.target, Category) else ("missing",), "error")
    target = replace(task.schema.target, **refused)
    return rows, Schema(dict(task.schema.items()), target={TARGET: target})


def _adult():
    """Return all 15 columns of Adult, with its missing entries."""
    import pandas as pd

    rows = []
    for name in ("adult.data.gz", "adult.test.gz"):
        with gzip.open(find(name), "rt") as file:
            rows += [[entry.strip() for entry in row] for row in csv.reader(file) if len(row) == 15]
    numbers = {
        "age": Number(17, 90, step=1),
        "fnlwgt": Number(10_000, 1_500_000, step=1, scale="log"),
        "education_num": Number(1, 16, step=1),
        "capital_gain": Number(0, 99_999, step=1, scale="log"),
        "capital_loss": Number(0, 4356, step=1, scale="log"),
        "hours_per_week": Number(1, 99, step=1),
    }
    order = "age work_class fnlwgt education education_num marital_status occupation relationship race sex "
    order += "capital_gain capital_loss hours_per_week native_country"
    found = pd.DataFrame([row for row in rows if row[0].isdigit()], columns=[*order.split(), TARGET])
    found = found.replace("?", None).astype(dict.fromkeys(numbers, int))
    found[TARGET] = found[TARGET].str.rstrip(".")
    columns = {
        name: numbers[name] if name in numbers else Category(_CATEGORIES[name], other="missing")
        for name in order.split()
    }
    return found, Schema(columns, target={TARGET: Category(["<=50K", ">50K"], other="error", missing="error")})


# --- cells ------------------------------------------------------------------------------------------------------------


def columns_of(schema):
    """Return the columns of a schema, with the target as the last one."""
    return {**schema, TARGET: schema.target}


def size_of(column):
    """Return the number of cells of a column: 32 bins or the categories, and a cell of missing entries."""
    return len(edges_of(column, BINS)) if isinstance(column, Number) else len(cells_of(column))


def codes_of(schema, rows):
    """Return the cells of the entries of a table, of shape (n_columns, n_rows)."""
    codes = []
    for name, column in columns_of(schema).items():
        entries = read_column(rows[name], name)
        if isinstance(column, Number):
            numbers = entries.as_numbers()
            edges = edges_of(column, BINS)
            code = np.searchsorted(edges[1:-1], np.nan_to_num(numbers), side="right")
            codes.append(np.where(np.isnan(numbers), len(edges) - 1, code))
        else:
            codes.append(read_cells(column, entries))
    return np.stack(codes).astype(np.int64)


def rows_of(schema, codes, rng):
    """Return a table of cells: numbers are uniform in their bins."""
    import pandas as pd

    out = {}
    for (name, column), code in zip(columns_of(schema).items(), codes, strict=True):
        if isinstance(column, Number):
            edges = edges_of(column, BINS)
            bins = np.minimum(code, len(edges) - 2)
            numbers = edges[bins] + (edges[bins + 1] - edges[bins]) * rng.random(len(bins))
            if column.step is not None:
                numbers = column.low + np.rint((numbers - column.low) / column.step) * column.step
            out[name] = np.where(code == len(edges) - 1, np.nan, np.clip(numbers, column.low, column.high))
        else:
            listed = np.array([*column.values, *[None] * (size_of(column) - len(column.values))], dtype=object)
            out[name] = listed[code]
    return pd.DataFrame(out)


# --- scores -----------------------------------------------------------------------------------------------------------


def marginal_errors(schema, real, synthetic):
    """Return mean total variation distances of tables of one, two and three columns."""
    sizes = [size_of(column) for column in columns_of(schema).values()]
    codes = codes_of(schema, real), codes_of(schema, synthetic)
    triples = list(combinations(range(len(sizes)), 3))
    order = np.random.default_rng(0).permutation(len(triples))[:TRIPLES]
    subsets = {1: [(j,) for j in range(len(sizes))], 2: list(combinations(range(len(sizes)), 2))}
    subsets[3] = [triples[i] for i in order]

    def distance(subset):
        shape = tuple(sizes[j] for j in subset)
        shares = []
        for one in codes:
            cells = np.ravel_multi_index(tuple(one[j] for j in subset), shape)
            shares.append(np.bincount(cells, minlength=math.prod(shape)) / one.shape[1])
        return 0.5 * np.abs(shares[0] - shares[1]).sum()

    return {f"tv{k}": float(np.mean([distance(subset) for subset in chosen])) for k, chosen in subsets.items()}


def design(schema, rows, linear):
    """Return features: numbers on their scales, and categories as codes or, for a linear model, one-hot."""
    blocks = []
    for name, column in schema.items():
        entries = read_column(rows[name], name)
        if isinstance(column, Number):
            blocks.append(tables.unit(column, entries.as_numbers())[:, None])
        else:
            code = read_cells(column, entries)
            blocks.append(np.eye(len(cells_of(column)))[code] if linear else code[:, None].astype(float))
    return np.hstack(blocks)


def outcomes(schema, rows):
    """Return the target as codes or as numbers within their bounds."""
    target = schema.target
    if isinstance(target, Number):
        return np.clip(rows[TARGET].to_numpy(float), target.low, target.high)
    return read_cells(target, read_column(rows[TARGET], TARGET))


def auc(y, labels, probabilities, n_labels):
    """Return the mean over labels of the area under the curve of one label against the rest."""
    scores = np.zeros((len(y), n_labels))
    scores[:, labels] = probabilities
    if n_labels == 2:
        return float(roc_auc_score(y == 1, scores[:, 1]))
    tested = [label for label in range(n_labels) if FEWEST <= np.sum(y == label) < len(y)]
    return float(np.mean([roc_auc_score(y == label, scores[:, label]) for label in tested]))


def model_scores(schema, synthetic, test):
    """Return scores on real rows of boosting and of a linear model that are trained on synthetic rows."""
    y, y_test, out = outcomes(schema, synthetic), outcomes(schema, test), {}
    is_number = isinstance(schema.target, Number)
    categorical = [j for j, column in enumerate(schema.values()) if not isinstance(column, Number)]
    boosting = {"max_iter": 60, "max_leaf_nodes": 15, "min_samples_leaf": 40, "early_stopping": False}
    boosting |= {"random_state": 0, "categorical_features": categorical}
    for name in ("boosting", "linear"):
        linear = name == "linear"
        X, X_test = design(schema, synthetic, linear), design(schema, test, linear)
        if linear:
            scaler = StandardScaler().fit(X)
            X, X_test = scaler.transform(X), scaler.transform(X_test)
        if is_number:
            model = Ridge(alpha=1.0) if linear else HistGradientBoostingRegressor(**boosting)
            predicted = np.clip(model.fit(X, y).predict(X_test), schema.target.low, schema.target.high)
            out[name] = float(r2_score(y_test, predicted))
        elif len(np.unique(y)) < 2:
            out[name] = 0.5
        else:
            model = LogisticRegression(C=0.1, max_iter=200) if linear else HistGradientBoostingClassifier(**boosting)
            model.fit(X, y)
            out[name] = auc(y_test, model.classes_, model.predict_proba(X_test), len(schema.target.values))
    return out


# --- methods ----------------------------------------------------------------------------------------------------------


def generated(method, train, schema, epsilon, seed, options):
    model = DPTableGenerator(schema=schema, epsilon=epsilon, delta=DELTA, random_state=seed, **method.parameters)
    model.fit(train)
    return model.sample(len(train), random_state=seed)


def real(method, train, schema, epsilon, seed, options):
    return train


def direct(method, train, schema, epsilon, seed, options):
    kind = DPAdditiveRegressor if isinstance(schema.target, Number) else DPAdditiveClassifier
    return kind(schema=schema, epsilon=epsilon, delta=DELTA, random_state=seed).fit(
        train.drop(columns=TARGET), train[TARGET]
    )


def of_mbi(method, train, schema, epsilon, seed, options):
    """Run a mechanism of mbi in its environment, and return its rows, and its seconds and its megabytes."""
    sizes = [size_of(column) for column in columns_of(schema).values()]
    given = {"epsilon": epsilon, "delta": DELTA, "seed": seed, **method.parameters}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "train.npz"), Path(folder, "synthetic.npz")
        np.savez(source, codes=codes_of(schema, train), sizes=sizes)
        command = [options.peer, environments.HERE / "synthetic_mbi.py", options.mbi, method.name.split("(")[0]]
        one_thread = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        environment = environments.variables() | {"XLA_FLAGS": one_thread}
        del environment["PYTHONPATH"]
        subprocess.run(
            [*map(str, command), json.dumps(given), str(source), str(target)],
            check=True,
            timeout=options.limit,
            env=environment,
            capture_output=True,
        )
        with np.load(target) as found:
            rows = rows_of(schema, found["codes"], np.random.default_rng(seed))
            return rows, float(found["seconds"]), float(found["memory"])


METHODS = (
    Method("scikit-learn", "real rows", real, is_private=False),
    Method("skdp", "DPTableGenerator", generated),
    Method("skdp", "DPTableGenerator(independent)", generated, {"structure": "independent"}),
    Method("skdp", "DPAdditive", direct),
    Method("mbi", "MST", of_mbi),
    Method("mbi", "AIM(max_model_size=1)", of_mbi, {"max_model_size": 1}),
    Method("mbi", "AIM", of_mbi),
)


def measure(method, name, epsilon, seed, options):
    """Fit a method to a split of a table, and return its scores, its seconds of a processor, and what happened."""
    rows, schema = table(name)
    train, test = (rows.iloc[part].reset_index(drop=True) for part in split(len(rows), seed))
    start = time.process_time()
    try:
        found = method.run(method, train, schema, epsilon, seed, options)
    except subprocess.TimeoutExpired:
        return {}, None, f"timeout: no table in {options.limit:g} s"
    except subprocess.CalledProcessError as error:
        return {}, None, f"fails: {error.stderr.decode().strip().splitlines()[-1][:200]}"
    seconds = time.process_time() - start
    if method.run is direct:
        y, X = outcomes(schema, test), test.drop(columns=TARGET)
        if isinstance(schema.target, Number):
            score = float(r2_score(y, found.predict(X)))
        else:
            labels = [schema.target.values.index(label) for label in found.classes_.tolist()]
            score = auc(y, labels, found.predict_proba(X), len(schema.target.values))
        return {"direct": score}, seconds, "ok"
    scores = {}
    if isinstance(found, tuple):
        found, seconds, scores["memory"] = found
    if method.is_private:
        scores |= marginal_errors(schema, train, found)
    if method.parameters.get("structure") != "independent":
        scores |= model_scores(schema, found, test)
    return scores, seconds, "ok"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", metavar="NAME", default=TABLES)
    parser.add_argument("--methods", nargs="+", metavar="PATTERN", default=["*"], help="such as skdp/* or mbi/MST")
    parser.add_argument("--epsilon", nargs="+", type=float, default=EPSILONS, help="in the order of the fits")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--limit", type=float, default=4 * 3600.0, help="seconds that a fit of mbi may take")
    parser.add_argument("--mbi", metavar="CHECKOUT", help="the repository of mbi, with the folders src and mechanisms")
    parser.add_argument("--python", metavar="mbi=PATH", help="a Python for mbi")
    parser.add_argument("--redo", action="store_true", help="forget what the chosen methods have, and fit again")
    parser.add_argument("--results", type=Path, default=results.FOLDER / "synthetic.csv")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    chosen = [m for m in METHODS if any(fnmatchcase(text, p) for text in (m.library, m.key) for p in options.methods)]
    if any(method.run is of_mbi for method in chosen):
        if options.mbi is None:
            print("left out: mbi, because --mbi does not name its repository", flush=True)
            chosen = [method for method in chosen if method.run is not of_mbi]
        else:
            given = dict([options.python.split("=", 1)]) if options.python else None
            options.peer = environments.python_of("mbi", given)
    rows = results.read(options.results)
    if options.redo:
        keys = {(method.library, method.name) for method in chosen}
        rows = [row for row in rows if (row["library"], row["method"]) not in keys or row["task"] not in options.tables]
        results.write(options.results, map(results.text_of, rows))
    done = {results.cell_of(row) for row in rows}
    at_hand = []
    for name in options.tables:
        try:
            table(name)
            at_hand.append(name)
        except (FileNotFoundError, ImportError) as error:
            print(f"left out: {name}: {error}", flush=True)
    for seed in range(options.splits):
        for epsilon in options.epsilon:
            for name in at_hand:
                for method in chosen:
                    budget = (epsilon, DELTA) if method.is_private else (math.inf, 0.0)
                    cell = Cell(name, method.library, method.name, *budget, split=seed, draw=0)
                    if cell in done:
                        continue
                    done.add(cell)
                    metrics, seconds, status = measure(method, name, epsilon, seed, options)
                    answer = {
                        "version": VERSIONS.get(method.library) or version_of(method.library),
                        "metrics": metrics,
                        "seconds": seconds,
                    }
                    answer |= {"spent": epsilon if method.is_private else None, "status": status}
                    results.write(options.results, results.rows_of(cell, answer), append=True)
                    shown = " ".join(f"{key} {value:.4f}" for key, value in metrics.items())
                    print(f"{name} {method.key} {epsilon:g} {seed}: {shown} {seconds} {status}", flush=True)


if __name__ == "__main__":
    main()
