"""The harness of the benchmarks: what it plans, what it takes up again, what it refuses to print. No peers are needed.

False alarms: the coverage of intervals is over fixed seeds, and all else is certain.
"""

import csv
import html
import math
import os
import re
import sys
import time
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
HARNESS = ROOT / "examples" / "benchmarks" / "harness"
MODULES = (
    *(
        "bench",
        "bench_synthetic",
        "bench_tables",
        "growth_summary",
        "headline",
        "history",
        "many_tables",
        "methods",
        "report",
        "report_synthetic",
        "report_tables",
        "results",
        "scores",
    ),
    *("speed_summary", "summary", "tables", "tasks", "worker"),
)


@pytest.fixture(scope="module")
def harness():
    before = set(sys.modules)
    sys.path.insert(0, str(HARNESS))
    variables = dict(os.environ)
    try:
        yield SimpleNamespace(**{name: import_module(name) for name in MODULES})
    finally:
        sys.path.remove(str(HARNESS))
        # The worker sets numbers of threads; its modules have names that others may want.
        os.environ.clear()
        os.environ.update(variables)
        for name in set(sys.modules) - before:
            if Path(getattr(sys.modules[name], "__file__", None) or "/").parent == HARNESS:
                del sys.modules[name]


def answer(status="ok", **metrics):
    return {"version": "1", "metrics": metrics, "seconds": 0.5, "spent": None, "status": status}


def write(harness, path, *cells):
    """Rows of (library, method, delta, epsilon, split, metrics) for the task `cancer`."""
    for library, method, delta, epsilon, split, metrics in cells:
        cell = harness.methods.Cell("cancer", library, method, epsilon, delta, split, 0)
        harness.results.write(path, harness.results.rows_of(cell, answer(**metrics)), append=True)


def test_every_round_has_every_configuration_once(harness):
    planned = harness.bench.plan(harness.methods.all_methods())
    first = [cell for _, _, cell in planned if (cell.split, cell.draw) == (0, 0)]
    assert [cell for _, _, cell in planned[: len(first)]] == first
    configurations = {cell.configuration for _, _, cell in planned}
    assert len(first) == len(configurations) == len({cell.configuration for cell in first})
    assert {cell.task for cell in first} == set(harness.tasks.TASKS)
    assert {cell.library for cell in first} == {"skdp", "diffprivlib", "interpret", "opacus", "scikit-learn"}


def test_what_is_done_is_not_planned_again(harness, tmp_path):
    path = tmp_path / "utility.csv"
    planned = harness.bench.plan(harness.methods.all_methods(), epsilons=(1.0,), n_splits=2, n_draws=1)
    assert harness.bench.remaining(planned, harness.results.read(path)) == planned
    for _, _, cell in planned[:100]:
        harness.results.write(path, harness.results.rows_of(cell, answer(accuracy=0.5, auc=0.6)), append=True)
    left = harness.bench.remaining(planned, harness.results.read(path))
    assert left == planned[100:]
    # What ran out of time once is not tried on other splits.
    slow = left[0][2]
    harness.results.write(path, harness.results.rows_of(slow, answer("timeout: not done")), append=True)
    again = harness.bench.remaining(planned, harness.results.read(path))
    assert {p[2] for p in left} - {p[2] for p in again} == {
        p[2] for p in planned[100:] if p[2].configuration == slow.configuration
    }


def test_a_line_that_was_cut_short_is_fitted_again(harness, tmp_path):
    path = tmp_path / "utility.csv"
    planned = harness.bench.plan(harness.methods.all_methods(), epsilons=(1.0,), n_splits=1, n_draws=1)
    for _, _, cell in planned[:3]:
        harness.results.write(path, harness.results.rows_of(cell, answer(auc=0.6)), append=True)
    path.write_text(path.read_text()[:-20])
    assert harness.bench.remaining(planned, harness.results.read(path)) == planned[2:]
    harness.results.write(path, harness.results.rows_of(planned[2][2], answer(auc=0.6)), append=True)
    assert harness.bench.remaining(planned, harness.results.read(path)) == planned[3:]


def test_cells_are_fitted_in_another_process(harness, tmp_path):
    path = tmp_path / "utility.csv"
    methods = [m for m in harness.methods.all_methods() if m[1].name in ("DPNaiveBayes", "DPPCA", "PCA")]
    tasks = ["cancer", "components-cancer-2"]
    planned = harness.bench.plan(methods, epsilons=(1.0,), n_splits=1, n_draws=1, tasks=tasks)
    planned = [p for p in planned if p[2].library != "diffprivlib"]
    harness.bench.run(planned, path, given={"skdp": sys.executable})
    rows = harness.results.read(path)
    assert [row["status"] for row in rows] == ["ok"] * 9
    assert {row["metric"] for row in rows} == {"accuracy", "auc", "log_loss", "captured"}
    assert harness.bench.remaining(planned, rows) == []


