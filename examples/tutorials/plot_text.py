"""
Complaints as text, through a public embedding
==============================================

**Question.** Is a complaint about a bill or about a repair? A vocabulary that
is learned from private texts reveals who wrote a rare word. A public embedding
turns each text into numbers by a function that was fixed before anyone looked
at the texts. This tutorial fits a private classifier of embedded complaints,
and shows which words it learns: common words, and not the words of single
people.
"""

# %%
# The complaints
# --------------
# The records are simulated by the function below. One person writes one
# complaint, of filler words, one to three words that are typical of its
# subject (in one case in five of the wrong subject), and in every second
# complaint the number of a product. Words and products are skewed: a few are
# common, and most products have a handful of complaints. Some people make
# typing errors.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression

from skdp import BudgetAccountant, DPSGDClassifier, private_score

FILLERS = """hello please help my the a not still since yesterday again was
have it with and you very order thanks today"""
BILL = """invoice charged refund payment twice price card discount receipt
tax fee overdue bank voucher"""
REPAIR = """screen error restart update password broken crash battery cable
slow noise printer driver screws"""
TYPICAL = {"bill": BILL.split(), "repair": REPAIR.split()}
PRODUCTS = {
    label: [f"{label[0]}{number}" for number in range(100, 200)]
    for label in TYPICAL
}


def draw_skewed(words, n, rng):
    """Draw words with probabilities proportional to one over the rank."""
    weights = 1 / np.arange(1, len(words) + 1)
    return list(rng.choice(words, n, p=weights / weights.sum()))


def simulate_complaint(label, rng):
    """Draw the text of a complaint."""
    words = list(rng.choice(FILLERS.split(), rng.integers(4, 9)))
    for _ in range(rng.integers(1, 4)):
        subject = label
        if rng.random() < 0.2:
            subject = "bill" if label == "repair" else "repair"
        words += draw_skewed(TYPICAL[subject], 1, rng)
    if rng.random() < 0.5:
        words += draw_skewed(PRODUCTS[label], 1, rng)
    if rng.random() < 0.1:
        typo = rng.integers(len(words))
        words[typo] = words[typo][1:] or words[typo]
    return " ".join(rng.permutation(words))


def simulate_complaints(n, rng):
    """Draw texts and their labels."""
    labels = rng.choice(["bill", "repair"], n)
    return [simulate_complaint(label, rng) for label in labels], labels


rng = np.random.default_rng(0)
texts, labels = simulate_complaints(4_000, rng)
for text, label in zip(texts[:4], labels[:4], strict=True):
    print(f"{label:>6}: {text}")

# %%
# A public embedding
# ------------------
# ``HashingVectorizer`` maps each word to one of 512 columns by a public
# function. It learns nothing from the texts, and uses no budget.
# (``TfidfVectorizer`` would learn words and their frequencies, and reveal
# them.) It scales each row to norm 1, which is the ``data_norm`` of the
# classifier. Another public embedding takes the same place: a language model
# that was trained on other texts, followed by
# :class:`~skdp.preprocessing.NormClipper`.

N_COLUMNS = 512


def embed(texts, n_columns=N_COLUMNS):
    """Turn texts into rows of norm 1, without looking at other texts."""
    return HashingVectorizer(n_features=n_columns).transform(texts)


row = embed(texts[:1])
print("columns that are not 0 in the first complaint, and their entries:")
print(dict(zip(row.indices.tolist(), row.data.round(2).tolist(), strict=True)))

# %%
# Plan the budget
# ---------------
# One complaint is one record. (If a person may send several, protect all of
# them together: :ref:`units`.) The shop allows epsilon 1.5 and delta 1e-6.
# The classifier gets epsilon 1, and its accuracy on other complaints 0.3, each
# with a delta of 5e-7. The labels and the norm are declared.

budget = BudgetAccountant(epsilon=1.5, delta=1e-6)
in_test = rng.random(len(texts)) < 0.25
X, y = embed(texts)[~in_test], labels[~in_test]
X_test, y_test = embed(texts)[in_test], labels[in_test]


def classifier(epsilon, accountant=None):
    """Return a private linear classifier of embedded texts."""
    return DPSGDClassifier(
        epsilon=epsilon,
        delta=5e-7,
        data_norm=1.0,
        classes=["bill", "repair"],
        n_steps=50,
        accountant=accountant,
    )


model = classifier(1.0, budget.labelled("model")).fit(X, y)
score = private_score(
    model,
    X_test,
    y_test,
    epsilon=0.3,
    delta=5e-7,
    accountant=budget.labelled("accuracy"),
)
low, high = score.confidence_interval(0.95)
print(f"accuracy {score.value:.3f}, interval {low:.3f} to {high:.3f}")
print(model.privacy_)
print(budget)

