"""What does one factor update of the paper's message passing cost?

Microseconds per update of an advection residual factor, as ratios to the same update in vectorised NumPy and to merely
copying the 4 x 8 x P bytes (messages in, messages out) that an update must move, both out of cache. Contenders
alternate, medians are compared.

    python benchmarks/mean_field.py            (about two minutes; the largest model is b = 7)
"""

from __future__ import annotations

import math
import os
import statistics
import time

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402

import factorfield as ff  # noqa: E402
from factorfield.methods.mean_field.kernel import activation_moments  # noqa: E402
from factorfield.methods.mean_field.layout import Layout, lay_out  # noqa: E402
from factorfield.methods.mean_field.mean_field import Messages  # noqa: E402

REPEATS = 9


def numpy_update(model: ff.Model, layout: Layout, messages: Messages, f: int, moments: np.ndarray) -> float:
    """The kernel's update of a residual factor (belief input) with whole-array operations."""
    group = model.groups[0]
    phi, r = group.rows[0][f], group.rows[1][f]
    own = slice(f * model.size, (f + 1) * model.size)
    m, v = messages.mean, messages.variance
    activation_moments(phi @ m, (phi * phi) @ v, 0.9, 0.1, False, moments)
    s = moments[3:]
    mean_r, cross = r @ m, (phi * r) @ v
    value = s[0] * mean_r + cross * s[1]
    a = s[0] * r + (mean_r * s[1] + cross * s[2]) * phi
    a = np.copysign(np.maximum(np.abs(a), layout.floor[0]), a)
    square = a * a
    rest = layout.noise[f] + square @ v - square * v
    new_precision = square / rest
    new_shift = a * (a * m - value) / rest
    bad = ~(rest > 0.0)
    if bad.any():
        new_precision[bad] = new_shift[bad] = 0.0
    precision = messages.precision + (new_precision - messages.own_precision[own])
    shift = messages.shift + (new_shift - messages.own_shift[own])
    variance = 1.0 / precision
    mean = shift * variance
    ratio = precision * messages.variance
    kl = 0.5 * np.max(ratio - 1.0 - np.log(ratio) + precision * (mean - messages.mean) ** 2)
    messages.own_precision[own], messages.own_shift[own] = new_precision, new_shift
    messages.precision[:], messages.shift[:], messages.mean[:], messages.variance[:] = precision, shift, mean, variance
    return float(kl)


def measure(b: float) -> None:
    model = ff.paper_model(ff.problems.get("advection", b=b, row=3))
    layout = lay_out(model, True, model.settings["coefficient_floor"])
    messages = Messages.start(model, layout)
    rng = np.random.default_rng(0)
    equation = np.flatnonzero(layout.group_of == 0)  # the collocation points: their rows are not shared
    layout.sweep(rng.permutation(equation), messages.arrays, False, 0.0)  # compile, and leave the prior
    size, moments = model.size, np.empty(8)
    source, sink = np.ones(4 * len(equation) * size), np.zeros(4 * len(equation) * size)
    some = min(len(equation), 400)
    times: dict[str, list[float]] = {"kernel": [], "numpy": [], "copy": []}
    for _ in range(REPEATS):
        order = rng.permutation(equation)
        begin = time.perf_counter()
        layout.sweep(order, messages.arrays, False, 0.0)
        times["kernel"].append((time.perf_counter() - begin) / len(order))
        begin = time.perf_counter()
        for f in order[:some]:
            numpy_update(model, layout, messages, int(f), moments)
        times["numpy"].append((time.perf_counter() - begin) / some)
        starts = order[:some] * 4 * size
        begin = time.perf_counter()
        for start in starts:
            sink[start : start + 4 * size] = source[start : start + 4 * size]
        times["copy"].append((time.perf_counter() - begin) / some)
    kernel, plain, copy = (1e6 * statistics.median(values) for values in times.values())
    footprint = 8 * (layout.design.size + 2 * layout.message_size) / 2**20
    print(
        f"b = {b:g}: P = {size:4d}, {kernel:6.2f} us per update, NumPy {plain:6.1f} us ({plain / kernel:4.1f}x), "
        f"copy {copy:5.2f} us (update = {kernel / copy:4.1f} copies), {footprint:.0f} MiB touched",
        flush=True,
    )


def agreement() -> None:
    """The two contenders do the same: the same visit from the same state gives the same beliefs."""
    model = ff.paper_model(ff.problems.get("advection", b=0.1, row=3))
    layout = lay_out(model, True, model.settings["coefficient_floor"])
    one, two = Messages.start(model, layout), Messages.start(model, layout)
    order = np.random.default_rng(1).permutation(model.groups[0].count)[:200]
    first, _ = layout.sweep(order, one.arrays, False, 0.0)
    second = max(numpy_update(model, layout, two, int(f), np.empty(8)) for f in order)
    assert math.isclose(first, second, rel_tol=1e-6) and np.allclose(one.mean, two.mean, rtol=1e-6, atol=1e-9)


if __name__ == "__main__":
    agreement()
    for speed in (0.1, 1.0, 7.0):
        measure(speed)
