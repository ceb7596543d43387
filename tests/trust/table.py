"""All subjects."""

from tests.trust import functional, gradients, local, perturbation, searches

SUBJECTS = [
    *perturbation.SUBJECTS,
    *functional.SUBJECTS,
    *gradients.SUBJECTS,
    *local.SUBJECTS,
    *searches.SUBJECTS,
]
