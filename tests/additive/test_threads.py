"""Small matrices use one thread of BLAS, and the limit ends with the context."""

from threadpoolctl import threadpool_info

from skdp.additive._curves import blas_threads


def blas():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_small_matrices_use_one_thread():
    before = blas()
    assert before
    with blas_threads(100):
        assert set(blas()) == {1}
    assert blas() == before
    with blas_threads(10**5):
        assert blas() == before
