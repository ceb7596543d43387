r"""Private aggregation of teacher ensembles (PATE; Papernot and others 2017, 2018), and its default student.

Records are drawn into blocks independently and in secret. A classifier without privacy, a teacher, is fitted to each
block, and votes on public rows without labels. The votes, summed over teachers, are released with noise (see `votes_l2`
for their sensitivity).

The default student is a regression on the noisy votes, because a student that is fitted to the winning labels treats a
label that won by noise like one that won clearly. Its smoothness is chosen by cross-validation on the release, which is
post-processing.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..accounting import PrivacyCost, PrivacyEvent, PureEvent
from ..checks.data import check_quietly, encode_labels, validate_quietly
from ..checks.params import By, Checked, Integer, Or, Real, Rules, anything, check_n_jobs
from ..mechanisms import GroupChoices, Mechanism, l2_mechanism, pure_share
from ..parts.arrays import count_rows
from ..release.blocks import (
    MOST_BLOCKS,
    InnerPredictions,
    block_labels,
    block_seeds,
    check_inner,
    check_sent,
    offers,
    over_blocks,
    prepared,
    tried,
)
from ..release.estimator import LabelsMixin, Records, Shape
from ..release.session import CallbackSupportMixin, Phases, PrivacyGuarantee, Release, ReleaseSession, Theorem

Array = NDArray[np.float64]

#: Number of rows of the approximation of the kernel.
MOST_COMPONENTS = 300

#: Width of the kernel, on standardised rows: this over the number of columns.
GAMMA = 0.5

# A larger penalty would leave only the mean to distinguish classes, which very noisy rows seem to favour.
_ALPHAS = tuple(np.logspace(-2, 1.5, 13).tolist())

# Standardised entries beyond this have a kernel of 0. Larger ones could overflow.
_FAR = 1e6


def shrunk_mean(shares: Array, noise: float) -> Array:
    """Return the mean share of each class, shrunk towards 0 by its noise (James and Stein 1961)."""
    # Without shrinkage, the class with the largest mean noise would win everywhere.
    mean = shares.mean(axis=0)
    square, spread = float(mean @ mean), (len(mean) - 1) * noise**2 / len(shares)
    return np.asarray(mean * (1 - spread / square if square > spread else 0.0))


class VoteRegressor(ClassifierMixin, BaseEstimator):
    """Kernel ridge regression on shares of votes, and the class with the largest of them."""

    def fit(self, X: Array, shares: Array, noise: float, rows: Array, classes: NDArray) -> Self:
        """Fit the student to released shares of votes, minus their mean over classes."""
        # All public `rows` give the scale of the columns. `noise` is the standard deviation of the noise in one share.
        self.classes_ = classes
        self.n_features_in_ = rows.shape[1]
        self.mean_ = shrunk_mean(shares, noise)
        self.regressor_: Any = None
        if len(X) > 1:
            scaler = StandardScaler().fit(rows)
            kernel = Nystroem(gamma=GAMMA / X.shape[1], n_components=min(len(X), MOST_COMPONENTS), random_state=0)
            model = make_pipeline(kernel, RidgeCV(_ALPHAS)).fit(scaler.transform(X), shares - shares.mean(axis=0))
            self.regressor_, self.scaler_ = model, scaler
        return self

    def predict_proba(self, X: Array) -> Array:
        """Return the expected shares of the votes, of shape (n_samples, n_classes), positive and with sum 1."""
        expected = np.zeros((len(X), 1))
        if self.regressor_ is not None:
            expected = self.regressor_.predict(np.clip(self.scaler_.transform(X), -_FAR, _FAR))
        shares = np.maximum(expected + self.mean_ + 1 / len(self.classes_), 0.0)
        # The largest part is at least the average.
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def predict(self, X: Array) -> NDArray:
        """Return the label with the largest expected share."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


VOTES = "votes"

