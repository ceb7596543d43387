"""The effect of the noise of one or two perturbed objectives on the curves, from released numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..schema.columns import Codes
from ._groups import Centred
from ._rounds import Fitted
from ._scores import logits
from ._terms import sums_of_values
from ._uncertainty import N_PSEUDO, centred, inverse

Array = NDArray[np.float64]


Moves = list[tuple[Fitted, Array, Array, Array]]


def rounds_noise(
    fits: list[Fitted], codes: Codes, count: float, counts: list[Array]
) -> tuple[list[Array], list[Array]]:
    """Return standard deviations of the values of cells, for the curvature at these records, and without curvature."""
    layout = fits[0].features.layout
    if _is_large(fits):
        found = Products.of(fits, codes, count, True), Products.of(fits, codes[:, :1], count, False)
        bent, flat = ([one.in_cells(t, counts) for t in range(len(layout.terms))] for one in found)
        return bent, flat

    def in_cells(moves: Moves) -> list[Array]:
        return [
            _deviations(moves, lambda features, t=t, own=own: centred(features.cell_rows(t), own.columns, counts))  # type: ignore[misc]
            for t, own in enumerate(layout.terms)
        ]

    return in_cells(_moves(fits, codes, count, True)), in_cells(_moves(fits, codes, count, False))


def noise_in_scores(fits: list[Fitted], records: Codes, count: float) -> Callable[[Codes], Array]:
    """Return a function that maps rows to standard deviations of scores, for the curvature at these records."""
    if _is_large(fits):
        return Products.of(fits, records, count, True).in_scores
    moves = _moves(fits, records, count, True)
    return lambda codes: _deviations(moves, lambda features: _rows(features, codes))


def _rows(features: Centred, codes: Codes) -> Array:
    return np.column_stack([features.features(codes), np.full(codes.shape[1], features.layout.constant)])


def _moves(fits: list[Fitted], codes: Codes, count: float, bends: bool) -> Moves:
    """Return the records' rows, their weights, and the effect of a unit of noise on coefficients, for each round."""
    # To first order, the noise of a round moves its coefficients by minus the inverse of the second derivative. The
    # second round responds to the changes of the first round. Weights and counts are taken as fixed.
    out = []
    for fit, weights in zip(fits, _weights(fits, codes, count, bends), strict=True):
        rows = _rows(fit.features, codes)
        moved = inverse(rows.T @ (rows * weights[:, None]) + fit.ridge * np.eye(rows.shape[1]))
        out.append((fit, rows, weights, moved))
    return out


def _weights(fits: list[Fitted], codes: Codes, count: float, bends: bool) -> list[Array]:
    """Return the second derivative of each record's loss in its score, for each round."""
    before, scores = [], np.zeros(codes.shape[1])
    for fit in fits:
        scores = scores + fit.scores(codes)
        before.append(scores)
    odds = logits(scores, fits[-1].of.margin)
    out = []
    for fit, own in zip(fits, before, strict=True):
        weights = np.zeros(len(own))
        if bends:
            for sign in (1.0, -1.0):
                u = special.expit(fit.of.margin - sign * own)
                weights += special.expit(sign * odds) * u * (1 - u)
            weights *= fit.features.record_weights(codes) * fit.of.weight * count / len(own)
        out.append(weights)
    return out


def _deviations(moves: Moves, values_of: Callable[[Centred], Array]) -> Array:
    """Return standard deviations of linear functions of the coefficients, given by rows for each round, as a column."""
    variance, later = 0.0, None
    for fit, rows, weights, moved in reversed(moves):
        values = values_of(fit.features)
        if later is not None:
            # The coefficients of the later round compensate the changes of its records' scores.
            after, after_rows, after_weights = later
            values = values - (after @ after_rows.T * after_weights) @ rows
        after = values @ moved
        variance = variance + fit.of.noise**2 * (after**2).sum(axis=1)
        later = after, rows, weights
    return np.sqrt(variance)[:, None]


