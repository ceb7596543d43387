r"""Additive regression: a curve for each column, and tables over several columns.

The numbers of records in the cells of each column are released first. With ``delta > 0``, noisy sums of clipped
gradients and tables of residuals follow. With ``delta = 0``, sums of the targets in groups of cells follow. Sums of
products of predictions and targets correct the curves. The model is computed from these releases.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from ..accounting import PrivacyCost
from ..checks.data import regression_data, single_target
from ..parts.arrays import rowwise
from ..release.estimator import Records, Shape, TargetsMixin
from ..release.session import PrivacyGuarantee, ReleaseSession
from ..schema.columns import Codes, Columns
from ..solvers.calibration import Calibration, Line, Window
from ..solvers.linear_descent import GRADIENTS
from ..solvers.losses import Huber
from ..solvers.regularised import Scaling, noise_multiplier
from ..solvers.target_range import TargetRange
from ._base import AdditiveModel, Parameters, positions
from ._descent_noise import without_noise
from ._engines import AGAIN, Averaged, GradientEngine
from ._means import MeanEngine
from ._plans import LEAST_REST, Before, Cells, Reserve, release_cells
from ._stages import Curves, SquaredLoss, Stage, StagePlan, planned, scores_of_stages
from ._terms import Layout, sums_of_values
from ._uncertainty import Pseudo

Array = NDArray[np.float64]

# In units of half the range of the targets. No residual of targets and predictions within the bounds is larger.
_MOST_RESIDUAL = 2.0

# Limit on the total noise in predictions. It is less than for a linear model, which has fewer features.
_WALK = 0.2

#: The clipping bound of residuals in the first of many stages. A table of a named pair has one stage, and the bound 1.
FIRST_CLIP = 0.3

# The clipping norm, divided by the norm of rows, for much noise, and its increase without noise.
_CLIP, _MORE_CLIP = 0.2, 0.1


@dataclass(frozen=True, eq=False)
class Design:
    """The public scaling and columns of a fit, its first and last release, and the means for ``delta=0``."""

    targets: Scaling
    columns: Columns
    first: TargetRange
    last: Calibration | None
    means: MeanEngine | None


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
    interactions : "auto", list of tuple or None, default="auto"
        Tables over several columns that are added to the curves. If ``"auto"``, a fit with a positive `delta` and
        enough records, by their released number, adds tables over one, two or three columns in stages, and spends 60 %
        of its budget on them (see :ref:`additive-pairs`). A list names pairs of columns, by position or name. Each
        named pair uses up to 15 % of the budget. If None, there are curves only.
    n_bins : int, default=32
        Largest number of bins of the curve of a numeric column. With a positive `delta`, each column has eight times as
        many public cells between its bounds, which are merged to bins with about equal released numbers of records. A
        value that many records share has a bin of its own.
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
    **Privacy.** The guarantee is (`epsilon`, `delta`)-DP under addition or removal of one record. A range of the
    targets and their mean in it are released first (:ref:`regression, theorem 1 <regression-theorem-1>`). The numbers
    of records in the cells of each column are released for 4 % of the budget. With a positive `delta`, 300 noisy sums
    of gradients follow. Features of bins are centred by the released counts, and the gradient of each record is
    clipped. Then follow stages: the exponential mechanism chooses a table from scores with a sensitivity of 1, and
    noisy sums of residuals in its cells are released. What is left of the budget repeats the sums of gradients. With
    ``delta=0``, noisy sums of the targets in groups of cells follow. Six sums of products of predictions and targets
    correct the mean and the size of the curves, for 2 % of the budget (15 % with ``delta=0``). The rest is
    post-processing. The proofs are in :ref:`additive_models`. The guarantee covers neither an error for values that are
    not finite nor the time that `fit` takes.

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

    _released = AdditiveModel._released | {"_targets", "_moved"}
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
        interactions: Any = "auto",
        n_bins: int = 32,
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
        before = Before.of(parameters.epsilon, parameters.delta, columns)
        guarantee, first, last, means = self._guarantee_for(parameters, columns, before)
        return guarantee, Design(targets, columns, first, last, means)

    @staticmethod
    def _guarantee_for(
        parameters: Parameters, columns: Columns, before: Before
    ) -> tuple[PrivacyGuarantee, TargetRange, Calibration | None, MeanEngine | None]:
        first = TargetRange.of(parameters.epsilon, parameters.delta)
        last = Calibration.of(parameters.epsilon, parameters.delta) if parameters.private else None
        share = first.share + (0.0 if last is None else last.release.share)
        if parameters.gaussian:
            return first.and_then(before.and_then(parameters.reserved(before, share).plan(), last)), first, last, None
        layout = Layout.of(columns, parameters.smoothness(sum(columns.sizes)))
        means = MeanEngine.of(parameters.epsilon, before.share + share, layout, columns)
        return first.and_then(before.and_then(means.plan(), last)), first, last, means

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Parameters, design: Design
    ) -> dict[str, Any]:
        last = design.last
        located = design.first.located(session, records.y, design.targets)
        targets = located.targets
        cells = release_cells(session, design.columns, records.X, records.shape.names)
        scaled = rowwise(targets.scaled, records.y)
        if design.means is not None:
            mean = float(located.mean_with()[0])
            model, found = self._by_means(session, cells, scaled, design.means, last, mean)
        else:
            share = design.first.share + (0.0 if last is None else last.release.share)
            model, found = self._by_steps(session, cells, scaled, parameters, last, share)
        scaled_up = Curves(
            model.terms,
            [targets.half * own for own in model.tables],
            targets.centre + targets.half * model.intercept,
            [targets.half**2 * own for own in model.variances],
        )
        terms = self._fitted_terms(scaled_up, cells, True)
        found["_target_unit"] *= targets.half
        return {
            **terms,
            "intercept_": float(terms["intercept_"][0]),
            "_offset": scaled_up.intercept,
            "_targets": targets,
            **found,
        }

    @staticmethod
    def _by_means(
        session: ReleaseSession, cells: Cells, scaled: Any, means: MeanEngine, last: Calibration | None, mean: float
    ) -> tuple[Curves, dict[str, Any]]:
        """Fit the curves to noisy means of the targets in groups of cells, and correct them."""
        layout = means.layout
        codes = rowwise(layout.codes, cells.codes)
        coef, start, moved = means.run(session, codes, scaled, mean)
        tables = layout.values(coef)
        # Curves from means of targets add up to too much if columns are correlated, also beyond the bounds. The mean is
        # used instead if the noise hides the curves.
        line = _line(session, last, codes, [own[:, 0] for own in tables], start[0], scaled, trusted=False)
        model = Curves(layout.terms, [line.slope * own for own in tables], line.slope * start + line.shift)
        return model, {
            "_layout": layout,
            "_engine": means,
            "_coef": coef,
            "_moved": moved,
            "_kept": [],
            "_bend": 1.0,
            "_target_unit": line.slope,
        }

    @staticmethod
    def _by_steps(
        session: ReleaseSession,
        cells: Cells,
        scaled: Any,
        parameters: Parameters,
        last: Calibration | None,
        others: float,
    ) -> tuple[Curves, dict[str, Any]]:
        """Fit the curves by gradient steps, correct them, and add tables; other releases use the share `others`."""
        layout, features = parameters.layout(cells)
        noise = noise_multiplier(parameters.epsilon, parameters.delta, 0)
        clip, loss = _CLIP + _MORE_CLIP / (1 + noise), Huber(_MOST_RESIDUAL)

        def make(label: str, reserved: float) -> GradientEngine:
            epsilon, delta = parameters.epsilon, parameters.delta
            return GradientEngine(epsilon, delta, reserved, layout, loss, clip, _WALK, label=label)

        def shrunken(engine: Averaged, coef: Array, intercept: float, lone: Array | None) -> tuple[list[Array], float]:
            tables, kept = features.tables(coef[0]), 1.0
            if cells.noise > 0:
                kept, intercept = without_noise(engine, features, cells, tables, intercept, lone)
            return [kept * values for values in tables], intercept

        def curves(tables: list[Array], intercept: float, line: Line) -> Curves:
            values = [line.slope * own[bins][:, None] for own, bins in zip(tables, layout.bins, strict=True)]
            return Curves(layout.terms, values, np.array([line.slope * intercept + line.shift]))

        before = Before.of(parameters.epsilon, parameters.delta, cells.columns)
        reserve = Reserve(session, parameters.reserved(before, others))
        plan = StagePlan(parameters.chooses, cells.columns.pairs, 1)
        codes, count = rowwise(layout.codes, cells.codes), cells.total
        first = plan.planned(reserve, partial(make, GRADIENTS), count)
        engine = Averaged((first,))
        coef, start, lone = first.run(session, codes, scaled, count, features)
        tables, intercept = shrunken(engine, coef, float(start[0]), lone)
        line = _line(session, last, codes, tables, intercept, scaled, trusted=True)
        model = curves(tables, intercept, line)
        clip_of_stages = FIRST_CLIP if parameters.chooses else 1.0
        stages = plan.stages(reserve, model, SquaredLoss(clip=clip_of_stages), cells, scaled)
        if parameters.private and reserve.share > LEAST_REST:
            # What is left repeats the fit of the curves, given the tables.
            second = planned(reserve, partial(make, AGAIN))
            left = rowwise(partial(_without_stages, stages), scaled, cells.codes) if stages else scaled
            other, other_start, _ = second.run(session, codes, left, count, features)
            part = (1 - first.reserved) / (2 - first.reserved - second.reserved)
            coef, start = part * coef + (1 - part) * other, part * start + (1 - part) * other_start
            engine = Averaged((first, second), (part, 1 - part))
            model = curves(*shrunken(engine, coef, float(start[0]), lone), line)
        return model.with_stages(stages, cells.shares), {
            "_layout": layout,
            "_engine": engine,
            "_coef": coef,
            "_kept": [],
            "_bend": 1.0,
            "_target_unit": line.slope,
            "_moved": np.empty(0),
        }

    def _fixed_cost(self) -> PrivacyCost | None:
        parameters = self._check_parameters()
        return self._cost_of(
            parameters, lambda before, columns: self._guarantee_for(parameters, columns, before)[0].cost
        )

    def _spread(self, pseudo: Pseudo) -> list[Array]:
        return [self._target_unit * self._moved]

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


def _line(
    session: ReleaseSession,
    last: Calibration | None,
    codes: Any,
    tables: list[Array],
    intercept: float,
    scaled: Any,
    *,
    trusted: bool,
) -> Line:
    """Release sums of products of predictions and targets, and return the correction of the predictions."""
    if last is None:
        return Line()
    # Values in no cell of a column add nothing.
    curves = [np.append(values, 0.0) for values in tables]
    predictions = rowwise(partial(sums_of_values, curves, intercept), codes)
    lower, upper = (float(intercept + sum(pick(own) for own in curves)) for pick in (np.min, np.max))
    window, sure_by = (Window.of(lower, upper), 2.0) if trusted else (Window.around(lower, upper), 0.5)
    return last.line(session, predictions, scaled, window, trusted=trusted, sure_by=sure_by)


def _without_stages(stages: list[Stage], scaled: Array, codes: Codes) -> Array:
    found: Array = scaled - scores_of_stages(stages, codes)[:, 0]
    return found
