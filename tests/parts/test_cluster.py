"""Worker processes: the same bits, also where one is killed in the middle of a descent, and logs without values."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

from skdp import DPMLPClassifier, DPNaiveBayes, DPSGDClassifier, ObjPertLogReg, stats
from skdp.parts.arrays import KeptObjects
from tests.accounting.faults_harness import environment
from tests.collections_of_parts import CERTIFIED, IN_PARTS, TOLERANCE, frames, rows_of
from tests.estimators import data_for, released

distributed = pytest.importorskip("distributed", reason="Dask is not installed")

ONE_OF_EACH = list({type(one): one for one in IN_PARTS}.values())

pytestmark = [
    # Sockets of a cluster that ends.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


# The scheduler and the processes that restart workers have their own interpreter: here, threads of earlier tests may
# hold what they wait for.
CLUSTER = """
import logging, sys
from distributed import LocalCluster
if __name__ == "__main__":
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options, silence_logs=logging.CRITICAL) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


@pytest.fixture(scope="module")
def client(request):
    if request.config.getoption("--sample"):
        pytest.skip("worker processes are started by `make test-all`")
    variables = environment(PYTHONWARNINGS="ignore", DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT="300s")
    started = subprocess.Popen(
        [sys.executable, "-c", CLUSTER], env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    # Closing its input ends the process.
    with started, distributed.Client(started.stdout.readline().strip(), timeout=300) as client:
        yield client


@pytest.fixture
def cluster(client):
    # A worker that an earlier test has killed may not be back.
    client.wait_for_workers(2, timeout=300)
    return client


@pytest.mark.parametrize("estimator", ONE_OF_EACH, ids=lambda one: type(one).__name__)
def test_fits_of_processes_are_those_in_memory(estimator, cluster):
    arrays = rows_of(estimator)
    a, b = (released(clone(estimator).fit(*some)) for some in (arrays, frames(*arrays)))
    if type(estimator).__name__ in CERTIFIED:
        np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE)
    else:
        assert a.tobytes() == b.tobytes()


def test_statistics_of_processes_are_those_in_memory(cluster):
    X, _ = data_for(DPNaiveBayes())
    a, b = (stats.mean(some, bounds=(-3, 3), random_state=0).value for some in (X, frames(X)[0]))
    assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize(
    "estimator",
    [
        DPSGDClassifier(delta=1e-6, data_norm=3.0, classes=[0, 1], n_steps=20, random_state=0),
        DPSGDClassifier(delta=1e-6, data_norm=3.0, classes=[0, 1], n_steps=20, batch_size=0.3, random_state=0),
        DPMLPClassifier(delta=1e-6, data_norm=3.0, classes=[0, 1], n_steps=20, random_state=0),
        ObjPertLogReg(delta=1e-6, data_norm=3.0, classes=[0, 1], random_state=0),
    ],
    ids=lambda one: f"{type(one).__name__}-{getattr(one, 'batch_size', '')}",
)
def test_a_worker_that_is_killed_changes_nothing(estimator, cluster, monkeypatch):
    arrays, killed, sums = rows_of(estimator), [], KeptObjects.sum

    def deadly(self, *arguments):
        killed.append(len(killed))
        if len(killed) == 3:
            # Workers of this test, by the numbers of their processes.
            os.kill(next(iter(cluster.run(os.getpid).values())), signal.SIGKILL)
        return sums(self, *arguments)

    expected = released(clone(estimator).fit(*arrays))
    monkeypatch.setattr(KeptObjects, "sum", deadly)
    found = released(clone(estimator).fit(*frames(*arrays)))
    assert len(killed) > 3
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE if type(estimator).__name__ in CERTIFIED else 0)


def test_logs_and_events_hold_no_values(cluster):
    X, y = data_for(DPNaiveBayes())
    X = X.copy()
    X[300] = 123456.789
    X[301, 0] = np.nan
    model = DPNaiveBayes(bounds=(-3, 3), classes=[0, 1])
    with pytest.raises(ValueError, match="partition"):
        model.fit(*frames(X, y))
    found = "\n".join(
        map(str, [*cluster.get_worker_logs().values(), cluster.get_scheduler_logs(), cluster.get_events()])
    )
    assert "123456" not in found
    # The test is able to fail: an engine logs the message of an exception.
    with pytest.raises(ValueError, match="123456"):
        cluster.submit(_raising, X[300:301]).result()
    assert "123456" in "\n".join(map(str, cluster.get_worker_logs().values()))


def _raising(rows):
    raise ValueError(str(rows))
