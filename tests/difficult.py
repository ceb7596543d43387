"""Tables that are difficult to learn from, by name: columns that repeat, are constant, or fill little of their bounds.

A table depends on its kind, its size and its seed alone.
"""

import numpy as np

from tests.made_up import Table


def _flipped(rng, y, share, n_classes=2):
    """Replace a share of the labels by labels at random."""
    return np.where(rng.random(len(y)) < share, rng.integers(n_classes, size=len(y)), y)


def _table(kind, rng, X, y, target=None, n_classes=2, bounds=(0.0, 1.0), bounds_y=(-1.0, 1.0)):
    if target is None:
        target = (2.0 * y / max(n_classes - 1, 1) - 1.0) * 0.6 + 0.2 * rng.standard_normal(len(y))
    return Table(kind, X, y.astype(int), np.clip(target, *bounds_y), n_classes, bounds, bounds_y)


def _duplicated(kind, n, rng):
    x = rng.random((n, 2))
    y = _flipped(rng, x @ [1.0, 0.5] > 0.75, 0.1)
    return _table(kind, rng, np.repeat(x, 6, axis=1), y)


def _near_duplicated(kind, n, rng):
    x = rng.random((n, 1))
    X = np.clip(x + 0.01 * rng.standard_normal((n, 10)), 0.0, 1.0)
    return _table(kind, rng, X, _flipped(rng, x[:, 0] > 0.5, 0.1))


def _constant(kind, n, rng):
    x = rng.random((n, 2))
    X = np.hstack([np.tile([0.0, 1.0, 0.5, 0.25], (n, 3)), x])
    return _table(kind, rng, X, _flipped(rng, x[:, 0] > x[:, 1], 0.1))


def _all_constant(kind, n, rng):
    return _table(kind, rng, np.tile([0.0, 1.0, 0.5], (n, 1)), (rng.random(n) < 0.3))


def _collinear(kind, n, rng):
    z = rng.standard_normal((n, 2))
    X = np.clip(0.5 + 0.15 * z @ rng.standard_normal((2, 12)) + 0.001 * rng.standard_normal((n, 12)), 0.0, 1.0)
    return _table(kind, rng, X, _flipped(rng, z[:, 0] + 0.3 * z[:, 1] > 0, 0.1))


def _rare_label(kind, n, rng):
    X = rng.random((n, 5))
    y = rng.random(n) < 0.1 * (X[:, 0] > 0.8)
    target = -0.9 + 1.8 * y + 0.02 * rng.standard_normal(n)
    return _table(kind, rng, X, y, target)


def _rare_kind(kind, n, rng):
    """Three hidden kinds, of which columns copy two; the label is the third."""
    hidden = rng.choice(3, size=n, p=[0.57, 0.23, 0.20])
    copies = [np.where(rng.random((n, 14)) < 0.01, 1.0, 0.0) for _ in range(2)]
    columns = [np.abs(copy - (hidden == k)[:, None]) for k, copy in enumerate(copies)]
    X = np.hstack([*columns, np.zeros((n, 12))])
    return _table(kind, rng, X, _flipped(rng, hidden == 2, 0.02))


def _many_classes(kind, n, rng):
    centres = rng.random((20, 5))
    y = rng.integers(20, size=n)
    X = np.clip(centres[y] + 0.05 * rng.standard_normal((n, 5)), 0.0, 1.0)
    return _table(kind, rng, X, y, X[:, 0] - X[:, 1], n_classes=20)


def _uneven_classes(kind, n, rng):
    share = 0.5 ** np.arange(1, 8)
    y = rng.choice(7, size=n, p=share / share.sum())
    X = np.clip(0.1 * y[:, None] + 0.1 + 0.15 * rng.standard_normal((n, 4)), 0.0, 1.0)
    return _table(kind, rng, X, y, n_classes=7)


