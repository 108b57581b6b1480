"""One self-contained HTML page: claims first, then tables and pictures; no network, no script."""

from __future__ import annotations

import base64
import html
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from factorfield.paper.claims import Claim
from factorfield.paper.tables import Records, Table

CSS = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 70rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; } h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 0.85rem; margin: 0.5rem 0 1.5rem; }
caption { text-align: left; font-weight: 600; padding: 0.3rem 0; }
th, td { padding: 0.2rem 0.6rem; text-align: right; border-bottom: 1px solid #e5e5e5; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } td.long { white-space: normal; text-align: left; }
.yes { color: #00664d; } .no { color: #a33b00; } .partly { color: #7a5a00; } img { max-width: 100%; }
footer { color: #666; font-size: 0.85rem; margin-top: 3rem; }
"""


def page(
    command: str, records: Records, tables: Mapping[str, Sequence[Table]], figures: Mapping[str, Sequence[Path]],
    claims: Sequence[Claim], notes: Sequence[str],
) -> str:  # fmt: skip
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>factorfield reproduce</title><style>{CSS}</style></head><body>",
        "<h1>The paper, reproduced</h1>",
        f"<p>{len(records.all)} runs. Made by <code>{html.escape(command)}</code>.</p>",
        *(f"<p>{html.escape(note)}</p>" for note in notes),
        "<h2>Claims</h2>", _claims(claims),
    ]  # fmt: skip
    for target in dict.fromkeys([*tables, *figures]):
        parts.append(f"<h2>{html.escape(target)}</h2>")
        parts += [_table(table) for table in tables.get(target, ())]
        parts += [_picture(path) for path in figures.get(target, ())]
    parts.append(f"<footer>{html.escape(_origin(records))}</footer></body></html>")
    return "\n".join(parts)


def _claims(claims: Sequence[Claim]) -> str:
    rows = "".join(
        f'<tr><td class="long">{html.escape(c.text)}</td><td class="{c.answer.split()[0]}">{c.answer}</td>'
        f'<td class="long">{html.escape(c.number)}</td></tr>'
        for c in claims
    )
    return f'<div class="wide"><table><tr><th>claim</th><th>answer</th><th>number</th></tr>{rows}</table></div>'


def _table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in table.header)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>" for row in table.cells())
    note = f"<p>{html.escape(table.note)}</p>" if table.note else ""
    caption = f"<caption>{html.escape(table.title)}</caption>"
    return f'<div class="wide"><table>{caption}<tr>{head}</tr>{body}</table></div>{note}'


def _picture(path: Path) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<p><img alt="{html.escape(path.stem)}" src="data:image/png;base64,{data}"></p>'


def _origin(records: Records) -> str:
    """Commits, versions and machines of the records."""
    origins = [record["provenance"] for record in records.all]

    def listed(values: Iterable[str]) -> str:
        return ", ".join(sorted(set(values)))

    versions = "; ".join(
        f"{name} {listed(origin['versions'].get(name, '') for origin in origins)}"
        for name in ("factorfield", "numpy", "jax")
    )
    return (
        f"commits {listed(origin['commit'] for origin in origins)}; {versions}; "
        f"{listed(origin['machine'].get('system', '') for origin in origins)}; {time.strftime('%Y-%m-%d')}"
    )
