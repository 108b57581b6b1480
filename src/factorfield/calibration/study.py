"""A study of rows: draws that have no record are made, and the records become tables."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from factorfield.calibration import labels
from factorfield.calibration.forward import LEAST, MOST
from factorfield.calibration.gate import FALSE_ALARM, distance, passes
from factorfield.calibration.records import Record, Records, commit
from factorfield.calibration.registry import ESTIMATE, Row
from factorfield.methods import Method
from factorfield.progress import Progress
from factorfield.show.table import Table
from factorfield.solving import solve

Array = NDArray[np.float64]
LEVELS = (0.5, 0.8, 0.9, 0.95)
Found = Mapping[Row, Sequence[Record]]


def study(
    wanted: Mapping[Row, int], records: Records, method: str | Method | None = None, tell: Progress | None = None
) -> dict[Row, list[Record]]:
    """So many draws of each row: those that are recorded are read, the others made."""
    found: dict[Row, list[Record]] = {row: [] for row in wanted}
    done, total = 0, sum(wanted.values())
    for row, draws in wanted.items():
        for draw in range(draws):
            record = records.read(row.name, draw)
            if record is None:
                record = one_draw(row, draw, method)
                records.write(row.name, draw, record)
            found[row].append(record)
            done += 1
            if tell is not None:
                tell(f"{row.name}, draw {draw + 1} of {draws}", done / total)
    return found


def one_draw(row: Row, draw: int, method: str | Method | None = None) -> Record:
    """A solve that raises is a record too: it fails its row, and is not tried again."""
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posed = row.pose(draw)
        try:
            solution = solve(posed.problem, method)
            z, status = posed.read(solution).tolist(), str(solution.status)
        except Exception as problem:
            z, status = [], f"failed: {type(problem).__name__}: {problem}"
    return {"z": z, "status": status, "seconds": time.process_time() - begin, "commit": commit()}


# -- what the records say


def judged(row: Row, found: Sequence[Record], false_alarm: float = FALSE_ALARM) -> dict[str, object]:
    """A line of the table. Shares and squares are means over a draw's values, then over draws."""
    told = [np.array(record["z"], float) for record in found if record["z"]]
    line: dict[str, object] = {"row": row.name, "feature": row.feature, "judged by": row.judged, "draws": len(found)}
    for level in LEVELS:
        reach = special.ndtri(0.5 + 0.5 * level)
        line[f"{100 * level:g} %"] = 100.0 * _mean([np.mean(np.abs(z) <= reach) for z in told])
    scalars = np.array([z[0] for z in told])
    line["rms z"] = float(np.sqrt(_mean([np.mean(z**2) for z in told])))
    usual = row.judged != ESTIMATE and len(told) > 0
    line["KS"] = distance(scalars) if usual else np.nan
    line["not converged"] = sum(record["status"] != "converged" for record in found)
    line["s"] = float(np.median([record["seconds"] for record in found]))
    return line | {"verdict": verdict(row, found, false_alarm)}


def verdict(row: Row, found: Sequence[Record], false_alarm: float = FALSE_ALARM) -> str:
    """In words: passes, or what fails."""
    failed = [record["status"] for record in found if record["status"].startswith("failed")]
    if failed:
        return f"fails: {len(failed)} of {len(found)} draws have no solution ({failed[0]})"
    told = [np.array(record["z"], float) for record in found if record["z"]]
    if row.judged == ESTIMATE:
        ratios = np.array([np.quantile(np.abs(z), 0.95) for z in told])
        narrow, wide = int(np.sum(~(ratios <= MOST))), int(np.sum(ratios < LEAST))
        words = [f"{narrow} draws too sure"] * (narrow > 0) + [f"{wide} too wide"] * (wide > 0)
        return f"fails: {' and '.join(words)}, of {len(told)}" if words else "passes"
    return "passes" if bool(passes(np.array([z[0] for z in told]), false_alarm)) else "fails"


def _mean(values: Sequence[float] | Sequence[np.floating]) -> float:
    return float(np.mean(values)) if len(values) else np.nan


def registry_table(found: Found) -> Table:
    lines = pd.DataFrame([judged(row, records) for row, records in found.items() if records])
    return Table("registry of coverage: shares of truths inside intervals, the draw as unit", lines)


def labels_table(found: Found) -> Table | None:
    """Rows of noisy labels, cell by cell and pooled."""
    lines = []
    for row in (row for row in found if row.pose in (labels.labels_known, labels.labels_estimated)):
        cells: dict[str, list[Record]] = {}
        for draw, record in enumerate(found[row]):
            noise, count = labels.cell_of(draw)
            cells.setdefault(f"noise {100 * noise:g} %, {count} labels", []).append(record)
        for cell, records in ({**cells, "pooled": list(found[row])}).items():
            lines.append({"cell": f"{row.name}: {cell}", **judged(row, records)})
    if not lines:
        return None
    shown = ["cell", "draws", *(f"{100 * level:g} %" for level in LEVELS), "rms z"]
    return Table("noisy labels, cell by cell", pd.DataFrame(lines)[shown])
