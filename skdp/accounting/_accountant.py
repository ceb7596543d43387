"""One privacy budget, which several estimators can share."""

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

from ..checks import late
from ..checks.silence import discreet
from ..checks.values import shown
from ..checks.warn import warn
from ..exceptions import BudgetError, BudgetWarning, LedgerError, passing
from ._budget import UNITS, Budget, check_delta, check_epsilon, check_same_unit
from ._composition import RULES, Composition
from ._events import PrivacyCost
from ._ledger import Ledger, MemoryLedger
from ._parallel import Parts, assign, check_names
from ._plan import DeclaredPlan, as_costs
from ._record import Record, RecordedRelease, check_record, rule_from_json, rule_to_json
from ._relation import Relation
from ._sqlite import Seen, SQLiteLedger, open_or_create, resolve, temporary
from ._state import PartKey, State
from ._view import LedgerView, Rule


class BudgetAccountant(LedgerView):
    r"""A privacy budget that is charged before noise is drawn, and refuses what does not fit.

    Pass one accountant to any number of estimators. ``clone``, ``copy`` and ``deepcopy`` return the same accountant,
    and a pickled one spends from the same budget in whatever process it wakes up, so that `cross_val_score`,
    `GridSearchCV`, pipelines and worker processes all do.

    Parameters
    ----------
    epsilon : float, default=1.0
        Ceiling on epsilon, positive. ``inf`` sets no ceiling: everything is recorded and admitted.
    delta : float, default=0.0
        Ceiling on delta, in [0, 1). With 0, only pure events are admitted.
    ledger : path-like or str, default=None
        File, or ``sqlite:///`` URL, that keeps the records. A file that exists is opened, and must have been made with
        the same ceiling and composition; else it is made, readable for its owner alone. With None, records live in
        memory; when the accountant is pickled, they move to a temporary file that goes with this process.
    composition : {"auto", "basic", "gdp", "rdp"}, default="auto"
        How events add up when `delta` is positive. ``"basic"``: epsilons and deltas are summed. ``"gdp"``: the
        squares of Gaussian-DP parameters are summed; ``"rdp"``: Rényi divergences of one order are. These two
        admit far more Gaussian fits, and a sequence of pure events as far as its sum goes as well. ``"auto"``: pure
        events are counted by the sum of their epsilons; the first event that does not suit this sum settles the
        budget on the rule of which it uses the smallest part, with what the sum has left of epsilon, for good.
    unit : {"record", "group"}, default="record"
        Whose presence the ceiling is about. ``"group"`` is for fits with `rows_per_group`, all of them with the same
        groups, and admits no others: a fit that counts single records says nothing about a group.
    plan : list, default=None
        Declares everything that is going to be charged. An entry is what `privacy_plan` of an estimator returns, a
        PrivacyCost, or a pair ``(like, count)``, where `like` is one of these, an event, or an estimator whose cost
        does not depend on the data. The list is composed exactly; each entry can be charged once (or `count` times),
        in any order, and nothing else can be.

    Attributes
    ----------
    records : tuple of Record
        What has been charged, in order.
    composition : str
        The rule in force.
    ledger : Path or None
        The file that keeps the records.
    planned : tuple of PrivacyCost
        With a plan, the entries that were not charged yet.

    Raises
    ------
    LedgerError
        If the file cannot be used, or was made with other values.
    BudgetError
        If a plan exceeds the ceiling.

    See Also
    --------
    skdp.exceptions.BudgetError : Raised when a charge does not fit.
    skdp.allocate : Splits a budget over the private steps of a pipeline.

    Notes
    -----
    **Privacy.** Whatever is released through events that this accountant has admitted is, in total,
    (epsilon, delta)-differentially private with respect to adding or removing one record (or all records of one
    group, if that is the unit), also when each event was chosen after looking at the outputs of those before it. The
    rules, and why they hold, are in the user guide. Numbers are summed exactly, as the decimal numbers that were typed:
    ten charges of 0.1 fill a budget of 1.

    Once a charge of the local model (:mod:`skdp.local`) is among them, the total is about replacing a record's
    contents, with any fixed row in its place: the number of rows is public there.

    With a ledger, a charge is on disk before `spend` returns. Not covered: a ledger file that is replaced by an older
    copy while no process uses it, and records that are known to two ledgers.

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
        kept = rule_from_json(text)
        if _asked(kept) != _asked(rule):
            raise LedgerError(
                f"the ledger {path} was made with {_described(kept)}, and cannot be opened with {_described(rule)}; "
                "BudgetAccountant.from_ledger(path) opens it as it was made"
            )
        store.assert_writable()
        self._rule, self._store = kept, store

    @classmethod
    def from_ledger(cls, ledger: str | os.PathLike[str], *, moved: bool = False) -> BudgetAccountant:
        """Open a ledger that exists, with the ceiling and composition that it was made with.

        Parameters
        ----------
        ledger : path-like or str
            File, or ``sqlite:///`` URL.
        moved : bool, default=False
            If True, make this path the one that the ledger belongs to. A ledger is charged at one path only, so set
            this once after the file was renamed or moved, when no process uses the old path any more. It is refused
            if the ledger is still at its old path as well.

        Returns
        -------
        accountant : BudgetAccountant
            It spends from the ledger's budget, if the file can be written.

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
            Cost, at least 0.
        delta : float, default=0.0
            Cost, in [0, 1).
        label : str, default=""
            What it is for.

        Raises
        ------
        BudgetError
            If it does not fit; nothing is then recorded.
        LedgerError
            If it cannot be recorded.
        """
        self.charge(PrivacyCost.of_pair(*_checked(epsilon, delta)), label=label)

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
        cost = PrivacyCost.of_pair(*_checked(epsilon, delta))
        self._rule.admit(self._store.state(), cost, self._part)

    def check_charge(self, cost: PrivacyCost, *, estimator: str = "", relation: Relation | None = None) -> None:
        """Test whether `charge` would admit an event of known cost, and record nothing.

        Parameters
        ----------
        cost : PrivacyCost
            The guarantees that the event has.
        estimator : str, default=""
            Which class would be fitted.
        relation : Relation, optional
            Which data sets the guarantees compare. By default, one unit of the accountant is added or removed.

        Raises
        ------
        BudgetError
            If `charge` would not admit it now. Other charges may come before.
        """
        relation = Relation.of_unit(self.unit) if relation is None else Relation(relation)
        check_same_unit(relation.unit, self.unit, estimator)
        state = self._store.state()
        self._check_relation(relation, state, estimator)
        self._rule.admit(state, cost, self._part)

    def _after(self, costs: Sequence[tuple[PrivacyCost, int]], rule: str | None = None) -> Budget | None:
        """Total after all of these, each as often as its number says, under a rule; None if they do not fit."""
        after = self._state_after(costs, rule)
        return None if after is None else self._rule.total(after, self._part)

    def _used(self, costs: Sequence[tuple[PrivacyCost, int]], rule: str) -> float:
        """Part of the budget that is used after all of these, which have to fit."""
        after = self._state_after(costs, rule)
        assert after is not None
        assert isinstance(self._rule, Composition)
        return self._rule.used(after, self._part)

    def _portion(self, costs: Sequence[tuple[PrivacyCost, int]], rule: str | None = None) -> float:
        """Which portion of the rest these would use; infinite if they are refused, NaN if it cannot be told."""
        after = self._state_after(costs, rule)
        if after is None or not isinstance(self._rule, Composition):
            return math.inf
        if self.epsilon == math.inf:
            return math.nan
        before = self._store.state()
        gone = self._rule.used(before, self._part) if before.rule == after.rule is not None else 0.0
        used = self._rule.used(after, self._part)
        return (used - gone) / (1 - gone) if gone < used <= 1 else math.nan

    def _state_after(self, costs: Sequence[tuple[PrivacyCost, int]], rule: str | None) -> State | None:
        if isinstance(self._rule, DeclaredPlan):
            return None
        state = self._store.state()
        if rule is not None:
            state = self._rule.settle(state, rule)
        return self._rule.after(state, costs, self._part)

    def _measure(self, cost: PrivacyCost) -> float:
        """What the rule in force counts of a cost; its Rényi divergence while none is."""
        if self.composition == "gdp":
            return cost.mu()
        if not isinstance(self._rule, Composition):
            return cost.epsilon
        return cost.rdp(self._rule.order_in_force(self._store.state()))

    def _settle(self, rule: str) -> None:
        """Decide on the rule, if that is open."""
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
        """Charge an event of known cost; the check and the record are one step.

        Parameters
        ----------
        cost : PrivacyCost
            The guarantees that the event has. That it has them is for the caller to prove.
        label, estimator : str
            What it is for, and which class was fitted.
        releases : iterable of RecordedRelease
            What will draw noise.
        relation : Relation, optional
            Which data sets the guarantees compare. By default, one unit of the accountant is added or removed.

        Raises
        ------
        BudgetError
            If it does not fit, or its relation is not one that the budget can count; nothing is then recorded.
        LedgerError
            If it cannot be recorded.
        """
        if not isinstance(cost, PrivacyCost):
            raise TypeError(f"cost must be a PrivacyCost, got {type(cost).__name__}")
        relation = Relation.of_unit(self.unit) if relation is None else Relation(relation)
        check_same_unit(relation.unit, self.unit, estimator)
        if not (isinstance(label, str) and isinstance(estimator, str)):
            raise TypeError("label and estimator must be text")
        label = _joined(self._label, label)
        releases = tuple(releases)
        check_record(cost, label + estimator, releases)
        division = None if self._part is None else self._part[0]
        record = Record(label, cost, estimator, releases, datetime.now(UTC), division, self._part_name, relation)

        caution = None

        def step(state: State) -> State:
            nonlocal caution
            self._check_relation(relation, state, estimator)
            after = self._rule.admit(state, cost, self._part)
            if isinstance(self._rule, Composition):
                caution = self._rule.caution(state, after, cost, self._part)
            return after

        try:
            self._store.change(step, record)
        except BudgetError as error:
            refused = passing(error)
        else:
            if caution is not None:
                warn(caution, BudgetWarning)
            return
        # Outside the handler, so that it is not its own context.
        try:
            raise refused
        finally:
            # An error that its own traceback refers to would keep the rows of the fit in memory.
            del refused

    def _check_relation(self, relation: Relation, state: State, who: str = "") -> None:
        """Refuse a release that makes the number of its records public, if which records those are is private."""
        if self._part is None or relation is not Relation.REPLACE_RECORD or state.divisions[self._part[0]].public:
            return
        raise BudgetError(
            f"{who or 'the charge'} makes the number of records public, and cannot be charged to a part: the size of a "
            "part depends on the records. Nothing was charged. Randomise the records before they are divided, or, if "
            "it is public which record is in which part, pass public=True to parallel"
        )

    def remaining(self, k: int = 1, *, like: Any = None, n_features: int | None = None) -> Budget:
        """Return the largest release, or the largest fit of a model, of which `k` are still admitted.

        Without `like`, the answer holds for any release under ``"basic"`` composition, and for releases with Gaussian
        noise alone under ``"gdp"`` and ``"rdp"``: other mechanisms use more of the budget at the same epsilon. Pass the
        model that you are going to fit.

        Parameters
        ----------
        k : int, default=1
            Number of equal releases or fits, at least 1.
        like : estimator, default=None
            If given, return the largest budget with which this model can be fitted `k` times: a private estimator or
            search, or a pipeline or meta-estimator that :func:`skdp.allocate` takes. It is not changed, and its
            epsilon does not matter.
        n_features : int, default=None
            Number of columns that `like` will be fitted to. A few estimators need it, because their releases depend
            on it. If None, it is that of the fitted estimator, if `like` is one.

        Returns
        -------
        remaining : Budget
            Named pair (epsilon, delta) of each. With `like`, delta is that of the estimator, whose `epsilon` can be
            set to the answer; for a pipeline or meta-estimator, the pair is what `allocate` can be given (with the
            delta of the ceiling). With a plan it is 0: only the entries in `planned` are admitted.

        Notes
        -----
        **Privacy.** The answer follows from what was charged and from the parameters of `like`. No data are used.

        Examples
        --------
        >>> from skdp import BudgetAccountant, ObjPertSVC
        >>> acc = BudgetAccountant(epsilon=3.0, delta=1e-6, composition="rdp")
        >>> model = ObjPertSVC(delta=1e-6, data_norm=1.0, classes=[0, 1])
        >>> print(f"{acc.remaining().epsilon:.3f} {acc.remaining(like=model).epsilon:.3f}")
        2.799 2.806
        """
        if isinstance(k, bool) or not hasattr(k, "__index__"):
            raise TypeError(f"k must be an integer, got {shown(k)}")
        if k < 1:
            raise ValueError(f"k must be at least 1, got {shown(k)}")
        if like is None:
            return self._rule.remaining(self._store.state(), int(k), self._part)
        # Pipelines are understood by a package above this one.
        found: Budget = late.call("largest_budget", self, like, int(k), n_features)
        return found

    def labelled(self, label: str) -> BudgetAccountant:
        """Return an accountant of the same budget whose charges say in the ledger what they are for.

        Parameters
        ----------
        label : str
            Goes into the record of every charge, before what the charge says itself. It is public.

        Returns
        -------
        accountant : BudgetAccountant
            It charges this one's budget, with this one's records and ceiling.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from skdp import BudgetAccountant, DPNaiveBayes
        >>> budget = BudgetAccountant(epsilon=1.0)
        >>> X, y = load_iris(return_X_y=True)
        >>> flowers = budget.labelled("flowers, for the catalogue")
        >>> _ = DPNaiveBayes(bounds=(0, 8), classes=[0, 1, 2], epsilon=0.5, accountant=flowers).fit(X, y)
        >>> [record.label for record in budget.records]
        ['flowers, for the catalogue']
        >>> budget.remaining()
        Budget(epsilon=0.5, delta=0.0)
        """
        if not isinstance(label, str):
            raise TypeError(f"label must be text, got {type(label).__name__}")
        joined = _joined(self._label, label)
        check_record(PrivacyCost.of_pair(0.0, 0.0), joined, ())
        return type(self)._attached(self._rule, self._store, self._part, self._part_name, joined)

    @discreet
    def parallel(self, by: ArrayLike, parts: Sequence[Any], *, public: bool = False) -> Parts:
        """Divide the records into disjoint parts; a record is exposed to what its own part is charged.

        The division is a context manager. Only the part with the largest charge counts, not the sum of all parts. A
        budget about groups has no parts, because the records of one group could be in several.

        Parameters
        ----------
        by : array-like of shape (n_samples,)
            For each record, the name of its part. It must be a function of the record alone, such as a column; not of
            its row number, nor of other records.
        parts : list of str or int
            The names, public. Records with another value are in no part.
        public : bool, default=False
            Whether it is public which record is in which part. Only then can a part be charged for a release that
            makes the number of its records public, as those of :mod:`skdp.local` and of diffprivlib do.

        Returns
        -------
        parts : Parts
            Iterable of parts, each with `name`, `accountant` and ``take(X, y)``, which cuts out the part's rows.

        Examples
        --------
        >>> import numpy as np
        >>> from skdp import BudgetAccountant
        >>> X, region = np.arange(6.0), np.array(["north", "south", "north", "east", "south", "north"])
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
                f"this budget is about one {self.unit}, of which records could be in several parts, and would be "
                "exposed to all that these are charged: charge each fit to the whole budget"
            )
        if not isinstance(public, bool):
            raise TypeError(f"public must be True or False, got {shown(public)}")
        names = check_names(parts)
        places = assign(by, names)
        texts = tuple(str(name) for name in names)
        number = self._divide(texts, public)
        accountants = [
            type(self)._attached(self._rule, self._store, (number, place), text, self._label)
            for place, text in enumerate(texts)
        ]
        return Parts(names, places, accountants, partial(self._end_division, number))

    def _elsewhere(self) -> str | None:
        """The path that the ledger belongs to, if it is another one than that which was opened."""
        return self._store.elsewhere() if isinstance(self._store, SQLiteLedger) else None

    def _divide(self, names: tuple[str, ...], public: bool) -> int:
        number = -1

        def step(state: State) -> State:
            nonlocal number
            number = len(state.divisions)
            return state.divide(names, public)

        self._store.change(step)
        return number

    def _end_division(self, number: int) -> None:
        self._store.change(lambda state: state.close(number))

    def as_diffprivlib(self) -> Any:
        """Return an accountant for diffprivlib's models and tools that spends from this budget.

        Returns
        -------
        accountant : diffprivlib.BudgetAccountant
            An instance of a subclass of it. It charges this budget when diffprivlib checks whether a fit is affordable,
            which it does before it draws noise.

        Raises
        ------
        ImportError
            If diffprivlib is not installed, or cannot be imported with the installed scikit-learn.

        Notes
        -----
        **Privacy.** The charge is what diffprivlib states. Most of its models compare data sets in which one record is
        replaced, and treat the number of records as public; every charge is recorded with that relation. Therefore the
        accountant of a part is refused, unless the division is public.
        """
        from ._diffprivlib import adapt

        self._check_relation(Relation.REPLACE_RECORD, self._store.state(), "diffprivlib")
        if self.unit != "record":
            raise ValueError(f"diffprivlib's models count single records, and this budget is about one {self.unit}")
        return adapt(self)

    def __copy__(self) -> BudgetAccountant:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> BudgetAccountant:
        return self

    def __sklearn_clone__(self) -> BudgetAccountant:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        store = self._shared_store()
        kept = rule_to_json(self._rule), str(store.path), store.identity, store.seen, store.temporary
        return _wake, (type(self), *kept, self._part, self._part_name, self._label)

    def _shared_store(self) -> SQLiteLedger:
        """The ledger in a file, to which records that were in memory are moved."""
        store = self._store
        if isinstance(store, MemoryLedger):
            rule = rule_to_json(self._rule)
            store = store.move(lambda state, records: temporary(rule, state, records))
        assert isinstance(store, SQLiteLedger)
        return store


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
    """Unpickle. The file is not touched: a model can be loaded, and predict, where its ledger is not."""
    store = SQLiteLedger(Path(path), identity, seen, temporary)
    return kind._attached(rule_from_json(rule), store, part, name, label)


def _joined(own: str, label: str) -> str:
    """What an accountant says of its charges, and what the charge says; that a fit is a fit goes without saying."""
    return ": ".join(part for part in (own, "" if own and label == "fit" else label) if part)


def _checked(epsilon: float, delta: float) -> tuple[float, float]:
    pair = check_epsilon(epsilon, allow_zero=True), check_delta(delta)
    if pair == (0, 0):
        raise ValueError("epsilon and delta must not both be 0: a release that costs nothing depends on no record")
    return pair


def _asked(rule: Rule) -> tuple[Any, ...]:
    """What a user chose, without the numbers that follow from it."""
    planned = tuple(entry.events for entry in rule.entries) if isinstance(rule, DeclaredPlan) else ()
    return rule.ceiling, rule.rule, rule.unit, planned


def _described(rule: Rule) -> str:
    how = f"a plan of {len(rule.entries)} entries" if isinstance(rule, DeclaredPlan) else f"composition={rule.rule!r}"
    unit = "" if rule.unit == "record" else f", unit={rule.unit!r}"
    return f"(epsilon={rule.ceiling.epsilon:g}, delta={rule.ceiling.delta:g}, {how}{unit})"
