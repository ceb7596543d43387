r"""Additive regression: a curve for each column, and tables over several columns.

A range of the targets and the numbers of records in the cells of each column are released first. With ``delta > 0``,
noisy sums of clipped gradients follow. Tables of residuals follow in stages. Sums of products of predictions and
targets correct the predictions at the end. The model is computed from these releases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ..checks.data import regression_data, single_target
from ..checks.params import Checked
from ..parts.arrays import rowwise
from ..release.estimator import Records, Shape, TargetsMixin
from ..release.reserve import Reserve
from ..release.session import ReleaseSession
from ..schema.columns import Codes, Columns
from ..solvers.calibration import Calibration, Window
from ..solvers.losses import Huber
from ..solvers.regularised import Scaling, noise_multiplier
from ..solvers.target_range import TargetRange
from ._base import AdditiveModel, features_of, zero_column
from ._curves import Averaged, GradientEngine, without_noise
from ._plans import Design, release_cells
from ._stages import Curves, SquaredLoss, StageFit

Array = NDArray[np.float64]

# In units of half the range of the targets. No residual of targets and predictions within the bounds is larger.
_MOST_RESIDUAL = 2.0

# Limit on the total noise in predictions. It is less than for a linear model, which has fewer features.
_WALK = 0.2

#: The clipping bound of residuals in the first of many stages. A table of a named pair has one stage, and the bound 1.
FIRST_CLIP = 0.3

#: The mean of the targets is well known if its noise is at most so large, in units of half the range of the targets.
WELL_KNOWN = 0.05

#: Targets are amounts if their range begins at most at this part of its end, and their mean is at most here in it, in
#: units of half the range from its middle.
NEAR, SKEWED = 0.125, -0.15

# The last release corrects predictions if that is better by so many deviations of its noise.
_SURE_BY = 2.0

# The clipping norm, divided by the norm of rows, for much noise, and its increase without noise.
_CLIP, _MORE_CLIP = 0.2, 0.1


@dataclass(frozen=True, eq=False)
class Targets:
    """The released range of the targets. The curves add up to targets, or to their square roots."""

    range: Scaling
    roots: bool

    @cached_property
    def units(self) -> Scaling:
        """The map of what the curves add up to."""
        ends = np.array([self.range.lower, self.range.upper])
        return Scaling.of_target(np.sqrt(ends), True) if self.roots else self.range

    def scaled(self, y: Array) -> Array:
        """Return what the curves are fitted to, in scaled units."""
        return self.units.scaled(np.sqrt(np.clip(y, self.range.lower, self.range.upper)) if self.roots else y)

    def inverse(self, scores: Array) -> Array:
        """Return predictions from sums of curves."""
        return np.maximum(scores, 0.0) ** 2 if self.roots else scores

    def in_range(self, scores: Array) -> Array:
        """Return predictions in scaled units of the range."""
        return self.range.scaled(self.inverse(scores))


class DPAdditiveRegressor(RegressorMixin, TargetsMixin, AdditiveModel):
    """Differentially private additive regression: one curve for each column.

    A prediction, or the square root of a skewed amount, is the sum of one number for each column, which is read off the
    column's curve, and of the values of tables over several columns, if there are enough records. ``terms_`` has all of
    them, and :class:`~skdp.inspection.AdditiveTermsDisplay` draws the curves.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        In [0, 1), far below one over the number of records. If 0, the fit is pure epsilon-DP, and less accurate.
    schema : Schema, default=None
        Declaration of the columns, in place of `bounds`, `bounds_y` and `categories`. Explicit parameters override it.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.
    interactions : "auto", list of tuple or None, default="auto"
        Tables over several columns: chosen by the fit (:ref:`additive-pairs`), a list of pairs of columns, or none.
    n_bins : int, default=32
        Largest number of bins of a numeric column, with a positive `delta`. Bins have about equal released counts.
    bounds : tuple (lower, upper)
        Public bounds of the numeric features: two numbers, or two arrays. Values beyond count in the outer bins.
    bounds_y : tuple (lower, upper)
        Public bounds of the targets, which may be generous (see :ref:`regression`). Targets beyond are clipped.
    categories : dict, default=None
        Public categories of columns, by position or name: a list, or their number if they are coded 0, 1, ... Other
        values add nothing to the prediction.
    bin_edges : dict, default=None
        Public edges of the bins of single columns, by position or name. Values beyond count in the outer bins.
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.
    verbose : int, default=0
        Lines of progress to print: 0 for none, 1 for about ten in each phase (see :doc:`/user_guide/progress`).

    Attributes
    ----------
    terms_ : list of ndarray
        Values that the cells of each term add to the score, with one axis for each column. The score is the prediction,
        or its square root if `link_` is ``"sqrt"`` (:ref:`additive_algorithm`).
    term_names_ : list of str
        Names of the terms.
    term_columns_ : list of tuple of int
        Positions of the columns of each term.
    intercept_ : float
        Private intercept of the score.
    link_ : str
        ``"sqrt"`` for skewed amounts, by the released range and mean of the targets. Otherwise ``"identity"``.
    offset_ : float
        What is added to the square of a score (:ref:`additive-link`). 0 if `link_` is ``"identity"``.
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
        Mean absolute value that each term adds to the score, by the released counts.
    feature_importances_ : ndarray of shape (n_features,)
        Importances of the columns, divided by their sum.
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
    targets and their mean in it are released first (:ref:`regression, theorem 1 <regression-theorem-1>`). Counts, sums
    of clipped gradients, choices of tables, sums of residuals and six sums that correct the predictions follow. The
    rest is post-processing. :ref:`additive_algorithm` has the sensitivities and proofs.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPAdditiveRegressor, Schema
    >>> k = np.arange(5000)
    >>> age, smokes = 18 + k % 72, np.where(k % 5 < 2, "yes", "no")
    >>> cost = 200 + 10 * age + 500 * (smokes == "yes") + 100 * np.sin(k)
    >>> columns = {"age": (18, 90), "smokes": ["no", "yes"]}
    >>> schema = Schema(columns, target=(0, 3000))
    >>> model = DPAdditiveRegressor(
    ...     epsilon=1, delta=1e-6, schema=schema, random_state=0
    ... )
    >>> model = model.fit({"age": age, "smokes": smokes}, cost)
    >>> people = {"age": [30, 70], "smokes": ["no", "yes"]}
    >>> model.predict(people).round(-2)
    array([ 500., 1400.])
    """

    _released = AdditiveModel._released | {"offset_", "_targets"}
    _public = frozenset({"_columns"})

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        interactions: Any = "auto",
        n_bins: int = 32,
        bounds: Any = None,
        bounds_y: Any = None,
        categories: Any = None,
        bin_edges: Any = None,
        max_weight: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.interactions = interactions
        self.n_bins = n_bins
        self.bounds = bounds
        self.bounds_y = bounds_y
        self.categories = categories
        self.bin_edges = bin_edges
        self.max_weight = max_weight
        self.verbose = verbose

    def _read(self, X: Any, y: Any, parameters: Checked) -> tuple[Any, Any, None, Shape]:
        X = self._entries(X, parameters)
        _, y = regression_data(self._without_columns(), zero_column(X), y)
        return X, single_target(y), None, Shape(self._n_columns, names=self._names())

    def _design(self, parameters: Checked, columns: Columns, n_classes: int) -> Design:
        Scaling.of_target(self._declared("bounds_y"), True)
        epsilon, delta = parameters.epsilon, parameters.delta
        last = Calibration.of(epsilon, delta) if parameters.private and not parameters.pure else None
        return Design.of(parameters, columns, 0, last, TargetRange.of(epsilon, delta))

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Checked, design: Design
    ) -> dict[str, Any]:
        bounds = Scaling.of_target(self._declared("bounds_y"), True)
        assert design.target_range is not None
        located = design.target_range.located(session, records.y, bounds)
        # Deviations of skewed amounts grow with their size. Those of their roots are more even.
        amounts = 0 <= located.targets.lower <= NEAR * located.targets.upper and located.mean[0] <= SKEWED
        targets = Targets(located.targets, bool(amounts and not parameters.pure))
        cells = release_cells(session, design.columns, records.X, records.shape.names, design.counts)
        scaled, unit, offset = rowwise(targets.scaled, records.y), targets.units.half, 0.0
        reserve = Reserve(session, design.reserved)
        if parameters.pure:
            mean, deviation = located.mean_with(), float(located.deviation[0])
            # If the mean is not known well, tables correct it.
            clip = min(FIRST_CLIP + 2 * deviation, 1.0)
            loss = SquaredLoss(pure=True, clip=clip, centred=deviation <= WELL_KNOWN)
            model, described = StageFit(session, reserve, cells, scaled, parameters, loss).by_tables(mean)
        else:
            loss = SquaredLoss(clip=FIRST_CLIP if parameters.chooses else 1.0)
            model, described = self._by_steps(StageFit(session, reserve, cells, scaled, parameters, loss))
        model = model.scaled(unit, targets.units.centre)
        if design.last is not None:
            predictions = rowwise(partial(_predictions, targets, model), cells.codes)
            window = Window.of(*targets.in_range(np.array(model.limits)))
            y, known = rowwise(targets.range.scaled, records.y), located.clipped_mean if targets.roots else None
            line = design.last.line(session, predictions, y, window, sure_by=_SURE_BY, mean=known)
            offset = targets.range.centre * (1 - line.slope) + targets.range.half * line.shift
            slope = math.sqrt(line.slope) if targets.roots else line.slope
            model, unit = model.scaled(slope, 0.0 if targets.roots else offset), unit * slope
        fitted = self._fitted_terms(model, cells, True)
        return {
            **fitted,
            **described,
            "intercept_": float(fitted["intercept_"][0]),
            "offset_": offset if targets.roots else 0.0,
            "_targets": targets,
            "_target_unit": unit,
        }

    @staticmethod
    def _by_steps(fit: StageFit) -> tuple[Curves, dict[str, Any]]:
        """Fit the curves by gradient steps, and add tables."""
        parameters, cells = fit.parameters, fit.cells
        layout, features = features_of(parameters, cells)
        noise = noise_multiplier(parameters.epsilon, parameters.delta, 0)
        clip, loss = _CLIP + _MORE_CLIP / (1 + noise), Huber(_MOST_RESIDUAL)

        def make(label: str, reserved: float) -> GradientEngine:
            epsilon, delta = parameters.epsilon, parameters.delta
            return GradientEngine(epsilon, delta, reserved, layout, loss, clip, _WALK, label=label)

        def curves(engine: Averaged, coef: Array, start: Array, lone: Any) -> tuple[Curves, dict[str, Any]]:
            tables, factor, intercept = features.tables(coef[0]), 1.0, float(start[0])
            if cells.noise > 0:
                factor, intercept = without_noise(engine, features, cells, tables, intercept, lone)
            values = [factor * curve[bins][:, None] for curve, bins in zip(tables, layout.bins, strict=True)]
            model = Curves(layout.terms, values, np.array([intercept]))
            return model, {"_engine": engine, "_kept": [], "_bend": 1.0}

        return fit.by_steps(features, make, curves)

    @property
    def link_(self) -> str:
        """What the terms add up to: the prediction (``"identity"``), or its square root before `offset_` (``"sqrt"``).

        It follows from the released range and mean of the targets (see :ref:`additive-link`).
        """
        check_is_fitted(self, "terms_")
        return "sqrt" if self._targets.roots else "identity"

    def predict(self, X: Any) -> Array:
        """Return the predictions of rows, from the sums of their terms and the intercept.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            The sum, or its square plus `offset_` if `link_` is ``"sqrt"``, clipped to the released range of the
            targets.
        """
        scores = self._scores(X)[:, 0]
        return self._targets.range.clipped(self._targets.inverse(scores) + self.offset_)

    def _range_of_predictions(self) -> list[float]:
        return [self._targets.range.lower, self._targets.range.upper]

    def _slopes(self, X: Any) -> Any:
        return 2 * np.maximum(self._scores(X), 0.0) if self._targets.roots else 1.0


def _predictions(targets: Targets, model: Curves, codes: Codes) -> Array:
    return targets.in_range(model.scores(codes)[:, 0])
