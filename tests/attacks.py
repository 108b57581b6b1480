"""Files that a stranger might send: results, data and problem files, changed at random or with intent.

`mutant(kind, number)` is always the same file for the same number. The tests take a few of each;
benchmarks/attack.py takes thousands, each in a process of its own with limits on memory and time.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray as xr

import factorfield as ff
from factorfield.files.seal import LENGTH, MARK, seal

Random = np.random.Generator
OUTSIDE = "outside"  # a folder beside the one where files are read; nothing in it may be opened


@dataclass(frozen=True)
class Mutant:
    """Files of an attack by name, and what was done to them; the first one is read."""

    how: str
    files: dict[str, bytes]
    links: tuple[tuple[str, str], ...] = ()  # symbolic links: name and target

    def write(self, folder: Path) -> Path:
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        for name, target in self.links:
            (folder / name).symlink_to(target)
        return folder / next(iter(self.files))


def mutant(kind: str, number: int) -> Mutant:
    rng = np.random.default_rng([number, sorted(KINDS).index(kind)])
    return KINDS[kind](rng)


SCRAPS: list[Any] = [
    None, True, -1, 0, 1, 2.5, 1e308, -1e308, 1e-320, 10**30, float("nan"), float("inf"), "", "x", "u",
    "\x1b[31mred\x07", "9" * 5000, [], {}, [[]], [1, 2], {"a": 1}, "../outside/secret.h5",
    "sin(u) + cos(2*u)", "u_t = u_xx", [0.0, 1.0],
    ["t", "x"], 1_000_000, 30_000, "<script>alert(1)</script>", "${HOME}", "\u202egnirts", ["Periodic", 0, 1],
]  # fmt: skip


def scrap(rng: Random) -> Any:
    return SCRAPS[rng.integers(len(SCRAPS))]


def flipped(content: bytes, rng: Random, most: int = 30) -> bytes:
    changed = bytearray(content)
    for at in rng.integers(len(changed), size=rng.integers(1, most)):
        changed[at] = rng.integers(256)
    return bytes(changed)


LONG, SHORT = 1_000_003, 5  # lengths of texts that `share_heap` knows by


def heap_attribute(item: h5py.Group | h5py.Dataset, count: int, name: str = "texts") -> None:
    """An attribute of one long text and many short ones: for `share_heap`."""
    item.attrs[name] = np.array(["a" * LONG] + ["b" * SHORT] * (count - 1), dtype=h5py.string_dtype())


def share_heap(path: Path) -> None:
    """Every short text becomes the long one before it: an element is its length, its heap and a number there."""
    content = bytearray(path.read_bytes())
    long, short = LONG.to_bytes(4, "little"), SHORT.to_bytes(4, "little")
    at = content.find(long)
    while at >= 0:
        first, following = content[at : at + 16], at + 16
        while content[following : following + 4] == short:
            content[following : following + 16] = first
            following += 16
        at = content.find(long, following)
    path.write_bytes(content)


# -- results


@cache
def results() -> list[bytes]:
    """Small solutions of every kind of posterior."""
    x = np.linspace(0, 1, 9)
    truth = xr.DataArray(x * (1 - x), dims="x", coords={"x": x}, name="u")
    walls = [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})]
    rod = {"x": ff.Interval(0, 1)}
    seen = ff.Observations(x=x, of="log(1 + u)", value=np.log1p(x * (1 - x)), sigma=1e-2)
    slope = ff.Observations(x=x, u=x, sigma=0.1)
    table = ff.Table(x=x, value=np.ones(9))
    heat = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 0.2)}
    problems = [
        ff.Problem("-u_xx = f*g", rod, {"f": ff.Unknown(1.0, 5.0), "g": table}, [*walls, seen], truth=truth),
        ff.Problem("u_x = f", rod, {"f": ff.Unknown(1.0, 1.0, over="x")}, [walls[0], slope]),
        ff.Problem("u_t = k*u_xx", heat, {"k": 0.1}, [ff.Initial("u = sin(2*pi*x)")], units={"x": "m"}),
        ff.Problem(["u_t = v", "v_t = -u"], {"t": ff.Interval(0, 3)}, {}, [ff.Initial("u = 1"), ff.Initial("v = 0")]),
    ]  # fmt: skip
    plane = {"x": ff.Periodic(0, 1), "y": ff.Interval(0, 1)}
    edges = [ff.Boundary("u = 0", at={"y": 0}), ff.Boundary("u = 0", at={"y": 1})]
    on_cells: list[tuple[ff.Problem, dict[str, int]]] = [
        (ff.Problem("-u_xx - u_yy = f", plane, {"f": ff.Unknown(1.0, 5.0)}, edges), {"x": 24, "y": 24}),
        (ff.Problem("u_xx = u**2", rod, {}, [walls[0], ff.Boundary("u = 1", at={"x": 1}), slope]), {"x": 32}),
    ]
    found = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for problem in problems:
            found.append(ff.solve(problem).save(Path(folder) / "run.nc").read_bytes())
        for solution in by_the_map():
            found.append(solution.save(Path(folder) / "run.nc").read_bytes())
        for problem, cells in on_cells:
            found.append(ff.solve(problem, method="tree", cells=cells).save(Path(folder) / "run.nc").read_bytes())
    return found


def by_the_map() -> list[ff.Solution]:
    """A function with an unknown size, two segments of time with a function of time, a region."""
    x, rod = np.linspace(0.1, 0.9, 5), {"x": ff.Interval(0, 1)}
    walls = [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})]
    seen = ff.Observations(x=x, u=x * (1 - x) / 2, sigma=1e-2)
    source = ff.Problem("-u_xx = f", rod, {"f": ff.Unknown(1.0, over="x")}, [*walls, seen])
    heat = ff.Problem(
        "u_t = k*u_xx + q", {**rod, "t": ff.Interval(0, 0.2)},
        {"k": ff.Unknown(0.1, 0.05, positive=True), "q": ff.Unknown(0.0, 1.0, over="t", length=0.2)},
        [*walls, ff.Initial("u = x*(1 - x)", sigma=0.1), ff.Observations(x=x, t=0.1 + 0 * x, u=x * (1 - x), sigma=0.1)],
    )  # fmt: skip
    disk = ff.Problem(
        "-u_xx - u_yy = f", {"x": ff.Interval(-1, 1), "y": ff.Interval(-1, 1)}, {"f": ff.Unknown(3.0, 1.0)},
        [ff.Boundary("u = 0"), ff.Observations(x=[0.1], y=[0.2], u=[0.7], sigma=0.1)],
        region=ff.Region("x**2 + y**2 < 1"),
    )  # fmt: skip
    coarse = {"method": "forward", "tolerance": 1e-2}
    later = ff.Observations(x=[0.5], t=[0.25], u=[0.2], sigma=0.1)
    return [
        ff.solve(source, **coarse), ff.solve(heat, **coarse).update(later, until=0.3), ff.solve(disk, **coarse)
    ]  # fmt: skip


def resealed(content: bytes, change: Callable[[h5py.File], None]) -> bytes:
    """A file changed by somebody who knows how the checksum is made."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.nc"
        path.write_bytes(content)
        with h5py.File(path, "a") as file:
            change(file)
        share_heap(path)
        seal(path)
        return path.read_bytes()


