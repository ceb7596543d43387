"""Descriptions of methods for the planner, which does not import their libraries."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

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
    tasks: tuple[str, ...]  # names of tasks
    view: str
    build: Callable[..., Any]
    deltas: tuple[float, ...] = (0.0,)
    splits: int = N_SPLITS
    draws: int = N_DRAWS
    limit: float = LIMIT
    private: bool = True
    # Epsilon of a fit where it differs from what is stated: a function of the task and the stated epsilon.
    spent: Callable[..., float] | None = None
    # Why there is nothing to run: a task that the method is for, and cannot do.
    unable: str = ""

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


def tasks_of(*kinds, without=()):
    """Return the names of the tasks of some kinds."""
    return tuple(name for name, task in TASKS.items() if task.kind in kinds and name not in without)


def methods_of(environment):
    """Return the methods of an environment."""
    return [method for module in MODULES[environment] for method in import_module(module).METHODS]


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
