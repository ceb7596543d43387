"""Model cards: their numbers are those of the guarantee, and nothing in them depends on rows that were not released."""

import math
import re
from statistics import NormalDist

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import skdp
from skdp import (
    DPPCA,
    BudgetAccountant,
    DPGridSearchCV,
    DPNaiveBayes,
    DPRandomTree,
    LocalDPNaiveBayes,
    Number,
    ObjPertLogReg,
    Schema,
    TableEncoder,
    make_private_pipeline,
    private_score,
)
from skdp.exceptions import PrivacyAssumptionWarning
from skdp.inspection import model_card
from tests.estimators import ESTIMATORS, data_for, declared, name_of, needs_y

SCHEMA = Schema({"age": Number(18, 95)}, target={"repaid": ["no", "yes"]})


def fitted(n_rows=500, **parameters):
    table = SCHEMA.sample(n_rows)
    return DPNaiveBayes(schema=SCHEMA, **parameters).fit(table, table["repaid"])


def with_one_release(**parameters):
    """A model without a schema, whose labels are not counted by a release of their own."""
    model = DPNaiveBayes(bounds=(18, 95), classes=["no", "yes"], **parameters)
    return model.fit(np.linspace(18, 95, 100)[:, None], ["no", "yes"] * 50)


def test_labels_that_were_not_declared_are_not_listed():
    X, y = np.linspace(18, 95, 100)[:, None], ["no", "rare name"] * 50
    model = DPNaiveBayes(bounds=(18, 95))
    with pytest.warns(PrivacyAssumptionWarning):
        text = model_card(model.fit(X, y))
    assert "rare name" not in text
    assert "Labels: read from the records, and not listed here" in text
    assert "rare name" in model_card(model.set_params(classes=["no", "rare name"]).fit(X, y))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
def test_every_estimator_has_a_card_that_lists_its_releases(estimator):
    model = declared(estimator)
    X, y = data_for(estimator)
    model.fit(*((X, y) if needs_y(estimator) else (X,)))
    guarantee = getattr(model, "privacy_", None)
    if guarantee is None:  # Public encoders release nothing.
        with pytest.raises(NotFittedError, match="has no guarantee"):
            model_card(model)
        return
    card = model_card(model)
    assert card.startswith(f"# {type(model).__name__}\n")
    assert all(f"| {release.label} | {release.mechanism.name} |" in card for release in guarantee.releases)
    assert ("not private" in card) == (guarantee.epsilon == math.inf)


def test_odds_and_power_are_those_of_the_guarantee():
    card = model_card(with_one_release(epsilon=math.log(3), delta=0.0))
    # Odds of 3 to 1, and tests that find three times as many.
    assert "at most 75 % of such guesses" in card
    assert "an advantage of at most 50 %" in card
    assert "- true positives at most 30 %, if false positives are at most 10 %\n" in card
    assert "- true positives at most 0.3 %, if false positives are at most 0.1 %\n" in card
    assert "records of one person" not in card


def gaussian(**parameters):
    X, _ = data_for(ObjPertLogReg(data_norm=1.0))
    return DPPCA(2, data_norm=3.0, **parameters).fit(X)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_numbers_of_gaussian_noise_are_those_of_its_curve(epsilon):
    model = gaussian(epsilon=epsilon, delta=1e-5)
    (release,) = model.privacy_.releases
    # Two normal laws, and the best test between them, apart from the functions of the card.
    law, distance = NormalDist(), release.sensitivity / release.mechanism.scale
    card = model_card(model)
    right, _, *found = (float(number) for number in re.findall(r"at most ([0-9.]+) %", card))
    powers = [law.cdf(law.inv_cdf(level) + distance) for level in (0.1, 0.01, 0.001)]
    for shown, exact in ((right, law.cdf(distance / 2)), *zip(found[::2], powers, strict=True)):
        # The numbers are rounded up to a tenth of a per cent.
        assert 100 * exact - 1e-9 <= shown < 100 * exact + 0.11
    # The pair alone gives larger numbers.
    assert right < 100 * (math.exp(epsilon) + 1e-5) / (1 + math.exp(epsilon)) - 1


