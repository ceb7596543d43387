r"""Principal components of one noisy matrix of second moments (Analyze Gauss; Dwork, Talwar, Thakurta and Zhang 2014).

Released, once: the second moments of the rows, with their sum and number. The noise is a symmetric Gaussian matrix, or
that of the L2 mechanism if delta is 0. Components, variances and the mean are computed from what was released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._params import check_choice, check_integer
from .._release import PrivacyGuarantee, Release, ReleaseSession, check_accountant
from ..accounting import PrivacyCost, PrivacyEvent, PureEvent
from ..mechanisms import Mechanism, NoiseSource, NoNoise, l2_mechanism, within_reach
from ..sensitivity import centred_moments_l2, pack_symmetric, unpack_symmetric
from ._base import Array, Parameters, PrivatePCA, postprocess_components, postprocess_variances
from ._exponential import BinghamParameters, check_exponential, fit_exponential
from ._exponential import plan as exponential_plan
from ._moments import Sums, second_moments

SOLVERS = ("auto", "matrix", "bingham")

MOMENTS = "second moments, sum and number of rows"

#: Weight of the sum of rows in the joint release, as a multiple of their norm, and of their number, as a multiple of
#: its square, with a private mean and without.
SUM_WEIGHT = 0.7
COUNT_WEIGHT = 0.25
LONE_COUNT_WEIGHT = 0.125

#: With delta = 0, the matrix is taken from so many records on, times n_features^2 / (n_components epsilon).
MATRIX_FROM = 10.0


@dataclass(frozen=True, eq=False)
class MatrixParameters(Parameters):
    """The checked parameters of a fit."""

    solver: str

    def chosen(self, n_features: int) -> str:
        """Return the solver, by public numbers."""
        if self.solver != "auto":
            return self.solver
        if self.delta > 0 or not self.private:
            return "matrix"
        least = MATRIX_FROM * n_features**2 / (self.components(n_features) * self.epsilon)
        return "matrix" if self.expected_n is not None and self.expected_n > least else "bingham"

    @property
    def sum_weight(self) -> float:
        return SUM_WEIGHT * self.data_norm if self.center == "private" else 0.0

    @property
    def count_weight(self) -> float:
        """What a record adds to the last number of the release; 0 if that is not part of it."""
        if self.center == "private":
            return COUNT_WEIGHT * self.data_norm**2
        return LONE_COUNT_WEIGHT * self.data_norm**2 if self.expected_n is None else 0.0


def plan(parameters: MatrixParameters, n_features: int) -> PrivacyGuarantee:
    """Return the one release of a fit by a noisy matrix."""
    parameters.components(n_features)
    parameters.centre(n_features)
    sensitivity = centred_moments_l2(parameters.data_norm, parameters.sum_weight, parameters.count_weight)
    size = n_features * (n_features + 1) // 2 + (parameters.sum_weight > 0) * n_features + (parameters.count_weight > 0)
    mechanism: Mechanism = NoNoise(sensitivity)
    event: PrivacyEvent = PureEvent(math.inf)
    if parameters.private:
        mechanism, event = l2_mechanism(parameters.epsilon, parameters.delta, 1.0, sensitivity, size)
    release = Release(MOMENTS, mechanism, 1.0, "PCA, theorem 5")
    return PrivacyGuarantee(parameters.epsilon, parameters.delta, (event,), (release,))


def pack(sums: Sums, parameters: MatrixParameters) -> Array:
    """List the sums, weighted, as one vector."""
    parts = [pack_symmetric(sums.gram, math.sqrt(2))]
    if parameters.sum_weight:
        parts.append(parameters.sum_weight * sums.total)
    if parameters.count_weight:
        parts.append(np.array([parameters.count_weight * sums.count]))
    return np.concatenate(parts)


def unpack(released: Array, n_features: int, parameters: MatrixParameters) -> Sums:
    """Return the released sums; the number of rows is at least 1, and the public one if there is that."""
    size = n_features * (n_features + 1) // 2
    gram = unpack_symmetric(released[:size], n_features, math.sqrt(2))
    total = np.zeros(n_features)
    if parameters.sum_weight:
        total = released[size : size + n_features] / parameters.sum_weight
    count = parameters.expected_n
    if count is None:
        count = max(float(released[-1]) / parameters.count_weight, 1.0)
    return Sums(gram, total, count)


def postprocess_mean(sums: Sums, norm: float) -> tuple[Array, Array]:
    """Return the mean, within the ball that all rows are in, and the second moments about it."""
    mean = sums.total / sums.count
    mean *= norm / max(float(np.linalg.norm(mean)), norm)
    return mean, sums.gram - sums.count * np.outer(mean, mean)


class DPPCA(PrivatePCA):
    r"""Differentially private principal components, from one noisy matrix of second moments.

    The mean, all components and the variances along them come from one release, so that their number and centring are
    free. With `delta`, the noise is Gaussian, and this is the analysis to use.

    Parameters
    ----------
    n_components : int, default=None
        Number of components; None is one for each column.
    epsilon : float, default=1.0
        Privacy budget of one fit, positive. ``inf`` adds no noise and gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1). With 0, the fit is pure epsilon-DP, and much weaker.
    data_norm : float
        Largest L2 norm of a row, from public knowledge, after a public `center` is subtracted. Longer rows are scaled
        down to it, silently.
    center : {"none", "private"} or array-like of shape (n_features,), default="private"
        What is subtracted from rows: nothing, a public vector, or the private mean.
    solver : {"auto", "matrix", "bingham"}, default="auto"
        ``"matrix"`` is the noisy matrix; ``"bingham"`` draws components as :class:`ExpMechPCA` does. ``"auto"`` takes
        the matrix if delta is positive, or if `expected_n` is given and exceeds
        ``10 * n_features**2 / (n_components * epsilon)``.
    whiten : bool, default=False
        Whether `transform` divides coordinates by their standard deviations, as far as these exceed a thousandth of
        `data_norm`.
    expected_n : float, default=None
        Number of records, roughly, if it is publicly known. None estimates it.
    accountant : BudgetAccountant, default=None
        Budget that is charged before any noise is drawn. ``clone`` shares it.
    random_state : int, RandomState, Generator or None, default=None
        None takes noise from the operating system's cryptographic generator. Anything else makes noise that can
        be reproduced, and subtracted: for tests only.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal directions, by falling variance. The largest entry of each is positive.
    mean_ : ndarray of shape (n_features,)
        What is subtracted: zeros, the public vector, or the private mean.
    explained_variance_ : ndarray of shape (n_components,)
        Noisy variances along the components. Without centring, mean squares.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The same as a part of the whole variance.
    singular_values_ : ndarray of shape (n_components,)
        Square roots of the noisy sums of squares along the components.
    noise_variance_ : float
        Noisy mean variance along the directions that are left.
    n_components_ : int
        Number of components.
    solver_ : str
        What ``solver="auto"`` came to, by public numbers.
    privacy_ : PrivacyGuarantee
        The guarantee, with mechanism, sensitivity and noise scale.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, where X has string names.

    See Also
    --------
    ExpMechPCA : Components drawn one after the other, by the exponential mechanism.

    Notes
    -----
    **Privacy.** A record :math:`x` with :math:`\|x\|\le R` adds :math:`(x x^\top, s x, c)` to the second moments, and
    to the weighted sum and number of rows: with the Frobenius norm, :math:`\sqrt{R^4 + s^2 R^2 + c^2}` in all. Gaussian
    noise of one variance in the coordinates of svec is a symmetric Gaussian matrix with half that variance off its
    diagonal. The pure variant takes noise of the L2 mechanism. Everything else is computed from the release. The result
    of `transform` on the rows that were fitted is a function of these rows, and not private. Not covered: that `fit`
    raises an error for values that are not finite, and how long it takes.

    References
    ----------
    .. [1] C. Dwork, K. Talwar, A. Thakurta and L. Zhang, "Analyze Gauss: Optimal Bounds for Privacy-Preserving
       Principal Component Analysis", STOC 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skdp.decomposition import DPPCA
    >>> X = load_digits().data / 16
    >>> pca = DPPCA(2, epsilon=1.0, delta=1e-5, data_norm=4.0, random_state=0).fit(X)
    >>> pca.transform(X).shape
    (1797, 2)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        data_norm: float | None = None,
        center: Any = "private",
        solver: str = "auto",
        whiten: bool = False,
        expected_n: float | None = None,
        accountant: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.center = center
        self.solver = solver
        self.whiten = whiten
        self.expected_n = expected_n
        self.accountant = accountant
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the components, and spend epsilon and delta.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite rows, scaled down to `data_norm`.
        y : Ignored
            Here for a signature that all estimators share.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        BudgetError
            If the accountant does not admit the fit. Nothing is computed from the data then.
        """
        accountant = check_accountant(self.accountant)
        parameters = self._check_parameters()
        source = NoiseSource(self.random_state)
        X = self._read(X)
        n_features = X.shape[1]
        guarantee = self._plan(parameters, n_features)
        session = ReleaseSession(guarantee, accountant=accountant, source=source, estimator=type(self).__name__)
        if parameters.chosen(n_features) == "bingham":
            fit_exponential(self, X, self._bingham(), guarantee, session)
        else:
            self._fit_matrix(X, parameters, guarantee, session)
        self.solver_ = parameters.chosen(n_features)
        self.privacy_ = guarantee
        return self

    def _fit_matrix(
        self, X: Array, parameters: MatrixParameters, guarantee: PrivacyGuarantee, session: ReleaseSession
    ) -> None:
        n_features = X.shape[1]
        k = parameters.components(n_features)
        centre = parameters.centre(n_features)
        sums = second_moments(X, centre, parameters.data_norm, parameters.private)
        value = within_reach(guarantee.releases[0].mechanism, pack(sums, parameters))
        released = unpack(session.release(MOMENTS, value), n_features, parameters)

        gram, count = released.gram, released.count
        if parameters.center == "private":
            centre, gram = postprocess_mean(released, parameters.data_norm)
            count = count - 1 if count >= 2 else count
        values, vectors = np.linalg.eigh(gram)
        top = np.maximum(values[::-1][:k], 0.0)
        self._set_variances(postprocess_variances(top, float(values.sum() - top.sum()), count, n_features))
        self.components_ = postprocess_components(vectors.T[::-1][:k])
        self.mean_ = centre.copy()
        self.n_components_ = k

    def privacy_plan(self, *, n_features: int, n_classes: int | None = None) -> PrivacyGuarantee:
        """Return the guarantee that `fit` will give, without any data.

        Parameters
        ----------
        n_features : int
            Number of columns of X.
        n_classes : int, optional
            Not used; here for a signature that all estimators share.

        Returns
        -------
        plan : PrivacyGuarantee
            Equal to ``privacy_`` after a fit on such data.
        """
        return self._plan(self._check_parameters(), check_integer(n_features, "n_features", least=1))

    def _plan(self, parameters: MatrixParameters, n_features: int) -> PrivacyGuarantee:
        if parameters.chosen(n_features) == "bingham":
            return exponential_plan(self._bingham(), n_features)
        return plan(parameters, n_features)

    def _fixed_cost(self) -> PrivacyCost | None:
        parameters = self._check_parameters()
        columns = (parameters.n_components or 1) if parameters.vector is None else len(parameters.vector)
        open_choice = parameters.solver == "auto" and parameters.delta == 0 and parameters.expected_n is not None
        if open_choice or (parameters.chosen(columns) == "bingham" and parameters.n_components is None):
            return None
        # The number of columns changes dimensions only.
        return self._plan(parameters, columns).cost

    def _bingham(self) -> BinghamParameters:
        return check_exponential(self._common_parameters(), None, 0.1)

    def _check_parameters(self) -> MatrixParameters:
        return MatrixParameters(**self._common_parameters(), solver=check_choice(self.solver, "solver", SOLVERS))
