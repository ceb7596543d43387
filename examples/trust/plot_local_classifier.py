"""
A classifier that never saw an answer
=====================================

With local privacy, every person randomises their own answers, label included, and nobody ever holds a true record.
:class:`~skdp.local.LocalDPNaiveBayes` learns from such reports (here, `fit` makes them as well). It is compared with
:class:`~skdp.naive_bayes.DPNaiveBayes`, which is handed the true records and adds noise to its counts: what does it
cost to trust no one, and how many more people does it take?
"""

# %%
# A survey
# --------
# Simulated: four questions with three answers each, and whether the person changes the job within a year, which the
# answers tell something about. Questions and answers are printed on the form, hence public.

import matplotlib.pyplot as plt
import numpy as np

from skdp import DPNaiveBayes, LocalDPNaiveBayes

N_QUESTIONS, N_ANSWERS = 4, 3
rng = np.random.default_rng(0)
LAWS = rng.dirichlet([1.5] * N_ANSWERS, size=(2, N_QUESTIONS))


def people(n):
    """Draw answers, and who changes."""
    changes = rng.integers(2, size=n)
    answers = np.empty((n, N_QUESTIONS), dtype=int)
    for label in (0, 1):
        own = changes == label
        for question in range(N_QUESTIONS):
            answers[own, question] = rng.choice(N_ANSWERS, size=own.sum(), p=LAWS[label, question])
    return answers, changes


X_test, y_test = people(20_000)

# %%
# The same epsilon, two kinds of promise
# --------------------------------------
# Both models are for an epsilon of 1. For the central one it is about adding or removing a person whose record the
# holder has; for the local one, about all that a person ever sends. Each point is the mean of five fits to new people.

SIZES = [300, 1000, 3000, 10_000, 30_000]
FORM = {
    "categorical_features": list(range(N_QUESTIONS)),
    "n_categories": [N_ANSWERS] * N_QUESTIONS,
    "classes": [0, 1],
    "epsilon": 1.0,
}

scores = {"central: the holder adds noise": [], "local: each person does": []}
for n in SIZES:
    for name, kind in zip(scores, (DPNaiveBayes, LocalDPNaiveBayes), strict=True):
        scores[name].append(np.mean([kind(**FORM).fit(*people(n)).score(X_test, y_test) for _ in range(5)]))

log_ratio = np.log(LAWS[1] / LAWS[0])
right = (log_ratio[np.arange(N_QUESTIONS), X_test].sum(axis=1) > 0) == y_test

picture, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for (name, values), marker in zip(scores.items(), "os", strict=True):
    ax.plot(SIZES, values, marker=marker, label=name)
ax.axhline(right.mean(), color="0.5", ls=":", lw=1)
ax.axhline(0.5, color="0.8", lw=1)
ax.set(xscale="log", xlabel="people", ylabel="accuracy", title="epsilon 1; dotted: if the laws were known")
ax.set_xticks(SIZES, [f"{n:,}" for n in SIZES])
ax.minorticks_off()
_ = ax.legend(loc="lower right")

# %%
# To take away: the central model needs some hundred people, the local one ten times as many or more for the same
# accuracy. Local privacy is for those who may not hold the records at all, and who ask very many. See :ref:`local`, and
# :ref:`sphx_glr_auto_examples_trust_plot_local_central.py` for frequencies.

plt.show()
