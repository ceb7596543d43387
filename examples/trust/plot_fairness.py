"""
Effect of noise on small groups and rare labels
===============================================

The noise is the same for all records. Therefore it has the largest effect on groups with few records. This example fits
private models to records with a small group, and to records with a rare label. The overall accuracy hides the loss of
the small group, and its recall shows the loss.
"""

# %%
# A majority and a minority
# -------------------------
# The records are simulated: applicants with two test scores between -1 and 1, and whether they are suitable. For nine
# in ten, the first score determines the label. For one in ten, the second score does. The range of the scores is that
# of the tests, and therefore public.

import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import recall_score

from skdp import ObjPertLogReg

EPSILONS = [0.03, 0.1, 0.3, 1.0, 3.0, 10.0]
REPEATS = 40


def applicants(n, rng):
    """Draw scores, labels, and the members of the minority."""
    minority = rng.uniform(size=n) < 0.1
    scores = rng.uniform(-1, 1, (n, 2))
    telling = np.where(minority, scores[:, 1], scores[:, 0])
    suitable = rng.uniform(size=n) < 1 / (1 + np.exp(-8 * telling))
    return scores, suitable.astype(int), minority


rng = np.random.default_rng(0)
scores, y, minority = applicants(3000, rng)
scores_test, y_test, minority_test = applicants(20_000, rng)

# %%
# A model for both groups
# -----------------------
# The columns are the two scores, and the two scores again for the minority, which are 0 for the majority. Therefore a
# linear model has weights for everybody, and corrections for the minority. No entry exceeds 1, so that no row has a
# norm above 2, which is ``data_norm``.


def columns(scores, minority):
    """Return the scores, and the scores again for the minority."""
    return np.column_stack([scores, scores * minority[:, None]])


X, X_test = columns(scores, minority), columns(scores_test, minority_test)


def score_groups(epsilon, seed):
    """Return the recall of label 1 in both groups, and the accuracy."""
    model = ObjPertLogReg(
        epsilon=epsilon,
        delta=1e-6,
        data_norm=2.0,
        classes=[0, 1],
        random_state=seed,
    )
    predicted = model.fit(X, y).predict(X_test)
    groups = [
        recall_score(y_test[group], predicted[group])
        for group in (~minority_test, minority_test)
    ]
    return *groups, np.mean(predicted == y_test)


# %%
# A rare label
# ------------
# The second table has a rare label. One record in twenty has the label 1, and the features separate the labels quite
# well. The features are two numbers that are clipped to [-3, 3].


def patients(n, rng):
    """Draw two features and a rare label."""
    ill = rng.uniform(size=n) < 0.05
    return np.clip(
        rng.normal(size=(n, 2)) + 1.7 * ill[:, None], -3, 3
    ), ill.astype(int)


Z, ill = patients(1000, rng)
Z_test, ill_test = patients(20_000, rng)


def score_labels(epsilon, seed):
    """Return the recall of both labels, and the accuracy."""
    model = ObjPertLogReg(
        epsilon=epsilon,
        delta=1e-6,
        data_norm=3 * 2**0.5,
        classes=[0, 1],
        random_state=seed,
    )
    predicted = model.fit(Z, ill).predict(Z_test)
    return *recall_score(
        ill_test, predicted, labels=[0, 1], average=None
    ), np.mean(predicted == ill_test)


# %%
# Recall against epsilon
# ----------------------
# Each line is the mean of 40 fits with fresh noise, and the band contains eight in ten of them. The marks at the right
# end have no noise. The seeds only make the figure reproducible. Never set them for private records.


def plot_scores(axis, scores_of_fit, names, title):
    """Plot the scores of many fits against epsilon, with bands."""
    scores = np.array(
        [
            [scores_of_fit(epsilon, seed) for seed in range(REPEATS)]
            for epsilon in EPSILONS
        ]
    )
    without_noise = scores_of_fit(math.inf, 0)
    means = scores.mean(axis=1)
    low, high = np.quantile(scores, [0.1, 0.9], axis=1)
    for k, (name, colour) in enumerate(
        zip(names, ["C0", "C1", "k"], strict=True)
    ):
        axis.plot(EPSILONS, means[:, k], "o-", color=colour, label=name)
        axis.fill_between(
            EPSILONS, low[:, k], high[:, k], color=colour, alpha=0.12
        )
        axis.plot(25, without_noise[k], "D", color=colour, clip_on=False)
    axis.set(xscale="log", xlabel="epsilon", title=title, ylim=(0, 1.02))
    axis.set_xticks([*EPSILONS, 25], [*map(str, EPSILONS), "∞"])
    axis.minorticks_off()
    axis.legend(loc="lower right", fontsize=9)
    table = pd.DataFrame([*means, without_noise], [*EPSILONS, "inf"], names)
    print(f"{title}, by epsilon\n{table.round(3)}\n")


figure, axes = plt.subplots(
    1, 2, figsize=(11, 4.8), sharey=True, layout="constrained"
)
of_groups = ["recall, majority", "recall, minority", "accuracy of all"]
plot_scores(axes[0], score_groups, of_groups, "A group of 10 %")
of_labels = ["recall, common", "recall, rare", "accuracy of all"]
plot_scores(axes[1], score_labels, of_labels, "A label of 5 %")
axes[0].set_ylabel("score on fresh records")
figure.suptitle("Recall and accuracy against epsilon")

# %%
# In the left panel, the recall of the majority at epsilon 0.1 is nearly the same as without privacy. The minority loses
# more than a quarter of its recall there. The overall accuracy follows the majority.
#
# In the right panel, the recall of the rare label falls to about 0.15 at epsilon 0.3, but the accuracy falls only by
# about a hundredth, because the answer "common" for everybody is right 19 times in 20. At smaller epsilon, the model
# guesses. It finds some of the rare labels by chance, and misses more of the common ones.
#
# Summary
# -------
# The overall accuracy does not show the loss of a small group. Evaluate a private model for each group, on public or
# simulated records, or by :func:`~skdp.model_selection.private_score` with ``metric="confusion_matrix"``, which is
# charged. Choose epsilon by the smallest group that matters.

plt.show()
