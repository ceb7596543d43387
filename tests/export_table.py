"""Print the table of exports: `python -m tests.export_table > docs/user_guide/export_table.inc`, with onnx and mlflow.

Each cell is tried with a fitted model. Tests compare what these models say.
"""

import os
import pickle
import re
import tempfile
import warnings
from importlib.util import find_spec
from io import BytesIO

import joblib

import skdp
from skdp.export import to_onnx, to_sklearn
from tests.estimators import FREE, LOCAL, ONE_EACH, TABLES, data_for, declared, needs_y
from tests.export.models import of_pipeline, of_table

HEADINGS = ("scikit-learn twin", "ONNX", "pickle, joblib", "skops", "MLflow", "JSON")
_TRUSTED = [*skdp.TRUSTED_TYPES, "tests.ensemble.data.PublicRows"]

#: Packages that a column needs.
NEEDS = {"ONNX": "onnx", "skops": "skops", "MLflow": "mlflow"}


def of_pickle(model):
    copy = BytesIO()
    joblib.dump(pickle.loads(pickle.dumps(model)), copy)
    copy.seek(0)
    assert type(joblib.load(copy)) is type(model)


def of_skops(model):
    import skops.io

    assert type(skops.io.loads(skops.io.dumps(model), trusted=_TRUSTED)) is type(model)


def of_mlflow(model):
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    import mlflow.sklearn

    with tempfile.TemporaryDirectory() as folder:
        # Without requirements, MLflow starts a process that looks for them.
        settings = {"pip_requirements": [], "serialization_format": "skops", "skops_trusted_types": _TRUSTED}
        mlflow.sklearn.save_model(model, f"{folder}/model", **settings)
        assert type(mlflow.sklearn.load_model(f"{folder}/model")) is type(model)


EXPORTS = dict(zip(HEADINGS, (to_sklearn, to_onnx, of_pickle, of_skops, of_mlflow), strict=False))


def models():
    """Return a fitted model of each class, by name."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for estimator in (*ONE_EACH, *FREE, *LOCAL):
            X, y = data_for(estimator)
            found.setdefault(
                type(estimator).__name__, declared(estimator).fit(*((X, y) if needs_y(estimator) else (X,)))
            )
        found["TableEncoder"], _ = of_table(TABLES[0])
        found["PrivatePipeline"], _ = of_pipeline("schema")
    return dict(sorted(found.items()))


def rows():
    """Yield the cells of each class by heading: "yes" or "no", or None where a package is missing."""
    for name, model in models().items():
        cells = {}
        for heading, export in EXPORTS.items():
            if find_spec(NEEDS.get(heading, "skdp")) is None:
                cells[heading] = None
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    export(model)
                cells[heading] = "yes"
            except TypeError as error:
                if not re.search("no twin|no ONNX form", str(error)):
                    raise
                cells[heading] = "no"
        cells["JSON"] = "yes" if hasattr(model, "to_json") else "no"
        yield f":class:`~{type(model).__module__.rpartition('._')[0]}.{name}`", cells


def table():
    """The table as a `list-table` of reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 30 12 8 12 8 8 8", ""]
    for row in [("estimator", *HEADINGS), *([name, *cells.values()] for name, cells in rows())]:
        lines += [f"   {'* -' if k == 0 else '  -'} {cell}" for k, cell in enumerate(row)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
