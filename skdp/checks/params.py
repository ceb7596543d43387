"""Checks of public parameters, values in messages, and warnings that point to the line of the user's code.

Messages name the parameter and its value, never data.

Classes of estimators have tables of rules. A table maps the names of parameters to rules. A rule is a function of a
value and of the name of its parameter. It returns the value as a fit uses it, or refuses it by a message with the name,
the value, and the values that are allowed. The table of a class is added to those of its bases.
"""

from __future__ import annotations

import math
import numbers
import sys
import threading
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from inspect import signature
from types import FrameType, SimpleNamespace
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from ..exceptions import PrivacyAssumptionWarning
from ..parts.arrays import CHARGES

_LONGEST = 40


def shown(value: object) -> str:
    """Describe a value in a message: write a number, a short text or a class as it is, and otherwise its type."""
    # Rows that are passed as a parameter by mistake must not be shown, and neither must their number.
    kind = type(value)
    if value is None or issubclass(kind, str | bytes | numbers.Number | type):
        try:
            text = repr(value)
        except Exception:
            # Python refuses to write integers of thousands of digits.
            text = ""
        if 0 < len(text) <= _LONGEST or issubclass(kind, type):
            return text
    return f"a value of type {kind.__name__}"


def misspelling(name: object, known: Iterable[object], it: str = "it") -> str:
    """Return a question for a message if a name is nearly a known one, in any case. Otherwise, return no text."""
    by_text = {str(each).casefold(): each for each in known}
    close = get_close_matches(str(name).casefold(), by_text, 1)
    return f" Is {it} a misspelling of {by_text[close[0]]!r}?" if close else ""


#: Number of charges in this thread, by which an error before the charge is known.
N_CHARGES: ContextVar[int] = ContextVar("N_CHARGES", default=0)


@contextmanager
def refusals(accountant: object, statement: str, n_charges: Callable[[], int] = N_CHARGES.get) -> Iterator[None]:
    """End messages of errors before the charge with a statement about the charge, if there is an accountant."""
    before = None if accountant is None else n_charges()
    token = CHARGES.set(CHARGES.get() or accountant is not None)
    try:
        yield
    except (TypeError, ValueError) as error:
        if "charged" not in str(error) and before is not None and n_charges() == before:
            text = str(error)
            error.args = (f"{text}{'' if text.endswith(('.', '?')) else '.'} {statement}",)
        raise
    finally:
        CHARGES.reset(token)


def as_float(value: Any) -> float:
    """Return a number as a double. A finite number beyond all doubles becomes the largest, which no range contains."""
    try:
        number = float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -sys.float_info.max
    if math.isinf(number) and value != number:
        return math.copysign(sys.float_info.max, number)
    return number


# This package, and the wrappers of scikit-learn around methods of estimators.
_INSIDE = ("skdp", "sklearn.callback", "sklearn.utils")

#: Modules that fit estimators to samples or weights that depend on other records, and the reason for each.
_RESAMPLING = {
    "sklearn.ensemble._bagging": "a sample of bagging can hold a record several times",
    "sklearn.ensemble._weight_boosting": "the samples or weights of boosting depend on all records",
    "sklearn.linear_model._ransac": "RANSAC chooses records by exact scores",
    "imblearn.pipeline": "a sampler of imbalanced-learn draws or makes rows that depend on other records",
}

#: Calls of cross-validation that have been warned of.
_WARNED: WeakSet[Any] = WeakSet()


def warn_of_callers(charged: bool) -> None:
    """Warn if the fit is inside an estimator or a function for which the guarantee of the fit does not hold."""
    # Without a charge, the records may be public, and only broken guarantees are named.
    frame = sys._getframe(1)
    while frame.f_back is not None:
        module = frame.f_globals.get("__name__", "")
        reason = _RESAMPLING.get(module)
        # Python keeps the dict of a frame's variables. It must not keep the records of callers alive.
        outer = frame.f_locals.get("self") if reason or module == "sklearn.pipeline" else None
        if charged and module in ("sklearn.model_selection._validation", "sklearn.calibration"):
            call = _call_of_joblib(frame)
            if call in _WARNED:
                return
            _WARNED.add(call)
            return warn(
                "A cross-validation of scikit-learn fits a model for each fold, and each fit is charged. Its scores, "
                "or the calibrator of CalibratedClassifierCV, are computed from private records without noise, and no "
                "budget covers them. Use skdp.private_cross_val_score, DPGridSearchCV, or private_score on other "
                "records, also with metric='histogram' in place of a calibration",
                PrivacyAssumptionWarning,
            )
        if charged and outer is not None and module == "sklearn.pipeline" and hasattr(outer, "get_params"):
            learning = call_above("learning_classes", outer)
            if learning:
                return warn(
                    f"The guarantee does not cover {', '.join(learning)}, because a fit of such a step learns from the "
                    "records without noise. Use skdp.make_private_pipeline, which refuses such steps, with "
                    "DPStandardScaler, BoundsScaler, PublicBinner or DPPCA in place of them. This fit is charged",
                    PrivacyAssumptionWarning,
                )
        steps = getattr(outer, "steps", None) if reason else None
        if reason and (steps is None or any(hasattr(step, "fit_resample") for _, step in steps)):
            return warn(
                f"The guarantee in privacy_ does not hold for this fit, because {reason}. If the outer estimator "
                "keeps a seed that it has drawn, the noise can also be subtracted. Use PATEClassifier, SampleAggregate "
                "or DPRandomTree instead (user guide, Meta-estimators)",
                PrivacyAssumptionWarning,
            )
        frame = frame.f_back


