"""What leaves the client and what leaves a partition: no secrets, no values, and never rows of another reading."""

import io
import logging
import pickle
import time
import traceback

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skdp import BudgetAccountant, DPGreedyTree, DPNaiveBayes, DPSGDClassifier, SampleAggregate
from skdp.exceptions import PartitionError
from skdp.mechanisms import GaussianMechanism, NoiseSource
from skdp.parts import arrays, tasks
from skdp.parts.arrays import is_collection
from tests.collections_of_parts import BLOCKS, CERTIFIED, IN_PARTS, MANY_PASSES, frames, rows_of
from tests.estimators import data_for, name_of

dask = pytest.importorskip("dask", reason="Dask is not installed")

SEED = 314159265


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="synchronous"):
        yield


def model(**parameters):
    return DPNaiveBayes(**{"bounds": (-3, 3), "classes": [0, 1], "random_state": 0, **parameters})


@pytest.mark.parametrize("estimator", IN_PARTS, ids=name_of)
def test_no_job_holds_a_secret(estimator, monkeypatch):
    jobs = []
    dumps = arrays.dumps
    monkeypatch.setattr(arrays, "dumps", lambda job: jobs.append(dumps(job)) or jobs[-1])
    accountant = BudgetAccountant(epsilon=1e8, delta=0.9)
    fitted = clone(estimator).set_params(accountant=accountant, random_state=SEED)
    with pytest.warns(UserWarning, match="random_state"):
        fitted.fit(*frames(*rows_of(fitted)))
    assert jobs
    for job in jobs:
        for secret in (b"BudgetAccountant", b"NoiseSource", b"Mechanism", b"skdp.accounting"):
            assert secret not in job
        # The model of a block has this parameter, too, without the user's value.
        assert type(estimator).__name__ in BLOCKS or b"random_state" not in job
        assert SEED.to_bytes(4, "little") not in job


@pytest.mark.parametrize(
    "secret",
    [
        NoiseSource(0),
        NoiseSource(0).stream("noise"),
        BudgetAccountant(epsilon=1.0),
        GaussianMechanism(1.0, 1.0, 1),
        model(),
        np.random.default_rng(0),
    ],
    ids=lambda secret: type(secret).__name__,
)
def test_secrets_are_not_pickled(secret):
    with pytest.raises(TypeError, match="must not leave the client"):
        arrays.dumps(lambda rows: (secret, rows))
    # The test is able to fail.
    assert pickle.loads(arrays.dumps(lambda rows: rows + 1))(1) == 2


def test_an_array_in_parts_is_neither_read_nor_sent():
    from skdp.parts import lowered

    X, _ = lowered(*frames(*data_for(model())))
    for attempt in (lambda: len(X), lambda: np.asarray(X), lambda: X + 1, lambda: list(X)):
        with pytest.raises(TypeError):
            attempt()
    with pytest.raises(TypeError, match="must not be sent"):
        arrays.dumps(X)
    assert X.shape == (None, 5)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_no_numbers_are_found_before_the_charge(value):
    X, y = data_for(model())
    X = X.copy()
    X[300, 2] = value
    accountant = BudgetAccountant(epsilon=5.0)
    with pytest.raises(ValueError, match="was not charged") as error:
        model(accountant=accountant, random_state=None).fit(*frames(X, y))
    assert not accountant.records
    assert error.value.__cause__ is None
    assert error.value.__context__ is None
    with config_context(assume_finite=True), pytest.raises(ValueError, match="was charged"):
        model(accountant=accountant, random_state=None).fit(*frames(X, y))
    assert len(accountant.records) == 1


def test_errors_in_partitions_have_one_message_without_values():
    X, y = data_for(model())
    messages = set()
    for spoil in (_raising, _text, _longer, _missing):
        Z, z = frames(X, y)
        with pytest.raises(ValueError, match="partition") as error:
            model().fit(Z.map_partitions(spoil, meta=Z._meta), z)
        messages.add(str(error.value))
    assert len(messages) == 1
    assert "SECRET" not in messages.pop()


