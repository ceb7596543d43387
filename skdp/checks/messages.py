"""Values in messages, warnings that point to the line of the user's code, and functions that other packages provide."""

from __future__ import annotations

import math
import numbers
import sys
import threading
import warnings
from importlib import import_module
from types import FrameType
from typing import Any
from weakref import WeakSet

from ..exceptions import PrivacyAssumptionWarning

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
                "budget covers them. Use skdp.private_cross_val_score, or private_score on other records, also with "
                "metric='histogram' in place of a calibration",
                PrivacyAssumptionWarning,
            )
        if charged and outer is not None and module == "sklearn.pipeline" and hasattr(outer, "get_params"):
            learning = call_provided("learning_classes", outer)
            if learning:
                return warn(
                    f"The guarantee does not cover {', '.join(learning)}, because a fit of such a step learns from the "
                    "records without noise. Use skdp.make_private_pipeline, which refuses such steps, with "
                    "DPStandardScaler, BoundsScaler, PublicBinner or DPPCA in place of them",
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


_HOME: dict[str, str] = {}


def provide(name: str, module: str) -> None:
    """Register the module of the function `name`."""
    _HOME[name] = module


def call_provided(name: str, *args: Any) -> Any:
    """Call a registered function."""
    return getattr(import_module(_HOME[name]), name)(*args)
