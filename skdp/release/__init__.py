"""Plans, sessions and the life cycle of a fit, in which private values become released ones."""
