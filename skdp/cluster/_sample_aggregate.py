"""k-means by sample and aggregate (Nissim, Raskhodnikova and Smith 2007; GUPT, Mohan and others 2012).

Records are drawn into blocks independently and in secret. k-means without privacy runs on each block. The centres of a
block are matched with reference centres, which are public or were released as in `DPKMeans`. The differences to these
are clipped and added over blocks, and their sum is released with noise (see ``blocks_l2`` and ``blocks_l1``).
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import KMeans

from ..accounting import PrivacyCost
from ..checks.params import Checked, Integer, Or, Real, Rules, anything, columns_of, real_numbers, shown
from ..parts.arrays import count_rows
from ..release import blocks as _blocks
from ..release.blocks import block_labels, block_seeds, check_inner, over_blocks, prepared
from ..release.estimator import Records, RowsMixin, Shape
from ..release.session import CallbackSupportMixin, Phases, PrivacyGuarantee, Progress, Release, ReleaseSession, Theorem
from ..sensitivity import SUM_BITS, RowLattice, blocks_l1, blocks_l2
from ._dp_kmeans import DIRECTIONS, NearestCentre
from ._refinement import deviation, noisy, plan, refine, stages, within_diagonal

Array = NDArray[np.float64]

BLOCKS = "differences, summed over blocks"

#: Part of the budget that a private reference takes.
REFERENCE_SHARE = 0.5

#: Mean number of rows of a block for each cluster, according to a noisy count, and limits of the number of blocks.
ROWS_PER_CLUSTER = 25
FEWEST_BLOCKS, MOST_BLOCKS = 5, 500

#: Number of blocks if there is no noisy number of rows.
DEFAULT_BLOCKS = 100

#: Radius of the differences, in standard deviations.
RADIUS_RATIO = 1.5


def postprocess_mean(
    released: Array, reference: Array, errors: Array | None, radii: Array, n_blocks: int, noise: float
) -> Array:
    """Return the reference plus the mean difference, weighted by its noise if the reference has noise, too."""
    difference = radii[:, None] * released / n_blocks
    if errors is not None:
        error = (noise * radii / n_blocks) ** 2
        weight = errors / np.maximum(errors + error, np.finfo(float).tiny) if noise else np.ones(len(error))
        difference *= weight[:, None]
    return reference + difference


def block_centres(estimator: Any, rows: Array, reference: Array, seed: int) -> Array:
    """Return the centres of one block, matched with the reference, or raise an exception."""
    if len(rows) < len(reference):
        raise ValueError
    centres = np.asarray(prepared(estimator, seed).fit(rows).cluster_centers_, dtype=np.float64)
    if centres.shape != reference.shape or not np.all(np.isfinite(centres)):
        raise ValueError
    return centres[linear_sum_assignment(cdist(reference, centres, "sqeuclidean"))[1]]


def clipped_differences(centres: Array, reference: Array, radii: Array) -> NDArray[np.int64]:
    """Return differences in units of the radii, clipped to the unit ball and counted in steps of ``2**-SUM_BITS``."""
    difference = centres - reference
    length = np.linalg.norm(difference, axis=1)
    scale = np.ldexp(1.0, SUM_BITS) / np.maximum(length, radii)
    return np.rint(difference * scale[:, None]).astype(np.int64)


def block_sum(
    X: Any,
    labels: NDArray[np.intp],
    n_blocks: int,
    estimator: Any,
    lattice: RowLattice,
    reference: Array,
    radii: Array,
    seeds: list[int],
    progress: Progress | None = None,
) -> Array:
    """Return the sum of clipped differences over blocks, exactly."""

    def differences(estimator: Any, rows: NDArray, targets: None, seed: int) -> NDArray[np.int64]:
        rows = np.clip(rows, lattice.lower, lattice.upper)
        centres = lattice.encode(block_centres(estimator, rows, lattice.decode(reference), seed))
        return clipped_differences(centres, reference, radii)

    compute = partial(differences, estimator)
    total = np.zeros(reference.shape, dtype=np.int64)
    for block in over_blocks(compute, X, None, n_blocks, labels, seeds, progress=progress):
        # If the estimator fails on a block, the reference takes the place of the block's centres.
        total += 0 if block is None else block
    return total.astype(np.float64) * 2.0**-SUM_BITS


def _check_reference(value: Any, name: str) -> Array:
    centres = real_numbers(value)
    if centres is None or centres.ndim != 2 or not np.all(np.isfinite(centres)):
        raise ValueError(f"{name} must be 'private' or an array of finite centres, got {shown(value)}")
    return centres


#: The public facts about the blocks: the lattice of rows, a radius in its units, and a public reference.
Design = tuple[RowLattice, float | None, Array | None]


class SampleAggKMeans(CallbackSupportMixin, NearestCentre, RowsMixin, BaseEstimator):
    r"""Private k-means by sample and aggregate, a textbook algorithm (use `DPKMeans` instead).

    k-means without privacy runs on blocks of the records, and the centres of the blocks are averaged with noise.
    :class:`DPKMeans` is more accurate. This estimator accepts any algorithm that finds centres.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, at most 10,000.
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1), far below one over the number of records. If 0, the fit is pure
        epsilon-DP. Otherwise, the noise is Gaussian.
    schema : Schema, default=None
        Declaration of the columns of X, in place of `bounds`. Explicit parameters override it.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, noise and blocks are cryptographically secure. Other values are for tests only, and give no privacy.
    n_blocks : int, default=None
        Number of blocks. If None, it is chosen for 25 rows in each cluster and block, by a noisy number of rows, and is
        100 with a public reference.
    reference : "private" or array-like of shape (n_clusters, n_features), default="private"
        Centres with which the centres of the blocks are matched. ``"private"`` spends half of the budget on centres as
        in `DPKMeans`. An array must be public and within the bounds.
    radius : float, default=None
        Clipping bound of the differences to the reference, in units of X. If None, it is the expected difference, or
        half of the diagonal of the bounds with a public reference.
    estimator : estimator, default=None
        Clusterer that is fitted to each block, with ``cluster_centers_`` after `fit`. If it fails, the reference takes
        its place. If None, it is :class:`sklearn.cluster.KMeans` from the reference.
    bounds : tuple (lower, upper)
        Public bounds of the features: numbers, or one for each column. Values beyond are clipped. Distances are in
        units of X.
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
    DPKMeans : Better centres for the same budget.

    Notes
    -----
    **Privacy.** Each record is drawn into a block independently. Therefore one record changes one block, whose
    :math:`k` clipped differences move by at most the diameter. The sum over blocks moves by at most :math:`2\sqrt k`
    radii in L2 norm (:ref:`k-means, theorem 2 <kmeans-theorem-2>`). Estimators are isolated as in
    :class:`skdp.ensemble.PATEClassifier`. The guarantee does not cover an estimator that remembers one block when it is
    fitted to the next, and warnings while another thread changes their filters.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import SampleAggKMeans, Schema
    >>> k = np.arange(10_000)
    >>> visits = np.where(k % 5 < 2, 2, 15) + k % 3
    >>> schema = Schema({"visits": (0, 20)})
    >>> model = SampleAggKMeans(
    ...     2, epsilon=1, delta=1e-6, schema=schema, random_state=0
    ... )
    >>> model.fit({"visits": visits}).predict({"visits": [3, 16]}).tolist()
    [1, 0]
    """

    _parameter_rules: ClassVar[Rules] = {
        "n_blocks": Or(None, Integer(1, _blocks.MOST_BLOCKS)),
        "reference": Or("private", _check_reference),
        "radius": Or(None, Real()),
        "estimator": anything,
    }
    _counts_outside = ("entries",)
    _fixes_cost = True
    _takes_parts = True
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
        n_blocks: int | None = None,
        reference: Any = "private",
        radius: float | None = None,
        estimator: Any = None,
        bounds: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.n_blocks = n_blocks
        self.reference = reference
        self.radius = radius
        self.estimator = estimator
        self.bounds = bounds
        self.verbose = verbose

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Checked, design: Design
    ) -> dict[str, Any]:
        (lattice, radius, public), k, X = design, parameters.n_clusters, records.X
        noise = deviation(session.mechanism(BLOCKS))
        n_blocks = parameters.n_blocks
        if public is None:
            private = refine(session, stages(k, REFERENCE_SHARE), lattice, X, k, session.stream(DIRECTIONS))
            reference, errors = np.rint(private.means), private.errors
            if n_blocks is None:
                number = float(private.counts.sum()) / (ROWS_PER_CLUSTER * k)
                n_blocks = round(min(max(number, FEWEST_BLOCKS), MOST_BLOCKS))
            # The squared distance of a block's centre consists of the noise of the reference and of the sampling error
            # of a block's mean.
            sampling = np.minimum(private.spreads * n_blocks / private.counts, private.spreads)
            radii = RADIUS_RATIO * np.sqrt(reference.shape[1] * errors + sampling)
        else:
            reference, errors = lattice.encode(public), None
            n_blocks = DEFAULT_BLOCKS if n_blocks is None else n_blocks
            radii = np.full(len(reference), np.linalg.norm(lattice.half))
        if radius is not None:
            radii = np.full(len(reference), radius)
        radii = within_diagonal(radii, lattice)

        estimator = parameters.estimator
        if estimator is None:
            estimator = KMeans(k, init=lattice.decode(reference), n_init=1)
        labels = block_labels(count_rows(X), n_blocks, session.stream("blocks"))
        seeds = block_seeds(n_blocks, session.stream("seeds"))
        total = block_sum(X, labels, n_blocks, estimator, lattice, reference, radii, seeds, session.progress)
        mean = postprocess_mean(session.release(BLOCKS, total), reference, errors, radii, n_blocks, noise)
        return {"cluster_centers_": lattice.decode(mean)}

    def _phases(self, guarantee: PrivacyGuarantee, parameters: Checked, design: Design) -> Phases:
        # Without `n_blocks`, the number of blocks follows from released counts.
        n_blocks = parameters.n_blocks if design[2] is None else parameters.n_blocks or DEFAULT_BLOCKS
        return [*super()._phases(guarantee, parameters, design)[:-1], (BLOCKS, n_blocks)]

    def _cost_of(self, parameters: Checked) -> PrivacyCost | None:
        if not isinstance(self.reference, str):
            n_features = self._planned_features(np.shape(self.reference)[-1])
            return self._plan(parameters, Shape(n_features))[0].cost
        return super()._cost_of(parameters)

    def _check_together(self, parameters: Checked) -> None:
        if parameters.estimator is not None:
            check_inner(parameters.estimator, "estimator", "clusterer")
            number = clone(parameters.estimator).get_params(deep=False).get("n_clusters", parameters.n_clusters)
            if number != parameters.n_clusters:
                raise ValueError(f"estimator must find {parameters.n_clusters} centres, and finds {number!r}")

    def _plan(self, parameters: Checked, shape: Shape) -> tuple[PrivacyGuarantee, Design]:
        n_features, epsilon, delta, k = shape.n_features, parameters.epsilon, parameters.delta, parameters.n_clusters
        lattice = RowLattice(*columns_of(parameters.bounds, "bounds", n_features))
        centres, radius = parameters.reference, parameters.radius
        if radius is not None:
            radius = radius / lattice.unit * 2.0**lattice.bits
            if radius < 1:
                raise ValueError(f"radius must be at least {lattice.unit / 2.0**lattice.bits:.3g} for these bounds")
        if isinstance(centres, str):
            centres = None
        elif centres.shape != (k, n_features) or np.any((centres < lattice.lower) | (centres > lattice.upper)):
            raise ValueError(f"reference must hold {k} centres of {n_features} columns, within the bounds")
        reference_share = REFERENCE_SHARE if centres is None else 0.0
        planned = stages(k, reference_share) if centres is None else ()
        releases, events = plan(epsilon, delta, n_features, planned)
        share, l2, l1 = 1 - reference_share, blocks_l2(k, n_features), blocks_l1(k, n_features)
        mechanism, event = noisy(epsilon, delta, share, l2, l1, k * n_features)
        releases = (*releases, Release(BLOCKS, mechanism, share, Theorem("k-means", 2)))
        return PrivacyGuarantee(epsilon, delta, (*events, event), releases), (lattice, radius, centres)
