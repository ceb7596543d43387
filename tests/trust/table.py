"""All subjects."""

from tests.trust import clusters, components, ensembles, functional, gradients, local, perturbation, searches

SUBJECTS = [
    *perturbation.SUBJECTS,
    *functional.SUBJECTS,
    *gradients.SUBJECTS,
    *clusters.SUBJECTS,
    *components.SUBJECTS,
    *ensembles.SUBJECTS,
    *local.SUBJECTS,
    *searches.SUBJECTS,
]