@pytest.mark.parametrize(
    "estimator",
    [one for one in IN_PARTS if type(one).__name__ in MANY_PASSES | CERTIFIED | BLOCKS][::3],
    ids=name_of,
)
def test_errors_of_any_reading_have_no_values(estimator):
    # Without the pass that validates, partitions may be read first when their rows are prepared and kept.
    def fitted(after):
        calls = []
        Z, *z = frames(*rows_of(estimator))
        with config_context(assume_finite=True):
            clone(estimator).fit(Z.map_partitions(_raising_after, after, calls, meta=Z._meta), *z)
        return len(calls)

    readings = fitted(np.inf)
    assert readings >= 4
    for after in range(readings):
        with pytest.raises(ValueError, match="No budget was charged") as error:
            fitted(after)
        assert "SECRET" not in "".join(traceback.format_exception(error.value))


def _raising_after(part, after, calls):
    calls.append(0)
    if len(calls) > after:
        raise ValueError("SECRET")
    return part


def _raising(part):
    raise ValueError("SECRET")


def _text(part):
    return part.astype(object).assign(x0="SECRET")


def _longer(part):
    return part.iloc[1:] if len(part) > 1 else part.iloc[:0]


def _missing(part):
    return part.assign(x1=np.nan)


def test_a_type_that_differs_from_the_declared_one_is_refused():
    X, y = frames(*data_for(model()))
    with pytest.raises(ValueError, match="types differ"):
        model().fit(X.map_partitions(_single, meta=X._meta), y)


def _single(part):
    return part.astype(np.float32)


def test_tasks_return_failures_and_log_nothing(caplog):
    job = arrays.dumps(((tasks.Node(0),), _failing))
    with caplog.at_level(logging.DEBUG):
        outcome = tasks.run(job, 0, (), {}, np.array([[123456.789]]))
    assert outcome is tasks.Failure.ROWS
    assert not caplog.records
    assert tasks.combined([_outcome(1), outcome, _outcome(2)]) is tasks.Failure.ROWS


def _failing(rows):
    raise ValueError(f"{rows}")


@pytest.mark.parametrize(("error", "mark"), [(ValueError, tasks.Failure.ROWS), (MemoryError, tasks.Failure.MEMORY)])
def test_sums_and_moved_rows_return_failures(error, mark):
    class Raising:
        def __add__(self, other):
            raise error("SECRET")

        __getitem__ = __add__

    assert tasks.combined([_outcome_of(0, Raising()), _outcome_of(1, 1.0)]) is mark
    part = tasks.KeptPart((Raising(), np.zeros(3)), frozenset([tasks.Identity(0, 3, b"1")]), frozenset())
    job = arrays.dumps(((tasks.Node(0), tasks.Node(1)), lambda *arrays: arrays))
    assert tasks.divided(job, 0, (), 2, part) == [mark, mark]
    unlike = [tasks.KeptPart((np.zeros(shape),), frozenset(), frozenset()) for shape in (1, (1, 2))]
    assert tasks.united(unlike) is tasks.Failure.ROWS


def _outcome(value):
    return _outcome_of(value, value)


def _outcome_of(part, value):
    return tasks.Outcome(value, frozenset([tasks.Identity(part, 1, b"1")]), frozenset([tasks.arithmetic()]))


def test_memory_has_a_message_of_its_own():
    job = arrays.dumps(((tasks.Node(0),), _too_large))
    assert tasks.run(job, 0, (), {}, np.zeros((1, 1))) is tasks.Failure.MEMORY


def _too_large(rows):
    raise MemoryError("1234 rows")


@pytest.mark.parametrize("change", ["number", "values"])
@pytest.mark.parametrize(
    "estimator",
    [
        DPGreedyTree(epsilon=1.0, bounds=(-3, 3), classes=[0, 1], max_depth=3),
        DPNaiveBayes(epsilon=1.0, bounds=(-3, 3), classes=[0, 1]),
        DPSGDClassifier(epsilon=1.0, delta=1e-6, data_norm=3.0, classes=[0, 1], n_steps=3),
        SampleAggregate(LogisticRegression(), epsilon=1.0, bounds=(-3, 3), classes=[0, 1], n_blocks=5),
    ],
    ids=lambda one: type(one).__name__,
)
def test_partitions_that_change_are_refused(estimator, change):
    readings = []

    def unstable(part):
        readings.append(len(part))
        if len(part) < 2:
            return part
        return part.iloc[len(readings) :] if change == "number" else part + 1e-9 * len(readings)

    X, y = data_for(estimator)
    Z, z = frames(X, y)
    both = Z.assign(y=z).map_partitions(unstable, meta=Z.assign(y=z)._meta)
    with pytest.raises(PartitionError, match="different when they were read again"):
        estimator.fit(both[list(Z.columns)], both["y"].astype(z.dtype))