def result(rng: Random) -> Mutant:
    content = results()[rng.integers(len(results()))]
    how = str(rng.choice([
        "flipped", "flipped and sealed", "cut", "text", "attribute", "array", "elsewhere", "huge", "more attributes",
        "shared texts", "numbers", "odd settings",
    ]))  # fmt: skip
    if how == "flipped":
        changed = flipped(content, rng)
    elif how == "cut":
        changed = content[: rng.integers(len(content))]
    elif how == "flipped and sealed":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.nc"
            path.write_bytes(flipped(content[:-LENGTH], rng, most=4))
            seal(path)
            changed = path.read_bytes()
    else:
        changes = {
            "text": _other_text, "attribute": _other_attribute, "array": _other_array, "elsewhere": _elsewhere,
            "huge": _huge, "more attributes": _more_attributes, "shared texts": _shared_texts, "numbers": _other_number,
            "odd settings": _odd_settings,
        }  # fmt: skip
        changed = resealed(content, lambda file: changes[how](file, rng))
    assert how == "flipped" or how == "cut" or MARK in changed
    return Mutant(how, {"run.nc": changed, "points.csv": b"x,y,t\n0.1,0.1,0.1\n0.9,0.9,0.1\n"})


def _other_text(file: h5py.File, rng: Random) -> None:
    """One to three entries of the JSON descriptions exchanged or left out."""
    form = "discretisation" if "discretisation" in file.attrs else "representation"
    keys = ["problem", form, "noise", "trace", "timings", "settings", "versions", "warnings", "advice"]
    for _ in range(rng.integers(1, 4)):
        key = str(rng.choice(keys))
        document = json.loads(file.attrs[key])
        file.attrs[key] = json.dumps(_exchanged(document, rng))


