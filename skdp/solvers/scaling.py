"""The public map from the range of a target to [-1, 1]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks.params import check_bounds

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Targets:
    """The map from the range of the targets to [-1, 1]."""

    centre: float
    half: float

    @classmethod
    def of(cls, bounds: Any, fit_intercept: bool) -> Targets:
        lower, upper = check_bounds(bounds, "bounds_y", "the targets")
        if lower.size != 1:
            raise ValueError("bounds_y must be a pair of numbers")
        low, high = float(lower.ravel()[0]), float(upper.ravel()[0])
        if fit_intercept:
            return cls(low / 2 + high / 2, high / 2 - low / 2)
        return cls(0.0, max(abs(low), abs(high)))

    def scaled(self, y: NDArray, bounds: Any) -> Array:
        lower, upper = check_bounds(bounds, "bounds_y", "the targets")
        return np.clip((np.clip(y, lower, upper) - self.centre) / self.half, -1.0, 1.0)
