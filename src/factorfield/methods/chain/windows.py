"""How long a window is: halved where the estimate of its error is too large, doubled where the field is quiet.

An equation of first order in time is asked as often as it has polynomials to settle (model/window_factors.py), so it is
met in any window, and says nothing about the state at its start: what is left to judge is whether the polynomials have
come to an end. One of second order is asked more often, and in too long a window moves the start instead.

Windows are cells of a binary grid over the horizon, so that few lengths occur and windows of equal length can share
their factorisation.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import ProblemError, expected
from factorfield.messages.gaussian import Belief, Message
from factorfield.methods.chain.solver import Window, WindowSolver
from factorfield.model.basis import Departure
from factorfield.model.factors import whitened_rows
from factorfield.model.model import WindowModel, is_standing
from factorfield.model.representation import states_of
from factorfield.problem.domain import TIME, Axis

Array = NDArray[np.float64]
MOST_HALVINGS = 30  # a window shorter than 2^-30 of the horizon: the equation is too stiff, or wrong
MOST_WINDOWS = 20_000
MOST_SHRINKING = 10  # halvings in a row after the first window: the path runs into something
IN_A_ROW = 8  # windows between two halvings, at most
STUCK = 100  # equal windows in a row after which the rest of the horizon is judged by their length
LONGER_AFTER = 4  # windows after which a longer one is tried although the error is not tiny; twice that after a refusal
MOVED = 0.1  # standard deviations by which an equation alone may move the state where it starts
CLAIMED = 0.3  # of a standard deviation: what it may claim to know about it
SPREAD_SHARE = 1e-3  # of the largest std: what the last two polynomials may hold of it
NOMINAL = 1.0  # the same share where the std comes from default sigmas of formulas, which is no real uncertainty


class WindowControl:
    """Proposes the end of the next window; `judge` takes its error, in tolerances, and accepts or halves it.

    quiet    the error below which the next window may be twice as long
    patient  where there are later data, a longer window is tried every few windows, because data too can keep the error
             up
    """

    def __init__(self, horizon: Axis, first_level: int, quiet: float, patient: bool) -> None:
        self._horizon, self._quiet, self._patient = horizon, quiet, patient
        self._level, self._position = first_level, 0  # time = lower + position / 2^level * length
        self._error = self._refused = math.inf  # of the last window, and before the last one that proved too long
        self._doubled, self._waited, self._patience = False, 0, LONGER_AFTER
        self._shrinking, self._kept = 0, 0  # halvings in a row, and windows accepted before the last one
        self.accepted = self.rejected = 0

    @property
    def done(self) -> bool:
        return self._position == 2**self._level

    @property
    def fraction(self) -> float:
        return self._position / 2**self._level

    @property
    def start(self) -> float:
        return self._horizon.lower + self.fraction * self._horizon.length

    @property
    def end(self) -> float:
        """Where the next window would end."""
        cells = 2**self._level
        if self._position + 1 == cells:
            return self._horizon.upper
        return self._horizon.lower + (self._position + 1) / cells * self._horizon.length

    def judge(self, error: float) -> bool:
        """Is the proposed window short enough? If not, the next proposal is half as long."""
        return self._halve(error) if error > 1.0 else self._advance(error)

    def _halve(self, error: float) -> bool:
        self.rejected += 1
        if self._level == MOST_HALVINGS:
            raise self._too_fast(f"windows of at least 2^-{MOST_HALVINGS} of the horizon")
        if self.accepted > 0 and not self._doubled:
            in_a_row = self.accepted - self._kept <= IN_A_ROW
            self._shrinking, self._kept = self._shrinking + 1 if in_a_row else 1, self.accepted
        if self._shrinking > MOST_SHRINKING:
            raise self._too_fast("windows that need not become ever shorter")
        self._level, self._position = self._level + 1, 2 * self._position
        if self._doubled:
            self._refused, self._patience = self._error, 2 * self._patience
        self._doubled, self._waited = False, 0
        return False

    def _advance(self, error: float) -> bool:
        self.accepted += 1
        self._position, self._error = self._position + 1, error
        cells = 2**self._level
        stuck = self._waited > STUCK and cells - self._position > MOST_WINDOWS
        if stuck or self.accepted > MOST_WINDOWS:
            raise self._too_long()
        self._shrinking = 0 if self._doubled else self._shrinking
        self._waited = 0 if self._doubled else self._waited + 1
        due = self._patient and self._waited >= self._patience and error < 0.5
        possible = self._position % 2 == 0 and self._level > 0 and self._position < cells
        self._doubled = possible and (due or error < min(self._quiet, 0.1 * self._refused))
        if self._doubled:
            self._level, self._position = self._level - 1, self._position // 2
        return True

    def _too_long(self) -> ProblemError:
        """Windows that stay as short as they are: an oscillation of thousands of periods looks like that."""
        length = self._horizon.length / 2**self._level
        received = f"windows of {length:.3g} that stay so short, up to t = {self.start:.6g}"
        attempt = "a shorter horizon, where the field turns or changes all the time, or the units of t and coefficients"
        return expected(f"a horizon of at most {MOST_WINDOWS} windows", received, attempt)

    def _too_fast(self, wanted: str) -> ProblemError:
        return ProblemError(
            f"expected {wanted}, received a solution that changes too fast at t = {self.start:.6g}: it may blow up "
            "there, the equation be stiff, or conditions contradict each other; try the signs of terms, the units of "
            "coefficients, a shorter horizon, or a larger sigma of the equation"
        )


# -- the error of a window


def window_error(solver: WindowSolver, tolerance: float, arrival: Belief, window: Window, lower: float) -> float:
    """The error of a window in tolerances; above 1 it is too long.

    A window is too long if its last two polynomials are still needed (`truncation_error`) or, for an equation of second
    order in time, if the equation moves the state at the start (`start_bias`). Of that move the equation is to blame
    only where no data after the start could have caused it.
    """
    error = np.inf if window.is_far else truncation_error(solver.model, tolerance, window)
    is_second_order = max(map(states_of, solver.model.representation.latents.values())) > 1
    if error > 1.0 or not is_second_order:
        return error
    has_no_later_data = all(is_standing(g.statement) or np.all(g.points[TIME] <= lower) for g in window.groups)
    return max(error, start_bias(solver, tolerance, arrival, window)) if has_no_later_data else error


def truncation_error(model: WindowModel, tolerance: float, window: Window) -> float:
    """What the last two polynomials carry: of the mean in tolerances, and of the uncertainty as a share of it."""
    allowed, traits = tolerance * model.scale, model.traits
    last = last_polynomials(model)
    inner = np.isin(model.layout[1], last)
    spread = np.sqrt(np.sum((window.link.slope @ window.start.root) ** 2, axis=1))
    known = window.start.std[: model.field_states]  # coefficients have other units
    largest = max(spread.max(initial=0.0), known.max(initial=0.0))
    nominal = traits.starts_by_formula and not traits.has_later_data
    of_spread = float(spread[inner].max(initial=0.0)) / max((NOMINAL if nominal else SPREAD_SHARE) * largest, allowed)
    of_mean = float(np.abs(window.weights[last]).max(initial=0.0)) / allowed
    worst = max(of_mean, of_spread)
    return worst if np.isfinite(worst) else np.inf


def last_polynomials(model: WindowModel) -> NDArray[np.int64]:
    """Weights of the last two polynomials in time of every field."""
    found: list[int] = []
    for latent in model.representation.latents.values():
        family = latent.basis.families.get(TIME)
        if isinstance(family, Departure):
            across = latent.basis.size // family.size
            found += range(latent.block.stop - 2 * across, latent.block.stop)
    return np.array(found, int)


def start_bias(solver: WindowSolver, tolerance: float, arrival: Belief, window: Window) -> float:
    """What equation and walls, asked more often than they can be met, do to the state at the start."""
    own = [group for group in window.groups if not is_standing(group.statement)]
    rows, target = whitened_rows(own, np.zeros(len(solver.order)))
    before = arrival * Message(rows[:, solver.state], target)
    known = before.std + tolerance * solver.model.scale
    moved = float(np.max(np.abs(window.start.mean - before.mean) / known))
    claimed = float(np.max(1.0 - window.start.std / known))
    # the sigma of a formula is nominal: fast waves of it need no following
    measured = not solver.model.traits.starts_by_formula
    return max(moved / MOVED, measured * claimed / CLAIMED)