def _exchanged(document: Any, rng: Random) -> Any:
    if isinstance(document, int | float) and rng.random() < 0.6:
        return [document + 1, 0, -document, 10 * document, 0.5 * document, 1e6 * document][rng.integers(6)]
    if not isinstance(document, dict | list) or not document or rng.random() < 0.1:
        return scrap(rng)
    where = list(document) if isinstance(document, dict) else list(range(len(document)))
    at = where[rng.integers(len(where))]
    if rng.random() < 0.1:
        del document[at]
    else:
        document[at] = _exchanged(document[at], rng)
    return document


def _other_attribute(file: h5py.File, rng: Random) -> None:
    form = "discretisation" if "discretisation" in file.attrs else "representation"
    key = str(rng.choice(["format_version", "status", "status_help", "problem", form, "noise", "trace"]))
    value = scrap(rng)
    if rng.random() < 0.2:
        del file.attrs[key]
    elif isinstance(value, str | bool | int | float) and abs(value if not isinstance(value, str) else 0) < 2**62:
        file.attrs[key] = value
    else:
        file.attrs[key] = json.dumps(value) if rng.random() < 0.5 else np.arange(3)


def _other_array(file: h5py.File, rng: Random) -> None:
    """A variable with other numbers, another shape or another type, or none."""
    names = [f"posterior/{name}" for name in file["posterior"]] + [name for name in file if name != "posterior"]
    name = names[rng.integers(len(names))]
    values = file[name][()]
    how = rng.integers(6)
    if how == 0:
        del file[name]
        return
    if how == 1 and np.issubdtype(values.dtype, np.floating) and values.ndim:
        values = values.copy()
        values.ravel()[rng.integers(max(1, values.size))] = rng.choice([np.nan, np.inf, 1e308, -1.0, 1e9])
        file[name][...] = values
        return
    changed = [
        np.asarray(values).ravel()[: rng.integers(5)], np.asarray(values)[None], ["a", "b"], np.zeros(3, complex),
    ][rng.integers(4)]  # fmt: skip
    del file[name]
    file[name] = changed


def _more_attributes(file: h5py.File, rng: Random) -> None:
    """Long, many, of odd kinds, or texts that share one entry of the heap."""
    items = [file, *(item for item in file.values() if isinstance(item, h5py.Dataset))]
    item = items[rng.integers(len(items))]
    how = rng.integers(5)
    if how == 0:
        heap_attribute(item, int(rng.choice([3, 900, 3900])))
    elif how == 1:
        for number in range(int(rng.choice([10, 3000]))):
            item.attrs[f"a{number}"] = "b" * int(rng.choice([1, 60_000 if number < 300 else 1]))
    elif how == 2:
        kind = [("a", "f8"), ("b", "S3")] if rng.random() < 0.5 else "f8"
        item.attrs["large"] = np.zeros(int(rng.choice([8, 4000])), kind)
    elif how == 3:
        item.attrs["place"] = next(iter(file.values())).ref
    else:
        kinds = ["units", "_FillValue", "scale_factor", "dtype", "coordinates", "calendar", "CLASS", "NAME"]
        item.attrs[str(rng.choice(kinds))] = [np.nan, "x" * 1000, -1, np.zeros(3), h5py.Empty("f8")][rng.integers(5)]


