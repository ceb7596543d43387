"""A privacy budget that several estimators can share."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from ..checks.params import call_above, shown, warn
from ..checks.silence import discreet
from ..exceptions import BudgetError, BudgetWarning, LedgerError, passing
from ._budget import UNITS, Budget, Relation, check_delta, check_epsilon, check_same_unit, relation_of, warn_of_delta
from ._composition import RULES, Composition, DeclaredPlan, PartKey, State, as_costs
from ._events import PrivacyCost
from ._parts import Parts, assign, check_names
from ._record import Ledger, MemoryLedger, Record, RecordedRelease, check_record, rule_from_json, rule_to_json
from ._sqlite import Seen, SQLiteLedger, open_or_create, resolve, temporary
from ._view import LedgerView, Rule


class BudgetAccountant(LedgerView):
    r"""A privacy budget that is charged before noise is drawn, and refuses charges that exceed it.

    Pass one accountant to any number of estimators. A clone or copy is the same accountant, and a pickled accountant
    spends from the same budget in every process. Therefore searches, pipelines and worker processes share the budget.

    Parameters
    ----------
    epsilon : float, default=1.0
        Ceiling on epsilon. Must be strictly positive. If ``inf``, there is no ceiling, and all charges are admitted.
    delta : float, default=0.0
        Ceiling on delta, in [0, 1). If 0, only pure events are admitted.
    ledger : path-like or str, default=None
        File, or ``sqlite:///`` URL, that keeps the records. An existing file is opened, and must have been made with
        the same ceiling and composition. Otherwise, the file is made, and only its owner can read it. If None, records
        are kept in memory. When such an accountant is pickled, its records move to a temporary file of this process.
    composition : {"auto", "basic", "gdp", "rdp", "mixed"}, default="auto"
        Rule that adds up events if `delta` is positive. ``"basic"`` adds up epsilons and deltas, ``"gdp"`` the squares
        of Gaussian-DP parameters, and ``"rdp"`` Rényi divergences of one order. The last two admit far more Gaussian
        fits, and also pure events if the sum of their epsilons does not exceed the ceiling. ``"mixed"`` keeps several
        such sums side by side, each with a share of delta. ``"auto"`` adds up the epsilons of pure events. The first
        event that does not suit this sum settles the rule permanently, in most cases on ``"mixed"``.
    unit : {"record", "group"}, default="record"
        Unit that the ceiling protects. ``"group"`` is for fits with `rows_per_group`, all of them with the same groups.
        It admits no other fits, because a fit that counts single records has no guarantee for a group.
    plan : list, default=None
        List of all charges that will be made. An entry is a result of `privacy_plan` of an estimator, a PrivacyCost, or
        a pair ``(like, count)``, where `like` is one of these, an event, or an estimator whose cost does not depend on
        the data. The composition of the list is exact. Each entry can be charged once (or `count` times), in any order.
        Other charges are refused.

    Attributes
    ----------
    records : tuple of Record
        Admitted charges, in order.
    composition : str
        Rule in force.
    ledger : Path or None
        File that keeps the records.
    planned : tuple of PrivacyCost
        With a plan, the entries that have not been charged yet.

    Raises
    ------
    LedgerError
        If the file cannot be used, or was made with other values.
    BudgetError
        If a plan exceeds the ceiling.

    See Also
    --------
    skdp.exceptions.BudgetError : Raised when a charge exceeds the budget.
    skdp.allocate : Splits a budget over the private steps of a pipeline.

    Notes
    -----
    **Privacy.** All releases through events that this accountant has admitted are together (epsilon,
    delta)-differentially private, with respect to adding or removing one record (or all records of one group, if `unit`
    is ``"group"``). This also holds if each event was chosen after earlier outputs were seen
    (:doc:`/user_guide/accounting` has the proofs). Ten charges of 0.1 fill a budget of 1, because numbers are added up
    exactly, as the decimal numbers that were typed.

    If one of the charges is of the local model (:mod:`skdp.local`), the total is about replacing the contents of a
    record by any fixed row, because the number of rows is public in the local model.

    With a ledger, a charge is on disk before `spend` returns. The guarantee does not cover a ledger file that is
    replaced by an older copy while no process uses it, and records that are known to two ledgers.

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
    >>> acc.remaining(3)
    Budget(epsilon=0.25, delta=0.0)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        ledger: str | os.PathLike[str] | None = None,
        composition: str = "auto",
        unit: str = "record",
        plan: Iterable[Any] | None = None,
    ) -> None:
        if hasattr(self, "_rule"):
            raise RuntimeError("an accountant cannot be initialised again: its records would be lost")
        if composition not in RULES:
            raise ValueError(f"composition must be one of {', '.join(RULES)}, got {shown(composition)}")
        if unit not in UNITS:
            raise ValueError(f"unit must be one of {', '.join(UNITS)}, got {shown(unit)}")
        epsilon, delta = check_epsilon(epsilon), check_delta(delta)
        warn_of_delta(delta)
        rule: Rule
        if plan is None:
            rule = Composition.of(epsilon, delta, composition)
        elif composition != "auto":
            raise ValueError("a plan is composed exactly: composition must be left at 'auto'")
        else:
            rule = DeclaredPlan.of(epsilon, delta, as_costs(plan, unit, delta))
        rule = replace(rule, unit=unit)
        if ledger is None:
            self._rule, self._store = rule, MemoryLedger(rule.start())
            return
        path = resolve(ledger)
        store, text = open_or_create(path, rule_to_json(rule), rule.start())
        rule_of_ledger = rule_from_json(text)
        if _asked(rule_of_ledger) != _asked(rule):
            raise LedgerError(
                f"the ledger {path} was made with {_described(rule_of_ledger)}, and cannot be opened with "
                f"{_described(rule)}; BudgetAccountant.from_ledger(path) opens it as it was made"
            )
        store.assert_writable()
        self._rule, self._store = rule_of_ledger, store

    @classmethod
    def from_ledger(cls, ledger: str | os.PathLike[str], *, moved: bool = False) -> BudgetAccountant:
        """Open an existing ledger, with its own ceiling and composition.

        Parameters
        ----------
        ledger : path-like or str
            File, or ``sqlite:///`` URL.
        moved : bool, default=False
            If True, make this path the one that the ledger belongs to. A ledger is charged at one path only. Therefore
            set this once after the file was renamed or moved, when no process uses the old path any more. It is refused
            if the ledger is still at its old path as well.

        Returns
        -------
        accountant : BudgetAccountant
            Accountant of the ledger's budget. It can be charged if the file can be written.

        Raises
        ------
        LedgerError
            If there is no such ledger, or it cannot be used.
        """
        store, text = SQLiteLedger.open(resolve(ledger))
        if moved:
            store.settle_here()
        return cls._attached(rule_from_json(text), store)

    @classmethod
    def _attached(
        cls, rule: Rule, store: Ledger, part: PartKey | None = None, name: str = "", label: str = ""
    ) -> BudgetAccountant:
        accountant = cls.__new__(cls)
        accountant._rule, accountant._store = rule, store
        accountant._part, accountant._part_name = part, name
        accountant._label = label
        return accountant

    def spend(self, epsilon: float, delta: float = 0.0, *, label: str = "") -> None:
        """Charge an event of your own, before you draw its noise.

        Parameters
        ----------
        epsilon : float
            Cost in epsilon, at least 0.
        delta : float, default=0.0
            Cost in delta, in [0, 1).
        label : str, default=""
            Description of the charge.

        Raises
        ------
        BudgetError
            If the charge exceeds the budget. Nothing is recorded then.
        LedgerError
            If the charge cannot be recorded.
        """
        self.charge(PrivacyCost.of_pair(*_checked(epsilon, delta)), label=label)

    def check(self, epsilon: float, delta: float = 0.0) -> None:
        """Test whether a charge would be admitted, without recording it.

        Parameters
        ----------
        epsilon : float
            Cost in epsilon, at least 0.
        delta : float, default=0.0
            Cost in delta, in [0, 1).

        Raises
        ------
        BudgetError
            If the charge would not be admitted.
        """
        self._check_charge(PrivacyCost.of_pair(*_checked(epsilon, delta)))

    def _check_charge(self, cost: PrivacyCost, *, estimator: str = "", relation: Relation | None = None) -> None:
        """Raise the error that `charge` would raise now, and record nothing. Other charges may come before."""
        relation = relation_of(self.unit) if relation is None else Relation(relation)
        check_same_unit(relation.unit, self.unit, estimator)
        state = self._store.state()
        self._check_relation(relation, state, estimator)
        self._rule.admit(state, cost, self._part)

    def _after(self, costs: Sequence[tuple[PrivacyCost, int]], rule: str | None = None) -> Budget | None:
        """Return the total after these costs, each as often as its number says, or None if they are refused."""
        after = self._state_after(costs, rule)
        return None if after is None else self._rule.total(after, self._part)

    def _used(self, costs: Sequence[tuple[PrivacyCost, int]], rule: str) -> float:
        """Return the part of the budget that is used after these costs, which must be admitted."""
        after = self._state_after(costs, rule)
        assert after is not None
        assert isinstance(self._rule, Composition)
        return self._rule.used(after, self._part)

    def _portion(self, costs: Sequence[tuple[PrivacyCost, int]], rule: str | None = None) -> float:
        """Return the portion of the rest that these costs would use: infinite if refused, NaN if it is not known."""
        after = self._state_after(costs, rule)
        if after is None or not isinstance(self._rule, Composition):
            return math.inf
        if self.epsilon == math.inf:
            return math.nan
        before = self._store.state()
        used_before = self._rule.used(before, self._part) if before.rule == after.rule is not None else 0.0
        used = self._rule.used(after, self._part)
        return (used - used_before) / (1 - used_before) if used_before < used <= 1 else math.nan

    def _state_after(self, costs: Sequence[tuple[PrivacyCost, int]], rule: str | None) -> State | None:
        if isinstance(self._rule, DeclaredPlan):
            return None
        state = self._store.state()
        if rule is not None:
            state = self._rule.settle(state, rule)
        return self._rule.after(state, costs, self._part)

    def _settle(self, rule: str) -> None:
        """Settle the rule, if it is open."""
        chosen = self._rule
        if isinstance(chosen, Composition) and self._store.state().rule != rule:
            self._store.change(lambda state: chosen.settle(state, rule))

    def charge(
        self,
        cost: PrivacyCost,
        *,
        label: str = "",
        estimator: str = "",
        releases: Iterable[RecordedRelease] = (),
        relation: Relation | None = None,
    ) -> None:
        """Charge an event of known cost. The check and the record are one step.

        Parameters
        ----------
        cost : PrivacyCost
            Guarantees of the event. The caller must prove that it has them.
        label, estimator : str
            Description of the charge, and the class that was fitted.
        releases : iterable of RecordedRelease
            Releases that will draw noise.
        relation : Relation, optional
            Neighbouring relation of the guarantees. By default, one unit of the accountant is added or removed.

        Raises
        ------
        BudgetError
            If the charge exceeds the budget, or the budget cannot count its relation. Nothing is recorded then.
        LedgerError
            If the charge cannot be recorded.
        """
        if not isinstance(cost, PrivacyCost):
            raise TypeError(f"cost must be a PrivacyCost, got {type(cost).__name__}")
        relation = relation_of(self.unit) if relation is None else Relation(relation)
        check_same_unit(relation.unit, self.unit, estimator)
        if not (isinstance(label, str) and isinstance(estimator, str)):
            raise TypeError("label and estimator must be text")
        label = _joined(self._label, label)
        releases = tuple(releases)
        check_record(cost, label + estimator, releases)
        division = None if self._part is None else self._part[0]
        record = Record(label, cost, estimator, releases, datetime.now(UTC), division, self._part_name, relation)

        def step(state: State) -> State:
            self._check_relation(relation, state, estimator)
            return self._rule.admit(state, cost, self._part)

        try:
            rule = self._rule
            if isinstance(rule, Composition) and rule.rule != "basic":
                # The warning comes before the charge, so that nothing is charged if the warning is an error.
                before = self._store.state()
                caution = rule.caution(before, rule.admit(before, cost, self._part), cost, self._part)
                if caution is not None:
                    warn(caution, BudgetWarning)
            self._store.change(step, record)
        except BudgetError as error:
            refused = passing(error)
        else:
            return
        # It is raised outside the handler, so that it is not its own context.
        try:
            raise refused
        finally:
            # An error in its own traceback would keep the rows of the fit in memory.
            del refused

    def _check_relation(self, relation: Relation, state: State, who: str = "") -> None:
        """Refuse a release that makes the number of its records public, if the records of the part are private."""
        if self._part is None or relation is not Relation.REPLACE_RECORD or state.divisions[self._part[0]].public:
            return
        raise BudgetError(
            f"{who or 'the charge'} makes the number of records public, and cannot be charged to a part, because the "
            "size of a part depends on the records. Nothing was charged. Randomise the records before they are "
            "divided, or pass public=True to parallel if the assignment of records to parts is public"
        )

    def remaining(self, k: int = 1, *, like: Any = None, n_features: int | None = None) -> Budget:
        """Return the largest release, or the largest fit of a model, that is admitted `k` more times.

        Without `like`, the answer holds for any release under ``"basic"`` composition, and only for releases with
        Gaussian noise under other rules, because other mechanisms use more of the budget at the same epsilon. Pass the
        model that you are going to fit.

        Parameters
        ----------
        k : int, default=1
            Number of equal releases or fits, at least 1.
        like : estimator, default=None
            If given, return the largest budget with which this model can be fitted `k` times. It is a private estimator
            or search, or a pipeline or meta-estimator that :func:`skdp.allocate` accepts. Its epsilon has no effect.
        n_features : int, default=None
            Number of columns that `like` will be fitted to. A few estimators need it, because their releases depend on
            it. If None, it is the number of columns of `like`, if `like` is fitted.

        Returns
        -------
        remaining : Budget
            Named pair (epsilon, delta) of each release or fit. With `like`, delta is that of the estimator, and the
            answer is a valid value of its `epsilon`. For a pipeline or meta-estimator, pass the pair to `allocate`
            (with the delta of the ceiling). With a plan, the answer is 0, because only `planned` is admitted.

        Notes
        -----
        **Privacy.** The answer follows from the charges and from the parameters of `like`. No data are used.

        Examples
        --------
        >>> from skdp import BudgetAccountant, ObjPertLogReg
        >>> acc = BudgetAccountant(epsilon=3.0, delta=1e-6, composition="rdp")
        >>> model = ObjPertLogReg(
        ...     loss="huber", delta=1e-6, data_norm=1.0, classes=[0, 1]
        ... )
        >>> round(acc.remaining().epsilon, 3)
        2.799
        >>> round(acc.remaining(like=model).epsilon, 3)
        2.806
        """
        if isinstance(k, bool) or not hasattr(k, "__index__"):
            raise TypeError(f"k must be an integer, got {shown(k)}")
        if k < 1:
            raise ValueError(f"k must be at least 1, got {shown(k)}")
        if like is None:
            return self._rule.remaining(self._store.state(), int(k), self._part)
        # A package above this one handles pipelines.
        largest: Budget = call_above("largest_budget", self, like, int(k), n_features)
        if largest.epsilon > self.epsilon:
            warn(
                f"epsilon={largest.epsilon:.6g} of one fit is above the ceiling of {self.epsilon:g}, because its delta "
                f"is {largest.delta:g}. At the delta of the budget, {self.delta:g}, the fit is within the ceiling",
                BudgetWarning,
            )
        return largest

    def labelled(self, label: str) -> BudgetAccountant:
        """Return an accountant of the same budget whose charges have a label in the ledger.

        Parameters
        ----------
        label : str
            Public text that precedes the label of every charge in the records.

        Returns
        -------
        accountant : BudgetAccountant
            Accountant of the same budget, with the same records and ceiling.
        """
        if not isinstance(label, str):
            raise TypeError(f"label must be text, got {type(label).__name__}")
        joined = _joined(self._label, label)
        check_record(PrivacyCost.of_pair(0.0, 0.0), joined, ())
        return type(self)._attached(self._rule, self._store, self._part, self._part_name, joined)

    @discreet
    def parallel(self, by: ArrayLike, parts: Sequence[Any], *, public: bool = False) -> Parts:
        """Divide the records into disjoint parts, so that a record is charged only for its own part.

        The division is a context manager. Only the part with the largest charge counts, not the sum of all parts. A
        budget about groups cannot be divided, because the records of one group could be in several parts.

        Parameters
        ----------
        by : array-like of shape (n_samples,)
            Name of the part of each record. The name must be a function of the record only, such as a column. It must
            not depend on the row number or on other records.
        parts : list of str or int
            Public names of the parts. Records with other values are in no part.
        public : bool, default=False
            Whether the assignment of records to parts is public. Only then can a part be charged for a release that
            makes the number of its records public, as those of :mod:`skdp.local` and of diffprivlib.

        Returns
        -------
        parts : Parts
            Iterable of parts, each with `name`, `accountant` and ``take(X, y)``, which returns the rows of the part.

        Examples
        --------
        >>> import numpy as np
        >>> from skdp import BudgetAccountant
        >>> X, region = (
        ...     np.arange(6.0),
        ...     np.array(["north", "south", "north", "east", "south", "north"]),
        ... )
        >>> acc = BudgetAccountant(epsilon=1.0)
        >>> with acc.parallel(by=region, parts=["north", "south"]) as parts:
        ...     for part in parts:
        ...         rows = part.take(X)
        ...         part.accountant.spend(0.75, label="mean")
        >>> acc.total()
        Budget(epsilon=0.75, delta=0.0)
        """
        if self._part is not None:
            raise ValueError("a part cannot be divided again; divide all records by both values at once")
        if isinstance(self._rule, DeclaredPlan):
            raise ValueError("a declared plan has no parts")
        if self.unit != "record":
            raise ValueError(
                f"a budget about one {self.unit} cannot be divided, because records of one {self.unit} could be in "
                "several parts. Charge each fit to the whole budget"
            )
        if not isinstance(public, bool):
            raise TypeError(f"public must be True or False, got {shown(public)}")
        names = check_names(parts)
        part_of_record = assign(by, names)
        texts = tuple(str(name) for name in names)
        number = -1

        def divide(state: State) -> State:
            nonlocal number
            number = len(state.divisions)
            return state.divide(texts, public)

        self._store.change(divide)
        accountants = [
            type(self)._attached(self._rule, self._store, (number, position), text, self._label)
            for position, text in enumerate(texts)
        ]
        close = partial(self._store.change, lambda state: state.close(number))
        return Parts(names, part_of_record, accountants, close)

    def _elsewhere(self) -> str | None:
        """Return the path that the ledger belongs to, if it is not the path that was opened."""
        return self._store.elsewhere() if isinstance(self._store, SQLiteLedger) else None

    def __copy__(self) -> BudgetAccountant:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> BudgetAccountant:
        return self

    def __sklearn_clone__(self) -> BudgetAccountant:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        store, rule = self._store, rule_to_json(self._rule)
        if isinstance(store, MemoryLedger):
            # Other processes can use the records only in a file.
            store = store.move(lambda state, records: temporary(rule, state, records))
        assert isinstance(store, SQLiteLedger)
        ledger = str(store.path), store.identity, store.seen, store.temporary
        return _wake, (type(self), rule, *ledger, self._part, self._part_name, self._label)


