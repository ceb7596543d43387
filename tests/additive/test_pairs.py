"""Pairs of columns that are chosen: scores and their sensitivity, plans, what fits do with pairs, and what is not read.

Nothing is left to chance: seeds are fixed.
"""

import itertools
import json
import math
import pickle

import numpy as np
import pytest
from skdp.additive._pairs import PairChoice, score_sensitivity

from skdp import BudgetAccountant, Category, DPAdditiveClassifier, DPAdditiveRegressor, Number, Schema
from skdp.accounting import bounded_range_mu, gaussian_mu
from skdp.additive import _pairs
from skdp.inspection import AdditiveTermsDisplay
from skdp.mechanisms import GroupChoices
from tests.trust.choices import choosing
from tests.trust.subjects import replaced
from tests.trust.transcripts import transcript

COMMON = {"delta": 1e-5, "bounds": (-1, 1), "random_state": 1, "n_bins": 16}


def table(n_rows=3000, strength=2.0, seed=0):
    """Four columns, of which the first and the third act together."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, 4))
    y = X[:, 0] + np.sin(3 * X[:, 1]) + strength * X[:, 0] * X[:, 2] + 0.3 * rng.standard_normal(n_rows)
    return X, y


def labels(y):
    return (y > np.median(y)).astype(int)


def regressor(**parameters):
    return DPAdditiveRegressor(**{**COMMON, "bounds_y": (-4, 4), "epsilon": 2.0, "interactions": "auto", **parameters})


def classifier(**parameters):
    return DPAdditiveClassifier(**{**COMMON, "classes": [0, 1], "epsilon": 2.0, "interactions": "auto", **parameters})


def fitted(make, X, y, **parameters):
    return make(**parameters).fit(X, labels(y) if make is classifier else y)


MAKERS = pytest.mark.parametrize("make", [regressor, classifier])


# --- scores -----------------------------------------------------------------------------------------------------------


def plan(counts, ordered, total=1e5, mu=1.0):
    return PairChoice.of([np.array(own, dtype=float) for own in counts], ordered, total, mu, 1.0, 0.02)


def test_one_record_moves_each_score_by_one_at_most():
    counts = [[50, 30, 20, 0, 5], [90, 10], [5, 5, 5, 5, 80, 1]], (True, False, False)
    choice = plan(*counts)
    sizes = [len(own) for own in counts[0]]
    rng = np.random.default_rng(0)
    largest = 0.0
    for n_rows in (0, 1, 40):
        codes = np.stack([rng.integers(n + 1, size=n_rows) for n in sizes]).astype(np.int32)
        residuals = rng.uniform(-2, 2, n_rows)
        before = choice.scores(codes, residuals)
        # Every record that there can be; the last cell stands for entries in no cell.
        for cells in itertools.product(*(range(n + 1) for n in sizes)):
            for residual in (-7.0, -1.0, 0.3, 1.0, np.inf):
                more = np.column_stack([codes, np.array(cells, dtype=np.int32)])
                moves = np.abs(choice.scores(more, np.append(residuals, residual)) - before)
                largest = max(largest, moves.max())
    assert largest <= score_sensitivity()
    # No smaller bound holds.
    assert largest >= 1 - 1e-9


def test_scores_are_what_no_column_explains():
    choice = plan([[25, 25, 25, 25]] * 2, (True, True))
    cells = np.stack([own.ravel() for own in np.meshgrid(*[np.arange(4)] * 2, indexing="ij")]).astype(np.int32)
    codes = np.repeat(cells, 10, axis=1)
    alone = 0.2 * codes[0] - 0.1 * codes[1] ** 2 + 0.05
    np.testing.assert_allclose(choice.scores(codes, alone), 0, atol=1e-4)
    together = np.where((codes[0] < 2) == (codes[1] < 2), 1.0, -1.0)
    # Sums of 10 in 16 cells, which are longer by the factor by which the projection makes cells shorter.
    np.testing.assert_allclose(choice.scores(codes, together), math.sqrt(16 * 10**2) / 0.75, rtol=1e-5)
    # What one column explains besides changes nothing.
    np.testing.assert_allclose(choice.scores(codes, together / 2 + alone / 4), math.sqrt(16 * 5**2) / 0.75, rtol=1e-4)


def test_entries_in_no_cell_count_in_no_score_of_their_column():
    choice = plan([[50, 50]] * 3, (False,) * 3)
    codes = np.array([[2], [0], [1]], dtype=np.int32)
    found = dict(zip([(a, b) for _, a, b in choice.candidates], choice.scores(codes, np.ones(1)), strict=True))
    assert found[0, 1] == found[0, 2] == 0
    assert found[1, 2] > 0


def test_a_choice_costs_what_is_planned():
    choice = plan([[25] * 4] * 3, (True,) * 3)
    release = choice.release(0)
    assert isinstance(release.mechanism, GroupChoices)
    assert release.mechanism.bounded_range
    assert not release.mechanism.monotone
    assert release.mechanism.sensitivity == score_sensitivity() > 1
    assert bounded_range_mu(release.mechanism.epsilon) <= choice.mu
    assert choice.mu <= math.sqrt(choice.share)


def test_there_is_no_choice_where_no_pair_can_pay():
    cells = [[100] * 16] * 6, (True,) * 6
    assert plan(*cells, total=300, mu=0.03) is None
    assert plan(*cells, total=1e6, mu=1.0) is not None
    # Columns with one cell are in no pair.
    assert plan([[10], [10]], (False, False)) is None
    assert plan([], ()) is None


# --- fits -------------------------------------------------------------------------------------------------------------


@MAKERS
def test_a_pair_is_found_and_pays(make):
    X, y = table()
    new, target = table(4000, seed=1)
    target = labels(target) if make is classifier else target
    auto, without = (fitted(make, X, y, interactions=value) for value in ("auto", None))
    assert auto.term_columns_[4:] == [(0, 2)]
    assert auto.score(new, target) >= without.score(new, target) + 0.05
    assert str(auto.privacy_) == str(make().privacy_plan(n_features=4))


@MAKERS
def test_without_a_pair_none_is_chosen(make):
    X, y = table(strength=0.0)
    assert fitted(make, X, y).term_columns_ == [(j,) for j in range(4)]


@MAKERS
@pytest.mark.parametrize(("n_rows", "epsilon"), [(0, 1.0), (1, 1.0), (60, 1.0), (1500, 0.1)])
def test_where_no_pair_can_pay_it_is_the_fit_without(make, n_rows, epsilon):
    X, y = table(4000)
    X, y = X[:n_rows], y[:n_rows]
    y = (y > 0).astype(int) if make is classifier else y
    auto, without = (make(epsilon=epsilon, interactions=value).fit(X, y) for value in ("auto", None))
    new = table(100, seed=2)[0]
    np.testing.assert_array_equal(auto.contributions(new), without.contributions(new))


@pytest.mark.parametrize(
    "parameters",
    [{"delta": 0.0}, {"delta": 0.0, "epsilon": math.inf}, {"rounds": 0}, {"rounds": 1}, {"solver": "gradient"}],
)
def test_other_fits_choose_none(parameters):
    X, y = table(1000)
    auto, without = (fitted(classifier, X, y, **parameters, interactions=value) for value in ("auto", None))
    np.testing.assert_array_equal(auto.decision_function(X), without.decision_function(X))
    if "rounds" not in parameters and "solver" not in parameters:
        auto, without = (fitted(regressor, X, y, **parameters, interactions=value) for value in ("auto", None))
        np.testing.assert_array_equal(auto.predict(X), without.predict(X))


@MAKERS
@pytest.mark.parametrize("thresholds", ["uniform", "quantile"])
def test_all_releases_together_are_the_budget(make, thresholds):
    X, y = table()
    model = make(thresholds=thresholds)
    spent = {}
    original = _pairs.ReleaseSession.refine

    def refine(session, label, releases, events):
        spent.update((release.label, event) for release, event in zip(releases, events, strict=False))
        return original(session, label, releases, events)

    guarantee = model.privacy_plan(n_features=4)
    assert math.fsum(release.share for release in guarantee.releases) == pytest.approx(1)
    squares = math.fsum(event.mu() ** 2 for event in guarantee.events)
    assert squares <= gaussian_mu(2.0, 1e-5) ** 2
    assert squares >= gaussian_mu(2.0, 1e-5) ** 2 * (1 - 1e-6)
    assert model._fixed_cost() == guarantee.cost
    with replaced(_pairs.ReleaseSession, "refine", lambda true: refine):
        model.fit(X, labels(y) if make is classifier else y)
    assert "pair 1" in spent
    budget = BudgetAccountant(2.0, 1e-5)
    with pytest.warns(match="random_state"):
        model.set_params(accountant=budget).fit(X, labels(y) if make is classifier else y)
    assert len(budget) == 1


@MAKERS
def test_parts_of_the_reserve_are_never_more_than_it(make):
    """What each mechanism costs, from its noise, adds up to what the plan states."""
    X, y = table()
    found = transcript(make(), (X, labels(y) if make is classifier else y))
    mus = []
    for released in found.values():
        mechanism = released.mechanism
        if isinstance(mechanism, GroupChoices):
            mus.append(bounded_range_mu(mechanism.epsilon))
        else:
            mus.append(mechanism.sensitivity / mechanism.scale)
    whole = gaussian_mu(2.0, 1e-5)
    assert math.hypot(*mus) <= whole * (1 + 1e-9)
    assert math.hypot(*mus) >= 0.98 * whole


@MAKERS
def test_pairs_without_a_column_in_common(make):
    # With copies of two columns, all four pairs of a column and the other one's copy have the same score.
    X, y = table(6000)
    model = fitted(make, np.column_stack([X, X[:, [0, 2]]]), y, epsilon=10.0)
    chosen = model.term_columns_[6:]
    assert 1 <= len(chosen) <= 2
    assert all({a % 4, b % 4 if b < 4 else [0, 2][b - 4]} <= {0, 2, 1} for a, b in chosen)
    assert len({j for pair in chosen for j in pair}) == 2 * len(chosen)


def forced(model, X, y, *picks):
    """Fit, and choose these positions in turn; 0 is none."""
    waiting = list(picks)
    with choosing(lambda mechanism, scores, own: waiting.pop(0) if waiting else 0):
        return model.fit(X, y)


@MAKERS
def test_the_choice_alone_decides(make):
    X, y = table()
    target = labels(y) if make is classifier else y
    free = make().fit(X, target)
    assert free.term_columns_[4:] == [(0, 2)]
    places = []
    with choosing(lambda mechanism, scores, own: places.append(own()) or places[-1]):
        make().fit(X, target)
    again = forced(make(), X, target, *places)
    np.testing.assert_array_equal(again.contributions(X), free.contributions(X))
    none = forced(make(), X, target, 0)
    assert len(none.term_columns_) == 4
    assert none.terms_[0].shape == (16,)


@MAKERS
def test_scores_see_records_through_their_residuals_and_released_numbers(make):
    """Given all that was released before, one record moves each score by its own residual at most."""
    X, y = table()
    target = labels(y) if make is classifier else y
    found = transcript(make(), (X[:-1], target[:-1]))
    other = transcript(make(), (X, target), found)
    places = [place for place in found if place[1].startswith("pair")]
    assert places
    for place in places:
        moved = np.abs(other[place].value - found[place].value)
        assert 0 < moved.max() <= score_sensitivity()


# --- what is done with a fit ------------------------------------------------------------------------------------------


@MAKERS
def test_fits_with_chosen_pairs_can_be_used_as_others(make):
    X, y = table()
    model = fitted(make, X, y)
    score = model.decision_function if make is classifier else model.predict
    pair = model.term_names_[-1]
    assert pair == "x0 x x2"
    # Cells of both columns are finer than the bins, and their counts are those of bins divided evenly.
    assert model.terms_[-1].shape == (64, 64)
    for j in (0, 2):
        by_bin = model.cell_counts_[j].reshape(16, 4)
        np.testing.assert_array_equal(by_bin, np.repeat(by_bin[:, :1], 4, axis=1))
        assert len(model.bin_edges_[j]) == 65
    assert len(model.bin_edges_[1]) == 17
    np.testing.assert_allclose(model.contributions(X).sum(axis=1) + model.intercept_, score(X))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.contributions(X), model.contributions(X))
    explained = model.explain_local(X[:3])
    assert sum(explained[0].values()) == pytest.approx(float(score(X[:1])[0]))
    assert json.loads(model.to_json())["terms"][-1]["name"] == pair
    assert model.feature_importances_[[0, 2]].min() > model.feature_importances_[3]


@MAKERS
def test_a_later_fit_without_pairs_forgets_them(make):
    X, y = table()
    model = fitted(make, X, y)
    model.set_params(interactions=None)
    model.fit(X, labels(y) if make is classifier else y)
    assert len(model.term_columns_) == 4


@MAKERS
def test_columns_of_a_schema(make):
    rng = np.random.default_rng(3)
    n = 6000
    frame = {
        "age": np.where(rng.random(n) < 0.05, np.nan, rng.uniform(20, 80, n)),
        "town": rng.choice(["a", "b", "c"], n),
        "hours": rng.integers(0, 60, n).astype(float),
    }
    effect = np.where(frame["town"] == "a", 1, -1) * np.where(frame["hours"] > 30, 1.0, -1.0)
    y = effect + 0.3 * rng.standard_normal(n)
    target = ["no", "yes"] if make is classifier else (-3, 3)
    schema = Schema(
        {"age": Number(20, 80, missing="cell"), "town": Category(["a", "b", "c"]), "hours": Number(0, 60, step=1)},
        target=target,
    )
    kind = DPAdditiveClassifier if make is classifier else DPAdditiveRegressor
    model = kind(schema=schema, epsilon=3.0, delta=1e-5, interactions="auto", random_state=0)
    model.fit(frame, np.where(y > 0, "yes", "no") if make is classifier else y)
    assert model.term_names_[3:] == ["town x hours"]
    deviations = model.noise_std({name: own[:4] for name, own in frame.items()})
    assert deviations.shape == (4,)
    assert np.all(deviations > 0)
    assert len(AdditiveTermsDisplay.from_estimator(model).axes_.ravel()) >= 3
    assert len(model.cell_names_[2]) == len(model.cell_counts_[2])


def test_noise_of_predictions_is_about_that_of_fits():
    X, y = table(3000)
    models = [forced(regressor(random_state=seed, n_steps=100), X, y, 5) for seed in range(12)]
    assert len({tuple(model.term_columns_) for model in models}) == 1
    measured = np.std([model.predict(X[:300]) for model in models], axis=0, ddof=1)
    stated = models[0].noise_std(X[:300])
    assert 0.5 <= np.median(measured / stated) <= 2.0


def test_another_text_is_refused_before_the_charge():
    X, y = table(50)
    budget = BudgetAccountant(10, 1e-3)
    for make in (regressor, classifier):
        with pytest.raises(ValueError, match="interactions must be"):
            fitted(make, X, y, interactions="automatic", accountant=budget)
    assert len(budget) == 0
