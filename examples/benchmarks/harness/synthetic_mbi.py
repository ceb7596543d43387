"""Fit a mechanism of mbi to a table of codes, and write codes of synthetic rows. It runs in an environment of its own.

    python synthetic_mbi.py CHECKOUT NAME PARAMETERS INPUT OUTPUT

The mechanisms are not part of the package on PyPI, and those of a commit need the package of this commit. CHECKOUT is
the repository of mbi.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd


def aim(data, epsilon, delta, **parameters):
    """Fit AIM to all pairs of columns with at most 10,000 cells, as its command line does."""
    from aim import AIM

    pairs = [pair for pair in itertools.combinations(data.domain, 2) if data.domain.size(pair) <= 10_000]
    return AIM(epsilon, delta, **parameters).run(data, [(pair, 1.0) for pair in pairs])[1]


def mst(data, epsilon, delta):
    from mst import MST

    return MST(data, epsilon, delta)


def main():
    checkout, name, parameters, source, target = sys.argv[1:]
    sys.path[:0] = [str(Path(checkout, folder)) for folder in ("src", "mechanisms")]
    from mbi import Dataset, Domain

    given, parameters = np.load(source), json.loads(parameters)
    names = [f"c{j}" for j in range(len(given["sizes"]))]
    data = Dataset(pd.DataFrame(given["codes"].T, columns=names), Domain(names, given["sizes"].tolist()))
    np.random.seed(int(parameters.pop("seed")))  # noqa: NPY002 (mbi draws from it)
    start = time.process_time()
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        synthetic = {"AIM": aim, "MST": mst}[name](data, **parameters)
    seconds = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    np.savez(target, codes=synthetic.df[names].to_numpy(int).T, seconds=seconds, memory=memory)


if __name__ == "__main__":
    main()
