"""Rate of charges in memory and on disk, and the time to read a ledger by its length.

The script uses one process. The ledger is made in the current directory, and a durable charge waits for its disk.

    python examples/benchmarks/ledger_speed.py [number of records]
"""

import pickle
import sys
import tempfile
import time
from pathlib import Path

from skdp import BudgetAccountant
from skdp.accounting import GaussianEvent, PrivacyCost, gaussian_epsilon

MU = 1e-5
COST = PrivacyCost(gaussian_epsilon(MU, 1e-5), 1e-5, (GaussianEvent(MU),))


def seconds(action, repeats=1):
    """Return the time of one call."""
    start = time.perf_counter()
    for _ in range(repeats):
        action()
    return (time.perf_counter() - start) / repeats


def charges_a_second(accountant, number):
    """Return the rate of equal charges."""
    return 1 / seconds(lambda: accountant.charge(COST), number)


def main(longest):
    """Print two tables."""
    with tempfile.TemporaryDirectory(dir=".") as directory:
        moved = BudgetAccountant(1.0, 1e-5)
        pickle.dumps(moved)
        durable = BudgetAccountant(1.0, 1e-5, ledger=Path(directory, "durable.db"))
        print("charges a second")
        print(f"  in memory              {charges_a_second(BudgetAccountant(1.0, 1e-5), 5000):10.0f}")
        print(f"  moved, for processes   {charges_a_second(moved, 500):10.0f}")
        print(f"  durable                {charges_a_second(durable, 500):10.0f}")

        # A long ledger is made in memory and moved at once.
        print("\n   records   total()     charge   records  from_ledger   (times those of the shortest ledger)")
        first = None
        for number in [n for n in (100, 1000, 10_000, 100_000, 1_000_000) if n <= longest]:
            accountant = BudgetAccountant(1e3, 1e-5)
            for _ in range(number):
                accountant.charge(COST)
            pickle.dumps(accountant)
            path = accountant._store.move(None).path
            times = [
                seconds(accountant.total, 20),
                seconds(lambda a=accountant: a.charge(COST), 20),
                seconds(lambda a=accountant: a.records),
                seconds(lambda p=path: BudgetAccountant.from_ledger(p)),
            ]
            first = first or times
            ratios = "".join(f"{now / then:10.1f}" for now, then in zip(times, first, strict=True))
            print(f"{number:10d}{ratios}     {times[-1] / number * 1e6:.1f} us a record to open")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
