"""Bad input and what the command line says about it. `python tests/error_cases.py` writes docs/errors.md from it."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

HEAT = """\
equation = "u_t = nu*u_xx"

[domain]
x = { periodic = [0, 1] }
t = [0, 1]

[parameters]
nu = 0.02

[[initial]]
text = "u = cos(2*pi*x)"
sigma = 1e-3

[[observations]]
x = [0.1, 0.6]
t = 0.5
u = [0.5, -0.5]
sigma = 0.02
"""
ROD = HEAT.replace("{ periodic = [0, 1] }", "[0, 1]")
STATIONARY = 'equation = "u_xx = 1"\n\n[domain]\nx = [0, 1]\n'
BEAM = STATIONARY.replace("u_xx", "u_xxxx")
NO_START = HEAT.partition("[[initial]]")[0]
WAVES = HEAT.replace("u_t = nu*u_xx", "u_tt = nu*u_xx")
PLANE = """\
equation = "u_t = u_xx + u_yy"

[domain]
x = { periodic = [0, 1] }
y = { periodic = [0, 1] }
t = [0, 1]

[[initial]]
text = "u = 1"

"""
DISK = """\
equation = "u_xx + u_yy = -1"

[domain]
x = [-1, 1]
y = [-1, 1]

[region]
inside = "x**2 + y**2 < 1"

