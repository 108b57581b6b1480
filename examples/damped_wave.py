"""A string between two walls, damped by an amount nobody told us: found, with an interval, from 60 noisy sightings.

python examples/damped_wave.py
"""

import numpy as np

import factorfield as ff

SPEED, DAMPING = 1.3, 0.7


def exact(x, t):  # two modes released at rest: each rings at sqrt((c n pi)^2 - g^2)
    total = 0.0
    for n, size in ((1, 1.0), (3, 0.5)):
        ring = np.sqrt((SPEED * n * np.pi) ** 2 - DAMPING**2)
        total = total + size * np.sin(n * np.pi * x) * (np.cos(ring * t) + DAMPING / ring * np.sin(ring * t))
    return np.exp(-DAMPING * t) * total


rng = np.random.default_rng(0)
x, t = rng.uniform(0, 1, 60), rng.uniform(0, 2, 60)
problem = ff.Problem(
    "u_tt + 2*g*u_t = c**2*u_xx",
    {"x": ff.Interval(0, 1), "t": ff.Interval(0, 2)},
    {"c": SPEED, "g": ff.Unknown(mean=1.0, std=1.0, positive=True)},
    [
        ff.Initial("u = sin(pi*x) + 0.5*sin(3*pi*x)"),
        ff.Initial("u_t = 0"),
        ff.Boundary("u = 0", at={"x": 0}),
        ff.Boundary("u = 0", at={"x": 1}),
        ff.Observations(x=x, t=t, u=exact(x, t) + 0.03 * rng.standard_normal(60), sigma=0.03),
    ],
)
solution = ff.solve(problem)
g = solution.parameters["g"]
field = solution.predict(x=np.linspace(0, 1, 41), t=np.linspace(0, 2, 41))
error = float(np.abs(field["mean"] - exact(field["x"], field["t"])).max())
print(f"{solution.status}: damping {g['mean']:.3f} +- {g['std']:.3f}, truth {DAMPING}; largest error {error:.4f}")
assert abs(g["mean"] - DAMPING) < 3 * g["std"] and g["std"] < 0.1 and error < 0.05
