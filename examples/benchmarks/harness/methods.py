"""Descriptions of methods for the planner, which does not import their libraries."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import tables
from tasks import N_DRAWS, N_SPLITS, TASKS

#: Environment, and the module here that lists its methods.
MODULES = {
    "skdp": ("models_skdp", "models_sklearn"),
    "diffprivlib": ("models_diffprivlib",),
    "interpret": ("models_interpret",),
    "opacus": ("models_opacus",),
}

#: Seconds that a fit may take.
LIMIT = 300


@dataclass(frozen=True)
class Method:
    """A method to fit a model: `build(task, epsilon, delta, seed)` returns an estimator."""

    library: str
    name: str
    family: str
    tasks: tuple[str, ...]  # names of tasks of the suite `peers`
    view: str
    build: Callable[..., Any]
    deltas: tuple[float, ...] = (0.0,)
    splits: int = N_SPLITS
    draws: int = N_DRAWS
    limit: float = LIMIT
    private: bool = True
    # Epsilon of a fit where it differs from what is stated: a function of the task and the stated epsilon.
    spent: Callable[..., float] | None = None
    # Kinds of tasks of the suite `tables` that the method is for.
    tables: tuple[str, ...] = ()
    # Why there is nothing to run: a task that the method is for, and cannot do.
    unable: str = ""

    def serves(self, task):
        """Return whether the method is for a task."""
        return task.name in self.tasks if task.suite == "peers" else not task.kinds.isdisjoint(self.tables)

    @property
    def key(self):
        """Library and name."""
        return f"{self.library}/{self.name}"


@dataclass(frozen=True)
class Cell:
    """One fit."""

    task: str
    library: str
    method: str
    epsilon: float
    delta: float
    split: int
    draw: int

    @property
    def configuration(self):
        """The cell without its split and draw."""
        return (self.task, self.library, self.method, self.epsilon, self.delta)


def task_of(suite, name):
    """Return a task of the suite `peers` or `tables`."""
    return tables.task(name) if suite == "tables" else TASKS[name]


def tasks_of(*kinds, without=()):
    """Return the names of the tasks of some kinds."""
    return tuple(name for name, task in TASKS.items() if task.kind in kinds and name not in without)


def methods_of(environment):
    """Return the methods of an environment."""
    return [method for module in MODULES[environment] for method in import_module(module).METHODS]


def method_of(cell, methods, suite):
    """Return the method of a cell."""
    task = task_of(suite, cell.task)
    for method in methods:
        if method.library == cell.library and method.serves(task):
            if method.name == cell.method:
                return method
            if cell.method.startswith(f"{method.name}("):
                return variant(method, cell.method.removeprefix(method.name)[1:-1])
    raise ValueError(f"no method is called {cell.library}/{cell.method}")


def variant(method, parameters):
    """Return a method whose estimators get other parameters than their defaults: text like ``n_bins=16``."""
    call = ast.parse(f"dict({parameters})", mode="eval").body
    values = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}

    def build(*arguments):
        return method.build(*arguments).set_params(**values)

    return replace(method, name=f"{method.name}({parameters})", build=build)


def all_methods():
    """Return all pairs of an environment and a method."""
    return [(environment, method) for environment in MODULES for method in methods_of(environment)]


def cells_of(method, epsilons):
    """Yield all fits of a method. Methods without privacy have no epsilon, and draws only if requested."""
    for task in method.tasks:
        for delta in method.deltas:
            for epsilon in epsilons if method.private else (math.inf,):
                for split in range(method.splits):
                    for draw in range(method.draws):
                        yield Cell(task, method.library, method.name, float(epsilon), delta, split, draw)


def cells_of_table(method, task, epsilon, split, deltas=None):
    """Yield the fits of a method to a table. There is one draw for each split, and no epsilon without privacy."""
    if method.serves(task):
        for delta in (deltas or task.deltas) if any(method.deltas) else (0.0,):
            yield Cell(task.name, method.library, method.name, epsilon if method.private else math.inf, delta, split, 0)
