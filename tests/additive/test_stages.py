"""Stages: candidates, contributions and their norms, choices, released tables, and what fits do with them.

Nothing is left to chance: seeds are fixed.
"""

import itertools
import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, special
from sklearn.base import clone

from skdp import BudgetAccountant, Category, DPAdditiveClassifier, DPAdditiveRegressor, Number, Schema
from skdp.accounting import bounded_range_mu, gaussian_mu
from skdp.additive import _cells, _plans, _stages
from skdp.additive._cells import joint_cells, smoothed_shares
from skdp.additive._curves import AGAIN, Link
from skdp.additive._stages import Candidates, LabelLoss, SquaredLoss, n_stages, table_values
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
    return DPAdditiveRegressor(**{**COMMON, "bounds_y": (-4, 4), "epsilon": 2.0, **parameters})


def classifier(**parameters):
    return DPAdditiveClassifier(**{**COMMON, "classes": [0, 1], "epsilon": 2.0, **parameters})


def fitted(make, X, y, **parameters):
    return make(**parameters).fit(X, labels(y) if make is classifier else y)


DELTAS = pytest.mark.parametrize("delta", [1e-5, 0.0])
MAKERS = pytest.mark.parametrize("make", [regressor, classifier])


# --- what one record adds ---------------------------------------------------------------------------------------------

LOSSES = {
    "two classes": LabelLoss(1),
    "two classes, clipped": LabelLoss(1, link=Link(most=0.5)),
    "three classes": LabelLoss(3),
    "three classes, clipped": LabelLoss(3, link=Link(most=0.5 * math.sqrt(2))),
    "seven classes": LabelLoss(7),
    "numbers": SquaredLoss(),
    "numbers, clipped": SquaredLoss(clip=0.05),
}
LOSSES |= {f"{name}, pure": replace(loss, pure=True) for name, loss in LOSSES.items()}


def scores_and_targets(loss, n_rows, rng):
    if isinstance(loss, SquaredLoss):
        return rng.normal(scale=rng.choice([0.1, 1, 1e9], (n_rows, 1))), rng.uniform(-1, 1, n_rows)
    scores = rng.normal(scale=rng.choice([0.1, 3, 40], (n_rows, 1)), size=(n_rows, loss.n_outputs))
    return scores, rng.integers(max(loss.n_outputs, 2), size=n_rows)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_contributions_have_at_most_the_stated_norms(loss):
    found = loss.contributions(*scores_and_targets(loss, 20_000, np.random.default_rng(0)))
    norms = np.linalg.norm(found, 1 if loss.pure else 2, axis=1)
    sizes = np.abs(found[:, : loss.n_outputs]).sum(axis=1)
    assert norms.max() <= loss.bound
    assert sizes.max() <= loss.residual_bound
    # No smaller bounds hold.
    assert norms.max() >= 0.99 * loss.bound
    assert sizes.max() >= 0.99 * loss.residual_bound
    # Sums are exact.
    np.testing.assert_array_equal(found * 2**20, np.round(found * 2**20))


@pytest.mark.parametrize("loss", list(LOSSES.values())[:4], ids=list(LOSSES)[:4])
def test_contributions_are_hardly_shortened(loss):
    """The norm without the limit, for the scores of records that are most in the way of it."""
    scores, targets = scores_and_targets(loss, 5000, np.random.default_rng(1))
    residuals, curvatures = loss._parts(scores, targets)
    lengths = np.sqrt((residuals**2).sum(axis=1) + loss.curvature_weight**2 * (curvatures**2).sum(axis=1))
    assert np.all(lengths <= loss.bound * (1 + 1e-9))