def test_an_environment_that_does_not_work_is_an_error(harness, tmp_path):
    planned = harness.bench.plan(harness.methods.all_methods(), epsilons=(1.0,), n_splits=1, n_draws=1)
    with pytest.raises(SystemExit, match="try it by hand"):
        harness.bench.run(planned[:1], tmp_path / "utility.csv", given={"skdp": "/bin/false"})
    assert not (tmp_path / "utility.csv").exists()


def test_a_fit_that_hangs_is_stopped(harness):
    with pytest.raises(TimeoutError), harness.worker.Limit(0.05):
        time.sleep(10)


@pytest.fixture
def lost(harness, tmp_path):
    """Results in which a peer is better, on both splits, at one of two epsilons."""
    folder = tmp_path / "results"
    metrics = {"accuracy": 0.9, "auc": 0.9, "log_loss": 0.3}
    for split in (0, 1):
        for epsilon, theirs in ((1.0, 0.8), (3.0, 0.95)):
            ours = ("skdp", "ObjPertLogReg", 0.0, epsilon, split, metrics)
            peer = ("diffprivlib", "LogisticRegression", 0.0, epsilon, split, {**metrics, "accuracy": theirs})
            write(harness, folder / "utility.csv", ours, peer)
    return folder


def test_no_page_without_reasons(harness, lost, tmp_path):
    reasons = tmp_path / "reasons.toml"
    missing = harness.report.unexplained(lost, reasons)
    assert {(c.metric, c.epsilon, c.family) for c in missing} == {
        ("accuracy", 3.0, "any"),
        ("accuracy", 3.0, "logistic regression"),
    }
    assert all(c.difference == pytest.approx(-0.05) for c in missing)
    reasons.write_text('[[reason]]\ntask = "can*"\nepsilon = [3.0]\npeer_library = "diffprivlib"\ntext = "Because."\n')
    assert harness.report.unexplained(lost, reasons) == []
    assert harness.report.write(lost, tmp_path / "page", reasons) == ([], [])
    assert "Because." in (tmp_path / "page" / "lost.inc").read_text()
    reasons.write_text('[[reason]]\ntask = "adult"\ntext = "Because."\n')
    assert harness.summary.without_reason(missing, harness.summary.read_reasons(reasons)) == missing


def test_longer_times_need_reasons(harness, lost, tmp_path):
    header = "environment,model,library,counterpart,operation,rows,columns,threads,repetition,ours,other,status"
    times = [("fit", 2.0, 1.0), ("fit", 2.2, 1.0), ("fit", 2.1, 1.0), ("predict", 0.9, 1.0), ("memory", 0.2, 0.0)]
    lines = [
        f"diffprivlib,DPKMeans,diffprivlib,KMeans,{operation},10000,20,1,{i},{ours},{other},ok"
        for i, (operation, ours, other) in enumerate(times)
    ]
    (lost / "speed.csv").write_text("\n".join([header, *lines]) + "\n")
    reasons = tmp_path / "reasons.toml"
    reasons.write_text('[[reason]]\ntext = "Because."\n')
    _, longer = harness.report.write(lost, tmp_path / "page", reasons)
    # Less than a MiB of memory is no difference.
    assert [(m.operation, m.ratio) for m in longer] == [("fit", pytest.approx(2.1))]
    reasons.write_text(reasons.read_text() + '[[slower]]\nmodel = "DPKM*"\noperation = "fit"\ntext = "So it is."\n')
    assert harness.report.write(lost, tmp_path / "page", reasons) == ([], [])
    page = (tmp_path / "page" / "slower.inc").read_text()
    assert "So it is." in page
    assert "10,000 × 20: 2.1" in page


def test_the_committed_results_have_reasons(harness):
    assert harness.report.unexplained() == []
    times = harness.speed_summary.read(harness.results.FOLDER / "speed.csv")
    assert harness.speed_summary.without_reason(times, harness.summary.read_reasons(kind="slower")) == []


def committed(harness):
    """The table and the contests of the committed results."""
    table = harness.summary.entries(harness.report.read(harness.results.FOLDER))
    return table, harness.summary.contests(table, harness.report.families_of_methods())


def test_the_picture_of_readme_shows_the_results(harness):
    described = harness.many_tables.described(harness.many_tables.cells())
    for kind in ("light", "dark"):
        picture = (harness.results.FOLDER.parent / "_static" / f"tables_{kind}.svg").read_text(encoding="utf-8")
        description = re.search("<dc:description>(.*?)</dc:description>", picture, re.DOTALL).group(1)
        assert html.unescape(description) == described, "make bench-report draws the picture anew"


def test_readme_quotes_the_results(harness):
    """The table of README and its counts are those of the committed results."""
    cells = harness.many_tables.cells()
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = [f"| {' | '.join(row)} |" for row in (harness.many_tables.HEADER, *harness.many_tables.rows(cells))]
    lines = text.splitlines()
    start = lines.index(table[0])
    assert [lines[start], *lines[start + 2 : start + 1 + len(table)]] == table
    counts = harness.many_tables.figures(cells)
    words = " ".join(text.split())
    assert f"ahead in {counts['tables/ahead']} of {counts['tables/cells']} cases" in words
    assert f"clearly in {counts['tables/clear']}" in words


