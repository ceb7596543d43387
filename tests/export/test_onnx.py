"""ONNX models say in onnxruntime what the models of this library say."""

import csv
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from skdp import DPAdditiveClassifier, HistogramClassifier, Number, Schema
from skdp.export import to_onnx, to_sklearn
from tests.export.models import EVERY, case
from tests.export.test_twins import agree

onnx = pytest.importorskip("onnx", reason="onnx is not installed; `make test-onnx` has it")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed; `make test-onnx` has it")


def session_of(model):
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    return runtime.InferenceSession(to_onnx(model).SerializeToString(), options, providers=["CPUExecutionProvider"])


def answers(session, rows):
    """Return the outputs of a session by name."""
    feeds = {}
    for given in session.get_inputs():
        if given.name == "X":
            feeds["X"] = np.asarray(rows, dtype=np.float64)
        elif given.type == "tensor(string)":
            feeds[given.name] = np.array([["" if v is None else str(v)] for v in rows[given.name]], dtype=object)
        else:
            assert given.type == "tensor(double)"
            feeds[given.name] = np.asarray(rows[given.name], dtype=np.float64)[:, None]
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, feeds), strict=True))


@pytest.mark.parametrize("name", EVERY)
def test_onnxruntime_says_what_the_model_says(name):
    model, rows = case(name)
    found = answers(session_of(model), rows)
    with np.errstate(all="ignore"):
        if hasattr(model, "predict"):
            labels = "label" in found
            expected = model.predict(rows)
            got = found["label"] if labels else found["variable"].reshape(np.shape(expected))
            assert agree(expected, got, 0.0 if labels else 1e-9)
        if hasattr(model, "predict_proba"):
            assert np.abs(model.predict_proba(rows) - found["probabilities"]).max() < 1e-9
        if hasattr(model, "transform"):
            assert agree(model.transform(rows), found.get("variable", found.get("scores")), 1e-9)


def test_inputs_and_outputs_are_those_of_the_documentation():
    session = session_of(case("schema-DPAdditiveClassifier")[0])
    types = {given.name: given.type for given in session.get_inputs()}
    assert types == {
        "age": "tensor(double)",
        "gain": "tensor(double)",
        "degree": "tensor(string)",
        "work": "tensor(string)",
    }
    assert [output.name for output in session.get_outputs()] == ["label", "probabilities"]


def test_numbers_next_to_a_cut_are_on_their_side():
    """Single precision would move them."""
    model, rows = case("DPNaiveBayes-two")
    cuts = model.bin_edges_[0][1:-1]
    rows = np.tile(rows[0], (3 * len(cuts), 1))
    rows[:, 0] = np.concatenate([cuts, np.nextafter(cuts, -np.inf), np.nextafter(cuts, np.inf)])
    found = answers(session_of(model), rows)
    assert np.abs(model.predict_proba(rows) - found["probabilities"]).max() < 1e-12
    assert len(np.unique(found["probabilities"].round(9), axis=0)) > len(cuts) / 2


WITHOUT_SKDP = """
import csv, sys
sys.modules["skdp"] = None
try:
    import skdp
except ImportError:
    pass
else:
    raise AssertionError("skdp was imported")
import numpy as np, onnxruntime
session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
rows = list(csv.DictReader(open("new.csv", encoding="utf-8")))
feeds = {}
for given in session.get_inputs():
    entries = [row[given.name] for row in rows]
    if given.type == "tensor(string)":
        feeds[given.name] = np.array(entries, dtype=object)[:, None]
    else:
        feeds[given.name] = np.array([float(entry or "nan") for entry in entries])[:, None]
labels, probabilities = session.run(None, feeds)
with open("answers.csv", "w", encoding="utf-8", newline="") as file:
    csv.writer(file).writerows([label, *map(repr, p)] for label, p in zip(labels, probabilities.tolist()))
"""


def test_a_model_of_a_csv_file_answers_where_skdp_is_not_installed(tmp_path):
    rng = np.random.default_rng(0)
    n = 3000
    age, town = rng.integers(18, 91, n).astype(object), rng.choice(["Ulm", "Köln", "Bonn, north"], n).astype(object)
    repaid = np.where(rng.random(n) < 0.3 + 0.4 * (age > 50) * (town == "Ulm"), "yes", "no")
    age[rng.random(n) < 0.1] = ""
    town[rng.random(n) < 0.1] = ""
    town[::17] = "Rom"
    with open(tmp_path / "loans.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("age", "town", "repaid"), *zip(age, town, repaid, strict=True)])
    table = pd.read_csv(tmp_path / "loans.csv")
    schema = Schema({"age": Number(18, 90, step=1), "town": ["Ulm", "Köln", "Bonn, north"]}, {"repaid": ["no", "yes"]})
    model = DPAdditiveClassifier(schema=schema, epsilon=5.0, delta=1e-6).fit(table)
    (tmp_path / "model.onnx").write_bytes(to_onnx(model).SerializeToString())
    table[:500].drop(columns="repaid").to_csv(tmp_path / "new.csv", index=False)
    subprocess.run([sys.executable, "-c", WITHOUT_SKDP], check=True, cwd=tmp_path)
    found = pd.read_csv(tmp_path / "answers.csv", header=None)
    assert found[0].tolist() == model.predict(table[:500]).tolist()
    assert np.abs(found[[1, 2]].to_numpy() - model.predict_proba(table[:500])).max() < 1e-9


def test_other_models_inside_are_refused():
    X, y = np.linspace(0, 1, 200)[:, None], np.arange(200) % 2
    model = HistogramClassifier(DecisionTreeClassifier(max_depth=2), bounds=(0, 1), classes=[0, 1]).fit(X, y)
    assert agree(model.predict(X), to_sklearn(model).predict(X), 0.0)
    with pytest.raises(TypeError, match=r"DecisionTreeClassifier.*skl2onnx"):
        to_onnx(model)


def test_the_graph_is_of_standard_operators():
    model = to_onnx(case("schema-DPAdditiveClassifier")[0])
    assert {node.domain for node in model.graph.node} <= {"", "ai.onnx.ml"}
    onnx.checker.check_model(model, full_check=True)