def _wake(
    kind: type[BudgetAccountant],
    rule: str,
    path: str,
    identity: str,
    seen: Seen,
    temporary: bool,
    part: PartKey | None,
    name: str,
    label: str,
) -> BudgetAccountant:
    """Unpickle without a look at the file, because a model can be loaded and used where its ledger is missing."""
    store = SQLiteLedger(Path(path), identity, seen, temporary)
    return kind._attached(rule_from_json(rule), store, part, name, label)


def _joined(prefix: str, label: str) -> str:
    """Join the labels of the accountant and of the charge. The label "fit" is left out."""
    return ": ".join(text for text in (prefix, "" if prefix and label == "fit" else label) if text)


def _checked(epsilon: float, delta: float) -> tuple[float, float]:
    pair = check_epsilon(epsilon, allow_zero=True), check_delta(delta)
    if pair == (0, 0):
        raise ValueError("epsilon and delta must not both be 0: a release that costs nothing depends on no record")
    return pair


def _asked(rule: Rule) -> tuple[Any, ...]:
    """Return the choices of the user, without the numbers that follow from them."""
    planned = tuple(entry.events for entry in rule.entries) if isinstance(rule, DeclaredPlan) else ()
    return rule.ceiling, rule.rule, rule.unit, planned


def _described(rule: Rule) -> str:
    how = f"a plan of {len(rule.entries)} entries" if isinstance(rule, DeclaredPlan) else f"composition={rule.rule!r}"
    unit = "" if rule.unit == "record" else f", unit={rule.unit!r}"
    return f"(epsilon={rule.ceiling.epsilon:g}, delta={rule.ceiling.delta:g}, {how}{unit})"
