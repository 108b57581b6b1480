"""How fast does a wave travel? Its speed, with an interval, from 200 scattered noisy observations.

python examples/unknown_speed.py
"""

from __future__ import annotations

import numpy as np

import factorfield as ff

rng = np.random.default_rng(0)
x, t = rng.random(200), 2.0 * rng.random(200)
height = np.sin(2 * np.pi * (x - 0.7 * t)) + 0.1 * rng.standard_normal(200)  # the truth travels at 0.7

problem = ff.Problem(
    equation="u_t + b*u_x",
    domain={"x": ff.Periodic(0, 1), "t": ff.Interval(0, 2)},
    parameters={"b": ff.Unknown(mean=1.0, std=0.5, positive=True)},
    conditions=[ff.Observations(x=x, t=t, u=height, sigma=0.1)],
)
solution = ff.solve(ff.default_model(problem, modes={"x": 2, "t": 24}))
speed = solution.parameters["b"]
low, high = speed["interval"]
print(f"{solution.status}: speed {speed['mean']:.4f} +- {speed['std']:.4f}, 90 % interval [{low:.4f}, {high:.4f}]")
