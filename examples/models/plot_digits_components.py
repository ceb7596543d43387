"""
Components of handwritten digits
================================

Principal components of pictures are pictures, so that one can see what privacy does to them. Here we learn how many
components are left at which epsilon, by two mechanisms: ``DPPCA`` adds Gaussian noise to the matrix of second moments,
and needs a delta; ``ExpMechPCA`` draws one direction after the other, and needs none.
"""

# %%
# Digits, and their bounds
# ------------------------
# The 1797 pictures of scikit-learn have 64 pixels from 0 to 16, as is documented. They are divided by 16, and a public
# grey of 0.3 is subtracted in place of the mean. No pixel is then beyond 0.7, and no row longer than 5.6. The
# ``data_norm`` of 4 is less: longer rows, if there were any, would be scaled down.

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
# The rows of pictures are fits at one epsilon. The number at the left is how much of what five directions can explain
# at most is explained by those of the fit. It is computed from the records, which is not private: digits are public.
# The seeds are there so that the picture can be repeated.


def fit(model, epsilon, delta):
    """Fit five components."""
    return model(K, epsilon=epsilon, delta=delta, data_norm=4.0, center=GREY, random_state=0).fit(X)


exact = fit(DPPCA, math.inf, 0.0).components_


def explained(components):
    """Sum of squares along directions, as a part of the most there can be."""
    return np.sum(((X - GREY) @ components.T) ** 2) / np.sum(((X - GREY) @ exact.T) ** 2)


figure = plt.figure(figsize=(11, 6), layout="constrained")
halves = figure.subfigures(1, 2)
for half, (name, model, delta) in zip(
    halves, [("DPPCA, delta=1e-5", DPPCA, 1e-5), ("ExpMechPCA, delta=0", ExpMechPCA, 0.0)], strict=True
):
    half.suptitle(name)
    axes = half.subplots(4, K)
    for row, epsilon in zip(axes, [math.inf, 10.0, 1.0, 0.1], strict=True):
        components = exact if epsilon == math.inf else fit(model, epsilon, delta).components_
        part = explained(components)
        title = "no privacy" if epsilon == math.inf else f"epsilon {epsilon:g}"
        row[0].set_ylabel(f"{title}\n{part:.0%}", fontsize=10)
        print(f"{name}, {title}: {part:.3f}")
        for axis, component in zip(row, components, strict=True):
            limit = np.abs(component).max()
            axis.imshow(component.reshape(8, 8), cmap="RdBu", vmin=-limit, vmax=limit)
            axis.set(xticks=[], yticks=[])

figure.suptitle("Five components of digits, and how much of the best five they explain")

# %%
# With a delta, the components at 10 are those without privacy, and at 1 they can still be recognised; at 0.1 the first
# one can. (The sign of a component means nothing.) Without a delta, the same epsilon leaves less: at 10 some that are
# blurred, at 1 little more than a trace of the first, and at 0.1 nothing.
#
# To take away: the directions with the most variance survive longest, so ask for few. Where a delta is admitted, take
# ``DPPCA``.

plt.show()
