"""Render the rows of a report as CSV or Parquet. The renderers write errors as problem documents, as for JSON."""

from __future__ import annotations

import csv
import io
from importlib.util import find_spec
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.errors import Problem
from kaiweb.api.http.renderers import FileRenderer, OrjsonRenderer

CSV, PARQUET = "csv", "parquet"
#: A spreadsheet runs a cell that begins with one of these as a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


class CsvRenderer(FileRenderer):
    """RFC 4180 with a header line."""

    media_type = "text/csv"
    format = CSV
    charset = "utf-8"

    def encode(self, data: Any) -> bytes:
        """Return the table as a file."""
        columns, rows = data["columns"], data["items"]
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(columns)
        writer.writerows([_safe(row[column]) for column in columns] for row in rows)
        return text.getvalue().encode()


class ParquetRenderer(FileRenderer):
    """One table; needs the extra `parquet` of kaiweb."""

    media_type = "application/vnd.apache.parquet"
    format = PARQUET
    charset = None
    render_style = "binary"

    def encode(self, data: Any) -> bytes:
        """Return the table as a file."""
        columns, rows = data["columns"], data["items"]
        import pyarrow
        from pyarrow import parquet

        table = pyarrow.table({name: [row[name] for row in rows] for name in columns})
        sink = io.BytesIO()
        parquet.write_table(table, sink)
        return sink.getvalue()


RENDERERS = (OrjsonRenderer, CsvRenderer, ParquetRenderer)


def table_format(request: Request) -> str:
    """Return `csv` or `parquet` if the caller accepts such a file, else "" (JSON).

    Raises
    ------
    Problem : Parquet, and the library for it is not installed
    """
    renderer_format: str = request.accepted_renderer.format
    if renderer_format == PARQUET and find_spec("pyarrow") is None:
        raise Problem(
            "not-acceptable",
            "Parquet needs the package pyarrow in the web process: install kaiweb[parquet], or ask for text/csv",
        )
    return renderer_format if renderer_format in (CSV, PARQUET) else ""


def table(columns: list[str], items: list[dict[str, Any]], stem: str, extension: str) -> Response:
    """Return rows as a file to download, named `stem.extension`; the renderer of the request writes it."""
    headers = {"Content-Disposition": f'attachment; filename="{stem}.{extension}"'}
    return Response({"columns": columns, "items": items}, headers=headers)


def _safe(value: object) -> object:
    """Return a value of a cell; a text that a spreadsheet would run gets a quote before it."""
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return value
