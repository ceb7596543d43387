"""Set-up that has to come before anything imports SciPy."""

import os

# scikit-learn skips one of its checks without it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
