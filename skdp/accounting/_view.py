"""How a ledger is shown: in one line, as text, in a notebook, as a data frame."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from ..exceptions import LedgerError
from ._record import Record, record_to_data, to_json

if TYPE_CHECKING:
    import pandas

    from ._accountant import BudgetAccountant

#: Rows that a notebook is shown.
_MOST_ROWS = 100

_HEADINGS = ("time (UTC)", "estimator", "label", "part", "epsilon", "delta")


def line(accountant: BudgetAccountant) -> str:
    """One line; also where the ledger cannot be read, because representations must not raise."""
    try:
        number, total, rule = len(accountant), accountant.total(), accountant.composition
    except LedgerError as error:
        return f"BudgetAccountant(epsilon={accountant.epsilon:g}, delta={accountant.delta:g}): {error}"
    where = f", ledger={str(accountant.ledger)!r}" if accountant.ledger else ""
    where = ("" if accountant.unit == "record" else f", unit={accountant.unit!r}") + where
    part = f", part {accountant._part_name!r}" if accountant._part is not None else ""
    return (
        f"BudgetAccountant(epsilon={accountant.epsilon:g}, delta={accountant.delta:g}, composition={rule!r}{where})"
        f"{part}: {number} record{'' if number == 1 else 's'}, "
        f"spent (epsilon={total.epsilon:.6g}, delta={total.delta:.6g})"
    )


def cells(record: Record) -> tuple[str, ...]:
    """What a table shows of a record, in the order of the headings."""
    part = record.part if record.division is None else f"{record.part} (division {record.division})"
    return (
        f"{record.time:%Y-%m-%d %H:%M:%S}",
        record.estimator,
        record.label,
        part,
        f"{record.cost.epsilon:g}",
        f"{record.cost.delta:g}",
    )


def text(accountant: BudgetAccountant, last: int | None = None) -> str:
    """The ledger for a terminal, with the newest `last` records, or all."""
    records, total, remaining = accountant.records, accountant.total(), accountant.remaining()
    plural = "" if len(records) == 1 else "s"
    first = 0 if last is None else max(0, len(records) - last)
    rows: list[tuple[str, ...]] = [("", *_HEADINGS)]
    rows += [(str(number + 1), *cells(record)) for number, record in enumerate(records) if number >= first]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    if first:
        table.insert(1, f"... {first} earlier")
    summary = [
        f"ceiling    epsilon={accountant.epsilon:g}, delta={accountant.delta:g}, "
        f"composition={accountant.composition!r}" + ("" if accountant.unit == "record" else f", per {accountant.unit}"),
        f"spent      epsilon={total.epsilon:.6g}, delta={total.delta:.6g}, in {len(records)} charge{plural}",
        f"remaining  epsilon={remaining.epsilon:.6g}, delta={remaining.delta:.6g}",
    ]
    pure = accountant._pure_total()
    if pure is not None and total.delta > 0:
        summary[1] += f"; or epsilon={pure:.6g} without delta"
    if accountant.composition in ("gdp", "rdp"):
        summary[-1] += f" for Gaussian noise; epsilon={accountant._remaining_pure():.6g} without delta"
        charged = math.fsum(record.cost.epsilon for record in records)
        more = f"; their epsilons add up to {charged:.6g}" if charged > total.epsilon * (1 + 1e-9) else ""
        summary.append(f"           Charges compose: spent and remaining need not add up to the ceiling{more}.")
        summary.append("           Less remains for other mechanisms: see budget.remaining(like=model).")
    if accountant.composition == "plan":
        summary[-1] = f"planned    {len(accountant.planned)} entries not charged yet"
    return "\n".join([*summary, "", *(_printable(row) for row in table)])


def _printable(row: str) -> str:
    """Labels are a user's text, and a terminal obeys control characters."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in row)


def html(accountant: BudgetAccountant) -> str:
    """The ledger for a notebook, the newest records only if there are many."""
    head = f"<p>{escape(line(accountant))}</p>"
    try:
        records = accountant.records
    except LedgerError:
        return head
    first = max(0, len(records) - _MOST_ROWS)
    head += f"<p>{first} earlier records are not shown</p>" if first else ""
    headings = "".join(f"<th>{escape(heading)}</th>" for heading in ("", *_HEADINGS, "releases"))
    body = "".join(_html_row(number + 1, record) for number, record in enumerate(records) if number >= first)
    return f"{head}<table><thead><tr>{headings}</tr></thead><tbody>{body}</tbody></table>"


def _html_row(number: int, record: Record) -> str:
    releases = "<br>".join(escape(str(release)) for release in record.releases)
    row = "".join(f"<td>{escape(cell) or '-'}</td>" for cell in (str(number), *cells(record)))
    return f"<tr>{row}<td>{releases or '-'}</td></tr>"


def as_json(accountant: BudgetAccountant, last: int | None = None) -> str:
    """The ledger for other programs."""
    records = accountant.records
    shown = records if last is None else records[len(records) - min(last, len(records)) :]
    budget = {
        "ceiling": accountant._rule.ceiling._asdict(),
        "composition": accountant.composition,
        "unit": accountant.unit,
        "spent": accountant.total()._asdict(),
        "spent_without_delta": accountant._pure_total(),
        "remaining": accountant.remaining()._asdict(),
        "n_records": len(records),
        "records": [record_to_data(record) for record in shown],
    }
    return to_json(budget, indent=2)


def _row(record: Record) -> dict[str, Any]:
    """A record as a row of a data frame."""
    return {
        "time": record.time,
        "estimator": record.estimator,
        "label": record.label,
        "division": record.division,
        "part": record.part,
        "relation": record.relation.value,
        "epsilon": record.cost.epsilon,
        "delta": record.cost.delta,
        "mu": record.cost.mu(),
        "events": record.cost.events,
        "releases": record.releases,
    }


def to_frame(records: Sequence[Record]) -> pandas.DataFrame:
    """The records as a data frame, with the same columns when there are none."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("BudgetAccountant.to_frame needs pandas: pip install pandas") from error
    texts, numbers = ("estimator", "label", "part", "relation"), ("epsilon", "delta", "mu")
    columns = ["time", "estimator", "label", "division", "part", "relation", *numbers, "events", "releases"]
    frame = pandas.DataFrame([_row(record) for record in records], columns=columns)
    frame["time"] = pandas.to_datetime(frame["time"], utc=True)
    return frame.astype({**dict.fromkeys(texts, str), "division": "Int64", **dict.fromkeys(numbers, float)})
