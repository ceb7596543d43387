"""Print which mutants are killed, at which claims: `python -m tests.trust.kill_table`, a reStructuredText table.

A cell says by what: m, measured (or by a reading of its own), r, runs of skdp.audit, or both; a dash: none does; empty:
the claim is not audited.
"""

import sys

from tests.trust.subjects import run
from tests.trust.table import SUBJECTS


def cell(subject, name, claim):
    """Return by which readings the mutant is seen."""
    breakage, broken = subject.all_mutants()[name]
    if claim not in broken.claims:
        return ""
    found = ""
    with breakage():
        if broken.reading is not None and broken.reading(broken, *claim).violated:
            found += "m"
        if claim in broken.runs and run(broken, *claim).violated:
            found += "r"
    return found or "-"


def main(subjects=SUBJECTS, out=sys.stdout):
    claims = sorted({claim for subject in subjects for claim in subject.claims}, key=lambda claim: (claim[1], claim[0]))
    head = [f":math:`({epsilon:g}, {delta:g})`" for epsilon, delta in claims]
    print(".. list-table::\n   :header-rows: 1\n", file=out)
    rows = [["audited", "broken by", *head]]
    for subject in subjects:
        for name in subject.all_mutants():
            rows.append([subject.name, name, *(cell(subject, name, claim) for claim in claims)])
    for row in rows:
        print("   * - " + "\n     - ".join(row), file=out, flush=True)


if __name__ == "__main__":
    main()