def _call_of_joblib(frame: FrameType) -> Any:
    """Return the object of joblib that is made for a whole search, or in a worker the thread."""
    outer, call = frame.f_back, None
    while outer is not None:
        if outer.f_globals.get("__name__") == "joblib.parallel":
            call = outer.f_locals.get("self", call)
        outer = outer.f_back
    return call if type(call).__name__ == "Parallel" else threading.current_thread()


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the innermost line outside of this package. The message must hold public quantities only."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_inside(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in _INSIDE)


#: Modules of packages above this one, by the name of the function in them that is called from here.
_ABOVE = {
    "largest_budget": "skdp.model_selection._allocation",
    "learning_classes": "skdp.model_selection._steps",
}


def call_above(name: str, *args: Any) -> Any:
    """Call a function of a package that imports this one."""
    return getattr(import_module(_ABOVE[name]), name)(*args)


_MOST_LABEL = 2.0**53

# Norms whose squares are finite and normal.
LEAST, MOST = 1e-100, 1e100

# A larger number of jobs is assumed to be a mistake.
_MOST_JOBS = 10**4


def real_number(value: object, name: str) -> float:
    """Return a real number, possibly infinite, as a double."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {shown(value)}")
    return as_float(value)


def check_positive(value: object, name: str, *, least: float = LEAST, most: float = MOST) -> float:
    """Return a finite positive real number in [`least`, `most`] as a float."""
    number = real_number(value, name)
    if not least <= number <= most or not math.isfinite(number):
        raise ValueError(f"{name} must lie in [{least:g}, {most:g}], got {shown(value)}")
    return number


def check_data_norm(value: object) -> float:
    """Return the bound on the L2 norm of a row. Refuse None with a hint."""
    if value is None:
        raise ValueError(
            "data_norm must be given: the largest L2 norm of a row of X by public knowledge, for instance "
            "sqrt(n_features) for features in [-1, 1]. Longer rows are scaled down to it. It is never read from the "
            "data. For a table, pass schema=... instead. After a TableEncoder, pass **encoder.parameters(estimator)"
        )
    return check_positive(value, "data_norm")


def check_integer(value: object, name: str, *, least: int, most: int | None = None) -> int:
    """Return an integer in [`least`, `most`]."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {shown(value)}")
    number = int(value)
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {shown(value)}")
    if most is not None and number > most:
        raise ValueError(f"{name} must be at most {most}, got {shown(value)}")
    return number


def check_n_jobs(value: object) -> int | None:
    """Return a number of processes, counted as in joblib."""
    if value is None:
        return None
    n_jobs = check_integer(value, "n_jobs", least=-_MOST_JOBS, most=_MOST_JOBS)
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0")
    return n_jobs


def is_list(value: object) -> bool:
    """Tell whether a value has entries in an order that can be read more than once. Text is one entry."""
    if hasattr(value, "__array__"):
        return np.ndim(value) > 0
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def real_numbers(value: Any) -> NDArray[np.float64] | None:
    """Return public numbers as doubles, or None if an entry is no real number, or the entries have no order."""
    # NumPy would convert text, dates and truth values to numbers, and would drop imaginary parts and masks.
    if isinstance(value, str | bytes | Set | Mapping | Iterator) or np.ma.is_masked(value):
        return None
    try:
        array = np.asarray(value)
        if array.dtype.kind == "O":
            flat = [real_number(entry, "an entry") for entry in array.ravel().tolist()]
            return np.array(flat, dtype=np.float64).reshape(array.shape)
        if array.dtype.kind not in "iuf":
            return None
        with np.errstate(over="ignore"):
            return array.astype(np.float64)
    except Exception:
        # The value is a ragged sequence, or an object whose methods may raise any error.
        return None


def increasing_edges(value: Any) -> NDArray[np.float64] | None:
    """Return public edges of bins as doubles, or None unless they are two or more finite, increasing numbers."""
    edges = real_numbers(value)
    if edges is None or edges.ndim != 1 or len(edges) < 2 or not np.all(np.isfinite(edges)):
        return None
    return edges if np.all(edges[:-1] < edges[1:]) else None