def test_machines_that_round_differently_are_refused(monkeypatch):
    monkeypatch.setattr(arrays, "arithmetic", lambda: b"another machine")
    with pytest.raises(PartitionError, match="round exp, log or tanh differently"):
        model().fit(*frames(*data_for(model())))


def test_rows_and_labels_of_one_file_stay_together(tmp_path):
    # Reads of few columns are fused, so that rows and labels by themselves have other partitions.
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    rng = np.random.default_rng(0)
    tables = []
    for i in range(12):
        table = pd.DataFrame(rng.normal(size=(150, 8)), columns=[f"x{j}" for j in range(8)])
        table["y"] = (table.x0 > 0).astype(int)
        table.to_parquet(tmp_path / f"{i:02}.parquet")
        tables.append(table)
    stored, table = dd.read_parquet(tmp_path), pd.concat(tables, ignore_index=True)
    names = [f"x{j}" for j in range(8)]
    assert len(stored["y"].to_delayed()) < len(stored[names].to_delayed())
    fitted = model().fit(stored[names], stored["y"])
    expected = model().fit(table[names], table["y"])
    assert np.array_equal(fitted.class_count_, expected.class_count_)
    for a, b in zip(fitted.feature_log_prob_, expected.feature_log_prob_, strict=True):
        assert np.array_equal(a, b)


def test_other_rows_with_the_labels_are_refused():
    X, y = data_for(model())
    Z, _ = frames(X, y)
    _, z = frames(X[::-1].copy(), y[::-1].copy(), lengths=(10, 200, 90, 100))
    with pytest.raises(ValueError, match="not charged"):
        model().fit(Z, z)
    _, short = frames(X[:-1], y[:-1], lengths=(1, 0, 137, 261))
    with pytest.raises(ValueError, match="not charged"):
        model().fit(Z, short)
    # The types of the indexes differ, which is known without the rows.
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    dated = pd.Series(y, index=pd.date_range("2020-01-01", periods=len(y)))
    with pytest.raises(ValueError, match=r"same partitions.*Nothing was charged") as failure:
        model().fit(Z, dd.from_pandas(dated, npartitions=4))
    assert failure.value.__context__ is None


def test_a_fit_that_fails_leaves_the_estimator_as_it_was():
    X, y = data_for(model())
    fitted = model().fit(X, y)
    before = vars(fitted).copy()
    Z, z = frames(X, y)
    with pytest.raises(ValueError, match="partition"):
        fitted.fit(Z.map_partitions(_raising, meta=Z._meta), z)
    assert vars(fitted).keys() == before.keys()
    assert fitted.class_count_ is before["class_count_"]


def test_the_checksum_sees_order_and_the_number_of_rows():
    X, y = data_for(model())
    found = {tasks._opened(0, data)[1] for data in ((X, y), (X[::-1].copy(), y), (X[1:], y[1:]), (X, 1 - y))}
    assert len(found) == 4
    text = np.array(["a", "b"] * 200, dtype=object)
    assert tasks._opened(0, (X, text))[1] != tasks._opened(0, (X, text[::-1]))[1]
    assert tasks._opened(0, (X, y))[1] == tasks._opened(0, (X.copy(), y.copy()))[1]


