"""scikit-learn's callbacks, from the version on that has them: progress bars and the like for long descents.

scikit-learn hands a callback what an estimator hands over. Here this is how far a descent is, and, if the callback asks
for a fitted estimator, what was released up to there: never rows, labels, samples or gradients. Callbacks that need
rows or labels get None in their place. A callback may ask to stop early; that is not heard, since the noise is made for
all steps, and all of them are paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

Step = TypeVar("Step")
Method = TypeVar("Method", bound=Callable[..., Any])

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Method) -> Method:
        """Return the method unchanged."""
        return method


__all__ = ["CallbackSupportMixin", "reported", "with_callbacks"]

# A report takes some microseconds, even if there is no callback.
_MOST_REPORTS = 100


def reported(
    estimator: Any, steps: Iterable[Step], n_steps: int, attributes: Callable[[], dict[str, Any]]
) -> Iterator[Step]:
    """Yield the steps, and report progress to callbacks at most a hundred times."""
    # The method around it has to be decorated by `with_callbacks`. `attributes` returns the fitted attributes as if the
    # fit had ended here, from released values alone. It is called only if a callback asks for them.
    if not hasattr(estimator, "_init_callback_context"):
        yield from steps
        return
    reports = min(n_steps, _MOST_REPORTS)
    whole = estimator._init_callback_context(max_subtasks=reports)
    whole.call_on_fit_task_begin(estimator=estimator)
    waiting = iter(steps)
    done = 0
    for report in range(1, reports + 1):
        until = report * n_steps // reports
        part = whole.subcontext(task_name=f"steps {done + 1} to {until}")
        part.call_on_fit_task_begin(estimator=estimator)
        yield from islice(waiting, until - done)
        done = until
        part.call_on_fit_task_end(estimator=estimator, reconstruction_attributes=attributes)
    whole.call_on_fit_task_end(estimator=estimator, reconstruction_attributes=attributes)