[[boundary]]
text = "u = 0"
"""
L_SHAPE = DISK.replace('inside = "x**2 + y**2 < 1"', "polygon = [[-1, -1], [1, -1], [1, 0], [0, 0], [0, 1], [-1, 1]]")
OUTLINE = DISK.replace('inside = "x**2 + y**2 < 1"', 'file = "outline.geojson"')
RING = '{"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}'
WALL = 'text = "u = 0"\n'
CSV = "x,t,u\n0.1,0.5,0.5\n0.6,0.5,-0.5\n"
DATA = HEAT.partition("[[observations]]")[0] + '[[observations]]\nfile = "data.csv"\n'
CLOCK = 't = { column = "time", unit = "h", origin = "2024-05-01" }'
LOGGER = DATA.replace("t = [0, 1]", "t = [0, 24]") + f"{CLOCK}\nsigma = 0.1\n"
LOG = "time,x,u\n2024-05-01 01:00,0.1,0.5\n2024-05-01 02:00,0.6,-0.5\n"
WIDE = LOGGER + "u = { T1 = { x = 0.1 }, T2 = { x = 0.6 } }\n"
WIDE_LOG = "time,T1,T2\n2024-05-01 01:00,0.5,-0.5\n2024-05-01 02:00,0.4,-0.4\n"


@dataclass(frozen=True)
class Case:
    about: str
    arguments: tuple[str, ...]
    files: dict[str, str | bytes] = field(default_factory=dict)


def line(about: str, *arguments: str, **files: str | bytes) -> Case:
    """A bad command line; files by name, a dot written as two underscores."""
    return Case(about, arguments, {name.replace("__", "."): text for name, text in files.items()})


def file(about: str, text: str | bytes, *arguments: str, **files: str | bytes) -> Case:
    """A bad problem file."""
    case = line(about, *(arguments or ("check", "heat.toml")), **files)
    return Case(case.about, case.arguments, {"heat.toml": text, **case.files})


def change(about: str, old: str, new: str, base: str = HEAT, **files: str | bytes) -> Case:
    """A problem file that was right before one change."""
    assert base.count(old) >= 1, old
    return file(about, base.replace(old, new, 1), **files)


CASES = [
    line("a misspelt command", "solv"),
    line("no problem", "solve"),
    line("a misspelt option", "solve", "heat", "--sett", "nu=1"),
    line("two problems", "solve", "heat", "wave"),
    line("a misspelt problem", "solve", "heet"),
    line("a misspelt option of a problem", "solve", "heat", "--set", "nuu=1"),
    line("--set without a value", "solve", "heat", "--set", "nu"),
    line("--set with text for a number", "solve", "heat", "--set", "nu=fast"),
    line("--set with infinity", "solve", "heat", "--set", "nu=inf"),
    line("too few labels", "solve", "heat", "--set", "labels=-5"),
    line("negative noise", "solve", "heat", "--set", "noise=-1"),
    line("text for a row", "solve", "heat", "--set", "row=x"),
    line("a misspelt method", "solve", "heat", "--method", "jiont"),
    line("a misspelt model", "solve", "heat", "--model", "papper"),
    line("chain without time", "solve", "poisson", "--method", "chain"),
    line("chain with the paper's model", "solve", "advection", "--method", "chain", "--model", "paper"),
    line("an output folder that is not there", "solve", "heat", "--out", "no/such/run.nc"),
    line("a folder as output", "solve", "heat", "--out", "."),
    line("an output below a file", "solve", "heat", "--out", "a.txt/run.nc", a__txt="text"),
    line("an output that is no result file", "solve", "heat", "--out", "run.csv"),
    line("a problem file as output", "solve", "heat.toml", "--out", "heat.toml", heat__toml=HEAT),
    line("an unknown kind of picture", "solve", "heat", "--plot", "run.xyz"),
    line("a problem that is none", "solve", "xyz"),
    line("a problem file without its ending", "solve", "mine", mine__toml=HEAT),
    line("a file to list", "list", "heat.toml", heat__toml=HEAT),
    line("an unknown problem to list", "list", "hoat"),
    line("a missing problem file", "solve", "missing.toml"),
    line("a folder as problem file", "solve", "./"),
    line("an unknown template", "new", "hoat"),
    line("no template", "new"),
    line("a template that is there already", "new", "heat", heat__toml=HEAT),
    line("nothing to check", "check"),
    line("a file to check without its ending", "check", "heat", heat__toml=HEAT),
    line("nothing to show", "show"),
    line("a problem file to show", "show", "heat.toml", heat__toml=HEAT),
    line("a problem file to draw", "plot", "heat.toml", heat__toml=HEAT),
    line("a problem file to report", "report", "heat.toml", heat__toml=HEAT),
    line("a missing result", "show", "missing.nc"),
    line("a result that is none", "show", "broken.nc", broken__nc="not NetCDF"),
    line("an empty result", "show", "empty.nc", empty__nc=""),
    line("one problem to rank", "rank", "heat"),
    line("problems of one name to rank", "rank", "heat", "heat"),
    line(
        "other measurements to rank", "rank", "a.toml", "b.toml", a__toml=HEAT, b__toml=HEAT.replace("[0.1,", "[0.2,")
    ),
    line("odds without a number", "rank", "a.toml", "b.toml", "--odds", "a", a__toml=HEAT, b__toml=HEAT),
    line("odds of some problems only", "rank", "a.toml", "b.toml", "--odds", "a=2", a__toml=HEAT, b__toml=HEAT),
    line("a method without evidence", "rank", "a.toml", "b.toml", "--method", "vi", a__toml=HEAT, b__toml=HEAT),
    line(
        "several methods to rank", "rank", "a.toml", "b.toml", a__toml=HEAT, b__toml=HEAT + '[method]\nname = "joint"\n'
    ),
    line("a problem file for further measurements", "next", "heat.toml", heat__toml=HEAT),
    line("a target of further measurements without a place", "next", "run.nc", "--within", "x"),
    line("further measurements on a grid and from a file", "next", "run.nc", "--grid", "x=0:1:5", "--at", "places.csv"),
    line("a misspelt method to compare", "compare", "heat", "--methods", "joint,lapalce"),
    line("text for a whole number", "calibrate", "--draws", "many"),
    line("an unknown row of the registry", "calibrate", "ring-strat"),
    line("no draws", "calibrate", "--draws", "0"),
    line("all rows and some rows", "calibrate", "ring-start", "--all"),
    line("a missing PDEBench file", "data", "audit", "missing.hdf5"),
    line("a PDEBench file that is none", "data", "audit", "a.hdf5", a__hdf5="text"),
    line("rows that are no numbers", "data", "audit", "a.hdf5", "--rows", "a,b", a__hdf5="text"),
    line("data for an unknown equation", "data", "generate", "hoat", "--out", "a.hdf5"),
    line("data under another name", "data", "generate", "advection", "--out", "a.toml", "--set", "b=1"),
    line("no rows of data", "data", "generate", "advection", "--out", "a.hdf5", "--rows", "0", "--set", "b=1"),
    line("text for a coefficient of data", "data", "generate", "advection", "--out", "a.hdf5", "--set", "b=fast"),
    line("an unknown published file", "data", "fetch", "nothing.hdf5"),
    line("an unknown table of the paper", "reproduce", "tabel1"),
    line("no rows of the paper", "reproduce", "table1", "--rows", "0"),
    line("speeds that are no numbers", "reproduce", "table1", "--speeds", "fast"),
    line("an unknown method of the paper", "reproduce", "table1", "--methods", "magic"),
    file("no TOML", "equation = u_t"),
    file("a key twice", HEAT + "sigma = 1\n"),
    file("nested too deeply", "name = " + "[" * 5000),
    file("no UTF-8", b"name = '\xff\xfe'"),
    file("an empty file", ""),
    change("a misspelt key", "equation", "equatoin"),
    change("a misspelt key in a block", "sigma = 1e-3", "sgima = 1e-3"),
    change("a misspelt block", "[[initial]]", "[[initail]]"),
    change("single brackets around a block", "[[initial]]", "[initial]"),
    file("no domain", 'equation = "u_t = 1"\n'),
    change("a number for text", '"u_t = nu*u_xx"', "3"),
    change("units of what is not there", "[[initial]]", '[units]\ny = "m"\n\n[[initial]]'),
    change("units that are no text", "[[initial]]", "[units]\nx = 3\n\n[[initial]]"),
    change("a date for a number", "nu = 0.02", "nu = 2024-01-01"),
    change("a truth value for a number", "nu = 0.02", "nu = true"),
    change("infinity", "nu = 0.02", "nu = inf"),
    change("a number beyond all floats", "nu = 0.02", "nu = 1" + "0" * 400),
    change("a control character in the name", "equation", 'name = "a\\u0000b"\nequation'),
    change("Python in an equation", "nu*u_xx", "__import__('os').remove('a')"),
    change("an attribute", "nu*u_xx", "u_xx.real"),
    change("a comparison", "nu*u_xx", "(u > 0)*u_xx"),
    change("an unknown function", "nu*u_xx", "sn(u)"),
    change("an unknown symbol", "nu*u_xx", "mu*u_xx"),
    change("a Greek letter", "nu*u_xx", "\u03bd*u_xx"),
    change("derivatives as fractions", "u_t = nu*u_xx", "du/dt = nu*d2u/dx2"),
    change("a caret", "nu*u_xx", "nu*u_x^2"),
    change("two equals signs", "u_t = nu", "u_t = 0 = nu"),
    change("an empty equation", "u_t = nu*u_xx", ""),
    change("an equation of nothing", "u_t = nu*u_xx", "nu = 1"),
    change("a tower of powers", "nu*u_xx", "9**9**9**9*u"),
    change("a division by zero", "nu*u_xx", "nu*u_xx/0"),
    change("a derivative along no axis", "nu*u_xx", "nu*u_yy"),
    change("a derivative of high order", "nu*u_xx", "nu*u_xxxxxxxxx"),
    change("more fields than equations", "nu*u_xx", "nu*v_xx"),
    change("ends in the wrong order", "t = [0, 1]", "t = [1, 0]"),
    change("three ends", "t = [0, 1]", "t = [0, 1, 2]"),
    change("an axis with a long name", "x = { periodic", "xx = { periodic"),
    change("an unknown kind of axis", "periodic", "perodic"),
    change("text for a coefficient", "nu = 0.02", 'nu = "0.02"'),
    change("an unknown with a negative std", "nu = 0.02", "nu = { mean = 1, std = -1 }"),
    change("an unknown that is known", "nu = 0.02", "nu = { mean = 1, std = 0 }"),
    change("an unknown without std", "nu = 0.02", "nu = { mean = 1 }"),
    change("a positive unknown with a negative mean", "nu = 0.02", "nu = { mean = -1, std = 1, positive = true }"),
    change("an unknown over no axis", "nu = 0.02", 'nu = { mean = 1, std = 1, over = "z" }'),
    change("a coefficient called as an axis", "nu = 0.02", "nu = 0.02\nx = 3"),
    change("a table that is too short", "nu = 0.02", "nu = { t = [0, 0.5], value = [1, 2] }"),
    change("a table in disorder", "nu = 0.02", "nu = { x = [0.5, 0.1], value = [1, 2] }"),
    change("a table of other lengths", "nu = 0.02", "nu = { x = [0, 1], value = [1, 2, 3] }"),
    change("a table with a column but no file", "nu = 0.02", 'nu = { x = "a", value = "b" }'),
    change("a table file without its column", "nu = 0.02", 'nu = { file = "a.csv", x = "p", value = "v" }', a__csv=CSV),
    file("a start without time", STATIONARY + '[[initial]]\ntext = "u = 0"\n'),
    file("a face outside", STATIONARY + '[[boundary]]\ntext = "u = 0"\nat = { x = 2 }\n'),
    file("a face of no axis", STATIONARY + '[[boundary]]\ntext = "u = 0"\nat = { y = 0 }\n'),
    file("a face nowhere", STATIONARY + '[[boundary]]\ntext = "u = 0"\n'),
    file("a pair of faces with '='", STATIONARY + '[[boundary]]\ntext = "u = 0"\nat = { x = [0, 1] }\n'),
    change("a condition on nothing", "u = cos(2*pi*x)", "nu = 1"),
    change("conditions that contradict", "sigma = 1e-3", '[[initial]]\ntext = "u = 3"'),
    change("lengths that differ", "x = [0.1, 0.6]", "x = [0.1, 0.6, 0.7]"),
    change("a measurement outside", "t = 0.5", "t = 1.5"),
    change("a measurement without a place", "t = 0.5\n", ""),
    change("a measurement of nothing", "u = [0.5, -0.5]\n", ""),
    change("a sigma of zero", "sigma = 0.02", "sigma = 0"),
    change("a length of zero", "sigma = 1e-3", "sigma = 1e-3\nlength = 0"),
    change("a length along an axis that the start has not", "sigma = 1e-3", "sigma = 1e-3\nlength = { t = 0.1 }"),
    change("a length without a sigma", "sigma = 1e-3", "length = 0.1"),
    change("sigmas of another length", "sigma = 0.02", "sigma = [0.1, 0.2, 0.3]"),
    change("a misspelt field", "u = [0.5, -0.5]", "v = [0.5, -0.5]"),
    change("text for measurements", "u = [0.5, -0.5]", 'u = "height"'),
    change("not a number among measurements", "u = [0.5, -0.5]", "u = [0.5, nan]"),
    change("no measurements", "u = [0.5, -0.5]", "u = []"),
    change("a quantity without its values", "t = 0.5", 't = 0.5\nof = "u_x"'),
    change("a misspelt noise", "sigma = 0.02", 'sigma = 0.02\nnoise = "student"'),
    change("log-normal noise of negative values", "sigma = 0.02", 'sigma = 0.02\nnoise = "log-normal"'),
    change("no degrees of freedom", "sigma = 0.02", "sigma = 0.02\nnoise = { student-t = 0 }"),
    change("an average along no axis", "sigma = 0.02", "sigma = 0.02\naverage = { z = 0.1 }"),
    change("a negative average", "sigma = 0.02", "sigma = 0.02\naverage = { x = -0.1 }"),
    file("a missing data file", DATA),
    change("a data file outside", "data.csv", "../data.csv", DATA),
    change("an absolute data file", "data.csv", "/etc/passwd", DATA),
    change("a NUL in a path", "data.csv", "a\\u0000.csv", DATA),
    change("a data file of another kind", "data.csv", "data.xlsx", DATA, data__xlsx="text"),
    file("a data file without its column", DATA, data__csv=CSV.replace("u", "height", 1)),
    file("a data file with text", DATA, data__csv=CSV.replace("0.6", "far")),
    file("a data file with a gap", DATA, data__csv=CSV.replace("0.6,", "")),
    file("a data file with a decimal comma", DATA, data__csv=CSV.replace(",", ";").replace(".", ",")),
    file("a data file of decimal commas only", DATA, data__csv=CSV.replace(".", ",")),
    file("a data file without any value of a column", DATA, data__csv="x,t,u\n0.1,0.5,\n0.6,0.5,NA\n"),
    file("an empty data file", DATA, data__csv=""),
    change("a NetCDF file that is none", "data.csv", "data.nc", DATA, data__nc="text"),
    change("an HDF5 file that is none", "data.csv", "data.h5", DATA, data__h5="text"),
    # a working day
    file("timestamps without their unit", DATA + 't = "time"\n', data__csv=LOG),
    change("an unknown unit of time", 'unit = "h"', 'unit = "month"', LOGGER, data__csv=LOG),
    change("an origin that is no date", '"2024-05-01"', '"May 1st"', LOGGER, data__csv=LOG),
    change("no origin", ', origin = "2024-05-01"', "", LOGGER, data__csv=LOG),
    change("an origin after the data", "2024-05-01", "2024-05-02", LOGGER, data__csv=LOG),
    change("seconds where hours were meant", 'unit = "h"', 'unit = "s"', LOGGER, data__csv=LOG),
    file("stamps in a time zone, an origin without", LOGGER, data__csv=LOG.replace("01:00", "01:00+02:00")),
    change("an origin in a time zone, stamps without", "2024-05-01", "2024-05-01T00:00Z", LOGGER, data__csv=LOG),
    file("stamps that could be of May or January", LOGGER, data__csv=LOG.replace("2024-05-01", "01/05/2024")),
    file("a day that is not in the calendar", LOGGER, data__csv=LOG.replace("2024-05-01 02", "2024-04-31 02")),
    change("numbers where stamps were announced", "time", "x", LOGGER, data__csv=LOG),
    file("units of time that differ", LOGGER + '[units]\nt = "s"\n', data__csv=LOG),
    change("exchanged columns", "t = [0, 1]", "t = [0, 24]", DATA, data__csv="t,x,u\n0.1,7,0.5\n0.6,9,-0.5\n"),
    file("sigma in per cent", DATA + 'sigma = "2 %"\n', data__csv=CSV),
    file("a negative sigma among many", DATA + 'sigma = "s"\n', data__csv="x,t,u,s\n0.1,0.5,0.5,-1\n"),
    file("a file with a gap in every row", LOGGER, data__csv="time,x,u\n2024-05-01 01:00,0.1,\n,0.6,-0.5\n"),
    file("lines above the header", DATA, data__csv="Logger 17\nx,t,u\n0.1,0.5,0.5\n"),
    file("no header", DATA, data__csv="0.1,0.5,0.5\n0.6,0.5,-0.5\n"),
    file("two columns of one name", DATA, data__csv="x,t,u,u\n0.1,0.5,0.5,0.4\n"),
    change("a sensor outside", "x = 0.6", "x = 60", WIDE, data__csv=WIDE_LOG),
    change("a sensor without a place", "T2 = { x = 0.6 }", "T2 = {}", WIDE, data__csv=WIDE_LOG),
    file("columns without places", LOGGER + 'u = ["T1", "T2"]\n', data__csv=WIDE_LOG),
    change("timestamps without a unit", ' unit = "h",', "", LOGGER, data__csv=LOG),
    file("days as Excel counts them", LOGGER, data__csv="time,x,u\n45413.04167,0.1,0.5\n45413.08333,0.6,-0.5\n"),
    change("a sensor that is not in the file", "T2 =", "T3 =", WIDE, data__csv=WIDE_LOG),
    change("a place of the sensors twice", "sigma = 0.1", 'sigma = 0.1\nx = "T1"', WIDE, data__csv=WIDE_LOG),
    file("a wall inside", ROD + '[[boundary]]\ntext = "u = 0"\nat = { x = 0.01 }\n'),
    file("a wall that jumps", ROD + '[[boundary]]\ntext = "u = heaviside(t - 0.5)"\nat = { x = 0 }\n'),
    change("heat that runs backward", "nu*u_xx", "-nu*u_xx", HEAT.replace("t = [0, 1]", "t = [0, 90]")),
    change("a step of what is unknown", "nu*u_xx", "nu*u_xx*heaviside(u)"),
    change("lambda", "nu*u_xx", "lambda*u_xx"),
    change("primes for derivatives", "u_t = nu*u_xx", "u' = nu*u''"),
    change("factors without a sign", "nu*u_xx", "2u_xx"),
    change("a capital for an axis", "x = { periodic", "X = { periodic"),
    line("a missing result to predict from", "predict", "run.nc"),
    file("a misspelt method in a file", HEAT + '[method]\nname = "jiont"\n'),
    file("an option of another method", HEAT + '[method]\nname = "chain"\nepochs = 3\n'),
    file("an unknown option of a method", HEAT + "[method]\nspeed = 3\n"),
    file("text for an option", HEAT + '[method]\niterations = "many"\n'),
    file("no modes", HEAT + "[method]\nmodes = { x = 0 }\n"),
    file("modes along no axis", HEAT + "[method]\nmodes = { z = 4 }\n"),
    file("fewer cells than splines need", STATIONARY + '[method]\nname = "tree"\ncells = { x = 3 }\n'),
    file("cells along no axis", STATIONARY + '[method]\nname = "tree"\ncells = { z = 30 }\n'),
    file("too few cells in windows", HEAT + '[method]\nname = "chain"\ncells = { x = 6 }\n'),
    file("cells and modes", HEAT + '[method]\nname = "chain"\ncells = { x = 48 }\nmodes = { x = 4 }\n'),
    file("cells in windows without a start", NO_START + '[method]\nname = "chain"\ncells = { x = 48 }\n'),
    file("cells along one axis of a plane", PLANE + '[method]\nname = "chain"\ncells = { x = 24 }\n'),
    file("too many cells of a plane", PLANE + '[method]\nname = "chain"\ncells = { x = 24, y = 500 }\n'),
    file("cells in windows of waves", WAVES + '[method]\nname = "chain"\ncells = { x = 48 }\n'),
    file("splines of an even degree", STATIONARY + '[method]\nname = "tree"\ndegree = 4\n'),
    file("derivatives that splines do not have", BEAM + '[method]\nname = "tree"\ndegree = 3\n'),
    file("a model beside boxes", STATIONARY + '[method]\nname = "tree"\n[model]\nmodes = { x = 4 }\n'),
    file("a model beside windows", HEAT + '[method]\nname = "chain"\n[model]\nmodes = { x = 4 }\n'),
    file("the paper's model for another problem", STATIONARY + '[model]\nname = "paper"\n'),
    file("an output outside", HEAT + '[output]\nsolution = "../run.nc"\n', "solve", "heat.toml"),
    change("a home folder in a path", "data.csv", "~/data.csv", DATA),
    file("an output over the problem", HEAT + '[output]\nsolution = "heat.toml"\n'),
    file("an output nowhere", HEAT + '[output]\nsolution = "no/run.nc"\n', "solve", "heat.toml"),
    change("a region without a comparison", "x**2 + y**2 < 1", "x**2 + y**2", DISK),
    change("a region by equality", "x**2 + y**2 < 1", "x**2 + y**2 == 1", DISK),
    change("Python in a region", "x**2 + y**2 < 1", "__import__('os').getpid() < 1", DISK),
    change("an unknown name in a region", "x**2 + y**2 < 1", "x**2 + z**2 < 1", DISK),
    change("a field in a region", "x**2 + y**2 < 1", "u < 1", DISK),
    change("a region outside the domain", "x**2 + y**2 < 1", "(x - 5)**2 + y**2 < 1", DISK),
    change("a region that fills the domain", "x**2 + y**2 < 1", "x**2 + y**2 < 9", DISK),
    change("a region on a line", "y = [-1, 1]\n", "", DISK.replace(" + u_yy", "").replace(" + y**2", "")),
    change("two descriptions of a region", "[[boundary]]", 'file = "outline.geojson"\n\n[[boundary]]', DISK),
    change("holes without a polygon", "[[boundary]]", "holes = [[[0, 0], [0.1, 0], [0, 0.1]]]\n\n[[boundary]]", DISK),
    change("a wall with no normal", "x**2 + y**2 < 1", "(x**2 + y**2 - 0.5)**3 < 0", DISK),
    change("a polygon of two corners", ", [1, 0], [0, 0], [0, 1], [-1, 1]", "", L_SHAPE),
    change("a polygon that crosses itself", "[1, -1], [1, 0]", "[1, 0], [1, -1]", L_SHAPE),
    change("a corner twice", "[1, -1], ", "[1, -1], [1, -1], ", L_SHAPE),
    change("a corner outside the domain", "[1, -1], ", "[2, -1], ", L_SHAPE),
    change("a hole outside its polygon", "[[boundary]]", "holes = [[[2, 2], [3, 2], [2, 3]]]\n\n[[boundary]]", L_SHAPE),
    change("an edge that is not there", WALL, WALL + "at = 6\n", L_SHAPE),
    change("an edge of a curve", WALL, WALL + "at = 0\n", DISK),
    change("a wall that is not there", WALL, WALL + 'at = "x > 2"\n', DISK),
    change("a side of the box inside a region", WALL, WALL + "at = { x = 0.5 }\n", DISK),
    change("walls that contradict each other", WALL, WALL + '[[boundary]]\ntext = "u = 1"\nat = "x > 0"\n', DISK),
    change("a normal derivative in an equation", "u_yy", "u_n", DISK),
    change(
        "a normal derivative without a region",
        WALL,
        'text = "u_n = 0"\nat = { x = 0 }\n',
        DISK.replace('[region]\ninside = "x**2 + y**2 < 1"\n', ""),
    ),
    change("all of a boundary without a region", '[region]\ninside = "x**2 + y**2 < 1"\n', "", DISK),
    change("a measurement outside a region", WALL,
           WALL + "[[observations]]\nx = [0, 0.9]\ny = [0, 0.9]\nu = [1, 2]\n", DISK),
    change("a region with features over the whole domain", WALL, WALL + '[method]\nname = "joint"\n', DISK),
    file("a missing outline", OUTLINE),
    file("an outline that is no GeoJSON", OUTLINE, outline__geojson="text"),
    file("an outline that is a line", OUTLINE, outline__geojson=RING.replace("Polygon", "LineString")),
    file("an outline that is not closed", OUTLINE, outline__geojson=RING.replace(", [0, 0]]]", ", [0, 1]]]")),
    file("an outline without a column", OUTLINE.replace("geojson", "csv"), outline__csv="x,z\n0,0\n1,0\n1,1\n"),
    file("--set of no parameter of a file", HEAT, "solve", "heat.toml", "--set", "mu=1"),
]


def run(case: Case) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a case, in the current folder."""
    from factorfield.cli.app import main

    for name, text in case.files.items():
        Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(list(case.arguments))
        except SystemExit as end:
            return int(end.code or 0), out.getvalue(), err.getvalue()
    raise AssertionError("main always exits")


def page() -> str:
    """docs/errors.md: every case and its line."""
    lines = [
        "# Errors",
        "",
        "Every bad input below gets exit code 2 and this line on stderr: what was expected, what came, what to try.",
        "Written by `python tests/error_cases.py`; a test keeps it true.",
        "",
        "| input | what it says |",
        "| --- | --- |",
    ]
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            said = run(case)[2].strip().removeprefix("error: ")
        command = "" if case.files else f" (`factorfield {' '.join(case.arguments)}`)"
        lines.append(f"| {case.about}{command} | {said} |".replace("\n", " ").replace("*", "\\*"))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    Path(__file__).parent.parent.joinpath("docs/errors.md").write_text(page(), encoding="utf-8")
