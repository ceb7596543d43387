"""Scores and times of private estimators on tables that were not used to choose any constant of this library.

    python examples/benchmarks/held_out.py fit [--estimators DPNaiveBayes ...] [--tables fair ...]
    python examples/benchmarks/held_out.py report
    OMP_NUM_THREADS=1 python examples/benchmarks/held_out.py speed [--sizes 1000 10000 ...]

The tables are those of statsmodels, and one that is simulated from a published regression. Bounds and categories are
from the documentation of statsmodels and from general knowledge, and never from the records. ``fit`` writes a row for
each fit to ``docs/benchmarks/held_out.csv``. It replaces earlier rows of the same estimators and tables. ``report``
makes the table of the user guide, ``docs/user_guide/held_out_tables.inc``, from this file. ``speed`` needs no table.

    python -m pip install statsmodels==0.15.0 interpret-core==0.7.8
"""

import argparse
import csv
import math
import statistics
import sys
import time
import warnings
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from skdp import Category, Number, Schema
from skdp.additive import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.linear_model import FunctionalMechLinReg, ObjPertLogReg
from skdp.naive_bayes import DPNaiveBayes
from skdp.tree import DPRandomTree, DPRandomTreeRegressor

RESULTS = ROOT / "docs" / "benchmarks" / "held_out.csv"
REPORT = ROOT / "docs" / "user_guide" / "held_out_tables.inc"
EPSILONS = (0.1, 0.5, 1.0, 3.0, 10.0)
DELTA = 1e-5
N_SPLITS, TEST_PART, N_CONFIDENCES = 5, 0.2, 15
SIZES, N_COLUMNS, ROUNDS = (1000, 10_000, 100_000, 1_000_000), 10, 3
MANY = 1_000_000

YES_NO, OPINION = [0, 1], Number(1, 7, step=1)

# "Age" is that of married readers of a magazine.
FAIR = {
    "rate_marriage": Number(1, 5, step=1),
    "age": (15, 65),
    "yrs_married": (0, 40),
    "children": (0, 10),
    "religious": Number(1, 4, step=1),
    "educ": Number(9, 20, step=1),
    "occupation": [1, 2, 3, 4, 5, 6],
    "occupation_husb": [1, 2, 3, 4, 5, 6],
}
# The experiment paid a family at most some thousand dollars, and its limit on expenses was 1000 dollars.
RANDHIE = {
    "lncoins": (0.0, math.log(101)),
    "idp": YES_NO,
    "lpi": (0.0, 8.0),
    "fmde": (0.0, 9.0),
    "physlm": (0, 1),
    "disea": (0, 60),
    "hlthg": YES_NO,
    "hlthf": YES_NO,
    "hlthp": YES_NO,
}
# The population is in thousands, and no city of the United States has ten million.
ANES = {
    "logpopul": (math.log(0.1), math.log(10_000)),
    "TVnews": Number(0, 7, step=1),
    "selfLR": OPINION,
    "ClinLR": OPINION,
    "DoleLR": OPINION,
    "age": (18, 100),
    "educ": Number(1, 7, step=1),
    "income": Number(1, 24, step=1),
}
WAGE = {
    "educ": Number(0, 20, step=1),
    "exper": Number(0, 55, step=1),
    "tenure": Number(0, 50, step=1),
    "female": YES_NO,
    "married": YES_NO,
}


@dataclass
class Table:
    """Features as a data frame, labels or targets, and their public schema."""

    X: object
    y: np.ndarray
    schema: Schema
    groups: np.ndarray | None = None  # The person of each record, where persons have several.

    def splits(self):
        """Yield positions for training and testing. No person has records in both."""
        kind = ShuffleSplit if self.groups is None else GroupShuffleSplit
        return kind(N_SPLITS, test_size=TEST_PART, random_state=0).split(self.X, groups=self.groups)

    @property
    def is_regression(self):
        return isinstance(self.schema.target, Number)

    @property
    def classes(self):
        return list(self.schema.target.values)


def optional(name, use):
    """Import a package that is not a requirement of this library."""
    try:
        return import_module(name)
    except ImportError as error:
        raise SystemExit(f"The package {name.split('.')[0]} is not installed. It is needed for {use}.") from error


