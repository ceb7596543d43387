"""Synthetic tables from one release: the estimator."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..accounting import PrivacyCost
from ..checks.params import Checked, Integer, OneOf, Rules, check_integer
from ..mechanisms import NoiseSource
from ..parts.arrays import PartedArray, rowwise
from ..release.estimates import Counts, Each, Estimate
from ..release.estimator import PrivateEstimator, Records, Shape
from ..release.reserve import Reserve, ReservedPart
from ..release.session import CallbackSupportMixin, PrivacyGuarantee, ReleaseSession
from ..release.units import Unit
from ..schema.encoding import Encoding, store_columns
from ..schema.entries import table_columns
from ..schema.schema import as_schema, field_of
from ._cells import TableCells, as_container, kind_of, whole_table
from ._graph import Array, Model
from ._rounds import THEOREM_OF_FITS, ReleasedTable, Releases

#: Largest number of cells of a table of counts.
MOST_CELLS_OF_TABLE = 2**20


class DPTableGenerator(CallbackSupportMixin, PrivateEstimator, BaseEstimator):
    r"""Generator of synthetic tables from one differentially private release.

    .. versionadded:: 0.2

    The counts of all columns are released first, and cells with few records are merged. Then, tables of two or three
    columns are chosen, released and fitted by a graphical model. Drawing rows from it does not use any budget.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1). If 0, the noise is discrete Laplace noise. A small positive value, such as
        1e-6, is recommended, because a fit consists of many releases. The noise is then Gaussian, and far smaller.
    schema : Schema
        Public facts about all columns of the table. The target, if there is one, must be declared with its name.
    structure : {"auto", "independent", "tree", "rounds"}, default="auto"
        Tables that are released. ``"independent"`` releases columns only. ``"tree"`` adds a tree of tables of two
        columns and the target (or of two columns, without a target). ``"rounds"`` chooses tables one after the other,
        by what the model does not fit yet. If ``"auto"``, the released number of records and the budget decide.
    most_cells : int, default=131072
        Largest number of cells of the graphical model. It limits memory and time.
    rows_per_group : int, default=None
        Public limit on the rows of one group, such as a person. Further rows are left out at random. The guarantee is
        then for the whole group, with `rows_per_group` times the noise. If None, it is for one row.
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.
    verbose : int, default=0
        Lines of progress to print: 0 for none, 1 for about ten in each phase (see :doc:`/user_guide/progress`).

    Attributes
    ----------
    structure_ : str
        Structure of the fit: "independent", "tree" or "rounds".
    tables_ : list of tuple of str
        Names of the columns of each released table, in the order of the releases.
    n_samples_estimate_ : float
        Released number of records.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.
    n_features_in_ : int
        Number of columns of the table.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns.

    See Also
    --------
    skdp.additive.DPAdditiveClassifier : A private model. It is more accurate than a model of synthetic rows.
    skdp.inspection.MarginalsDisplay : Pictures of released counts and of the model.
    NoisyHistogram : A histogram over two or three columns.

    Notes
    -----
    **Privacy.** The number of records, the counts of the cells of all columns, and the counts of chosen tables are
    released with noise (:ref:`theorems 1 and 2 <synthetic-tables-proof-theorem-1>`). Tables are chosen by the
    exponential mechanism (:ref:`theorem 3 <synthetic-tables-proof-theorem-3>`). Merged cells, the model, its number of
    steps, synthetic rows and the types of their columns are computed from releases and from the schema. The guarantee
    covers neither an error for entries that the schema refuses nor the time that `fit` takes.

    Standard errors that are computed from synthetic rows as if they were real are too small, because they do not
    include the noise. `marginal` returns counts with their noise.

    Examples
    --------
    >>> from skdp import Category, DPTableGenerator, Number, Schema
    >>> schema = Schema(
    ...     {"age": Number(18, 90, step=1), "work": ["private", "state"]},
    ...     target={"paid": ["no", "yes"]},
    ... )
    >>> table = schema.sample(5000)
    >>> generator = DPTableGenerator(
    ...     schema=schema, epsilon=1.0, delta=1e-6, random_state=0
    ... ).fit(table)
    >>> generator.sample(1000, random_state=0).shape
    (1000, 3)
    """

    _takes_parts = True
    _released = frozenset({"structure_", "tables_", "n_samples_estimate_", "_cells", "_model", "_released_tables"})
    _public = frozenset({"_container"})
    _fixes_cost = True

    _parameter_rules: ClassVar[Rules] = {
        "structure": OneOf(("auto", "independent", "tree", "rounds")),
        "most_cells": Integer(64, 2**24),
    }

    _cells: TableCells
    _model: Model
    _released_tables: list[ReleasedTable]

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        schema: Any = None,
        structure: str = "auto",
        most_cells: int = 2**17,
        rows_per_group: int | None = None,
        max_weight: float | None = None,
        accountant: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.structure = structure
        self.most_cells = most_cells
        self.rows_per_group = rows_per_group
        self.max_weight = max_weight
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _encoding(self) -> Encoding | None:
        return None if self.schema is None else Encoding(whole_table(as_schema(self.schema)), "codes")

    def _check_together(self, parameters: Checked) -> None:
        parameters.cells = TableCells(as_schema(self.schema))

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, sample_weight: Any = None) -> Self:
        """Fit the generator to a private table, and spend epsilon and delta.

        Parameters
        ----------
        X : array-like, DataFrame, Table or dict
            The whole table, with the target. Columns that have names are found by name. In arrays and lists of rows,
            the columns are in the order of the schema, and the target is the last one.
        y : None
            Ignored, because the target is a column of the table.
        groups : array-like of shape (n_samples,), default=None
            Group of each row, as a number or a text. Required with `rows_per_group`, unless `schema` declares it.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights of the records. They require `max_weight`. Each record is kept with a probability
            proportional to its weight (see :ref:`weights`). The weight of a record must not depend on other records.

        Returns
        -------
        self : object
            The fitted generator.
        """
        return self._fit(X, None, groups, sample_weight=sample_weight)

    def _read(self, X: Any, y: Any, parameters: Checked) -> Any:
        like, schema = (X.meta if isinstance(X, PartedArray) else X), parameters.cells.schema
        codes = rowwise(parameters.cells.read, X)
        store_columns(self, schema)
        names = table_columns(like)[0]
        parameters.container = kind_of(like), [name for name in names or schema if name in schema]
        return codes, None, None, Shape(len(schema))

    def _plan(self, parameters: Checked, shape: Shape | None) -> tuple[PrivacyGuarantee, ReservedPart]:
        part = ReservedPart("tables", THEOREM_OF_FITS, parameters.epsilon, parameters.delta, 1.0)
        return Unit(parameters.rows_per_group).stated(part.plan()), part

    def _cost_of(self, parameters: Checked) -> PrivacyCost | None:
        return self._plan(parameters, None)[0].cost

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Checked, design: ReservedPart
    ) -> dict[str, Any]:
        rows = Unit(parameters.rows_per_group).rows
        releases = Releases(Reserve(session, design), parameters.cells, records.X, rows, parameters.most_cells)
        structure = releases.fit(parameters.structure)
        names = list(parameters.cells.schema)
        return {
            "structure_": structure,
            "tables_": [tuple(names[j] for j in table.columns) for table in releases.tables],
            "n_samples_estimate_": releases.model.total,
            "_cells": parameters.cells,
            "_model": releases.model,
            "_released_tables": releases.tables,
            "_container": parameters.container,
        }

    def sample(self, n_samples: int | None = None, random_state: Any = None) -> Any:
        """Draw synthetic rows. This is post-processing and does not use any budget.

        Parameters
        ----------
        n_samples : int, default=None
            Number of rows. If None, it is the released number of records, rounded.
        random_state : int, RandomState, Generator or None, default=None
            Seed of the rows. It need not be secret, because rows are drawn from released numbers.

        Returns
        -------
        table : DataFrame, Table, dict or ndarray
            A table of the kind of container that was passed to `fit`, without the column of groups. Missing entries are
            None or NaN. Other entries have the name of their cell, or in a column of numbers a number that is in no
            category. Numbers are uniform in their bins.
        """
        check_is_fitted(self, "privacy_")
        n = round(self._model.total) if n_samples is None else check_integer(n_samples, "n_samples", least=1)
        rng = NoiseSource(random_state).simulator("synthetic rows")
        by_column = zip(self._cells.columns, self._model.sample(n, rng).T, strict=True)
        table = {column.name: column.drawn(groups, rng) for column, groups in by_column}
        kind, order = self._container
        return as_container(kind, {name: table[name] for name in order})

    @property
    def biased_means_(self) -> list[str]:
        """Names of the columns of numbers whose synthetic mean noise in empty bins may bias, by released numbers."""
        check_is_fitted(self, "privacy_")
        of_columns = enumerate(self._cells.columns if self.privacy_.epsilon < math.inf else ())
        return [column.name for j, column in of_columns if column.biases_mean(self._model.table((j,)).ravel())]

    def score_samples(self, X: Any) -> Array:
        """Return the logarithm of the probability of the cells of each row.

        Parameters
        ----------
        X : array-like, DataFrame, Table or dict
            A table with the columns of the schema.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples,)
            Logarithms of probabilities. One record is spread evenly over the cells, so that all of them are finite.
        """
        check_is_fitted(self, "privacy_")
        columns, weight = self._cells.columns, 1 / (1 + self._model.total)
        cells = [column.within[codes] for column, codes in zip(columns, self._cells.read(X).T, strict=True)]
        groups = np.stack([column.groups[own] for column, own in zip(columns, cells, strict=True)], axis=1)
        out = self._model.log_probabilities(groups)
        for column, own in zip(columns, cells, strict=True):
            out += np.log((1 - weight) * column.shares + weight / np.bincount(column.groups)[column.groups])[own]
        return out

    def score(self, X: Any, y: Any = None) -> float:
        """Return the sum of the logarithms of the probabilities of rows.

        Parameters
        ----------
        X : array-like, DataFrame, Table or dict
            A table with the columns of the schema. The result is not private: its rows must be public.
        y : None
            Ignored.

        Returns
        -------
        score : float
            Sum of what `score_samples` returns.
        """
        return float(self.score_samples(X).sum())

    def marginal(self, columns: Any) -> Estimate:
        """Return the numbers of records in the cells of some columns. This does not use any budget.

        Parameters
        ----------
        columns : str or list of str
            Names of columns.

        Returns
        -------
        counts : Estimate
            If a released table has these columns, its counts with their noise, which may be negative. Otherwise, the
            counts of the model, whose error is not known (the standard error is NaN). The axes are in the order of
            `columns`. ``details`` has ``"released"``, the names of the ``"cells"`` of each axis, and the counts of
            the ``"model"``.
        """
        check_is_fitted(self, "privacy_")
        names = list(self._cells.schema)
        wanted = [columns] if isinstance(columns, str) else list(columns)
        if not wanted or len(set(wanted)) < len(wanted) or not set(wanted) <= set(names):
            raise ValueError(f"columns must be different names among {', '.join(map(repr, names))}")
        at = tuple(names.index(name) for name in wanted)
        size = math.prod(self._model.sizes[j] for j in at)
        if size > MOST_CELLS_OF_TABLE:
            raise ValueError(f"a table of these columns has {size} cells, and may have {MOST_CELLS_OF_TABLE}")
        groups = [self._cells.columns[j].names_of_groups() for j in at]
        model = self._model.table(at)
        released = [table.summed(at, self._model.sizes) for table in self._released_tables if {*at} <= {*table.columns}]
        value, errors, spread = model, np.full(model.shape, np.nan), None
        if released:
            value, laws = min(released, key=lambda table: np.mean([math.sqrt(law.variance) for law in table[1]]))
            errors = np.sqrt([law.variance for law in laws]).reshape(value.shape)
            spread = Each(tuple(map(Counts, value.ravel().tolist(), laws)), value.shape)
        details = {"released": bool(released), "cells": groups, "model": model}
        return Estimate(value, errors, self.privacy_, tuple(groups[0]) if len(at) == 1 else (), details, spread)

    def to_json(self, path: Any = None) -> str:
        """Return the model as JSON, for other programs and for archives.

        Parameters
        ----------
        path : str or pathlib.Path, default=None
            File to write the text to. If None, nothing is written.

        Returns
        -------
        text : str
            An object with the keys ``format``, ``version``, ``n_samples``, ``structure``, ``columns``, ``cliques`` and
            ``privacy``. A column has the keys of a field of a schema file, the names of its ``cells``, their
            ``groups``, and the ``shares`` of the cells in their group. A clique has the names of its ``columns``, and
            the ``probabilities`` of the groups of its columns given those of the first columns, of which it shares
            ``n_shared`` with an earlier clique.
        """
        check_is_fitted(self, "privacy_")
        names, tree = list(self._cells.schema), self._model.tree
        content = {
            "format": "skdp.TableGenerator",
            "version": 1,
            "n_samples": self._model.total,
            "structure": self.structure_,
            "columns": [
                {
                    **field_of(column.name, column.column),
                    "cells": column.names,
                    "groups": column.groups.tolist(),
                    "shares": column.shares.tolist(),
                }
                for column in self._cells.columns
            ],
            "cliques": [
                {
                    "columns": [names[j] for j in clique],
                    "n_shared": n_shared,
                    "probabilities": own.reshape(tree.shape(clique)).tolist(),
                }
                for clique, n_shared, own in zip(tree.cliques, tree.separators, self._model.conditionals, strict=True)
            ],
            "privacy": str(self.privacy_),
        }
        text = json.dumps(content)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text
