"""
A classifier from locally private reports
=========================================

With local privacy, each person randomises their answers and their label, so that nobody holds a true record.
:class:`~skdp.local.LocalDPNaiveBayes` learns from such reports. (Here, ``fit`` makes the reports, too.) This example
compares it with :class:`~skdp.naive_bayes.DPNaiveBayes`, which reads the true records and adds noise to its counts. It
measures how many more people the local model needs.
"""

# %%
# A survey
# --------
# The records are simulated: four questions with three answers each, and whether the person changes the job within a
# year. The distribution of the answers depends on this label. Questions and answers are printed on the form, and are
# therefore public.

import matplotlib.pyplot as plt
import numpy as np

from skdp import DPNaiveBayes, LocalDPNaiveBayes

N_QUESTIONS, N_ANSWERS = 4, 3
rng = np.random.default_rng(0)
LAWS = rng.dirichlet([1.5] * N_ANSWERS, size=(2, N_QUESTIONS))


def people(n):
    """Draw answers and labels: 1 for people who change their job."""
    changes = rng.integers(2, size=n)
    answers = np.empty((n, N_QUESTIONS), dtype=int)
    for label in (0, 1):
        own = changes == label
        for question in range(N_QUESTIONS):
            answers[own, question] = rng.choice(N_ANSWERS, size=own.sum(), p=LAWS[label, question])
    return answers, changes


X_test, y_test = people(20_000)

# %%
# Accuracy against the number of people
# -------------------------------------
# Both models have epsilon 1. The central model protects against adding or removing one record of a trusted holder. The
# local model protects everything that a person sends. Each mark is the mean of five fits to new people. The dotted line
# uses the true distributions.

SIZES = [300, 1000, 3000, 10_000, 30_000]
FORM = {
    "categorical_features": list(range(N_QUESTIONS)),
    "n_categories": [N_ANSWERS] * N_QUESTIONS,
    "classes": [0, 1],
    "epsilon": 1.0,
}

scores = {"central: the holder adds noise": [], "local: each person adds noise": []}
for n in SIZES:
    for name, kind in zip(scores, (DPNaiveBayes, LocalDPNaiveBayes), strict=True):
        scores[name].append(np.mean([kind(**FORM).fit(*people(n)).score(X_test, y_test) for _ in range(5)]))

log_ratio = np.log(LAWS[1] / LAWS[0])
right = (log_ratio[np.arange(N_QUESTIONS), X_test].sum(axis=1) > 0) == y_test

picture, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for (name, values), marker in zip(scores.items(), "os", strict=True):
    ax.plot(SIZES, values, marker=marker, label=name)
ax.axhline(right.mean(), color="0.5", ls=":", lw=1, label="true distributions")
ax.axhline(0.5, color="0.8", lw=1, label="guessing")
ax.set(xscale="log", xlabel="people", ylabel="accuracy", title="Epsilon 1")
ax.set_xticks(SIZES, [f"{n:,}" for n in SIZES])
ax.minorticks_off()
_ = ax.legend(loc="lower right")

# %%
# Summary
# -------
# Here, the central model with 300 people is as accurate as the local model with 30,000. Use local privacy if you may
# not hold the records at all, and can ask very many people. See :ref:`local`, and
# :ref:`sphx_glr_auto_examples_trust_plot_local_central.py` for frequencies.

plt.show()