def test_curvatures_are_derivatives_of_residuals():
    for loss in (LabelLoss(1), LabelLoss(1, link=Link(most=0.5))):
        # The clip has a kink at 0.
        s, h = np.linspace(-4, 4, 40)[:, None], 1e-5
        ones = np.ones(40)
        slope = (loss._parts(s + h, ones)[0] - loss._parts(s - h, ones)[0]) / (2 * h)
        np.testing.assert_allclose(loss._parts(s, ones)[1], -slope, atol=1e-8)
    link = Link(most=0.5)
    p = special.expit(link.logits(np.array([0.7])))
    np.testing.assert_allclose(LabelLoss(1, link=link)._parts(np.array([[0.7]]), np.ones(1))[0][:, 0], 1 - p)


COLUMNS = [[50, 30, 20, 0, 5, 9, 9, 9, 9, 9], [90, 10], [5, 5, 5, 5, 80, 1]], (True, False, False)


def candidates(counts, ordered):
    shares = [smoothed_shares(np.array(own, dtype=float), kind, 1.0) for own, kind in zip(counts, ordered, strict=True)]
    return Candidates.of(shares, ordered, np.ones(len(shares)), 1000.0)


def sizes_of(every, loss, codes, scores, targets):
    sums = every.sums(codes, loss.contributions(scores, targets)[:, : loss.n_outputs])
    return every.sizes(every.split(sums, loss.n_outputs))


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_one_record_moves_each_score_and_each_table_by_the_stated_bounds_at_most(loss):
    every = candidates(*COLUMNS)
    n_cells = [len(own) for own in COLUMNS[0]]
    rng = np.random.default_rng(0)
    largest = longest = 0.0
    terms = [every.term(own) for own in every.every]
    assert {len(term.columns) for term in terms} == {1, 2, 3}
    for n_rows in (0, 40):
        codes = np.stack([rng.integers(n + 1, size=n_rows) for n in n_cells]).astype(np.int32)
        scores, targets = scores_and_targets(loss, n_rows, rng)
        before = sizes_of(every, loss, codes, scores, targets)
        tables = [_stages._sums_of_cells(term, loss, scores, targets, codes) for term in terms]
        # Records in every cell; the last cell stands for entries in no cell.
        for cells in itertools.product(*(range(n + 1) for n in n_cells)):
            one = scores_and_targets(loss, 1, rng)
            if rng.random() < 0.3 and not isinstance(loss, SquaredLoss):
                one = np.eye(1, loss.n_outputs) * 1e3, np.array([0 if loss.n_outputs == 1 else 1])
            more = np.column_stack([codes, np.array(cells, dtype=np.int32)])
            together = np.vstack([scores, one[0]]), np.append(targets, one[1])
            largest = max(largest, np.abs(sizes_of(every, loss, more, *together) - before).max())
            for term, table in list(zip(terms, tables, strict=True))[:: 1 + len(terms) // 4]:
                moved = _stages._sums_of_cells(term, loss, *together, more) - table
                longest = max(longest, float(np.linalg.norm(moved, 1 if loss.pure else 2)))
    assert loss.residual_bound * 0.99 <= largest <= loss.residual_bound
    assert loss.bound * 0.99 <= longest <= loss.bound


@pytest.mark.parametrize("most", [1, 200, 10**4])
def test_scores_are_sums_of_sizes_in_the_cells_of_the_term(monkeypatch, most):
    # In blocks of records, and from tables over many or few columns.
    monkeypatch.setattr(_cells, "_ROWS_OF_SUMS", 70)
    monkeypatch.setattr(_cells, "_MOST_CELLS_AT_ONCE", most)
    counts, ordered = 2 * COLUMNS[0], 2 * COLUMNS[1]
    every, loss = candidates(counts, ordered), LabelLoss(3)
    rng = np.random.default_rng(2)
    codes = np.stack([rng.integers(len(own) + 1, size=200) for own in counts]).astype(np.int32)
    scores, targets = scores_and_targets(loss, 200, rng)
    found = sizes_of(every, loss, codes, scores, targets)
    for own, size in zip(every.every, found, strict=True):
        term = every.term(own)
        table = _stages._sums_of_cells(term, loss, scores, targets, codes).reshape(-1, 6)[:, :3]
        assert size == np.abs(table).sum()


def test_joint_cells_of_three_columns():
    maps = [np.array([0, 1, 1, 2], dtype=np.int32), np.array([0, 1, 2], dtype=np.int32), np.array([0, 0, 1])]
    found = joint_cells(maps, np.array([[0, 2, 3, 1], [1, 1, 0, 2], [0, 1, 0, 2]]))
    # Entries in no cell of a column are in no joint cell.
    np.testing.assert_array_equal(found, [1, 3, 4, 4])


def test_numbers_of_stages():
    assert n_stages(500, 1) == n_stages(30, 1, pure=True) == 0
    assert n_stages(6600, 1) == n_stages(6600 * 3, 9) == 6
    assert n_stages(_stages.PURE_AT, 1, pure=True) == n_stages(2 * _stages.PURE_AT, 9, pure=True) == _stages.PURE_STAGES
    for pure in (False, True):
        assert n_stages(math.inf, 1, pure) == _stages.MOST_STAGES
        found = [n_stages(evidence, 1, pure) for evidence in np.geomspace(3, 3e7, 50)]
        assert found == sorted(found)


# --- values of tables -------------------------------------------------------------------------------------------------


def test_values_without_noise_solve_the_equation_of_each_cell():
    rng = np.random.default_rng(0)
    loss, n = LabelLoss(1), 40_000
    cells, scores = rng.integers(4, size=n), rng.normal(scale=0.3, size=(n, 1))
    effects = np.array([-0.4, -0.1, 0.2, 0.3])
    targets = (rng.random(n) < special.expit(scores[:, 0] + effects[cells])).astype(int)
    term = candidates([[1, 1, 1, 1]], (False,)).term(_stages.Candidate((0,), (0,)))
    sums = _stages._sums_of_cells(term, loss, scores, targets, cells[None].astype(np.int32)).reshape(4, 2)
    values, noise, curvatures = table_values(loss, sums, 0.0, n, 0.0)
    best = [
        optimize.brentq(
            lambda v, k=k: float(np.sum(targets[cells == k] - special.expit(scores[cells == k, 0] + v))), -2, 2
        )
        for k in range(4)
    ]
    np.testing.assert_allclose(values[:, 0], best, atol=0.03)
    assert np.all(noise == 0)
    assert curvatures[0] == pytest.approx(0.24, abs=0.02)


def test_values_of_noise_alone_are_small():
    rng = np.random.default_rng(0)
    loss = SquaredLoss()
    sums = np.zeros((64, 2))
    sums[:, 1] = loss.curvature_weight * 100
    raw = [sums + 20 * rng.standard_normal(sums.shape) for _ in range(40)]
    kept = [float(np.mean(table_values(loss, own, 20.0, 6400, 0.3 * 640)[0] ** 2)) for own in raw]
    assert np.mean(kept) < 0.2 * np.mean([np.mean((own[:, 0] / 100) ** 2) for own in raw])


def test_tables_of_numbers_have_mean_0():
    """The mean of clipped residuals is not the mean of the targets."""
    rng = np.random.default_rng(0)
    counts = np.array([100.0, 900.0, 2000.0])
    for loss, is_centred in ((SquaredLoss(clip=0.3), True), (LabelLoss(1), False)):
        sums = np.stack([counts * [0.5, 0.3, 0.7], loss.curvature_weight * 0.2 * counts], axis=1)
        values = table_values(loss, sums + rng.standard_normal(sums.shape), 1.0, 3000.0, 300.0)[0][:, 0]
        assert (abs(counts @ values) < 0.01 * (counts @ abs(values))) == is_centred
        assert values[2] > values[0] > values[1]


# --- fits -------------------------------------------------------------------------------------------------------------


@MAKERS
def test_a_pair_is_found_and_pays(make):
    X, y = table()
    new, target = table(4000, seed=1)
    target = labels(target) if make is classifier else target
    auto, without = (fitted(make, X, y, interactions=value) for value in ("auto", None))
    assert auto.term_columns_[4] == (0, 2)
    assert auto.score(new, target) >= without.score(new, target) + 0.05
    assert str(auto.privacy_) == str(make().privacy_plan(n_features=4))


def test_a_table_of_three_columns_and_several_classes():
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(9000, 4)).astype(float)
    y = (X[:, :3].sum(axis=1).astype(int) % 2) + (X[:, 3] > rng.random(9000)).astype(int)
    model = DPAdditiveClassifier(
        epsilon=4.0, delta=1e-6, categories=dict.fromkeys(range(4), 2), classes=[0, 1, 2], interactions="auto"
    )
    model.set_params(random_state=0).fit(X, y)
    assert (0, 1, 2) in model.term_columns_
    assert model.terms_[model.term_columns_.index((0, 1, 2))].shape == (2, 2, 2, 3)
    assert model.score(X, y) > clone_without(model).fit(X, y).score(X, y) + 0.15
    np.testing.assert_allclose(model.contributions(X).sum(axis=1) + model.intercept_, model.decision_function(X))


