"""Views of a ledger: its sums and records, in one line, as text, in a notebook, as JSON, or as a data frame."""

from __future__ import annotations

import math
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from ..exceptions import LedgerError
from ._attack import AttackBounds, attack_bounds
from ._budget import UP, Budget, relation_of
from ._composition import Composition, DeclaredPlan, PartKey
from ._events import PrivacyCost
from ._record import Ledger, Record, record_to_data, to_json
from ._sqlite import SQLiteLedger

Rule = Composition | DeclaredPlan

#: Largest number of rows in a notebook.
_MOST_ROWS = 100

_HEADINGS = ("time (UTC)", "estimator", "label", "part", "epsilon", "delta")


def cells(record: Record) -> tuple[str, ...]:
    """Return the cells of a record in a table, in the order of the headings."""
    return (
        f"{record.time:%Y-%m-%d %H:%M:%S}",
        record.estimator,
        record.label,
        record.part if record.division is None else f"{record.part} (division {record.division})",
        f"{record.cost.epsilon:g}",
        f"{record.cost.delta:g}",
    )


class LedgerView:
    """The part of a BudgetAccountant that reads its ledger and charges nothing."""

    _rule: Rule
    _store: Ledger
    _part: PartKey | None = None
    _part_name: str = ""
    _label: str = ""

    @property
    def epsilon(self) -> float:
        """Ceiling on epsilon."""
        return self._rule.ceiling.epsilon

    @property
    def delta(self) -> float:
        """Ceiling on delta."""
        return self._rule.ceiling.delta

    @property
    def unit(self) -> str:
        """Unit that the ceiling protects: "record" or "group"."""
        return self._rule.unit

    @property
    def composition(self) -> str:
        """Rule in force: "auto" as long as it is open, "plan" for a declared list."""
        return self._store.state().rule or "auto"

    @property
    def ledger(self) -> Path | None:
        """File that keeps the records, or None."""
        store = self._store
        return store.path if isinstance(store, SQLiteLedger) and not store.temporary else None

    @property
    def records(self) -> tuple[Record, ...]:
        """Charges in order. The accountant of a part lists the charges to this part."""
        records = self._store.records()
        if self.unit != "record":
            # Ledgers do not keep the relation that their unit implies.
            records = tuple(replace(record, relation=relation_of(self.unit)) for record in records)
        if self._part is None:
            return records
        return tuple(r for r in records if (r.division, r.part) == (self._part[0], self._part_name))

    @property
    def planned(self) -> tuple[PrivacyCost, ...]:
        """Entries of a declared plan that have not been charged yet."""
        return self._rule.left(self._store.state()) if isinstance(self._rule, DeclaredPlan) else ()

    def total(self) -> Budget:
        """Return the smallest proved (epsilon, delta) of all charges together.

        Returns
        -------
        total : Budget
            Named pair (epsilon, delta), which never exceeds the ceiling. The guarantee in advance is the ceiling. A
            total in the middle of an adaptive sequence only describes the charges so far. If all events are pure and
            their sum is the better bound, delta is 0. Otherwise, delta is that of the ceiling (under basic composition,
            it is the sum of deltas). With a plan, the total is that of the whole list.
        """
        return self._rule.total(self._store.state(), self._part)

    def attack(self, *, replace_one: bool = False, ceiling: bool = False) -> AttackBounds:
        """Return upper bounds on attacks that tell whether one record (or group) is in the data.

        .. versionadded:: 0.2

        Parameters
        ----------
        replace_one : bool, default=False
            If True, bound guesses which of two values a record (or group) has that is known to be in the data.
        ceiling : bool, default=False
            If True, bound attacks that use all releases, also later ones. Otherwise, the bounds describe the charges
            so far, as `total` does, and are no guarantee if results decide which fit comes next.

        Returns
        -------
        bounds : AttackBounds
            Bounds of all charges together.
        """
        if ceiling:
            return attack_bounds(*self._rule.ceiling, math.inf, replaced=replace_one)
        # The sums of a state hold the GDP parameter of the charges after its rule was settled only.
        divided = self._part is not None or self._store.state().divisions
        mu = math.inf
        if not divided and not isinstance(self._rule, DeclaredPlan):
            mu = math.hypot(*(record.cost.mu() for record in self.records)) * UP
        return attack_bounds(*self.total(), mu, replaced=replace_one)

    def _how(self, total: Budget) -> str:
        """Return by which rule a total is less than the sum of epsilons, or nothing."""
        state = self._store.state()
        added = float(state.seen(self._part).epsilon)
        less = f", by {state.rule!r} composition less than the sum of epsilons, {added:.6g}"
        return less if added > total.epsilon * (1 + 1e-9) else ""

    def _pure_total(self) -> float | None:
        """Return the sum of epsilons, if only pure events were charged. It can exceed the ceiling."""
        sums = self._store.state().seen(self._part)
        return float(sums.epsilon) if sums.delta == 0 and isinstance(self._rule, Composition) else None

    def _remaining_pure(self) -> float:
        """Return about the largest epsilon of a pure event that is still admitted."""
        assert isinstance(self._rule, Composition)
        return self._rule.remaining_pure(self._store.state(), self._part)

    def _left(self) -> Budget:
        return self._rule.remaining(self._store.state(), 1, self._part)

    def to_frame(self) -> Any:
        """Return the records as a table of pandas.

        Returns
        -------
        frame : pandas.DataFrame
            One row for each charge, in order: time, estimator, label, part, epsilon, delta, GDP parameter, events and
            releases.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("BudgetAccountant.to_frame needs pandas: pip install pandas") from error
        columns = ["time", "estimator", "label", "division", "part", "relation", "epsilon", "delta", "mu"]
        rows = [
            {**vars(record), **vars(record.cost), "relation": record.relation.value, "mu": record.cost.mu()}
            for record in self.records
        ]
        frame = pandas.DataFrame(rows, columns=[*columns, "events", "releases"])
        return frame.assign(time=pandas.to_datetime(frame["time"], utc=True))

    def to_text(self, last: int | None = None) -> str:
        """Return the ledger as text: the ceiling, the spent and the remaining budget, and a table of the charges.

        Parameters
        ----------
        last : int, optional
            Show the newest `last` charges only.

        Returns
        -------
        text : str
            Several lines.
        """
        records, total, remaining = self.records, self.total(), self._left()
        plural = "" if len(records) == 1 else "s"
        summary = [
            f"ceiling    epsilon={self.epsilon:g}, delta={self.delta:g}, "
            f"composition={self.composition!r}" + ("" if self.unit == "record" else f", per {self.unit}"),
            f"spent      epsilon={total.epsilon:.6g}, delta={total.delta:.6g}, in {len(records)} charge{plural}"
            + self._how(total),
            f"remaining  epsilon={remaining.epsilon:.6g}, delta={remaining.delta:.6g}",
        ]
        pure = self._pure_total()
        if pure is not None and total.delta > 0:
            summary[1] += f"; or epsilon={pure:.6g} without delta"
        if self.composition in ("gdp", "rdp", "mixed"):
            summary[-1] += (
                f" for one more release with Gaussian noise; epsilon={self._remaining_pure():.6g} with delta=0"
            )
            summary.append("           for other releases, see budget.remaining(like=model)")
        if self.composition == "plan":
            summary[-1] = f"planned    {len(self.planned)} entries not charged yet"
        together, replaced = self._statement()
        summary[1:1] = [f"           the guarantee of all releases together: {together}", f"           {replaced}"]
        first = 0 if last is None else max(0, len(records) - last)
        rows: list[tuple[str, ...]] = [("", *_HEADINGS)]
        rows += [(str(number + 1), *cells(record)) for number, record in enumerate(records) if number >= first]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        if first:
            table.insert(1, f"... {first} earlier")
        # Labels are text of a user, and a terminal obeys control characters.
        printable = ("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in row) for row in table)
        return "\n".join([*summary, "", *printable])

    def _statement(self) -> tuple[str, str]:
        """State the guarantee of the ceiling, for a record (or group) that is added or removed, or replaced."""
        epsilon, delta = self._rule.ceiling._replaced()
        replaced = self.attack(replace_one=True, ceiling=True)._in_short()
        return (
            self.attack(ceiling=True)._in_short(),
            f"implies (epsilon={epsilon:g}, delta={delta:.3g}) if one {self.unit} is replaced: {replaced}",
        )

    def to_json(self, last: int | None = None) -> str:
        """Return the ledger as JSON, with events and releases as data.

        Parameters
        ----------
        last : int, optional
            Give the newest `last` charges only.

        Returns
        -------
        text : str
            One object. Infinite numbers are the text "inf".
        """
        records = self.records
        shown = records if last is None else records[len(records) - min(last, len(records)) :]
        budget = {
            "ceiling": self._rule.ceiling._asdict(),
            "composition": self.composition,
            "unit": self.unit,
            "spent": self.total()._asdict(),
            "spent_without_delta": self._pure_total(),
            "remaining": self._left()._asdict(),
            "n_records": len(records),
            "records": [record_to_data(record) for record in shown],
        }
        return to_json(budget, indent=2)

    def __len__(self) -> int:
        return len(self._store) if self._part is None else len(self.records)

    def __bool__(self) -> bool:
        # An accountant without records must not be falsy, because `accountant or default` would drop it.
        return True

    def __repr__(self) -> str:
        # This also works if the ledger cannot be read, because representations must not raise.
        try:
            number, total, rule = len(self), self.total(), self.composition
            how = self._how(total)
        except LedgerError as error:
            return f"BudgetAccountant(epsilon={self.epsilon:g}, delta={self.delta:g}): {error}"
        where = "" if self.unit == "record" else f", unit={self.unit!r}"
        where += f", ledger={str(self.ledger)!r}" if self.ledger else ""
        of_part = f", part {self._part_name!r}" if self._part is not None else ""
        return (
            f"BudgetAccountant(epsilon={self.epsilon:g}, delta={self.delta:g}, composition={rule!r}{where})"
            f"{of_part}: {number} charge{'' if number == 1 else 's'}, "
            f"spent (epsilon={total.epsilon:.6g}, delta={total.delta:.6g}){how}"
        )

    def _repr_html_(self) -> str:
        head = f"<p>{escape(repr(self))}</p>"
        try:
            records = self.records
        except LedgerError:
            return head
        first = max(0, len(records) - _MOST_ROWS)
        head += f"<p>{first} earlier records are not shown</p>" if first else ""
        headings = "".join(f"<th>{escape(heading)}</th>" for heading in ("", *_HEADINGS, "releases"))
        body = ""
        for number, record in enumerate(records[first:], start=first + 1):
            releases = "<br>".join(escape(str(release)) for release in record.releases)
            row = "".join(f"<td>{escape(cell) or '-'}</td>" for cell in (str(number), *cells(record)))
            body += f"<tr>{row}<td>{releases or '-'}</td></tr>"
        return f"{head}<table><thead><tr>{headings}</tr></thead><tbody>{body}</tbody></table>"
