"""Rules of parameters, in tables on the classes of estimators.

A table maps the names of parameters to rules. A rule is a function of a value and of the name of its parameter. It
returns the value as a fit uses it, or refuses it by a message with the name, the value, and the values that are
allowed. The table of a class is added to those of its bases.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import signature
from types import SimpleNamespace
from typing import Any

from .params import LEAST, MOST, check_bounds, check_choice, check_integer, check_positive, check_zero_or_positive

Rule = Callable[[Any, str], Any]
Rules = Mapping[str, Rule]


@dataclass(frozen=True)
class Real:
    """A real number within limits. With `zero`, 0 is allowed, too."""

    least: float = LEAST
    most: float = MOST
    zero: bool = False

    def __call__(self, value: object, name: str) -> float:
        check = check_zero_or_positive if self.zero else check_positive
        return check(value, name, least=self.least, most=self.most)


@dataclass(frozen=True)
class Integer:
    """An integer within limits."""

    least: int
    most: int | None = None

    def __call__(self, value: object, name: str) -> int:
        return check_integer(value, name, least=self.least, most=self.most)


@dataclass(frozen=True)
class OneOf:
    """One of several names."""

    choices: Collection[str]

    def __call__(self, value: object, name: str) -> str:
        return check_choice(value, name, self.choices)


@dataclass(frozen=True)
class Bounds:
    """A pair of bounds, or of bounds by column. `hint` names the bounded values."""

    hint: str

    def __call__(self, value: object, name: str) -> Any:
        return check_bounds(value, name, self.hint)


@dataclass(frozen=True)
class Or:
    """One special value, which is None or a word, or a value that another rule allows."""

    special: str | None
    rule: Rule

    def __call__(self, value: Any, name: str) -> Any:
        if value is None or isinstance(value, str):
            return value if value == self.special else self.rule(value, name)
        return self.rule(value, name)


@dataclass(frozen=True)
class By:
    """A value that a function checks. The function knows the name of the parameter."""

    check: Callable[[Any], Any]

    def __call__(self, value: Any, name: str) -> Any:
        return self.check(value)


def anything(value: Any, name: str) -> Any:
    """Return a value that is checked together with other parameters, or where it is used."""
    return value


class Checked(SimpleNamespace):
    """The checked parameters of a fit by name, all public."""

    @property
    def private(self) -> bool:
        """Whether there is noise."""
        return self.epsilon < math.inf

    def replaced(self, **changes: Any) -> Checked:
        """Return a copy with other values."""
        return Checked(**{**vars(self), **changes})


@cache
def rules_of(cls: type) -> dict[str, Rule]:
    """Return the rules of the parameters of a class by name. Subclasses replace the rules of their bases."""
    rules: dict[str, Rule] = {}
    for base in reversed(cls.__mro__):
        rules.update(vars(base).get("_parameter_rules", {}))
    names = signature(cls).parameters
    return {name: rule for name, rule in rules.items() if name in names}


def check_parameters(estimator: Any, declared: Collection[str] = ()) -> Checked:
    """Return the checked parameters of an estimator. Those in `declared` may follow from its schema."""
    rules = rules_of(type(estimator))  # type: ignore[arg-type]
    # The encoding of a schema uses other parameters. Therefore these are checked first.
    values = {name: rule(getattr(estimator, name), name) for name, rule in rules.items() if name not in declared}
    values |= {name: rules[name](estimator._declared(name), name) for name in rules if name in declared}
    return Checked(**values)