# %%
# How many columns?
# -----------------
# With fewer columns, more words share one. With more columns, there is more
# noise. The number has to be public, so that it cannot be chosen by the
# private texts. Complaints that are simulated (or old ones that were
# published) show what to expect. The curves below are of simulated texts, and
# use no budget.

COLUMNS = [16, 64, 256, 1024]
EPSILONS = [0.3, 1.0, 3.0]
fresh_texts, fresh_labels = simulate_complaints(4_000, rng)


def accuracy(model, n_columns):
    """Fit to embedded texts, and return the accuracy on fresh texts."""
    model.fit(embed(texts, n_columns), labels)
    return model.score(embed(fresh_texts, n_columns), fresh_labels)


def mean_accuracy(epsilon, n_columns, n_fits=2):
    """Return the mean accuracy of private fits."""
    return np.mean(
        [accuracy(classifier(epsilon), n_columns) for _ in range(n_fits)]
    )


def plot_accuracy(axis, scores, label, **style):
    """Plot accuracy against the number of columns, and print it."""
    axis.plot(COLUMNS, scores, label=label, **style)
    print(f"{label:<16}", *(f"{score:.3f}" for score in scores))


figure, axis = plt.subplots(layout="constrained")
not_private = LogisticRegression(C=10, solver="newton-cg")
scores = [accuracy(not_private, n_columns) for n_columns in COLUMNS]
plot_accuracy(axis, scores, "without privacy", color="k", linestyle=":")
for epsilon in EPSILONS:
    scores = [mean_accuracy(epsilon, n_columns) for n_columns in COLUMNS]
    plot_accuracy(axis, scores, f"epsilon {epsilon:g}", marker="o")
axis.set(xscale="log", xlabel="columns", ylabel="accuracy on fresh complaints")
axis.set_xticks(COLUMNS, COLUMNS)
axis.minorticks_off()
axis.legend()

# %%
# Words that the model learns
# ---------------------------
# Each model now classifies single words. The words are grouped by the number
# of complaints with the word. For a word that a model does not know, it
# guesses.

N_HASHED = 1024
EDGES = [1, 2, 4, 8, 16, 64, np.inf]
NAMES = ["1", "2-3", "4-7", "8-15", "16-63", "64+"]
words = [*TYPICAL["bill"], *PRODUCTS["bill"]]
n_of_bill = len(words)
words += [*TYPICAL["repair"], *PRODUCTS["repair"]]
word_labels = np.where(np.arange(len(words)) < n_of_bill, "bill", "repair")
occurrences = np.zeros(len(words))
for text in texts:
    occurrences += np.isin(words, text.split())
group_of_word = np.searchsorted(EDGES, occurrences, side="right") - 1


def learned_words(model):
    """Return the part of words with the right label, for each group."""
    model.fit(embed(texts, N_HASHED), labels)
    correct = model.predict(embed(words, N_HASHED)) == word_labels
    return [
        correct[group_of_word == group].mean() for group in range(len(NAMES))
    ]


figure, axis = plt.subplots(layout="constrained")
axis.plot(learned_words(not_private), "k:", label="without privacy")
for epsilon in EPSILONS:
    parts = [learned_words(classifier(epsilon)) for _ in range(4)]
    axis.plot(np.mean(parts, axis=0), "o-", label=f"epsilon {epsilon:g}")
    print(f"epsilon {epsilon:<4g}", np.mean(parts, axis=0).round(2))
axis.axhline(0.5, color="0.6", linewidth=1, label="guessing")
axis.set_xticks(range(len(NAMES)), NAMES)
axis.set(
    xlabel=f"complaints with the word, of {len(texts):,}",
    ylabel="part of words with the right label",
)
axis.legend()

# %%
# One complaint is enough for the model without privacy to learn most words.
# Its weights reveal the words of a single person. The private models guess for
# words that few people wrote. The guarantee has this effect on purpose. It
# also has a price: products with few complaints are not learned. Only a larger
# epsilon or more complaints can change this.
#
# What may be published
# ---------------------
# - **Publish:** the embedding, the model and its weights, the accuracy with
#   its interval, and the guarantee.
# - **Do not publish:** a vocabulary, frequencies of words, complaints as
#   examples, or the most certain predictions with their texts.
#
# The two figures above are for simulated texts. For private texts, each fit
# would be charged. :ref:`sparse_rows` describes sparse rows, and
# :ref:`gradient_descent` the classifier.

plt.show()
