"""Transformers that cost nothing: what they do, what comes out, and that each row is mapped by itself."""

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler, Normalizer, OneHotEncoder

from skdp import BudgetAccountant, ObjPertLogReg, allocate
from skdp.exceptions import PrivacyAssumptionWarning
from skdp.preprocessing import BoundsScaler, DPQuantileBinner, DPStandardScaler, NormClipper, PublicBinner
from tests.estimators import FREE, PREPROCESSING

RNG = np.random.default_rng(0)
ROWS = RNG.normal(0, 3, size=(300, 4))

every = pytest.mark.parametrize("transformer", FREE, ids=str)
every_kind = pytest.mark.parametrize("transformer", FREE + PREPROCESSING, ids=str)


@every
def test_rows_are_mapped_one_by_one_without_a_fit(transformer):
    together = transformer.transform(ROWS)
    for i in (0, 7, 299):
        np.testing.assert_array_equal(transformer.transform(ROWS[i : i + 1])[0], together[i])
    np.testing.assert_array_equal(clone(transformer).fit(ROWS[:5]).transform(ROWS), together)
    assert not set(vars(transformer)) - set(transformer.get_params())


@every
def test_fit_leaves_nothing_but_the_columns(transformer):
    frame = pd.DataFrame(ROWS, columns=list("abcd"))
    fitted = [clone(transformer).fit(rows) for rows in (frame, frame[:0], 5 * frame[::-1])]
    assert len({pickle.dumps(one) for one in fitted}) == 1
    assert set(vars(fitted[0])) - set(transformer.get_params()) == {"n_features_in_", "feature_names_in_"}


@every
def test_allocate_does_not_call_it_a_step_that_learns(transformer):
    model = make_pipeline(clone(transformer), ObjPertLogReg(data_norm=3.0, classes=[0, 1]))
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyAssumptionWarning)
        allocation = allocate(model, 1.0, 1e-6)
    assert list(allocation) == ["objpertlogreg"]
    assert allocation.not_private == ()


@every_kind
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_row_is_longer_than_said_and_the_type_is_kept(transformer, dtype):
    fitted = clone(transformer).fit(ROWS.astype(dtype))
    for scale in (1e-44, 0.01, 1.0, 1e30, np.finfo(dtype).max / 20):
        out = fitted.transform((scale * ROWS).astype(dtype))
        assert out.dtype == dtype
        norms = np.linalg.norm(out.astype(float), axis=1)
        assert norms.max() <= fitted.data_norm_
    assert norms.max() >= 0.9 * fitted.data_norm_
    if getattr(transformer, "encode", None) == "onehot":
        np.testing.assert_allclose(norms, fitted.data_norm_, rtol=1e-9)


@every_kind
def test_no_rows_and_infinite_ones(transformer):
    fitted = clone(transformer).fit(ROWS[:0])
    assert len(fitted.transform(ROWS[:0])) == 0
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            fitted.transform(np.full((1, 4), bad))


@every_kind
def test_sparse_rows_are_made_dense(transformer):
    fitted = clone(transformer).fit(ROWS)
    np.testing.assert_array_equal(fitted.transform(sparse.csc_array(ROWS)), fitted.transform(ROWS))
    clone(transformer).fit(sparse.csr_array(ROWS))


@every_kind
def test_names_and_frames(transformer):
    frame = pd.DataFrame(ROWS, columns=list("abcd"))
    fitted = clone(transformer).set_output(transform="pandas").fit(frame)
    out = fitted.transform(frame)
    assert list(out.columns) == list(fitted.get_feature_names_out())
    if getattr(transformer, "encode", "ordinal") == "ordinal":
        assert list(out.columns) == list("abcd")
    else:
        assert list(out.columns)[:2] == ["a_0", "a_1"]


