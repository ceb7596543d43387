"""Run under strace, which lets call number LAST of a system call fail, in each process, or kills the process there.

Child number k makes all but k of these calls in vain, and then charges: what fails is call number k of the charge.
"""

import contextlib
import os
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


def fork(work):
    """Return the exit code of a child; what it calls does not count for this process."""
    child = os.fork()
    if child == 0:
        code = UNCLEAR
        try:
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def make(path):
    accountant = BudgetAccountant(1.0, ledger=path)
    for _ in range(2):
        accountant.spend(0.25, label="before")
    return ACKNOWLEDGED


def main(call, directory):
    codes = []
    while codes[-3:] != [ACKNOWLEDGED] * 3:
        number = len(codes) + 1
        path = Path(directory, f"{number}.db")
        made = fork(lambda path=path: make(path))
        if made != ACKNOWLEDGED:
            sys.exit(f"the ledger could not be made: {made}")
        codes.append(fork(lambda path=path, number=number: charge(number, call, BudgetAccountant.from_ledger(path))))
    print(*codes)


if __name__ == "__main__":
    main(*sys.argv[1:])