def clone_without(model):
    return clone(model).set_params(interactions=None)


@MAKERS
@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_little_is_lost_where_there_is_no_pair(make, epsilon):
    X, y = table(6000, strength=0.0)
    new, target = table(4000, strength=0.0, seed=1)
    target = labels(target) if make is classifier else target
    auto, without = (fitted(make, X, y, epsilon=epsilon, interactions=value) for value in ("auto", None))
    assert auto.score(new, target) >= without.score(new, target) - 0.03


@MAKERS
@pytest.mark.parametrize(("n_rows", "epsilon"), [(0, 1.0), (1, 1.0), (60, 1.0), (1500, 0.1)])
def test_with_few_records_it_is_the_fit_without(make, n_rows, epsilon):
    X, y = table(4000)
    X, y = X[:n_rows], y[:n_rows]
    y = (y > 0).astype(int) if make is classifier else y
    auto, without = (make(epsilon=epsilon, interactions=value).fit(X, y) for value in ("auto", None))
    new = table(100, seed=2)[0]
    # The two budgets differ by what rounding may take.
    np.testing.assert_allclose(auto.contributions(new), without.contributions(new), rtol=1e-3, atol=1e-4)


@MAKERS
def test_without_delta_stages_are_all_there_is(make):
    X, y = table(6000)
    pure = {"delta": 0.0, "epsilon": 10.0}
    auto, without, named = (fitted(make, X, y, **pure, interactions=value) for value in ("auto", None, [(1, 3)]))
    assert (0, 2) in auto.term_columns_
    assert without.term_columns_ == [(j,) for j in range(4)]
    assert named.term_columns_ == [*without.term_columns_, (1, 3)]
    target = labels(y) if make is classifier else y
    assert auto.score(X, target) > without.score(X, target) + 0.05
    assert without.score(X, target) > (0.6 if make is classifier else 0.3)
    assert np.all(auto.noise_std(X[:5]) > 0)
    with replaced(_stages, "PURE_FEWEST", lambda true: math.inf):
        few = fitted(make, X, y, **pure)
    assert not few.contributions(X).any()
    assert not few.noise_std(X[:5]).any()


