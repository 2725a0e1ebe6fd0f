"""The picture beside the tables: every cell and its least value, and every goal."""

from pathlib import Path
from typing import Any, Final

from bench import goals
from bench.results import Results, ops_per_s

COLOURS: Final = {1: "tab:blue", 10: "tab:orange", 50: "tab:green"}
SHAPES: Final = {1: "o", 100: "D"}
HOLDS, FALLS_SHORT = "tab:green", "tab:red"
ROW_INCHES: Final = 0.3
# A limit that is far away would leave no room for the rest.
MOST_SHOWN: Final = 100.0


def draw(results: Results, path: Path) -> bool:
    """Save the picture of a run; False if there is nothing to draw."""
    reached = goals.reached(results)
    if not reached:
        return False
    # The import takes a while, and only a completed run needs it.
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = list(dict.fromkeys(cell.row for cell in results.loads))
    heights = [ROW_INCHES * max(count, 1) + 1 for count in (2 * len(rows), len(reached))]
    shown = [height for height, has in zip(heights, (rows, reached), strict=True) if has]
    figure, axes = pyplot.subplots(
        len(shown),
        figsize=(11, sum(shown)),
        height_ratios=shown,
        squeeze=False,
        layout="constrained",
    )
    if rows:
        _draw_cells(axes[0][0], results, rows)
    _draw_goals(axes[-1][0], reached)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return True


def _draw_cells(axis: Any, results: Results, rows: list[str]) -> None:
    lines = [(row, window) for row in rows for window in SHAPES]
    for cell in results.loads:
        ratio = results.pair(cell, ops_per_s).ratio
        at = lines.index((cell.row, cell.window))
        must = goals.must_of(cell)
        if must is not None:
            axis.plot([must, must], [at - 0.4, at + 0.4], color=FALLS_SHORT, linewidth=2)
        if ratio is not None:
            axis.plot(
                ratio,
                at,
                SHAPES[cell.window],
                color=COLOURS.get(cell.connections, "tab:gray"),
                markersize=7,
                alpha=0.8,
            )
    _finish(axis, [f"{row}, w{window}" for row, window in lines])
    axis.set_title("Throughput of each cell, times Apache ZooKeeper; red is what it must have")
    for connections, colour in COLOURS.items():
        axis.plot([], [], "s", color=colour, label=f"c{connections}")
    axis.legend(loc="lower right")


def _draw_goals(axis: Any, reached: list[tuple[goals.Goal, goals.Got]]) -> None:
    margins = [min(goal.margin(got), MOST_SHOWN) for goal, got in reached]
    colours = [HOLDS if margin >= 1 else FALLS_SHORT for margin in margins]
    # Bars begin at 1: they go right if the goal is exceeded, left if it is missed.
    axis.barh(range(len(margins)), [margin - 1 for margin in margins], left=1, color=colours)
    _finish(axis, [goal.what for goal, _ in reached])
    axis.set_title("What was reached, over what must be reached (limits the other way round)")


def _finish(axis: Any, labels: list[str]) -> None:
    axis.set_xscale("log")
    axis.axvline(1, color="black", linewidth=1)
    axis.set_yticks(range(len(labels)), labels)
    axis.set_ylim(len(labels) - 0.5, -0.5)
    axis.grid(axis="x", which="both", alpha=0.3)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}×")
