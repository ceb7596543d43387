"""Release tables and a model of a public table at several epsilons, for a page with a slider.

``python docs/epsilon_tables.py`` makes the releases again, and writes docs/benchmarks/epsilon_tables.json. The builder
of the documentation turns this file into a part of a page, which needs no server.
"""

import json
import math
import sys
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
RELEASES = HERE / "benchmarks" / "epsilon_tables.json"
EPSILONS = [0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10]
#: The epsilon before the slider is moved, and without JavaScript.
START = 1
DELTA, N_ROWS, N_FITS = 1e-6, 3_000, 5
FORMATS = {"counts": "{:,.0f}", "hours": "{:.1f}", "accuracy": "{:.3f}"}
HEADINGS = {
    "counts": ("People by marital status and income", "released count"),
    "hours": ("Mean hours of work in a week, by role in the family", "released mean"),
    "accuracy": ("Accuracy of a model of the income on other people", f"mean of {N_FITS} fits"),
}


def make():
    """Make all releases. Seeds are fixed, because the table is public and the file should be reproducible."""
    import numpy as np
    import pandas as pd

    from skdp import Category, DPAdditiveClassifier, Schema, stats
    from skdp.datasets import load_adult

    adult = load_adult()
    census = pd.DataFrame(adult.table).sample(frac=1, random_state=0)
    rows, others = census[:N_ROWS], census[N_ROWS:]
    declared = {"income": ["<=50K", ">50K"]}
    for name in ("marital_status", "relationship"):
        declared[name] = adult.schema[name].values
    declared = {name: Category(list(values), other="error", missing="error") for name, values in declared.items()}
    income = declared.pop("income")
    schema = Schema(dict(adult.schema) | declared, target={"income": income})

    def with_interval(estimate):
        low, high = estimate.confidence_interval(0.95, of="noise")
        return [np.ravel(values).round(3).tolist() for values in (estimate.value, low, high)]

    def accuracies(epsilon):
        model = DPAdditiveClassifier(schema=schema, epsilon=epsilon, delta=DELTA)
        for seed in range(N_FITS):
            yield model.set_params(random_state=seed).fit(rows).score(others, others["income"])

    def at(epsilon):
        private = {"schema": schema, "epsilon": epsilon, "random_state": 0}
        counts = stats.contingency(rows, columns=["marital_status", "income"], **private)
        means = stats.group_by(rows, "relationship", {"hours_per_week": "mean"}, **private)
        scores = list(accuracies(epsilon))
        return {
            "counts": with_interval(counts),
            "hours": with_interval(means["hours_per_week_mean"]),
            "accuracy": [[round(score, 4)] for score in (np.mean(scores), min(scores), max(scores))],
        }

    counts = pd.crosstab(rows["marital_status"], rows["income"]).reindex(declared["marital_status"].values).fillna(0)
    hours = rows.groupby("relationship")["hours_per_week"].mean().reindex(declared["relationship"].values)
    without_noise = DPAdditiveClassifier(schema=schema, epsilon=math.inf, delta=DELTA).fit(rows)
    return {
        "names": {
            "counts": [f"{status}, {label}" for status in counts.index for label in counts.columns],
            "hours": list(hours.index),
            "accuracy": ["additive model"],
        },
        "exact": {
            "counts": counts.to_numpy().ravel().tolist(),
            "hours": hours.round(3).tolist(),
            "accuracy": [round(without_noise.score(others, others["income"]), 4)],
        },
        "most_common": round((others["income"] == "<=50K").mean(), 4),
        "releases": {f"{epsilon:g}": at(epsilon) for epsilon in EPSILONS},
    }


def scale(table, exact):
    """Return the ends of the axis of the bars of a table."""
    if table == "accuracy":
        return 0.0, 1.0
    return 0.0, {"counts": 1.3, "hours": 1.6}[table] * max(exact[table])


def cells(releases, exact, table):
    """Return for each row of a table the text, the interval, and the places of mark and interval in per cent."""
    low_end, high_end = scale(table, exact)

    def place(value):
        return round(100 * min(max((value - low_end) / (high_end - low_end), 0), 1), 1)

    form = FORMATS[table].format
    return [
        [form(value), f"{form(low)} to {form(high)}", place(value), place(low), place(high)]
        for value, low, high in zip(*releases[table], strict=True)
    ]


def fragment(data):
    """Return the part of the page: a slider, three tables at the first epsilon, and all releases as JSON."""
    exact = data["exact"]
    contents = {
        epsilon: [cell for table in FORMATS for cell in cells(releases, exact, table)]
        for epsilon, releases in data["releases"].items()
    }
    rows = iter(contents[f"{START:g}"])
    parts = [
        '<div class="skdp-epsilon">',
        f'<p class="choice" hidden><label>epsilon = <output>{START:g}</output> <input type="range" min="0" '
        f'max="{len(EPSILONS) - 1}" step="1" value="{EPSILONS.index(START)}" aria-label="epsilon"></label></p>',
        f"<noscript><p>Without JavaScript, this page shows the releases at epsilon {START:g} only.</p></noscript>",
    ]
    for table, (title, heading) in HEADINGS.items():
        interval = "lowest to highest" if table == "accuracy" else "95 % interval of the noise"
        reference = "without noise" if table == "accuracy" else "exact"
        heads = "".join(f"<th>{text}</th>" for text in ("", heading, interval, "", reference))
        parts.append('<div class="pst-scrollable-table-container">')
        parts.append(f'<table class="table"><caption>{title}</caption><thead><tr>{heads}</tr></thead><tbody>')
        low_end, high_end = scale(table, exact)
        for name, true in zip(data["names"][table], exact[table], strict=True):
            value, ends, mark, low, high = next(rows)
            true_place = round(100 * (true - low_end) / (high_end - low_end), 1)
            bar = (
                f'<span class="axis"><i class="band" style="left:{low}%;width:{round(high - low, 1)}%"></i>'
                f'<i class="true" style="left:{true_place}%"></i><i class="mark" style="left:{mark}%"></i></span>'
            )
            exact_text = FORMATS[table].format(true)
            parts.append(
                f'<tr class="released"><th>{escape(name)}</th><td>{value}</td><td>{ends}</td><td>{bar}</td>'
                f"<td>{exact_text}</td></tr>"
            )
        parts.append("</tbody></table></div>")
    parts.append(f'<script type="application/json">{json.dumps(contents)}</script></div>')
    return "\n".join(parts)


def main(folder):
    """Write the part of the page into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    data = json.loads(RELEASES.read_text(encoding="utf-8"))
    (folder / "epsilon_tables.html").write_text(fragment(data), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        RELEASES.write_text(json.dumps(make(), indent=1) + "\n", encoding="utf-8")
