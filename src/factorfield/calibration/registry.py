"""The rows: every feature that gives an interval, how it is judged, and by how many draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from factorfield.calibration import fixed, forward, labels, simulated
from factorfield.calibration.draws import Posed
from factorfield.errors import expected, nearest

PRIOR, TRUTH, ESTIMATE = "stated priors", "fixed truths", "size of errors"


@dataclass(frozen=True)
class Row:
    """A feature, the cell that draws its problems, and how many: in a full run, and in the small one of `make test`.

    `reason` is why it fails, where it is known to.
    """

    feature: str
    pose: Callable[[int], Posed]
    judged: str
    draws: int
    small: int = 0
    reason: str = ""

    @property
    def name(self) -> str:
        return self.pose.__name__.replace("_", "-")


ROWS = (
    Row("unknown number, ODE", simulated.decay_rate, PRIOR, 1000, 20),
    Row("unknown number, nonlinear ODE", simulated.logistic_rate, PRIOR, 1000, 20),
    Row("unknown number, stationary", simulated.source_strength, PRIOR, 1000, 20),
    Row("unknown number, PDE", simulated.advection_speed, PRIOR, 200),
    Row("scattered sensors, start told", simulated.ring_start, PRIOR, 1000, 20),
    Row("forecast of a system", simulated.oscillator_forecast, PRIOR, 1000, 30),
    Row("unknown function", simulated.unknown_source, PRIOR, 1000, 30),
    Row("averages", simulated.averages, PRIOR, 200, 12),
    Row("wall that drifts", simulated.drifting_wall, PRIOR, 200, 12),
    Row("unknown function in a PDE", simulated.conductivity, PRIOR, 200),
    Row("unknown number, nonlinear PDE", simulated.fisher_rate, PRIOR, 200),
    Row("2-D", simulated.plane_start, PRIOR, 200, 8),
    Row("outliers (Student-t)", simulated.outliers, PRIOR, 200, 8),
    Row("log-normal noise", simulated.log_normal_noise, PRIOR, 200),
    Row("noisy start", labels.labels_known, TRUTH, labels.DRAWS * len(labels.CELLS), 9),
    Row("estimated noise, of a start", labels.labels_estimated, TRUTH, labels.DRAWS * len(labels.CELLS), 9),
    Row("scattered sensors, no start", fixed.sensors_field, TRUTH, 100),
    Row("estimated noise, of sensors", fixed.estimated_noise, TRUTH, 100),
    Row("unknown number, no start, ring", fixed.sensors_ring, TRUTH, 100),
    Row("unknown number, no start, walls", fixed.sensors_walls, TRUTH, 100),
    Row("two unknown numbers, no start", fixed.sensors_carried, TRUTH, 100),
    Row(
        "numerical error", forward.forward, ESTIMATE, 110,
        reason="Errors of smooth fields fall faster than the safe rate that three solutions are read with",
    ),
)


def chosen(names: Sequence[str]) -> tuple[Row, ...]:
    """The rows of these names, in their order; all of them if there are none."""
    known = {row.name: row for row in ROWS}
    for name in names:
        if name not in known:
            raise expected("a row of the registry", name, nearest(name, known, "ring-start"))
    return tuple(known[name] for name in names) if names else ROWS
