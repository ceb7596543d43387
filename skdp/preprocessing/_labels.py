"""Private release of the labels that occur, for classifiers whose label set is not public."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ..accounting import ApproximateEvent, PrivacyCost, PrivacyEvent, PureEvent, check_delta, check_epsilon
from ..checks.data import encode_labels, label_array, labels_of
from ..checks.params import By, Real, Rules, anything, check_classes, check_parameters
from ..exceptions import NotEnoughDataError
from ..mechanisms import DiscreteLaplaceMechanism, Mechanism, NoiseSource, NoNoise, StabilityThreshold
from ..release.mixin import DPEstimatorMixin
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem, check_accountant

_LABELS = "labels that occur"


def make_plan(epsilon: float, delta: float, n_candidates: int | None) -> PrivacyGuarantee:
    """Return the one release, for a number of candidates, or for any labels."""
    event: PrivacyEvent = PureEvent(epsilon)
    mechanism: Mechanism
    theorem = Theorem("Preprocessing", 3)
    if epsilon == math.inf:
        mechanism = NoNoise(1.0)
    elif n_candidates is not None:
        mechanism = DiscreteLaplaceMechanism(epsilon, 1.0, n_candidates)
    elif delta > 0:
        mechanism, event = StabilityThreshold(epsilon, delta), ApproximateEvent(epsilon, delta)
    else:
        raise ValueError(
            "delta must be positive if universe is None: with delta=0, labels can be released from a universe only"
        )
    return PrivacyGuarantee(epsilon, delta, (event,), (Release(_LABELS, mechanism, 1.0, theorem),))


class PrivateLabelSet(DPEstimatorMixin, BaseEstimator):
    r"""Release the labels that occur, for the `classes` of a later step.

    If the label set is public, declare it. A declared set uses no budget, and keeps rare labels. Use this estimator if
    the list of labels is private, too.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1). Must be strictly positive if `universe` is None, and is ignored otherwise.
    universe : array-like, default=None
        Public candidates, at least two. Other labels are left out. If None, any label can be released.
    false_alarm : float, default=0.01
        Largest probability that a candidate without records is released. Only used with `universe`. Otherwise, there
        are none.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Released labels, sorted. Whole numbers are integers for every type of `y`. There may be a single label,
        which classifiers refuse, because they need two.
    threshold_ : int
        A label is released if its noisy count is at least this number, which is public.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.

    Notes
    -----
    **Privacy.** One record changes the count of one label by 1. With public candidates, all their counts get discrete
    Laplace noise. Otherwise, a label that occurs is released if its count with truncated noise exceeds a threshold
    (:ref:`preprocessing, theorem 3 <preprocessing-theorem-3>`). A label with a single record is released with
    probability `delta` at most. If no label is released, the fit raises NotEnoughDataError, and the budget was charged.
    Classifiers with these ``classes_`` leave out the records with other labels. The guarantee does not cover whether
    `y` is an array of truth values, an error for missing or infinite labels, for text among numbers, and for labels of
    which none has the type of those in `universe`, and the time that `fit` takes.

    References
    ----------
    .. [1] A. Korolova, K. Kenthapadi, N. Mishra and A. Ntoulas, "Releasing Search Queries and Clicks Privately", WWW
       2009.
    .. [2] D. Desfontaines, J. Voss, B. Gipson and C. Mandayam, "Differentially Private Partition Selection", PoPETs
       2022.

    Examples
    --------
    >>> from skdp.preprocessing import PrivateLabelSet
    >>> y = ["flu"] * 500 + ["cold"] * 300 + ["a rare disease"]
    >>> PrivateLabelSet(epsilon=1.0, delta=1e-6).fit(y).classes_.tolist()
    ['cold', 'flu']
    """

    _parameter_rules: ClassVar[Rules] = {
        "epsilon": By(check_epsilon),
        "delta": By(check_delta),
        "universe": check_classes,
        "false_alarm": Real(1e-12, 0.5),
        "accountant": By(check_accountant),
        "random_state": anything,
    }
    classes_: NDArray

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        universe: Any = None,
        false_alarm: float = 0.01,
        accountant: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.universe = universe
        self.false_alarm = false_alarm
        self.accountant = accountant
        self.random_state = random_state

    def fit(self, y: Any) -> Self:
        """Release the labels that occur, and spend epsilon and delta.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Labels. All must be text, or all must be numbers, unless `universe` is given. There may be none.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        BudgetError
            If the accountant does not admit the fit. Nothing is computed from the data then.
        NotEnoughDataError
            If no label is released. The budget was charged: ``privacy_`` is set, and there are no ``classes_``.
        """
        accountant = check_accountant(self.accountant)
        plan, universe, threshold = self._planned()
        source = NoiseSource(self.random_state)
        # Candidates are looked up among labels of any type. Other labels are left out.
        labels = label_array(y) if universe is None else _candidates(labels_of(y), universe)

        session = ReleaseSession(plan, accountant=accountant, source=source, estimator=type(self).__name__)
        if universe is None:
            candidates, counts = np.unique(labels, return_counts=True)
            released = session.release(_LABELS, counts) >= 1
        else:
            candidates, counts = universe, np.bincount(labels[labels >= 0], minlength=len(universe))
            released = session.release(_LABELS, counts) >= threshold
        # The labels of an earlier fit must not remain if this fit releases no label.
        if hasattr(self, "classes_"):
            del self.classes_
        self.threshold_, self.privacy_ = threshold, plan
        if not np.any(released):
            raise NotEnoughDataError("no label occurs often enough to be released. The budget was charged")
        # The type of the array must not depend on labels that are missing. One number of another type changes the type
        # of an array, of a list and of a column.
        values = candidates[released].tolist()
        if candidates.dtype.kind not in "USb":
            values = [int(value) if value == int(value) else value for value in values]
        self.classes_ = np.array(values)
        return self

    def privacy_plan(self, *, n_features: int | None = None, n_classes: int | None = None) -> PrivacyGuarantee:
        """Return the guarantee that `fit` will give, without any data.

        Parameters
        ----------
        n_features : int, optional
            Ignored.
        n_classes : int, optional
            Ignored.

        Returns
        -------
        plan : PrivacyGuarantee
            Equal to ``privacy_`` after a fit.
        """
        return self._planned()[0]

    def _fixed_cost(self) -> PrivacyCost:
        return self.privacy_plan().cost

    def _planned(self) -> tuple[PrivacyGuarantee, NDArray | None, int]:
        """Return the plan, the candidates, and the smallest noisy count at which a candidate is released."""
        parameters = check_parameters(self)
        universe = parameters.universe
        n_candidates = None if universe is None else len(universe)
        plan = make_plan(parameters.epsilon, parameters.delta, n_candidates)
        mechanism, threshold = plan.releases[0].mechanism, 1
        if isinstance(mechanism, StabilityThreshold):
            threshold = mechanism.threshold + 1
        elif isinstance(mechanism, DiscreteLaplaceMechanism):
            a = 1 / mechanism.scale
            # P(K >= k) = exp(-a k) / (1 + exp(-a))
            candidates_per_alarm = math.log((n_candidates or 1) / parameters.false_alarm)
            threshold = max(1, math.ceil((candidates_per_alarm - math.log1p(math.exp(-a))) / a))
        return plan, universe, threshold


def _candidates(labels: NDArray, universe: NDArray) -> NDArray[np.intp]:
    """Return positions of labels among the candidates, or -1 for others."""
    try:
        return encode_labels(labels, universe)
    except TypeError:
        pass
    # The original message names a parameter that does not exist here.
    raise TypeError("the labels in y are of another type than those in universe")
