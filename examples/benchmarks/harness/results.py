"""Read and write the tidy files of results."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from methods import Cell

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "benchmarks"

COLUMNS = (
    *("task", "method", "library", "version", "epsilon", "delta", "split", "draw"),
    *("metric", "value", "seconds", "spent", "status"),
)


def number(text):
    """Return a number, or None for an empty text."""
    return float(text) if text else None


def short(value):
    """Return a number with six digits, or an empty text."""
    return "" if value is None else f"{value:.6g}"


def figure(value):
    """A number as the documentation shows it."""
    if value is None:
        return "–"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def delta_text(delta):
    """A delta as the documentation writes it."""
    return "0" if delta == 0 else "1e-5"


def read(path):
    """Return the rows of a file, with numbers as numbers, without an incomplete last line. No file means no rows."""
    if not Path(path).exists():
        return []
    rows = []
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            if row["status"] is None or not row["status"]:
                continue
            for name in ("epsilon", "delta", "value", "seconds", "spent"):
                row[name] = number(row[name])
            row["split"], row["draw"] = int(row["split"]), int(row["draw"])
            rows.append(row)
    return rows


def cell_of(row):
    """Return the cell of a row."""
    return Cell(
        *(row[name] for name in ("task", "library", "method", "epsilon", "delta")),
        split=row["split"],
        draw=row["draw"],
    )


def rows_of(cell, answer):
    """Return one row for each metric, or one row without a metric if there is none."""
    common = {
        "task": cell.task,
        "method": cell.method,
        "library": cell.library,
        "version": answer["version"],
        "epsilon": "inf" if math.isinf(cell.epsilon) else short(cell.epsilon),
        "delta": short(cell.delta),
        "split": cell.split,
        "draw": cell.draw,
        "seconds": short(answer["seconds"]),
        "spent": short(answer["spent"]),
        "status": answer["status"],
    }
    metrics = answer["metrics"] or {"": None}
    return [common | {"metric": metric, "value": short(value)} for metric, value in metrics.items()]


def write(path, rows, append=False):
    """Write rows, or add them to a file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not append or not path.exists() or path.stat().st_size == 0
    cut = not new and not path.read_bytes().endswith(b"\n")
    with open(path, "a" if append else "w", newline="") as file:
        file.write("\n" if cut else "")
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(rows)


def text_of(row):
    """Return a row as text."""
    numbers = {name: short(row[name]) for name in ("delta", "value", "seconds", "spent")}
    return row | numbers | {"epsilon": "inf" if math.isinf(row["epsilon"]) else short(row["epsilon"])}


def dropdown(title, block):
    """Text that unfolds."""
    return f".. dropdown:: {title}\n\n" + "\n".join(f"   {line}" if line else "" for line in block.splitlines()) + "\n"


def image(path, text):
    """A picture in its versions for light and for dark pages; the path lacks the end that tells them apart."""
    return "\n".join(
        f".. image:: {path}_{kind}.svg\n   :alt: {text}\n   :class: only-{kind}\n" for kind in ("light", "dark")
    )


def csv_table(title, header, rows, widths=None):
    """Return a table in reStructuredText."""

    def line(cells):
        return "   " + ", ".join('"' + str(cell).replace('"', '""') + '"' for cell in cells)

    options = [f"   :header: {line(header).strip()}"]
    if widths:
        options.append(f"   :widths: {' '.join(map(str, widths))}")
    return "\n".join([f".. csv-table:: {title}", *options, "", *map(line, rows), ""]) + "\n"
