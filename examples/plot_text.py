"""
Sorting messages that nobody else may read
==========================================

A city's complaints office wants messages to find their department by themselves. The messages are people's own words,
and whoever has the model must not learn what one of them wrote. Text has two traps: the *vocabulary*, which is read
off the messages and so tells of them, and the rare words, which are where people can be recognised. Hashing avoids the
first, and noise takes care of the second.
"""

# %%
# Messages
# --------
# They are simulated: each is on one of four subjects, and made of words that belong to it and words that anybody uses.
# Few words are frequent and many are rare, as in any language. One message in a hundred names a person, by a name that
# occurs nowhere else.

import sys

import matplotlib

if not hasattr(sys, "ps1"):
    matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp import DPSGDClassifier

SUBJECTS = {
    "waste": "bin collection rubbish recycling glass missed overflowing skip compost litter depot crew",
    "roads": "pothole pavement lamp kerb crossing signal gritting tarmac drain roadworks sign cyclist",
    "noise": "music party barking neighbour night hammering alarm bass fireworks shouting engine pub",
    "parks": "bench playground tree hedge grass swing pond fence goalpost dog mowing gate",
}
ANYBODY = "please again since week street house still called nobody came answer again near my our the since when why"


def messages(n, rng):
    """Draw messages and their subjects."""
    names = list(SUBJECTS)
    own = [SUBJECTS[name].split() for name in names]
    anybody = ANYBODY.split()
    # Frequencies fall as in Zipf's law, and three words in ten may be from another subject.
    falling = 1 / np.arange(1, len(own[0]) + 1)
    falling /= falling.sum()
    texts, subjects = [], rng.integers(len(names), size=n)
    for number, subject in enumerate(subjects):
        sources = np.where(rng.uniform(size=5) < 0.3, rng.integers(len(names), size=5), subject)
        words = [rng.choice(own[source], p=falling) for source in sources]
        words += list(rng.choice(anybody, size=8))
        if rng.uniform() < 0.01:
            words.append(f"mrs-{number:x}")
        texts.append(" ".join(rng.permutation(words)))
    return texts, np.array(names)[subjects]


rng = np.random.default_rng(0)
texts, y = messages(4000, rng)
texts_test, y_test = messages(4000, rng)
print(texts[0], "->", y[0])

# %%
# A vocabulary that was never learned
# -----------------------------------
# :class:`~sklearn.feature_extraction.text.HashingVectorizer` sends each word to one of a fixed number of columns, by a
# function that is known before there is a message. It learns nothing, and costs nothing. (A ``CountVectorizer`` would
# put each word that occurs into its ``vocabulary_``: the names among them.) It also makes every row one long, so that
# no message counts for more than another, however long it is: 1 is the ``data_norm``. Private estimators take dense
# rows, hence the step in between.


def dense(rows):
    """Write zeros out."""
    return rows.toarray()


def sorter(n_columns, epsilon):
    """Make a private classifier of texts."""
    words = HashingVectorizer(n_features=n_columns, alternate_sign=False)
    model = DPSGDClassifier(epsilon=epsilon, delta=1e-6, data_norm=1.0, classes=sorted(SUBJECTS))
    return make_pipeline(words, FunctionTransformer(dense, accept_sparse=True), model)


COLUMNS = [16, 64, 256]
EPSILONS = [0.1, 1.0]

accuracy = {
    epsilon: [sorter(n, epsilon).fit(texts, y).score(texts_test, y_test) for n in COLUMNS] for epsilon in EPSILONS
}
without = [
    make_pipeline(HashingVectorizer(n_features=n, alternate_sign=False), LogisticRegression(C=100, max_iter=1000))
    .fit(texts, y)
    .score(texts_test, y_test)
    for n in COLUMNS
]

fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
ax.plot(COLUMNS, without, color="0.4", marker="s", ls="--", label="without privacy")
for color, epsilon in zip(["C0", "C1"], EPSILONS[::-1], strict=True):
    ax.plot(COLUMNS, accuracy[epsilon], color=color, marker="o", label=f"epsilon = {epsilon:g}")
ax.axhline(1 / len(SUBJECTS), color="0.7", lw=1)
ax.text(COLUMNS[-1], 1 / len(SUBJECTS), "guessing", ha="right", va="bottom", color="0.4", fontsize="small")
ax.set(
    xscale="log", xticks=COLUMNS, xticklabels=COLUMNS, ylim=(0.2, 1), xlabel="columns of the hash", ylabel="accuracy"
)
ax.minorticks_off()
_ = ax.legend(loc="lower left", bbox_to_anchor=(0, 0.12))

# %%
# Too few columns send words of different subjects to the same place, and too many spread the noise. Both matter less
# than epsilon does.
#
# What became of the words
# ------------------------
# The weight of a word says how much it speaks for its subject. Frequent words have large ones, with privacy and
# without. A name occurs once. The model without privacy remembers it: every name has a weight above zero, for the
# subject of the one message that it stood in, where a word that was never seen has none. With privacy, the weights of
# names are like those of the columns that no word was sent to, which are noise and nothing else (the grey band holds
# nine tenths of these). So are those of some rarer words: that is what the accuracy loses.

N_COLUMNS = 1024
hashing = HashingVectorizer(n_features=N_COLUMNS, alternate_sign=False, norm=None, token_pattern=r"\S+")


def weights_of_words(coefficients):
    """Give, for each column, what it adds for each subject over the others."""
    return coefficients - coefficients.mean(axis=0)


rows = HashingVectorizer(n_features=N_COLUMNS, alternate_sign=False, token_pattern=r"\S+").transform(texts)
public = LogisticRegression(C=100, max_iter=1000).fit(rows, y)
private = DPSGDClassifier(epsilon=1.0, delta=1e-6, data_norm=1.0, classes=sorted(SUBJECTS)).fit(rows.toarray(), y)

subject_of = {word: name for name, words in SUBJECTS.items() for word in words.split()}
subject_of |= {word: subject for text, subject in zip(texts, y, strict=True) for word in text.split() if "-" in word}
columns = {word: hashing.transform([word]).indices[0] for word in subject_of}
count = np.asarray((hashing.transform(texts) > 0).sum(axis=0)).ravel()
empty = count == 0

fig, axes = plt.subplots(1, 2, figsize=(9, 4), sharex=True, layout="constrained")
for ax, model, title in zip(axes, [public, private], ["without privacy", "epsilon = 1"], strict=True):
    weights = weights_of_words(model.coef_)
    low, high = np.quantile(weights[:, empty], [0.05, 0.95])
    ax.axhspan(low, high, color="0.85", lw=0, label="columns of no word" if model is private else None)
    for is_name, color, label in [(False, "C0", "words of a subject"), (True, "C1", "names")]:
        shown = [word for word in subject_of if ("-" in word) == is_name]
        x = [count[columns[word]] for word in shown]
        z = [weights[list(model.classes_).index(subject_of[word]), columns[word]] for word in shown]
        ax.scatter(x, z, s=14, color=color, label=label)
    ax.axhline(0, color="0.4", lw=0.8)
    ax.set(xscale="log", xlabel="messages with the word", title=title)
axes[0].set_ylabel("weight for its subject")
_ = axes[1].legend(loc="lower right")

# %%
# What to take along
# ------------------
# Take features of text that are public functions of one text: hashes, or embeddings by a model that was trained on
# public text. Say what the largest norm of a row is. Expect frequent words to be learned, and rare ones to be lost:
# privacy and rare words cannot be had together. See :doc:`/user_guide/gradient_descent` and
# :doc:`/user_guide/privacy_model`.