# --- scaling --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("feature_range", [(-1, 1), (0, 1), (2.5, 7)])
def test_bounds_scaler_is_a_min_max_scaler_with_given_bounds(feature_range):
    lower, upper = np.array([-2.0, -1, 0, 5]), np.array([2.0, 1, 4, 6])
    reference = MinMaxScaler(feature_range, clip=True).fit(np.stack([lower, upper]))
    scaler = BoundsScaler((lower, upper), feature_range=feature_range)
    np.testing.assert_allclose(scaler.fit_transform(ROWS), reference.transform(ROWS), rtol=1e-12, atol=1e-12)
    inside = np.clip(ROWS, lower, upper)
    np.testing.assert_allclose(scaler.inverse_transform(scaler.transform(ROWS)), inside, rtol=1e-9, atol=1e-9)


RANGES = [
    (-0.1, 0.1),
    (0.1, 0.3),
    (-0.7, -0.1),
    (1 / 3, 2 / 3),
    (-1e-42, 3e-43),
    (1e-46, 1e-44),
    (1e38 / 3, 1e39),
    (-1e60, 1e60),
    (0.1, np.nextafter(np.float32(0.1), np.float32(1)).item()),
]


def adversarial(dtype, n_columns=3):
    """Rows at and next to ends, of all magnitudes and signs."""
    most = np.finfo(dtype).max
    sizes = np.concatenate([np.geomspace(1e-45, 3e38, 400), [0, 0.1, 0.3, 1 / 3, 2 / 3, 0.7, 1, 3, most]]).astype(dtype)
    with np.errstate(over="ignore"):
        near = np.concatenate([sizes, np.nextafter(sizes, dtype(0)), np.nextafter(sizes, dtype(most))])
    values = np.concatenate([near, -near])
    rows = np.repeat(values[:, None], n_columns, axis=1)
    mixed = np.random.default_rng(0).choice(values, size=(2000, n_columns))
    return np.concatenate([rows, mixed]).astype(dtype)