def _shared_texts(file: h5py.File, rng: Random) -> None:
    """A variable of texts that share one entry of the heap: a megabyte that reads as gigabytes."""
    names = ["field", "coefficient", "x", "truth", "posterior/weight_mean", "unused", "posterior/unused"]
    name = str(rng.choice(names))
    if name in file:
        del file[name]
    count = int(rng.choice([2, 40, 3900]))
    file[name] = np.array(["a" * LONG] + ["b" * SHORT] * (count - 1), dtype=h5py.string_dtype())


def _other_number(file: h5py.File, rng: Random) -> None:
    """One number of the posterior or of the field beside it, by a little or by much."""
    known = [*(f"posterior/{name}" for name in file["posterior"]), "mean", "std", "coefficient_mean", "x", "t"]
    names = [name for name in known if name in file and file[name].dtype.kind == "f" and file[name].size]
    name = names[rng.integers(len(names))]
    values = np.atleast_1d(file[name][()])
    at = rng.integers(values.size)
    values.flat[at] = [values.flat[at] * 1.5, values.flat[at] + 1e-3, -values.flat[at], 0.0][rng.integers(4)]
    file[name][...] = values.reshape(file[name].shape)


def _odd_settings(file: h5py.File, rng: Random) -> None:
    key = str(rng.choice(["settings", "trace", "timings", "noise", "advice"]))
    document = json.loads(file.attrs[key])
    odd = [float("nan"), float("-inf"), 10**400, [[1, 2], [3]], {"a": float("nan")}, [float("nan")], 1e308, -1, 0, True]
    for entry in list(document)[: rng.integers(1, 4)] if isinstance(document, dict) else ():
        document[entry] = odd[rng.integers(len(odd))]
    file.attrs[key] = json.dumps(document or odd)


def _elsewhere(file: h5py.File, rng: Random) -> None:
    name = str(rng.choice(["posterior/weight_mean", "posterior/chain_mean", "posterior/box_roots", "truth", "mean"]))
    if name in file:
        del file[name]
    _point_elsewhere(file, name, rng)


def _point_elsewhere(file: h5py.File, name: str, rng: Random) -> None:
    secret = f"../{OUTSIDE}/secret.h5"
    how = rng.integers(4)
    if how == 0:
        file[name] = h5py.ExternalLink(secret, "/u")
    elif how == 1:
        file[name] = h5py.SoftLink("/" + next(iter(file)))
    elif how == 2:
        file.create_dataset(name, (3,), "f8", external=[(f"../{OUTSIDE}/secret.csv", 0, 24)])
    else:
        layout = h5py.VirtualLayout((3,), "f8")
        layout[:] = h5py.VirtualSource(secret, "u", (3,))
        file.create_virtual_dataset(name, layout)


def _many(file: h5py.File, name: str, rng: Random) -> None:
    """Thousands of chunks or of variables."""
    if rng.random() < 0.5:
        file.create_dataset(name, data=np.zeros(5000), chunks=(1,), compression="gzip")
        return
    file[name] = np.zeros(7)
    for number in range(2500):
        file[f"v{number}"] = 1.0


def _huge(file: h5py.File, rng: Random) -> None:
    """Gigabytes that are declared and not stored, in a variable that is needed or in one that is not."""
    names = [f"posterior/{name}" for name in file["posterior"]] + ["truth", "unused", "posterior/unused"]
    name = names[rng.integers(len(names))]
    shape = tuple(int(n) for n in rng.choice([3, 1 << 10, 1 << 16, 1 << 30], size=rng.integers(1, 4)))
    if name in file:
        shape = shape if rng.random() < 0.5 else tuple(1 << 12 for _ in file[name].shape) or (1 << 30,)
        del file[name]
    file.create_dataset(name, shape, "f8", chunks=tuple(min(n, 64) for n in shape))


# -- data files

COLUMNS = {"x": np.linspace(0, 1, 7), "t": np.full(7, 0.1), "u": np.sin(np.arange(7.0))}
POSED = """equation = "u_t = 0.1*u_xx"
domain = {{ x = [0, 1], t = [0, 1] }}
[[observations]]
file = "{name}"
sigma = 0.1
"""
CELLS = [
    "", "NA", "nan", "inf", "-1e400", "1_000", "\u0661\u0662", "0x10", "1e5", "x", '"', '"a,b"', "1,5", "\x00",
    "\x1b[2J",    "9" * 200_000, "-", "+-1", "1e", ".", "#", "0.5 0.6", "\ufeff", "\u00a0", "true",
]  # fmt: skip