#: Number of teachers if the number of records is not declared. Otherwise, it is this times its square root.
DEFAULT_TEACHERS = 250
TEACHERS_RATIO = 3.0

#: Largest number of queried rows if delta is positive, because more rows take time and add no information. Otherwise,
#: it is this times epsilon and the number of teachers, which balances the noise and the votes of a row.
MOST_QUERIES = 1000
QUERIES_RATIO = 0.2

#: Rows of a trial of teachers and students: the most, the fewest of each class, and the most for the default student.
_TRIAL_ROWS, _TRIAL_ROWS_PER_CLASS, _TRIAL_ROWS_OF_DEFAULT = 1000, 10, 50


def votes_l2(n_queries: int) -> float:
    r"""Bound the L2 norm of the change of the votes on `n_queries` rows by one record.

    The record changes one teacher, whose vote on each row moves from one class to another at most. One count decreases
    by 1, and another increases by 1, which is :math:`\sqrt2` for a row and :math:`\sqrt{2A}` for :math:`A` rows. A
    teacher that changes its vote on every row attains the bound.
    """
    return math.sqrt(2 * n_queries)


def teacher_votes(
    teacher: Any, queries: Array, classes: NDArray, rows: NDArray, codes: NDArray[np.intp], seed: int
) -> NDArray[np.intp]:
    """Fit a teacher to one block, and return its vote on each query: a position in `classes`, or -1."""
    if len(codes) == 0 or np.all(codes == codes[0]):
        return np.full(len(queries), codes[0] if len(codes) else -1, dtype=np.intp)
    model = prepared(teacher, seed).fit(rows, classes[codes])
    # A teacher may write into the rows.
    votes = encode_labels(np.asarray(model.predict(queries.copy())), classes)
    if votes.shape != (len(queries),):
        raise ValueError
    return votes


def sum_of_votes(answers: list[NDArray[np.intp] | None], n_queries: int, n_classes: int) -> NDArray[np.int64]:
    """Return the number of votes of each class for each query. Teachers that failed, or return -1, abstain."""
    votes = np.zeros((n_queries, n_classes), dtype=np.int64)
    for codes in answers:
        if codes is not None:
            voting = np.flatnonzero(codes >= 0)
            votes[voting, codes[voting]] += 1
    return votes


def postprocess_student(
    student: Any, answers: NDArray[np.intp], answered: Array, rows: Array, classes: NDArray, seed: int
) -> Any:
    """Return the fitted student. If the answers have fewer than two classes, it is constant."""
    winners = np.unique(answers)
    if len(winners) < 2:
        winner = classes[winners[0]]
        return DummyClassifier(strategy="constant", constant=winner).fit(rows[:1], [winner])
    return prepared(student, seed).fit(answered, classes[answers])


def make_plan(parameters: Checked, n_rows: int, n_classes: int) -> PrivacyGuarantee:
    """Return the one release for a number of public rows."""
    epsilon, delta = parameters.epsilon, parameters.delta
    answered = min(parameters.max_queries, n_rows)
    mechanism: Mechanism
    event: PrivacyEvent
    if delta == 0 and parameters.private:
        mechanism, event = GroupChoices(pure_share(epsilon, 1 / answered), 1.0), PureEvent(epsilon)
    else:
        mechanism, event = l2_mechanism(epsilon, delta, 1.0, votes_l2(answered), answered * n_classes)
    return PrivacyGuarantee(epsilon, delta, (event,), (Release(VOTES, mechanism, 1.0, Theorem("PATE", 1)),))


def _public_rows_given(value: Any) -> Any:
    if value is None:
        raise ValueError(
            "public_X must be given: public rows without labels, on which the teachers vote. Do not use rows of the "
            "private data, because the student learns from these rows and would disclose them"
        )
    return value