@pytest.fixture(scope="module")
def figures(harness):
    """All figures that pages may quote."""
    table, _ = committed(harness)
    scores = harness.headline.scores(table, harness.report.families_of_methods())
    of_synthetic, _ = harness.report_synthetic.read(harness.results.FOLDER / "synthetic.csv")
    found = harness.headline.figures(table, scores, harness.many_tables.cells())
    return found | harness.report_synthetic.figures(of_synthetic)


@pytest.mark.sample(always=True)
def test_pages_quote_the_results(harness, figures):
    pages = [page for page in (ROOT / "docs").rglob("*.rst") if not {"_build", "generated"} & set(page.parts)]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    quoted = [match.groupdict() for text in texts for match in re.finditer(harness.report.QUOTED, text)]
    assert len(quoted) == sum(text.count(":figure:`") for text in texts) > 4
    stale = [each for each in quoted if figures.get(each["key"]) != each["value"]]
    assert not stale, "make bench-report writes them anew"


def test_values_in_pages_are_written_anew(harness, tmp_path):
    pages = {
        "a.rst": "0.9 and :figure:`0.9 <a (C=1)/0.9>`,\r\n   :figure:`–\n   <b>`\n",
        "c.rst": ":figure:`0.7\r\n<b>` :figure:`2 <unknown>` 0.9\r\n",
    }
    (tmp_path / "figures.json").write_text('{"a (C=1)/0.9": "0.8", "b": "0.7"}')
    (tmp_path / "deep").mkdir()
    for name, text in pages.items():
        (tmp_path / "deep" / name).write_bytes(text.encode())
        os.utime(tmp_path / "deep" / name, (0, 0))
    harness.report.refresh(tmp_path, tmp_path)
    stale, right = (tmp_path / "deep" / name for name in pages)
    assert stale.read_bytes().decode() == "0.9 and :figure:`0.8 <a (C=1)/0.9>`,\r\n   :figure:`0.7\n   <b>`\n"
    assert right.read_bytes().decode() == pages["c.rst"]
    assert right.stat().st_mtime == 0


def test_figures_of_difficult_tables_and_statistics_follow_from_their_files(harness, figures):
    """Some figures are computed again, by a naive loop."""
    folder, gaps = harness.results.FOLDER, {}
    for line in (folder / "difficult.csv").read_text(encoding="utf-8").splitlines()[1:]:
        if line.startswith("DPRandomTreeRegressor,"):
            table, delta, epsilon, _, score, constant = line.rsplit(",", 5)
            if (float(delta), float(epsilon)) == (1e-6, 3.0):
                gaps.setdefault(table, []).append(float(score) - float(constant))
    mean = sum(max(sum(each) / len(each), -1) for each in gaps.values()) / len(gaps)
    assert len(gaps) == 39
    assert figures["difficult/DPRandomTreeRegressor/gap/1e-06/3"] == f"{mean:.2f}"
    gap = sum(gaps["DPRandomTreeRegressor,no_signal"]) / 3
    assert figures["difficult/DPRandomTreeRegressor/no_signal/1e-06/3/gap"] == f"{gap:.3f}"
    lines = (folder / "statistics.csv").read_text(encoding="utf-8").splitlines()
    errors = {line.split(",")[0]: float(line.split(",")[6]) for line in lines if ",quartile,10000,1,1," in line}
    ratio = errors.pop("skdp") / min(errors.values())
    assert figures["statistics/ratio/quartile/10000/1/1"] == f"{ratio:.2f}"


def test_exceptions_on_held_out_tables_are_those_of_the_page(harness):
    """The page of the benchmarks names all cases in which additive models are not better than a peer."""
    scores = {}
    for row in harness.results.read(harness.results.FOLDER / "held_out.csv"):
        if row["status"] == "ok" and row["epsilon"] < float("inf") and row["metric"] != "calibration_by_chance":
            scores.setdefault((row["task"], row["metric"], row["epsilon"]), {}).setdefault(row["method"], []).append(
                row["value"]
            )
    behind, of_others = set(), {}
    for (task, metric, epsilon), methods in scores.items():
        sign = -1 if metric in ("log_loss", "calibration") else 1
        means = {name: sign * sum(values) / len(values) for name, values in methods.items()}
        ours = max(value for name, value in means.items() if name.startswith("DPAdditive"))
        peer = [value for name, value in means.items() if name.startswith("DPExplainableBoosting")]
        if peer and ours <= peer[0]:
            behind.add((task, metric, epsilon))
        if metric in ("log_loss", "r2") and max(means.values()) > ours:
            of_others.setdefault(task, []).append(epsilon)
    assert behind == {("vote", "calibration", 0.1), ("visits", "r2", 0.5)}
    assert {task: sorted(each) for task, each in of_others.items()} == {
        "vote": [0.1, 0.5, 1.0],
        "party": [0.1, 3.0, 10.0],
        "fair": [0.1],
        "visits": [0.5],
        "wage": [10.0],
    }
    page = " ".join((ROOT / "docs" / "benchmarks.rst").read_text(encoding="utf-8").split())
    assert "except on *vote* at epsilon .1." in page
    assert "except on *visits* at epsilon .5." in page
    assert "on *vote* at epsilon .1 to 1, on *party* at epsilon .1, 3 and 10, and on *fair* at epsilon .1." in page
    assert "on *visits* at epsilon .5 and on *wage* at epsilon 10." in page


