"""One self-contained HTML page: claims first, then tables and pictures; no network, no script."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from factorfield.paper.claims import Claim
from factorfield.paper.tables import Records
from factorfield.show.report.page import templates
from factorfield.show.table import Table


def page(
    command: str, records: Records, tables: Mapping[str, Sequence[Table]], figures: Mapping[str, Sequence[Path]],
    claims: Sequence[Claim], notes: Sequence[str],
) -> str:  # fmt: skip
    def pictures(target: str) -> list[tuple[str, str]]:
        return [(path.stem, base64.b64encode(path.read_bytes()).decode()) for path in figures.get(target, ())]

    targets = dict.fromkeys([*tables, *figures])
    return templates().get_template("reproduction.html").render(
        command=command, runs=len(records.all), claims=claims, notes=notes, origin=_origin(records),
        sections=[(target, tables.get(target, ()), pictures(target)) for target in targets],
    )  # fmt: skip


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