class PATEClassifier(InnerPredictions, CallbackSupportMixin, ClassifierMixin, LabelsMixin, BaseEstimator):
    r"""Differentially private classifier from teachers that vote on public rows (PATE).

    Any classifier, without privacy of its own, is fitted to disjoint blocks of the records. These teachers vote on
    public rows without labels, and noise is added to the votes. A student learns from the public rows and the votes,
    and only the student is kept.

    Parameters
    ----------
    teacher : estimator, default=None
        Classifier that is fitted to each block. If None, it is a random forest of ten trees.
    public_X : array-like of shape (n_public, n_features), or callable
        Public rows without labels, or a function that makes such rows for a number of columns. They must not come from
        the private data, but should resemble them.
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        In [0, 1), far below one over the number of records. If 0, the fit is pure epsilon-DP, and far fewer rows can be
        labelled.
    schema : Schema, default=None
        Declaration of the columns of X, in place of `classes`. Explicit parameters override it.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, noise and blocks are cryptographically secure. Other values are for tests only, and give no privacy.
    student : estimator, default=None
        Classifier that is fitted to the labelled public rows. If None, it is a kernel ridge regression on the noisy
        votes.
    n_teachers : int, default=None
        Number of teachers, at most a million. If None, it is three times the square root of `expected_n`, or 250.
    max_queries : int, default=None
        Largest number of public rows that are labelled, chosen at random. If None, it is 1000, or with ``delta=0`` a
        fifth of epsilon times the number of teachers.
    expected_n : float, default=None
        Publicly known, approximate number of records. It only determines the number of teachers.
    classes : array-like, default=None
        Public label set. Other rows are left out. If None, the labels in `y` count as public, with a warning.
    class_weight : dict or "balanced", default=None
        Public weights of the labels. ``"balanced"`` computes them from 4 % of the budget (see :ref:`weights`).
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.
    n_jobs : int, default=None
        Number of processes that fit teachers. Threads are not used.
    verbose : int, default=0
        Lines of progress to print: 0 for none, 1 for about ten in each phase (see :doc:`/user_guide/progress`).

    Attributes
    ----------
    student_ : estimator
        Fitted student. It is constant if only one class won.
    answered_ : ndarray of shape (n_answered,)
        Positions in `public_X` of the labelled rows.
    answers_ : ndarray of shape (n_answered,)
        Labels of these rows, with the largest noisy votes.
    n_teachers_ : int
        Number of teachers.
    classes_ : ndarray of shape (n_classes,)
        Label set, sorted.
    class_weight_ : ndarray of shape (n_classes,)
        Weights of the labels, at most 1, from the released counts. Only with ``class_weight="balanced"``.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    SampleAggregate : Averages of parameters in place of votes.
    skdp.linear_model.DPSGDClassifier : Needs no public rows, and is more accurate on most tables.

    Notes
    -----
    **Privacy.** Each record is drawn into a block independently. Therefore one record changes one teacher, and its
    votes on :math:`A` rows move the counts by at most :math:`\sqrt{2A}` in L2 norm (:ref:`PATE, theorem 1
    <pate-theorem-1>`). Teachers are isolated clones: each has a seed of its own and runs without callbacks, warnings
    and printed text. A teacher that fails abstains. The guarantee does not cover files that teachers write, a process
    that is killed, and a teacher that remembers one block when it is fitted to the next (:doc:`/user_guide/pate`).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdp import PATEClassifier, Schema
    >>> k = np.arange(10_000)
    >>> X = np.column_stack([k % 101, k % 97]) / 10
    >>> late = X[:, 0] > X[:, 1]
    >>> grid = [[i, j] for i in range(11) for j in range(11)]
    >>> schema = Schema(
    ...     {"distance": (0, 10), "speed": (0, 10)}, target=[False, True]
    ... )
    >>> model = PATEClassifier(
    ...     LogisticRegression(),
    ...     public_X=grid,
    ...     epsilon=1.0,
    ...     delta=1e-6,
    ...     schema=schema,
    ...     random_state=0,
    ... )
    >>> round(model.fit(X, late).score(X, late), 1)
    1.0
    """

    _parameter_rules: ClassVar[Rules] = {
        "teacher": anything,
        "student": anything,
        "public_X": By(_public_rows_given),
        "n_teachers": Or(None, Integer(1, MOST_BLOCKS)),
        "max_queries": Or(None, Integer(1)),
        "expected_n": Or(None, Real(1)),
        "n_jobs": By(check_n_jobs),
    }
    _takes_parts = True
    _released = frozenset({"student_", "answered_", "answers_"})
    _public = frozenset({"n_teachers_"})
    _inner_names = ("student_", "student")
    _inner_default = VoteRegressor()

    def __init__(
        self,
        teacher: Any = None,
        *,
        public_X: Any = None,  # noqa: N803
        epsilon: float = 1.0,
        delta: float = 0.0,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        student: Any = None,
        n_teachers: int | None = None,
        max_queries: int | None = None,
        expected_n: float | None = None,
        classes: Any = None,
        class_weight: Any = None,
        max_weight: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.teacher = teacher
        self.public_X = public_X
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.student = student
        self.n_teachers = n_teachers
        self.max_queries = max_queries
        self.expected_n = expected_n
        self.classes = classes
        self.class_weight = class_weight
        self.max_weight = max_weight
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _plan(self, parameters: Checked, shape: Shape) -> tuple[PrivacyGuarantee, Array]:
        rows = self._public_rows(shape.n_features, self if shape.is_read else None)
        return make_plan(parameters, len(rows), shape.n_classes), rows

    def _phases(self, guarantee: PrivacyGuarantee, parameters: Checked, design: Array) -> Phases:
        (first, _), *others = super()._phases(guarantee, parameters, design)
        return [(first, parameters.n_teachers), *others]

    def _rehearse(self, parameters: Checked, shape: Shape, design: Array) -> None:
        teacher = self._teacher()
        self._try_out(teacher, design, shape.classes)
        vote = partial(teacher_votes, teacher, design[:1], shape.classes)
        check_sent(vote, "teacher", parameters.n_jobs, shape.in_parts)

    def _measure(self, session: ReleaseSession, records: Records, parameters: Checked, rows: Array) -> dict[str, Any]:
        n_teachers, classes, n_classes = parameters.n_teachers, records.shape.classes, records.shape.n_classes
        mechanism = session.mechanism(VOTES)
        order = np.argsort(session.stream("order of rows").words(len(rows)), kind="stable")
        asked = order[: parameters.max_queries]
        labels = block_labels(count_rows(records.X), n_teachers, session.stream("blocks"))
        seeds = block_seeds(n_teachers, session.stream("seeds"))
        vote = partial(teacher_votes, self._teacher(), rows[asked], classes)
        how = parameters.n_jobs, session.progress
        answers = over_blocks(vote, records.X, records.y, n_teachers, labels, seeds, *how)
        votes = sum_of_votes(answers, len(asked), n_classes)
        released = session.release(VOTES, votes.astype(np.float64))

        # Without noisy votes, the private choices are released as they are.
        won = (released.argmax(axis=1) if released.ndim == 2 else released).astype(np.intp)
        labelled = rows[asked]
        if parameters.student is not None:
            seed = block_seeds(1, session.stream("student"))[0]
            student = postprocess_student(parameters.student, won, labelled, rows, classes, seed)
        else:
            shares = released / n_teachers if released.ndim == 2 else np.eye(n_classes)[won]
            # The standard deviation of the noise in a share of the votes, or of a random choice without such a share.
            pure = isinstance(mechanism, GroupChoices)
            noise = math.sqrt(n_classes - 1) / n_classes if pure else mechanism.scale / n_teachers
            centred = shares - shares.mean(axis=1, keepdims=True)
            student = VoteRegressor().fit(labelled, centred, noise, rows, classes)
        return {"answered_": asked, "answers_": classes[won], "student_": student, "n_teachers_": n_teachers}

    def _teacher(self) -> Any:
        return RandomForestClassifier(10) if self.teacher is None else self.teacher

    @offers("predict_proba")
    def predict_proba(self, X: Any) -> Array:
        probabilities = self._ask("predict_proba", X)
        out = np.zeros((len(probabilities), len(self.classes_)))
        # A class that won no row has probability 0.
        out[:, encode_labels(np.asarray(self.student_.classes_), self.classes_)] = probabilities
        return out

    def _cost_of(self, parameters: Checked) -> PrivacyCost | None:
        # The numbers of rows, columns and classes change sensitivities and dimensions only.
        return make_plan(parameters, 1, 2).cost

    def _check_together(self, parameters: Checked) -> None:
        epsilon, delta, n = parameters.epsilon, parameters.delta, parameters.expected_n
        for name in ("teacher", "student"):
            if getattr(parameters, name) is not None:
                check_inner(getattr(parameters, name), name, "classifier")
        if parameters.n_teachers is None:
            teachers = DEFAULT_TEACHERS if n is None else round(TEACHERS_RATIO * math.sqrt(n))
            parameters.n_teachers = min(max(1, teachers), MOST_BLOCKS)
        if parameters.max_queries is None:
            pure = delta == 0 and parameters.private
            queries = QUERIES_RATIO * epsilon * parameters.n_teachers if pure else MOST_QUERIES
            parameters.max_queries = round(min(max(queries, 1), MOST_QUERIES))

    def _public_rows(self, n_features: int, fitted: Any = None) -> Array:
        """Return the public rows, with names of columns as in X if both have some."""
        rows = self.public_X(n_features) if callable(self.public_X) else self.public_X
        try:
            if hasattr(fitted, "feature_names_in_") and hasattr(rows, "columns"):
                rows = validate_quietly(fitted, rows, dtype=np.float64, reset=False)
            else:
                rows = check_quietly(self._encoded(rows, reset=False), dtype=np.float64)
        except (ValueError, TypeError) as error:
            raise type(error)(f"public_X must hold rows like those of X: {error}") from None
        if rows.shape[1] != n_features:
            raise ValueError(f"public_X has {rows.shape[1]} columns, and X has {n_features}")
        return np.array(rows, order="C")

    def _try_out(self, teacher: Any, rows: Array, classes: NDArray) -> None:
        """Fit teacher and student to public rows with labels in turn, to find errors before any charge."""
        n = max(min(len(rows), _TRIAL_ROWS), _TRIAL_ROWS_PER_CLASS * len(classes))
        some = rows[np.arange(n) % len(rows)]
        labels = classes[np.arange(n) % len(classes)]

        def default_student() -> None:
            # Rows of the largest numbers.
            largest = rows[np.argsort(-np.abs(rows).max(axis=1), kind="stable")[:_TRIAL_ROWS_OF_DEFAULT]]
            shares = np.eye(len(classes))[np.arange(len(largest)) % len(classes)] - 1 / len(classes)
            if not np.all(np.isfinite(VoteRegressor().fit(largest, shares, 0.0, rows, classes).predict_proba(rows))):
                raise ValueError("numbers are too large")

        def predicted(estimator: Any) -> Any:
            return prepared(estimator, 0).fit(some, labels).predict(some[:2].copy())

        if self.student is None:
            tried(default_student, "the default student")
        for name, inner in (("teacher", teacher), ("student", self.student)):
            if inner is not None:
                labels_of_two = tried(partial(predicted, inner), name)
                codes = encode_labels(np.asarray(labels_of_two), classes)
                if np.shape(labels_of_two) != (min(n, 2),) or np.any(codes < 0):
                    raise ValueError(f"{name} must be a classifier: it has to predict one of the labels for each row")
