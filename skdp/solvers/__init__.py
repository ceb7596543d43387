"""Optimisation with released numbers."""
