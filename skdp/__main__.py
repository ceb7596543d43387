"""Command line, ``python -m skdp``: ledgers, schemas, descriptions of private tables, and synthetic tables."""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import __version__
from .exceptions import BudgetError, BudgetWarning, LedgerError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return 0, or 1 if a file cannot be read."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except (BudgetError, LedgerError, ImportError, OSError, TypeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m skdp", description="Differentially private estimators.")
    parser.add_argument("--version", action="version", version=f"skdp {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    ledger = commands.add_parser(
        "ledger",
        help="show a budget's ledger",
        description="Verify a ledger and print its ceiling, what was spent, what remains, and every charge.",
    )
    ledger.set_defaults(run=_show_ledger)
    ledger.add_argument("path", help="the file that BudgetAccountant(..., ledger=path) keeps")
    ledger.add_argument("--last", type=_count, metavar="N", help="only the newest N charges")
    ledger.add_argument(
        "--moved",
        action="store_true",
        help="the file was renamed or moved, and is no longer used by its old name: charge it by this one from now on",
    )
    ledger.add_argument("--json", action="store_true", help="print everything as JSON, events and releases included")
    schema = commands.add_parser(
        "schema", help="show a schema, or check a table", description="Show a schema file, or compare a table with it."
    )
    actions = schema.add_subparsers(dest="action", required=True)
    show = actions.add_parser("show", help="print the columns", description="Print the columns of a schema.")
    check = actions.add_parser(
        "check",
        help="count the entries of a table that are missing or not declared",
        description="Count the entries of a table that are missing or not declared. The counts are exact and not "
        "private: they are for the curator of the data only.",
    )
    for action in (show, check):
        action.set_defaults(run=_show_schema)
        action.add_argument("schema", help="the file that Schema.save wrote, with the ending .toml or .json")
    describe = commands.add_parser(
        "describe",
        help="describe a private table, and charge a ledger",
        description="Print private statistics of all columns of a table. The ledger is charged beforehand.",
    )
    describe.set_defaults(run=_describe)
    describe.add_argument("--html", metavar="FILE", help="write the description to a file as HTML as well")
    text = "write a synthetic table with the columns of a private table, from one release"
    synthesize = commands.add_parser("synthesize", help=text, description=f"{text.capitalize()}.")
    synthesize.set_defaults(run=_synthesize)
    synthesize.add_argument("--out", required=True, help="a new file for the table: .csv, .csv.gz or .parquet")
    synthesize.add_argument("--rows", type=_count, help="number of synthetic rows, by default the released number")
    synthesize.add_argument("--card", metavar="FILE", help="a new file for a card of the release, as Markdown")
    synthesize.add_argument("--json", metavar="FILE", help="a new file for everything that was released, as JSON")
    for command in (check, describe, synthesize):
        command.add_argument("table", help="a CSV file with names of columns in its first line, or a Parquet file")
        command.add_argument(
            "--missing",
            action="append",
            default=[],
            metavar="[COLUMN=]MARK",
            help="a mark of missing entries of a CSV file, in all columns or in one. Can be repeated",
        )
    for command, ledger_required in ((describe, True), (synthesize, False)):
        command.add_argument("--schema", required=True, help="the file that Schema.save wrote")
        command.add_argument(
            "--ledger", required=ledger_required, help="the file that BudgetAccountant(..., ledger=path) keeps"
        )
        command.add_argument("--epsilon", type=float, required=True, help="privacy budget of the release")
        command.add_argument("--delta", type=float, default=0.0, help="privacy budget of the release, default 0")
        command.add_argument("--label", default="", help="text for the charge in the ledger")
        command.add_argument("--anyway", action="store_true", help="charge, even if much more of the budget is used")
    return parser


def _describe(options: Any) -> None:
    from .schema import Schema
    from .stats import describe

    def release(budget: dict[str, Any]) -> None:
        schema = Schema.load(options.schema)
        description = describe(_table(options, schema), schema=schema, **budget)
        if options.html:
            Path(options.html).write_text(description._repr_html_(), encoding="utf-8")
        _show(repr(description))

    _charged(options, release)


def _synthesize(options: Any) -> None:
    from .inspection import model_card
    from .schema import Schema
    from .synthetic import DPTableGenerator

    def release(budget: dict[str, Any]) -> None:
        if options.rows == 0:
            raise ValueError("--rows must be at least 1. Nothing was charged")
        schema = Schema.load(options.schema)
        generator = DPTableGenerator(schema=schema, **budget)
        table, made = _table(options, schema), list[Path]()
        if _is_parquet(Path(options.out)):
            import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: F401
        try:
            # The files are made before the charge, because what was charged must be written.
            for path in map(Path, filter(None, (options.out, options.card, options.json))):
                if path.exists():
                    raise ValueError(f"{path} exists. Pass another file. Nothing was charged")
                path.open("xb").close()
                made.append(path)
            generator.fit(table)
        except BaseException:
            for path in made:
                path.unlink()
            raise
        try:
            _write(made[0], generator.sample(options.rows))
            if options.card:
                card = model_card(generator, title="Synthetic table", accountant=budget["accountant"])
                Path(options.card).write_text(card, encoding="utf-8")
            if options.json:
                generator.to_json(options.json)
        except Exception as error:
            charged = "The budget was charged" if options.ledger else "The release was made: record it"
            raise OSError(f"{made[0]} could not be written: {error!r}. {charged}") from error
        charged = "" if options.ledger else ". No ledger was charged: record this release yourself"
        biased, verb = ", ".join(generator.biased_means_), "were" if made[1:] else "was"
        warning = f"\nwarning: noise in empty bins can bias the synthetic means of {biased}" if biased else ""
        _show(f"{generator.privacy_}{warning}\n{' and '.join(map(str, made))} {verb} written{charged}")

    _charged(options, release)


