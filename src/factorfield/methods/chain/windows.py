"""How long the next window is: halved where the field changes too fast, doubled where it is quiet.

Windows are cells of a binary grid over the horizon, so that few lengths occur and windows of equal length can share
their factorisation.
"""

from __future__ import annotations

import math

from factorfield.errors import ProblemError
from factorfield.problem.domain import Axis

MOST_HALVINGS = 30  # a window shorter than 2^-30 of the horizon: the equation is too stiff, or wrong
MOST_WINDOWS = 20_000
STUCK = 100  # equal windows in a row after which the rest of the horizon is judged by their length
PATIENCE = 4  # windows after which a longer one is tried although the error is not tiny; twice that after a refusal


class WindowControl:
    """Proposes the end of the next window; `judge` takes its error, in tolerances, and accepts or halves it.

    quiet    the error below which the next window may be twice as long
    patient  is a longer window tried every few windows although the error, perhaps of other causes, is not tiny?
    """

    def __init__(self, horizon: Axis, first_level: int, quiet: float, patient: bool) -> None:
        self._horizon, self._quiet, self._patient = horizon, quiet, patient
        self._level, self._position = first_level, 0  # time = lower + position / 2^level * length
        self._error = self._refused = math.inf  # of the last window, and before the last one that proved too long
        self._doubled, self._waited, self._patience = False, 0, PATIENCE
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
            raise self._too_fast(f"windows of at least 2^-{MOST_HALVINGS} of the horizon", error)
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
            raise self._too_fast(f"at most {MOST_WINDOWS} windows", error)
        self._waited = 0 if self._doubled else self._waited + 1
        due = self._patient and self._waited >= self._patience and error < 0.5
        possible = self._position % 2 == 0 and self._level > 0 and self._position < cells
        self._doubled = possible and (due or error < min(self._quiet, 0.1 * self._refused))
        if self._doubled:
            self._level, self._position = self._level - 1, self._position // 2
        return True

    def _too_fast(self, wanted: str, error: float) -> ProblemError:
        return ProblemError(
            f"expected {wanted}, received a solution that changes too fast at t = {self.start:.6g} (error "
            f"{error:.2g} tolerances): it may blow up there, the equation be stiff, or conditions contradict each "
            "other; try a larger sigma of the equation, fewer modes, a shorter horizon, or check the signs of terms"
        )
