"""Virtual environments of the peers, from pinned requirements."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
REQUIREMENTS = HERE.parent / "requirements"


def python_of(name, given=None):
    """Return the Python of an environment, which is made if it is missing or if its requirements have changed.

    `given` maps names of environments to Pythons that are used instead.
    """
    if given and name in given:
        return Path(given[name])
    folder = ROOT / f".venv-bench-{name}"
    python, stamp = folder / "bin" / "python", folder / ".stamp"
    text = (REQUIREMENTS / f"{name}.txt").read_text()
    wanted = hashlib.sha256((text + sys.version).encode()).hexdigest()
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    print(f"making {folder.name} from requirements/{name}.txt", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-r", REQUIREMENTS / f"{name}.txt"], check=True)
    stamp.write_text(wanted)
    return python


def variables(threads=1):
    """Return the environment variables of a worker: skdp from this source tree, and the number of threads."""
    names = ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM")
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        **{f"{name}_NUM_THREADS": str(threads) for name in names},
    }
