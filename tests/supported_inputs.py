"""Print the table of supported inputs: `python -m tests.supported_inputs > docs/user_guide/supported_inputs.inc`.

The cells are read off the signatures and the tags of the estimators, whose other tests try each of them.
"""

import inspect

from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import get_tags

from tests.estimators import ONE_EACH, data_for, declared, is_search, needs_y
from tests.schema.test_estimators import KINDS

HEADINGS = {
    "estimator": 30,
    "schema": 8,
    "sparse": 8,
    "classes or targets": 10,
    "weights": 8,
    "groups": 8,
    "delta=0": 8,
    "Dask": 8,
}


def sparse_rows(estimator):
    """How sparse rows are handled: as they are stored, or as an array."""
    if not get_tags(estimator).input_tags.sparse:
        return "no"
    return "stored" if estimator._takes_sparse else "dense"


def takes(estimator, argument):
    return argument in inspect.signature(estimator.fit).parameters


def without_delta(estimator):
    """Whether a fit may have a delta of 0."""
    X, y = data_for(estimator)
    try:
        clone(declared(estimator)).set_params(delta=0.0).fit(*((X, y) if needs_y(estimator) else (X,)))
    except ValueError as error:
        # Another argument may be at fault, or delta itself.
        if "delta" not in str(error):
            raise
        return False
    return True


def rows():
    """One row of the table for each class."""
    for estimator in sorted(ONE_EACH, key=lambda e: type(e).__name__):
        tags = get_tags(estimator)
        kind = type(estimator)
        classes = "any classes" if is_classifier(estimator) else "—"
        if is_classifier(estimator) and not tags.classifier_tags.multi_class:
            classes = "2 classes"
        if is_regressor(estimator):
            several = tags.target_tags.multi_output or not tags.target_tags.single_output
            classes = "several targets" if several else "one target"
        yield [
            f":class:`~{kind.__module__.rpartition('._')[0]}.{kind.__name__}`",
            "yes" if kind.__name__ in KINDS or is_search(estimator) else "no",
            sparse_rows(estimator),
            classes,
            "yes" if takes(estimator, "sample_weight") else "no",
            "yes" if takes(estimator, "groups") else "no",
            "yes" if "delta" not in estimator.get_params() or without_delta(estimator) else "no",
            "yes" if getattr(estimator, "_takes_parts", False) else "no",
        ]


def table():
    """The table as a `list-table` of reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {' '.join(map(str, HEADINGS.values()))}", ""]
    for row in ([f"``{h}``" if "_" in h or "=" in h else h for h in HEADINGS], *rows()):
        lines += [f"   {'* -' if number == 0 else '  -'} {cell}" for number, cell in enumerate(row)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
