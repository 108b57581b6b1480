"""The paper's model, with every constant of its experiments.

u = sum_h a_h g(w_h . phi), Fourier features in x and in half a period of t, rotated to decorrelate the weights,
labels at t = 0, residual factors at the labels and at stratified points. The paper writes the residual in
coordinates scaled by T_basis = 2 (t_end - t_0), where its noise is eps_C; in physical units that is eps_C / T_basis,
and everything here is in physical units.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected
from factorfield.messages.gaussian import Diagonal
from factorfield.model.activation import Activation, PiecewiseExponential, Variant
from factorfield.model.basis import Fourier, RankRule, Tensor, decorrelate
from factorfield.model.choices import Sigma, field_scale
from factorfield.model.factors import ROWS_PER_BLOCK, build_group, functional_rows
from factorfield.model.model import BlockModel, check_memory
from factorfield.model.representation import Functional, Representation, field_form, without_curvature
from factorfield.problem.domain import TIME, Domain, Periodic, Points
from factorfield.problem.problem import Problem, Statement
from factorfield.problem.relation import Relation, evaluate_coefficient

Array = NDArray[np.float64]

READOUTS = {1: (1.0,), 2: (1.0, -1.0), 3: (1.0, -1.0, 0.5), 4: (1.0, -1.0, 0.5, -0.5)}
POINTS_PER_ROW = 48
FISHER_TIME_MODES = 15
COEFFICIENT_FLOOR = 1e-3  # in the paper's scaled units


def paper_model(  # noqa: PLR0913
    problem: Problem, width: int = 1, *, readout: Sequence[float] | None = None, activation: Activation | None = None,
    label_noise: float = 0.02, residual_noise: float = 0.05, modes: Mapping[str, int] | None = None,
    labels: int | None = None, rotation: bool = True, curvature: bool = True, variant: Variant = "paper", seed: int = 0,
) -> BlockModel:  # fmt: skip
    """The model of the paper for u_t + b u_x and u_t = nu u_xx + rho u (1 - u); others with `modes` given.

    label_noise, residual_noise: eps_D and eps_C (the latter in the paper's scaled units).
    curvature=False drops the term -nu g''(z) z_x^2, as the authors' release does; variant="exact" keeps the
    jumps of g' and g'' in Stein's lemma; activation=ff.Identity() makes the field linear in the weights.
    """
    equation, data, axis = _checked(problem)
    weights = _readout(width, readout)
    noises = _positive(label_noise=label_noise, residual_noise=residual_noise)
    basis_time = 2.0 * problem.domain[TIME].length
    sigma = residual_noise / basis_time
    speed = _advection_speed(equation.relation, problem, axis)
    rule: RankRule = "floor" if speed is None else "relative"
    kept = _thinned(data, labels or (512 if speed is None else 1024))
    chosen = _modes(problem, data, speed, basis_time, axis, modes or {})
    basis = _features(problem.domain, chosen)
    counts = {TIME: chosen[TIME] if speed is not None else 2 * chosen[TIME] + 1, axis: POINTS_PER_ROW}
    collocation, second_draw = _draws(problem.domain, counts, seed)
    check_memory(basis.size * len(weights), 2 * (counts[TIME] * counts[axis] + len(kept.target)))
    if rotation:
        inputs = _Inputs(equation.relation, problem.constants, basis, kept.points or {}, second_draw)
        basis = basis.rotated(_rotation(inputs, label_noise, sigma, rule))
    form = field_form(problem.fields[0], problem.domain.names, activation or PiecewiseExponential(), weights)
    representation = Representation.build([(problem.fields[0], basis, form)])
    residual = representation.read(equation.relation)
    if not curvature:
        residual = without_curvature(residual)
    assert kept.points is not None
    constants, at_labels = problem.constants, replace(equation, name="equation at the labels")
    groups = (
        build_group(equation, representation, collocation, sigma, constants, residual),
        build_group(at_labels, representation, kept.points, sigma, constants, residual),
        build_group(kept, representation, kept.points, label_noise, constants),
    )
    continuation = _reaction(equation.relation) if speed is None else None
    settings: dict[str, object] = {
        "model": "paper", "modes": chosen, "collocation": counts, "labels": len(kept.target), "width": len(weights),
        **noises, "rotation": rotation, "rank_rule": rule, "curvature": curvature, "variant": variant, "seed": seed,
        "activation": form.activation.name, "residual_input": "belief",
        "coefficient_floor": COEFFICIENT_FLOOR / basis_time,
        "continuation": continuation,
    }  # fmt: skip
    return BlockModel(
        problem=problem, representation=representation,
        prior=Diagonal(np.ones(representation.size), np.zeros(representation.size)),
        sigmas=tuple(Sigma(sigma if s.kind == "equation" else label_noise, "given") for s in problem.statements),
        modes=chosen, scale=field_scale(problem), settings=settings, groups=groups, continuation=continuation,
        follows_protocol=True,
    )  # fmt: skip


def _checked(problem: Problem) -> tuple[Statement, Statement, str]:
    """The parts the paper's model has room for: one equation, one field, x periodic, t, observations of the field."""
    equations = [s for s in problem.statements if s.kind == "equation"]
    data = [s for s in problem.statements if s.kind == "observation"]
    shape_fits = len(problem.fields) == 1 and len(equations) == 1 and len(data) == len(problem.conditions) == 1
    space = problem.domain.space
    axes_fit = TIME in problem.domain and len(space) == 1 and isinstance(problem.domain[space[0]], Periodic)
    if not (shape_fits and axes_fit) or problem.unknowns:
        raise expected(
            "one equation of one field on a periodic axis and t, known constants, and one set of observations",
            repr(problem), "the default model (model='default')",
        )  # fmt: skip
    return equations[0], data[0], space[0]


def _positive(**noises: float) -> dict[str, float]:
    for name, value in noises.items():
        if not (np.isfinite(value) and value > 0.0):
            raise expected(f"{name} > 0", value, f"{name}=0.02")
    return noises


def _features(domain: Domain, modes: Mapping[str, int]) -> Tensor:
    """Fourier features on the period of x and on twice the interval of t, which need not be periodic."""
    periods = {name: (2.0 if name == TIME else 1.0) * domain[name].length for name in domain.names}
    return Tensor({name: Fourier(modes[name], domain[name].lower, period) for name, period in periods.items()})


def _draws(domain: Domain, counts: Mapping[str, int], seed: int) -> tuple[Points, Points]:
    """Stratified points of the equation, and those of the rotation, each from a stream of its own.

    Never from [seed, 0]: NumPy pads with zeros, so that it equals `seed` alone, the stream from which a method
    shuffles its factors - and a run with points and order from one stream diverged.
    """
    first, second = (domain.stratified(counts, np.random.default_rng([seed, k])) for k in (1, 2))
    return first, second


def _readout(width: int, readout: Sequence[float] | None) -> tuple[float, ...]:
    if readout is not None:
        if len(readout) != width and width != 1:
            raise expected(f"one readout weight for each of {width} units", f"{len(readout)}", "readout=(1.0, -1.0)")
        return tuple(readout)
    if width not in READOUTS:
        raise expected("a width of 1 to 4, or a readout", f"width={width}", "readout=[...] with one weight per unit")
    return READOUTS[width]


def _advection_speed(relation: Relation, problem: Problem, axis: str) -> float | None:
    """b if the equation is a (u_t + b u_x), else None."""
    orders = {jet.orders for jet in relation.jets.values()}
    if not relation.is_linear or orders != {((TIME, 1),), ((axis, 1),)}:
        return None
    size = {jet.orders: evaluate_coefficient(c, problem.constants, {}) for jet, c in relation.linear_part.items()
            if not {str(s) for s in c.free_symbols} & set(problem.domain.names)}  # fmt: skip
    if len(size) != 2:
        return None
    return float(size[((axis, 1),)] / size[((TIME, 1),)])


def _reaction(relation: Relation) -> str | None:
    """The constant that multiplies the undifferentiated field: what the continuation grows."""
    symbols = [s for jet, c in relation.linear_part.items() if not jet.orders for s in c.free_symbols]
    names = sorted(str(s) for s in symbols if str(s) in relation.parameters)
    return names[0] if len(names) == 1 else None


def _thinned(data: Statement, labels: int) -> Statement:
    """Every n-th observation, so that about `labels` remain."""
    step = max(1, len(data.target) // labels)
    return data.part(np.arange(0, len(data.target), step))


def _modes(
    problem: Problem, data: Statement, speed: float | None, basis_time: float, axis: str, given: Mapping[str, int]
) -> dict[str, int]:
    length = problem.domain[axis].length
    if speed is not None:
        modes = {TIME: int(np.ceil(5.0 * abs(speed) * basis_time / length)) + 3, axis: 5}
    else:
        modes = {TIME: FISHER_TIME_MODES, axis: _spectral_modes(data.target)}
    return {**modes, **{name: int(count) for name, count in given.items()}}


def _spectral_modes(values: Array) -> int:
    """The smallest K in [5, 8] whose modes 1..K hold 99.9 % of the non-constant spectral energy."""
    energy = np.abs(np.fft.rfft(values)[1:]) ** 2
    share = np.cumsum(energy) / max(energy.sum(), np.finfo(float).tiny)
    return int(np.clip(np.searchsorted(share, 0.999) + 1, 5, 8))


class _Inputs:
    """What a rotation depends on, compared by content: all rows of one speed share it, and its eigenvectors."""

    def __init__(
        self, relation: Relation, constants: Mapping[str, float], basis: Tensor, labels: Points, points: Points
    ) -> None:
        self.relation, self.constants, self.basis, self.labels, self.points = relation, constants, basis, labels, points
        linear = [(jet.orders, str(c), sorted(constants.items())) for jet, c in relation.linear_part.items()]
        parts = [repr(linear).encode(), repr(basis.spec()).encode()]
        parts += [np.ascontiguousarray(x).tobytes() for where in (labels, points) for x in where.values()]
        self.digest = hashlib.sha256(b"|".join(parts)).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Inputs) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@lru_cache(maxsize=2)  # at b = 7 these eigenvectors cost ten solves of the joint method
def _rotation(inputs: _Inputs, label_noise: float, sigma: float, rule: RankRule) -> Array:
    """Eigenvectors of G = A_D'A_D / eps_D^2 + A_C'A_C / eps_C^2, A_C the derivative terms of the linear part."""
    import sympy

    gram = np.zeros((inputs.basis.size, inputs.basis.size))
    derivatives = tuple((jet.orders, c) for jet, c in inputs.relation.linear_part.items() if jet.orders)
    value = (((), sympy.Integer(1)),)
    for terms, where, noise in ((derivatives, inputs.points, sigma), (value, inputs.labels, label_noise)):
        for start in range(0, len(where[TIME]), ROWS_PER_BLOCK):
            part = {name: x[start : start + ROWS_PER_BLOCK] for name, x in where.items()}
            rows = functional_rows(Functional("z", terms), inputs.basis, part, inputs.constants) / noise
            gram += rows.T @ rows
    return decorrelate(gram, rule)