STAMPS = ["2024-05-01 01:00", "2024-05-01T02:00:00", "1.5.2024 03:00", "2024/05/01 04:00:30.5"]
ODD_STAMPS = [
    "2024-05-01 01:00+02:00", "01/05/2024", "0001-01-01", "9999-12-31 23:59:59.999999", "2024-02-30", "25:00", "1e308",
    "2024-05-01 01:00:00." + "9" * 1000, "\u0662\u0660\u0662\u0664-05-01", "NA", "", "now", "%Y", "-1", "\x1b[2J",
]  # fmt: skip
FORMATS = [
    "%Y-%m-%d %H:%M",
    "%Y%Y",
    "%c%Y",
    "%Q",
    "%",
    "(a+)+$",
    "%d %b %Y",
    "%j",
    "%z",
    "% " * 500,
    "%Y-%m-%d %H:%M%z",
]


def _stamped(rng: Random) -> Mutant:
    """A logger's table with timestamps, its clock or some of its stamps changed."""
    clock: dict[str, Any] = {"column": "time", "unit": "h", "origin": "2024-05-01"}
    stamps = [STAMPS[i] for i in rng.integers(len(STAMPS), size=6)]
    if rng.random() < 0.6:
        stamps[rng.integers(6)] = ODD_STAMPS[rng.integers(len(ODD_STAMPS))]
    if rng.random() < 0.5:
        key = str(rng.choice(["column", "unit", "origin", "format"]))
        odd = {
            "unit": ["h", "ms", "week", "fortnight"],
            "column": ["time", "x"],
            "format": FORMATS,
            "origin": ODD_STAMPS,
        }
        clock[key] = odd[key][rng.integers(len(odd[key]))] if rng.random() < 0.9 else scrap(rng)
    rows = "".join(f"{stamp},{x / 10},1\n" for x, stamp in enumerate(stamps))
    posed = POSED.format(name="data.csv") + f"t = {_toml(clock)}\n"
    return Mutant("csv stamps", {"a.toml": posed.encode(), "data.csv": f"time,x,u\n{rows}".encode()})


def _wide(rng: Random) -> Mutant:
    """A column per sensor, with places that may be odd."""
    sensors: dict[str, Any] = {f"S{i}": {"x": i / 10} for i in range(rng.integers(1, 10))}
    if rng.random() < 0.02:  # as many as fit
        sensors = {f"S{i}": {"x": 0.5} for i in range(30_000)}
    for _ in range(rng.integers(3)):
        key = str(rng.choice(["S1", "S2", "x", "t", "column", "unit", "\x1b[31m"]))
        place = str(rng.choice(["x", "t", "u", "q", "sigma", "value"]))
        own = sensors[key] if isinstance(sensors.get(key), dict) else {}
        sensors[key] = {**own, place: scrap(rng)} if rng.random() < 0.7 else scrap(rng)
    posed = POSED.format(name="data.csv") + f"u = {_toml(sensors)}\n"
    header = ["t", *(f"S{i}" for i in range(max(10, len(sensors))))]
    rows = [",".join(header), *(",".join(["0.1"] * len(header)) for _ in range(3))]
    if rng.random() < 0.3:
        rows[rng.integers(4)] += ",1"
    return Mutant("csv sensors", {"a.toml": posed.encode(), "data.csv": "\n".join(rows).encode()})