def test_rows_that_are_moved_to_other_parts_keep_their_order_and_the_identities_of_their_parts():
    job = arrays.dumps(((tasks.Node(0), tasks.Node(1)), arrays._as_tuple))
    rows = [np.arange(5), np.arange(5, 8)]
    places = [np.array([1, 0, 1, 1, 0]), np.array([1, 0, 1])]
    pieces = [tasks.divided(job, i, (), 2, *own) for i, own in enumerate(zip(rows, places, strict=True))]
    parts = [tasks.united([own[j] for own in pieces]) for j in range(2)]
    assert [part.arrays[0].tolist() for part in parts] == [[1, 4, 6], [0, 2, 3, 5, 7]]
    assert all({own.part for own in part.identities} == {0, 1} for part in parts)
    outcome = tasks.run(arrays.dumps(((tasks.Node(0),), len)), 0, (), {}, parts[1])
    assert outcome.value == 5
    assert tasks._opened(1, (rows[1], places[1]))[1] < outcome.identities
    assert tasks.united([tasks.Failure.ROWS, pieces[0][0]]) is tasks.Failure.ROWS


class HoldsGenerator(LogisticRegression):
    def __init__(self, source=None):
        self.source = source
        super().__init__()


def test_estimators_that_hold_a_generator_are_refused_before_the_charge():
    X, y = frames(*data_for(model()), lengths=(100,) * 4)
    accountant = BudgetAccountant(epsilon=10.0)
    holding = HoldsGenerator(np.random.default_rng(0))
    aggregate = SampleAggregate(holding, n_blocks=4, bounds=(-1, 1), classes=[0, 1], accountant=accountant)
    with pytest.raises(ValueError, match="estimator cannot be sent to workers"):
        aggregate.fit(X, y)
    assert not accountant.records


def test_two_readings_of_one_part_are_an_error_also_if_they_are_united():
    rows, places = np.arange(8), np.arange(8) % 2
    job = arrays.dumps(((tasks.Node(0), tasks.Node(1)), arrays._as_tuple))
    first, again = (tasks.divided(job, 0, (), 2, own, places) for own in (rows, rows[::-1].copy()))
    other = tasks.divided(job, 1, (), 2, rows, places)
    parts = [tasks.united([again[0], other[0]]), tasks.united([first[1], other[1]])]
    outcomes = [tasks.run(arrays.dumps(((tasks.Node(0),), len)), j, (), {}, part) for j, part in enumerate(parts)]
    together = tasks.combined(outcomes)
    assert len(together.identities) == 3

    class Parts(arrays.Parts):
        n_parts = 2
        _kept = _divided = None

        def _run(self, job, extras):
            return together

    with pytest.raises(PartitionError, match="different when they were read again"):
        Parts().fold(len, [tasks.Node(0)])


def test_a_kept_part_remembers_the_arithmetic_of_earlier_machines():
    job = arrays.dumps(((tasks.Node(0), tasks.Node(1)), arrays._as_tuple))
    kept = tasks.KeptPart((np.arange(2), np.zeros(2, int)), frozenset(), frozenset([b"other"]))
    (divided,) = tasks.divided(job, 0, (), 1, kept)
    outcome = tasks.run(arrays.dumps(((tasks.Node(0),), len)), 0, (), {}, tasks.united([divided]))
    assert outcome.arithmetic == {b"other", tasks.arithmetic()}


def test_models_of_blocks_see_one_process_state_at_a_time():
    # Each block draws from NumPy's global generator, which all threads share.
    X = data_for(model())[0]
    drawing = SampleAggregate(_drawn, bounds=(0, 1), epsilon=np.inf, n_blocks=40, random_state=0)
    with dask.config.set(scheduler="threads", num_workers=4):
        found = [clone(drawing).fit(*frames(X, lengths=(100,) * 4)).result_.tobytes() for _ in range(3)]
    assert set(found) == {clone(drawing).fit(X).result_.tobytes()}


def _drawn(rows):
    time.sleep(0.001)
    return np.array([np.random.random()])  # noqa: NPY002


def test_bytes_of_a_job_say_what_is_run_and_no_more():
    job = arrays.dumps(((tasks.Node(0),), len))
    assert len(job) < 400
    assert tasks.run(job, 3, (), {}, np.zeros((7, 2))).value == 7
    assert io.BytesIO(job).read(1) == b"\x80"


def test_data_that_are_no_collection_are_not_asked():
    class Silent:
        def __getattr__(self, name):
            raise MemoryError(name)

    assert not is_collection(Silent())
