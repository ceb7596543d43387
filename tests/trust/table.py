"""All subjects."""

from tests.trust import clusters, components, ensembles, linear

SUBJECTS = [*linear.SUBJECTS, *clusters.SUBJECTS, *components.SUBJECTS, *ensembles.SUBJECTS]