def _heavy_tailed(kind, n, rng):
    """Lognormal columns that fill a hundredth of their bounds."""
    z = rng.standard_normal((n, 5))
    X = np.exp(0.8 * z)
    y = _flipped(rng, z[:, 0] + z[:, 1] > 0, 0.1)
    target = 2.0 * z[:, 0] + z[:, 1] + 0.5 * rng.standard_normal(n)
    return _table(kind, rng, X, y, target, bounds=(0.0, 200.0), bounds_y=(-8.0, 8.0))


def _heavy_tailed_target(kind, n, rng):
    """As above, with a target that fills little of its bounds as well."""
    z = rng.standard_normal((n, 5))
    target = np.exp(1.0 + 0.5 * z[:, 0] + 0.3 * z[:, 1])
    return _table(
        kind, rng, np.exp(z), _flipped(rng, z[:, 0] > 1.0, 0.05), target, bounds=(0.0, 500.0), bounds_y=(0.0, 200.0)
    )


def _heavy_tailed_corner(kind, n, rng):
    """Bounds around 0 that are 100 times as wide as the data, on one side of it."""
    X = 1.0 + rng.standard_normal((n, 4)) * 0.3
    linear = X @ [1.0, -1.0, 0.5, 0.0]
    y = _flipped(rng, linear > 0.5, 0.1)
    return _table(kind, rng, X, y, linear, bounds=(-100.0, 100.0), bounds_y=(-5.0, 5.0))


def _heavy_tailed_sides(kind, n, rng):
    """Heavy tails on both sides of the middle, and a target far from the middle of its bounds."""
    sizes = np.exp(rng.standard_normal((n, 10)))
    X = sizes * rng.choice([-1.0, 1.0], size=sizes.shape)
    target = sizes @ np.linspace(0.2, 0.8, 10)
    y = _flipped(rng, target > 8.0, 0.1)
    return _table(kind, rng, X, y, target, bounds=(-200.0, 200.0), bounds_y=(0.0, 60.0))


def _outside_bounds(kind, n, rng):
    X = rng.standard_normal((n, 4)) * 30.0
    return _table(kind, rng, X, _flipped(rng, X[:, 0] > 0, 0.1), X[:, 0] / 10.0)


def _one_column(kind, n, rng):
    x = rng.random((n, 1))
    return _table(kind, rng, x, _flipped(rng, x[:, 0] > 0.7, 0.1))


def _one_class(kind, n, rng):
    X = rng.random((n, 4))
    return _table(kind, rng, X, np.zeros(n, dtype=int), np.full(n, 0.7) + 0.01 * rng.standard_normal(n))


def _no_signal(kind, n, rng):
    X = rng.random((n, 6))
    return _table(kind, rng, X, rng.random(n) < 0.4, 0.3 + 0.3 * rng.standard_normal(n))


def _exclusive_or(kind, n, rng):
    X = rng.random((n, 3))
    y = _flipped(rng, (X[:, 0] > 0.5) ^ (X[:, 1] > 0.5), 0.05)
    return _table(kind, rng, X, y)


def _few_rows(kind, n, rng):
    n = n // 25
    X = rng.random((n, 8))
    return _table(kind, rng, X, _flipped(rng, X[:, 0] > 0.6, 0.1))


def _far_apart(kind, n, rng):
    """Two classes that one column tells apart without an error."""
    y = rng.integers(2, size=n)
    X = np.hstack([y[:, None] * 0.8 + 0.1 + 0.01 * rng.random((n, 1)), rng.random((n, 5))])
    return _table(kind, rng, X, y)


def _repeated(kind, n, rng):
    """One column, 30 times."""
    x = rng.random((n, 1))
    return _table(kind, rng, np.repeat(x, 30, axis=1), _flipped(rng, x[:, 0] > 0.4, 0.1))


def _noisy_labels(kind, n, rng):
    """Four labels in ten are wrong."""
    X = rng.random((n, 4))
    return _table(kind, rng, X, (X[:, 0] > 0.5) ^ (rng.random(n) < 0.4))


def _one_percent(kind, n, rng):
    X = rng.random((n, 6))
    return _table(kind, rng, X, _flipped(rng, X[:, 0] > 0.99, 0.01))