def from_statsmodels(name):
    """Return a table of statsmodels as a data frame."""
    return optional("statsmodels.api", f"the table {name!r}").datasets.__dict__[name].load_pandas().data


def fair():
    """Whether a married woman had an affair (Fair, 1978)."""
    data = from_statsmodels("fair")
    return Table(data[list(FAIR)], (data["affairs"] > 0).to_numpy(int), Schema(FAIR, target=Category([0, 1])))


def health(target, schema):
    """Return a table of RAND's experiment on health insurance, with a record for each person and year.

    The table does not name persons. Records of one person are adjacent, and have the same plan and state of health.
    """
    data = from_statsmodels("randhie")
    own = data[["lncoins", "idp", "lpi", "fmde", "physlm", "disea"]].to_numpy()
    persons = np.append(0, np.cumsum(np.any(own[1:] != own[:-1], axis=1)))
    return Table(data[list(RANDHIE)], target(data["mdvis"].to_numpy()), schema, persons)


def any_visit():
    """Whether a person visited a doctor in a year."""
    return health(lambda visits: (visits > 0).astype(int), Schema(RANDHIE, target=Category([0, 1])))


def visits():
    """The logarithm of 1 plus the number of visits, of which at most 20 count."""
    return health(lambda visits: np.log1p(np.clip(visits, 0, 20)), Schema(RANDHIE, target=(0.0, math.log(21))))


def vote():
    """The vote for one of two candidates in the election of 1996."""
    data = from_statsmodels("anes96")
    columns = ANES | {"PID": Number(0, 6, step=1)}
    return Table(data[list(columns)], data["vote"].to_numpy(int), Schema(columns, target=Category([0, 1])))


def party():
    """One of seven degrees of identification with a party."""
    data = from_statsmodels("anes96")
    columns = ANES | {"vote": YES_NO}
    return Table(data[list(columns)], data["PID"].to_numpy(int), Schema(columns, target=Category(list(range(7)))))


def wage(n=20_000):
    """Logarithms of hourly wages from a linear equation, with coefficients of the size that textbooks report."""
    pandas = optional("pandas", "the table 'wage'")
    rng = np.random.default_rng(714)
    educ = np.clip(np.round(rng.normal(12.6, 2.8, n)), 0, 20)
    exper = np.clip(np.round(rng.gamma(1.56, 10.9, n)), 0, 55)
    tenure = np.clip(np.round(rng.gamma(0.5, 10.2, n)), 0, exper)
    female, married = rng.random(n) < 0.479, rng.random(n) < 0.608
    y = 0.321 + 0.213 * (married & ~female) - 0.198 * (married & female) - 0.110 * (~married & female)
    y += 0.0789 * educ + 0.0268 * exper - 0.00054 * exper**2 + 0.0291 * tenure - 0.00053 * tenure**2
    X = pandas.DataFrame(dict(educ=educ, exper=exper, tenure=tenure, female=female * 1.0, married=married * 1.0))
    return Table(X, y + rng.normal(0, 0.393, n), Schema(WAGE, target=(-1.0, 4.0)))


TABLES = {"fair": fair, "any visit": any_visit, "vote": vote, "party": party, "visits": visits, "wage": wage}


class OfText:
    """DP-EBM on a table whose categories are written as text, with public bounds and categories."""

    def __init__(self, table, epsilon, delta, random_state):
        privacy = optional("interpret.privacy", "DP-EBM")
        numbers = {name: column for name, column in table.schema.items() if isinstance(column, Number)}
        self.categorical = [name for name in table.schema if name not in numbers]
        parameters = {
            "epsilon": epsilon,
            "delta": delta,
            "random_state": random_state,
            "n_jobs": 1,
            "feature_names": list(table.schema),
            "feature_types": [
                "continuous" if name in numbers else list(map(str, column.values))
                for name, column in table.schema.items()
            ],
            "privacy_bounds": {name: (float(column.low), float(column.high)) for name, column in numbers.items()},
        }
        target = table.schema.target
        if table.is_regression:
            self.model = privacy.DPExplainableBoostingRegressor(
                privacy_target_min=target.low, privacy_target_max=target.high, **parameters
            )
        else:
            self.model = privacy.DPExplainableBoostingClassifier(**parameters)

    def text(self, X):
        return X.astype(object).assign(**{name: X[name].astype(int).astype(str) for name in self.categorical})

    def fit(self, X, y):
        self.model.fit(self.text(X).to_numpy(), y)
        return self

    def predict(self, X):
        return self.model.predict(self.text(X).to_numpy())

    def predict_proba(self, X):
        return self.model.predict_proba(self.text(X).to_numpy())


