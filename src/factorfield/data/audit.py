"""Is a PDEBench file what it says? Frozen fields, wrong speeds and wrong equations, apart from mere discretisation.

Every row is compared with an independent float64 solution from its own first frame. Defects:
  freeze           consecutive frames equal bit for bit while the solution still has to move
  wrong speed      (advection) the waves travel at another speed than the file's beta: before August 2023, 2 beta
  wrong equation   the field leaves the solution early, and no freeze or speed explains it
Anything else is discretisation error: reported, not a defect.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from factorfield.data.pdebench import open_rows
from factorfield.data.reference import fisher_kpp, laplace_symbol, translate
from factorfield.errors import expected

Array = NDArray[np.float64]
STILL_MOVING = 1e-3  # change (of a field of size one) that a frozen field would have to show
SPEED_TOLERANCE = 0.02
EARLY_FRAMES = 5  # a wrong equation shows in the first frames, before errors add up
EARLY_ERROR = 0.05  # relative; float32 artefacts of the published files stay below 0.01 there
DEFECTS = ("freeze", "wrong speed", "wrong equation")


@dataclass(frozen=True, eq=False)
class RowAudit:
    """What one row shows: RMS of the PDE residual and relative error against the reference over time, and a verdict."""

    row: int
    verdict: str  # "ok" or one of DEFECTS
    error: float  # relative L2 over all times
    error_at_end: float
    residual: Array  # RMS per time step
    errors: Array  # relative L2 per frame
    frozen_from: float | None
    speed: float | None


@dataclass(frozen=True, eq=False)
class Audit:
    path: Path
    equation: str
    physics: dict[str, float]
    times: Array
    rows: tuple[RowAudit, ...]

    @property
    def defects(self) -> list[str]:
        return [kind for kind in DEFECTS if any(row.verdict == kind for row in self.rows)]

    def table(self) -> list[list[str]]:
        """Header and one line per row."""
        header = ["row", "verdict", "relative error", "at the end", "RMS residual", "frozen from t", "speed"]
        lines = []
        for row in self.rows:
            frozen = "" if row.frozen_from is None else f"{row.frozen_from:.2f}"
            speed = "" if row.speed is None else f"{row.speed:.4g}"
            residual = f"{float(np.sqrt(np.mean(row.residual**2))):.2e}"
            lines.append(
                [str(row.row), row.verdict, f"{row.error:.2e}", f"{row.error_at_end:.2e}", residual, frozen, speed]
            )
        return [header, *lines]


def audit(path: str | os.PathLike[str], rows: Sequence[int] | str | None = None) -> Audit:
    """Audit rows of an advection or reaction-diffusion file (all rows, positions, or "paper")."""
    data = open_rows(path, rows)
    equation = str(data.attrs["equation"])
    if equation not in ("advection", "fisher-kpp"):
        raise expected("an advection or reaction-diffusion file", f"one of {equation}", "another file")
    physics = {str(name): float(value) for name, value in data.attrs.items() if name != "equation"}
    times = data["t"].values
    judged = tuple(
        _audit_row(int(name), values, times, equation, physics)
        for name, values in zip(data["row"].values, data["u"].values, strict=True)
    )
    return Audit(Path(path), equation, physics, times, judged)


def _audit_row(
    name: int, stored: NDArray[np.floating], times: Array, equation: str, physics: dict[str, float]
) -> RowAudit:
    field = stored.astype(float)
    if equation == "advection":
        exact = translate(field[0], physics["b"] * times)
    else:
        exact = fisher_kpp(field[0], physics["nu"], physics["rho"], times)
    size = max(float(np.sqrt(np.mean(exact**2))), 1e-300)
    errors = np.sqrt(np.mean((field - exact) ** 2, axis=1)) / size
    total = float(np.sqrt(np.mean(errors**2)))
    residual = _residual(field, times, equation, physics)
    frozen = _frozen_from(stored, exact, times)
    speed = _speed(field, times, physics["b"]) if equation == "advection" else None
    early = float(errors[1 : EARLY_FRAMES + 1].max())
    verdict = "ok"
    if frozen is not None and (early < EARLY_ERROR or frozen <= times[EARLY_FRAMES]):
        verdict = "freeze"
    elif speed is not None and abs(speed - physics["b"]) > SPEED_TOLERANCE * abs(physics["b"]):
        verdict = "wrong speed"
    elif early > EARLY_ERROR:
        verdict = "wrong equation"
    return RowAudit(name, verdict, total, float(errors[-1]), residual, errors, frozen, speed)


def _frozen_from(stored: NDArray[np.floating], exact: Array, times: Array) -> float | None:
    """The first time from which the stored frames stay equal, if the solution moves on from there."""
    same = np.all(stored[1:] == stored[:-1], axis=1)
    moving = np.flatnonzero(~same)
    first = 0 if len(moving) == 0 else int(moving[-1]) + 1
    if first >= len(times) - 1:
        return None
    return float(times[first]) if float(np.abs(exact[-1] - exact[first]).max()) > STILL_MOVING else None


def _speed(field: Array, times: Array, claimed: float) -> float | None:
    """Speed of the strongest wave whose phase can be followed from frame to frame at up to four times the claim."""
    waves = np.fft.rfft(field, axis=1)[:, 1:9]
    step = float(times[1] - times[0])
    followed = [k for k in range(waves.shape[1]) if 4.0 * abs(claimed) * (k + 1) * step < 0.5]
    if not followed:
        followed = [0]
    strengths = np.abs(waves[0])
    best = max(followed, key=lambda k: strengths[k])
    if strengths[best] < 1e-6 * max(float(np.abs(field[0]).max()), 1e-300) * field.shape[1]:
        return None  # no wave to follow
    turned = np.angle(waves[1:, best] / waves[:-1, best])
    return float(-np.mean(turned) / (2.0 * np.pi * (best + 1) * step))


def _residual(field: Array, times: Array, equation: str, physics: dict[str, float]) -> Array:
    """RMS of the PDE residual in the middle of each time step: central difference in time, spectral in space."""
    middle = 0.5 * (field[1:] + field[:-1])
    change = np.diff(field, axis=0) / np.diff(times)[:, None]
    cells = field.shape[1]
    hat = np.fft.rfft(middle, axis=1)
    wave = 2j * np.pi * np.fft.rfftfreq(cells, d=1.0 / cells)
    if equation == "advection":
        rest = change + physics["b"] * np.fft.irfft(wave * hat, cells, axis=1)
    else:
        curved = np.fft.irfft(laplace_symbol((cells,), 1.0) * hat, cells, axis=1)
        rest = change - physics["nu"] * curved - physics["rho"] * middle * (1.0 - middle)
    return np.sqrt(np.mean(rest**2, axis=1))