def test_a_fit_is_one_contest(harness, lost):
    table = harness.summary.entries(harness.results.read(lost / "utility.csv"))
    families = harness.report.families_of_methods()
    (score,) = harness.headline.scores(table, families)
    # One deciding score at two epsilons, on two splits only, so that nothing can be told apart.
    assert (score.name, score.won, score.tied, score.lost) == ("diffprivlib", 0, 2, 0)


def test_splits_that_one_side_lacks_do_not_decide(harness, tmp_path):
    path = tmp_path / "utility.csv"
    for split, value in ((0, 0.5), (1, 0.9), (2, 0.9)):
        write(harness, path, ("skdp", "DPNaiveBayes", 0.0, 1.0, split, {"accuracy": value}))
    write(harness, path, ("diffprivlib", "GaussianNB (ordinal)", 0.0, 1.0, 0, {"accuracy": 0.6}))
    table = harness.summary.entries(harness.results.read(path))
    families = {("skdp", "DPNaiveBayes"): "naive Bayes", ("diffprivlib", "GaussianNB (ordinal)"): "naive Bayes"}
    found = harness.summary.contests(table, families)
    assert all(c.lost and not c.clear and c.our_mean == 0.5 for c in found)
    assert {c.family for c in found} == {"any", "naive Bayes"}


def test_interval_over_splits(harness):
    values = [0.1, 0.3, 0.2, 0.5, 0.4]
    # Student's quantile for 4 degrees of freedom.
    assert harness.summary.half_width(values) == pytest.approx(2.776445 * np.std(values, ddof=1) / math.sqrt(5))
    assert harness.summary.half_width([0.1, 0.2]) is None


def test_ratio_intervals_cover_the_ratio(harness):
    # Both sides share a load that varies more than either; the ratio is 2.
    rng = np.random.default_rng(0)
    covered, widths = 0, []
    for seed in range(200):
        load = np.exp(rng.normal(0, 1, 9))
        ours = 2 * load * np.exp(rng.normal(0, 0.1, 9))
        other = load * np.exp(rng.normal(0, 0.1, 9))
        ratio, (low, high) = harness.speed_summary.ratio_interval(ours, other, seed=seed)
        assert low <= ratio <= high
        covered += low <= 2 <= high
        widths.append(high - low)
    assert covered >= 180
    assert np.median(widths) < 0.7
    assert harness.speed_summary.ratio_interval([4.0, 2.0], [2.0, 1.0]) == (2.0, None)


def test_growth_exponent(harness):
    sizes = [10_000, 100_000, 1_000_000]
    assert harness.speed_summary.growth(sizes, [3e-9 * n**1.5 for n in sizes]) == pytest.approx(1.5)
    assert harness.speed_summary.growth([10_000], [1.0]) is None


def test_exponents_leave_out_the_small_sizes(harness, tmp_path):
    path = tmp_path / "growth.csv"
    lines = [f"rows,{n},DPPCA,{seconds},{1e-6 * n**0.5}" for n, seconds in ((10, 1), (100, 1), (1000, 2), (10000, 20))]
    path.write_text("\n".join(["axis,size,model,seconds,MiB", *lines, "rows,100000,DPPCA,,"]) + "\n")
    rows = harness.growth_summary.read(path)
    sizes, seconds, memory = harness.growth_summary.curves(rows, "rows")["DPPCA"]
    assert harness.growth_summary.exponent(sizes, seconds) == "1.00"
    assert harness.growth_summary.exponent(sizes[:3], seconds[:3]) == "0.30"
    # Less than a MiB cannot be told apart.
    assert harness.growth_summary.exponent(sizes, memory) == "0.00"
    harness.growth_summary.write(path, tmp_path)
    assert '"DPPCA", "1.00, 0.00 (to 10,000)", "–"' in (tmp_path / "growth.inc").read_text(encoding="utf-8")
    assert {p.name for p in tmp_path.glob("*.svg")} == {"growth_rows_light.svg", "growth_rows_dark.svg"}


@pytest.mark.parametrize("name", ["digits", "cancer", "housing", "housing-log", "nursery", "adult"])
def test_preprocessing_is_row_by_row(harness, name):
    tasks = harness.tasks
    try:
        data, _ = tasks.TASKS[name].load()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    rows = np.array([5, 77, 300])
    parts = (None if p is None else p[rows] for p in (data.y, data.codes, data.numbers))
    few = tasks.Data(data.unit[rows], data.norm, *parts, data.sizes)
    task = tasks.TASKS[name]
    for view in ("unit", "norm", "ordinal", "columns", *(() if data.sizes else ("centred",))):
        X = data.view(view)
        np.testing.assert_array_equal(few.view(view), X[rows])
        if view in ("norm", "centred"):
            assert np.linalg.norm(X, axis=1).max() <= 1 + 1e-12
        if view == "norm":
            assert 0 <= X.min() <= X.max() <= task.upper + 1e-12
        if view in ("unit", "ordinal"):
            assert 0 <= X.min() <= X.max() <= 1
        if view == "columns":
            assert X.shape[1] == task.n_columns
            assert np.all(X[:, task.categorical].max(axis=0, initial=0) < task.sizes)