def refined(model, X, y):
    """Fit, and return the events of all parts of the reserve, by the label of the release."""
    spent = {}
    original = _plans.ReleaseSession.refine

    def refine(session, label, releases, events):
        spent.update((release.label, event) for release, event in zip(releases, events, strict=False))
        return original(session, label, releases, events)

    with replaced(_plans.ReleaseSession, "refine", lambda true: refine):
        model.fit(X, y)
    return spent


@DELTAS
@MAKERS
def test_all_releases_together_are_the_budget(make, delta):
    X, y = table()
    model = make(delta=delta)
    guarantee = model.privacy_plan(n_features=4)
    assert math.fsum(release.share for release in guarantee.releases) == pytest.approx(1)
    used = math.fsum(event.mu() ** 2 if delta else event.epsilon for event in guarantee.events)
    whole = gaussian_mu(2.0, 1e-5) ** 2 if delta else 2.0
    assert whole * (1 - 1e-6) <= used <= whole
    assert model._fixed_cost() == guarantee.cost
    target = labels(y) if make is classifier else y
    assert {"choice 1", "table 1"} <= set(refined(model, X, target))
    budget = BudgetAccountant(2.0, 1e-5)
    with pytest.warns(match="random_state"):
        model.set_params(accountant=budget).fit(X, target)
    assert len(budget) == 1


