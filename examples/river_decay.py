"""A pollutant carried by a river: does it decay by itself, or by pairs? Two equations, ranked by one set of samples.

python examples/river_decay.py
"""

from __future__ import annotations

import numpy as np

import factorfield as ff


def spill(x):  # mg/l along the river, in km
    return 4.0 * np.exp(-(((x - 2.0) / 0.8) ** 2))


def truth(x, t):  # carried at 0.4 km/h, decaying by pairs (second order)
    start = spill(x - 0.4 * t)
    return start / (1.0 + 0.15 * start * t)


rng = np.random.default_rng(0)
t, x = (each.ravel() for each in np.meshgrid([2.0, 4.0, 6.0, 8.0], np.arange(1.5, 7.0, 0.5)))
samples = ff.Observations(x=x, t=t, u=truth(x, t) + 0.1 * rng.standard_normal(len(x)), sigma=0.1)
start = ff.Initial("u = 4*exp(-((x - 2)/0.8)**2)")
rate = ff.Unknown(0.2, 0.2, positive=True)
equations = {"first order": "u_t + 0.4*u_x = -k*u", "second order": "u_t + 0.4*u_x = -k*u**2"}
river = {"x": ff.Periodic(0, 10), "t": ff.Interval(0, 8)}  # the spill does not reach the end
problems = {name: ff.Problem(text, river, {"k": rate}, [start, samples]) for name, text in equations.items()}
found = ff.rank(problems, modes={"x": 24})
for name in found["name"].values:
    one = found.sel(name=name)
    k, std = (float(one[f"coefficient_{key}"][0]) for key in ("mean", "std"))
    shown = f"{float(one['probability']):.1%}, k = {k:.3f} +- {std:.3f}, misfit {float(one['misfit'][0]):.2f} sigma"
    print(f"{name}: {shown} ({one['status'].item()})")
assert float(found["probability"].sel(name="second order")) > 0.99