def test_bounds_are_constants(harness):
    # Rows beyond the bounds are clipped to them, and do not move the others.
    tasks = harness.tasks
    X = np.array([[0.0], [5.0], [1e6]])
    np.testing.assert_array_equal(tasks.scaled(X, [0], [10]), [[0], [0.5], [1]])
    np.testing.assert_array_equal(tasks.scaled(X[:2], [0], [10]), [[0], [0.5]])
    lower, upper = np.array(tasks.CANCER_LOWER), np.array(tasks.CANCER_UPPER)
    assert lower.shape == upper.shape == (30,)
    assert np.all(lower < upper)


def test_scores(harness):
    scores = harness.scores
    y = np.array([0, 1, 2, 1])
    right = np.eye(3)[y]
    found = scores.classification(y, y, right)
    assert found.pop("calibration_by_chance") < 2e-3
    assert found == pytest.approx({"accuracy": 1, "auc": 1, "log_loss": 0, "calibration": 0}, abs=1e-5)
    wrong = scores.classification(y, (y + 1) % 3, np.roll(right, 1, axis=1))
    assert wrong["log_loss"] == pytest.approx(-math.log(1e-6), rel=1e-6)
    numbers = np.array([0.0, 0.5, 1.0])
    assert scores.regression(numbers, [-7, 0.5, 9]) == {"r2": 1}
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)) * [3, 2, 1, 0.5]
    values, vectors = np.linalg.eigh(np.cov(X, rowvar=False, ddof=0))
    assert scores.components(X, vectors[:, :1:-1].T)["captured"] == pytest.approx(values[2:].sum())
    # A direction that is there twice does not count twice.
    assert scores.components(X, vectors[:, [3, 3]].T)["captured"] < 1.3 * values[3]
    assert scores.clustering(X, X[:1])["inertia"] == pytest.approx(np.sum((X - X[0]) ** 2))
    assert scores.scaling(X, X.mean(axis=0), X.std(axis=0)) == {"mean_error": 0, "scale_error": 0}


@pytest.mark.parametrize("n_classes", [2, 3])
def test_calibration_error_is_what_chance_gives_for_true_probabilities(harness, n_classes):
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(n_classes), 3000)
    found = []
    for _ in range(50):
        y = (rng.random((3000, 1)) > np.cumsum(probabilities, axis=1)).sum(axis=1)
        found.append(list(harness.scores.calibration(y, probabilities).values()))
    error, chance = np.mean(found, axis=0)
    assert error == pytest.approx(chance, rel=0.05)
    # The second of two labels, or the most probable one, is stated with certainty.
    sure = np.eye(n_classes)[np.full(3000, 1)]
    assert harness.scores.calibration(y, sure)["calibration"] == pytest.approx(np.mean(y != 1))


def test_what_diffprivlib_spends(harness, figures):
    # As its mechanisms add up in `KMeans` with 2, 10 and 64 columns, and in `LinearRegression` with 8.
    models = import_module("models_diffprivlib")
    for n_columns, ratio in ((2, 0.905), (10, 1.212), (64, 2.281)):
        assert models.spent_by_kmeans(SimpleNamespace(n_columns=n_columns), 1.0) == pytest.approx(ratio, abs=5e-4)
    assert models.spent_by_linear_regression(SimpleNamespace(n_columns=8), 1.0) == pytest.approx(1.111, abs=5e-4)
    assert figures["housing/diffprivlib LinearRegression/spent"] == "1.11"


def test_files_are_tidy(harness):
    path = harness.results.FOLDER / "utility.csv"
    with open(path, newline="") as file:
        assert tuple(next(csv.reader(file))) == harness.results.COLUMNS
    rows = harness.results.read(path)
    assert {row["task"] for row in rows} <= set(harness.tasks.TASKS)
    keys = [(harness.results.cell_of(row), row["metric"]) for row in rows]
    assert len(keys) == len(set(keys))


FOLDER_OF_TABLES = """
import numpy as np, pandas

def small():
    rng = np.random.default_rng(0)
    X = pandas.DataFrame({"number": rng.random(400) * 10, "group": rng.choice(["a", "b", "c"], 400)})
    y = np.where((X["number"] > 5) ^ (rng.random(400) < 0.1), "yes", "no")
    columns = {"number": ("num", 0, 10, None, None), "group": ("cat", ["a", "b", "c"], False)}
    return X, y, columns, ("cat", ["no", "yes"])

TABLES = {"small": small}
"""


