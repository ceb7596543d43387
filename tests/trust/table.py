"""All subjects."""

from tests.trust import functional, gradients, perturbation

SUBJECTS = [*perturbation.SUBJECTS, *functional.SUBJECTS, *gradients.SUBJECTS]