def check_boolean(value: object, name: str) -> bool:
    """Return a boolean, or refuse the value."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def check_choice(value: object, name: str, choices: Collection[str]) -> str:
    """Return the value if it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {shown(value)}")
    return value


def check_classes(classes: Any, name: str = "classes", *, least: int = 2) -> NDArray | None:
    """Return the declared label set in sorted order, or None if none was declared."""
    if classes is None:
        return None
    try:
        array = np.asarray(classes)
    except Exception:
        array = np.empty((0, 0))
    if isinstance(classes, list | tuple) and len({isinstance(label, str) for label in classes}) > 1:
        # NumPy would convert numbers to text.
        raise ValueError(f"{name} must be all text, or all numbers, and hold no missing values")
    if array.dtype.kind == "T" or (array.dtype.kind == "O" and all(isinstance(label, str) for label in array.flat)):
        array = np.array(array.tolist(), dtype=str)
    if array.ndim != 1:
        raise ValueError(f"{name} must be a one-dimensional sequence of labels")
    if array.dtype.kind in "mMcV":
        raise ValueError(f"{name} must contain numbers or text; write points in time as text")
    if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must not contain NaN or infinity")
    if np.ma.is_masked(classes):
        raise ValueError(f"{name} must not contain missing values")
    size = array
    if array.dtype.kind == "O":
        if not all(map(_is_number, array)):
            raise ValueError(f"{name} must be all text, or all numbers, and hold no missing values")
        size = np.array([as_float(label) for label in array])
    if size.dtype.kind in "iuf" and len(size) and not np.abs(size.astype(np.float64)).max() < _MOST_LABEL:
        # Labels may come as doubles, which do not distinguish larger integers.
        raise ValueError(f"{name} must contain numbers below 2**53, or text")
    distinct = np.unique(array)
    if len(distinct) != len(array):
        raise ValueError(f"{name} must not contain a label twice")
    if len(distinct) < least:
        raise ValueError(f"{name} must contain at least {least} labels, got {len(distinct)}")
    return distinct


def _is_number(label: object) -> bool:
    return isinstance(label, numbers.Real | np.bool_) and label == label


def check_bounds(value: Any, name: str, hint: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return public bounds as two arrays of shape () or (n_columns,). `hint` names the bounded values."""
    if value is None:
        encoded = ". After a TableEncoder, pass **encoder.parameters(estimator), which holds the encoded bounds"
        raise ValueError(
            f"{name} must be given: (lower, upper) of {hint}, numbers or one per "
            f"{'target' if name == 'bounds_y' else 'column'}, from what is publicly known. Values beyond are clipped. "
            "They are never read from the data, because that would be a release. For a table, pass "
            "schema=Schema({...}, target=...) instead, which declares them"
            f"{'' if name == 'bounds_y' or hint == 'the columns' else encoded}"
        )
    lower, upper = _ends(value)
    if lower.ndim > 1 or lower.size == 0:
        raise ValueError(f"{name} must be a pair (lower, upper) of numbers, or of sequences with one number per column")
    with np.errstate(over="ignore", invalid="ignore"):
        width = upper - lower
        good = (width >= LEAST) & (np.maximum(np.abs(lower), np.abs(upper)) <= MOST)
    if not np.all(good):
        raise ValueError(
            f"{name} must have lower bounds below the upper ones, by {LEAST:g} at least, in [{-MOST:g}, {MOST:g}]"
        )
    return lower, upper


def _ends(value: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    nothing = np.empty((0, 0)), np.empty((0, 0))
    if isinstance(value, str | bytes | Set | Mapping | Iterator):
        return nothing
    try:
        lower, upper = (real_numbers(bound) for bound in value)
        if lower is None or upper is None:
            return nothing
        lower, upper = (np.array(bound) for bound in np.broadcast_arrays(lower, upper))
    except Exception:
        return nothing
    return lower, upper


def columns_of(
    bounds: tuple[NDArray[np.float64], NDArray[np.float64]], name: str, n_columns: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the result of `check_bounds` with one entry per column."""
    if bounds[0].ndim and len(bounds[0]) != n_columns:
        raise ValueError(f"{name} has bounds for {len(bounds[0])} columns, and there are {n_columns}")
    lower, upper = (np.broadcast_to(bound, (n_columns,)) for bound in bounds)
    return lower, upper


Rule = Callable[[Any, str], Any]
Rules = Mapping[str, Rule]


@dataclass(frozen=True)
class Real:
    """A real number within limits. With `zero`, 0 is allowed, too."""

    least: float = LEAST
    most: float = MOST
    zero: bool = False

    def __call__(self, value: object, name: str) -> float:
        if self.zero and check_positive(value, name, least=0.0, most=self.most) == 0:
            return 0.0
        return check_positive(value, name, least=self.least, most=self.most)


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
