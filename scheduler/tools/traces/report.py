"""Results of traces for people: a table for the terminal, and one HTML file with plots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from itertools import groupby
from statistics import fmean

from scheduler.tools.traces.one_session import SessionResult
from scheduler.tools.traces.packing import Mark

COLUMNS = (
    "workload",
    "strategy",
    "seeds",
    "pods",
    "placed",
    "packed at 100 %",
    "packed at 130 %",
    "fragmented at 80 %",
    "session s",
)
WIDTH, HEIGHT, MARGIN = 640, 320, 48
COLOURS = ("#1b6ec2", "#c2571b", "#2e8b57", "#8a4fbf", "#b8860b", "#555555")

#: The name of a line, and its points.
Line = tuple[str, Sequence[tuple[float, float]]]

_STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "td,th{padding:.2rem .8rem;text-align:right}td:nth-child(-n+2),th:nth-child(-n+2){text-align:left}"
    "svg text{font:12px sans-serif}"
)


def rows_of(results: Sequence[SessionResult]) -> list[tuple[str, ...]]:
    """Return one row per workload and strategy: means over the seeds, the best time."""
    return [_row(alike) for alike in _by_strategy(results)]


def table_of(results: Sequence[SessionResult]) -> str:
    """Return the results as a table of plain text."""
    return text_table([COLUMNS, *rows_of(results)])


def text_table(rows: Sequence[tuple[str, ...]]) -> str:
    """Return rows, the first one the head, as a table of plain text; two columns of names, then numbers."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def html_table(rows: Sequence[tuple[str, ...]]) -> str:
    """Return rows, the first one the head, as a table of HTML."""
    head = "".join(f"<th>{escape(column)}</th>" for column in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows[1:]
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_page(title: str, body: str) -> str:
    """Return one HTML file that needs no others."""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style><h1>{escape(title)}</h1>{body}</html>\n"
    )


def page_of(results: Sequence[SessionResult]) -> str:
    """Return the results as one HTML file with a table and, for each workload, two plots."""
    plots = []
    for workload, alike in groupby(results, key=lambda result: result.workload):
        runs = list(alike)
        plots.append(f"<h2>{escape(workload)}</h2>")
        plots.append(plot_of(runs, "GPUs given away, %", lambda mark: mark.allocated))
        plots.append(plot_of(runs, "Idle GPUs of no use, %", lambda mark: mark.fragmented))
    return html_page(
        "Trace replay",
        "<p>All pods of a trace wait at once and are placed in one session, in the order of their"
        " arrival. Fragmentation is that of FGD: idle GPUs that the typical mix of pods cannot use.</p>"
        + html_table([COLUMNS, *rows_of(results)])
        + "".join(plots),
    )


def plot_of(results: Sequence[SessionResult], title: str, value: Callable[[Mark], float]) -> str:
    """Return an SVG with one line per strategy over the percent of GPUs asked for."""
    lines = [
        (alike[0].strategy, [(mark.arrived, value(mark)) for mark in _mean_curve(alike)])
        for alike in _by_strategy(results)
    ]
    return lines_plot(title, lines, sorted({x for _, points in lines for x, _ in points}))


def lines_plot(title: str, lines: Sequence[Line], ticks: Sequence[float]) -> str:
    """Return an SVG of lines of percentages; `ticks` are marked on the other axis."""
    across = [x for _, points in lines for x, _ in points]
    left, right = min(across), max(across)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img"'
        f' xmlns="http://www.w3.org/2000/svg"><title>{escape(title)}</title>',
        f'<text x="{MARGIN}" y="16">{escape(title)}</text>',
    ]
    for percent in range(0, 101, 20):
        y = _y(percent)
        parts.append(
            f'<line x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{y:.0f}" y2="{y:.0f}" stroke="#ddd"/>'
            f'<text x="{MARGIN - 6}" y="{y + 4:.0f}" text-anchor="end">{percent}</text>'
        )
    parts += [
        f'<text x="{_x(x, left, right):.0f}" y="{HEIGHT - MARGIN + 18}"'
        f' text-anchor="middle">{x:.0f}</text>'
        for x in ticks
    ]
    for number, (name, points) in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{_x(x, left, right):.1f},{_y(y):.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(
            f'<text x="{MARGIN + 110 * number}" y="{HEIGHT - 6}" fill="{colour}">'
            f"{escape(name)}</text>"
        )
    return "".join([*parts, "</svg>"])


def _x(value: float, left: float, right: float) -> float:
    return MARGIN + (WIDTH - 2 * MARGIN) * ((value - left) / (right - left) if right > left else 0)


def _y(percent: float) -> float:
    return HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * percent / 100


def _by_strategy(results: Iterable[SessionResult]) -> list[list[SessionResult]]:
    together: dict[tuple[str, str], list[SessionResult]] = {}
    for result in results:
        together.setdefault((result.workload, result.strategy), []).append(result)
    return list(together.values())


def _row(alike: Sequence[SessionResult]) -> tuple[str, ...]:
    first = alike[0]
    mean = {mark.arrived: mark for mark in _mean_curve(alike)}
    return (
        first.workload,
        first.strategy,
        str(len(alike)),
        f"{fmean(result.pods for result in alike):.0f}",
        f"{fmean(result.placed for result in alike):.0f}",
        f"{mean[100].allocated:.1f}",
        f"{mean[130].allocated:.1f}",
        f"{mean[80].fragmented:.1f}",
        f"{min(result.open_s + result.allocate_s for result in alike):.2f}",
    )


def _mean_curve(alike: Sequence[SessionResult]) -> list[Mark]:
    return [
        Mark(
            marks[0].arrived,
            fmean(mark.allocated for mark in marks),
            fmean(mark.fragmented for mark in marks),
        )
        for marks in zip(*(result.curve for result in alike), strict=True)
    ]
