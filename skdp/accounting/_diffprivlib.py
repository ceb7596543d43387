"""The bridge to diffprivlib: an accountant of diffprivlib that charges a budget of skdp.

diffprivlib calls ``check`` before it draws noise, and ``spend`` after that. Threads that check at the same time are all
admitted. Therefore ``check`` makes the charge here, in one step. The ``spend`` that follows in the same thread finds
that the charge was made. Calls from other code have their usual meaning.
"""

from __future__ import annotations

import inspect
import threading
from functools import lru_cache
from types import FrameType
from typing import Any

from ._budget import Budget, Relation, check_delta, check_epsilon
from ._events import PrivacyCost


def adapt(accountant: Any) -> Any:
    """Return an instance of a subclass of diffprivlib's BudgetAccountant that spends from a BudgetAccountant."""
    return _adapter_class()(accountant)


def _called_by_diffprivlib(frame: FrameType | None) -> bool:
    caller = frame.f_back if frame is not None else None
    return caller is not None and caller.f_globals.get("__name__", "").split(".")[0] == "diffprivlib"


@lru_cache(maxsize=1)
def _adapter_class() -> type:
    try:
        from diffprivlib import BudgetAccountant as Theirs
    except ImportError as error:
        raise ImportError(
            "as_diffprivlib needs diffprivlib, and a scikit-learn that it can be imported with: "
            "pip install diffprivlib==0.6.6 'scikit-learn<1.8'"
        ) from error

    class DiffprivlibAccountant(Theirs):
        """An accountant of diffprivlib that charges an accountant of skdp."""

        def __init__(self, accountant: Any) -> None:
            # Theirs.__init__ is not called, because this object keeps no state.
            self._accountant = accountant
            self._charged = threading.local()

        epsilon = property(lambda self: self._accountant.epsilon)
        delta = property(lambda self: self._accountant.delta)
        slack = property(lambda self: 0.0)
        spent_budget = property(lambda self: [(r.cost.epsilon, r.cost.delta) for r in self._accountant.records])

        def check(self, epsilon: float, delta: float) -> bool:
            if _called_by_diffprivlib(inspect.currentframe()):
                self._charge(epsilon, delta)
                self._charged.pair = epsilon, delta
            else:
                self._accountant.check(epsilon, delta)
            return True

        def spend(self, epsilon: float, delta: float) -> Any:
            charged = getattr(self._charged, "pair", None)
            if _called_by_diffprivlib(inspect.currentframe()) and charged == (epsilon, delta):
                self._charged.pair = None
            else:
                self._charge(epsilon, delta)
            return self

        def _charge(self, epsilon: float, delta: float) -> None:
            cost = PrivacyCost.of_pair(check_epsilon(epsilon, allow_zero=True), check_delta(delta))
            self._accountant.charge(cost, label="diffprivlib", relation=Relation.REPLACE_RECORD)

        def total(self, spent_budget: Any = None, slack: Any = None) -> Budget:
            if spent_budget is not None or slack:
                raise ValueError("the composition is that of skdp's accountant: spent_budget and slack must be None")
            return self._accountant.total()

        def remaining(self, k: int = 1) -> Budget:
            return self._accountant.remaining(k)

        def __len__(self) -> int:
            return len(self._accountant)

        def __bool__(self) -> bool:
            return True

        def __copy__(self) -> Any:
            return self

        def __deepcopy__(self, memo: dict[int, Any]) -> Any:
            return self

        def __sklearn_clone__(self) -> Any:
            return self

        def __reduce__(self) -> tuple[Any, ...]:
            return adapt, (self._accountant,)

        def __repr__(self, n_budget_max: int = 5) -> str:
            return f"{self._accountant!r}, for diffprivlib"

    return DiffprivlibAccountant