def private(estimator):
    return lambda table, **budget: estimator(schema=table.schema, **budget)


def encoded(table, model):
    """Fit a model without privacy to indicators of categories and standardised numbers."""
    categorical = [name for name, column in table.schema.items() if isinstance(column, Category)]
    encoder = (OneHotEncoder(handle_unknown="ignore"), categorical)
    return make_pipeline(make_column_transformer(encoder, remainder=StandardScaler()), model)


def linear(table, **_):
    return encoded(table, LinearRegression() if table.is_regression else LogisticRegression(max_iter=1000))


def boosting(table, **_):
    return HistGradientBoostingRegressor() if table.is_regression else HistGradientBoostingClassifier()


PUBLIC = {"linear, no privacy": linear, "boosting, no privacy": boosting}
CLASSIFIERS = {
    "DPAdditiveClassifier": private(DPAdditiveClassifier),
    "DPRandomTree": private(DPRandomTree),
    "DPNaiveBayes": private(DPNaiveBayes),
    "ObjPertLogReg": private(ObjPertLogReg),
    "DP-EBM": OfText,
    **PUBLIC,
}
REGRESSORS = {
    "DPAdditiveRegressor": private(DPAdditiveRegressor),
    "DPRandomTreeRegressor": private(DPRandomTreeRegressor),
    "FunctionalMechLinReg": private(FunctionalMechLinReg),
    "DP-EBM": OfText,
    **PUBLIC,
}


def calibration_error(y, labels, probabilities):
    """Return the expected calibration error of the most probable label, over bins of equal width."""
    top = probabilities.max(axis=1)
    hits = labels[probabilities.argmax(axis=1)] == y
    cells = np.minimum((N_CONFIDENCES * top).astype(int), N_CONFIDENCES - 1)
    gaps = np.bincount(cells, hits - top, N_CONFIDENCES)
    return float(np.abs(gaps).sum() / len(y))


def scores(model, table, X, y):
    """Return scores on held-out records."""
    if table.is_regression:
        target = table.schema.target
        return {"r2": r2_score(y, np.clip(model.predict(X), target.low, target.high))}
    classes = np.array(table.classes)
    probabilities = model.predict_proba(X)
    return {
        "accuracy": accuracy_score(y, model.predict(X)),
        "auc": roc_auc_score(y, probabilities[:, 1])
        if len(classes) == 2
        else roc_auc_score(y, probabilities, multi_class="ovr"),
        "log_loss": log_loss(y, probabilities, labels=classes),
        "calibration": calibration_error(y, classes, probabilities),
    }


def fit(estimators, titles):
    for title in titles:
        table = TABLES[title]()
        for name, make in (REGRESSORS if table.is_regression else CLASSIFIERS).items():
            if name not in estimators or (name == "DP-EBM" and not table.is_regression and len(table.classes) > 2):
                continue
            start, new = time.process_time(), []
            for epsilon in EPSILONS if name not in PUBLIC else (math.inf,):
                for number, (train, test) in enumerate(table.splits()):
                    model = make(table, epsilon=epsilon, delta=DELTA, random_state=number)
                    model.fit(table.X.iloc[train], table.y[train])
                    found = scores(model, table, table.X.iloc[test], table.y[test])
                    new += [
                        dict(
                            table=title, estimator=name, epsilon=epsilon, split=number, score=kind, value=f"{value:.4f}"
                        )
                        for kind, value in found.items()
                    ]
            old = [row for row in read() if (row["table"], row["estimator"]) != (title, name)]
            write(old + new)
            print(f"{title:10} {name:22} {time.process_time() - start:6.1f} s", flush=True)
            for kind, values in summary(new)[title, name].items():
                print(f"    {kind:12}", *(f"{epsilon:g}: {value:.3f}" for epsilon, value in values.items()), flush=True)


