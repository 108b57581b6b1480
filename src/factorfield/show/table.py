"""A table with a title: aligned text, CSV, and cells as people read them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class Table:
    title: str
    frame: pd.DataFrame
    note: str = ""

    @property
    def header(self) -> list[str]:
        return list(self.frame.columns)

    def cells(self) -> list[list[str]]:
        return [[shown(value) for value in row] for row in self.frame.itertuples(index=False)]

    def text(self) -> str:
        """Aligned columns, nothing cut."""
        lines = [self.header, *self.cells()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        body = []
        for first, *others in lines:
            padded = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
            body.append("  ".join([first.ljust(widths[0]), *padded]))
        return "\n".join([self.title, *body, *([self.note] if self.note else [])])

    def csv(self) -> str:
        return self.frame.to_csv(index=False, na_rep="nan", lineterminator="\r\n")


def shown(value: object) -> str:
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.3g}"
    return str(value)
