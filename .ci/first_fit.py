"""What a user does first with an installed skdp: fit, predict, read the guarantee, write a ledger."""

import sys
import tempfile
from pathlib import Path

import numpy as np

import skdp

root = Path(skdp.__file__).resolve().parent
assert Path(sys.prefix).resolve() in root.parents, f"skdp is imported from {root}, not from the environment"
assert (root / "py.typed").exists(), "the wheel lacks py.typed"

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(2_000, 3))
y = (X[:, 0] > 0).astype(int)
with tempfile.TemporaryDirectory() as folder:
    budget = skdp.BudgetAccountant(2.0, 1e-6, ledger=str(Path(folder) / "budget.db"))
    model = skdp.ObjPertLogReg(epsilon=1.0, delta=1e-6, data_norm=np.sqrt(3), classes=[0, 1], accountant=budget)
    accuracy = model.fit(X, y).score(X, y)
    assert accuracy > 0.8, accuracy
    assert len(budget.records) == 1, budget.records
    sampled = skdp.DPSGDClassifier(epsilon=0.5, delta=1e-6, data_norm=np.sqrt(3), classes=[0, 1], accountant=budget)
    sampled.fit(X, y)
print(f"skdp {skdp.__version__} fits, and its ledger holds two charges")
