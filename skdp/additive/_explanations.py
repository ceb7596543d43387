"""Importances, explanations, edits and exports of fitted additive models. All of them are post-processing."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression
from sklearn.utils.validation import check_is_fitted

from ..checks.params import real_numbers
from ..schema.declared import MISSING_CELL
from ._cells import Term

Array = NDArray[np.float64]


def term_importances(terms: Sequence[Term], tables: list[Array], counts: list[Array]) -> Array:
    """Return the mean absolute value that each term adds, for records with independent columns."""
    found = []
    for term, values in zip(terms, tables, strict=True):
        weights = np.ones(1)
        for j, places in zip(term.columns, term.maps, strict=True):
            own: Array = np.bincount(places[:-1], np.maximum(counts[j], 0.0), minlength=int(places[-1])).astype(float)
            own = own if own.sum() > 0 else np.ones(len(own))
            weights = np.outer(weights, own / own.sum()).ravel()
        found.append(float(weights @ np.abs(values).reshape(len(weights), -1).mean(axis=1)))
    return np.array(found)


_FORMAT = "skdp.AdditiveModel"


class AdditiveExplanations:
    """Explanations, edits and exports of a fitted additive model."""

    terms_: list[Array]
    term_columns_: list[tuple[int, ...]]
    cell_counts_: list[Array]
    bin_edges_: list[Array | None]
    intercept_: Any
    privacy_: Any
    _all_terms: tuple[Term, ...]

    def explain_local(self, X: Any) -> list[dict[str, Any]]:
        """Return the contributions of terms to the score of each row, in order of decreasing size.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        explanations : list of dict
            For each row, a dict from names of terms, and ``"intercept"`` at the end, to contributions. They add up to
            the score. A contribution is a number, or for three classes or more a dict from labels to numbers. For two
            classes, the score is that of ``decision_function``, and positive contributions are in favour of
            ``classes_[1]``.
        """
        intercept = np.asarray(self.intercept_)
        intercept = intercept.ravel()[0] if intercept.size == 1 else intercept
        labels = getattr(self, "classes_", np.array([])).tolist()

        def named(value: Any) -> Any:
            return dict(zip(labels, value.tolist(), strict=True)) if np.ndim(value) else float(value)

        found = []
        for row in self.contributions(X):  # type: ignore[attr-defined]
            order = np.argsort(-np.abs(row).reshape(len(row), -1).max(axis=1), kind="stable")
            own = {self.term_names_[i]: named(row[i]) for i in order}
            found.append({**own, "intercept": named(intercept)})
        return found

    @property
    def term_importances_(self) -> Array:
        """Mean absolute value that each term adds to the score, by the released counts, of shape (n_terms,)."""
        check_is_fitted(self, "terms_")
        return term_importances(self._all_terms, self.terms_, self.cell_counts_)

    @property
    def feature_importances_(self) -> Array:
        """Importances of the columns, with the sum 1, of shape (n_features,).

        The importance of a table of several columns is divided evenly among them.
        """
        check_is_fitted(self, "terms_")
        sizes = np.zeros(len(self.cell_counts_))
        for columns, own in zip(self.term_columns_, self.term_importances_, strict=True):
            for j in columns:
                sizes[j] += own / len(columns)
        return self._importances(sizes)  # type: ignore[attr-defined]

    def with_term(self, name: str, values: Any) -> Self:
        """Return a copy of the model in which a term has other values.

        Parameters
        ----------
        name : str
            Name of the term, from ``term_names_``.
        values : array-like
            Values of the cells, of the shape of the term in ``terms_``.

        Returns
        -------
        model : object
            A fitted copy.

        Notes
        -----
        **Privacy.** The guarantee is unchanged if the values are public, or computed from released numbers. It does not
        cover values that depend on private records in another way.
        """
        place = self._place(name)
        given = real_numbers(values)
        if given is None or given.shape != self.terms_[place].shape or not np.all(np.isfinite(given)):
            raise ValueError(f"values must be finite numbers of shape {self.terms_[place].shape}")
        edited = copy(self)
        edited.terms_ = [*self.terms_[:place], given, *self.terms_[place + 1 :]]
        return edited

    def monotone(self, directions: Mapping[str, int]) -> Self:
        """Return a copy of the model with monotone curves.

        Each curve is replaced by the nearest monotone curve, with the released counts as weights of the cells. The cell
        of missing values keeps its value.

        Parameters
        ----------
        directions : dict of str to int
            1 for an increasing curve and -1 for a decreasing curve, by the name of the term. Terms must have one column
            with bins, or with ordered categories.

        Returns
        -------
        model : object
            A fitted copy.

        Notes
        -----
        **Privacy.** This is post-processing of released numbers and does not use any budget.
        """
        if not isinstance(directions, Mapping):
            raise TypeError(f"directions must map names of terms to 1 or -1, got {type(directions).__name__}")
        edited = copy(self)
        for name, direction in directions.items():
            place = self._place(name)
            if direction not in (1, -1):
                raise ValueError(f"directions must be 1 or -1, got {direction!r} for {name!r}")
            values, columns = self.terms_[place], self.term_columns_[place]
            if len(columns) > 1 or self.bin_edges_[columns[0]] is None or values.ndim > 1:
                raise ValueError(f"the term {name!r} is not a single curve over the bins of one column")
            n_steps = len(values) - (self.cell_names_[columns[0]][-1] == MISSING_CELL)
            weights = np.maximum(self.cell_counts_[columns[0]][:n_steps], 1.0)
            curve = IsotonicRegression(increasing=direction == 1).fit_transform(
                np.arange(n_steps), values[:n_steps], sample_weight=weights
            )
            edited = edited.with_term(name, np.append(curve, values[n_steps:]))
        return edited

    def to_json(self, path: Any = None) -> str:
        """Return the model as JSON, for other programs and for archives.

        Parameters
        ----------
        path : str or pathlib.Path, default=None
            File to write the text to. If None, nothing is written.

        Returns
        -------
        text : str
            An object with the keys ``format``, ``version``, ``classes`` (None for regression), ``intercept``, ``terms``
            and ``privacy``. Each term has a ``name``, its ``columns`` (each with ``name``, and ``edges`` of bins or
            ``cells``) and the ``values`` of its cells. In terms of several columns, ``merged`` has the position of each
            cell of a column in ``values``. The score of a row is the sum of the values of its cells and the intercept.
            Entries in no cell add 0.
        """
        check_is_fitted(self, "terms_")
        classes = getattr(self, "classes_", None)
        names = self.term_names_[: len(self.cell_counts_)]
        content = {
            "format": _FORMAT,
            "version": 1,
            "classes": None if classes is None else classes.tolist(),
            "intercept": np.asarray(self.intercept_).tolist(),
            "terms": [
                {
                    "name": name,
                    "columns": [
                        self._described(j, names[j], cells) for j, cells in zip(term.columns, term.maps, strict=True)
                    ],
                    "values": values.tolist(),
                }
                for name, term, values in zip(self.term_names_, self._all_terms, self.terms_, strict=True)
            ],
            "privacy": str(self.privacy_),
        }
        text = json.dumps(content, indent=1)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text

    def _described(self, j: int, name: str, cells: NDArray) -> dict[str, Any]:
        edges = self.bin_edges_[j]
        bins = {} if edges is None else {"edges": edges.tolist()}
        every = np.arange(len(cells))
        merged = {} if np.array_equal(cells, every) else {"merged": cells[:-1].tolist()}
        return {"name": name, **bins, "cells": self.cell_names_[j], **merged}

    @property
    @abstractmethod
    def term_names_(self) -> list[str]:
        """Names of the terms."""

    @property
    @abstractmethod
    def cell_names_(self) -> list[list[str]]:
        """Names of the cells of each column."""

    def _place(self, name: Any) -> int:
        check_is_fitted(self, "terms_")
        if name not in self.term_names_:
            raise ValueError(f"there is no term {name!r}; the terms are {', '.join(map(repr, self.term_names_))}")
        return self.term_names_.index(name)
