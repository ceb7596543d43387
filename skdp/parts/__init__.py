"""Rows that lie elsewhere, in parts, such as the partitions of a Dask collection. A part sends sums, and never rows."""
