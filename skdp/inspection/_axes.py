"""The matplotlib axes of a display."""

from __future__ import annotations

from typing import Any


def axes_of(ax: Any) -> Any:
    """Return `ax`, or new axes if it is None. Raise ImportError if matplotlib is not installed."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install matplotlib") from None
    return plt.subplots(layout="constrained")[1]
