"""Outputs and labels of released networks. Those of a row do not depend on other rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..sensitivity import row_products, short_blocks
from ._gradients import LARGEST

Array = NDArray[np.float64]

_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Outputs:
    """The map from rows to the outputs of a network, and to codes of labels."""

    coefs: list[Array]
    intercepts: list[Array]
    activation: str

    def __call__(self, X: NDArray) -> Array:
        """Return the outputs, of shape (n_rows, n_outputs)."""
        out = np.empty((len(X), len(self.intercepts[-1])))
        with np.errstate(all="ignore"):
            for block in self._parts(X):
                a = X[block]
                for coef, intercept in zip(self.coefs[:-1], self.intercepts[:-1], strict=True):
                    a = row_products(a, coef) + intercept
                    self._activate(a)
                out[block] = row_products(a, self.coefs[-1]) + self.intercepts[-1]
        return out

    def codes(self, X: NDArray) -> NDArray[np.intp]:
        """Return the codes of the labels, which are those of the outputs, in less time.

        Products of matrices are faster than `row_products`, but their last bits can depend on all rows. Where rounding
        cannot change the code, it is certain. Other rows take the outputs.
        """
        codes = np.empty(len(X), dtype=np.intp)
        with np.errstate(all="ignore"):
            for block in self._parts(X):
                rows = np.asarray(X[block], dtype=np.float64)
                outputs, slack = self._fast(rows)
                codes[block] = codes_of(outputs)
                if outputs.shape[1] == 1:
                    certain = np.abs(outputs[:, 0]) > slack
                else:
                    certain = np.count_nonzero(outputs >= outputs.max(axis=1)[:, None] - slack, axis=1) == 1
                (open_,) = np.nonzero(~certain)
                if open_.size:
                    codes[block][open_] = codes_of(self(rows[open_]))
        return codes

    def _fast(self, rows: Array) -> tuple[Array, float]:
        """Return outputs by products of matrices, and four times what rounding can change in differences of two."""
        a, slack, last = rows, 0.0, len(self.coefs) - 1
        for i, (coef, intercept) in enumerate(zip(self.coefs, self.intercepts, strict=True)):
            # The lengths of all rows together, and of all columns, are bounds on those of each.
            steepest = _length(coef)
            terms = _length(a) * steepest + _length(intercept)
            slack = steepest * slack + 8 * (len(coef) + 2) * _EPSILON * terms
            a = a @ coef
            a += intercept
            if i < last:
                # No activation has a slope of more than 1.
                self._activate(a)
                slack += 64 * _EPSILON * math.sqrt(len(intercept)) * LARGEST[self.activation]
        return a, slack

    def _activate(self, a: Array) -> None:
        if self.activation == "tanh":
            np.tanh(a, out=a)
        else:
            np.clip(a, 0.0, LARGEST["relu"], out=a)

    def _parts(self, X: NDArray) -> list[slice]:
        return list(short_blocks(len(X), max(max(coef.shape) for coef in self.coefs)))


def codes_of(outputs: Array) -> NDArray[np.intp]:
    """Return the codes of labels for outputs, of which two classes have one."""
    return (outputs[:, 0] > 0).astype(np.intp) if outputs.shape[1] == 1 else outputs.argmax(axis=1)


def _length(values: Array) -> float:
    # Squares that are too small for doubles do no harm to what is added.
    return math.sqrt(1e-280 + float(np.vdot(values, values)))