def test_the_card_of_a_pipeline():
    X, y = data_for(ObjPertLogReg(data_norm=1.0))
    seeded = ObjPertLogReg(data_norm=3.0, classes=np.unique(y).tolist(), random_state=0)
    model = make_private_pipeline(DPPCA(2, data_norm=3.0), seeded, epsilon=2.0, delta=1e-6)
    card = model_card(model.fit(X, y))
    assert "| dppca: second moments" in card
    assert "| objpertlogreg: objective" in card
    assert "`random_state`" in card
    assert "`random_state`" not in model_card(model.set_params(objpertlogreg__random_state=None))


def test_the_schema_of_a_step_is_a_table_without_the_target_among_the_columns():
    table = SCHEMA.sample(200)
    step = ObjPertLogReg(random_state=17, **TableEncoder(SCHEMA).parameters(ObjPertLogReg))
    model = make_private_pipeline(TableEncoder(SCHEMA), step, accountant=BudgetAccountant(3.0))
    for estimator in (model, DPGridSearchCV(model.set_params(accountant=None), {"objpertlogreg__C": [0.1, 1.0]})):
        card = model_card(estimator.fit(table, table["repaid"]))
        assert "- Columns: age\n" in card
        assert card.count(f"```text\n{SCHEMA!r}\n```") == 1
        [line] = [line for line in card.splitlines() if line.startswith("- Parameters: ")]
        assert "TableEncoder()" in line
        assert "17" not in line
        assert "repaid" not in line


def test_groups_and_seeds_are_named():
    schema = Schema({"age": Number(18, 95)}, target={"repaid": ["no", "yes"]}, group="person", rows_per_group=2)
    table = schema.sample(200)
    model = DPNaiveBayes(schema=schema, random_state=0)
    card = model_card(model.fit(table, table["repaid"]))
    assert "without the records of one person" in card
    lines = [line for line in card.splitlines() if "theorem" in line and line.startswith("| ")][1:]
    assert lines
    assert all(line.endswith("; Units, theorem 1 |") for line in lines)
    assert repr(model.privacy_).count("; Units, theorem 1]") == len(lines)
    assert model.privacy_._repr_html_().count("; Units, theorem 1</td>") == len(lines)
    assert "Units" not in model_card(with_one_release())
    assert "`random_state`" in card


def test_the_card_does_not_depend_on_rows():
    assert model_card(fitted(500)) == model_card(fitted(3))


def test_ledger_scores_and_notes():
    budget = BudgetAccountant(epsilon=2.0, delta=1e-6)
    model = fitted(epsilon=0.5, accountant=budget.labelled("loans"))
    card = model_card(
        model, title="Loans", accountant=budget, scores={"accuracy": 0.75}, notes={"Contact": "me", "Licence": "none"}
    )
    assert card.startswith("# Loans\n\nAll releases about these records, also later ones, are together (epsilon=2")
    assert "together (epsilon=2, delta=1e-06)-differentially private, per record: at most 0.881 of guesses" in card
    assert "This implies (epsilon=4, delta=8.39e-06) if one record is replaced: at most 0.9" in card
    # A card can be public, and labels of charges may name people.
    assert "loans" not in card
    assert "- accuracy: 0.75" in card
    assert "## Contact\n\nme\n" in card
    assert "## Licence\n\nnone\n" in card
    assert "accountant=" not in card
    assert "_Who may use the model" in card


def section(card):
    return card.partition("## What is not protected\n\n")[2].partition("\n\n##")[0].splitlines()


