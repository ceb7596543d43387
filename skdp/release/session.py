"""The session of a fit, the only place where private values become released ones.

A plan is made from public parameters only. A session charges the whole plan before anything is computed from the data,
and then makes each planned release once. All results of a session are public.

A fit consists of phases: the releases of its plan, or the parts of a search in their order. A phase may have steps.
Names of phases and numbers of steps follow from public parameters and from earlier releases. Therefore reports are
post-processing, except for the elapsed time, which no guarantee covers. A phase with a private number of steps reports
only its start and its end. Callbacks receive None in place of rows and labels. Estimators for callbacks consist of
released values. A callback may request to stop early, without effect, because all steps are charged.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..accounting import (
    AttackBounds,
    Budget,
    BudgetAccountant,
    GaussianEvent,
    PrivacyCost,
    PrivacyEvent,
    PrivacyLossDistribution,
    PureEvent,
    RecordedRelease,
    Relation,
    attack_bounds,
    warn_of_delta,
)
from ..checks.params import N_CHARGES, check_integer, warn, warn_of_callers
from ..exceptions import ReleaseError, SeededNoiseWarning
from ..mechanisms import BitStream, Mechanism, NoiseSource, SampledGaussianMechanism
from ..schema.schema import as_html

Item = TypeVar("Item")
Method = TypeVar("Method", bound=Callable[..., Any])

#: Returns fitted attributes as if the fit had ended here, from released values alone.
Attributes = Callable[[], dict[str, Any]]

#: Names and numbers of steps of phases. The number is 0 for a phase without steps, and None if releases determine it.
Phases = Sequence[tuple[str, int | None]]

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks as with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Method) -> Method:
        """Return the method unchanged."""
        return method


# A report takes some microseconds, even if there is no callback.
_MOST_REPORTS = 100

# Lines for the steps of a phase, with verbose=1; all reports are printed with a larger number.
_MOST_LINES = 10


class Progress:
    """Report the progress of one fit. `with_callbacks` must decorate the method around it."""

    def __init__(self, estimator: Any = None) -> None:
        # None, and estimators without `verbose`, report nothing.
        self._estimator = estimator
        self._verbose = check_integer(getattr(estimator, "verbose", 0), "verbose", least=0)
        self._begun = 0.0
        self._done = 0
        self._phases: list[tuple[str, int | None]] = []
        self._reserved: Collection[str] = ()
        self._fit: Any = None
        self._phase: Any = None
        self._timed = True

    def set_up(self, phases: Phases, reserved: Collection[str] = (), timed: bool = True) -> None:
        """Set callbacks up before the charge, so that their errors do not use the budget."""
        # Lines hold no times if the time of a phase would disclose its private number of steps.
        self._timed = timed
        # Reserved phases are replaced when earlier releases have determined their releases.
        self._begun = time.monotonic()
        self._phases, self._reserved = list(phases), reserved
        if hasattr(self._estimator, "_init_callback_context"):
            n_phases = None if reserved else len(self._phases)
            self._fit = self._estimator._init_callback_context(max_subtasks=n_phases)

    def begin(self) -> None:
        """Begin the fit and its first phase."""
        self._call(self._fit, "begin")
        self._begin_phase()

    def refine(self, label: str, phases: Phases) -> None:
        """Replace a reserved phase by others, of which one may be what is left of it."""
        names = [name for name, _ in self._phases]
        if label in names:
            at = names.index(label)
            self._phases[at : at + 1] = phases
            if at == self._done:
                self._begin_phase()

    def reach(self, label: str) -> None:
        """Let what is left of reserved phases come after the phase of a release that is made before it."""
        names = [name for name, _ in self._phases]
        at = names.index(label) if label in names else 0
        if at > self._done and self._current[0] in self._reserved:
            self._phases.insert(self._done, self._phases.pop(at))
            self._begin_phase()

    def through(
        self, items: Iterable[Item], attributes: Attributes | None = None, n_items: int | None = None
    ) -> Iterator[Item]:
        """Yield the items, and report them as steps of the phase, at most a hundred times."""
        # `n_items` is for phases with an unknown number of steps.
        name, n_steps = self._current
        n_steps = n_items if n_steps is None else n_steps
        waiting = iter(items)
        reports = min(n_steps or 0, _MOST_REPORTS)
        lines = min(reports, _MOST_LINES) if self._verbose == 1 else reports
        until = 0
        for report in range(1, reports + 1):
            before, until = until, report * (n_steps or 0) // reports
            steps = None
            if self._phase is not None:
                steps = self._phase.subcontext(task_name=f"steps {before + 1} to {until}")
            self._call(steps, "begin")
            yield from islice(waiting, until - before)
            self._call(steps, "end", attributes)
            if report < reports and report * lines // reports > (report - 1) * lines // reports:
                self._print(f"{name}: step {until} of {n_steps}")
        yield from waiting

    def phase(self, items: Iterable[Item], attributes: Attributes | None = None) -> Iterator[Item]:
        """Yield the items as steps of the phase, and end it."""
        yield from self.through(items, attributes)
        self.done(attributes)

    def done(self, attributes: Attributes | None = None) -> None:
        """End a phase, and begin the next one if there is one."""
        self._call(self._phase, "end", attributes)
        self._done += 1
        self._begin_phase()

    def end(self, attributes: Attributes) -> None:
        """End the fit."""
        self._call(self._fit, "end", attributes)
        self._print("end")

    @property
    def _current(self) -> tuple[str, int | None]:
        return self._phases[self._done] if self._done < len(self._phases) else ("", 0)

    def _begin_phase(self) -> None:
        self._phase = None
        name, n_steps = self._current
        if name and name not in self._reserved:
            if self._fit is not None:
                most = None if n_steps is None else min(n_steps, _MOST_REPORTS)
                self._phase = self._fit.subcontext(task_name=name, max_subtasks=most)
            self._print(f"phase {self._done + 1} of {len(self._phases)}: {name}")
            self._call(self._phase, "begin")

    def _call(self, context: Any, hook: str, attributes: Attributes | None = None) -> None:
        if context is not None:
            call = getattr(context, f"call_on_fit_task_{hook}")
            call(estimator=self._estimator, reconstruction_attributes=attributes)

    def _print(self, text: str) -> None:
        if self._verbose:
            elapsed = f" ({time.monotonic() - self._begun:.1f} s)" if self._timed else ""
            print(f"[{type(self._estimator).__name__}] {text}{elapsed}", flush=True)


#: Page of the user guide for each subject. A statement of a page has the anchor "<page>-<kind>-<number>".
PAGES = {
    "Additive models": "additive",
    "Exponential mechanism": "erm",
    "Functional mechanism": "functional_mechanism",
    "Gradient descent": "gradient_descent",
    "Histograms": "histograms",
    "k-means": "kmeans",
    "Local privacy": "local",
    "Model selection": "model_selection",
    "Naive Bayes": "naive_bayes",
    "Neural networks": "neural_network",
    "Objective perturbation": "objective_perturbation_proof",
    "Output perturbation": "output_perturbation",
    "PATE": "pate",
    "PCA": "pca",
    "Preprocessing": "preprocessing",
    "Regression": "regression",
    "Sample and aggregate": "sample_aggregate",
    "Statistics": "statistics",
    "Synthetic tables": "synthetic_tables_proof",
    "Trees": "trees",
    "Units": "units",
}


@dataclass(frozen=True)
class Theorem:
    """A theorem, or a statement of another `kind`, of the user guide."""

    subject: str
    number: int
    kind: str = "theorem"

    def __post_init__(self) -> None:
        if self.subject not in PAGES:
            raise ValueError(f"no page of the user guide is about {self.subject!r}")

    @property
    def page(self) -> str:
        return PAGES[self.subject]

    def __str__(self) -> str:
        return f"{self.subject}, {self.kind} {self.number}"


#: The theorem about the sensitivity of sums over at most `rows_per_group` rows of each group.
GROUPS = Theorem("Units", 1)


@dataclass(frozen=True)
class Release:
    """One planned release."""

    label: str  # Description of the release.
    mechanism: Mechanism  # Mechanism that adds the noise, with its parameters.
    share: float  # Part of the budget for the release: of epsilon, or of the square of the GDP parameter.
    theorem: Theorem  # Theorem of the user guide that proves the sensitivity.

    @property
    def sensitivity(self) -> float:
        """Largest change by one record, in the norm of the mechanism."""
        return self.mechanism.sensitivity

    def record(self) -> RecordedRelease:
        """Return the description of this release for a ledger."""
        m = self.mechanism
        return RecordedRelease(self.label, m.name, m.norm, float(m.sensitivity), float(m.scale))


@dataclass(frozen=True)
class Reserved(Mechanism):
    """A part of the budget, `event`, for releases whose plan depends on earlier releases."""

    # `ReleaseSession.refine` refuses releases that together cost more than `event`. Adaptive composition allows the
    # choice.

    event: GaussianEvent | PureEvent

    name = "several releases within a fixed share of the budget"
    sensitivity = 1.0

    @property
    def norm(self) -> str:  # type: ignore[override]
        """The norm in which the releases are measured together."""
        return "L2" if isinstance(self.event, GaussianEvent) else "L1"

    @property
    def scale(self) -> float:
        """Scale of the noise, for a release of sensitivity 1 that takes all of the part."""
        return 1 / (self.event.noise_mu if isinstance(self.event, GaussianEvent) else self.event.epsilon)

    def covers(self, events: Sequence[PrivacyEvent]) -> bool:
        """Tell whether these events cost at most as much, composed in any order."""
        if isinstance(self.event, GaussianEvent):
            if self.event.noise_mu == math.inf:
                return True
            gaussian = [event.noise_mu for event in events if isinstance(event, GaussianEvent)]
            return len(gaussian) == len(events) and math.hypot(*gaussian) <= self.event.noise_mu
        pure = [event.epsilon for event in events if isinstance(event, PureEvent)]
        return len(pure) == len(events) and (self.event.epsilon == math.inf or math.fsum(pure) <= self.event.epsilon)

    def release(self, value: ArrayLike, stream: object) -> NDArray:
        """Refuse, because the part has to be refined first."""
        raise ReleaseError("this part of the plan has to be refined before it is released")


@dataclass(frozen=True)
class PrivacyGuarantee:
    """The guarantee of a fit, with its releases.

    All of it follows from public parameters. Therefore it does not depend on the data.

    Attributes
    ----------
    epsilon, delta : float
        The fit is (epsilon, delta)-differentially private. ``epsilon=inf`` means no privacy at all.
    events : tuple of PrivacyEvent
        Events of the fit, for composition.
    releases : tuple of Release
        Releases, each with its mechanism, sensitivity and share of the budget.
    relation : Relation
        Neighbouring relation of the guarantee.
    fits : tuple of str
        Fits of other estimators that the guarantee covers, if there are any.
    limit : str
        What the first line says in addition: a limit on the records of a group, or that the fit is part of a search.
    rows : int
        Largest number of records of one group that count, or 1 for the guarantee of one record.
    """

    epsilon: float
    delta: float
    events: tuple[PrivacyEvent, ...]
    releases: tuple[Release, ...]
    relation: Relation = Relation.ADD_OR_REMOVE_RECORD
    fits: tuple[str, ...] = ()
    limit: str = ""
    rows: int = 1

    def __setstate__(self, state: dict[str, Any]) -> None:
        # skops writes the relation as text.
        vars(self).update(state, relation=Relation(state["relation"]))

    @property
    def unit(self) -> str:
        """Unit of the neighbouring relation: "record" or "group"."""
        return self.relation.unit

    @property
    def cost(self) -> PrivacyCost:
        """Cost that an accountant is charged."""
        return PrivacyCost(self.epsilon, self.delta, self.events)

    @property
    def replace_one(self) -> Budget:
        """The guarantee when one record (or group) is replaced by another, which is one removal and one addition."""
        stated = Budget(self.epsilon, self.delta)
        return stated if self.relation is Relation.REPLACE_RECORD else stated._replaced()

    def privacy_loss_distribution(self, **kwargs: Any) -> PrivacyLossDistribution:
        """Return the distribution of the privacy loss of the fit, by `PrivacyCost.privacy_loss_distribution`."""
        return self.cost.privacy_loss_distribution(**kwargs)

    def attack(self, *, replace_one: bool = False) -> AttackBounds:
        """Return upper bounds on attacks that tell whether one record (or group) is in the data.

        .. versionadded:: 0.2

        Parameters
        ----------
        replace_one : bool, default=False
            If True, bound guesses which of two values a record (or group) has that is known to be in the data.

        Returns
        -------
        bounds : AttackBounds
            Bounds from the curves of the releases.
        """
        replaced = replace_one and self.relation is not Relation.REPLACE_RECORD
        return attack_bounds(self.epsilon, self.delta, self.cost.mu(), self.events, replaced)

    def _lines(self) -> list[str]:
        if self.epsilon == math.inf:
            return ["not private (epsilon=inf): no noise was added"]
        replace = self.replace_one
        guarantee = f"(epsilon={self.epsilon:g}, delta={self.delta:g})"
        lines = [", ".join(filter(None, (f"{guarantee}-differentially private", self.relation, self.limit)))]
        if self.relation is not Relation.REPLACE_RECORD:
            implied = f"(epsilon={replace.epsilon:g}, delta={replace.delta:.3g})"
            lines.append(
                f"implies {implied} if one {self.unit} is replaced: {self.attack(replace_one=True)._in_short()}"
            )
        return [*lines, f"attacks on one {self.unit}: {self.attack()}"]

    def _cited(self, release: Release) -> str:
        """Return the theorems that prove the sensitivity of a release, with the theorem about rows of groups."""
        return f"{release.theorem}; {GROUPS}" if self.unit == "group" else str(release.theorem)

    def __repr__(self) -> str:
        lines = self._lines() + [f"  {line}" for line in self.fits]
        for release in self.releases:
            lines.append(f"  {release.record()}, share {release.share:.3g} [{self._cited(release)}]")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = "<br>".join(escape(line) for line in (*self._lines(), *self.fits))
        titles = [("release", "mechanism", "sensitivity", "noise scale", "share", "theorem")]
        rows = [
            (
                *(r.label, r.mechanism.name, f"{r.sensitivity:.6g} ({r.mechanism.norm})"),
                *(f"{r.mechanism.scale:.6g}", f"{r.share:.3g}", self._cited(r)),
            )
            for r in self.releases
        ]
        return f"<p>{head}</p>{as_html(titles + rows)}"


def phases_of(releases: Sequence[Release]) -> Phases:
    """Return a phase for each release, with the number of its steps."""
    return [(release.label, getattr(release.mechanism, "n_steps", 0)) for release in releases]


def check_accountant(accountant: object) -> BudgetAccountant | None:
    """Return the accountant, which may be None, or refuse another type."""
    if accountant is not None and not isinstance(accountant, BudgetAccountant):
        raise TypeError(f"accountant must be a BudgetAccountant or None, got {type(accountant).__name__}")
    return accountant


class ReleaseSession:
    """Carry out a plan. The whole plan is charged at the start, before noise is drawn. Each release is made once."""

    # `estimator` and `label` name the charge in the ledger. Each release is a phase of `progress`. If the budget would
    # admit the charge, `validate` reads rows that lie in parts, and the charge comes after it.

    def __init__(
        self,
        plan: PrivacyGuarantee,
        *,
        accountant: BudgetAccountant | None,
        source: NoiseSource,
        estimator: str,
        label: str = "fit",
        progress: Progress | None = None,
        validate: Callable[[], None] | None = None,
    ) -> None:
        if validate is not None:
            if accountant is not None:
                accountant._check_charge(plan.cost, estimator=estimator, relation=plan.relation)
            validate()
        warn_of_callers(charged=accountant is not None and math.isfinite(plan.cost.epsilon))
        if accountant is None:
            warn_of_delta(plan.delta)
        else:
            if source.seeded:
                warn(
                    "random_state is set while a budget is charged. Someone who knows the seed can subtract the "
                    "noise. Use random_state=None for all results that others will see",
                    SeededNoiseWarning,
                )
            N_CHARGES.set(N_CHARGES.get() + 1)
            accountant.charge(
                plan.cost,
                label=label,
                estimator=estimator,
                releases=[release.record() for release in plan.releases],
                relation=plan.relation,
            )
        self.guarantee = plan
        self._waiting = {release.label: release.mechanism for release in plan.releases}
        self._source = source
        self.progress = Progress() if progress is None else progress

    def release(self, label: str, value: ArrayLike) -> NDArray:
        """Return the released version of `value`, which is public, by the mechanism planned under `label`."""
        size = getattr(self.mechanism(label), "size", None)
        if size is not None and np.size(value) != size:
            raise ReleaseError(f"the release {label!r} is planned with {size} numbers, and has {np.size(value)}")
        self.progress.reach(label)
        released = self._waiting.pop(label).release(value, self._source.stream(label))
        self.progress.done()
        return released

    def stream(self, label: str) -> BitStream:
        """Return random bits that are independent of the noise of releases, for shuffles and public directions."""
        return self._source.stream(label)

    def refine(self, label: str, releases: Sequence[Release], events: Sequence[PrivacyEvent]) -> None:
        """Replace a reserved part by releases that cost no more."""
        # The releases must be functions of public parameters and of earlier releases of this session.
        reserved = self.mechanism(label)
        if not (isinstance(reserved, Reserved) and reserved.covers(events)):
            raise ReleaseError(f"the releases that {label!r} is refined to cost more than was reserved for them")
        del self._waiting[label]
        self._waiting.update((release.label, release.mechanism) for release in releases)
        self.progress.refine(label, phases_of(releases))

    def steps(
        self, label: str, n_rows: int, attributes: Attributes | None = None
    ) -> Iterator[tuple[NDArray[np.intp] | None, Callable[[NDArray[np.float64]], NDArray[np.float64]]]]:
        """Yield, for each step, the rows to sum over (None for all) and a function that releases the sum, once."""
        # The positions of the rows and their number are private. Callbacks may ask for estimators with `attributes`.
        mechanism = self.mechanism(label)
        if not isinstance(mechanism, SampledGaussianMechanism):
            raise ReleaseError(f"the release {label!r} is not planned in steps")
        del self._waiting[label]
        self.progress.reach(label)
        stream = self._source.stream
        steps = mechanism.steps(n_rows, stream(f"{label}: samples"), stream(f"{label}: noise"))
        return self.progress.phase(steps, attributes)

    def mechanism(self, label: str) -> Mechanism:
        """Return the mechanism of a release that has not been made yet."""
        if label not in self._waiting:
            raise ReleaseError(f"no release {label!r} is left in the plan")
        return self._waiting[label]