def summary(rows):
    """Return the mean over splits, by table and estimator, then by score, then by epsilon."""
    values = defaultdict(partial(defaultdict, partial(defaultdict, list)))
    for row in rows:
        values[row["table"], row["estimator"]][row["score"]][float(row["epsilon"])].append(float(row["value"]))
    return {
        key: {kind: {one: float(np.mean(all_)) for one, all_ in found.items()} for kind, found in kinds.items()}
        for key, kinds in values.items()
    }


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
    """Return lines of a list for each table, with all scores at each epsilon, and those without privacy below."""

    def line(values):
        return " / ".join(f"{value:.3f}".replace("0.", ".", 1) for value in values)

    means, out = summary(rows), []
    for title in TABLES:
        found = {name: kinds for (one, name), kinds in means.items() if one == title}
        if not found:
            continue
        cells = [[title.capitalize(), *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)]]
        for name, kinds in found.items():
            if name not in PUBLIC:
                cells.append([name, *(line(values[one] for values in kinds.values()) for one in EPSILONS)])
        out += [".. list-table::", "   :header-rows: 1", ""]
        for row in cells:
            out += [("   * - " if i == 0 else "     - ") + cell for i, cell in enumerate(row)]
        public = [
            f"{name[: -len(', no privacy')]} {line(v[math.inf] for v in found[name].values())}" for name in PUBLIC
        ]
        out += ["", f"Without privacy: {', '.join(public)}.", ""]
    return "\n".join(out)


def made_up(n, is_regression):
    """Return records with `N_COLUMNS` uniform columns, for `speed`."""
    pandas = optional("pandas", "the table for 'speed'")
    rng = np.random.default_rng(0)
    X = rng.random((n, N_COLUMNS))
    score = 4 * X[:, 0] + 2 * np.sin(6 * X[:, 1]) - 3 * X[:, 2] ** 2 + rng.normal(size=n)
    names = [f"x{j}" for j in range(N_COLUMNS)]
    target = (-10.0, 10.0) if is_regression else Category([0, 1])
    y = score if is_regression else (score > 1).astype(int)
    return Table(pandas.DataFrame(X, columns=names), y, Schema(dict.fromkeys(names, (0.0, 1.0)), target=target))


def timed(model, table):
    """Return the wall time and the processor time of a fit."""
    wall, processor = time.perf_counter(), time.process_time()
    model.fit(table.X, table.y)
    return time.perf_counter() - wall, time.process_time() - processor


def speed(sizes, tasks):
    print(f"{N_COLUMNS} columns, epsilon 1, delta {DELTA:g}; wall and processor time, medians; ratios to DP-EBM")
    for is_regression in [task == "regression" for task in tasks]:
        name = "DPAdditiveRegressor" if is_regression else "DPAdditiveClassifier"
        makers = [(REGRESSORS if is_regression else CLASSIFIERS)[one] for one in (name, "DP-EBM")]
        small = made_up(200, is_regression)
        for make in makers:
            make(small, epsilon=1.0, delta=DELTA, random_state=0).fit(small.X, small.y)
        for n in sizes:
            table = made_up(n, is_regression)
            times = np.array(
                [
                    [timed(make(table, epsilon=1.0, delta=DELTA, random_state=number), table) for make in makers]
                    for number in range(1 if n >= MANY else ROUNDS)
                ]
            )
            own, peer = np.median(times, axis=0)
            ratios = [statistics.median(times[:, 0, i] / times[:, 1, i]) for i in (0, 1)]
            print(
                f"{name:21} {n:8}: {own[0]:7.2f} s and {own[1]:7.2f} s, DP-EBM {peer[0]:7.2f} s and {peer[1]:7.2f} s; "
                f"ratios {ratios[0]:.2f} and {ratios[1]:.2f}",
                flush=True,
            )


def main():
    names = list(dict.fromkeys([*CLASSIFIERS, *REGRESSORS]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["fit", "report", "speed"])
    parser.add_argument("--estimators", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES), metavar="NAME")
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--kinds", nargs="+", default=["classification", "regression"])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.task == "report":
        REPORT.write_text(report(read()))
    elif arguments.task == "speed":
        speed(arguments.sizes, arguments.kinds)
    else:
        fit(arguments.estimators, arguments.tables)


if __name__ == "__main__":
    main()
