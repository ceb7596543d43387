"""All subjects."""

from tests.trust import (
    additive,
    clusters,
    components,
    counts,
    ensembles,
    functional,
    gradients,
    groups,
    local,
    perturbation,
    preprocessing,
    searches,
    statistics,
    tables,
    targets,
    trees,
)

SUBJECTS = [
    *additive.SUBJECTS,
    *perturbation.SUBJECTS,
    *functional.SUBJECTS,
    *gradients.SUBJECTS,
    *counts.SUBJECTS,
    *tables.SUBJECTS,
    *trees.SUBJECTS,
    *preprocessing.SUBJECTS,
    *groups.SUBJECTS,
    *clusters.SUBJECTS,
    *components.SUBJECTS,
    *ensembles.SUBJECTS,
    *local.SUBJECTS,
    *searches.SUBJECTS,
    *statistics.SUBJECTS,
    *targets.SUBJECTS,
]
