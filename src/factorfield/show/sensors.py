"""Value against time where sensors stand: mean with its band, what they read, and what is forecast beyond."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected
from factorfield.problem.domain import TIME
from factorfield.show.fields import band, label, legend, points, unit
from factorfield.show.style import GREY, Drawing
from factorfield.show.views import Data, View, data_of
from factorfield.solution import Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
FEWEST = 4  # readings at one place that make it a sensor
MOST = 6  # panels of a picture
COLUMNS = 3
FINE = 241  # times along a curve


@dataclass(frozen=True, eq=False)
class Sensor:
    """A place where a field was read several times."""

    field: str
    place: Mapping[str, float]
    times: Array
    values: Array


def sensors_of(solution: Solution, field: str, most: int = MOST) -> list[Sensor]:
    """Places with readings at several times, in order; evenly chosen among them if there are more."""
    problem, found = solution.problem, dict[tuple[float, ...], list[Data]]()
    if TIME not in problem.domain:
        return []
    for data in data_of(problem):
        if data.field != field:
            continue
        places = np.stack([np.ones(len(data.values)), *(data.points[name] for name in problem.domain.space)], axis=1)
        for place in np.unique(places, axis=0):
            here = np.all(places == place, axis=1)
            mine = Data(field, {name: x[here] for name, x in data.points.items()}, data.values[here])
            found.setdefault(tuple(float(value) for value in place[1:]), []).append(mine)
    sensors = []
    for place, parts in sorted(found.items()):
        times = np.concatenate([part.points[TIME] for part in parts])
        if len(np.unique(times)) >= FEWEST:
            values = np.concatenate([part.values for part in parts])
            sensors.append(Sensor(field, dict(zip(problem.domain.space, place, strict=True)), times, values))
    chosen = np.unique(np.linspace(0, len(sensors) - 1, min(most, len(sensors))).round().astype(int))
    return [sensors[index] for index in chosen]


def history(panel: Axes, solution: Solution, sensor: Sensor) -> None:
    """One sensor: the field at its place over all of time, its readings, and grey what no measurement reaches."""
    problem = solution.problem
    horizon, units = problem.domain[TIME], problem.units
    times = np.linspace(horizon.lower, horizon.upper, FINE)
    seen = solution.posterior.predict({TIME: times, **{n: [v] for n, v in sensor.place.items()}}, sensor.field)
    band(panel, times, np.ravel(seen["mean"]), np.ravel(seen["std"]))
    last = max(float(data.points[TIME].max()) for data in data_of(problem))
    if last < horizon.upper - 0.01 * horizon.length:
        panel.axvspan(last, horizon.upper, color=GREY, alpha=0.15, lw=0, label="forecast")
    points(panel, Data(sensor.field, {TIME: sensor.times}, sensor.values), TIME, "data", 1.0)
    where = ", ".join(f"{label(n)} = {v:.4g} {unit(units, n)}".strip() for n, v in sensor.place.items())
    panel.set_title(where or label(sensor.field))
    panel.set(xlabel=label(TIME, units))
    panel.margins(x=0.0)


def sensors(plt: Drawing, solution: Solution, shown: View) -> Figure:
    """A panel for every sensor of every field, six at most."""
    fields = [name for name in shown.names if name in solution.problem.fields]
    every = [each for name in fields for each in sensors_of(solution, name)][:MOST]
    if not every:
        raise expected(f"places that were measured at {FEWEST} times or more", "none", "--kind slices")
    columns = 2 if len(every) == 4 else min(COLUMNS, len(every))
    rows = -(-len(every) // columns)
    size = (3.0 * columns + 0.6 if columns > 1 else 5.6, 2.2 * rows + 1.0)
    figure, panels = plt.subplots(rows, columns, size, squeeze=False, constrained_layout=True)
    for index, panel in enumerate(panels.ravel()):
        if index >= len(every):
            panel.set_visible(False)
            continue
        history(panel, solution, every[index])
        if index % columns == 0 or every[index].field != every[index - 1].field:
            panel.set_ylabel(label(every[index].field, solution.problem.units))
    legend(figure, [panel for panel in panels.ravel() if panel.get_visible()])
    return figure
