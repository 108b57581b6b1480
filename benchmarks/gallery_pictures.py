"""The picture of docs/gallery.md: every problem of the gallery as it is solved by default, mean of the field.

python benchmarks/gallery_pictures.py docs/images/gallery.png [--functions docs/images/functions.png]
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from gallery import FORWARD

import factorfield as ff
from factorfield.problems import heat_conductivity, poisson_source

COLUMNS = 5
INTERVAL = 1.645


def draw(axes: Any, name: str) -> None:
    solution = ff.solve(ff.problems.get(name))
    grid = solution.default_grid()
    field = solution.predict(**{axis: x[:: max(1, len(x) // 200)] for axis, x in grid.items()})
    axes.set_title(name, fontsize=9)
    axes.tick_params(labelsize=6)
    mean = field["mean"]
    if "field" in mean.dims and len(grid) == 1:
        for one in mean.field.values:
            axes.plot(mean.t, mean.sel(field=one), label=str(one))
        axes.legend(fontsize=6)
        return
    mean = mean.isel(field=0) if "field" in mean.dims else mean
    if len(mean.dims) == 3:
        mean = mean.isel(t=-1)
    if len(mean.dims) == 1:
        axes.plot(mean[mean.dims[0]], mean)
        axes.set_xlabel(mean.dims[0], fontsize=7)
        return
    across, along = ("t", "x") if "t" in mean.dims else ("x", "y")
    axes.pcolormesh(mean[across], mean[along], mean.transpose(along, across), cmap="viridis", rasterized=True)
    axes.set_xlabel(across, fontsize=7)
    axes.set_ylabel(along, fontsize=7)


def overview(path: str) -> None:
    rows = -(-len(FORWARD) // COLUMNS)
    figure, table = plt.subplots(rows, COLUMNS, figsize=(2.3 * COLUMNS, 1.9 * rows), constrained_layout=True)
    for axes, name in zip(table.ravel(), FORWARD, strict=False):
        draw(axes, name)
        print(name, flush=True)
    for axes in table.ravel()[len(FORWARD) :]:
        axes.set_axis_off()
    figure.savefig(path, dpi=110)


def functions(path: str) -> None:
    """Unknown functions with their 90 % bands beside the truth."""
    figure, table = plt.subplots(1, 2, figsize=(8, 2.8), constrained_layout=True)
    x = np.linspace(0.0, 1.0, 201)
    cases = (("heat-conductivity", "D", heat_conductivity.conductivity), ("poisson-source", "f", poisson_source.source))
    for axes, (name, of, truth) in zip(table, cases, strict=True):
        found = ff.solve(ff.problems.get(name)).predict(of=of, x=x)
        low, high = (found["mean"] + sign * INTERVAL * found["std"] for sign in (-1, 1))
        axes.fill_between(x, low, high, color="#56B4E9", alpha=0.4, linewidth=0, label="90 %")
        axes.plot(x, found["mean"], color="#0072B2", label="mean")
        axes.plot(x, truth(x), color="black", linestyle="--", linewidth=1, label="truth")
        axes.set(title=name, xlabel="x", ylabel=f"{of}(x)")
        axes.legend(fontsize=8)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--functions")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ff.AdviceWarning)
    if arguments.functions:
        functions(arguments.functions)
    overview(arguments.path)


if __name__ == "__main__":
    main()
