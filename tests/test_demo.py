"""`make demo` runs in any folder, shows its five steps, and leaves two pictures. Everything here is certain."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "examples" / "demo.py"


@pytest.mark.sample(every=30)
def test_demo(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: the demo draws pictures")
    run = subprocess.run([sys.executable, "-W", "error", SCRIPT], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert [line[1] for line in run.stdout.splitlines() if line.startswith("[")] == list("12345")
    assert "(epsilon=1, delta=1e-07)-differentially private" in run.stdout
    assert "One more fit at epsilon 3 is refused" in run.stdout
    assert "What to do next" in run.stdout
    # The command of the ledger works without an active environment.
    (command,) = [line.strip() for line in run.stdout.splitlines() if " -m skdp ledger " in line]
    shown = subprocess.run(
        shlex.split(command), capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PATH": ""}
    )
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("ceiling")
    pictures = [tmp_path / f"quickstart_{name}.png" for name in ("accuracy", "curves")]
    assert all(picture.stat().st_size > 10_000 for picture in pictures)
