"""The paper's method: one Gaussian per weight, factors visited one by one in random order (Algorithm 1).

Every factor keeps its message to every weight it reads. A visit divides the own message out of the belief (the cavity),
propagates the moments of the functionals through the relation, and sends each weight what the relation says about it
when all others keep their incoming moments. Messages are derived in docs/messages.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected
from factorfield.methods import never_refine, taken
from factorfield.methods.continuation import stages
from factorfield.methods.mean_field.layout import Layout, lay_out
from factorfield.model.activation import Variant
from factorfield.model.block import block_model
from factorfield.model.model import BlockModel, Model
from factorfield.posterior.gaussian import GaussianPosterior
from factorfield.progress import Progress
from factorfield.solution import Solution, Status

Array = NDArray[np.float64]
Schedule = Literal["mixed", "data", "equation", "data then equation"]
Input = Literal["cavity", "belief"]


@dataclass(frozen=True)
class MeanField:
    """Settings; None takes the model's own choice (the paper's model has some), else the default in brackets.

    residual_input  moments that equation factors see: "cavity" [default] or "belief" (the paper's Table 1)
    variant         jumps of g' and g'' in Stein's lemma: "exact" [default] or "paper" (left out)
    continuation    a parameter that grows to its value in four passes, such as "rho" [none]; "" for none
    schedule        "mixed", "data", "equation", or "data then equation"
    damping         share of the old message kept, 0 <= damping < 1
    """

    epochs: int = 300
    tolerance: float = 1e-5
    schedule: Schedule = "mixed"
    residual_input: Input | None = None
    variant: Variant | None = None
    continuation: str | None = None
    floor: float | None = None
    damping: float = 0.0
    seed: int = 0

    name = "mean-field"
    model_for = staticmethod(block_model)
    refine = staticmethod(never_refine)

    def __post_init__(self) -> None:
        if not 0.0 <= self.damping < 1.0:
            raise expected("0 <= damping < 1", self.damping, "damping=0.5")
        if self.epochs < 1 or not self.tolerance > 0.0:
            raise expected("epochs >= 1 and tolerance > 0", f"{self.epochs}, {self.tolerance}", "epochs=300")
        for value, options in (
            (self.schedule, ("mixed", "data", "equation", "data then equation")),
            (self.residual_input, (None, "cavity", "belief")),
            (self.variant, (None, "exact", "paper")),
        ):
            if value not in options:
                raise expected(f"one of {', '.join(map(str, options))}", value, f"{options[-1]!r}")

    def run(self, model: Model, progress: Progress | None = None) -> Solution:
        return self._run(taken(model, BlockModel, self.name), progress)

    def _run(self, model: BlockModel, progress: Progress | None) -> Solution:
        begin = time.perf_counter()
        method = self.resolved(model)
        if progress is not None:
            progress("laying out the factors (the first run on a machine compiles for some seconds)", 0.0)
        layout = lay_out(model, method.residual_input == "belief", method.floor or 0.0)
        messages = Messages.start(model, layout)
        rng = np.random.default_rng(self.seed)
        trace = Trace()
        kinks = method.variant == "exact"
        status = Status("converged")
        passes = self._stages(model, layout)
        for index, (stage_model, chosen) in enumerate(passes):
            layout = layout.with_parameters(stage_model)

            def tell(epoch: int, kl: float, index: int = index) -> None:
                if progress is not None:
                    text = f"pass {index + 1}/{len(passes)}, epoch {epoch}, max KL {kl:.1e}"
                    progress(text, (index + min(epoch / self.epochs, 1.0)) / len(passes))

            status = self._pass(layout, messages, chosen, rng, kinks, trace, tell)
            if status == "diverged":
                break
        timings = {"solve": time.perf_counter() - begin}
        posterior = GaussianPosterior(
            model.problem,
            model.representation,
            model.noise,
            messages.mean.copy(),
            np.sqrt(messages.variance),
        )
        settings = {
            **model.settings, "residual_input": method.residual_input, "variant": method.variant,
            "coefficient_floor": method.floor, "continuation": method.continuation or None, "schedule": self.schedule,
            "epochs": self.epochs, "tolerance": self.tolerance, "damping": self.damping, "method_seed": self.seed,
            "method": self.name,
        }  # fmt: skip
        return Solution(posterior, status, asdict(trace), timings, settings, model=model, advice=model.advice)

    def resolved(self, model: BlockModel) -> MeanField:
        """The same settings with the model's choices in place of None."""
        own = model.settings
        moments = self.residual_input or cast(Input, own.get("residual_input", "cavity"))
        floor = cast(float, own.get("coefficient_floor", 0.0)) if self.floor is None else self.floor
        return replace(
            self, residual_input=moments, variant=self.variant or cast(Variant, own.get("variant", "exact")),
            continuation=(model.continuation if self.continuation is None else self.continuation) or "",
            floor=floor if moments == "belief" else 0.0,
        )  # fmt: skip

    def _stages(self, model: BlockModel, layout: Layout) -> list[tuple[BlockModel, NDArray[np.int64]]]:
        """(model, factors to visit) of each pass."""
        data, equation = layout.factors(False), layout.factors(True)
        parts = {
            "mixed": [np.arange(len(data) + len(equation))],
            "data": [data],
            "equation": [equation],
            "data then equation": [data, equation],
        }[self.schedule]
        return [(stage, part) for stage in stages(model, self.continuation) for part in parts]

    def _pass(
        self, layout: Layout, messages: Messages, chosen: NDArray[np.int64], rng: np.random.Generator, kinks: bool,
        trace: Trace, progress: Callable[[int, float], None],
    ) -> Status:  # fmt: skip
        for epoch in range(1, self.epochs + 1):
            kl, rejected = layout.sweep(rng.permutation(chosen), messages.arrays, kinks, self.damping)
            trace.max_kl.append(kl)
            trace.rejected += rejected
            progress(epoch, kl)
            if not np.isfinite(kl) or not np.all(np.isfinite(messages.mean)) or not np.all(messages.variance > 0.0):
                trace.passes.append(epoch)
                return Status(
                    "diverged",
                    f"messages lost their meaning in epoch {epoch} (max KL {kl:.3g}): try damping=0.5, "
                    "residual_input='cavity', or method='joint'",
                )
            if kl < self.tolerance:
                trace.passes.append(epoch)
                return Status("converged", f"max KL {kl:.2g} after {epoch} epochs, below {self.tolerance:g}")
        trace.passes.append(self.epochs)
        return Status(
            "max-iterations",
            f"{self.epochs} epochs with max KL {trace.max_kl[-1]:.2g}, not below {self.tolerance:g}: usable; "
            "more epochs, or method='joint', would settle it",
        )


@dataclass
class Trace:
    """The largest KL of each epoch, how many messages were rejected in all, and the epochs of each pass."""

    max_kl: list[float] = field(default_factory=list)
    rejected: int = 0
    passes: list[int] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Messages:
    """Beliefs (natural and ordinary parameters) and every factor's messages, all updated in place."""

    precision: Array
    shift: Array
    mean: Array
    variance: Array
    own_precision: Array
    own_shift: Array

    @staticmethod
    def start(model: BlockModel, layout: Layout) -> Messages:
        """Beliefs at the prior, every message uniform."""
        prior = model.prior
        zeros = np.zeros(layout.message_size), np.zeros(layout.message_size)
        return Messages(prior.precision.copy(), prior.shift.copy(), prior.mean.copy(), prior.variance.copy(), *zeros)

    @property
    def arrays(self) -> Sequence[Array]:
        return self.precision, self.shift, self.mean, self.variance, self.own_precision, self.own_shift
