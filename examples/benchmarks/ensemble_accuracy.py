"""Accuracy of PATE and of models trained with private gradients, and the errors of sample and aggregate.

    python examples/benchmarks/ensemble_accuracy.py {digits,adult,blocks} [n_splits]

digits: scikit-learn's 1797 digits; 50 % private, 30 % public without labels, 20 % for the test.

adult: Adult, from `skdp.datasets.load_adult`; 70 % private, 5000 public, 20 % for the test.

blocks: linear regression on simulated data; errors from the noise and total errors, by the number of blocks.
"""

import sys
import time
import warnings

import numpy as np
from sklearn.datasets import load_digits, make_regression
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skdp import DPMLPClassifier, DPSGDClassifier, PATEClassifier, SampleAggregate
from skdp.accounting import gaussian_mu
from skdp.datasets import load_adult

EPSILONS = (1.0, 3.0, 8.0)
DELTA = 1e-5


def rows(name, X, y, n_public, n_splits, teachers):
    """Print the mean test accuracy by model and epsilon."""
    classes = np.unique(y)
    norm = float(np.sqrt(X.shape[1])) if name == "digits" else float(np.sqrt(13))
    print(f"{'':44s}" + "".join(f"{f'epsilon={e:g}':>13s}" for e in EPSILONS))
    models = {"DPSGDClassifier": None, "DPMLPClassifier": None}
    for label, (teacher, parameters) in teachers.items():
        models[f"PATE, {label}"] = (teacher, parameters)
    for label, pate in models.items():
        found = []
        start = time.time()
        for epsilon in EPSILONS:
            scores = []
            for split in range(n_splits):
                order = np.random.default_rng(split).permutation(len(X))
                n_test = len(X) // 5
                test, public, private = np.split(order, [n_test, n_test + n_public])
                common = {"epsilon": epsilon, "delta": DELTA, "classes": classes}
                if label == "DPSGDClassifier":
                    model = DPSGDClassifier(data_norm=norm, **common)
                elif label == "DPMLPClassifier":
                    model = DPMLPClassifier(data_norm=norm, **common)
                else:
                    common |= {"public_X": X[public], "expected_n": len(private)}
                    model = PATEClassifier(pate[0], **{**common, **pate[1]})
                scores.append(model.fit(X[private], y[private]).score(X[test], y[test]))
            found.append(f"{np.mean(scores):.3f}")
        fits = len(EPSILONS) * n_splits
        print(
            f"{label:44s}" + "".join(f"{f:>13s}" for f in found) + f"{(time.time() - start) / fits:9.1f} s", flush=True
        )


def digits(n_splits):
    X, y = load_digits(return_X_y=True)
    rows(
        "digits",
        X / 16,
        y,
        540,
        n_splits,
        {
            "forests": (RandomForestClassifier(30), {}),
            "forests, student on winners": (RandomForestClassifier(30), {"student": LogisticRegression(C=0.1)}),
            "forests, threshold 0.3": (RandomForestClassifier(30), {"threshold": 0.3}),
            "forests, delta 0": (RandomForestClassifier(30), {"delta": 0.0}),
            "logistic regressions": (LogisticRegression(max_iter=50), {}),
        },
    )


def adult(n_splits):
    data = load_adult()
    X, y = data.data, data.target
    rows(
        "adult",
        np.asarray(X, dtype=float),
        np.asarray(y),
        5000,
        n_splits,
        {
            "trees": (DecisionTreeClassifier(), {}),
            "trees, student on winners": (
                DecisionTreeClassifier(),
                {"student": make_pipeline(StandardScaler(), LogisticRegression(C=0.01))},
            ),
            "trees, threshold 0.6": (DecisionTreeClassifier(), {"threshold": 0.6}),
            "trees, delta 0": (DecisionTreeClassifier(), {"delta": 0.0}),
        },
    )


def blocks(n_splits):
    """Print root mean square errors of coefficients of 5 features from 50000 records, bounded by [-2, 2]."""
    n, d, runs = 50_000, 5, 10 * n_splits
    X, y, truth = make_regression(n, d, noise=1.0, coef=True, random_state=0)
    y, truth = y / 100, truth / 100
    print(f"{'blocks':>8s}{'stated':>10s}{'noise':>10s}{'blocks':>10s}{'mean':>10s}{'median':>10s}")
    found = []
    for q in (10, 30, 100, 300, 1000):
        parameters = {"bounds": (-2, 2), "n_blocks": q, "delta": DELTA}
        plain = SampleAggregate(LinearRegression(), epsilon=np.inf, bounds=(-2, 2), n_blocks=q)
        own = plain.fit(X, y).result_[:d] - truth
        # The noise does not depend on the data: a function that returns the middle has nothing else.
        noise = [
            SampleAggregate(lambda X: np.zeros(d + 1), epsilon=1.0, **parameters).fit(X[:1]).result_
            for _ in range(runs)
        ]
        errors = [
            np.sqrt(
                np.mean(
                    [
                        (
                            SampleAggregate(LinearRegression(), epsilon=1.0, aggregator=a, **parameters)
                            .fit(X, y)
                            .result_[:d]
                            - truth
                        )
                        ** 2
                        for _ in range(2)
                    ]
                )
            )
            for a in ("mean", "median")
        ]
        stated = 2 * 2 * np.sqrt(d + 1) / gaussian_mu(1.0, DELTA) / q
        spread = float(np.sqrt(np.mean(np.square(noise))))
        found.append((q, spread))
        print(f"{q:8d}{stated:10.5f}{spread:10.5f}{np.sqrt(np.mean(own**2)):10.5f}{errors[0]:10.5f}{errors[1]:10.5f}")
    # Where the bounds do not cut the noise off.
    logs = np.log([row for row in found if row[0] >= 100])
    print(f"exponent of the noise: {np.polyfit(*logs.T, 1)[0]:.3f}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    what = sys.argv[1] if len(sys.argv) > 1 else "digits"
    {"digits": digits, "adult": adult, "blocks": blocks}[what](int(sys.argv[2]) if len(sys.argv) > 2 else 3)