def test_what_is_not_protected_is_that_of_the_model():
    lines = section(model_card(fitted()))
    assert 0 < len(lines) <= 6
    assert lines[0] == "- Public facts: the parameters, the names of columns, the schema."
    with pytest.warns(PrivacyAssumptionWarning):
        model = DPNaiveBayes(bounds=(18, 95)).fit(np.linspace(18, 95, 100)[:, None], ["no", "yes"] * 50)
    assert section(model_card(model))[0] == "- Public facts: the parameters, the names of columns, which labels occur."
    local = LocalDPNaiveBayes(bounds=(0, 1), classes=["no", "yes"]).fit(np.zeros((4, 1)), ["no", "yes"] * 2)
    assert section(model_card(local))[0].endswith(", the number of records.")
    assert section(model_card(fitted(epsilon=math.inf))) == []


def test_the_card_states_the_guarantee_for_a_replaced_record():
    model = fitted(epsilon=0.5)
    promise = model_card(model).splitlines()[2]
    # Of two values, Laplace laws at twice the distance show one more often than the other by 1 - exp(-epsilon).
    assert "This implies (epsilon=1, delta=0) if one record is replaced: at most " in promise
    assert (
        float(re.search("at most ([0-9.]+) of guesses between two values", promise)[1]) <= 1 - math.exp(-0.5) / 2 + 1e-3
    )


def test_the_version_is_that_of_the_code(monkeypatch):
    monkeypatch.setattr(skdp, "__version__", "9.8.7")
    assert "- Made with: skdp 9.8.7, on" in model_card(fitted())


def test_other_estimators_are_refused():
    for estimator in (LogisticRegression(), DPNaiveBayes()):
        with pytest.raises(NotFittedError, match="after its fit"):
            model_card(estimator)


@pytest.mark.parametrize("kind", [DPNaiveBayes, DPRandomTree])
def test_rare_labels_are_named_by_released_shares(kind):
    rng = np.random.default_rng(0)
    X, y = rng.random((5000, 2)), rng.choice([0, 1, 2], 5000, p=[0.6, 0.38, 0.02])
    model = kind(epsilon=10.0, bounds=(0, 1), classes=[0, 1, 2], random_state=0).fit(X, y)
    card = model_card(model)
    assert "Rare labels, by released shares of records: 2 (" in card
    assert "balanced" in card
    assert "Rare labels" not in model_card(model.set_params(class_weight="balanced").fit(X, y))
    assert "Rare labels" not in model_card(model.set_params(class_weight=None).fit(X, np.arange(5000) % 3))


def test_scores_may_be_tables_and_have_a_text():
    rows = Schema({"age": (18, 90)}, target={"ill": ["no", "yes"]})
    table = rows.sample(500)
    model = DPNaiveBayes(schema=rows, epsilon=1.0).fit(table)
    errors = private_score(model, table, metric="confusion_matrix", epsilon=1.0)
    card = model_card(model, scores={"errors": errors}, notes={"Scores": "On held-out rows."})
    assert f"- errors:\n\n```text\n{errors}\n```\n\nOn held-out rows.\n\n## Intended use\n" in card
    assert card.count("## Scores\n") == 1


def test_a_card_of_a_search_lists_its_fits_and_the_choice():
    rows = Schema({"age": (18, 90)}, target={"ill": ["no", "yes"]})
    search = DPGridSearchCV(DPNaiveBayes(schema=rows), {"n_bins": [2, 4]}, epsilon=1.0, strategy="holdout")
    card = model_card(search.fit(rows.sample(500)))
    assert "| selection |" in card
    for line in search.privacy_.fits:
        assert f"\n- {line}\n" in card
    assert search.privacy_.fits


def test_a_fit_about_records_in_a_budget_about_groups_is_named():
    budget = BudgetAccountant(epsilon=2.0, delta=1e-6, unit="group")
    budget.spend(1.0, 0.0)
    rows = Schema({"age": (18, 90)}, target={"ill": ["no", "yes"]})
    model = DPNaiveBayes(schema=rows, epsilon=0.5).fit(rows.sample(100))
    card = model_card(model, accountant=budget)
    assert "the guarantee for a person is that of the budget" in card
    assert "A person has one record" not in card
    assert "together (epsilon=2, delta=1e-06)-differentially private, per group" in card
    assert "A person has one record" in model_card(model)