def _charged(options: Any, release: Callable[[dict[str, Any]], None]) -> None:
    """Run a release that charges the ledger, if there is one."""
    from .accounting import BudgetAccountant

    if options.label and not options.ledger:
        raise ValueError("--label is for the charge of a ledger, and needs --ledger. Nothing was charged")
    accountant = BudgetAccountant.from_ledger(options.ledger).labelled(options.label) if options.ledger else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if options.anyway else "error", BudgetWarning)
        try:
            release({"epsilon": options.epsilon, "delta": options.delta, "accountant": accountant})
        except BudgetWarning as warning:
            advice = "Nothing was charged. Pass --delta, or --anyway to charge it all the same"
            raise BudgetError(f"{warning}. {advice}") from None


def _show_ledger(options: Any) -> None:
    from .accounting import BudgetAccountant

    accountant = BudgetAccountant.from_ledger(options.path, moved=options.moved)
    home = accountant._elsewhere()
    _show(accountant.to_json(options.last) if options.json else accountant.to_text(options.last))
    if home is not None:
        print(
            f"note: this ledger belongs to {home} and can be charged there only. If it was moved, add --moved once",
            file=sys.stderr,
        )


def _show_schema(options: Any) -> None:
    """Show a schema, or what a table has that it does not declare."""
    from .schema import Schema

    schema = Schema.load(options.schema)
    _show(repr(schema if options.action == "show" else schema.check(_table(options, schema))))


def _table(options: Any, schema: Any) -> Any:
    """Read the columns of a table that a schema declares, with marks of missing entries, and name the others."""
    table = _read(Path(options.table))
    names = list(table) if isinstance(table, dict) else table.column_names
    declared = {*schema, schema.target_name, schema.group}
    used = [name for name in names if name in declared]
    if others := [name for name in names if name not in declared]:
        # Without declared columns, the first line of a file may be a record in place of names.
        named = f": {', '.join(map(repr, others))}" if used else f", {len(others)} columns"
        print(f"note: left out, because the schema does not declare them{named}", file=sys.stderr)
    if not isinstance(table, dict):
        if options.missing:
            raise ValueError(
                "--missing is for CSV files: a Parquet file has missing entries of its own. Nothing was charged"
            )
        return table.select(used)
    marks = [
        (column, mark) if equals else (None, column)
        for column, equals, mark in (m.partition("=") for m in options.missing)
    ]
    for column, _ in marks:
        if column is not None and column not in used:
            raise ValueError(
                f"--missing names {column!r}, which is no declared column of the table. Nothing was charged"
            )
    read = {name: {mark for column, mark in marks if column in (None, name)} for name in used}
    return {name: [None if entry in read[name] else entry for entry in table[name]] for name in used}


def _read(path: Path) -> Any:
    """Read a table. The entries of a CSV file stay text, which a schema reads by value."""
    if _is_parquet(path):
        from pyarrow import parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]

        return parquet.read_table(path)
    with _opened(path, "rt", "utf-8-sig") as lines:
        names, *rows = list(csv.reader(lines)) or [[]]
    if not names or any(len(row) != len(names) for row in rows):
        raise ValueError(f"{path} must have names of columns in its first line, and as many entries in each line")
    return {name: [row[j] for row in rows] for j, name in enumerate(names)}


def _write(path: Path, table: Any) -> None:
    columns = table if isinstance(table, dict) else table.to_pydict()
    if _is_parquet(path):
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.table(columns), path)
        return

    with _opened(path, "wt", "utf-8") as lines:
        writer = csv.writer(lines)
        writer.writerow(columns)
        writer.writerows(map(_text, row) for row in zip(*columns.values(), strict=True))


def _text(entry: Any) -> Any:
    """Return an entry of a CSV file. Missing entries are empty, and whole numbers have no fraction."""
    return entry if not isinstance(entry, float) else "" if math.isnan(entry) else f"{entry:.15g}"


def _opened(path: Path, mode: str, encoding: str) -> Any:
    opened: Any = gzip.open if path.suffix.lower() == ".gz" else open
    return opened(path, mode, newline="", encoding=encoding)


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".pq")


def _show(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # A reader such as `head` has closed the pipe. The interpreter flushes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _count(text: str) -> int:
    count = int(text)
    if count < 0:
        raise ValueError
    return count


if __name__ == "__main__":
    sys.exit(main())
