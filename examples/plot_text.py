"""
Text: classify complaints with hashed words
===========================================

A vocabulary that is learned from private texts reveals who wrote a rare word. Hashed columns need no vocabulary. This
example sorts complaints with private classifiers, measures how many columns to use at each epsilon, and shows which
words a private model learns. It learns common words and not the words of single persons.
"""

# %%
# Simulated complaints
# --------------------
# The table has 3,000 simulated complaints about bills or about repairs. A complaint is a random sequence of words:
#
# - four to eight filler words, which are the same for both labels
# - one to three words that are typical of a label, in one case in five of the wrong label
# - in every second complaint, the number of a product; each product belongs to one label.
#
# A few products are common. Most products have only a handful of complaints.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression

from skdp import DPSGDClassifier, FunctionalMechLogReg

FILLERS = "hello please help my the a not still since yesterday again was have it with and you very order thanks today"
BILLS = "invoice charged refund payment twice price card discount receipt tax fee overdue bank voucher"
REPAIRS = "screen error restart update password broken crash battery cable slow noise printer driver screws"
WORDS = np.array([BILLS.split(), REPAIRS.split()])
PRODUCTS = np.array([[f"{name}{number}" for number in range(100, 200)] for name in "br"])


def by_rank(size, n, rng):
    """Draw ranks below a size, with probabilities proportional to one over the rank."""
    weights = 1 / np.arange(1, size + 1)
    return rng.choice(size, n, p=weights / weights.sum())


def complaints(n, rng):
    """Draw texts and labels: 0 for bills, 1 for repairs."""
    y = rng.integers(2, size=n)
    about = np.where(rng.uniform(size=(n, 3)) < 0.8, y[:, None], 1 - y[:, None])
    typical = WORDS[about, by_rank(WORDS.shape[1], (n, 3), rng)]
    product = PRODUCTS[y, by_rank(PRODUCTS.shape[1], n, rng)]
    fillers = rng.choice(FILLERS.split(), (n, 8))
    texts = []
    for k in range(n):
        words = [*fillers[k, : rng.integers(4, 9)], *typical[k, : rng.integers(1, 4)]]
        texts.append(" ".join(rng.permutation(words + [product[k]] * (rng.uniform() < 0.5))))
    return texts, y


rng = np.random.default_rng(0)
texts, y = complaints(3000, rng)
texts_test, y_test = complaints(4000, rng)
for text, label in zip(texts[:4], y[:4], strict=True):
    print(f"{['bills', 'repairs'][label]:>8}: {text}")

# %%
# Columns without a vocabulary
# ----------------------------
# ``HashingVectorizer`` maps each word to one of a given number of columns by a public function. It learns nothing from
# the texts, and therefore uses nothing of the budget. ``TfidfVectorizer`` would learn words and their frequencies, and
# reveal them. ``HashingVectorizer`` also scales each row to norm 1 (``norm="l2"``). Therefore ``data_norm=1``. (For
# other rows, use :class:`~skdp.preprocessing.NormClipper`.) Two words may share a column. With fewer columns, more
# words share one.
#
# The accuracy is measured on fresh simulated complaints. Delta is 1e-6. Gradient descent takes 50 steps in place of
# 500, which is faster and a little less accurate. Marks are means over two fits.


def hashed(texts, n_columns):
    """Hash the words of texts."""
    return HashingVectorizer(n_features=n_columns).transform(texts).toarray()


def descent(epsilon):
    """Return a classifier by noisy gradient descent."""
    return DPSGDClassifier(epsilon=epsilon, delta=1e-6, data_norm=1.0, classes=[0, 1], n_steps=50)


def moments(epsilon):
    """Return a classifier from noisy second moments."""
    return FunctionalMechLogReg(epsilon=epsilon, delta=1e-6, bounds=(-1, 1), data_norm=1.0, classes=[0, 1])


def public(epsilon):
    """Return a classifier without privacy."""
    return LogisticRegression(C=10, solver="newton-cg")


COLUMNS = [8, 16, 32, 64, 128, 256, 512]
EPSILONS = [0.3, 1.0, 3.0]
COLOURS = ["C1", "C0", "C2"]
curves = [("without privacy", public, np.inf, "kD:")]
for epsilon, colour in zip(EPSILONS, COLOURS, strict=True):
    curves += [(f"epsilon {epsilon:g}, descent", descent, epsilon, f"{colour}o-")]
    curves += [(f"epsilon {epsilon:g}, moments", moments, epsilon, f"{colour}s--")]

