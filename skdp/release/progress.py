"""The progress of fits, by scikit-learn's callbacks (1.9 and later) and by lines that are printed with `verbose`.

A fit consists of phases: the releases of its plan, or the parts of a search in their order. A phase may have steps.
Names of phases and numbers of steps follow from public parameters and from earlier releases. Therefore reports are
post-processing, except for the elapsed time, which no guarantee covers. A phase with a private number of steps reports
only its start and its end. Callbacks receive None in place of rows and labels. Estimators for callbacks consist of
released values. A callback may request to stop early, without effect, because all steps are charged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from ..checks.params import check_integer

Item = TypeVar("Item")
Method = TypeVar("Method", bound=Callable[..., Any])

#: Returns fitted attributes as if the fit had ended here, from released values alone.
Attributes = Callable[[], dict[str, Any]]

#: Names and numbers of steps of phases. The number is 0 for a phase without steps, and None if releases determine it.
Phases = Sequence[tuple[str, int | None]]

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Method) -> Method:
        """Return the method unchanged."""
        return method


__all__ = ["CallbackSupportMixin", "Progress", "with_callbacks"]

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
        """Replace a reserved phase by others."""
        names = [name for name, _ in self._phases]
        if label not in names:
            return
        at = names.index(label)
        # What is left of a reserved phase comes after the phases that are planned.
        first, left = ([phase for phase in phases if (phase[0] == label) == rest] for rest in (False, True))
        self._phases[at:] = [*first, *self._phases[at + 1 :], *left]
        if at == self._done:
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
            part = None
            if self._phase is not None:
                part = self._phase.subcontext(task_name=f"steps {before + 1} to {until}")
            self._call(part, "begin")
            yield from islice(waiting, until - before)
            self._call(part, "end", attributes)
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
