"""Run under strace, which lets call number LAST of a system call fail, in each process, or kills the process there.

Child number k makes all but k of these calls in vain, and then charges: what fails is call number k of the charge.
"""

import contextlib
import os
import shutil
import sys
from pathlib import Path

from skdp import BudgetAccountant
from skdp.exceptions import LedgerError

LAST = 64

ACKNOWLEDGED, REFUSED, UNCLEAR = 0, 1, 2

NOT_OPEN = 9999
IN_VAIN = {
    "pwrite64": lambda: os.pwrite(NOT_OPEN, b"x", 0),
    "fdatasync": lambda: os.fdatasync(NOT_OPEN),
    "unlink": lambda: os.unlink("/nowhere/at/all"),
}


def charge(number, call, accountant):
    for _ in range(LAST - number):
        with contextlib.suppress(OSError):
            IN_VAIN[call]()
    try:
        accountant.spend(0.25, label="charged")
    except LedgerError as error:
        return REFUSED if str(accountant.ledger) in str(error) else UNCLEAR
    return ACKNOWLEDGED


def main(call, directory):
    directory = Path(directory)
    first = BudgetAccountant(1.0, ledger=directory / "first.db")
    for _ in range(2):
        first.spend(0.25, label="before")
    codes = []
    while codes[-3:] != [ACKNOWLEDGED] * 3:
        number = len(codes) + 1
        path = directory / f"{number}.db"
        shutil.copy(directory / "first.db", path)
        accountant = BudgetAccountant.from_ledger(path)
        child = os.fork()
        if child == 0:
            code = UNCLEAR
            try:
                code = charge(number, call, accountant)
            finally:
                os._exit(code)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    print(*codes)


if __name__ == "__main__":
    main(*sys.argv[1:])
