"""Silence around code whose warnings depend on private data, and discreet methods of estimators."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from types import FunctionType, MappingProxyType
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metaestimators import available_if as _available_if

from ..parts.arrays import is_collection
from .params import refusals

# Threads that silence warnings at the same time may leave them silenced. A thread may do so within its own silence.
_LOCK = threading.RLock()

_REGISTRY = "__warningregistry__"

# Registry of the warnings that are shown only once.
_ONCE: dict[Any, Any] = vars(warnings)["onceregistry"]


def _renew() -> None:
    # Another thread of the parent process may have held the lock.
    global _LOCK
    _LOCK = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


@contextmanager
def silence() -> Iterator[None]:
    """Suppress warnings, and their traces."""
    # Python stores in a module that a warning was raised there, even if the warning is ignored. These records are
    # restored. Code inside that changes the filters is silenced as well.
    with _LOCK:
        before = {
            id(names): (names, dict(notes))
            for names in _namespaces()
            if isinstance(notes := names.get(_REGISTRY), dict)
        }
        once = dict(_ONCE)
        try:
            with warnings.catch_warnings(record=True):
                warnings.simplefilter("ignore")
                yield
        finally:
            for names in _namespaces():
                if _REGISTRY in names or id(names) in before:
                    _put_back(names, before.get(id(names), (names, None))[1])
            _ONCE.clear()
            _ONCE.update(once)


def discreet(function: Callable[..., Any], answers: Mapping[str, str] = MappingProxyType({})) -> Callable[..., Any]:
    """Keep NumPy's messages about private data out of the outcome of a function."""
    # `answers` holds names of arguments that the function does not have, with what to pass instead.
    # NumPy's message about too little memory holds the number of rows. A user may have set NumPy to warn of underflow
    # or overflow, or to raise an error, which would depend on values.

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            with np.errstate(all="ignore"), refusals(kwargs.get("accountant"), "Nothing was charged"):
                for name in kwargs.keys() & answers.keys():
                    raise TypeError(f"{function.__name__}() has no argument {name!r}. {answers[name]}")
                return function(*args, **kwargs)
        except MemoryError:
            pass
        # It is raised outside the handler, so that NumPy's message is not kept as the context.
        raise MemoryError("there is too little memory for this call")

    return wrapper


def available_if(check: Callable[[Any], bool]) -> Callable[[Callable[..., Any]], Any]:
    """Make a method that reads rows available under a condition, as scikit-learn's decorator does, and discreet."""
    return lambda method: _available_if(check)(by_partition(discreet(method)))


#: Methods that read rows and release nothing. In a pipeline, or after a fit, the rows may be private.
_READERS = (
    "apply",
    "contributions",
    "decision_function",
    "encode",
    "frequencies",
    "inverse_transform",
    "means",
    "noise_std",
    "predict",
    "predict_log_proba",
    "predict_proba",
    "score",
    "score_samples",
    "transform",
)


def by_partition(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method that reads rows refuse a collection of Dask, and say how it is applied to each partition."""
    # If it fits first, and the fit takes no collection either, the fit refuses it.
    name = method.__name__
    applied = name.removeprefix("fit_")

    @wraps(method)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        reads = name == applied or getattr(self, "_takes_parts", False)
        if reads and any(map(is_collection, (*args, *kwargs.values()))):
            raise TypeError(
                f"{type(self).__name__}.{name} takes rows in memory, and got a collection of Dask. "
                f"{'Apply it' if name == applied else f'Call fit, and apply {applied}'} to each partition: table."
                f"map_partitions(model.{applied}, meta=...), or table.map_blocks(model.{applied}, ...) for an Array"
                f"{'. Nothing was charged' * (name != applied)}"
            )
        return method(self, *args, **kwargs)

    return wrapper


class DiscreetMethods:
    """Make the methods that read rows discreet, in each class that has them. They read rows in memory."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in _READERS:
            method = vars(cls).get(name)
            if isinstance(method, FunctionType):
                setattr(cls, name, by_partition(discreet(method)))


def _namespaces() -> list[dict[str, Any]]:
    # getattr would load modules that are imported lazily.
    return [
        object.__getattribute__(module, "__dict__")
        for module in list(sys.modules.values())
        if isinstance(module, type(sys))
    ]


def _put_back(names: dict[str, Any], notes: dict[Any, Any] | None) -> None:
    if notes is None:
        names.pop(_REGISTRY, None)
    else:
        registry = names.setdefault(_REGISTRY, {})
        registry.clear()
        registry.update(notes)


def parts_of(value: Any) -> Iterator[Any]:
    """Yield an estimator and the estimators within it, including lists of steps."""
    # A frozen estimator is left out, because it belongs to the user and is neither copied nor fitted.
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from parts_of(each)
    elif hasattr(value, "get_params") and not isinstance(value, type | FrozenEstimator):
        yield value
        for each in value.get_params(deep=False).values():
            yield from parts_of(each)


def quieten(model: Any) -> None:
    """Remove everything from a clone and its parts that reports single fits: callbacks, and printed lines."""
    # A clone keeps callbacks, and they would receive its rows.
    for estimator in parts_of(model):
        if hasattr(estimator, "set_callbacks"):
            estimator.set_callbacks()
        parameters = estimator.get_params(deep=False)
        if "verbose" in parameters:
            estimator.set_params(verbose=False if isinstance(parameters["verbose"], bool) else 0)
