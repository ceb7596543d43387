"""One privacy budget, shared by whoever spends from it."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape
from typing import Any, NoReturn

from ._budget import Budget, check_delta, check_epsilon
from ._composition import RULES, Composition
from ._events import ApproximateEvent, PrivacyCost, PureEvent
from ._ledger import Ledger, MemoryLedger, Record


class BudgetAccountant:
    r"""A privacy budget that is charged before noise is drawn, and refuses what does not fit.

    Pass one accountant to any number of estimators. ``clone``, ``copy`` and ``deepcopy`` return the same
    accountant, so that `cross_val_score`, `GridSearchCV` and pipelines, which clone, all spend from it.

    Parameters
    ----------
    epsilon : float, default=1.0
        Ceiling on epsilon, positive. ``inf`` sets no ceiling: everything is recorded and admitted.
    delta : float, default=0.0
        Ceiling on delta, in [0, 1). With 0, only pure events are admitted.
    composition : {"auto", "basic", "gdp", "rdp"}, default="auto"
        How events add up when `delta` is positive. ``"basic"``: epsilons and deltas are summed. ``"gdp"``: the
        squares of Gaussian-DP parameters are summed; ``"rdp"``: Rényi divergences of one order are. These two
        admit far more Gaussian fits, and a sequence of pure events as far as its sum goes as well. ``"auto"``: the
        rule of which the first event uses the smallest part.

    Attributes
    ----------
    records : tuple of Record
        What has been charged, in order.

    See Also
    --------
    skdp.exceptions.BudgetError : Raised when a charge does not fit.

    Notes
    -----
    **Privacy.** Whatever is released through events that this accountant has admitted is, in total,
    (epsilon, delta)-differentially private with respect to adding or removing one record, also when each event
    was chosen after looking at the outputs of those before it. The rules, and why they hold, are in the user
    guide. Numbers are summed exactly, as the decimal numbers that were typed: ten charges of 0.1 fill a budget
    of 1.

    An accountant lives in memory and belongs to one process. It refuses to be pickled, so that no worker process
    spends from a copy.

    References
    ----------
    .. [1] R. Rogers, A. Roth, J. Ullman and S. Vadhan, "Privacy Odometers and Filters: Pay-as-you-Go
       Composition", NeurIPS 2016.
    .. [2] A. Smith and A. Thakurta, "Fully Adaptive Composition for Gaussian Differential Privacy", 2022,
       arXiv:2210.17520.

    Examples
    --------
    >>> from skdp import BudgetAccountant
    >>> acc = BudgetAccountant(epsilon=1.0)
    >>> acc.spend(0.25, label="histogram")
    >>> acc.remaining()
    Budget(epsilon=0.75, delta=0.0)
    """

    def __init__(self, epsilon: float = 1.0, delta: float = 0.0, *, composition: str = "auto") -> None:
        if composition not in RULES:
            raise ValueError(f"composition must be one of {', '.join(RULES)}, got {composition!r}")
        self._composition = Composition(check_epsilon(epsilon), check_delta(delta), composition)
        self._ledger: Ledger = MemoryLedger(self._composition.start())

    @property
    def epsilon(self) -> float:
        """Ceiling on epsilon."""
        return self._composition.ceiling.epsilon

    @property
    def delta(self) -> float:
        """Ceiling on delta."""
        return self._composition.ceiling.delta

    @property
    def composition(self) -> str:
        """The rule in force; ``"auto"`` until the first event decides."""
        return self._ledger.spent().rule or "auto"

    @property
    def records(self) -> tuple[Record, ...]:
        """What has been charged, in order."""
        return self._ledger.records()

    def spend(self, epsilon: float, delta: float = 0.0, *, label: str = "") -> None:
        """Charge an event of your own, before you draw its noise.

        Parameters
        ----------
        epsilon : float
            Cost, at least 0.
        delta : float, default=0.0
            Cost, in [0, 1).
        label : str, default=""
            What it is for.

        Raises
        ------
        BudgetError
            If it does not fit; nothing is then recorded.
        """
        self.charge(self._own_cost(epsilon, delta), label=label)

    def check(self, epsilon: float, delta: float = 0.0) -> None:
        """Test whether a charge would fit, and record nothing.

        Parameters
        ----------
        epsilon : float
            Cost, at least 0.
        delta : float, default=0.0
            Cost, in [0, 1).

        Raises
        ------
        BudgetError
            If it would not fit.
        """
        self._composition.admit(self._ledger.spent(), self._own_cost(epsilon, delta))

    def charge(
        self, cost: PrivacyCost, *, label: str = "", estimator: str = "", mechanisms: tuple[str, ...] = ()
    ) -> None:
        """Charge an event of known cost; the check and the record are one step.

        Parameters
        ----------
        cost : PrivacyCost
            The guarantees that the event has.
        label, estimator : str
            What it is for, and which class was fitted.
        mechanisms : tuple of str
            What will draw noise.

        Raises
        ------
        BudgetError
            If it does not fit; nothing is then recorded.
        """
        record = Record(label, cost, estimator, mechanisms, datetime.now(UTC))
        self._ledger.append(record, lambda spent: self._composition.admit(spent, cost))

    @staticmethod
    def _own_cost(epsilon: float, delta: float) -> PrivacyCost:
        epsilon, delta = check_epsilon(epsilon, allow_zero=True), check_delta(delta)
        if delta == 0:
            return PrivacyCost(epsilon, 0.0, (PureEvent(epsilon),))
        return PrivacyCost(epsilon, delta, (ApproximateEvent(epsilon, delta),))

    def total(self) -> Budget:
        """Return what has been spent: the least (epsilon, delta) that is proved for it.

        Returns
        -------
        total : Budget
            Named pair (epsilon, delta). The guarantee that holds in advance is the ceiling; a total that is read
            in the middle of an adaptive sequence describes what was charged.
        """
        return self._composition.total(self._ledger.spent())

    def remaining(self) -> Budget:
        """Return the largest single event that still fits.

        Returns
        -------
        remaining : Budget
            Named pair (epsilon, delta); under ``"gdp"`` composition, of a Gaussian event.
        """
        return self._composition.remaining(self._ledger.spent())

    def __len__(self) -> int:
        return len(self._ledger.records())

    def __bool__(self) -> bool:
        # An accountant without records is not nothing: `accountant or default` must not drop it.
        return True

    def __copy__(self) -> BudgetAccountant:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> BudgetAccountant:
        return self

    def __sklearn_clone__(self) -> BudgetAccountant:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a BudgetAccountant in memory cannot be pickled: the copy would spend from a budget of its own. "
            "Fit in this process or in its threads (n_jobs=1, or joblib's threading backend), and set "
            "accountant=None on an estimator before saving it"
        )

    def __repr__(self) -> str:
        total = self.total()
        return (
            f"BudgetAccountant(epsilon={self.epsilon:g}, delta={self.delta:g}, "
            f"composition={self.composition!r}): {len(self)} records, "
            f"spent (epsilon={total.epsilon:.6g}, delta={total.delta:.6g})"
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{i}</td><td>{escape(r.estimator or '-')}</td><td>{escape(r.label or '-')}</td>"
            f"<td>{r.cost.epsilon:g}</td><td>{r.cost.delta:g}</td></tr>"
            for i, r in enumerate(self.records)
        )
        return (
            f"<p>{escape(repr(self))}</p><table><thead><tr><th></th><th>estimator</th><th>label</th>"
            f"<th>epsilon</th><th>delta</th></tr></thead><tbody>{rows}</tbody></table>"
        )
