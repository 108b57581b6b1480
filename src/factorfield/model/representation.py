"""How fields and unknown coefficients are written in weights: one vector w, cut into latents z = w . phi.

Field:        u = sum_h readout_h g(z_h), each z_h a tensor-product expansion.
Coefficient:  theta = z, or exp(z) for a positive one, with the single feature 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected
from factorfield.model.activation import ACTIVATIONS, Activation, Identity
from factorfield.model.basis import Tensor, family_from_spec
from factorfield.model.latent import Form, LatentRelation, substitute
from factorfield.problem.relation import Relation

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Latent:
    """One expansion z = w[block] . phi."""

    name: str
    basis: Tensor
    start: int

    @property
    def block(self) -> slice:
        return slice(self.start, self.start + self.basis.size)


@dataclass(frozen=True, eq=False)
class Representation:
    """Every field and unknown coefficient as a function of the one weight vector."""

    forms: Mapping[str, Form]
    latents: Mapping[str, Latent]

    @staticmethod
    def build(parts: Sequence[tuple[str, Tensor, Form]]) -> Representation:
        """From (field, basis, form) triples; the latents of one form share its basis."""
        latents: dict[str, Latent] = {}
        start = 0
        for _, basis, form in parts:
            for name in form.latents:
                latents[name] = Latent(name, basis, start)
                start += basis.size
        return Representation({name: form for name, _, form in parts}, latents)

    @property
    def size(self) -> int:
        return sum(latent.basis.size for latent in self.latents.values())

    def read(self, relation: Relation) -> LatentRelation:
        return substitute(relation, self.forms)

    def spec(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """A JSON-able description and the arrays (rotations) that go with it."""
        forms, arrays = {}, {}
        for name, form in self.forms.items():
            basis = self.latents[form.latents[0]].basis
            activation = form.activation
            constants = {} if isinstance(activation, Identity) else {"alpha": activation.alpha, "beta": activation.beta}
            forms[name] = {
                "latents": list(form.latents),
                "axes": list(form.axes),
                "readout": list(form.readout),
                "activation": {"name": activation.name, **constants},
                "link": form.link,
                "offset": form.offset,
                "basis": basis.spec(),
            }
            if basis.rotation is not None:
                arrays[f"rotation_{name}"] = basis.rotation
        return forms, arrays

    @staticmethod
    def from_spec(forms: Mapping[str, Any], arrays: Mapping[str, Array]) -> Representation:
        parts = []
        for name, spec in forms.items():
            constants = dict(spec["activation"])
            activation: Activation = ACTIVATIONS[constants.pop("name")](**constants)
            families = {axis: family_from_spec(family) for axis, family in spec["basis"].items()}
            basis = Tensor(families, arrays.get(f"rotation_{name}"))
            form = Form(
                tuple(spec["latents"]), tuple(spec["axes"]), tuple(spec["readout"]), activation, spec["link"],
                spec.get("offset", 0.0),
            )  # fmt: skip
            parts.append((name, basis, form))
        return Representation.build(parts)


def field_form(name: str, axes: tuple[str, ...], activation: Activation, readout: Sequence[float] = (1.0,)) -> Form:
    """The form of a field with as many hidden units as readout weights."""
    weights = tuple(float(a) for a in readout)
    if not weights or not np.all(np.isfinite(weights)):
        raise expected("a finite readout weight per unit", readout, "readout=(1.0, -1.0)")
    latents = (name,) if len(weights) == 1 else tuple(f"{name}{h + 1}" for h in range(len(weights)))
    return Form(latents, axes, weights, activation)


def coefficient_form(name: str, positive: bool) -> Form:
    return Form((name,), (), link="exp" if positive else "activation")
