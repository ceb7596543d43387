"""Command line: ``python -m skdp ledger budget.db`` shows what was spent, and what remains."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from . import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return 0, or 1 if the ledger cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m skdp", description="Differentially private estimators.")
    parser.add_argument("--version", action="version", version=f"skdp {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    ledger = commands.add_parser(
        "ledger",
        help="show a budget's ledger",
        description="Verify a ledger and print its ceiling, what was spent, what remains, and every charge.",
    )
    ledger.add_argument("path", help="the file that BudgetAccountant(..., ledger=path) keeps")
    ledger.add_argument("--last", type=_count, metavar="N", help="only the newest N charges")
    ledger.add_argument(
        "--moved",
        action="store_true",
        help="the file was renamed or moved, and is no longer used by its old name: charge it by this one from now on",
    )
    ledger.add_argument("--json", action="store_true", help="print everything as JSON, events and releases included")
    options = parser.parse_args(arguments)

    from .accounting import BudgetAccountant
    from .exceptions import LedgerError

    try:
        accountant = BudgetAccountant.from_ledger(options.path, moved=options.moved)
        shown = accountant.to_json(options.last) if options.json else accountant.to_text(options.last)
        home = accountant._elsewhere()
    except LedgerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    try:
        print(shown, flush=True)
    except BrokenPipeError:
        # A reader such as `head` has seen enough. The interpreter flushes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if home is not None:
        print(
            f"note: this ledger belongs to {home} and can be charged there only. If it was moved, add --moved once",
            file=sys.stderr,
        )
    return 0


def _count(text: str) -> int:
    count = int(text)
    if count < 0:
        raise ValueError
    return count


if __name__ == "__main__":
    sys.exit(main())
