"""The numbers of runs, a line each of one CSV file: what is left of a sweep when its records are gone.

Records hold fields and weights and are too large to keep; tables and answers to claims need only these numbers. Runs
add up: a file is read, the runs of new records take the place of old ones, and the file is written again.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from factorfield.files.atomic import write_text
from factorfield.paper.tables import FOUND_BY, LISTS, NUMBERS, SCORES, Records, ordered

SPEC = ["equation", "cell", "row", "method", "seed", "model", "options", "initial", "kind"]  # which run it is
# The paper's scores of a run (advection: against the stored field, Fisher-KPP: against the exact one), then the others:
# advection against the exact solution, Fisher-KPP for late times.
OTHER_SCORES = {
    equation: [f"{reference}_{score}" for score in SCORES if score != "coverage95"]
    for equation, reference in (("advection", "exact"), ("fisher-kpp", "late"))
}
BESIDE_HMC = ["hmc_std_ratio", "hmc_mean_distance", "hmc_std_factor"]  # of two runs: kept when one is gone
COLUMNS = [
    *SPEC, "status", "commit", *SCORES, *OTHER_SCORES["advection"], *OTHER_SCORES["fisher-kpp"], "rms_residual",
    "std_at_start", "std_at_end", "error_at_start", "error_at_end", "collapsed", "activity_rank", *BESIDE_HMC,
    "epochs", "rhat", "ess", "fit", "processor", "cold", "warm", "predict",
]  # fmt: skip


@dataclass(frozen=True)
class Numbers(Records):
    """Runs of which the numbers are left; picked from like records."""

    lines: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=COLUMNS))

    @cached_property
    def frame(self) -> pd.DataFrame:
        frame = self.lines.reindex(columns=[*dict.fromkeys((*COLUMNS, *FOUND_BY, *NUMBERS, *LISTS))])
        for name in ("model", "options"):
            frame[name] = [ast.literal_eval(text) for text in frame[name]]
        frame["physics"] = [dict(_number(part) for part in cell.split(", ")) for cell in frame["cell"]]
        frame["label"] = frame["equation"] + ", " + frame["cell"]
        frame = frame.astype({name: float for name in NUMBERS})
        is_advection = frame["equation"] == "advection"
        for name in SCORES:
            frame[f"stored_{name}"] = frame[name].where(is_advection)
            frame[f"exact_{name}"] = frame[f"exact_{name}"].where(is_advection, frame[name])
        return ordered(frame)


def _number(text: str) -> tuple[str, float]:
    name, value = text.split(" = ")
    return name, float(value)


def lines_of(records: Records) -> pd.DataFrame:
    """The lines of new records."""
    frame = records.frame.astype({"cell": str, "method": str, "model": str, "options": str})
    frame["commit"] = [record["provenance"]["commit"] for record in records.all]
    for equation, names in OTHER_SCORES.items():
        frame[names] = frame[names].where(frame["equation"] == equation)
    return frame[COLUMNS]


def added(new: pd.DataFrame, old: pd.DataFrame) -> pd.DataFrame:
    """Old lines, and the new ones in their place; sorted, so that a file changes only where a run has."""
    names, known = ([*lines[SPEC].astype(str).itertuples(index=False, name=None)] for lines in (new, old))
    before = dict(zip(known, old[BESIDE_HMC].to_numpy(float), strict=True))
    new = new.copy()
    compared = [before.get(name, np.full(len(BESIDE_HMC), np.nan)) for name in names]
    new[BESIDE_HMC] = new[BESIDE_HMC].fillna(pd.DataFrame(compared, new.index, BESIDE_HMC, dtype=float))
    again = set(names)
    parts = [part for part in (new, old[[name not in again for name in known]]) if len(part)]
    together = pd.concat(parts) if parts else old
    return together.sort_values(SPEC, key=lambda column: column.astype(str), kind="stable", ignore_index=True)


def write(lines: pd.DataFrame, path: Path) -> None:
    write_text(path, lines.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype={"commit": str}).reindex(columns=COLUMNS)