@DELTAS
@MAKERS
def test_parts_of_the_reserve_are_never_more_than_it(make, delta):
    """What each mechanism costs, from its noise, adds up to what the plan states if all stages take place."""
    X, y = table()
    with choosing(lambda mechanism, scores, own: 0):
        found = transcript(make(delta=delta), (X, labels(y) if make is classifier else y))
    whole = gaussian_mu(2.0, 1e-5) if delta else 2.0
    assert sum(place[1].startswith("table") for place in found) == n_stages(3000 * whole, 1, pure=not delta)
    costs = []
    for released in found.values():
        mechanism = released.mechanism
        if isinstance(mechanism, GroupChoices):
            assert mechanism.bounded_range == bool(delta)
            costs.append(bounded_range_mu(mechanism.epsilon) if delta else mechanism.epsilon)
        else:
            costs.append(mechanism.sensitivity / mechanism.scale)
    used = math.hypot(*costs) if delta else math.fsum(costs)
    assert 0.98 * whole <= used <= whole * (1 + 1e-9)


@MAKERS
def test_the_end_is_where_none_is_chosen(make):
    X, y = table()
    target = labels(y) if make is classifier else y
    with choosing(lambda mechanism, scores, own: len(scores) - 1):
        found = transcript(make(), (X, target))
        model = make().fit(X, target)
    assert len(model.term_columns_) == 4
    # What is left repeats the fit of the curves, with more of the budget.
    assert sum(place[1].startswith("choice") for place in found) == 1
    first, second = model._engine.engines
    assert second.label == AGAIN
    assert second.reserved < first.reserved
    assert sum(model._engine.weights) == pytest.approx(1)


@MAKERS
def test_the_choice_alone_decides(make):
    X, y = table()
    target = labels(y) if make is classifier else y
    free = make().fit(X, target)
    places = []
    with choosing(lambda mechanism, scores, own: places.append(own()) or places[-1]):
        make().fit(X, target)
    waiting = list(places)
    with choosing(lambda mechanism, scores, own: waiting.pop(0)):
        again = make().fit(X, target)
    np.testing.assert_array_equal(again.contributions(X), free.contributions(X))


@DELTAS
@MAKERS
def test_records_are_seen_through_their_contributions_and_released_numbers(make, delta):
    """Given all that was released before, one record moves scores and tables by the stated bounds at most."""
    X, y = table()
    target = labels(y) if make is classifier else y
    found = transcript(make(delta=delta), (X[:-1], target[:-1]))
    other = transcript(make(delta=delta), (X, target), found)
    loss = (LabelLoss if make is classifier else SquaredLoss)(pure=not delta)
    places = [place for place in found if place[1].startswith(("choice", "table"))]
    assert len(places) > 2
    for place in places:
        moved = np.abs(other[place].value - found[place].value)
        if place[1].startswith("choice"):
            assert 0 < moved.max() <= loss.residual_bound + 1e-6
        else:
            assert 0 < np.linalg.norm(moved, 2 if delta else 1) <= loss.bound


# --- what is done with a fit ------------------------------------------------------------------------------------------


