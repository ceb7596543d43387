"""Private k-means: a coreset by refinement, k-means on it from many starts, and a last private step."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.utils.validation import check_is_fitted

from ..checks.data import of_valid_rows, validate_quietly
from ..checks.params import Checked, Integer, Rules, columns_of
from ..checks.silence import DiscreetMethods
from ..release.estimator import Records, RowsMixin, Shape
from ..release.session import CallbackSupportMixin, PrivacyGuarantee, ReleaseSession
from ..sensitivity import RowLattice, nearest, row_products, sparse_squared_norms, squared_norms
from ._refinement import plan, refine, stages

Array = NDArray[np.float64]


class NearestCentre(DiscreetMethods, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin):
    """Mixin of clusterers with the attribute `cluster_centers_`."""

    _parameter_rules: ClassVar[Rules] = {"n_clusters": Integer(1, 10**4)}

    cluster_centers_: Array

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self, "cluster_centers_")
        # The distances are doubles, because single precision may not hold the centres.
        return validate_quietly(self, X, dtype=np.float64, reset=False)

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the nearest centre of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows. They are not clipped.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Positions in ``cluster_centers_``.
        """
        check_is_fitted(self, "cluster_centers_")
        labels: NDArray = of_valid_rows(lambda rows: nearest(rows, self.cluster_centers_), self, X)
        return labels.astype(np.int32)

    def transform(self, X: Any) -> Array:
        """Return the distance of each row to each centre.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows. They are not clipped.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            Euclidean distances.
        """
        rows, centres = self._rows(X), self.cluster_centers_
        with np.errstate(all="ignore"):
            squares = row_products(rows, -2 * centres.T)
            squares += (sparse_squared_norms(rows) if issparse(rows) else squared_norms(rows))[:, None]
            squares += squared_norms(centres)
            distances: Array = np.sqrt(np.maximum(squares, 0.0))
            # If squares overflow, all centres are at the same distance, up to rounding.
            (far,) = np.nonzero(~np.isfinite(squares).all(axis=1))
            for k in far:
                row = rows[[k]].data if issparse(rows) else rows[k]
                distances[k] = min(np.hypot.reduce(row), np.finfo(np.float64).max)
        return distances

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the sum of squared distances of rows to their nearest centres.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
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
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
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
        In [0, 1), far below one over the number of records. If 0, the fit is pure epsilon-DP, and the noise is several
        times as large for more than a few features.
    schema : Schema, default=None
        Declaration of the columns of X, in place of `bounds`. Explicit parameters override it.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.
    bounds : tuple (lower, upper)
        Public bounds of the features: numbers, or one for each column. Values beyond are clipped. Distances are in
        units of X. Scale features first, by public numbers.
    verbose : int, default=0
        Lines of progress to print: 0 for none, 1 for about ten in each phase (see :doc:`/user_guide/progress`).

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Private centres, within the bounds. With `schema`, ``TableEncoder(schema).inverse_transform(cluster_centers_)``
        returns them in the units of the table.
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
    **Privacy.** Four releases hold, for each cell of centres that are public or follow from earlier releases, a count,
    the sum of the clipped differences to the centre, and (except for the last release) the sum of their squares. One
    record belongs to one cell, and moves such a release by at most :math:`\sqrt{a^2+1+b^2}` in L2 norm, in units of the
    radius, with :math:`a=b=3/8` (:ref:`k-means, theorem 1 <kmeans-theorem-1>`). The rest is post-processing. There are
    no ``labels_``, ``inertia_`` and ``n_iter_``, because these are functions of the private rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPKMeans, Schema
    >>> k = np.arange(5000)
    >>> visits = np.where(k % 5 < 2, 2, 15) + k % 3
    >>> spent = 10 * visits + 5 * np.sin(k)
    >>> schema = Schema({"visits": (0, 20), "spent": (0, 200)})
    >>> model = DPKMeans(2, epsilon=1.0, delta=1e-6, schema=schema, random_state=0)
    >>> model = model.fit({"visits": visits, "spent": spent})
    >>> model.predict({"visits": [3, 16], "spent": [30, 160]}).tolist()
    [1, 0]
    """

    _counts_outside = ("entries",)
    _takes_parts = True
    _takes_sparse = True
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
