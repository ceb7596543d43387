"""The code on the cheat sheet runs, and everything on it is inside of its column. Everything here is certain."""

import io
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path

import pytest

import skdp

pytest.importorskip("matplotlib", reason="matplotlib is not installed: it draws the cheat sheet")
SCRIPT = Path(__file__).resolve().parents[1] / "docs" / "cheat_sheet.py"


@pytest.fixture(scope="module")
def sheet():
    spec = spec_from_file_location("cheat_sheet", SCRIPT)
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_code_runs(sheet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cards = [card for column in sheet.COLUMNS for card in column]
    namespace, printed = {"__name__": "__main__"}, io.StringIO()
    exec("\n".join(cards[0].code_lines()), namespace)
    for name in ("loans.csv", "new_loans.csv"):
        namespace["schema"].sample(3000).to_csv(name, index=False)
    with redirect_stdout(printed):
        for card in cards[1:]:
            if card.language == "python":
                exec(compile("\n".join(card.code_lines()), card.title, "exec"), namespace)
    assert "-differentially private" in printed.getvalue()
    assert {"loans.db", "loans.toml", "shared.csv", "model.joblib", "sklearn.joblib"} <= {
        p.name for p in tmp_path.iterdir()
    }
    (commands,) = [card for card in cards if card.language == "console"]
    for command in "\n".join(commands.code_lines()).replace("\\\n", "").split("$ python ")[1:]:
        run = subprocess.run([sys.executable, *shlex.split(command)], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr


def test_texts_are_inside_of_the_page_and_do_not_overlap(sheet):
    drawing, ends = sheet.draw()
    assert max(ends) < sheet.HEIGHT - sheet.MARGIN / 2
    renderer = drawing.figure.canvas.get_renderer()
    boxes = [text.get_window_extent(renderer) for text in drawing.texts]
    scale = drawing.figure.dpi
    width = (sheet.WIDTH - 2 * sheet.MARGIN - 2 * sheet.GAP) / 3
    for box, text in zip(boxes[2:], drawing.texts[2:], strict=True):
        column = (box.x0 / scale - sheet.MARGIN) // (width + sheet.GAP)
        right = sheet.MARGIN + column * (width + sheet.GAP) + width
        assert box.x1 / scale <= right, text.get_text()
    for k, (box, text) in enumerate(zip(boxes, drawing.texts, strict=True)):
        others = [other for other in boxes[k + 1 :] if other.width and box.width and box.overlaps(other)]
        assert all(min(box.y1, o.y1) - max(box.y0, o.y0) < 0.3 * box.height for o in others), text.get_text()


def test_estimators_are_those_of_the_page(sheet):
    rows = sheet.recommended_estimators()
    assert len(rows) > 10
    assert all(hasattr(skdp, estimator) for _, estimator in rows)
    assert all(above != below for above, below in pairwise(rows))


def test_it_is_written_as_picture_and_as_document(sheet, tmp_path):
    sheet.main(tmp_path)
    assert (tmp_path / "cheat_sheet.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "cheat_sheet.pdf").read_bytes().startswith(b"%PDF")
