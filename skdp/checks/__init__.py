"""Validation of parameters and data, without telling about values."""
