"""Data sets, models and numbers as audits take them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import FeatureUnion, Pipeline

from ..mechanisms import NoiseSource


def as_data_set(data: Any) -> tuple[Any, ...]:
    """Return the arguments of `fit`.

    Parameters
    ----------
    data : tuple or array-like
        ``(X,)``, ``(X, y)``, or X alone.

    Returns
    -------
    arguments : tuple
    """
    return data if isinstance(data, tuple) else (data,)


def take(data: tuple[Any, ...], rows: NDArray) -> tuple[Any, ...]:
    """Return some rows of each array.

    Parameters
    ----------
    data : tuple of array-like
        Arguments of `fit`.
    rows : ndarray
        Positions, or a mask.

    Returns
    -------
    data : tuple
    """
    return tuple(part.iloc[rows] if hasattr(part, "iloc") else np.asarray(part)[rows] for part in data)


def seeds(random_state: Any, label: str, number: int) -> list[int | None]:
    """Return a seed for each run, or None for each where noise comes from the operating system.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None
        Of the audit.
    label : str
        What they are for.
    number : int
        How many.

    Returns
    -------
    seeds : list of int or None
    """
    source = NoiseSource(random_state)
    if not source.seeded:
        return [None] * number
    return [int(word) for word in source.stream(label).words(number) >> np.uint64(33)]


def coins(random_state: Any, label: str, number: int) -> NDArray[np.bool_]:
    """Toss fair coins.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None
        Of the audit.
    label : str
        What they are for.
    number : int
        How many.

    Returns
    -------
    heads : ndarray of shape (number,)
    """
    heads: NDArray[np.bool_] = NoiseSource(random_state).stream(label).words(number) >> np.uint64(63) == 1
    return heads


def check_fresh_noise(estimator: Any) -> None:
    """Refuse an estimator whose runs would share their noise, or be charged.

    Parameters
    ----------
    estimator : estimator or callable
        What is to be fitted many times.
    """
    if not hasattr(estimator, "get_params"):
        return
    for name, value in estimator.get_params(deep=True).items():
        parameter = name.rpartition("__")[2]
        if parameter == "random_state" and value is not None:
            raise ValueError(
                f"{name} must be None: each run needs noise of its own. For runs that can be repeated, give the audit "
                "a random_state"
            )
        if parameter == "accountant" and type(value).__module__.split(".")[0] == "skdp":
            raise ValueError(
                f"{name} must be None: an audit fits many times, on data that have to be public or made up for it"
            )


def runner(estimator: Any) -> Callable[[tuple[Any, ...], int | None], Any]:
    """Return a function that carries out one run.

    Parameters
    ----------
    estimator : estimator or callable
        An unfitted estimator, or a function of the data set.

    Returns
    -------
    run : callable
        Maps a data set and a seed to the fitted model, or to what the function returns.
    """
    if not hasattr(estimator, "fit"):
        if not callable(estimator):
            raise TypeError("estimator must have a method fit, or be a function of the data set")
        return lambda data, seed: estimator(*data)
    seeded = [name for name in estimator.get_params(deep=True) if name.rpartition("__")[2] == "random_state"]

    def run(data: tuple[Any, ...], seed: int | None) -> Any:
        model = clone(estimator)
        if seed is not None:
            model.set_params(**dict.fromkeys(seeded, seed))
        return model.fit(*data)

    return run


def fitted_numbers(model: Any) -> NDArray[np.float64]:
    """Return all numbers that a fit left behind: attributes whose names end in an underscore, in their order.

    Parameters
    ----------
    model : estimator or array-like
        Fitted.

    Returns
    -------
    numbers : ndarray of shape (n_numbers,)
    """
    if not isinstance(model, BaseEstimator):
        return np.ravel(np.asarray(model, dtype=np.float64))
    if isinstance(model, Pipeline | FeatureUnion):
        return _all(step for _, step in (model.steps if isinstance(model, Pipeline) else model.transformer_list))
    return _all(value for name, value in sorted(vars(model).items()) if name.endswith("_") and not name.startswith("_"))


def _all(values: Iterable[Any]) -> NDArray[np.float64]:
    found = [numbers for numbers in map(_numbers, values) if numbers is not None]
    return np.concatenate(found) if found else np.empty(0)


def _numbers(value: Any) -> NDArray[np.float64] | None:
    if isinstance(value, BaseEstimator):
        return fitted_numbers(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _all(value)
    try:
        array = np.asarray(value)
    except ValueError:
        return None
    return array.astype(np.float64).ravel() if array.dtype.kind in "fiub" else None
