"""Private k-means: a coreset by refinement, k-means on it from many starts, and a last private step."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.utils.validation import check_is_fitted

from ..checks.data import validate_quietly
from ..checks.params import Checked, Integer, Rules, columns_of
from ..checks.silence import DiscreetMethods
from ..release.estimator import Records, RowsMixin, Shape
from ..release.session import CallbackSupportMixin, PrivacyGuarantee, ReleaseSession
from ..sensitivity import RowLattice, nearest, row_products, squared_norms
from ._refinement import plan, refine, stages

Array = NDArray[np.float64]


class NearestCentre(DiscreetMethods, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin):
    """Mixin of clusterers with the attribute `cluster_centers_`."""

    _parameter_rules: ClassVar[Rules] = {"n_clusters": Integer(1, 10**4)}

    cluster_centers_: Array

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _rows(self, X: Any) -> NDArray:
        check_is_fitted(self, "cluster_centers_")
        # The distances are doubles, because single precision may not hold the centres.
        return validate_quietly(self, X, dtype=np.float64, reset=False)

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the nearest centre of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. They are not clipped.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Positions in ``cluster_centers_``.
        """
        return nearest(self._rows(X), self.cluster_centers_).astype(np.int32)

    def transform(self, X: Any) -> Array:
        """Return the distance of each row to each centre.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. They are not clipped.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            Euclidean distances.
        """
        rows, centres = self._rows(X), self.cluster_centers_
        with np.errstate(all="ignore"):
            squares = row_products(rows, -2 * centres.T)
            squares += squared_norms(rows)[:, None]
            squares += squared_norms(centres)
            distances: Array = np.sqrt(np.maximum(squares, 0.0))
            # If squares overflow, all centres are at the same distance, up to rounding.
            (far,) = np.nonzero(~np.isfinite(squares).all(axis=1))
            norms = np.hypot.reduce(rows[far], axis=1)
            distances[far] = np.minimum(norms, np.finfo(np.float64).max)[:, None]
        return distances

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the sum of squared distances of rows to their nearest centres.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. They are not clipped.
        y : None
            Not used.

        Returns
        -------
        score : float
            The score is a function of these rows, and therefore not private.
        """
        return -float(np.sum(pairwise_distances_argmin_min(self._rows(X), self.cluster_centers_)[1] ** 2))

    def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> NDArray[np.int32]:
        """Fit, and return the nearest centre of each row.

        The labels are for the owner of the rows. Each label is a function of its own row and of the private centres.
        Therefore published labels disclose something about every record, and no budget covers this.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite rows.
        y : None
            Not used.
        **kwargs : dict
            Passed to `fit`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Positions in ``cluster_centers_``.
        """
        return self.fit(X, y, **kwargs).predict(X)


#: The random stream for the positions of public centres.
DIRECTIONS = "directions"


class DPKMeans(CallbackSupportMixin, NearestCentre, RowsMixin, BaseEstimator):
    r"""Differentially private k-means.

    Noisy sums over successively better cells make a private coreset. k-means runs on the coreset from many starts,
    which is post-processing. One private step of Lloyd's algorithm ends the fit.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, at most 10,000.
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1). If 0, the fit is pure epsilon-DP, and the noise is several times as large
        for more than a few features. Otherwise, the noise is Gaussian. Choose a value far below one over the expected
        number of records.
    schema : Schema, default=None
        Public facts about the columns of the table X, which may hold text and missing values, in place of `bounds`. A
        parameter that is set takes precedence.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.
    bounds : tuple (lower, upper)
        Public bounds of the features: numbers, or one for each column. Values beyond are clipped, without a warning.
        Distances are in units of X, as in :class:`sklearn.cluster.KMeans`. Scale features first, by public numbers.
    verbose : int, default=0
        Whether to print the progress of `fit`. 0 prints nothing, 1 a line for each phase and for about ten steps of a
        phase, and 2 or more up to a hundred steps. The lines hold public numbers and the elapsed time. The elapsed time
        depends on the data, and the guarantee does not cover it.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Private centres, within the bounds.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    SampleAggKMeans : Centres from k-means on blocks of the records. It is less accurate.

    Notes
    -----
    **Privacy.** For each cell of public centres, there are four releases of a count, of the sum of the differences to
    the centre, clipped to a radius, and (except for the last release) of the sum of their squares. One record belongs
    to one cell. In units of the radius, and with weights :math:`a=b=3/8`, it moves such a release by at most
    :math:`\sqrt{a^2+1+b^2}` in L2 norm (:ref:`k-means, theorem 1 <kmeans-theorem-1>`). The centres and radii of a
    release are computed from earlier releases. The rest is post-processing. There are no ``labels_``, ``inertia_`` and
    ``n_iter_``, because these are functions of the private rows. The guarantee covers neither an error for values that
    are not finite nor the time that `fit` takes.

    References
    ----------
    .. [1] A. Blum, C. Dwork, F. McSherry and K. Nissim, "Practical Privacy: The SuLQ Framework", PODS 2005.
    .. [2] D. Su, J. Cao, N. Li, E. Bertino and H. Jin, "Differentially Private k-Means Clustering", CODASPY 2016.
    .. [3] A. Chang, B. Ghazi, R. Kumar and P. Manurangsi, "Locally Private k-Means in One Round", ICML 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skdp.cluster import DPKMeans
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = DPKMeans(10, epsilon=1.0, delta=1e-5, bounds=(0, 16), random_state=0).fit(X)
    >>> model.cluster_centers_.shape
    (10, 64)
    """

    _counts_outside = ("entries",)
    _takes_parts = True
    _fixes_cost = True
    _released = frozenset({"cluster_centers_"})

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        bounds: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.bounds = bounds
        self.verbose = verbose

    def _plan(self, parameters: Checked, shape: Shape) -> tuple[PrivacyGuarantee, RowLattice]:
        epsilon, delta = parameters.epsilon, parameters.delta
        releases, events = plan(epsilon, delta, shape.n_features, stages(parameters.n_clusters))
        lattice = RowLattice(*columns_of(parameters.bounds, "bounds", shape.n_features))
        return PrivacyGuarantee(epsilon, delta, events, releases), lattice

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Checked, lattice: RowLattice
    ) -> dict[str, Any]:
        k = parameters.n_clusters
        clusters = refine(session, stages(k), lattice, records.X, k, session.stream(DIRECTIONS))
        return {"cluster_centers_": lattice.decode(clusters.means)}