def _corners(kind, n, rng):
    """Each entry is at one of its bounds."""
    X = rng.integers(2, size=(n, 8)).astype(float)
    return _table(kind, rng, X, _flipped(rng, (X[:, 0] > 0) & (X[:, 1] > 0), 0.1))


def _small_part(kind, n, rng):
    """Records fill a hundredth of their bounds, away from the middle."""
    x = rng.random((n, 5))
    return _table(kind, rng, 0.8 + 0.01 * x, _flipped(rng, x[:, 0] + x[:, 1] > 1.2, 0.1))


def _large_class(kind, n, rng):
    """Twenty classes, one of them with a half of the rows, and columns that tell little of them."""
    y = np.where(rng.random(n) < 0.5, 0, rng.integers(1, 20, size=n))
    X = np.clip(y[:, None] / 20 + 0.3 * rng.standard_normal((n, 5)), 0.0, 1.0)
    return _table(kind, rng, X, y, n_classes=20)


def _two_of_one_class(kind, n, rng):
    X = rng.random((n, 4))
    y = np.zeros(n, dtype=int)
    y[:2] = 1
    return _table(kind, rng, X, y)


def _target_outside_bounds(kind, n, rng):
    """Most targets are outside of their bounds."""
    X = rng.random((n, 4))
    signal = 10.0 * (X[:, 0] - 0.3)
    return _table(kind, rng, X, _flipped(rng, signal > 0, 0.1), signal + rng.standard_normal(n))


def _uneven_clusters(kind, n, rng):
    """Clusters of 90, 9 and 1 rows in 100."""
    which = rng.choice(3, size=n, p=[0.9, 0.09, 0.01])
    centres = np.array([[0.2, 0.2, 0.2], [0.8, 0.2, 0.5], [0.9, 0.9, 0.9]])
    X = np.clip(centres[which] + 0.02 * rng.standard_normal((n, 3)), 0.0, 1.0)
    return _table(kind, rng, X, _flipped(rng, which > 0, 0.02))


def _rank_one(kind, n, rng):
    x = rng.random((n, 1))
    return _table(kind, rng, x * np.linspace(0.1, 1.0, 10), _flipped(rng, x[:, 0] > 0.6, 0.1))


def _equal_rows(kind, n, rng):
    """All rows are in the middle of their bounds."""
    return _table(kind, rng, np.full((n, 4), 0.5), rng.random(n) < 0.4)


_MAKERS = {
    "duplicated": _duplicated,
    "near_duplicated": _near_duplicated,
    "constant": _constant,
    "all_constant": _all_constant,
    "collinear": _collinear,
    "rare_label": _rare_label,
    "rare_kind": _rare_kind,
    "many_classes": _many_classes,
    "uneven_classes": _uneven_classes,
    "heavy_tailed": _heavy_tailed,
    "heavy_tailed_target": _heavy_tailed_target,
    "heavy_tailed_corner": _heavy_tailed_corner,
    "heavy_tailed_sides": _heavy_tailed_sides,
    "outside_bounds": _outside_bounds,
    "one_column": _one_column,
    "one_class": _one_class,
    "no_signal": _no_signal,
    "exclusive_or": _exclusive_or,
    "few_rows": _few_rows,
    "far_apart": _far_apart,
    "repeated": _repeated,
    "noisy_labels": _noisy_labels,
    "one_percent": _one_percent,
    "corners": _corners,
    "small_part": _small_part,
    "large_class": _large_class,
    "two_of_one_class": _two_of_one_class,
    "target_outside_bounds": _target_outside_bounds,
    "uneven_clusters": _uneven_clusters,
    "rank_one": _rank_one,
    "equal_rows": _equal_rows,
}

#: The kinds of tables.
KINDS = tuple(_MAKERS)


def difficult(kind, n_rows=3000, seed=0):
    """Return a table of a kind, which the size and the seed determine."""
    rng = np.random.default_rng([*kind.encode(), n_rows, seed])
    return _MAKERS[kind](kind, n_rows, rng)
