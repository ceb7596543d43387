"""Results of blocks: their public bounds, their aggregation, and the models that they are read from and put into."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..release.blocks import prepared
from ..sensitivity import SUM_BITS, blocks_l2

Array = NDArray[np.float64]

# The methods of a model that are available.
_METHODS = ("predict", "predict_proba", "decision_function")

# Larger numbers count as infinite.
_MOST = 1e150


@dataclass(frozen=True, eq=False)
class Region:
    """Public bounds of the result of one block: a box, or a ball."""

    centre: Array
    half: Array
    ball: bool

    @property
    def size(self) -> int:
        return len(self.centre)

    @property
    def l2(self) -> float:
        return blocks_l2(1, self.size) if self.ball else blocks_l2(self.size, 1)

    def clip(self, moves: Array) -> Array:
        """Clip differences to the centre, in units of `half`."""
        moves = moves.clip(-_MOST, _MOST)
        return moves / max(1.0, float(np.linalg.norm(moves))) if self.ball else moves.clip(-1.0, 1.0)

    def _moves(self, result: Array) -> Array:
        with np.errstate(all="ignore"):
            return self.clip((result - self.centre) / self.half)

    def steps(self, result: Array) -> NDArray[np.int64]:
        """Return a clipped result in steps of ``2**-SUM_BITS`` from the centre."""
        return np.rint(np.ldexp(self._moves(result), SUM_BITS)).astype(np.int64)

    def cells(self, result: Array, grid_size: int) -> NDArray[np.intp]:
        """Return the cell of each number of a clipped result."""
        return np.floor((self._moves(result) + 1) / 2 * grid_size).clip(0, grid_size - 1).astype(np.intp)


def cell_scores(counts: Array) -> Array:
    r"""Return the score of each cell of a grid: minus its distance from the median. One block moves it by at most 1.

    Let :math:`r` results be below a cell, and :math:`s` below it or in it. Its score is minus the distance of half the
    number of blocks from :math:`[r, s]`. If the result of one block moves, :math:`r` and :math:`s` move by at most 1,
    and so does the score. Some scores increase, and others decrease. A block that crosses the grid attains both.
    """
    upto = np.cumsum(counts, axis=1)
    middle = upto[:, -1:] / 2
    return np.asarray(np.minimum(np.minimum(upto - middle, middle - (upto - counts)), 0.0))


def made_up_rows(n_rows: int, n_features: int) -> Array:
    """Return rows in the unit box that are the same each time, and hence public: scrambled numbers from 1 on."""
    numbers = np.arange(1, n_rows * n_features + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return (numbers >> np.uint64(11)).astype(np.float64).reshape(n_rows, n_features) * 2.0**-53


def as_numbers(value: Any) -> Array:
    """Return real numbers in one vector. Other values are an error."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise TypeError("a result must hold real numbers")
    return np.ravel(array).astype(np.float64)


def numbers_of(model: Any, attributes: tuple[str, ...]) -> Array:
    """Return fitted attributes in one vector."""
    return np.concatenate([as_numbers(getattr(model, name)) for name in attributes])


def shapes_of(model: Any, attributes: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of fitted attributes."""
    return tuple(np.shape(getattr(model, name)) for name in attributes)


def fitted(estimator: Any, seed: int, rows: NDArray, targets: NDArray | None) -> Any:
    """Return a clone that is fitted to rows, and to targets if there are any."""
    model = prepared(estimator, seed)
    return model.fit(rows) if targets is None else model.fit(rows, targets)


@dataclass(frozen=True, eq=False)
class Template:
    """An estimator fitted to made-up rows, and the shapes of its results. A function has no attributes."""

    model: Any
    attributes: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        return sum(math.prod(shape) for shape in self.shapes)


def block_result(
    estimator: Any,
    attributes: tuple[str, ...],
    shapes: tuple[tuple[int, ...], ...],
    classes: NDArray | None,
    rows: NDArray,
    targets: NDArray | None,
    seed: int,
) -> Array:
    """Return the result of one block, or raise an exception."""
    if len(rows) == 0:
        raise ValueError
    if not attributes:
        # It may keep data, or have a generator of its own.
        result = as_numbers(deepcopy(estimator)(rows))
        shapes_of_block: tuple[tuple[int, ...], ...] = (result.shape,)
    else:
        if classes is not None and targets is not None:
            # Most classifiers need two classes, and would have no result for a block with a single class.
            # A class without records has one at their mean.
            missing = np.setdiff1d(classes, targets)
            middle = np.tile(rows.mean(axis=0, dtype=np.float64).astype(rows.dtype), (len(missing), 1))
            rows, targets = np.concatenate([rows, middle]), np.concatenate([targets, missing])
        model = fitted(estimator, seed, rows, targets)
        if classes is not None and not np.array_equal(model.classes_, classes):
            raise ValueError
        result, shapes_of_block = numbers_of(model, attributes), shapes_of(model, attributes)
    if shapes_of_block != shapes or not np.all(np.isfinite(result)):
        raise ValueError
    return result


def postprocess_mean(released: Array, region: Region, n_blocks: int) -> Array:
    """Return the mean over blocks, within the bounds."""
    return np.asarray(region.centre + region.half * region.clip(released / n_blocks))


def postprocess_model(model: Any, result: Array, attributes: tuple[str, ...]) -> Any:
    """Put a result into a model that was fitted to made-up rows."""
    start = 0
    for name in attributes:
        shape = np.shape(getattr(model, name))
        numbers = result[start : start + math.prod(shape)].reshape(shape)
        start += math.prod(shape)
        setattr(model, name, numbers.copy() if shape else np.float64(numbers))
    return model


def predict_the_same(models: list[Any], rows: Array) -> bool:
    """Tell whether two models agree on public rows in all available methods."""
    for method in _METHODS:
        if hasattr(models[0], method):
            first, second = (np.asarray(getattr(model, method)(rows)) for model in models)
            equal = np.allclose if first.dtype.kind == "f" else np.array_equal
            if first.shape != second.shape or not equal(first, second):
                return False
    return True
