"""
Principal components of handwritten digits
==========================================

The principal components of pictures are pictures, so that the effect of privacy on them is visible. This example fits
five components of digits at several epsilons, with two mechanisms. ``DPPCA`` adds Gaussian noise to the matrix of
second moments, and needs a delta. ``ExpMechPCA`` draws one direction after the other, and needs no delta.
"""

# %%
# Digits and their bounds
# -----------------------
# The 1,797 pictures of scikit-learn have 64 pixels between 0 and 16, by the documentation. They are divided by 16. A
# public grey of 0.3 is subtracted in place of the mean. Then each pixel is at most 0.7, and the norm of a row at most
# 5.6. ``data_norm=4`` is smaller, and a row with a larger norm would be scaled down.

import math

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from skdp import DPPCA, ExpMechPCA

K = 5
X = load_digits().data / 16
GREY = np.full(64, 0.3)

# %%
# Five components
# ---------------
# Each row of pictures is one fit. The number at its left compares the five components with the best five: it is the
# explained sum of squares, as a part of the largest possible sum. The number is computed from the records and is
# therefore not private. This is allowed because the digits are public. The seeds only make the figure reproducible.


def fit(model, epsilon, delta):
    """Fit five components."""
    return model(
        K,
        epsilon=epsilon,
        delta=delta,
        data_norm=4.0,
        center=GREY,
        random_state=0,
    ).fit(X)


exact = fit(DPPCA, math.inf, 0.0).components_


def explained(components):
    """Return the sum of squares along directions, as a part of the best."""
    return np.sum(((X - GREY) @ components.T) ** 2) / np.sum(
        ((X - GREY) @ exact.T) ** 2
    )


figure = plt.figure(figsize=(11, 6), layout="constrained")
halves = figure.subfigures(1, 2)
for half, (name, model, delta) in zip(
    halves,
    [
        ("DPPCA, delta=1e-5", DPPCA, 1e-5),
        ("ExpMechPCA, delta=0", ExpMechPCA, 0.0),
    ],
    strict=True,
):
    half.suptitle(name)
    axes = half.subplots(4, K)
    for row, epsilon in zip(axes, [math.inf, 10.0, 1.0, 0.1], strict=True):
        components = (
            exact
            if epsilon == math.inf
            else fit(model, epsilon, delta).components_
        )
        part = explained(components)
        title = "no privacy" if epsilon == math.inf else f"epsilon {epsilon:g}"
        row[0].set_ylabel(f"{title}\n{part:.0%}", fontsize=10)
        print(f"{name}, {title}: {part:.3f}")
        for axis, component in zip(row, components, strict=True):
            limit = np.abs(component).max()
            axis.imshow(
                component.reshape(8, 8), cmap="RdBu", vmin=-limit, vmax=limit
            )
            axis.set(xticks=[], yticks=[])

figure.suptitle(
    "Five components of digits, and their explained part of the best five"
)

# %%
# With a delta, the components at epsilon 10 equal those without privacy. At epsilon 1, they can be recognised, and at
# epsilon 0.1, only the first component can. (The sign of a component has no meaning.) Without a delta, the same epsilon
# gives less: blurred components at epsilon 10, a trace of the first one at epsilon 1, and nothing at epsilon 0.1.
#
# Summary
# -------
# The directions with the largest variance need the smallest epsilon. Therefore ask for few components. If a delta is
# allowed, use ``DPPCA``. :ref:`pca` has the theorems.

plt.show()
