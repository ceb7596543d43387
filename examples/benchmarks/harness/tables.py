"""Tables with a schema: Adult, Nursery, California housing, digits, and those of a folder of tables.

The folder is the one that ``SKDP_TABLES`` names, or ``../shared/tables``. Its ``tables.py`` has a dictionary ``TABLES``
of functions, each of which returns a data frame, labels or targets, and the public facts about the columns and the
target: ``("num", low, high, step, scale)`` or ``("cat", values, ordered)``, and for a target ``("num", low, high)`` or
``("cat", values)``. Bounds and categories are those of the documentation of a table, and never of its records.

The tables of `held_out` are not for choices.
"""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass
from functools import cache, partial
from typing import ClassVar

import held_out
import numpy as np
import tasks

from skdp import Category, Number, Schema
from skdp.datasets import load_adult

DELTA = 1e-6

#: Other deltas. Adult has that of other publications, too.
DELTAS = {"adult": (DELTA, tasks.DELTA), **dict.fromkeys(held_out.LOADERS, (tasks.DELTA,))}
METRICS = {
    "classification": ("auc", "log_loss", "calibration", "calibration_by_chance", "accuracy"),
    "regression": ("r2",),
}


@dataclass(frozen=True)
class TableTask(tasks.Task):
    """A prediction task on a table with a schema."""

    suite: ClassVar[str] = "tables"
    schema: object = None
    records: object = None
    persons: object = None  # of the records, if persons have several

    @property
    def kinds(self):
        """What a method must be able to do."""
        return {self.kind, "two classes"} if self.n_classes == 2 else {self.kind}

    @property
    def deltas(self):
        """The deltas of methods that need one."""
        return DELTAS.get(self.name, (DELTA,))

    def load(self):
        """Return rows and target: codes of labels, or numbers in [0, 1]."""
        return self.records, self.records.y

    def split(self, n_rows, seed):
        """Return the row numbers of a training and a test part. No person has records in both."""
        if self.persons is None:
            return super().split(n_rows, seed)
        train, _ = super().split(self.persons.max() + 1, seed)
        is_train = np.isin(self.persons, train)
        return np.flatnonzero(is_train), np.flatnonzero(~is_train)

    def as_codes(self, y):
        """Return codes of labels, or targets in [0, 1]."""
        target = self.schema.target
        if self.kind == "classification":
            return np.array([target.values.index(label) for label in np.asarray(y).tolist()])
        return tasks.scaled(y, target.low, target.high)

    def as_in_table(self, y):
        """Return labels or targets as the table has them."""
        target = self.schema.target
        if self.kind == "classification":
            return np.array(target.values)[y]
        return np.round(target.low + y * (target.high - target.low), 9)


def names():
    """Return the names of the tables for choices that this machine may have."""
    try:
        return [*_LOADERS, *_folder().TABLES]
    except FileNotFoundError:
        return list(_LOADERS)


@cache
def task(name):
    """Return a task."""
    load = _LOADERS.get(name) or held_out.LOADERS.get(name) or partial(_from_folder, name)
    X, y, schema, *persons = load()
    norm = tasks.DIGITS_NORM if name == "digits" else math.sqrt(X.shape[1])
    numbers, codes, sizes = [], [], []
    for column, entries in zip(schema.values(), X.to_numpy(object).T, strict=True):
        if hasattr(column, "values"):
            code = {value: i for i, value in enumerate(column.values)}
            # Other values have a code of their own, which is no category.
            codes.append([code.get(value, len(code)) for value in entries])
            sizes.append(len(code))
        else:
            numbers.append(unit(column, entries.astype(float)))
    numbers = np.column_stack(numbers) if numbers else np.empty((len(X), 0))
    codes = np.column_stack(codes) if codes else None
    target = schema.target
    is_classification = hasattr(target, "values")
    rows = numbers if codes is None else np.hstack([numbers, tasks.one_hot(codes, sizes)])
    kind = "classification" if is_classification else "regression"
    records = tasks.Data(rows, norm, None, codes, numbers, tuple(sizes), X)
    found = TableTask(
        name,
        kind,
        name,
        METRICS[kind],
        len(target.values) if is_classification else 0,
        n_numbers=numbers.shape[1],
        sizes=tuple(sizes),
        upper=1 / norm,
        schema=schema,
        records=records,
        persons=persons[0] if persons else None,
    )
    records.y = found.as_codes(y)
    return found


def unit(column, entries):
    """Return numbers in [0, 1] by the bounds of a column, on its scale. A missing number is in the middle."""

    def on_scale(values):
        if column.scale == "linear":
            return values
        return np.log(values) if column.low > 0 else np.arcsinh(values)

    low, high = on_scale(np.array([column.low, column.high], float))
    scaled = (on_scale(np.clip(entries, column.low, column.high)) - low) / (high - low)
    return np.where(np.isnan(scaled), 0.5, scaled)


@cache
def _folder():
    """Return the module of the folder of tables."""
    path = tasks.find("tables.py", "SKDP_TABLES", "tables")
    specification = importlib.util.spec_from_file_location("_folder_of_tables", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def _from_folder(name):
    X, y, columns, target = _folder().TABLES[name]()
    schema = Schema(
        {
            key: Number(facts[1], facts[2], step=facts[3], scale=facts[4] or "linear")
            if facts[0] == "num"
            else Category(list(facts[1]), ordered=facts[2])
            for key, facts in columns.items()
        },
        target=Category(list(target[1])) if target[0] == "cat" else target[1:],
    )
    return X, np.asarray(y), schema


def _frame(columns):
    import pandas

    return pandas.DataFrame(columns)


def _adult():
    adult = load_adult()
    X = _frame({name: adult.table[name] for name in adult.schema})
    return X, adult.table["income"], adult.schema


def _nursery():
    data, y = tasks.TASKS["nursery"].load()
    values = [names.split() for names in tasks.NURSERY]
    X = _frame({f"x{j}": np.array(names)[data.codes[:, j]] for j, names in enumerate(values)})
    classes = tasks.NURSERY_CLASSES.split()
    schema = Schema(dict(zip(X, map(Category, values), strict=True)), target=Category(classes))
    return X, np.array(classes)[y], schema


def _california():
    data, y = tasks.TASKS["housing"].load()
    lower, upper = np.array(tasks.HOUSING_LOWER), np.array(tasks.HOUSING_UPPER)
    # Longitude, latitude, median age, four totals, and a median income.
    X = _frame({f"x{j}": np.round(lower[j] + data.unit[:, j] * (upper[j] - lower[j]), 9) for j in range(8)})
    facts = [{}, {}, {"step": 1}, *[{"step": 1, "scale": "log"}] * 4, {"scale": "log"}]
    columns = {f"x{j}": Number(lower[j], upper[j], **facts[j]) for j in range(8)}
    schema = Schema(columns, target=(0.0, float(tasks.HOUSING_MOST)))
    return X, y * tasks.HOUSING_MOST, schema


def _digits():
    data, y = tasks.TASKS["digits"].load()
    X = _frame({f"x{j}": column for j, column in enumerate(data.unit.T * 16)})
    columns = {name: Number(0, 16, step=1) for name in X}
    return X, y, Schema(columns, target=Category(list(range(10))))


_LOADERS = {"adult": _adult, "nursery": _nursery, "california": _california, "digits": _digits}
