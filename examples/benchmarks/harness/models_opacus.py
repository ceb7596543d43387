"""Linear models and networks that Opacus trains, with Poisson sampling and its PRV accountant.

Opacus has no defaults for these parameters. Learning rates, batches, steps and clipping bounds were tuned on the data
sets without a charge. Therefore these figures are optimistic. The RDP accountant would refuse epsilon 0.1 at a delta of
1e-5.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
from methods import Method
from tasks import DELTA, TASKS, TRAIN_SHARE


def settings(rate, clip, epochs, batch=None, batches=None):
    """Return the settings of a training, with the size of a batch or the number of batches in an epoch."""
    return {"rate": rate, "clip": clip, "epochs": epochs, "batch": batch, "batches": batches}


#: Settings by method and task, then by epsilon: those of 1 hold where there are none. Adult's are from a grid of 8
#: pairs of batches and epochs, rates and norms; the others are what `tune_opacus` finds.
SETTINGS = {
    ("linear", "adult"): {0.1: settings(32.0, 0.3, 10, batch=1024), 1.0: settings(8.0, 1.0, 60, batch=4096)},
    ("linear", "nursery"): {
        0.1: settings(16.0, 0.3, 30, batches=4),
        1.0: settings(16.0, 1.0, 30, batches=4),
        10.0: settings(16.0, 1.0, 60, batches=2),
    },
    ("linear", "nursery-binary"): {
        0.1: settings(16.0, 0.3, 60, batches=2),
        1.0: settings(64.0, 0.3, 60, batches=2),
        10.0: settings(64.0, 0.3, 30, batches=4),
    },
    ("linear", "digits"): {
        0.1: settings(4.0, 0.3, 60, batches=2),
        1.0: settings(4.0, 1.0, 30, batches=4),
        10.0: settings(64.0, 0.3, 60, batches=2),
    },
    ("linear", "cancer"): {
        0.1: settings(4.0, 0.3, 60, batches=2),
        1.0: settings(16.0, 0.3, 30, batches=4),
        10.0: settings(64.0, 0.3, 60, batches=2),
    },
    ("linear", "bank"): {0.1: settings(16.0, 0.3, 60, batches=2), 1.0: settings(16.0, 1.0, 60, batches=2)},
    ("linear", "compas"): {1.0: settings(16.0, 0.3, 60, batches=2)},
    ("linear", "covtype"): {
        0.1: settings(4.0, 0.3, 60, batches=2),
        1.0: settings(16.0, 1.0, 60, batches=2),
        10.0: settings(64.0, 0.3, 30, batches=4),
    },
    ("linear", "default"): {
        0.1: settings(16.0, 1.0, 30, batches=4),
        1.0: settings(16.0, 1.0, 60, batches=2),
        10.0: settings(16.0, 1.0, 30, batches=4),
    },
    ("linear", "hpc"): {
        0.1: settings(4.0, 0.3, 60, batches=2),
        1.0: settings(4.0, 1.0, 60, batches=2),
        10.0: settings(64.0, 0.3, 30, batches=4),
    },
    ("network", "adult"): {0.1: settings(0.2, 1.0, 10, batch=1024), 1.0: settings(0.8, 1.0, 10, batch=1024)},
    ("network", "nursery"): {
        0.1: settings(0.05, 1.0, 30, batches=4),
        1.0: settings(3.2, 0.3, 30, batches=4),
        10.0: settings(3.2, 1.0, 30, batches=4),
    },
    ("network", "nursery-binary"): {
        0.1: settings(0.05, 1.0, 30, batches=4),
        1.0: settings(0.8, 1.0, 30, batches=4),
        10.0: settings(3.2, 1.0, 30, batches=4),
    },
    ("network", "digits"): {
        0.1: settings(0.05, 0.3, 10, batches=8),
        1.0: settings(0.2, 0.3, 30, batches=4),
        10.0: settings(0.8, 1.0, 10, batches=8),
    },
    ("network", "cancer"): {
        0.1: settings(0.05, 1.0, 30, batches=4),
        1.0: settings(0.05, 1.0, 30, batches=4),
        10.0: settings(0.8, 0.3, 30, batches=4),
    },
}


@cache
def noise_multiplier(epsilon, delta, rate, steps):
    """Return the noise multiplier, which is kept in a file because its computation takes seconds."""
    import sys

    path = Path(sys.prefix, "noise_multipliers.json")
    known = json.loads(path.read_text()) if path.exists() else {}
    key = repr((epsilon, delta, rate, steps))
    if key not in known:
        from opacus.accountants.utils import get_noise_multiplier

        known[key] = get_noise_multiplier(
            target_epsilon=epsilon, target_delta=delta, sample_rate=rate, steps=steps, accountant="prv"
        )
        path.write_text(json.dumps(known))
    return known[key]


class Trained:
    """A classifier that Opacus trains. Its noise multiplier is computed before `fit` is timed."""

    def __init__(self, kind, n_classes, n_rows, seed, epsilon, delta, rate, epochs, clip, batch=None, batches=None):
        self.kind, self.n_classes, self.seed = kind, n_classes, seed
        self.rate, self.epochs, self.clip = rate, epochs, clip
        self.batch = -(-n_rows // batches) if batch is None else min(batch, n_rows)
        self.n_batches = -(-n_rows // self.batch)
        self.sigma = noise_multiplier(epsilon, delta, 1 / self.n_batches, epochs * self.n_batches)

    def fit(self, X, y):
        """Train the model."""
        import torch
        from opacus import PrivacyEngine

        torch.manual_seed(self.seed)
        torch.set_num_threads(1)
        n_outputs = 1 if self.n_classes == 2 else self.n_classes
        if self.kind == "linear":
            model = torch.nn.Linear(X.shape[1], n_outputs)
            torch.nn.init.zeros_(model.weight)
            torch.nn.init.zeros_(model.bias)
        else:
            layers = torch.nn.Linear(X.shape[1], 32), torch.nn.ReLU(), torch.nn.Linear(32, n_outputs)
            model = torch.nn.Sequential(*layers)
        momentum = 0.0 if self.kind == "linear" else 0.9
        optimizer = torch.optim.SGD(model.parameters(), lr=self.rate, momentum=momentum)
        rows = torch.tensor(X, dtype=torch.float32)
        if n_outputs == 1:
            target, loss = torch.tensor(y[:, None], dtype=torch.float32), torch.nn.BCEWithLogitsLoss()
        else:
            target, loss = torch.tensor(y), torch.nn.CrossEntropyLoss()

        class Batches(torch.utils.data.Dataset):
            """Rows that are read in batches, which is faster than single rows."""

            def __len__(self):
                return len(rows)

            def __getitem__(self, i):
                return rows[i], target[i]

            def __getitems__(self, numbers):
                chosen = torch.as_tensor(numbers)
                return rows[chosen], target[chosen]

        def collate(batch):
            """Return a batch unchanged. An empty batch is a list."""
            return batch if isinstance(batch, tuple) else tuple(torch.stack(part) for part in zip(*batch, strict=True))

        loader = torch.utils.data.DataLoader(Batches(), batch_size=self.batch, collate_fn=collate)
        private, optimizer, loader = PrivacyEngine(accountant="prv").make_private(
            module=model,
            optimizer=optimizer,
            data_loader=loader,
            noise_multiplier=self.sigma,
            max_grad_norm=self.clip,
            poisson_sampling=True,
        )
        for _ in range(self.epochs):
            for some_rows, some_target in loader:
                optimizer.zero_grad()
                loss(private(some_rows), some_target).backward()
                optimizer.step()
        self.model_ = private
        self.classes_ = np.arange(self.n_classes)
        return self

    def predict_proba(self, X):
        """Return probabilities of labels."""
        import torch

        with torch.no_grad():
            scores = self.model_(torch.tensor(X, dtype=torch.float32)).double()
        if self.n_classes == 2:
            positive = torch.sigmoid(scores).numpy().ravel()
            return np.column_stack([1 - positive, positive])
        return torch.softmax(scores, dim=1).numpy()

    def predict(self, X):
        """Return labels."""
        return self.predict_proba(X).argmax(axis=1)


def build(kind):
    def make(task, epsilon, delta, seed):
        data, _ = task.load()
        if (kind, task.name) not in SETTINGS:
            raise ValueError(f"tune_opacus has not been run for {task.name}")
        known = SETTINGS[kind, task.name]
        n_rows = round(TRAIN_SHARE * len(data.unit))
        return Trained(kind, task.n_classes, n_rows, seed, epsilon, delta, **known.get(epsilon, known[1.0]))

    return make


METHODS = [
    Method(
        "opacus",
        f"{kind} (tuned)",
        family,
        tuple(task for k, task in SETTINGS if k == kind and task in TASKS),
        view,
        build(kind),
        (DELTA,),
        splits=splits,
        tables=("classification",) if kind == "linear" else (),
    )
    for kind, family, view, splits in (("linear", "logistic regression", "norm", 5), ("network", "network", "unit", 3))
]
