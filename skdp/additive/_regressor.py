r"""Additive regression: a curve for each column, by noisy gradient steps or noisy means.

The edges of bins (with ``thresholds="quantile"``) and the numbers of records in the cells of each column are released
first. With ``delta > 0``, noisy sums of clipped gradients follow. With ``delta = 0``, sums of the targets in groups of
cells follow. The last release is sums of products of predictions and targets. The
model is computed from these releases.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from ..accounting import PrivacyCost
from ..checks.data import regression_data, single_target
from ..mechanisms import coordinate_variance
from ..parts.arrays import rowwise
from ..release.estimator import Records, Shape, TargetsMixin
from ..release.session import PrivacyGuarantee, ReleaseSession
from ..schema.columns import Codes, Columns
from ..solvers.calibration import Calibration, Line, Window
from ..solvers.losses import Huber
from ..solvers.regularised import noise_multiplier
from ..solvers.scaling import Scaling
from ..solvers.target_range import TargetRange
from ._base import AdditiveModel, AnyLayout, Parameters, positions
from ._descent_noise import Moved, without_noise
from ._engines import GradientEngine, mechanism_of
from ._fine import split_for_pairs
from ._groups import FINE_PAIR_CELLS, Centred, GroupedLayout
from ._means import MeanEngine
from ._plans import COUNTS, Before, Reserve, ReservedPart, release_cells
from ._stages import Curves, SquaredLoss, boosted, planned_curves
from ._terms import ROUGHNESS, Layout, sums_of_values
from ._uncertainty import Pseudo

Array = NDArray[np.float64]

# In units of half the range of the targets. No residual of targets and predictions within the bounds is larger.
_MOST_RESIDUAL = 2.0

# Limit on the total noise in predictions. It is less than for a linear model, which has fewer features.
_WALK = 0.2

#: Lower limit on the mean square of a group's rows in weights of groups. If nearly all records share a bin, the noise
#: in other bins must not be scaled up.
LEAST_SQUARE = 0.2

#: The clipping bound of residuals in the first stage.
FIRST_CLIP = 0.3

# The clipping norm, divided by the norm of rows, for much noise, and its increase without noise.
_CLIP, _MORE_CLIP = 0.2, 0.1


@dataclass(frozen=True, eq=False)
class Design:
    """The public scaling, columns, features and engine of a fit."""

    targets: Scaling
    columns: Columns
    layout: AnyLayout
    engine: Any
    reserved: ReservedPart | None
    first: TargetRange
    last: Calibration | None


class DPAdditiveRegressor(RegressorMixin, TargetsMixin, AdditiveModel):
    r"""Differentially private additive regression: one curve for each column.

    A prediction is the sum of one number for each column. This number is the value of the column's curve at the row's
    bin or category. The curves are the complete model, and
    :class:`~skdp.inspection.AdditiveTermsDisplay` draws them. The estimator takes tables of texts and numbers.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1). If 0, the fit is pure epsilon-DP, and much less accurate. Its curves are
        noisy means of the targets in groups of cells, multiplied by one number. If the noise hides the curves, they
        are zeros. Otherwise, the noise is Gaussian. Choose a value far below one over the expected number of records.
    bounds : tuple (lower, upper)
        Public bounds of the numeric features: numbers, or one for each column of X, or one for each numeric column, or
        one for each numeric column without `bin_edges`. Values beyond count in the outer bins.
    bounds_y : tuple (lower, upper)
        Public bounds of the targets. Targets beyond are clipped. Predictions are within the bounds. The bounds may be
        generous (see :ref:`regression`).
    categories : dict, default=None
        Public categories of columns, by position or name of the column: a list of texts or of numbers, or the number of
        categories, if these are coded 0, 1, ... If a value is missing or not in the list, the record is counted, but
        the column adds nothing to its prediction. Text in a column with declared numbers, or a number in a column with
        declared texts, raises an error before any charge.
    bin_edges : dict, default=None
        Public edges of the bins of single columns, by position or name, in increasing order, including the outer edges.
        Values beyond count in the outer bins.
    interactions : list of tuple or "auto", default=None
        Tables over several columns that are added to the curves. If None, there are curves only. If ``"auto"``, a fit
        with a positive `delta` and enough records, by their released number, adds tables over one, two or three columns
        in stages, and spends 60 % of its budget on them (see :ref:`additive-pairs`). A list names pairs of columns, by
        position or name, which are fitted together with the curves. Each named pair uses as much of the budget as a
        column. Its ordered columns are merged to 16 cells, and with a positive `delta`, it also has finer cells.
    n_bins : int, default=32
        Number of bins of numeric columns without `bin_edges`. Many bins add little noise, because the fit favours
        similar values in neighbouring bins.
    scale : {"linear", "log", "symlog"}, default="linear"
        How these bins are spaced within the bounds. ``"linear"`` spaces the bins evenly. ``"log"`` spaces the bins
        evenly in logarithms, and requires positive bounds. ``"symlog"`` spaces the bins evenly in the inverse
        hyperbolic sine of the value divided by `unit`.
    unit : float, default=1.0
        Size of values at which ``"symlog"`` changes from linear to logarithmic.
    thresholds : {"uniform", "quantile"}, default="uniform"
        How the edges of these bins are found. ``"uniform"`` follows `scale`. ``"quantile"`` spends a tenth of the
        budget on edges between which the numbers of records are about equal. Use it if the bounds are far too wide. The
        edges are chosen from the edges of 1024 cells that are spaced by `scale`. With ``"linear"``, half of these cells
        are spaced evenly, and half evenly in logarithms.
    smoothness : float or "auto", default="auto"
        Similarity of neighbouring bins, in [0, 1]. If 1, a curve consists of steps between neighbouring bins. If 0,
        neighbouring bins are as different as categories. If ``"auto"``, it is 1 less half of the inverse of 1 plus the
        noise multiplier.
    n_steps : int, default=300
        Number of gradient steps, for a positive `delta`.
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `bounds`, `bounds_y` and `categories`. A value of
        `bounds` or `bounds_y` takes precedence over the schema. X is then the table, with text and missing values.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.
    verbose : int, default=0
        Whether to print the progress of `fit`. 0 prints nothing, 1 a line for each phase and for about ten steps of a
        phase, and 2 or more up to a hundred steps. The lines hold public numbers and the elapsed time. The elapsed time
        depends on the data, and the guarantee does not cover it.

    Attributes
    ----------
    terms_ : list of ndarray
        Curves: values that the cells of each term add to the prediction, of shape (n_cells,), and tables, of shape
        (n_cells, n_cells) or (n_cells, n_cells, n_cells). Terms of one column have a mean of about 0 over the records,
        by `cell_counts_`.
    term_names_ : list of str
        Names of the terms.
    term_columns_ : list of tuple of int
        Positions of the columns of each term.
    intercept_ : float
        Private intercept.
    cell_names_ : list of list of str
        Names of the cells of each column.
    bin_edges_ : list of ndarray or None
        Edges of the bins of each numeric column. None for other columns.
    cell_counts_ : list of ndarray
        Released numbers of records in the cells of each column, which may be negative.
    n_samples_estimate_ : float
        Released number of records, or 1 or the size of its noise if these are larger.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.
    term_importances_ : ndarray of shape (n_terms,)
        Mean absolute value that each term adds to the prediction, by the released counts.
    feature_importances_ : ndarray of shape (n_features,)
        Importances of the columns, divided by their sum. A pair counts half for each of its columns.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    DPAdditiveClassifier : Additive logistic regression, for labels.
    skdp.linear_model.FunctionalMechLinReg : Linear regression.

    Notes
    -----
    **Privacy.** The guarantee is (`epsilon`, `delta`)-DP under addition or removal of one record. With
    ``thresholds="quantile"``, the edges of bins are released. A range of the targets and their mean in it are released
    first (:ref:`regression, theorem 1 <regression-theorem-1>`). The numbers of records in the cells of each column
    are released for 2 % of the budget. With a positive `delta`, noisy sums of gradients follow. Features are centred by
    the released counts, and the gradient of each record is clipped. Curves that the noise of the steps explains are
    shrunk. With ``interactions="auto"``, stages follow: the exponential mechanism chooses a table from scores with
    a sensitivity of 1, and noisy sums of residuals in its cells are released. With ``delta=0``, noisy second
    moments of the features of cells follow. These features are public, and have the norm 1 for each term. The last
    release is six sums of products of predictions and targets, for 2 % of the budget (15 % with ``delta=0``), which
    correct the mean and the size of the curves. The rest is post-processing. The proofs are in
    :ref:`additive_models`. The guarantee covers neither an error for values that are not finite nor the time that
    `fit` takes.

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

    _released = AdditiveModel._released | {"_unit", "_engine_coef", "_targets", "_moved"}
    _public = frozenset({"term_columns_", "_columns", "_layout", "_engine", "_all_terms"})

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
        _, y = regression_data(self._without_columns(), positions(X), y)
        return X, single_target(y), None, Shape(self._n_columns, names=self._names())

    def _plan(self, parameters: Parameters, shape: Shape) -> tuple[PrivacyGuarantee, Design]:
        targets = Scaling.of_target(self._declared("bounds_y"), True)
        columns = parameters.table(shape.n_features, shape.names, named=shape.is_read)
        columns, layout, before = self._prepared_for(parameters, columns)
        first = TargetRange.of(parameters.epsilon, parameters.delta)
        last = Calibration.of(parameters.epsilon, parameters.delta) if parameters.private else None
        make = partial(self._engine_for, parameters, layout, columns)
        guarantee, engine, reserved = self._guarantee(parameters, before, first, last, make)
        return guarantee, Design(targets, columns, layout, engine, reserved, first, last)

    @staticmethod
    def _guarantee(
        parameters: Parameters, before: Before, first: TargetRange, last: Calibration | None, make: Any
    ) -> tuple[PrivacyGuarantee, Any, ReservedPart | None]:
        """Return the plan, and the engine of the curves, or the function that makes it and the part for stages."""
        share = first.share + (0.0 if last is None else last.release.share)
        if parameters.in_stages:
            reserved = parameters.stages(before, share)
            return first.and_then(before.and_then(reserved.plan(), last)), make, reserved
        engine = make(before.share + share)
        return first.and_then(before.and_then(engine.plan(), last)), engine, None

    def _prepared_for(self, parameters: Parameters, columns: Columns) -> tuple[Columns, AnyLayout, Before]:
        if parameters.delta == 0 and parameters.private:
            return columns, self._prepared(parameters, columns), Before.of(parameters.epsilon, 0.0, columns)
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
        layout, engine, last = design.layout, design.engine, design.last
        located = design.first.located(session, records.y, design.targets)
        targets = located.targets
        noise = math.sqrt(coordinate_variance(session.mechanism(COUNTS)))
        cells = release_cells(session, design.columns, records.X, records.shape.names)
        scaled = rowwise(targets.scaled, records.y)
        codes = rowwise(layout.codes, cells.codes)
        reserve = None
        if design.reserved is not None:
            reserve = Reserve(session, design.reserved)
            engine = planned_curves(reserve, engine, cells.total)
        moved = None
        if isinstance(engine, MeanEngine):
            mean = float(located.mean_with()[0])
            coef, start, moved = engine.run(session, codes, scaled, mean)
            tables, intercept = [values[:, 0] for values in engine.layout.values(coef)], float(start[0])
        else:
            assert isinstance(layout, GroupedLayout)
            features = Centred.by_default(layout, layout.probabilities(cells.counts, noise), LEAST_SQUARE)
            coef, start, lone_intercept = engine.run(session, codes, scaled, cells.total, features)
            tables, intercept = [values[:-1] for values in features.tables(coef[0])], float(start[0])
            if last is not None:
                kept, intercept = without_noise(engine, features, cells.total, tables, intercept, lone_intercept, noise)
                tables = [kept * values for values in tables]
        line = Line()
        if last is not None:
            # Values in no cell of a column add nothing.
            curves = [np.append(values, 0.0) for values in tables]
            predictions = rowwise(partial(sums_of_values, curves, intercept), codes)
            lower, upper = (float(intercept + sum(pick(own) for own in curves)) for pick in (np.min, np.max))
            # With delta=0, the mean is used instead if the noise hides the curves.
            trusted, sure_by = (True, 2.0) if moved is None else (False, 0.5)
            # Curves from means of targets add up to too much if columns are correlated, also beyond the bounds.
            window = Window.of(lower, upper) if moved is None else Window.around(lower, upper)
            line = last.line(session, predictions, scaled, window, trusted=trusted, sure_by=sure_by)

        of_columns = layout.values(coef) if isinstance(layout, Layout) else [values[:, None] for values in tables]
        model = Curves(
            layout.terms, [line.slope * own for own in of_columns], np.array([line.slope * intercept + line.shift])
        )
        if reserve is not None:
            model = boosted(reserve, model, SquaredLoss(clip=FIRST_CLIP), cells, codes, scaled, noise)
        unit = targets.half * line.slope
        shifted = targets.centre + targets.half * model.intercept
        scaled_up = Curves(
            model.terms,
            [targets.half * own for own in model.tables],
            shifted,
            [targets.half**2 * own for own in model.variances],
        )
        terms = self._fitted_terms(scaled_up, cells, design.columns, layout, True)
        return {
            **terms,
            "intercept_": float(terms["intercept_"][0]),
            "_engine": engine,
            "_coef": unit * coef,
            "_offset": shifted,
            "_engine_coef": coef,
            "_moved": moved,
            "_unit": unit,
            "_targets": targets,
        }

    def _fixed_cost(self) -> PrivacyCost | None:
        parameters = self._check_parameters()
        columns, layout, before = self._prepared_for(parameters, self._any_columns(parameters))
        first = TargetRange.of(parameters.epsilon, parameters.delta)
        last = Calibration.of(parameters.epsilon, parameters.delta) if parameters.private else None
        make = partial(self._engine_for, parameters, layout, columns)
        return self._guarantee(parameters, before, first, last, make)[0].cost

    def _engine_for(
        self, parameters: Parameters, layout: AnyLayout, columns: Columns, reserved: float
    ) -> GradientEngine | MeanEngine:
        """Return the engine of the curves, if other releases use this part of the budget."""
        epsilon, delta = parameters.epsilon, parameters.delta
        if isinstance(layout, Layout):
            return MeanEngine.of(epsilon, reserved, layout, columns)
        loss = Huber(_MOST_RESIDUAL)
        clip = _CLIP + _MORE_CLIP / (1 + noise_multiplier(epsilon, delta, 0))
        return GradientEngine(epsilon, delta, reserved, layout, loss, parameters.n_steps, _WALK, clip)

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
        if self._moved is not None:
            return [self._unit * self._moved]
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
            Predictions, clipped to the released range of the targets.
        """
        predictions = self._scores(X)[:, 0]
        return self._targets.clipped(predictions)
