"""The data sets of an audit, its coins and its many fits, each with its own noise, and the claimed guarantee."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone

from ..accounting import check_delta
from ..checks.params import check_positive
from ..checks.silence import parts_of
from ..mechanisms import GENERATORS, NoiseSource, OneStream


class Verdict:
    """What a lower bound on epsilon says about a claim."""

    epsilon: float
    delta: float
    false_alarm: float
    claim: float | None

    @property
    def violated(self) -> bool:
        """Whether the bound is above the claim."""
        return self.claim is not None and self.epsilon > self.claim

    def _of_claim(self, otherwise: str = "stands") -> str:
        return "" if self.claim is None else f", claim {self.claim:g}: {'VIOLATED' if self.violated else otherwise}"


def as_data_set(data: Any) -> tuple[Any, ...]:
    """Return the arguments of `fit` as a tuple, from ``(X,)``, ``(X, y)`` or X alone."""
    if isinstance(data, list) and any(getattr(entry, "ndim", 0) > 1 for entry in data):
        raise TypeError("a list is taken for the rows of X: pass a tuple, (X, y)")
    return data if isinstance(data, tuple) else (data,)


def number_of_records(data: tuple[Any, ...]) -> int:
    """Return the number of rows of a data set."""
    return data[0].shape[0] if hasattr(data[0], "shape") else len(data[0])


def take(data: tuple[Any, ...], rows: NDArray) -> tuple[Any, ...]:
    """Return some rows of each array, by their positions or a mask."""

    def of(array: Any) -> Any:
        if hasattr(array, "iloc"):
            return array.iloc[rows]
        return array.tocsr()[rows] if issparse(array) else np.asarray(array)[rows]

    return tuple(map(of, data))


def coins(random_state: Any, label: str, number: int) -> NDArray[np.bool_]:
    """Toss fair coins for one purpose of an audit, which `label` names."""
    return NoiseSource(random_state).stream(label).words(number) >> np.uint64(63) == 1


# Packages in which `epsilon` is a claim of privacy, and not the width of a tube.
_PRIVATE = frozenset({"skdp", "diffprivlib"})
# Packages in which `random_state` may be a RandomState.
_CONVENTIONAL = _PRIVATE | {"sklearn"}


def claimed(estimator: Any, claim: Any, delta: Any) -> tuple[float | None, float]:
    """Return the epsilon and delta that a user claims, or else those that a private estimator states."""
    if _PRIVATE & {kind.__module__.partition(".")[0] for kind in type(estimator).__mro__}:
        claim = getattr(estimator, "epsilon", None) if claim is None else claim
        delta = getattr(estimator, "delta", None) if delta is None else delta
    if claim is not None:
        claim = check_epsilon(claim, "claim")
    return claim, check_delta(0.0 if delta is None else delta)


def check_epsilon(value: Any, name: str) -> float:
    """Return a number that is at least 0 and may be infinite, or raise an error."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    if math.isnan(value) or value < 0:
        raise ValueError(f"{name} must be 0 or more, got {value!r}")
    return float(value)


def check_error(error: Any) -> float:
    """Return the probability of a false alarm as a float, or raise an error."""
    return check_positive(error, "error", most=0.5)


def check_estimator(estimator: Any, n_jobs: int | None = None) -> None:
    """Refuse an estimator that cannot be fitted many times, that would reuse its noise, or that would be charged."""
    check_can_be_fitted(estimator)
    if not hasattr(estimator, "fit") and n_jobs not in (None, 1):
        raise ValueError(
            "n_jobs must be None for a function, because each process would have a copy of the generator of its noise"
        )
    # Generators are copied with the estimator, and would give each fit the same noise.
    for step in parts_of(estimator):
        for name, value in step.get_params(deep=False).items():
            owner = f"the {name} of {type(step).__name__}"
            if (name == "random_state" and value is not None) or isinstance(value, GENERATORS):
                raise ValueError(
                    f"{owner} must be None, because each run needs its own noise. Set random_state of the audit"
                )
            # Estimators of diffprivlib without an accountant share the default one.
            default = getattr(type(value), "load_default", None)
            if name == "accountant" and value is not None and (default is None or default(None) is not value):
                raise ValueError(
                    f"{owner} must be None, because an audit fits many times. Use public or synthetic data"
                )


def check_can_be_fitted(estimator: Any) -> None:
    """Refuse an object that is neither a function nor an estimator that can be cloned."""
    if isinstance(estimator, type):
        raise TypeError(f"estimator must be an instance: {estimator.__name__}(...), and not the class")
    if not hasattr(estimator, "fit") and not callable(estimator):
        raise TypeError("estimator must have a method fit, or be a function of the data set")
    if hasattr(estimator, "fit") and not hasattr(estimator, "get_params"):
        raise TypeError("estimator must have get_params, so that it can be cloned; or pass a function of the data set")


def seeds(estimator: Any, random_state: Any, label: str, number: int) -> list[dict[str, int]]:
    """Return seeds by parameter for the estimators of each run. Empty if the noise need not be repeatable."""
    source = NoiseSource(random_state)
    if not source.seeded or not hasattr(estimator, "fit"):
        return [{}] * number
    names = [name for name in estimator.get_params(deep=True) if name.rpartition("__")[2] == "random_state"]
    # Equal estimators with equal seeds would add equal noise.
    words = {name: source.stream(f"{label}: {name}").words(number) >> np.uint64(33) for name in names}
    return [{name: int(words[name][k]) for name in names} for k in range(number)]


def runner(estimator: Any) -> Callable[[tuple[Any, ...], Mapping[str, int]], Any]:
    """Return a function that maps a data set and seeds to a fitted model, or to the result of the audited function."""
    if not hasattr(estimator, "fit"):
        return lambda data, seeds: estimator(*data)
    parameters = estimator.get_params(deep=True)
    conventional = {
        name
        for name in parameters
        if type(parameters.get(name.rpartition("__")[0], estimator)).__module__.partition(".")[0] in _CONVENTIONAL
    }

    def run(data: tuple[Any, ...], seeds: Mapping[str, int]) -> Any:
        model = clone(estimator)
        model.set_params(**{name: OneStream(seed) if name in conventional else seed for name, seed in seeds.items()})
        model.fit(*data)
        return model

    return run


@contextmanager
def quiet() -> Iterator[None]:
    """Ignore warnings. The data are not private, so that traces of them need not be removed, which takes a lock."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