def _toml(value: Any) -> str:
    """As TOML, where it has such values; scraps of JSON elsewhere."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(entry)}" for key, entry in value.items()) + " }"
    return json.dumps(value).replace("NaN", "nan").replace("Infinity", "inf")


def data(rng: Random) -> Mutant:
    ending = str(rng.choice(["csv", "csv", "h5", "nc", "stamps", "sensors"]))
    if ending in ("stamps", "sensors"):
        return _stamped(rng) if ending == "stamps" else _wide(rng)
    how, content = _csv(rng) if ending == "csv" else _hdf5(ending, rng)
    name = f"data.{ending}"
    links: tuple[tuple[str, str], ...] = ()
    if rng.random() < 0.05:
        how, links, name = "link", ((f"link.{ending}", f"../{OUTSIDE}/secret.{ending}"),), f"link.{ending}"
    return Mutant(f"{ending} {how}", {"a.toml": POSED.format(name=name).encode(), f"data.{ending}": content}, links)


def _csv(rng: Random) -> tuple[str, bytes]:
    rows = [",".join(COLUMNS), *(",".join(map(repr, map(float, row))) for row in zip(*COLUMNS.values(), strict=True))]
    how = str(rng.choice(["flipped", "cells", "lines", "separator", "noise"]))
    if how == "flipped":
        return how, flipped("\n".join(rows).encode(), rng, most=6)
    if how == "noise":
        return how, rng.bytes(int(rng.integers(2000)))
    if how == "separator":
        return how, "\n".join(rows).replace(",", str(rng.choice([";", "\t", " ", "|", ",,"]))).encode()
    for _ in range(rng.integers(1, 5)):
        at = int(rng.integers(len(rows)))
        if how == "lines":
            rows.insert(at, str(rng.choice(["", "# a note", "   ", "x,t,u", '"open', "1,2", "1,2,3,4", "\x0c", "\r"])))
        else:
            cells = rows[at].split(",")
            cells[rng.integers(len(cells))] = CELLS[rng.integers(len(CELLS))]
            rows[at] = ",".join(cells)
    return how, "\n".join(rows).encode()


def _hdf5(ending: str, rng: Random) -> tuple[str, bytes]:
    how = str(rng.choice(["flipped", "cut", "elsewhere", "huge", "type", "many", "more attributes", "shared texts"]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a.{ending}"
        if ending == "nc":
            xr.Dataset({n: ("point", v) for n, v in COLUMNS.items()}).to_netcdf(path, engine="h5netcdf")
        else:
            with h5py.File(path, "w") as file:
                for name, values in COLUMNS.items():
                    file.create_dataset(name, data=values, compression="gzip" if rng.random() < 0.5 else None)
        if how == "flipped":
            return how, flipped(path.read_bytes(), rng)
        if how == "cut":
            return how, path.read_bytes()[: rng.integers(path.stat().st_size)]
        with h5py.File(path, "a") as file:
            name = str(rng.choice([*COLUMNS, "unused"]))
            if name in file:
                del file[name]
            if how == "elsewhere":
                _point_elsewhere(file, name, rng)
            elif how == "many":
                _many(file, name, rng)
            elif how == "more attributes":
                _more_attributes(file, rng)
            elif how == "shared texts":
                file[name] = np.array(["a" * LONG] + ["b" * SHORT] * int(rng.choice([6, 3900])), h5py.string_dtype())
            elif how == "huge":
                shape = tuple(int(n) for n in rng.choice([7, 1 << 16, 1 << 35], size=rng.integers(1, 4)))
                file.create_dataset(name, shape, "f8", chunks=tuple(min(n, 64) for n in shape))
            else:
                kinds = [["a", "b"], np.zeros(7, complex), h5py.Empty("f8"), np.zeros(7, [("a", "f8")])]
                file[name] = [*kinds, np.zeros((7, 2))][rng.integers(5)]
        share_heap(path)
        return how, path.read_bytes()


# -- problem files

ATOMS = ["u", "u_x", "u_xx", "u_t", "v", "nu", "x", "t", "pi", "0", "1", "2", "0.5", "1e-3", "1e99", "7.0"]
CALLS = ["sin", "cos", "tan", "exp", "log", "sqrt", "sinh", "cosh", "tanh", "atan", "erf", "abs"]
TEXTS = [
    "sin(u) + cos(2*u)", "tanh(u) + 0.1*u", "u**2", "log(u)", "u_x", "exp(exp(exp(exp(u))))", "((u**20)**20)**20",
    "*".join(f"(1 + u + {k}*u_x)" for k in range(13)), "u" + " + u" * 300, "erf(u)*abs(u)", "1/u", "u**-20",
    "(((((u + 1)**2 + 1)**2 + 1)**2 + 1)**2 + 1)**2", "__import__('os')", "sqrt(u)*" * 60 + "u", "cosh(1e99*u)",
    "u = " + "sin(x)*" * 100 + "1", "u = tan(x)**19*exp(sin(x)**19)", "sin(sin(sin(sin(sin(sin(sin(u)))))))",
]  # fmt: skip
PATHS = ["~/secret.csv", "~root/secret.csv", "$HOME/secret.csv", f"../{OUTSIDE}/secret.csv", "/etc/passwd", "a.toml"]


def expression(rng: Random, depth: int = 4) -> str:
    if depth == 0 or rng.random() < 0.2:
        return ATOMS[rng.integers(len(ATOMS))]
    if rng.random() < 0.3:
        return f"{CALLS[rng.integers(len(CALLS))]}({expression(rng, depth - 1)})"
    sign = str(rng.choice(["+", "-", "*", "*", "/"]))
    if rng.random() < 0.15:
        return f"({expression(rng, depth - 1)})**{rng.integers(-3, 21)}"
    return f"({expression(rng, depth - 1)} {sign} {expression(rng, depth - 1)})"


def text(rng: Random) -> str:
    return TEXTS[rng.integers(len(TEXTS))] if rng.random() < 0.3 else expression(rng)


def problem(rng: Random) -> Mutant:
    how = str(rng.choice([
        "conditions", "of", "many", "lengths", "sizes", "paths", "nesting", "units of the domain", "method", "table",
        "names", "narrow",
    ]))  # fmt: skip
    lines = _with_method(rng) if how == "method" else _posed(rng, how)
    if rng.random() < 0.2:  # and some damage
        at = int(rng.integers(len(lines)))
        lines[at] = lines[at][: rng.integers(len(lines[at]) + 1)]
    return Mutant(how, {"a.toml": "\n".join(lines).encode()})


def _posed(rng: Random, how: str) -> list[str]:
    right = expression(rng, 3) if rng.random() < 0.5 else "nu*u_xx - u"
    ends = "[0, 1]"
    if how == "units of the domain":
        wide, narrow = ["[0, 1e308]", "[-1e308, 1e308]", "[0, 1e29]"], ["[0, 1e-320]", "[1e9, 1e9]", "[0, 1e-29]"]
        ends = str(rng.choice(wide + narrow))
    many = int(rng.choice([60, 300, 3000])) if how == "many" else 1
    if how == "many" and rng.random() < 0.5:
        lines = ["equation = [", *(f'"a{k}_t = a{k}_xx - a{(k + 1) % many}",' for k in range(many)), "]"]
    else:
        lines = [f'equation = "u_t = {right}"']
    lines += ["[domain]", f"x = {ends if rng.random() < 0.5 else '{ periodic = ' + ends + ' }'}", "t = [0, 1]"]
    lines += ["[parameters]", "nu = 0.1"]
    if how == "lengths":
        over = str(rng.choice(['"x"', '["x", "t"]', '["t", "x", "y"]']))
        lines[-1] = f"nu = {{ mean = 1, std = 1, over = {over}, length = {rng.choice([1e-300, 1e-9, 0.01, 1e300])} }}"
    if how == "table":
        count, odd = int(rng.choice([2, 30, 3000, 20_000])), ["1e308", "-1", "nan", "1e-320", "0"]
        values = ["1.5"] * count
        values[rng.integers(count)] = odd[rng.integers(len(odd))] if rng.random() < 0.5 else "2"
        lines[-1] = f"nu = {{ x = {np.linspace(0, 1, count).tolist()}, value = [{', '.join(values)}] }}"
    for _ in range(many if how == "many" else rng.integers(0, 4)):
        said = f"u = {expression(rng, 2)}" if rng.random() < 0.5 else text(rng)
        face = "" if rng.random() < 0.5 else "at = { x = 0 }"
        lines += ["[[boundary]]" if face else "[[initial]]", f'text = "{said}"', *([face] if face else [])]
        lines += [f"sigma = {rng.choice([1e-300, 1e-3, 1e9])}"] if rng.random() < 0.5 else []
    if how in ("of", "paths") or (how != "many" and rng.random() < 0.5):
        lines += ["[[observations]]", "sigma = 0.1"]
        file = f'file = "{PATHS[rng.integers(len(PATHS))]}"'
        lines += [file] if how == "paths" else ["x = [0.1, 0.5, 0.9]", "t = 0.5", f'of = "{text(rng)}"']
        values = rng.choice(["[0.1, 0.2, 0.3]", "[1e308, 0, 1]", "[-1, -2, 0.5]"])
        lines += [] if how == "paths" else [f"value = {values}"]
    if how == "names":
        name = str(rng.choice(["a" * 60_000, "$(touch pwned)", "\\u001b[31m", "sigma" * 9000, "`id`", "\\u202e"]))
        key = str(rng.choice(["units", "parameters", "output", "method", "initial"]))
        lines += ["[[initial]]" if key == "initial" else f"[{key}x]" if key == "parameters" else f"[{key}]"]
        lines += [f'"{name}" = "{name}"']
    if how == "narrow":
        width = rng.choice([1e-2, 1e-4, 1e-9, 1e-300])
        shapes = ["point({a} - 0.7, {w})", "exp(-(({a} - 0.3)/{w})**2)", "where({a} > 0.3 and {a} < 0.3 + {w}, 1, 0)"]
        formula = str(rng.choice(shapes)).format(a=str(rng.choice(["x", "t"])), w=width)
        lines += ["[[initial]]", f'text = "u = {formula.replace("t", "x") if "point" not in formula else "0"}"']
        lines[0] = f'equation = "u_t = nu*u_xx + {formula}"'
    if how == "sizes":
        lines += ["[method]", f"modes = {{ x = {rng.choice([1, 100, 2000, 10**9])} }}"]
    if how == "paths" and rng.random() < 0.5:
        lines += ["[output]", f'solution = "{rng.choice(["~/planted.nc", "../outside/planted.nc", "a.toml"])}"']
    if how == "nesting":
        trees = ["a" + ".a" * 300 + " = 1", "a.b = 1\n" * 500, "[[" * 600, "x = " + "[" * 400, "[a]\n" * 300, '"' * 999]
        lines.append(trees[rng.integers(len(trees))])
    return lines


def _with_method(rng: Random) -> list[str]:
    """A sound problem with any method and some options, its own or another's, of any size."""
    lines = ['equation = "u_t = 0.1*u_xx - u*k"', "[domain]", "x = [0, 1]", "t = [0, 1]", "[parameters]", "k = 1"]
    lines += ["[[initial]]", 'text = "u = sin(pi*x)"']
    lines += [line for x in (0, 1) for line in ("[[boundary]]", 'text = "u = 0"', f"at = {{ x = {x} }}")]
    if rng.random() < 0.3:
        lines[5] = "k = { mean = 1, std = 1 }"
        lines += ["[[observations]]", "x = [0.2, 0.5]", "t = 0.5", f'of = "{text(rng)}"', "value = [0.3, 0.5]"]
    names = ["tree", "tree", "tree", "chain", "chain", "joint", "mean-field", "hmc", "laplace", "forest"]
    lines += ["[method]", f'name = "{names[rng.integers(len(names))]}"']
    counts = ["{ x = 1 }", "{ x = 8, t = 8 }", "{ x = 100000, t = 100000 }", "{ y = 8 }", "{}", "{ x = 17 }", "3"]
    sizes = ["1e-300", "1e-5", "1", "1e300", "inf", "nan", "-1", "0", "2", "3", "4", "5", "200", "10000000000000000000"]
    edges = ["[0, 0.5, 1]", "[1, 0]", "[0, 1e-320]", "[nan]", str(np.linspace(0, 1, 5000).tolist()), "[0, 1]"]
    choices = {"cells": counts, "modes": counts, "windows": edges} | dict.fromkeys(["degree", "tolerance"], sizes)
    for key in rng.permutation(sorted(choices))[: rng.integers(4)]:
        lines.append(f"{key} = {choices[key][rng.integers(len(choices[key]))]}")
    return lines


KINDS: dict[str, Callable[[Random], Mutant]] = {"data": data, "problem": problem, "result": result}
COMMANDS = {  # what is run on each, FILE standing for its name
    "data": [["check", "FILE"]],
    "problem": [["check", "FILE"]],
    "result": [
        ["show", "FILE"], ["report", "FILE", "--out", "page.html"], ["predict", "FILE", "--at", "points.csv"],
        ["next", "FILE", "--sigma", "0.1"],
    ],
}
