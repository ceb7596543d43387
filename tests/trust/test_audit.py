"""Does every estimator keep what it claims, and would it be seen if it did not?

Each reading is wrong with a probability of at most 1e-6 (`subjects.ERROR`). Seeds are fixed, but in `make audit-long`.
`kill_table.py` prints which mutants are killed, by what, and at which claim.
"""

import math

import pytest

from skdp.audit import epsilon_lower_bound
from skdp.audit._runs import _PILOT
from tests.estimators import BY_GROUP, ONE_EACH
from tests.trust.subjects import ERROR, run
from tests.trust.table import SUBJECTS

# Choices that are made on purpose may all be the same.
SAME_CHOICES = "ignore:all released quantiles:skdp.exceptions.ResolutionWarning"
pytestmark = [
    pytest.mark.audit,
    pytest.mark.filterwarnings(SAME_CHOICES),
    # Targets of audits are in a small part of their bounds.
    pytest.mark.filterwarnings("ignore:bounds_y are far too wide"),
    pytest.mark.usefixtures("notes_of_modules_are_left"),
]

each_subject = pytest.mark.sample(by=lambda subject: subject.name)
half_of_the_subjects = pytest.mark.sample(by=lambda subject: subject.name, every=2)
# Runs take many fits.
some_subjects = pytest.mark.sample(by=lambda subject: subject.name, every=5)


def by_claims(pairs):
    return [pytest.param(subject, claim, id=f"{subject.name}-{claim[0]:g}-{claim[1]:g}") for subject, claim in pairs]


CLAIMS = by_claims((subject, claim) for subject in SUBJECTS if subject.reading is not None for claim in subject.claims)

RUNS = by_claims((subject, claim) for subject in SUBJECTS for claim in subject.runs)

MUTANTS = [
    pytest.param(subject, name, claim, id=f"{subject.name}-{name}-{claim[0]:g}-{claim[1]:g}")
    for subject in SUBJECTS
    for name in subject.all_mutants()
    for claim in subject.claims
    if name not in subject.survives and (name, claim) not in subject.survives
]


def check(subject, claim, reading, floor):
    assert reading.recorded <= claim[0] * (1 + 1e-9)
    assert not reading.violated, reading
    assert reading.estimate >= floor * claim[0], f"{reading}: too blunt to mean anything"


@half_of_the_subjects
@pytest.mark.parametrize(("subject", "claim"), CLAIMS)
def test_claim_stands_and_is_nearly_used(subject, claim):
    check(subject, claim, subject.reading(subject, *claim), subject.floor)


@some_subjects
@pytest.mark.parametrize(("subject", "claim"), RUNS)
def test_claim_stands_in_runs(subject, claim):
    check(subject, claim, run(subject, *claim), subject.run_floor.get(claim, 0.0))


@each_subject
@pytest.mark.parametrize(("subject", "name", "claim"), MUTANTS)
def test_mutant_is_killed(subject, name, claim):
    breakage, broken = subject.all_mutants()[name]
    with breakage():
        assert broken.is_violated(*claim)


def test_names_are_unique():
    names = [subject.name for subject in SUBJECTS]
    assert len(set(names)) == len(names)


def test_every_estimator_is_audited_by_record_and_by_group():
    audited = set()
    for subject in SUBJECTS:
        model = subject.make(*subject.claims[0])
        audited.add((type(model).__name__, getattr(model, "rows_per_group", None) is not None))
    expected = {(type(model).__name__, False) for model in ONE_EACH} | {
        (type(model).__name__, True) for model in BY_GROUP
    }
    assert expected <= audited


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_runs_are_made_and_could_object(subject):
    assert set(subject.run_floor) <= set(subject.runs) <= set(subject.claims)
    for (epsilon, delta), n_runs in subject.runs.items():
        counted = n_runs - math.ceil(_PILOT * n_runs)
        assert epsilon_lower_bound(counted, 0, counted, delta=delta, error=ERROR) > epsilon
