"""Plans, sessions and the life cycle of a fit: where private values turn into released ones."""
