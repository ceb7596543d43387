"""The public maps from bounds of columns or of targets to [-1, 1]."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks.params import check_bounds, check_positive, columns_of
from ..checks.values import shown
from ..sensitivity import with_data

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scaling:
    """Public centre and half width: an entry for each column, or numbers for a single target."""

    lower: Any
    upper: Any
    centre: Any
    half: Any

    @classmethod
    def of(cls, bounds: tuple[Array, Array], name: str, n_columns: int, centred: bool) -> Scaling:
        """Return the map of columns from checked bounds. Without `centred`, 0 is mapped to 0."""
        lower, upper = columns_of(bounds, name, n_columns)
        centre = lower / 2 + upper / 2 if centred else np.zeros(n_columns)
        half = (upper - lower) / 2 if centred else np.maximum(np.abs(lower), np.abs(upper))
        return cls(lower, upper, centre, half)

    @classmethod
    def of_target(cls, bounds: Any, centred: bool) -> Scaling:
        """Return the map of a single target from the user's `bounds_y`."""
        checked = check_bounds(bounds, "bounds_y", "the targets")
        if checked[0].size != 1:
            raise ValueError("bounds_y must be a pair of numbers")
        return cls.of(checked, "bounds_y", 1, centred)._single()

    def _single(self) -> Scaling:
        return Scaling(*(float(bounds[0]) for bounds in (self.lower, self.upper, self.centre, self.half)))

    def within(self, lower: Array, upper: Array, centred: bool) -> Scaling:
        """Return the map of targets in narrower bounds, one pair for each target."""
        narrower = self.of((lower, upper), "bounds_y", len(lower), centred)
        return narrower if np.ndim(self.lower) else narrower._single()

    def apply(self, values: NDArray, out: Array) -> None:
        """Clip a block of values to the bounds, and map these into [-1, 1]."""
        with np.errstate(under="ignore"):
            np.clip(values, self.lower, self.upper, out=out)
            out -= self.centre
            out /= self.half
        # If bounds are close together and far from 0, rounding can leave the box.
        np.clip(out, -1.0, 1.0, out=out)

    @cached_property
    def keeps_zeros(self) -> bool:
        """Whether 0 is mapped to 0 in every column, so that sparse rows stay sparse."""
        zeros = np.zeros(len(self.half))
        self.apply(zeros, zeros)
        return not zeros.any()

    def apply_sparse(self, rows: Any) -> Any:
        """Return scaled sparse rows. Only if zeros are kept."""
        at = rows.indices
        values = rows.data.astype(np.float64)
        by_entry = (numbers[at] for numbers in (self.lower, self.upper, self.centre, self.half))
        Scaling(*by_entry).apply(values, values)
        return with_data(rows, values)

    def scaled(self, y: NDArray) -> Array:
        """Return a single target, scaled."""
        out = np.array(y, dtype=np.float64)
        self.apply(out, out)
        return out

    def clipped(self, predictions: Array) -> Array:
        """Return predictions that are clipped to the bounds, in place."""
        return np.clip(predictions, self.lower, self.upper, out=predictions)

    def columns(self, values: NDArray) -> Array:
        """Return targets, in one column or more, scaled."""
        out = np.empty((len(values), len(self.half)))
        self.apply(values.reshape(out.shape), out)
        return out

    def huber_threshold(self, value: Any, default: float, least: float) -> float:
        """Return the checked threshold of Huber's loss, in half ranges of a single target."""
        if value is None:
            return default
        threshold = check_positive(value, "huber_threshold") / self.half
        if threshold < least:
            raise ValueError(
                f"huber_threshold must be at least {least:g} times half the range of the targets, "
                f"which is {self.half:g}, got {shown(value)}"
            )
        return threshold