@pytest.fixture
def folder_of_tables(harness, tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    (tmp_path / "tables.py").write_text(FOLDER_OF_TABLES)
    monkeypatch.setenv("SKDP_TABLES", str(tmp_path))
    harness.tables._folder.cache_clear()
    harness.tables.task.cache_clear()
    yield tmp_path
    harness.tables._folder.cache_clear()
    harness.tables.task.cache_clear()


def test_tables_are_fitted_with_their_schema_and_with_other_parameters(harness, folder_of_tables):
    path = folder_of_tables / "results.csv"
    tasks = harness.bench_tables.at_hand(["small"])
    pairs = harness.bench_tables.chosen(["DPNaiveBayes", "ObjPertLogReg(C=0.5)"])
    planned = harness.bench_tables.plan(pairs, tasks, [1e3, 1.0], 2)
    assert [cell.epsilon for _, _, cell in planned] == [1e3] * 4 + [1.0] * 4
    harness.bench.run(planned, path, given={"skdp": sys.executable}, suite="tables", jobs=2)
    rows = harness.results.read(path)
    assert {row["status"] for row in rows} == {"ok"}
    assert {row["method"] for row in rows} == {"DPNaiveBayes", "ObjPertLogReg(C=0.5)"}
    assert {row["metric"] for row in rows} == set(harness.tables.METRICS["classification"])
    assert min(row["value"] for row in rows if row["metric"] == "auc" and row["epsilon"] == 1e3) > 0.8
    assert harness.bench.remaining(planned, rows) == []


def test_a_table_that_is_not_there_is_left_out(harness, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("SKDP_TABLES", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    harness.tables._folder.cache_clear()
    harness.tables.task.cache_clear()
    assert [task.name for task in harness.bench_tables.at_hand(["digits", "bank"])] == ["digits"]
    assert "left out: bank: tables.py is not at hand" in capsys.readouterr().out


def test_no_person_is_in_both_parts(harness):
    persons = np.repeat(np.arange(50), 3)
    task = harness.tables.TableTask("visits", "regression", "visits", ("r2",), persons=persons)
    train, test = task.split(150, 0)
    assert sorted([*train, *test]) == list(range(150))
    assert len(test) == 30
    assert not set(persons[train]) & set(persons[test])
    assert task.deltas == (1e-5,)


def test_tables_of_the_guide(harness):
    values = {("vote", "skdp", "DPNaiveBayes", 1e-5, epsilon): [0.5, 0.6] for epsilon in (1.0, 10.0)}
    values["vote", "scikit-learn", "HistGradientBoostingClassifier", 0.0, math.inf] = [0.9]
    rows = [*rows_of_tables(harness, values), *rows_of_tables(harness, values, "accuracy")]
    guide = harness.report_tables.guide(rows)
    assert '.. csv-table:: Vote\n   :header: "", "epsilon 1", "epsilon 10"' in guide
    assert '"DPNaiveBayes", ".550 / .550", ".550 / .550"' in guide
    assert "Without privacy: HistGradientBoostingClassifier .900 / .900." in guide


def rows_of_tables(harness, values, metric="auc"):
    """Rows for values by (task, library, method, delta, epsilon), of one split each."""
    return [
        dict(
            **dict(task=task, library=library, method=method, delta=delta, epsilon=epsilon, split=split, draw=0),
            **dict(metric=metric, value=value, seconds=1.0, spent=None, status="ok"),
        )
        for (task, library, method, delta, epsilon), by_split in values.items()
        for split, value in enumerate(by_split)
    ]


def test_report_of_tables_names_the_cells_that_are_behind_and_the_losses(harness):
    ours, peer = ("skdp", "DPAdditiveClassifier", 1e-6), ("skdp", "DPRandomTree", 1e-6)
    pure, public = ("diffprivlib", "GaussianNB", 0.0), ("scikit-learn", "HistGradientBoostingClassifier", 0.0)
    values = {
        ("bank", *ours, 1.0): [0.70, 0.80],
        ("bank", *ours, 10.0): [0.69, 0.78],
        ("bank", *peer, 1.0): [0.704, 0.804],
        ("bank", *peer, 10.0): [0.72, 0.80],
        # Better on the one split that it has, and not with its mean.
        ("bank", *pure, 1.0): [0.71],
        ("bank", "skdp", "DPAdditiveClassifier(rounds=0)", 1e-6, 10.0): [0.9, 0.9],
        ("bank", *public, math.inf): [0.95, 0.95],
    }
    lines = harness.report_tables.report(rows_of_tables(harness, values))
    text = "\n".join(lines)
    assert "within .005 (R2 .01) of the best private method: 0 of 2 cells" in text
    assert "epsilon    1: .0100 behind diffprivlib GaussianNB, delta 0" in text
    assert "epsilon   10: .0250 behind DPRandomTree" in text
    assert [line for line in lines if " loses " in line] == [
        "  bank         delta 1e-06: DPAdditiveClassifier loses .0150 ±.0050 from 1 to 10",
    ]
    row = next(line for line in lines if line.startswith("  DPRandomTree"))
    assert row.split()[1:] == ["*.7540", "±.0500", "*.7600", "±.0400"]


def test_report_of_tables_shows_probabilities_that_are_not_calibrated(harness):
    cell = ("bank", "skdp", "DPSGDClassifier", 1e-6, 1.0)
    rows = rows_of_tables(harness, {cell: [0.05]}, "calibration")
    rows += rows_of_tables(harness, {cell: [0.01]}, "calibration_by_chance")
    assert "DPSGDClassifier .050 (.010)" in harness.report_tables.report(rows)[-1]


def test_changes_are_compared_split_by_split(harness):
    method, variant = ("skdp", "DPAdditiveRegressor", 1e-6), ("skdp", "DPAdditiveRegressor(C=1)", 1e-6)
    before = rows_of_tables(harness, {(t, *method, 1.0): [0.5, 0.7] for t in ("bike", "diamonds")}, "r2")
    after = {("bike", *method, 1.0): [0.6], ("diamonds", *method, 1.0): [0.4, 0.7], ("bike", *variant, 1.0): [0.4, 0.5]}
    lines = harness.report_tables.compare(before, rows_of_tables(harness, after, "r2"))
    assert [line.split()[-2:] for line in lines if "delta" in line] == [
        ["1e-06", ".1000"],
        ["-.0500", "±.0500"],
        ["-.1500", "±.0500"],
    ]
    assert [line.split()[-1] for line in lines if "mean over" in line or "worst" in line] == [
        *(".0250", "-.0500", "-.1500", "-.1500"),
    ]
    # Less is better of a loss.
    losses = [rows_of_tables(harness, {("bank", *method, 1.0): [value]}, "log_loss") for value in (0.5, 0.4)]
    assert harness.report_tables.compare(*losses)[-1].split() == ["worst", "table", ".1000"]


def test_unknown_methods_and_tables_that_are_asked_for(harness):
    chosen = harness.bench_tables.chosen
    with pytest.raises(SystemExit, match="no method is called DPNothing"):
        chosen(["DPNothing"])
    names = [method.name for _, method in chosen(["DPAdditive*", "DPAdditiveClassifier(rounds=0, C=2)"])]
    assert names == ["DPAdditiveClassifier", "DPAdditiveRegressor", "DPAdditiveClassifier(rounds=0, C=2)"]
    assert {method.library for _, method in chosen(None)} >= {"skdp", "scikit-learn", "diffprivlib", "interpret"}


@pytest.fixture(scope="module")
def difficult():
    before = list(sys.path)
    sys.path.insert(0, str(HARNESS.parent))
    try:
        return import_module("difficult")
    finally:
        sys.path[:] = before


def test_report_of_difficult_tables_has_the_worst_gap_and_the_largest_loss(difficult):
    gaps = {"one": [-0.1, 0.0, 0.1, 0.05, 0.2], "other": [0.3, -0.02, 0.0, 0.3, 0.1]}
    rows = [
        {"estimator": "A", "table": table, "delta": "0", "epsilon": epsilon, "score": gap + part, "constant": part}
        for table, values in gaps.items()
        for epsilon, gap in zip(difficult.EPSILONS, values, strict=True)
        for part in (0.0, 0.1)
    ]
    cells = [line.lstrip(" *").removeprefix("- ") for line in difficult.report(rows).splitlines()][-9:]
    assert cells == ["A", "2", "-0.100", "-0.020", "0.000", "0.050", "0.100", "other", "0.320"]


@pytest.mark.parametrize(
    "name", ["DPNaiveBayes", "HistogramRegressor", "mean of the targets", "DPKMeans", "ExpMechPCA"]
)
def test_scores_on_difficult_tables(difficult, name):
    kind, _, _, make = difficult.CASES[name]
    table = difficult.difficult("far_apart", 300)
    model = make(table, {"epsilon": 1e3, "delta": 0.0, "random_state": 0})
    score, constant = difficult.score(kind, model, table)
    # The regressor's bins hold few of these records.
    assert score > constant + (-1 if kind == "r2" else 0.05)


def test_history_reports_grown_ratios(harness, tmp_path):
    def times(**ours):
        return [
            {
                **{"environment": "skdp", "model": model, "library": "scikit-learn", "counterpart": "X"},
                **{"operation": "fit", "rows": 10, "columns": 2, "threads": 1, "repetition": r},
                **{"ours": seconds, "other": 1.0, "status": "ok"},
            }
            for model, seconds in ours.items()
            for r in range(3)
        ]

    path = tmp_path / "history.csv"
    harness.history.add(path, "0.1", times(A=0.5, B=2.0))
    harness.history.add(path, "0.2", times(A=1.0, B=2.0))
    harness.history.add(path, "0.2", times(A=1.0, B=2.1, C=3.0))
    releases = harness.history.known(path)
    assert [len(ratios) for ratios in releases.values()] == [2, 3]
    found = harness.history.slower(*releases.values())
    assert [(key[0], *ratios) for key, ratios in found.items()] == [("A", 0.5, 1.0)]
    lines = harness.history.table(releases).splitlines()
    assert '"0.1", "1 of 2, 1.250", "–", "–"' in lines[-3]
    assert '"0.2", "2 of 3, 2.100", "–", "–"' in lines[-2]


# --- synthetic tables -------------------------------------------------------------------------------------------------


def stays():
    pandas = pytest.importorskip("pandas")
    from skdp import Category, Number, Schema

    labels = Category(["no", "yes"], other="error", missing="error")
    schema = Schema({"age": Number(18, 90, step=1), "size": (0.0, 2.0), "ward": ["a", "b"]}, target={"target": labels})
    rng = np.random.default_rng(0)
    age = np.where(rng.random(400) < 0.1, np.nan, rng.integers(18, 91, 400))
    yes = np.where(rng.random(400) < 0.9, age > 50, age <= 50)
    columns = {"age": age, "size": rng.uniform(0, 2, 400), "ward": rng.choice(["a", "b", "c", None], 400)}
    return pandas.DataFrame({**columns, "target": np.where(yes, "yes", "no")}), schema


def test_rows_of_cells_are_in_these_cells(harness):
    rows, schema = stays()
    codes = harness.bench_synthetic.codes_of(schema, rows)
    again = harness.bench_synthetic.rows_of(schema, codes, np.random.default_rng(1))
    # Other categories and missing ones become missing. All else comes back to its cell.
    found = harness.bench_synthetic.codes_of(schema, again)
    given = rows["ward"].isin(["a", "b"]).to_numpy()
    np.testing.assert_array_equal(found[:, given], codes[:, given])
    assert (again["age"].dropna() % 1 == 0).all()
    assert again["ward"].isna().sum() == 400 - given.sum()


def test_errors_of_marginals_and_scores_of_models(harness):
    rows, schema = stays()
    bench = harness.bench_synthetic
    assert bench.marginal_errors(schema, rows, rows) == {"tv1": 0, "tv2": 0, "tv3": 0}
    half = rows.iloc[:200]
    moved = half.assign(ward="a")
    errors = bench.marginal_errors(schema, half, moved)
    # One of four columns has a distance, and three of six pairs have at least this distance.
    distance = (half["ward"] != "a").mean()
    assert errors["tv1"] == pytest.approx(distance / 4)
    assert errors["tv2"] == pytest.approx(distance / 2)
    scores = bench.model_scores(schema, rows.iloc[:300], rows.iloc[300:])
    assert scores["boosting"] > 0.8
    assert bench.model_scores(schema, rows.assign(target="no"), rows) == {"boosting": 0.5, "linear": 0.5}


def test_ties_are_called_ties(harness, tmp_path):
    report, cell = harness.report_synthetic, harness.methods.Cell
    given = {
        ("skdp", "DPTableGenerator"): [{"tv2": 0.05, "boosting": 0.8}, {"tv2": 0.05, "boosting": 0.8}],
        ("skdp", "DPTableGenerator(independent)"): [{"tv2": 0.08}, {"tv2": 0.01}],
        ("skdp", "DPAdditive"): [{"direct": 0.9}, {"direct": 0.804}],
        # The second split of the peer has no counterpart.
        ("mbi", "MST"): [{"tv2": 0.054, "boosting": 0.9}, {"tv2": 0.04}],
    }
    for (library, method), by_epsilon in given.items():
        for epsilon, metrics in zip((1.0, 3.0), by_epsilon, strict=True):
            for split in range(3 if library == "skdp" else 1):
                rows = harness.results.rows_of(
                    cell("compas", library, method, epsilon, 1e-9, split, 0), answer(**metrics)
                )
                harness.results.write(tmp_path / "synthetic.csv", rows, append=True)
    timeout = harness.results.rows_of(cell("compas", "mbi", "AIM", 1.0, 1e-9, 0, 0), answer("timeout: no table in 9 s"))
    harness.results.write(tmp_path / "synthetic.csv", timeout, append=True)
    figures = report.write(tmp_path, tmp_path)
    assert figures["synthetic/compas/DPTableGenerator/tv2/1"] == ".050"
    assert [figures[f"synthetic/direct/{key}"] for key in ("cells", "ahead", "ties", "behind")] == ["2", "1", "1", "0"]
    assert figures["synthetic/direct/mean"] == ".052"
    assert [figures[f"synthetic/independent/{key}"] for key in ("ahead", "ties", "behind")] == ["1", "0", "1"]
    errors = (tmp_path / "synthetic_errors.inc").read_text()
    assert '"", "MST of mbi", "–", ".054 (1)", ".040 (1)"' in errors
    assert '"", "AIM of mbi", "–", "no table in time", "–"' in errors
    assert "real rows" not in errors
    peers = (tmp_path / "synthetic_peers.inc").read_text()
    assert '"MST of mbi", "tables of two columns", "0", "1", "1"' in peers
    assert '"MST of mbi", "boosting", "0", "0", "1"' in peers
    # The peer's means are those of the splits that both have.
    behind = (tmp_path / "synthetic_behind.inc").read_text()
    assert behind.count("MST of mbi") == 2
    assert '"MST of mbi", "COMPAS", "1", "boosting", ".800", ".900", "1"' in behind
    assert '"MST of mbi", "COMPAS", "3", "tables of two columns", ".050", ".040", "1"' in behind