@MAKERS
def test_fits_with_stages_can_be_used_as_others(make):
    X, y = table()
    model = fitted(make, X, y)
    score = model.decision_function if make is classifier else model.predict
    assert model.term_names_[4] == "x0 x x2"
    np.testing.assert_allclose(model.contributions(X).sum(axis=1) + model.intercept_, score(X))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.contributions(X), model.contributions(X))
    explained = model.explain_local(X[:3])
    assert sum(explained[0].values()) == pytest.approx(float(score(X[:1])[0]))
    assert model.feature_importances_[[0, 2]].min() > model.feature_importances_[3]


@MAKERS
def test_scores_follow_from_json(make):
    X, y = table()
    model = fitted(make, X, y)
    content = json.loads(model.to_json())
    names = [f"x{j}" for j in range(4)]
    edges = {own["columns"][0]["name"]: own["columns"][0]["edges"] for own in content["terms"][:4]}
    cells = {name: np.searchsorted(edges[name][1:-1], X[:, j], side="right") for j, name in enumerate(names)}
    scores = np.full(len(X), np.ravel(content["intercept"])[0])
    for term in content["terms"]:
        places = []
        for own in term["columns"]:
            merged = own.get("merged")
            places.append(cells[own["name"]] if merged is None else np.array(merged)[cells[own["name"]]])
        scores += np.array(term["values"])[tuple(places)]
    np.testing.assert_allclose(scores, model.decision_function(X) if make is classifier else model.predict(X))


@MAKERS
def test_effects_of_single_columns_are_in_curves(make):
    """By released counts, a table has a mean of 0 over each of its columns, up to the smoothing of counts."""
    X, y = table(20_000)
    model = fitted(make, X, y, epsilon=20.0)
    for term, values in list(zip(model._all_terms, model.terms_, strict=True))[4:]:
        if len(term.columns) == 2:
            weights = [
                np.bincount(own[:-1], np.maximum(model.cell_counts_[j], 0))
                for j, own in zip(term.columns, term.maps, strict=True)
            ]
            size = np.abs(values).mean()
            assert np.abs(weights[0] @ values / weights[0].sum()).mean() < 0.05 * size
            assert np.abs(values @ weights[1] / weights[1].sum()).mean() < 0.05 * size


@MAKERS
def test_a_later_fit_without_stages_forgets_them(make):
    X, y = table()
    model = fitted(make, X, y)
    assert len(model.term_columns_) > 4
    model.set_params(interactions=None)
    model.fit(X, labels(y) if make is classifier else y)
    assert len(model.term_columns_) == 4
    assert len(model.explain_local(X[:1])[0]) == 5


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
    assert "town x hours" in model.term_names_[3:]
    deviations = model.noise_std({name: own[:4] for name, own in frame.items()})
    assert deviations.shape == (4,)
    assert np.all(deviations > 0)
    assert len(AdditiveTermsDisplay.from_estimator(model).axes_.ravel()) >= 3
    assert len(model.cell_names_[2]) == len(model.cell_counts_[2])


def test_noise_of_predictions_is_about_that_of_fits():
    X, y = table(3000)
    models = []
    for seed in range(12):
        # The same tables in all fits: the most important one, and the first one.
        picks = iter(range(100))
        with choosing(lambda mechanism, scores, own, picks=picks: 4 * (next(picks) % 3)):
            models.append(regressor(random_state=seed).fit(X, y))
    assert len({tuple(model.term_columns_) for model in models}) == 1
    measured = np.std([model.predict(X[:300]) for model in models], axis=0, ddof=1)
    stated = models[0].noise_std(X[:300])
    assert 0.4 <= np.median(measured / stated) <= 2.5


def test_another_text_is_refused_before_the_charge():
    X, y = table(50)
    budget = BudgetAccountant(10, 1e-3)
    for make in (regressor, classifier):
        with pytest.raises(ValueError, match="interactions must be"):
            fitted(make, X, y, interactions="automatic", accountant=budget)
    assert len(budget) == 0