rows = {n_columns: (hashed(texts, n_columns), hashed(texts_test, n_columns)) for n_columns in COLUMNS}
sizes, axis = plt.subplots(figsize=(7, 5.2), layout="constrained")
print(f"{'columns':<22}" + "".join(f"{n_columns:>7}" for n_columns in COLUMNS))
for name, make, epsilon, style in curves:
    scores = []
    for X, X_test in rows.values():
        repeats = 1 if make is public else 2
        scores.append(np.mean([make(epsilon).fit(X, y).score(X_test, y_test) for _ in range(repeats)]))
    axis.plot(COLUMNS, scores, style, markersize=4, label=name)
    print(f"{name:<22}" + "".join(f"{score:7.3f}" for score in scores))
axis.set(xscale="log", xlabel="hashed columns", ylabel="accuracy on fresh complaints")
axis.set_xticks(COLUMNS, COLUMNS)
axis.minorticks_off()
axis.set_title("3,000 complaints")
axis.grid(axis="y", color="0.93")
sizes.legend(loc="outside lower center", ncols=4, fontsize=8)

# %%
# Without privacy, more columns are better, because fewer words share one. Gradient descent keeps most of this
# advantage, because noise in the columns of rare words changes few predictions. ``FunctionalMechLogReg`` adds noise to
# the moments of all pairs of columns. At small epsilon, it gains little or loses from a few dozen columns on. More
# columns also increase the time of a fit. A few hundred columns are enough here. Choose their number before you look at
# the texts, so that the number is public.
#
# Words that a model learns
# -------------------------
# Each model now predicts the label of single words. A prediction is right if it is the label that the word belongs to.
# There are 1,024 columns, so that few words share one. The words are grouped by the number of complaints with the word.
# For an unknown word, the prediction is random, or it depends on another word in the same column. Private lines are
# means over six fits.

X = hashed(texts, 1024)
vocabulary = np.concatenate([WORDS, PRODUCTS], axis=1)
about = np.repeat([0, 1], vocabulary.shape[1])
vocabulary = vocabulary.ravel()
counts = np.array([sum(word in text.split() for text in texts) for word in vocabulary])
EDGES = [0, 1, 2, 4, 8, 16, 64, np.inf]
NAMES = ["0", "1", "2-3", "4-7", "8-15", "16-63", "64+"]
group = np.searchsorted(EDGES, counts, side="right") - 1


def right(model):
    """Return for each group the part of words with a right prediction."""
    found = model.fit(X, y).predict(hashed(vocabulary, 1024)) == about
    return [np.mean(found[group == k]) for k in range(len(NAMES))]


learned, axis = plt.subplots(figsize=(7, 4.4), layout="constrained")
print(f"{'complaints with the word':<26}" + "".join(f"{name:>7}" for name in NAMES))
print(f"{'words':<26}" + "".join(f"{np.sum(group == k):>7}" for k in range(len(NAMES))))
for name, make, epsilon, style in curves:
    if make is moments:
        continue
    parts = np.mean([right(make(epsilon)) for _ in range(1 if make is public else 6)], axis=0)
    axis.plot(range(len(NAMES)), parts, style, markersize=5, label=name.removesuffix(", descent"))
    print(f"{name:<26}" + "".join(f"{part:7.2f}" for part in parts))
axis.axhline(0.5, color="0.6", linewidth=1, zorder=0, label="guessing")
axis.set_xticks(range(len(NAMES)), NAMES)
axis.set(xlabel="complaints with the word, of 3,000", ylabel="part of words with a right prediction", ylim=(0.3, 1.03))
axis.legend(fontsize=9, loc="lower right")

# %%
# One complaint is enough for the model without privacy to learn most words. Its weights reveal the words of a single
# person. The private models guess for words that one, two or three people wrote. They learn a word from about ten
# complaints at epsilon 3, from about thirty at epsilon 1, and from about a hundred at epsilon 0.3. The guarantee has
# this effect on purpose: the model hardly depends on the words of a few people.
#
# The guarantee also has a price. The models do not learn the products with few complaints. Only a larger epsilon or
# more complaints can change this. A better model cannot.
#
# Summary
# -------
# Hash words, or use a public list of words. Scale rows to norm 1. Use gradient descent for many columns, and as many
# columns as the time of a fit allows. :ref:`gradient_descent` describes the classifier, and :ref:`preprocessing` other
# public transformations.

plt.show()
