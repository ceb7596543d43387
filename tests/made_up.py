"""Made-up tables that estimators were not tuned on: what is odd about each, and all that is publicly known of it."""

from dataclasses import dataclass

import numpy as np

#: What may be odd about a table. The tables take turns.
KINDS = ("duplicated", "constant", "collinear", "rare label", "many classes", "few rows", "heavy tails", "plain")


@dataclass(frozen=True, eq=False)
class Table:
    """A table for classification (`y`) and for regression (`target`), with its public facts."""

    kind: str
    X: np.ndarray
    y: np.ndarray
    target: np.ndarray
    n_classes: int
    bounds: tuple
    target_bounds: tuple

    def halves(self):
        """Return the rows for training and for testing, and the labels of both."""
        half = len(self.y) // 2
        return self.X[:half], self.X[half:], self.y[:half], self.y[half:]


def made_up(number, most_rows=6000):
    """Make table `number`, the same one each time. Rows are in no order; a half of them is for testing."""
    rng = np.random.default_rng([20, number])
    kind = KINDS[number % len(KINDS)]
    n_rows = int(rng.integers(60, 400)) if kind == "few rows" else int(rng.integers(1000, most_rows))
    n_classes = int(rng.integers(8, 21)) if kind == "many classes" else int(rng.choice([2, 2, 3, 5]))
    n_columns = int(rng.integers(2, 25))
    lower, upper = -3.0, 3.0

    causes = rng.normal(size=(n_rows, int(rng.integers(1, 4))))
    if rng.random() < 0.5:
        # Groups instead of numbers on a line.
        causes = np.sign(causes) + rng.choice([0.0, 0.2]) * causes
    if kind == "duplicated":
        # Copies of few columns, with noise in some rows or none, and often in two values only.
        noise = float(rng.choice([0.0, 0.01, 0.1]))
        n_columns = int(rng.integers(5, 41))
        X = causes[:, rng.integers(causes.shape[1], size=n_columns)]
        X = X if rng.random() < 0.3 else np.sign(X)
        X = np.where(rng.random(X.shape) < noise, rng.uniform(-1, 1, size=X.shape), X)
    else:
        mixing = rng.normal(size=(causes.shape[1], n_columns))
        X = causes @ mixing / np.sqrt(causes.shape[1]) + float(rng.choice([0.1, 1.0])) * rng.normal(
            size=(n_rows, n_columns)
        )
    if kind == "constant":
        X = np.hstack([X, np.full((n_rows, int(rng.integers(1, 21))), rng.choice([lower, 0.0, upper]))])
    elif kind == "collinear":
        X = np.hstack([X, X @ rng.normal(size=(X.shape[1], int(rng.integers(1, 11)))) / np.sqrt(X.shape[1])])
    elif kind == "heavy tails":
        # The records fill a small part of their bounds.
        X = np.sign(X) * np.abs(X) ** 3 * np.exp(rng.normal(size=X.shape))
        lower, upper = -300.0, 300.0

    signal = causes @ rng.normal(size=causes.shape[1])
    signal = (signal - signal.mean()) / max(float(signal.std()), 1e-12)
    target = signal + float(rng.choice([0.05, 0.3, 1.0])) * rng.normal(size=n_rows)
    shares = rng.dirichlet(np.full(n_classes, float(rng.choice([1.0, 10.0]))))
    if kind == "rare label":
        shares = np.r_[1 - 0.02 * (n_classes - 1), np.full(n_classes - 1, 0.02)]
    y = np.searchsorted(np.quantile(target, np.cumsum(shares)[:-1]), target)
    # Classes are in no order.
    y = rng.permutation(n_classes)[y]
    return Table(kind, X, y, np.clip(target, -4, 4), n_classes, (lower, upper), (-4.0, 4.0))


def copies_of_one_column(n_rows=6000, n_columns=10, seed=0):
    """Columns that are one column, but for 1 % of their entries; two classes that follow it."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(2, size=n_rows)
    X = np.where(rng.random((n_rows, n_columns)) < 0.01, 1 - kind[:, None], kind[:, None]).astype(float)
    y = np.where(rng.random(n_rows) < 0.05, 1 - kind, kind)
    return Table("duplicated", X, y, 2.0 * y - 1, 2, (0.0, 1.0), (-1.0, 1.0))


def three_hidden_kinds(n_rows=45_000, seed=0):
    """Fourteen noisy copies of each of two indicators and twelve constants; the label is the third kind."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, size=n_rows, p=[0.57, 0.23, 0.2])
    told = np.repeat(np.stack([kind == 0, kind == 1], axis=1), 14, axis=1)
    X = np.hstack([told ^ (rng.random(told.shape) < 0.01), np.zeros((n_rows, 12))]).astype(float)
    y = ((kind == 2) ^ (rng.random(n_rows) < 0.01)).astype(int)
    return Table("duplicated", X, y, 2.0 * y - 1, 2, (0.0, 1.0), (-1.0, 1.0))
