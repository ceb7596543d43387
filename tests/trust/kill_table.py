"""Print the table of mutants and estimators in docs/user_guide: `python -m tests.trust.kill_table > ...kill_table.inc`.

A cell counts pairs of a mutant and a claim: those at which some reading objects, of those that were tried.
"""

import sys
from collections import Counter

from joblib import Parallel, delayed

from tests.trust.table import SUBJECTS

# Kinds of mutants, by what their names hold; the first that fits.
KINDS = {
    "too little noise": (
        "half the noise",
        "fifth of the noise",
        "quarter of the noise",
        "noise of one",
        "loaded",
        "half the scale",
        "of half",
        "noise for all",
    ),
    "no charge": ("no charge",),
    "no clipping": (
        *("clip", "scaled down", "scaling down", "all rows count", "one row more", "bare label"),
        "from the data",
    ),
    "true counts": ("true", "over the batch", "public", "by position", "in order", "each batch", "fixed"),
    "budget not divided": (
        *("divided", "whole", "steps forgotten", "not paid", "are charged", "run paid", "one column", "one cut"),
        *("queries", "share", "all columns", "besides", "records that train"),
    ),
    "wrong constant": (
        *("half of", "half the sens", "forgotten", "radius", "gradient", "any weight", "certificate", "threshold"),
        *("one tree", "one table", "one moment", "one row", "each row", "squares", "only rise", "in all"),
        "two categories",
    ),
}
OTHER = "other"


def kind_of(name):
    return next((kind for kind, parts in KINDS.items() if any(part in name for part in parts)), OTHER)


def row_of(place):
    """Return a subject's name, counts by kind, and what survives, which is not tried."""
    subject = SUBJECTS[place]
    killed, tried, left = Counter(), Counter(), []
    for name, (breakage, broken) in subject.all_mutants().items():
        for claim in subject.claims:
            seen = False
            if name not in subject.survives and (name, claim) not in subject.survives:
                with breakage():
                    seen = broken.is_violated(*claim)
            tried[kind_of(name)] += 1
            killed[kind_of(name)] += seen
            if not seen:
                left.append((name, claim))
    return subject.name, killed, tried, left


def main(out=sys.stdout, n_jobs=2):
    rows = Parallel(n_jobs=n_jobs)(delayed(row_of)(place) for place in range(len(SUBJECTS)))
    kinds = [*KINDS, OTHER]
    print(".. list-table:: Mutants that are killed, of those tried\n   :header-rows: 1\n", file=out)
    table = [["audited", *kinds]]
    table += [
        [name, *(f"{killed[kind]}/{tried[kind]}" if tried[kind] else "" for kind in kinds)]
        for name, killed, tried, _ in rows
    ]
    whole = [sum((row[k] for row in rows), Counter()) for k in (1, 2)]
    table.append(["together", *(f"{whole[0][kind]}/{whole[1][kind]}" for kind in kinds)])
    for row in table:
        print("   * - " + "\n     - ".join(row), file=out)
    print("\nNot seen:\n", file=out)
    for subject, (name, _, _, left) in zip(SUBJECTS, rows, strict=True):
        for mutant in dict.fromkeys(mutant for mutant, _ in left):
            claims = ", ".join(f"({epsilon:g}, {delta:g})" for m, (epsilon, delta) in left if m == mutant)
            reasons = {subject.survives.get(mutant)} | {subject.survives.get(one) for one in left if one[0] == mutant}
            reason = "; ".join(sorted(reasons - {None})) or "NO REASON GIVEN"
            print(f"- {name}, *{mutant}*, at {claims}: {reason}.", file=out)


if __name__ == "__main__":
    main()
