"""Print an answer as a table for people, or as JSON or YAML for programs; write amounts as people read them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import click
import yaml
from rich.console import Console, RenderableType
from rich.table import Table

TABLE, JSON, YAML = "table", "json", "yaml"
FORMATS = (TABLE, JSON, YAML)
GIB = 1 << 30
UNLIMITED = "unlimited"

output_option = click.option(
    "--output", "-o", "output_format", type=click.Choice(FORMATS), default=TABLE, show_default=True
)


def console() -> Console:
    """Return the console of standard output; where that is no terminal, it has the width of a wide one."""
    screen = Console(highlight=False)
    return screen if screen.is_terminal else Console(highlight=False, width=140)


def show(content: Any, output_format: str, render: Callable[[], RenderableType]) -> None:
    """Print the content in the format; `render` builds what people see."""
    if output_format == JSON:
        click.echo(json.dumps(content, indent=2, ensure_ascii=False))
    elif output_format == YAML:
        click.echo(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), nl=False)
    else:
        console().print(render())


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """Return an empty table without lines; the columns in `right` hold numbers."""
    grid = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        grid.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return grid


def workload_name(row: Mapping[str, Any]) -> str:
    """Return `namespace/owner` of a workload, or its own name where nobody owns it."""
    return f"{row['namespace']}/{row['owner'] or row['name']}"


def number(value: float | str | None) -> str:
    """Return an amount: `unlimited`, `-` where none is set, else the number without needless places."""
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:g}"


def cores(value: float | str | None) -> str:
    """Return millicores as cores."""
    return number(value / 1000 if isinstance(value, int | float) else value)


def gibibytes(value: float | str | None) -> str:
    """Return bytes as GiB."""
    if isinstance(value, int | float):
        return f"{value / GIB:.1f}".removesuffix(".0")
    return number(value)


def age(moment: str | None, now: datetime | None = None) -> str:
    """Return how long ago a time of the API was, in its two largest units."""
    if not moment:
        return "-"
    seconds = int(((now or datetime.now(UTC)) - datetime.fromisoformat(moment)).total_seconds())
    units = [("d", 86400), ("h", 3600), ("m", 60), ("s", 1)]
    parts: list[str] = []
    for name, size in units:
        count, seconds = divmod(max(0, seconds), size)
        if count or (name == "s" and not parts):
            parts.append(f"{count}{name}")
    return "".join(parts[:2])