def _is_large(fits: list[Fitted]) -> bool:
    """Tell whether there are more features than pseudo-records, so that products of records are the smaller matrix."""
    return fits[-1].features.layout.n_features > N_PSEUDO


@dataclass(frozen=True, eq=False)
class Products:
    r"""The effect of the noise for many features, by products of the features of at most `N_PSEUDO` records.

    Let the records of a round have the rows :math:`R` and the weights :math:`W`, and let the ridge be :math:`\lambda`.
    The inverse is :math:`(1-R^TBR)/\lambda` with :math:`B=W^{1/2}(\lambda+W^{1/2}RR^TW^{1/2})^{-1}W^{1/2}`. Therefore a
    linear function :math:`v` of the coefficients enters by its squared norm and by :math:`Rv` only.
    """

    fits: list[Fitted]
    cells: list[list[Array]]  # Products of the features of each term's cells, and of no cell, with those of records.
    weights: list[Array]
    grams: list[Array]  # R R^T.
    solved: list[Array]  # B.

    @classmethod
    def of(cls, fits: list[Fitted], codes: Codes, count: float, bends: bool) -> Products:
        codes = codes[:, :: -(-codes.shape[1] // N_PSEUDO)]
        weights = _weights(fits, codes, count, bends)
        cells, grams, solved = [], [], []
        for fit, own in zip(fits, weights, strict=True):
            features = fit.features
            products = [_cell_rows(features, t) for t in range(len(codes))]
            cells.append([rows @ rows[of_term].T for rows, of_term in zip(products, codes, strict=True)])
            gram = sum(table[of_term] for table, of_term in zip(cells[-1], codes, strict=True))
            grams.append(gram + features.layout.constant**2)
            roots = np.sqrt(np.outer(own, own))
            solved.append(roots * inverse(fit.ridge * np.eye(len(own)) + roots * grams[-1]))
        return cls(fits, cells, weights, grams, solved)

    def in_cells(self, t: int, counts: list[Array]) -> Array:
        """Return standard deviations of the values of a term's cells, as a column."""
        columns = self.fits[0].features.layout.terms[t].columns
        squares = [(centred(_cell_rows(fit.features, t)[:-1], columns, counts) ** 2).sum(axis=1) for fit in self.fits]
        return self._deviations(squares, [centred(tables[t][:-1], columns, counts) for tables in self.cells])

    def in_scores(self, codes: Codes) -> Array:
        """Return standard deviations of the scores of records, as a column."""
        squares, products = [], []
        for fit, tables in zip(self.fits, self.cells, strict=True):
            constant = fit.features.layout.constant**2
            squares.append(sums_of_values(fit.features.squares, constant, codes))
            products.append(sum(table[own] for table, own in zip(tables, codes, strict=True)) + constant)
        return self._deviations(squares, products)

    def _deviations(self, squares: list[Array], products: list[Array]) -> Array:
        """Return standard deviations of linear functions, from their squared norms and products with records."""
        variance, after = 0.0, None
        steps = zip(self.fits, squares, products, self.weights, self.grams, self.solved, strict=True)
        for fit, square, product, weights, gram, solved in reversed(list(steps)):
            if after is not None:
                moved = after @ gram
                square = square - 2 * (after * product).sum(axis=1) + (after * moved).sum(axis=1)
                product = product - moved
            response = product @ solved
            left = product - response @ gram
            variance = variance + (fit.of.noise / fit.ridge) ** 2 * (square - (response * (product + left)).sum(axis=1))
            after = weights * left / fit.ridge
        return np.sqrt(np.maximum(variance, 0.0))[:, None]


def _cell_rows(features: Centred, t: int) -> Array:
    """Return the features of the cells of a term, and of no cell, of the groups of this term."""
    cells = np.arange(features.layout.sizes[t] + 1)
    groups = [k for k, group in enumerate(features.layout.groups) if group.term == t]
    return np.hstack([np.zeros((len(cells), 0)), *(features.rows_of_records(k, cells) for k in groups)])
