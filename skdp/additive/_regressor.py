r"""Additive regression: a curve for each column, from counts in cells and noisy gradient steps, or noisy moments.

Released: the numbers of records in the cells of each column (and before, if asked for, the edges of cells); then, with
``delta > 0``, sums of clipped gradients, step by step, and with ``delta = 0`` the second moments of the public features
of the cells and of the targets; and last, how predictions and targets go together. The model is computed from that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from ..accounting import PrivacyCost
from ..checks.data import regression_data, single_target
from ..mechanisms import coordinate_variance
from ..release.estimator import Records, Shape, TargetsMixin
from ..release.session import PrivacyGuarantee, ReleaseSession
from ..schema.columns import Codes, Columns
from ..solvers.calibration import Calibration, Line, Window
from ..solvers.losses import Huber
from ..solvers.regularised import noise_multiplier
from ..solvers.scaling import Scaling
from ._base import AdditiveModel, AnyLayout, Parameters
from ._descent_noise import Moved, without_noise
from ._descent_pairs import LEAST_SQUARE, PairedDescent
from ._engines import GradientEngine, MomentEngine, mechanism_of
from ._fine import split_for_pairs
from ._groups import FINE_PAIR_CELLS, Centred, GroupedLayout
from ._plans import COUNTS, Before, release_cells
from ._terms import ROUGHNESS, Layout
from ._uncertainty import Pseudo

Array = NDArray[np.float64]

# Half ranges: no residual of targets and predictions within the bounds is larger.
_MOST_RESIDUAL = 2.0

# Limit on the total noise in predictions. It is less than for a linear model, which has fewer features.
_WALK = 0.2

# The clipping norm over the norm of rows: for much noise, and the increase without noise.
_CLIP, _MORE_CLIP = 0.2, 0.1


def _predictions(tables: list[Array], codes: Codes, intercept: float) -> Array:
    """Return the prediction of each record, which does not depend on the others."""
    out = np.full(codes.shape[1], intercept)
    for own, values in zip(codes, tables, strict=True):
        # What is in no cell adds nothing.
        out += np.append(values, 0.0).take(own)
    return out


@dataclass(frozen=True, eq=False)
class Design:
    """What is public about a fit, besides its parameters."""

    targets: Scaling
    columns: Columns
    layout: AnyLayout
    engine: GradientEngine | MomentEngine | PairedDescent
    last: Calibration | None


class DPAdditiveRegressor(RegressorMixin, TargetsMixin, AdditiveModel):
    r"""Differentially private additive regression: one curve for each column.

    A prediction is a sum of one number for each column, read off a curve over the column's bins or categories.
    The curves say all that there is to say about the model, and are drawn by
    :class:`~skdp.inspection.AdditiveTermsDisplay`. Tables of text and numbers are taken as they are.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit, positive. ``inf`` adds no noise and gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1). With 0, the fit is pure epsilon-DP, from noisy moments, and far
        less accurate: where noise hides the curves, they are zeros, and the prediction is the noisy mean of the
        targets. Otherwise noise is Gaussian. Choose it far below one
        over the number of records.
    bounds : tuple (lower, upper)
        Bounds of the numeric columns, from public knowledge: numbers, or one for each column of X, or one for each
        numeric column, or one for each numeric column without `bin_edges`. Values beyond are in the outer bins.
    bounds_y : tuple (lower, upper)
        Bounds of the targets, likewise.
    categories : dict, default=None
        Categories of columns that have them, by position or name of the column: a list from the code book, of text or
        of numbers, or their number, if they are coded 0, 1, ... What is in no list, or missing, is passed over: the
        record counts, and this column adds nothing to its score. Text in a column for which numbers are
        declared, or a number in a column for which text is declared, is refused before anything is charged.
    bin_edges : dict, default=None
        Edges of bins for columns that are to have their own, by position or name: increasing, the outer ones included.
        Values beyond are in the outer bins.
    interactions : list of tuple or "auto", default=None
        Pairs of columns, by position or name, that get a term of their own besides. If ``"auto"``, the fit chooses at
        most two pairs, or none, for a positive `delta` and a finite `epsilon`; other fits choose none (see
        :ref:`additive-pairs`). Each choice uses at most 6 % of the budget, and nothing if no pair is likely to pay.
        With a positive `delta`, the term
        has cells of two sizes: ordered columns are merged to 16 cells, and split into up to 64 cells, which are then
        the cells of these columns in `terms_`, `bin_edges_` and `cell_counts_`. With ``delta=0``, they are merged to 16
        cells. Each pair takes as much of the budget as a column does.
    n_bins : int, default=32
        Number of bins of numeric columns without `bin_edges`. Neighbouring bins are made alike, so that many
        cost little.
    scale : {"linear", "log", "symlog"}, default="linear"
        How these bins are spaced within the bounds: evenly; evenly in logarithms, for positive bounds; or evenly in the
        inverse hyperbolic sine of values over `unit`.
    unit : float, default=1.0
        Where ``"symlog"`` turns from linear to logarithmic.
    thresholds : {"uniform", "quantile"}, default="uniform"
        ``"quantile"`` spends a tenth of the budget on edges between which about equally many records are, for bounds
        that are far wider than what most records need. They are among 1024 cells, which are spaced by
        `scale`. With ``"linear"``, half of these cells are evenly spaced, and half by logarithms.
    smoothness : float or "auto", default="auto"
        How alike neighbouring bins are, in [0, 1]: with 1 they differ by steps alone, with 0 they are as different as
        categories. ``"auto"`` is 1 less half of the inverse of 1 plus the noise multiplier.
    n_steps : int, default=300
        Number of gradient steps, for a positive `delta`.
    max_weight : float, default=None
        Public upper bound on `sample_weight` of `fit`. Larger weights count as `max_weight`. Required if
        `sample_weight` is given, and without effect otherwise.
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `bounds`, `bounds_y` and `categories`. A value
        that is given for `bounds` or `bounds_y` counts instead of the schema's. X is then the table itself,
        with text and missing values.
    accountant : BudgetAccountant, default=None
        Budget that is charged before any noise is drawn. ``clone`` shares it.
    random_state : int, RandomState, Generator or None, default=None
        None takes noise from the operating system's cryptographic generator. Anything else makes noise that can
        be reproduced, and subtracted: for tests only.
    verbose : int, default=0
        Whether to print the progress of `fit`. 0 prints nothing, 1 a line for each phase and for about ten steps of a
        phase, and 2 or more up to a hundred steps. The lines hold public numbers and the elapsed time. The elapsed time
        depends on the data, and the guarantee does not cover it.

    Attributes
    ----------
    terms_ : list of ndarray
        The curves: what each cell of each term adds to the prediction, of shape (n_cells,), (n_cells, n_cells)
        for a pair. Terms of one column have a mean of about 0 over the records, by `cell_counts_`.
    term_names_ : list of str
        Names of the terms.
    term_columns_ : list of tuple of int
        The column, or columns, of each term.
    intercept_ : float
        What is added to all terms.
    cell_names_ : list of list of str
        What the cells of each column are called.
    bin_edges_ : list of ndarray or None
        Edges of each numeric column's bins.
    cell_counts_ : list of ndarray
        Released numbers of records in the cells of each column; noise may make them negative. Bins that are split for
        a chosen pair were counted as a whole, and their counts are divided evenly.
    n_samples_estimate_ : float
        Released number of records; at least 1, and at least its own noise.
    privacy_ : PrivacyGuarantee
        The guarantee, with mechanisms, sensitivities and noise scales.
    term_importances_ : ndarray of shape (n_terms,)
        Mean size of what each term adds to the prediction, by the released counts.
    feature_importances_ : ndarray of shape (n_features,)
        The same by column, divided by the sum. A pair counts half for each of its columns.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, where X has string names.

    See Also
    --------
    DPAdditiveClassifier : The same for labels.
    skdp.linear_model.FunctionalMechLinReg : Linear regression.

    Notes
    -----
    **Privacy.** (`epsilon`, `delta`)-DP under addition or removal of one record. Released are the numbers of records in
    the cells of each column, for two per cent of the budget; with ``thresholds="quantile"``, edges before; and clipped
    sums of gradients with noise, or with ``delta=0`` noisy second moments of the features of cells. Last come six sums
    of products of predictions and targets, for two per cent of the budget (a fifth with ``delta=0``), which correct the
    mean and the size of the curves. With a positive `delta`, curves that show no more than the noise of the steps are
    shrunk before that. With a positive `delta`, released counts centre the features of cells, and each record's
    gradient is clipped. With ``interactions="auto"``, pairs are chosen by the exponential mechanism after a third of
    the steps, from scores that one record moves by 1 at most. With ``delta=0``, these features are public, and of
    length 1 for each term. Everything else is
    computed from that. The proofs are in :ref:`additive_models`. Not covered: that `fit` raises an error for values
    that are not finite, and how long it takes.

    References
    ----------
    .. [1] H. Nori, R. Caruana, Z. Bu, J. H. Shen and J. Kulkarni, "Accuracy, Interpretability, and Differential Privacy
       via Explainable Boosting", ICML 2021.
    .. [2] T. Hastie and R. Tibshirani, "Generalized Additive Models", Statistical Science 1, 1986.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import DPAdditiveRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPAdditiveRegressor(epsilon=1.0, delta=1e-5, bounds=(-0.2, 0.2), bounds_y=(25, 346), random_state=0)
    >>> len(model.fit(X, y).terms_)
    10
    """

    _released = AdditiveModel._released | {"_unit", "_engine_coef"}
    _public = frozenset({"term_columns_", "_columns", "_layout", "_engine"})

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        bounds: Any = None,
        bounds_y: Any = None,
        categories: Any = None,
        bin_edges: Any = None,
        interactions: Any = None,
        n_bins: int = 32,
        scale: str = "linear",
        unit: float = 1.0,
        thresholds: str = "uniform",
        smoothness: float | str = "auto",
        n_steps: int = 300,
        max_weight: float | None = None,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.bounds_y = bounds_y
        self.categories = categories
        self.bin_edges = bin_edges
        self.interactions = interactions
        self.n_bins = n_bins
        self.scale = scale
        self.unit = unit
        self.thresholds = thresholds
        self.smoothness = smoothness
        self.n_steps = n_steps
        self.max_weight = max_weight
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _read(self, X: Any, y: Any, parameters: Parameters) -> tuple[Any, Any, None, Shape]:
        X = self._entries(X, parameters)
        _, y = regression_data(self._without_columns(), np.zeros((len(X[0]), 1)), y)
        return X, single_target(y), None, Shape(len(X), names=self._names())

    def _plan(self, parameters: Parameters, shape: Shape) -> tuple[PrivacyGuarantee, Design]:
        targets = Scaling.of_target(self._declared("bounds_y"), True)
        columns = parameters.table(shape.n_features, shape.names, named=shape.is_read)
        columns, layout, before = self._prepared_for(parameters, columns)
        engine, last = self._engine_for(parameters, layout, before)
        return before.and_then(engine.plan(), last), Design(targets, columns, layout, engine, last)

    def _prepared_for(self, parameters: Parameters, columns: Columns) -> tuple[Columns, AnyLayout, Before]:
        if parameters.delta == 0:
            return columns, *self._prepared(parameters, columns)
        cells = split_for_pairs(columns, FINE_PAIR_CELLS)
        layout = GroupedLayout.of(cells, columns, *self._smoothness_and_noise(parameters))
        return cells, layout, Before.of(parameters.epsilon, parameters.delta, cells)

    @staticmethod
    def _smoothness_and_noise(parameters: Parameters) -> tuple[float, float]:
        noise = noise_multiplier(parameters.epsilon, parameters.delta, 0)
        smoothness = 1 - ROUGHNESS / (1 + noise) if parameters.smoothness is None else parameters.smoothness
        return smoothness, noise

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Parameters, design: Design
    ) -> dict[str, Any]:
        targets, layout, engine, last = design.targets, design.layout, design.engine, design.last
        noise = math.sqrt(coordinate_variance(session.mechanism(COUNTS)))
        cells = release_cells(session, design.columns, records.X, records.shape.names, labels=False)
        scaled = targets.scaled(records.y)
        codes = layout.codes(cells.codes)
        if isinstance(engine, MomentEngine):
            coef, start = engine.run(session, codes, scaled, cells.total)
            tables, intercept = [values[:, 0] for values in engine.layout.values(coef)], float(start[0])
        else:
            assert isinstance(layout, GroupedLayout)
            features = Centred.by_default(layout, layout.probabilities(cells.counts, noise), LEAST_SQUARE)
            if isinstance(engine, PairedDescent):
                found = engine.run(session, cells, records.X, scaled, features, noise)
                engine, features, cells, codes = found.engine, found.features, found.cells, found.codes
                layout, coef, start, alone = features.layout, found.coef, found.intercept, found.alone
            else:
                coef, start, alone = engine.run(session, codes, scaled, cells.total, features)
            tables, intercept = [values[:-1] for values in features.tables(coef[0])], float(start[0])
            if last is not None:
                kept, intercept = without_noise(engine, features, cells.total, tables, intercept, alone, noise)
                tables = [kept * values for values in tables]
        line = Line()
        if last is not None:
            predictions = _predictions(tables, codes, intercept)
            # What is in no cell of a column adds nothing.
            curves = [np.append(values, 0.0) for values in tables]
            lower, upper = (float(intercept + sum(pick(own) for own in curves)) for pick in (np.min, np.max))
            # With delta=0, the mean is used instead where noise hides the curves.
            line = last.line(session, predictions, scaled, Window.of(lower, upper), trusted=parameters.delta > 0)

        unit = targets.half * line.slope
        shifted = np.array([targets.centre + unit * intercept + targets.half * line.shift])
        of_columns = [unit * values[:, None] for values in tables]
        if isinstance(layout, Layout):
            of_columns = layout.values(unit * coef)
        terms = self._fitted_terms(of_columns, shifted, cells, design.columns, layout, True)
        return {
            **terms,
            "intercept_": float(terms["intercept_"][0]),
            "_engine": engine,
            "_coef": unit * coef,
            "_offset": shifted,
            "_engine_coef": coef,
            "_unit": unit,
        }

    def _fixed_cost(self) -> PrivacyCost | None:
        parameters = self._check_parameters()
        _, layout, before = self._prepared_for(parameters, self._any_columns(parameters))
        engine, last = self._engine_for(parameters, layout, before)
        return before.and_then(engine.plan(), last).cost

    def _engine_for(
        self, parameters: Parameters, layout: AnyLayout, before: Before
    ) -> tuple[GradientEngine | MomentEngine | PairedDescent, Calibration | None]:
        """Return the engine, and the release after it; without noise, there is nothing to correct."""
        epsilon, delta = parameters.epsilon, parameters.delta
        last = Calibration.of(epsilon, delta) if parameters.private else None
        reserved = before.share + (0.0 if last is None else last.release.share)
        if isinstance(layout, Layout):
            return MomentEngine(epsilon, reserved, layout), last
        loss = Huber(_MOST_RESIDUAL)
        clip = _CLIP + _MORE_CLIP / (1 + noise_multiplier(epsilon, delta, 0))
        engine = GradientEngine(epsilon, delta, reserved, layout, loss, parameters.n_steps, _WALK, clip)
        if parameters.chooses_pairs and parameters.private:
            return PairedDescent(engine, *self._smoothness_and_noise(parameters)), last
        return engine, last

    def _noise_in_cells(self, codes: Codes) -> tuple[list[Array], list[Array]]:
        layout, count = self._layout, self.n_samples_estimate_
        if not isinstance(layout, GroupedLayout):
            return super()._noise_in_cells(codes)
        features = self._features(layout)
        bent, flat = (Moved.of(self._engine, features, codes, count, bends).in_cells() for bends in (True, False))
        return [abs(self._unit) * own for own in bent], [abs(self._unit) * own for own in flat]

    def _features(self, layout: GroupedLayout) -> Centred:
        """Return the centred features of the fit, from released numbers."""
        noise = math.sqrt(coordinate_variance(mechanism_of(self.privacy_, COUNTS)))
        return Centred.by_default(layout, layout.probabilities(self.cell_counts_, noise), LEAST_SQUARE)

    def _noise_in_scores(self, records: Codes) -> Callable[[Codes], Array]:
        layout = self._layout
        if not isinstance(layout, GroupedLayout):
            return super()._noise_in_scores(records)
        moved = Moved.of(self._engine, self._features(layout), records, self.n_samples_estimate_, bends=True)
        return lambda codes: abs(self._unit) * moved.in_scores(codes)

    def _spread(self, pseudo: Pseudo) -> list[Array]:
        spread = self._engine.spread(pseudo, self._engine_coef, self.privacy_, None)
        return [self._unit * one for one in spread]

    def predict(self, X: Any) -> Array:
        """Return the sum of each row's terms and the intercept.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predictions, which are not clipped.
        """
        return self._scores(X)[:, 0]
