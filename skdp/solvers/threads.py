"""How many threads products and factors of matrices may use."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from threadpoolctl import threadpool_limits

# Matrices of fewer rows are too small to gain from several threads. While other processes are at work, threads that
# wait for one another make small products many times slower.
_FEWEST = 4096


def blas_threads(size: int) -> AbstractContextManager[Any]:
    """Return a context in which BLAS uses one thread, if the matrices have fewer rows and columns than some thousands.

    The limit holds for the whole process, as does that of scikit-learn's estimators.
    """
    return threadpool_limits(1, "blas") if size < _FEWEST else nullcontext()