@pytest.mark.parametrize("feature_range", RANGES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_range_holds_after_rounding(feature_range, dtype):
    low, high = feature_range
    X = adversarial(dtype)
    for bounds in ((-1, 1), (0.1, 0.7), (-1e38, 1e38), (-1e-40, 1e-40)):
        scaler = BoundsScaler(bounds, feature_range=feature_range).fit(X)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            out = scaler.transform(X).astype(np.float64)
        assert np.all((out >= low) & (out <= high))
        assert np.linalg.norm(out, axis=1).max() <= scaler.data_norm_
        # The ends are the nearest numbers that are inside.
        most = float(np.finfo(dtype).max)
        ends = [dtype(end) for end in np.clip(feature_range, -most, most)]
        steps = [max(abs(float(end)) * np.finfo(dtype).eps, 2e-45) for end in ends]
        assert abs(out.min() - float(ends[0])) <= steps[0]
        assert abs(out.max() - float(ends[1])) <= steps[1]


@pytest.mark.parametrize("clip", [0.1, 1 / 3, 3.3, 1e-44, 1e-60, 1e39])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_standard_scalers_clip_holds_after_rounding(clip, dtype):
    X = adversarial(dtype)
    scaler = DPStandardScaler(epsilon=1.0, bounds=(-1e-3, 1e-3), clip=clip, random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = scaler.transform(X).astype(np.float64)
    assert np.all(np.isfinite(out))
    assert np.abs(out).max() <= clip
    assert np.linalg.norm(out, axis=1).max() <= scaler.data_norm_
    # Zero is the only number of single precision below 1e-45.
    assert np.abs(out).max() >= 0.9 * min(clip, float(np.finfo(dtype).max)) or clip < 1e-43


@pytest.mark.parametrize("norm", [1e-100, 1e-46, 1e-44, 1e-40, 3e-38, 0.1, 1 / 3, 2.0, 7e37, 1e39, 1e100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_columns", [1, 3, 50])
def test_a_norm_holds_after_rounding(norm, dtype, n_columns):
    X = adversarial(dtype, n_columns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = NormClipper(norm).transform(X)
    assert out.dtype == dtype
    lengths = [math.hypot(*row) for row in out.tolist()]
    assert max(lengths) <= norm
    before = np.array([math.hypot(*row) for row in X.tolist()])
    np.testing.assert_array_equal(out[before < norm * (1 - 1e-9)], X[before < norm * (1 - 1e-9)])
    if 1e-35 < norm < 1e38:
        assert max(lengths) >= norm * (1 - 1e-6)


def test_ranges_that_arithmetic_does_not_hold_are_refused_by_name():
    for wide in [(-1e308, 1e308), (0, 1e101), (0, 1e-101), (0, 1e-320), (0, np.nan), (-np.inf, 0)]:
        with pytest.raises(ValueError, match="feature_range"):
            BoundsScaler((0, 1), feature_range=wide).fit([[0.0], [1.0]])
    for wide in [(0, 1e101), (0, 1e-101), (-np.inf, 0), (0, np.nan)]:
        for transformer in (BoundsScaler(wide), DPStandardScaler(bounds=wide), PublicBinner(bounds=wide)):
            with pytest.raises(ValueError, match=r"bounds .* in \[-1e\+100, 1e\+100\]"):
                transformer.fit([[0.0], [1.0]])
    narrow = BoundsScaler((0, 1), feature_range=(1 + 1e-12, 1 + 2e-12)).fit(ROWS)
    out = narrow.transform(ROWS)
    assert np.all((out >= 1 + 1e-12) & (out <= 1 + 2e-12))
    with pytest.raises(ValueError, match=r"feature_range .* single precision"):
        narrow.transform(ROWS.astype(np.float32))


def test_norm_clipper():
    out = NormClipper(2.0).fit_transform(ROWS)
    norms = np.linalg.norm(ROWS, axis=1)
    short = norms <= 2 * (1 - 1e-9)
    assert 0 < short.sum() < 300
    np.testing.assert_array_equal(out[short], ROWS[short])
    np.testing.assert_allclose(out[~short], 2 * Normalizer().transform(ROWS[~short]), rtol=1e-9)
    single = NormClipper(2.0).transform(ROWS.astype(np.float32)).astype(float)
    assert np.linalg.norm(single, axis=1).max() <= 2


# --- bins -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encode", ["onehot", "ordinal"])
def test_public_binner_is_a_discretizer_with_given_edges(encode):
    ends = np.array([[-4.0] * 4, [4.0] * 4])
    reference = KBinsDiscretizer(6, strategy="uniform", encode="onehot-dense" if encode == "onehot" else "ordinal")
    reference.fit(ends)
    binner = PublicBinner(n_bins=6, bounds=(-4, 4), encode=encode).fit(ROWS)
    out = binner.transform(ROWS)
    np.testing.assert_array_equal(out, reference.transform(ROWS))
    np.testing.assert_allclose(binner.inverse_transform(out), reference.inverse_transform(reference.transform(ROWS)))
    np.testing.assert_allclose(binner.bin_edges_[0], reference.bin_edges_[0])


def test_scales():
    log = PublicBinner(n_bins=3, bounds=(1, 1000), scale="log").fit([[1.0]])
    np.testing.assert_allclose(log.bin_edges_[0], [1, 10, 100, 1000])
    wide = PublicBinner(n_bins=8, bounds=(-1e9, 1e9), scale="symlog", unit=10.0).fit([[1.0]])
    edges = wide.bin_edges_[0]
    np.testing.assert_allclose(edges, -edges[::-1], atol=1e-6)
    np.testing.assert_allclose(np.diff(np.arcsinh(edges / 10)), np.arcsinh(1e8) / 4)
    with pytest.raises(ValueError, match="symlog"):
        PublicBinner(bounds=(0, 10), scale="log").fit([[1.0]])


def test_edges_by_column():
    binner = PublicBinner([[0, 1], [0, 1, 2, 3]]).fit([[0.0, 0.0]])
    assert binner.transform([[5, 5], [-5, 1.5], [0, -1]]).tolist() == [[1, 0, 0, 1], [1, 0, 1, 0], [1, 1, 0, 0]]
    assert list(binner.get_feature_names_out()) == ["x0_0", "x1_0", "x1_1", "x1_2"]
    ordinal = clone(binner).set_params(encode="ordinal").fit([[0.0, 0.0]])
    assert ordinal.data_norm_ == pytest.approx(2)
    # One bin is always number 0: what follows wants a norm all the same.
    single = PublicBinner([0, 1], encode="ordinal").fit(ROWS)
    assert single.data_norm_ == 1
    assert not np.any(single.transform(ROWS))
    make_pipeline(single, ObjPertLogReg(data_norm=single.data_norm_, classes=[0, 1])).fit(ROWS, np.arange(300) % 2)
    with pytest.raises(ValueError, match="2 columns"):
        PublicBinner([[0, 1], [0, 2]]).fit([[1.0, 2.0, 3.0]])


BAD = [
    (BoundsScaler(), "bounds"),
    (BoundsScaler((1, 0)), "bounds"),
    (BoundsScaler((0, 1), feature_range=(1, 1)), "feature_range"),
    (BoundsScaler((0, 1), feature_range=None), "feature_range"),
    (BoundsScaler(([0, 0], [1, 1])), "bounds"),
    (NormClipper(), "data_norm"),
    (NormClipper(-1), "data_norm"),
    (PublicBinner(), "bounds"),
    (PublicBinner([1]), "bin_edges"),
    (PublicBinner([]), "bin_edges"),
    (PublicBinner(3), "bin_edges"),
    (PublicBinner([1, 1]), "bin_edges"),
    (PublicBinner([0, np.inf]), "bin_edges"),
    (PublicBinner([[0, 1], ["a", "b"]]), "bin_edges"),
    (PublicBinner([0, 1], encode="dense"), "encode"),
    (PublicBinner(bounds=(0, 1), n_bins=1), "n_bins"),
    (PublicBinner(bounds=(0, 1), n_bins=10**6), "n_bins"),
    (PublicBinner(bounds=(0, 1), scale="cubic"), "scale"),
    (PublicBinner(bounds=(0, 1), scale="symlog", unit=0), "unit"),
    (DPStandardScaler(bounds=(0, 1), clip=0), "clip"),
    (DPQuantileBinner(1, bounds=(0, 1)), "n_bins"),
    (DPQuantileBinner(bounds=(0, 1), grid_size=1), "grid_size"),
    (DPQuantileBinner(bounds=(0, 1), grid_size=10**6), "grid_size"),
    (DPQuantileBinner(bounds=(0, 1), scale="log"), "bounds"),
    (DPQuantileBinner(bounds=(0, 1), encode="x"), "encode"),
]


@pytest.mark.parametrize(("transformer", "name"), BAD, ids=str)
def test_bad_parameters_are_named(transformer, name):
    accountant = BudgetAccountant(1e8, 0.5)
    if "accountant" in transformer.get_params():
        transformer = clone(transformer).set_params(accountant=accountant)
    with pytest.raises((ValueError, TypeError), match=name):
        transformer.fit(ROWS)
    assert len(accountant) == 0


@every_kind
def test_messages_of_inverse_transform_hold_no_data(transformer):
    if not hasattr(transformer, "inverse_transform"):
        pytest.skip("there is no inverse")
    fitted = clone(transformer).fit(ROWS)
    width = fitted.transform(ROWS[:1]).shape[1]
    text = np.full((1, width), "patient-7731", dtype=object)
    with pytest.raises(ValueError, match="text") as failure:
        fitted.inverse_transform(text)
    assert "7731" not in str(failure.value)
    if not isinstance(transformer, BoundsScaler):
        with pytest.raises(ValueError, match="columns"):
            fitted.inverse_transform(np.ones((2, width + 1)))


def test_in_a_column_transformer():
    frame = pd.DataFrame({"x": [1.0, 2, 3], "kind": ["a", "b", "c"]})
    mixed = make_column_transformer(
        (BoundsScaler((0, 4)), ["x"]), (OneHotEncoder(categories=[["a", "b"]], handle_unknown="ignore"), ["kind"])
    )
    assert mixed.fit_transform(frame).tolist() == [[-0.5, 1, 0], [0, 0, 1], [0.5, 0, 0]]
