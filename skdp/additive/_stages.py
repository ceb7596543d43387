r"""Boosting by stages: each stage chooses a table over one, two or three columns, and adds it to the scores.

A stage computes the residuals of the model so far, which is public. The exponential mechanism chooses a table from
sums of residuals in the cells of each candidate. The sums of residuals and of curvatures in the cells of the chosen
table are then released. The values of the table are Newton steps from these sums, shrunk by the part that noise and
sampling explain. Candidates, their cells and the number of stages follow from public parameters and released counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..checks.params import Checked
from ..mechanisms import coordinate_variance, within_reach
from ..parts.arrays import PartedArray, folded, kept, rowwise
from ..release.reserve import Reserve
from ..release.session import Release, ReleaseSession, Theorem
from ..schema.columns import Codes
from ..sensitivity import truncate
from ..solvers.linear_descent import GRADIENTS, probabilities
from ._cells import Candidate, Candidates, Term, joint_cells, of_columns
from ._curves import AGAIN, Averaged, GradientEngine, Link
from ._features import Centred
from ._plans import LEAST_REST, Cells

Array = NDArray[np.float64]

#: Share of the curves in the budget without the counts, if there are stages.
CURVES_SHARE = 0.4

#: Share of the table of each named pair in the budget without the counts, if there is room.
TABLE_SHARE = 0.15

#: Share of a choice in the budget of its stage, with a positive delta and without one.
CHOICE_SHARE, PURE_CHOICE_SHARE = 0.15, 0.3

#: There are about as many stages as the first number at as many records times the GDP parameter as the second number.
#: Their number grows with this power, and there are none with fewer records than the last number.
STAGES, AT, POWER, MOST_STAGES, FEWEST = 6.0, 6600.0, 0.66, 32, 1000.0

#: With ``delta=0``, there are so many stages at as many records times epsilon, divided by the bound of residuals.
PURE_STAGES, PURE_AT, PURE_POWER, PURE_FEWEST = 5.0, 3600.0, 0.5, 50.0

#: The largest change of a score by one stage.
MOST_STEP = 3.0

#: The clipping bound of residuals of numbers, in standard deviations.
DEVIATIONS = 2.5

# Contributions are rounded towards 0 to multiples of this number, so that their sums are exact.
_STEP = 2.0**-20

# Scores are divided and reduced by public numbers, whose rounding errors are far below this number.
_ROUNDING = 2.0**-12

# The smallest variance of residuals relative to the square of their clipping bound.
_LEAST_VARIANCE = 0.01

_THEOREM = Theorem("Additive models", 4)


def n_stages(evidence: float, n_outputs: int, pure: bool = False) -> int:
    """Return the number of stages for the released number of records times epsilon or the GDP parameter of the fit."""
    stages, at, power, fewest = STAGES, AT, POWER, FEWEST
    if pure:
        stages, at, power, fewest = PURE_STAGES, PURE_AT, PURE_POWER, PURE_FEWEST
    evidence /= min(n_outputs, 2) if pure else math.sqrt(n_outputs)
    if evidence < fewest:
        return 0
    return max(round(min(stages * (evidence / at) ** power, MOST_STAGES)), 1)


@dataclass(frozen=True)
class StageLoss:
    """The residuals and curvatures of records, each limited in norm.

    The contribution of a record to the sums of its cell is its residuals, followed by its curvatures times
    `curvature_weight`. It is shortened to the norm `bound`: the L1 norm if `pure`, and otherwise the L2 norm. The L1
    norm of its residuals is at most `residual_bound`.
    """

    n_outputs: int = 1
    pure: bool = False

    @property
    def residual_bound(self) -> float:
        return 1.0 if self.n_outputs == 1 else 2.0

    @property
    def bound(self) -> float:
        return self.residual_bound if self.pure else math.sqrt(self.residual_bound)

    @property
    def curvature_weight(self) -> float:
        return 1.0 if self.pure else 3.0 if self.n_outputs == 1 else 2.0

    @property
    def damping(self) -> float:
        """The smallest step that solves the equation of all classes, in steps of single classes."""
        return 1.0 if self.n_outputs == 1 else 1 - 1 / self.n_outputs

    n_totals = 0

    def contributions(self, scores: Array, targets: NDArray) -> Array:
        """Return the contributions of records, of shape (n_rows, 2 * n_outputs), exactly summable."""
        residuals, curvatures = self._parts(scores, targets)
        rows = np.hstack([residuals, self.curvature_weight * curvatures])
        lengths = np.linalg.norm(rows, 1 if self.pure else 2, axis=1, keepdims=True)
        rows *= np.minimum(1.0, self.bound * (1 - 2.0**-40) / np.maximum(lengths, 1e-30))
        return truncate(rows, _STEP)

    def _parts(self, scores: Array, targets: NDArray) -> tuple[Array, Array]:
        raise NotImplementedError


@dataclass(frozen=True)
class LabelLoss(StageLoss):
    """Log loss of labels, for scores with a link to log-odds."""

    link: Link = field(default_factory=Link)

    def _parts(self, scores: Array, targets: NDArray) -> tuple[Array, Array]:
        if self.n_outputs == 1:
            s = scores[:, 0]
            p = special.expit(self.link.logits(s))
            return ((targets == 1) - p)[:, None], (p * (1 - p) * self.link.slope(s))[:, None]
        p = probabilities(self.link.logits(scores))
        return (targets[:, None] == np.arange(self.n_outputs)) - p, p * (1 - p)


@dataclass(frozen=True)
class SquaredLoss(StageLoss):
    """Squared error of numbers, in units of a clipping bound. Squares of residuals are summed over all records."""

    clip: float = 1.0
    centred: bool = True  # Whether the scores have the mean of the targets.

    n_totals = 1
    curvature_weight = 0.3

    @property
    def square_weight(self) -> float:
        return 0.1 if self.pure else 0.3

    @property
    def bound(self) -> float:
        if self.pure:
            return 1 + self.curvature_weight + self.square_weight
        return math.sqrt(1 + self.curvature_weight**2 + self.square_weight**2)

    def contributions(self, scores: Array, targets: NDArray) -> Array:
        residuals = np.clip((targets - scores[:, 0]) / self.clip, -1.0, 1.0)
        rows = np.empty((len(residuals), 3))
        rows[:, 0], rows[:, 1], rows[:, 2] = residuals, self.curvature_weight, self.square_weight * residuals**2
        return truncate(rows, _STEP)


@dataclass(frozen=True, eq=False)
class Stage:
    """A released table: values that its cells add to the scores, and standard deviations of their noise."""

    term: Term
    values: Array
    noise: Array


@dataclass(frozen=True, eq=False)
class Boosting:
    """The stages of a fit, described by public values and released counts."""

    loss: LabelLoss | SquaredLoss
    candidates: Candidates
    count: float  # Released number of records.
    n_stages: int
    named: tuple[Candidate, ...] = ()  # The tables of the last stages, which are not chosen.

    def run(self, reserve: Reserve, scores: Any, codes: Any, targets: Any) -> list[Stage]:
        """Release chosen tables until "none" is chosen, and those that are named. `scores` are those of the curves."""
        loss = self.loss
        spread = np.full(loss.n_outputs, 0.15)
        share = reserve.share / self.n_stages
        n_choices, chooses = self.n_stages - len(self.named), True
        stages: list[Stage] = []
        for index in range(self.n_stages):
            arrays, of_choice = [scores, targets, codes], 0.0
            chosen: Candidate | None = None
            if index >= n_choices:
                chosen = self.named[index - n_choices]
            elif chooses:
                of_choice = share * (PURE_CHOICE_SHARE if reserve.pure else CHOICE_SHARE)
                chosen = self._choose(reserve, of_choice, index, loss, arrays, spread)
                chooses = chosen is not None
            if chosen is None:
                continue
            left = reserve.share if index == self.n_stages - 1 else share - of_choice
            term = self.candidates.term(chosen)
            stage, spread, square = self._release_table(reserve, left, index, loss, term, arrays)
            stages.append(stage)
            scores = rowwise(partial(_added, term, stage.values), scores, codes)
            if isinstance(scores, PartedArray):
                scores, targets, codes = kept([scores, targets, codes])
            if isinstance(loss, SquaredLoss):
                variance = min(max(square / self.count, _LEAST_VARIANCE), 1.0)
                clip = min(loss.clip, DEVIATIONS * math.sqrt(variance) * loss.clip)
                spread = np.array([min(variance * (loss.clip / clip) ** 2, 1.0)])
                loss = replace(loss, clip=clip)
        return stages

    def _choose(
        self,
        reserve: Reserve,
        share: float,
        index: int,
        loss: LabelLoss | SquaredLoss,
        arrays: list[Any],
        spread: Array,
    ) -> Candidate | None:
        """Choose a candidate by its sums of residuals, or none."""
        label = f"choice {index + 1}"
        mechanism = reserve.choice(share, loss.residual_bound * (1 + _ROUNDING))
        reserve.spend(share, [Release(label, mechanism, share, _THEOREM)])
        sums = folded(partial(_sums_of_residuals, self.candidates, loss), arrays)
        sizes = self.candidates.sizes(self.candidates.split(sums, loss.n_outputs))
        # Sums of noise and of sampling errors alone have these expected sizes.
        of_table = reserve.sums(reserve.share / (self.n_stages - index), loss.bound, 1)
        expected = self.candidates.expected(coordinate_variance(of_table), spread, self.count)
        beyond = np.append(sizes - expected, 0.0)
        position = int(reserve.session.release(label, beyond[None])[0])
        return self.candidates.every[position] if position < len(sizes) else None

    def _release_table(
        self, reserve: Reserve, share: float, index: int, loss: LabelLoss | SquaredLoss, term: Term, arrays: list[Any]
    ) -> tuple[Stage, Array, float]:
        """Release the sums of a table. Return the table, mean curvatures, and the sum of squared residuals."""
        label = f"table {index + 1}"
        n_cells, width = math.prod(term.shape), 2 * loss.n_outputs
        mechanism = reserve.sums(share, loss.bound, n_cells * width + loss.n_totals)
        reserve.spend(share, [Release(label, mechanism, share, _THEOREM)])
        sums = folded(partial(_sums_of_cells, term, loss), arrays)
        noise = math.sqrt(coordinate_variance(mechanism))
        released = reserve.session.release(label, within_reach(mechanism, sums))
        square = float(released[-1]) / loss.square_weight if isinstance(loss, SquaredLoss) else 0.0
        cells = released[: n_cells * width].reshape(n_cells, width)
        values, deviations, curvature = table_values(loss, cells, noise, self.count, square)
        if isinstance(loss, SquaredLoss):
            values, deviations = values * loss.clip, deviations * loss.clip
        return Stage(term, values, deviations), curvature, square


@dataclass(frozen=True, eq=False)
class Curves:
    """A public additive model: its terms, the values of their cells, and the variances that noise of stages gives."""

    terms: tuple[Term, ...]
    tables: list[Array]
    intercept: Array
    stage_variances: list[Array] | None = None

    @classmethod
    def constant(cls, sizes: Sequence[int], intercept: Array) -> Curves:
        """Return curves of zeros."""
        return cls(of_columns(sizes), [np.zeros((size, len(intercept))) for size in sizes], intercept)

    @property
    def variances(self) -> list[Array]:
        return self.stage_variances or [np.zeros_like(values) for values in self.tables]

    @property
    def limits(self) -> tuple[float, float]:
        """Bounds on the scores of one output."""
        ends = [(values.min(initial=0.0), values.max(initial=0.0)) for values in self.tables]
        least, most = (self.intercept[0] + np.sum(ends, axis=0)).tolist()
        return least, most

    def scaled(self, factor: float, shift: float = 0.0) -> Curves:
        """Return the model of scores that are multiplied by a factor and shifted."""
        tables = [factor * values for values in self.tables]
        variances = [factor**2 * values for values in self.variances]
        return Curves(self.terms, tables, shift + factor * self.intercept, variances)

    def scores(self, codes: Codes) -> Array:
        """Return the scores of records from their cells, of shape (n_rows, n_outputs)."""
        scores = np.tile(self.intercept, (codes.shape[1], 1))
        for term, values in zip(self.terms, self.tables, strict=True):
            scores += np.vstack([values, np.zeros((1, values.shape[1]))]).take(term.codes(codes), axis=0)
        return scores

    def with_stages(self, stages: list[Stage], shares: list[Array]) -> Curves:
        """Return the model with the tables of stages.

        The effects of single columns in a table, for independent columns, are added to the curves of these columns.
        """
        tables, variances, intercept = list(self.tables), self.variances, self.intercept
        extra: dict[tuple[int, ...], list[Stage]] = {}
        for stage in stages:
            if len(stage.term.columns) == 1:
                (j,), (cells,) = stage.term.columns, stage.term.maps
                tables[j] = tables[j] + stage.values[cells[:-1]]
                variances[j] = variances[j] + stage.noise[cells[:-1]] ** 2
            else:
                extra.setdefault(stage.term.columns, []).append(stage)
        terms = list(self.terms)
        for columns, several in extra.items():
            term, values, variance = _together(columns, several)
            for axis, (j, cells) in enumerate(zip(columns, term.maps, strict=True)):
                effect = _effect(values, axis, term, shares)
                tables[j] = tables[j] + effect[cells[:-1]]
                values = values - np.expand_dims(effect, tuple(k for k in range(len(columns)) if k != axis))
            terms.append(term)
            tables.append(values.reshape(-1, values.shape[-1]))
            variances.append(variance)
        return Curves(tuple(terms), tables, intercept, variances)


def _together(columns: tuple[int, ...], stages: list[Stage]) -> tuple[Term, Array, Array]:
    """Return the sum of tables over the same columns, on cells that are finer than those of all of them."""
    maps, places = [], []
    for axis in range(len(columns)):
        merged = np.stack([stage.term.maps[axis][:-1] for stage in stages])
        different, cells = np.unique(merged, axis=1, return_inverse=True)
        maps.append(np.append(cells.reshape(-1), different.shape[1]).astype(np.int32))
        places.append(different)
    term = Term(columns, tuple(maps))
    outputs = stages[0].values.shape[1]
    values = np.zeros((*term.shape, outputs))
    variance = np.zeros((*term.shape, outputs))
    for k, stage in enumerate(stages):
        which = np.ix_(*(positions[k] for positions in places))
        values += stage.values.reshape(*stage.term.shape, outputs)[which]
        variance += stage.noise.reshape(*stage.term.shape, outputs)[which] ** 2
    return term, values, variance.reshape(-1, outputs)


def _effect(values: Array, axis: int, term: Term, shares: list[Array]) -> Array:
    """Return the mean of a table for each cell of one of its columns, if its other columns are independent."""
    for k in reversed(range(len(term.columns))):
        if k != axis:
            weights = np.bincount(term.maps[k][:-1], shares[term.columns[k]], int(term.maps[k][-1]))
            values = np.tensordot(weights, values, (0, k))
    return values


@dataclass(frozen=True, eq=False)
class StageFit:
    """A fit of curves and tables: those of named pairs, or chosen ones by the released number of records."""

    session: ReleaseSession
    reserve: Reserve
    cells: Cells
    targets: Any
    parameters: Checked
    loss: LabelLoss | SquaredLoss

    @cached_property
    def n_stages(self) -> int:
        reserve, chosen = self.reserve, 0
        if self.parameters.chooses or reserve.pure:
            evidence = reserve.evidence if reserve.pure else min(reserve.evidence, 10.0)
            chosen = n_stages(self.cells.total * evidence, self.loss.n_outputs, reserve.pure)
        return chosen + len(self.cells.columns.pairs)

    def by_tables(self, intercept: Array) -> tuple[Curves, dict[str, Any]]:
        """Add tables to a constant."""
        model = Curves.constant(self.cells.columns.sizes, intercept)
        described: dict[str, Any] = {"_layout": None, "_engine": None, "_kept": [], "_bend": 0.0}
        return model.with_stages(self._stages(model), self.cells.shares), described

    def by_steps(
        self, features: Centred, make: Callable[..., GradientEngine], curves: Callable[..., Any], intercept: Any = None
    ) -> tuple[Curves, dict[str, Any]]:
        """Fit curves by gradient steps, add tables, and fit the curves again with what the stages leave.

        `make` returns an engine for its label and the part of the budget that others use. `curves` returns the model
        and its attributes for engines and the average of their coefficients and intercepts.
        """
        codes, count = rowwise(features.layout.codes, self.cells.codes), self.cells.total
        tables = self.n_stages
        part = CURVES_SHARE if self.parameters.chooses and tables else max(CURVES_SHARE, 1 - TABLE_SHARE * tables)
        first = planned(self.reserve, partial(make, GRADIENTS), part)
        coef, start, lone = first.run(self.session, codes, self.targets, count, features, None, intercept)
        model, described = curves(Averaged((first,)), coef, start, lone)
        stages = self._stages(model)
        if self.parameters.private and self.reserve.share > LEAST_REST:
            second = planned(self.reserve, partial(make, AGAIN))
            of_tables = rowwise(partial(scores_of_stages, stages), self.cells.codes) if stages else None
            other, other_start, _ = second.run(self.session, codes, self.targets, count, features, of_tables, intercept)
            weight = (1 - first.reserved) / (2 - first.reserved - second.reserved)
            coef, start = weight * coef + (1 - weight) * other, weight * start + (1 - weight) * other_start
            model, described = curves(Averaged((first, second), (weight, 1 - weight)), coef, start, lone)
        return model.with_stages(stages, self.cells.shares), {"_layout": features.layout, **described}

    def _stages(self, model: Curves) -> list[Stage]:
        """Release the tables of all stages."""
        if not self.n_stages:
            return []
        cells, reserve = self.cells, self.reserve
        by_column = zip(cells.shares, model.tables, strict=True)
        sizes = [float(shares @ (values**2).sum(axis=1)) for shares, values in by_column]
        candidates = Candidates.of(
            cells.shares, cells.columns.ordered, np.array(sizes), cells.total, reserve.pure, self.parameters.chooses
        )
        named = tuple(candidates.largest(pair) for pair in cells.columns.pairs)
        boosting = Boosting(self.loss, candidates, cells.total, self.n_stages, named)
        return boosting.run(reserve, rowwise(model.scores, cells.codes), cells.codes, self.targets)


def planned(reserve: Reserve, make: Callable[[float], Any], part: float = 1.0) -> Any:
    """Plan the releases of an engine for a part of what is left of the budget."""
    share = reserve.share * part
    engine = make(1 - share * (1 - 2.0**-30))
    guarantee = engine.plan()
    reserve.spend(share, guarantee.releases, guarantee.events)
    return engine


def scores_of_stages(stages: list[Stage], codes: Codes) -> Array:
    """Return the scores that the tables of stages add, of shape (n_rows, n_outputs)."""
    scores = np.zeros((codes.shape[1], stages[0].values.shape[1] if stages else 1))
    for stage in stages:
        scores = _added(stage.term, stage.values, scores, codes)
    return scores


def table_values(
    loss: LabelLoss | SquaredLoss, cells: Array, noise: float, count: float, square: float
) -> tuple[Array, Array, Array]:
    """Return the values of cells, the standard deviations of their noise, and mean curvatures, from released sums."""
    outputs = loss.n_outputs
    sums, curvatures = cells[:, :outputs], cells[:, outputs:] / loss.curvature_weight
    curvature_noise = noise / loss.curvature_weight
    mean = np.clip(curvatures.sum(axis=0) / count, 1e-3, 1.0)
    curvatures = np.maximum(curvatures, np.maximum(curvature_noise, 1e-3 * mean * count / len(cells)))
    steps = loss.damping * sums / curvatures
    # The variance of a sum of residuals is the sum of curvatures, if the model is correct.
    variance = min(max(square / count, _LEAST_VARIANCE), 1.0) if isinstance(loss, SquaredLoss) else 1.0
    errors = loss.damping**2 * (noise**2 + variance * curvatures) / curvatures**2
    weights = curvatures / curvatures.sum(axis=0)
    signal = np.maximum(((steps**2 - errors) * weights).sum(axis=0), 0.0)
    factors = signal / (signal + errors)
    values = np.clip(factors * steps, -MOST_STEP, MOST_STEP)
    if isinstance(loss, SquaredLoss) and loss.centred:
        # The curves have the mean of the targets. Residuals that are clipped have another mean.
        values -= (weights * values).sum(axis=0)
    return values, factors * loss.damping * noise / curvatures, mean


def _sums_of_residuals(
    candidates: Candidates, loss: LabelLoss | SquaredLoss, scores: Array, targets: NDArray, codes: Codes
) -> Array:
    residuals = loss.contributions(scores, targets)[:, : loss.n_outputs]
    return candidates.sums(codes, np.asfortranarray(residuals))


def _sums_of_cells(term: Term, loss: LabelLoss | SquaredLoss, scores: Array, targets: NDArray, codes: Codes) -> Array:
    """Return the exact sums of contributions by cell, followed by the totals."""
    rows = loss.contributions(scores, targets)
    joint = joint_cells(term.maps, [codes[j] for j in term.columns])
    size, width = math.prod(term.shape), 2 * loss.n_outputs
    by_cell = [np.bincount(joint, column, size + 1)[:size] for column in np.asfortranarray(rows).T[:width]]
    return np.concatenate([np.stack(by_cell, axis=1).ravel(), rows[:, width:].sum(axis=0)])


def _added(term: Term, values: Array, scores: Array, codes: Codes) -> Array:
    """Return the scores of records with a table."""
    joint = joint_cells(term.maps, [codes[j] for j in term.columns])
    return scores + np.vstack([values, np.zeros((1, values.shape[1]))]).take(joint, axis=0)
