"""Warnings that point to the line of the user's code, however deep inside they are raised."""

from __future__ import annotations

import sys
import warnings

# This package, and the wrappers of scikit-learn around methods of estimators.
_INSIDE = ("skdp", "sklearn.callback", "sklearn.utils")


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the innermost line outside of this package. The message must hold public quantities only."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_inside(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in _INSIDE)
