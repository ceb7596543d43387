r"""Additive logistic regression: a curve for each column, from counts in cells and one perturbed objective.

Released: the numbers of records in the cells of each column (and before, if asked for, the edges of cells); then the
minimiser of a perturbed objective, or sums of clipped gradients, step by step, of a logistic regression on public
features of the cells. The model is computed from that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from ..accounting import PrivacyCost, gaussian_mu
from ..checks.data import labelled_data
from ..checks.params import check_choice, check_classes, check_integer, check_positive
from ..mechanisms import coordinate_variance
from ..release.estimator import LabelsMixin, Records, Shape
from ..release.session import PrivacyGuarantee, ReleaseSession
from ..schema.columns import Codes, Columns
from ..solvers.linear_rule import LogOdds
from ..solvers.losses import LogLoss, SoftmaxLogLoss
from ..solvers.regularised import noise_multiplier
from ._base import MOST_BINS, AdditiveModel, AnyLayout, Parameters
from ._engines import GradientEngine, ObjectiveEngine, mechanism_of
from ._fine import check_fine_cells, fine_cells_of, refined, split_for_pairs
from ._groups import FINE_PAIR_CELLS, GroupedLayout
from ._plans import COUNTS, Before, release_cells
from ._rounds import LEAST_MU, LESS, Choice, Fitted, RoundsEngine
from ._rounds_noise import noise_in_scores, rounds_noise
from ._rounds_pairs import Found, PairedRounds
from ._sampling_noise import without_sampling
from ._scores import curvatures, logits
from ._terms import Layout
from ._uncertainty import Pseudo

Array = NDArray[np.float64]

SOLVERS = ("auto", "objective", "gradient")

#: The largest margin.
_MOST_MARGIN = 8.0

# What is public about a fit, besides its parameters.
Design = tuple[Columns, AnyLayout, Any]


def _by_round(values: list[Array]) -> Any:
    return np.stack(values) if len({len(own) for own in values}) == 1 else values


class DPAdditiveClassifier(LogOdds, ClassifierMixin, LabelsMixin, AdditiveModel):
    r"""Differentially private additive logistic regression: one curve for each column, for any number of classes.

    The score of a row is a sum of one number for each column, read off a curve over the column's bins or categories.
    The curves say all that there is to say about the model, and are drawn by
    :class:`~skdp.inspection.AdditiveTermsDisplay`. Tables of text and numbers are taken as they are.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit, positive. ``inf`` adds no noise and gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1). With 0, the fit is pure epsilon-DP; otherwise noise is Gaussian, and much
        smaller. Choose it far below one over the number of records.
    bounds : tuple (lower, upper)
        Bounds of the numeric columns, from public knowledge: numbers, or one for each column of X, or one for each
        numeric column, or one for each numeric column without `bin_edges`. Values beyond are in the outer bins.
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
        most two pairs, or none, where it has two rounds; other fits choose none (see :ref:`additive-pairs`). Each
        choice uses at most 6 % of the budget, and nothing if no pair is likely to pay. Ordered columns of a pair are
        merged to 16 cells. Where `rounds` is not ignored and not 0, the term also has finer cells: bins of these
        columns are split into up to 64 cells, which are then their cells in `terms_`, `bin_edges_` and `cell_counts_`.
        Each pair takes as much of the budget as a column does.
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
    solver : {"auto", "objective", "gradient"}, default="auto"
        How curves are found: by objective perturbation, or by noisy gradient steps, which need a positive `delta`.
        ``"auto"`` takes steps for three classes or more, where it can.
    C : float or "auto", default="auto"
        Weight of the sum of losses against half the squared norm of the coefficients, for objective perturbation. A
        number is used as far as the proof admits it: ``C_`` is what was used.
    margin : float or "auto", default="auto"
        What margins are to be beyond, in [0, 8], for objective perturbation with two classes. A larger one has more
        records speak up against the noise. ``"auto"`` is 0.6 times the logarithm of 1 plus the noise multiplier, 4 at
        most.
    rounds : {"auto", 0, 1, 2}, default="auto"
        Number of perturbed objectives whose records have weights, for two classes and a positive `delta`. With 0, there
        is one objective without weights. With 1, features have mean 0 by the released counts, and losses of records in
        rare cells have smaller weights. With 2, a first objective learns the weights of columns for a second one.
        ``"auto"`` takes 2, or 0 if the released number of records is small for `epsilon`. With ``solver="auto"`` and
        the defaults of `C` and `margin`, 0 then means gradient steps, unless the number is very small. Other fits
        ignore it.
    fine_cells : dict, default=None
        Cells of ordered columns that are finer than their bins, by position or name, where public knowledge gives them:
        the step between values, such as 1 for whole numbers; ``"log"`` for cells of a width of 1 % of the value, and of
        `unit` near 0; or increasing edges. `terms_`, `bin_edges_` and `cell_counts_` are those of these cells. They are
        used where `rounds` is not ignored and not 0. Columns with private edges keep their bins.
    n_steps : int, default=300
        Number of gradient steps.
    classes : array-like, default=None
        The public label set, of at least two labels. Rows with other labels are left out. With None, the labels
        in `y` are taken to be public, with a warning.
    class_weight : dict or "balanced", default=None
        Public weights of labels, not negative. Each record is kept with a probability proportional to the weight of
        its label (see :ref:`weights`). Labels that are not named have weight 1. None gives all labels the same weight.
        ``"balanced"`` releases the counts of labels first, which uses 4 % of the budget, and takes weights that are
        inversely proportional to these counts, of a ratio of at most 100.
    max_weight : float, default=None
        Public upper bound on `sample_weight` of `fit`. Larger weights count as `max_weight`. Required if
        `sample_weight` is given, and without effect otherwise.
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `bounds`, `classes`, `categories` and `fine_cells`. A
        value that is given for `bounds`, `classes` or `fine_cells` counts instead of the schema's. X is then the table
        itself, with text and missing values.
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
        The curves: what each cell of each term adds to the score, of shape (n_cells,), (n_cells, n_cells) for a pair;
        with a last axis of n_classes for three classes or more. Terms of one column have a mean of about 0 over the
        records, by `cell_counts_`.
    term_names_ : list of str
        Names of the terms.
    term_columns_ : list of tuple of int
        The column, or columns, of each term.
    intercept_ : ndarray of shape (1,) or (n_classes,)
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
    classes_ : ndarray of shape (n_classes,)
        The label set, sorted.
    class_weight_ : ndarray of shape (n_classes,)
        The weights from the released counts, at most 1; only with ``class_weight="balanced"``.
    C_ : float or None
        The weight that was used, in the last round if there are several; None for gradient steps.
    margin_ : float
        The margin that was used, in the last round if there are several.
    rounds_ : int
        Number of objectives whose records have weights; 0 for other fits.
    privacy_ : PrivacyGuarantee
        The guarantee, with mechanisms, sensitivities and noise scales.
    term_importances_ : ndarray of shape (n_terms,)
        Mean size of what each term adds to the score, by the released counts.
    feature_importances_ : ndarray of shape (n_features,)
        The same by column, divided by the sum. A pair counts half for each of its columns.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, where X has string names.

    See Also
    --------
    DPAdditiveRegressor : The same for numbers.
    skdp.linear_model.ObjPertLogReg : Logistic regression, linear in the columns.
    skdp.naive_bayes.DPNaiveBayes : Additive as well, from counts alone.

    Notes
    -----
    **Privacy.** (`epsilon`, `delta`)-DP under addition or removal of one record. Released are the numbers of records in
    the cells of each column, for two per cent of the budget; with ``thresholds="quantile"``, edges before; and the
    minimiser of a perturbed objective, or of two, or clipped sums of gradients with noise. The features of a cell are
    public, and of length 1 for each term, so that no row is longer than the square root of the number of terms. With
    `rounds`, features are centred by the released counts, and a record's loss has a weight that bounds its gradient and
    its curvature. The weight is a function of the record and of released numbers. With ``interactions="auto"``, pairs
    are chosen by the exponential mechanism between the two rounds, from scores that one record moves by 1 at most. A
    margin in the log loss does not
    change what objective perturbation costs. Everything else is computed from that. The proofs are in
    :ref:`additive_models`. Not covered: that `fit` raises an error for values that are not finite, and how long it
    takes.

    References
    ----------
    .. [1] H. Nori, R. Caruana, Z. Bu, J. H. Shen and J. Kulkarni, "Accuracy, Interpretability, and Differential Privacy
       via Explainable Boosting", ICML 2021.
    .. [2] T. Hastie and R. Tibshirani, "Generalized Additive Models", Statistical Science 1, 1986.
    .. [3] D. Kifer, A. Smith and A. Thakurta, "Private Convex Empirical Risk Minimization and High-dimensional
       Regression", COLT 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skdp import DPAdditiveClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bounds = [4, 2, 1, 0], [8, 5, 7, 3]
    >>> model = DPAdditiveClassifier(epsilon=5.0, delta=1e-5, bounds=bounds, classes=[0, 1, 2], random_state=0)
    >>> model.fit(X, y).contributions(X).shape
    (150, 4, 3)
    """

    _released = AdditiveModel._released | {"C_", "margin_", "rounds_", "_group_weights", "_kept"}
    _public = frozenset({"term_columns_", "_columns", "_layout", "_engine"})

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        bounds: Any = None,
        categories: Any = None,
        bin_edges: Any = None,
        interactions: Any = None,
        n_bins: int = 32,
        scale: str = "linear",
        unit: float = 1.0,
        thresholds: str = "uniform",
        smoothness: float | str = "auto",
        solver: str = "auto",
        C: float | str = "auto",
        margin: float | str = "auto",
        rounds: int | str = "auto",
        fine_cells: Any = None,
        n_steps: int = 300,
        classes: Any = None,
        class_weight: Any = None,
        max_weight: float | None = None,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.bin_edges = bin_edges
        self.interactions = interactions
        self.n_bins = n_bins
        self.scale = scale
        self.unit = unit
        self.thresholds = thresholds
        self.smoothness = smoothness
        self.solver = solver
        self.C = C
        self.margin = margin
        self.rounds = rounds
        self.fine_cells = fine_cells
        self.n_steps = n_steps
        self.classes = classes
        self.class_weight = class_weight
        self.max_weight = max_weight
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> Parameters:
        self._check_own()
        if not self._chooses():
            check_integer(self.rounds, "rounds", least=0, most=2)
        return replace(super()._check_parameters(), fine=check_fine_cells(self._declared_fine_cells()))

    def _declared_fine_cells(self) -> Any:
        encoding = self._encoding()
        return self.fine_cells if self.fine_cells is not None or encoding is None else fine_cells_of(encoding)

    def _read(self, X: Any, y: Any, parameters: Parameters) -> tuple[Any, Any, NDArray[np.bool_], Shape]:
        X = self._entries(X, parameters)
        positions = np.zeros((len(X[0]), 1))
        _, labels, classes = labelled_data(
            self._without_columns(), positions, y, check_classes(self._declared("classes"))
        )
        return X, labels, labels >= 0, Shape(len(X), len(classes), names=self._names(), classes=classes)

    def _plan(self, parameters: Parameters, shape: Shape) -> tuple[PrivacyGuarantee, Design]:
        columns = parameters.table(shape.n_features, shape.names, named=shape.is_read)
        if self._in_rounds(parameters, shape.n_classes):
            fine = refined(columns, parameters.fine, parameters.columns.unit, MOST_BINS, shape.names, shape.is_read)
            return self._plan_rounds(parameters, fine, columns)
        layout, before = self._prepared(parameters, columns)
        engine = self._engine_for(parameters, layout, before, shape.n_classes)
        return before.and_then(engine.plan()), (columns, layout, engine)

    def _chooses(self) -> bool:
        """Tell whether the number of rounds follows from the released number of records."""
        return isinstance(self.rounds, str) and self.rounds == "auto"

    def _in_rounds(self, parameters: Parameters, n_classes: int) -> bool:
        """Tell whether records may have weights."""
        admitted = parameters.delta > 0 and n_classes == 2 and self.solver != "gradient"
        # Without noise, there is nothing to gain from weights.
        if self._chooses():
            return admitted and (parameters.private or len(parameters.fine) > 0)
        return admitted and int(self.rounds) > 0

    def _plan_rounds(
        self, parameters: Parameters, columns: Columns, coarse: Columns
    ) -> tuple[PrivacyGuarantee, Design]:
        solver, C, margin = self._check_own()
        epsilon, delta = parameters.epsilon, parameters.delta
        finer = [j for j, (n, m) in enumerate(zip(columns.sizes, coarse.sizes, strict=True)) if n > m]
        columns = split_for_pairs(columns, FINE_PAIR_CELLS, finer)
        noise = noise_multiplier(epsilon, delta, 0)
        layout = GroupedLayout.of(columns, coarse, parameters.smoothness, noise, finer)
        before = Before.of(epsilon, delta, columns)
        n_rounds = 2 if self._chooses() else self.rounds
        rounds = RoundsEngine(epsilon, delta, before.share, layout, int(n_rounds), C, margin)
        plain = None
        if self._chooses() and parameters.private:
            plain = ObjectiveEngine(epsilon, delta, before.share, self._prepared(parameters, coarse)[0], 2, C, margin)
        if parameters.chooses_pairs and parameters.private and n_rounds == 2:
            paired = PairedRounds(rounds, plain, coarse, finer, parameters.smoothness, noise)
            return before.and_then(paired.plan()), (columns, layout, paired)
        if plain is None:
            return before.and_then(rounds.plan()), (columns, layout, rounds)
        steps = None
        if solver == "auto" and C is None and margin is None and gaussian_mu(epsilon, delta) >= LEAST_MU:
            steps = GradientEngine(epsilon, delta, before.share + LESS, plain.layout, LogLoss(), parameters.n_steps)
        choice = Choice(plain, steps, rounds)
        return before.and_then(choice.plan()), (columns, layout, choice)

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Parameters, design: Design
    ) -> dict[str, Any]:
        columns, layout, engine = design
        shape = records.shape
        noise = math.sqrt(coordinate_variance(session.mechanism(COUNTS)))
        cells = release_cells(session, columns, records.X, shape.names, labels=True)
        codes = layout.codes(cells.codes)
        used, fits = engine, None
        if isinstance(engine, PairedRounds):
            engine = engine.run(session, cells, records.X, records.y, noise)
            if isinstance(engine, Found):
                layout, cells, fits, engine = engine.layout, engine.cells, engine.fits, engine.engine
            used = engine
        elif isinstance(engine, Choice):
            used = engine.chosen(session, cells.total)
        weights: Any = np.empty((0, 0))
        kept = np.empty(0)
        if isinstance(used, RoundsEngine):
            if fits is None:
                shares = used.layout.probabilities(cells.counts, noise)
                fits = used.run(session, codes, records.y, shares, cells.total)
            tables = [sum(values)[:-1, None] for values in zip(*(fit.tables() for fit in fits), strict=True)]
            intercept = np.array([sum(fit.intercept for fit in fits)])
            # With pairs that were chosen in between, rounds have different features.
            coef, weights = _by_round([fit.theta for fit in fits]), _by_round([fit.features.weights for fit in fits])
        else:
            plain = used.layout
            assert isinstance(plain, Layout)
            own = layout.in_bins(codes, plain) if isinstance(layout, GroupedLayout) else codes
            if isinstance(used, GradientEngine):
                counts = _counts_for(layout, cells.counts)
                within = used.within(counts, cells.total)
                coef, intercept, _ = within.run(session, own, records.y, cells.total)
                tables, kept = without_sampling(within, coef, intercept, counts, cells.total)
            else:
                coef, intercept = used.run(session, own, records.y)
                tables = plain.values(coef)
            tables = layout.in_cells(tables, plain) if isinstance(layout, GroupedLayout) else tables
        return {
            **self._fitted_terms(tables, intercept, cells, columns, layout, shape.n_classes == 2),
            "_engine": engine,
            "_coef": coef,
            "_offset": intercept,
            "_group_weights": weights,
            "_kept": kept,
            "C_": None if isinstance(used, GradientEngine) else used.weight,
            "margin_": 0.0 if isinstance(used, GradientEngine) else used.offset,
            "rounds_": used.n_rounds if isinstance(used, RoundsEngine) else 0,
        }

    @property
    def _found_by(self) -> ObjectiveEngine | GradientEngine | RoundsEngine:
        """The engine that found the curves."""
        engine = self._engine
        return engine.of(self.rounds_, self.C_ is None) if isinstance(engine, Choice) else engine

    def _check_own(self) -> tuple[str, float | None, float | None]:
        solver = check_choice(self.solver, "solver", SOLVERS)
        automatic = isinstance(self.C, str) and self.C == "auto"
        C = None if automatic else check_positive(self.C, "C")
        automatic = isinstance(self.margin, str) and self.margin == "auto"
        margin = None if automatic else check_positive(self.margin, "margin", least=0.0, most=_MOST_MARGIN)
        return solver, C, margin

    def _engine_for(
        self, parameters: Parameters, layout: Layout, before: Before, n_classes: int
    ) -> ObjectiveEngine | GradientEngine:
        solver, C, margin = self._check_own()
        epsilon, delta = parameters.epsilon, parameters.delta
        if solver == "auto":
            solver = "gradient" if n_classes > 2 and delta > 0 else "objective"
        if solver == "objective":
            return ObjectiveEngine(epsilon, delta, before.share, layout, n_classes, C, margin)
        if delta == 0:
            raise ValueError('delta must be positive with solver="gradient": its noise is Gaussian')
        loss = LogLoss() if n_classes == 2 else SoftmaxLogLoss(n_classes)
        return GradientEngine(epsilon, delta, before.share, layout, loss, parameters.n_steps)

    def _fixed_cost(self) -> PrivacyCost | None:
        classes = check_classes(self._declared("classes"))
        _, C, _ = self._check_own()
        # Without the label set, or with a weight whose price grows with the number of terms, it depends on the data.
        if self.delta > 0 and (classes is None or C is not None):
            return None
        parameters = self._check_parameters()
        columns = self._any_columns(parameters)
        n_classes = 2 if classes is None else len(classes)
        if self._in_rounds(parameters, n_classes):
            return self._plan_rounds(parameters, columns, columns)[0].cost
        layout, before = self._prepared(parameters, columns)
        return before.and_then(self._engine_for(parameters, layout, before, n_classes).plan()).cost

    def _noise_in_cells(self, codes: Codes) -> tuple[list[Array], list[Array]]:
        layout, counts, used = self._layout, self.cell_counts_, self._found_by
        if isinstance(used, RoundsEngine):
            return rounds_noise(self._restored(used), codes, self.n_samples_estimate_, counts)
        if isinstance(layout, GroupedLayout):
            assert isinstance(used.layout, Layout)
            found = self._noise_of(used.layout, layout.in_bins(codes, used.layout), _counts_for(layout, counts))
            return tuple(layout.in_cells(own, used.layout) for own in found)
        return super()._noise_in_cells(codes)

    def _noise_in_scores(self, records: Codes) -> Callable[[Codes], Array]:
        layout, used = self._layout, self._found_by
        if isinstance(used, RoundsEngine):
            return noise_in_scores(self._restored(used), records, self.n_samples_estimate_)
        if isinstance(layout, GroupedLayout):
            plain = used.layout
            assert isinstance(plain, Layout)
            find = self._noise_of_rows(plain, layout.in_bins(records, plain), used.constant)
            return lambda codes: find(layout.in_bins(codes, plain))
        return self._noise_of_rows(layout, records, used.constant)

    def _restored(self, used: RoundsEngine) -> list[Fitted]:
        """Return the features and coefficients of the rounds, from released numbers."""
        noise = math.sqrt(coordinate_variance(mechanism_of(self.privacy_, COUNTS)))
        shares = used.layout.probabilities(self.cell_counts_, noise)
        return used.restored(self._coef, self._group_weights, shares, self.n_samples_estimate_)

    def _spread(self, pseudo: Pseudo) -> list[Array]:
        used = self._found_by
        assert not isinstance(used, RoundsEngine)
        scores = pseudo.features @ self._coef.T + self._offset
        most = np.inf
        if isinstance(used, GradientEngine):
            used = used.within(_counts_for(self._layout, self.cell_counts_), self.n_samples_estimate_)
            most = used.descent.max_norm / used.descent.settings.row_norm
        bends = curvatures(scores[:, 0] if len(self.classes_) == 2 else scores, self.margin_, float(most))
        spread = used.spread(pseudo, self._coef, used.plan(), bends)
        if not isinstance(used, GradientEngine):
            return spread
        kept = np.append(np.repeat(self._kept, [term.width for term in used.layout.terms]), 1.0)
        return [kept[:, None] * own for own in spread]

    def decision_function(self, X: Any) -> Array:
        """Return the sum of each row's terms and the intercept.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive for the second class when there are two; else one score a class.
        """
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def _label_scores(self, X: Any) -> Array:
        return self.decision_function(X)

    def _logits(self, X: Any) -> Array:
        return logits(self.decision_function(X), self.margin_)


def _counts_for(layout: AnyLayout, counts: list[Array]) -> list[Array]:
    """Return counts in the bins of gradient steps, which have no finer cells."""
    return layout.counts_in_bins(counts) if isinstance(layout, GroupedLayout) else counts
