"""Run the quick start, save its pictures, and say what to do next. This is `make demo`."""

import runpy
import shlex
import sys
import tempfile
from pathlib import Path

import matplotlib

# The pictures are saved and not shown, so that no window has to be closed.
matplotlib.use("Agg")

found = runpy.run_path(str(Path(__file__).with_name("plot_quickstart.py")))
for name, picture in {
    "accuracy": found["figure"],
    "curves": found["display"].figure_,
}.items():
    path = Path(f"quickstart_{name}.png")
    try:
        picture.savefig(path, dpi=150)
    except OSError:
        path = Path(tempfile.gettempdir(), path)
        picture.savefig(path, dpi=150)
    print(f"\npicture: {path.resolve()}", end="")

print(
    f"""

What to do next
  look at the two pictures
  {shlex.quote(sys.executable)} -m skdp ledger {shlex.quote(str(found["folder"] / "adult.db"))}
  docs/getting_started.rst   fit a private model to a CSV file of your own
  docs/which_estimator.rst   choose an estimator for your task"""
)
