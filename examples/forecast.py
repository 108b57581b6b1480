"""Hourly readings through a restart: a forecast from a file, the next readings, a later end; nothing is solved anew.

python examples/forecast.py
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import factorfield as ff

RATE = 25 * (np.pi / 50) ** 2  # of the cooling, for alpha = 25 cm2/h
CLOCK = {"column": "time", "unit": "h", "origin": "2024-05-01 06:00"}
PLACES = {"T1": {"x": 10}, "T2": {"x": 20}}
rng = np.random.default_rng(3)


def readings(first, last):  # what a logger writes: a column of timestamps and one per sensor
    hours = np.arange(first, last + 1.0)
    at = {name: 20 + 60 * np.exp(-RATE * hours) * np.sin(np.pi * place["x"] / 50) for name, place in PLACES.items()}
    stamps = pd.Timestamp("2024-05-01 06:00") + pd.to_timedelta(hours, "h")
    return pd.DataFrame({"time": stamps} | {name: u + 0.5 * rng.standard_normal(len(u)) for name, u in at.items()})


problem = ff.Problem(
    "u_t = alpha*u_xx", {"x": ff.Interval(0, 50), "t": ff.Interval(0, 8)},
    {"alpha": ff.Unknown(15, 15, positive=True)},
    [ff.Initial("u = 20 + 60*sin(pi*x/50)", sigma=2), ff.Boundary("u = 20", at={"x": 0}),
     ff.Boundary("u = 20", at={"x": 50}), ff.Observations(readings(1, 8), t=CLOCK, u=PLACES, sigma=0.5)],
)  # fmt: skip
solution = ff.solve(problem)
ahead = solution.extend(16)  # eight hours beyond the data
file = Path(tempfile.mkdtemp()) / "bar.nc"
ahead.save(file)
loaded = ff.load(file)  # the next morning, in another process
later = loaded.condition(ff.Observations(readings(9, 12), t=CLOCK, u=PLACES, sigma=0.5))
for name, each in (("after 8 hours", ahead), ("after 12 hours", later)):
    alpha, at = each.intervals(0.95)["alpha"], each.predict(x=[20], t=[16], level=0.95)
    low, high = float(at["lower"].item()), float(at["upper"].item())
    print(f"{name}: alpha in [{alpha['interval'][0]:.1f}, {alpha['interval'][1]:.1f}], at 16 h [{low:.2f}, {high:.2f}]")
truth = 20 + 60 * np.exp(-RATE * 16) * np.sin(0.4 * np.pi)
print(f"{later.status}: the truth at 16 h is {truth:.2f}, alpha is 25")
assert low < truth < high and alpha["std"] < ahead.parameters["alpha"]["std"]
