"""Digests of what every estimator releases, plans and predicts with a fixed seed.

Record them before a change that must not move a released value, and compare afterwards::

    python -m tests.digest record /tmp/before.json
    python -m tests.digest compare /tmp/before.json

The digests depend on the versions of NumPy, SciPy and scikit-learn, so that they are not part of the repository.
"""

import argparse
import hashlib
import json
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import is_classifier

from tests.estimators import THOROUGH, classes_up_to, data_for, declared, every_output, name_of, needs_y, released

#: At a large budget, noise hardly matters; at a small one, other branches of the post-processing are taken.
EPSILONS = (None, 1.0, float("inf"))


def _hash(*parts):
    found = hashlib.sha256()
    for part in parts:
        found.update(part if isinstance(part, bytes) else repr(part).encode())
    return found.hexdigest()[:16]


def _bytes(value):
    array = np.asarray(value)
    return array.tobytes() if array.dtype != object else repr(array.tolist()).encode()


def digest_of(estimator, epsilon, n_classes):
    """Return digests of one fit: its guarantee, its released numbers, and its outputs on fixed rows."""
    model = declared(estimator, n_classes)
    names = model.get_params()
    seeds = {name: 0 for name in ("random_state", "structure_seed") if name in names}
    model.set_params(**seeds, **({"epsilon": epsilon} if epsilon is not None and "epsilon" in names else {}))
    n_classes = classes_up_to(estimator, n_classes)
    X, y = data_for(estimator, n_classes=n_classes, n_rows=300)
    try:
        model.fit(X, y if needs_y(estimator) else None)
    except Exception as error:
        # Some variants refuse some budgets; the refusal is part of what must stay.
        return {"error": f"{type(error).__name__}: {error}"}
    outputs = every_output(model, X[:20], y[:20])
    return {
        "privacy": _hash(getattr(model, "privacy_", None)),
        "released": _hash(_bytes(released(model))),
        "outputs": {name: _hash(_bytes(value)) for name, value in outputs.items()},
    }


def digests(only=()):
    """Return the digests of all variants, or of some classes, by name, budget and number of classes."""
    found = {}
    for estimator in THOROUGH:
        if only and type(estimator).__name__ not in only:
            continue
        for epsilon in EPSILONS:
            for n_classes in (2, 3) if is_classifier(estimator) else (2,):
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    key = f"{name_of(estimator)}, epsilon={epsilon}, {n_classes} classes"
                    found.setdefault(key, []).append(digest_of(estimator, epsilon, n_classes))
    return found


def main():
    """Record digests in a file, or compare with a file."""
    parser = argparse.ArgumentParser(description="Digests of what every estimator releases with a fixed seed.")
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("classes", nargs="*", help="names of estimators; all, if there are none")
    arguments = parser.parse_args()
    now = digests(arguments.classes)
    if arguments.action == "record":
        arguments.file.write_text(json.dumps(now, indent=1))
        return 0
    before = json.loads(arguments.file.read_text())
    keys = now.keys() if arguments.classes else before.keys() | now.keys()
    changed = sorted(key for key in keys if before.get(key) != now.get(key))
    for key in changed:
        print(f"{key}\n  before: {before.get(key)}\n  now:    {now.get(key)}")
    print(f"{len(changed)} of {len(now)} have changed.")
    return bool(changed)


if __name__ == "__main__":
    sys.exit(main())
