"""Effect of class weights on balanced accuracy on Adult, and loss of thinning compared with exact weights.

Run it with the directory of the data in ``SKDP_DATA``:

    python examples/benchmarks/weights.py [--splits 3] [--draws 4]

Each line is the mean test balanced accuracy over splits and draws of noise, with its standard deviation. The last lines
compare `ObjPertLogReg` without noise, whose only randomness is thinning, with scikit-learn's weighted regression of the
same C.
"""

import argparse
import math

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from skdp import DPNaiveBayes, DPRandomTree, ObjPertLogReg
from skdp.datasets import load_adult

WEIGHTS = {0: 1, 1: 3}


def coded(adult):
    """Return numbers in [0, 1] and codes of categories, and the public facts about these columns."""
    variables = [name.split("=")[0] for name in adult.feature_names]
    names = list(dict.fromkeys(variables))
    columns = [np.flatnonzero([v == name for v in variables]) for name in names]
    data = adult.data * math.sqrt(len(names))
    X = np.column_stack([data[:, c[0]] if len(c) == 1 else data[:, c].argmax(axis=1) for c in columns])
    categorical = [i for i, c in enumerate(columns) if len(c) > 1]
    sizes = [len(columns[i]) for i in categorical]
    return X, {"bounds": (0, 1), "categorical_features": categorical, "n_categories": sizes}


def main():
    """Print the figures of the user guide."""
    parser = argparse.ArgumentParser(description="Balanced accuracy on Adult with weights of labels.")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--draws", type=int, default=4)
    options = parser.parse_args()
    adult = load_adult()
    X, y = adult.data, adult.target
    codes, public = coded(adult)
    common = {"delta": 1e-5, "classes": [0, 1]}
    norm = {"data_norm": adult.data_norm}

    def show(name, rows, makes):
        scores = []
        for split in range(options.splits):
            order = np.random.default_rng(split).permutation(len(y))
            train, test = np.split(order, [round(0.8 * len(y))])
            for draw in range(options.draws):
                model = makes(random_state=100 * split + draw).fit(rows[train], y[train])
                scores.append(balanced_accuracy_score(y[test], model.predict(rows[test])))
        print(f"{name:60} {np.mean(scores):.3f} +- {np.std(scores):.3f}", flush=True)

    for weights in (None, WEIGHTS, "balanced"):
        for kind, rows, known in (
            (ObjPertLogReg, X, norm),
            (DPNaiveBayes, codes, public),
            (DPRandomTree, codes, public),
        ):
            show(
                f"{kind.__name__}, epsilon=1, class_weight={weights}",
                rows,
                lambda kind=kind, known=known, weights=weights, **seed: kind(
                    epsilon=1.0, class_weight=weights, **common, **known, **seed
                ),
            )
    exact = {label: weight / max(WEIGHTS.values()) for label, weight in WEIGHTS.items()}
    for C in (0.01, 1.0):
        show(
            f"ObjPertLogReg, epsilon=inf, C={C}, class_weight={WEIGHTS}",
            X,
            lambda C=C, **seed: ObjPertLogReg(epsilon=math.inf, C=C, class_weight=WEIGHTS, **common, **norm, **seed),
        )
        show(
            f"LogisticRegression, C={C}, exact weights",
            X,
            lambda C=C, **seed: LogisticRegression(C=C, class_weight=exact, max_iter=2000, **seed),
        )


if __name__ == "__main__":
    main()
