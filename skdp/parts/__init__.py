"""Data in parts on other machines, such as the partitions of a Dask collection. A part sends sums, but never rows."""
