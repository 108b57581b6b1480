"""The page of the registry: its table, its failures with their reasons, and the cells of noisy labels."""

from __future__ import annotations

from factorfield.calibration.study import Found, labels_table, registry_table

TEXT = """# Calibration of the default method

Made by `factorfield calibrate --all --out benchmarks/results/calibration.md`; do not edit. Records of commit {commits}.

Every feature that gives an interval owns a row. Rows judged by *stated priors* draw truth, start, walls and
coefficients from the priors that the problem states (simulation-based calibration). Rows judged by *fixed truths* read
sizes, spectra or noise from the data, so only noise is drawn. The row of numerical errors asks that the 95 % point of
|error| / std lies between 1e-3 and 3 in every draw whose error exceeds 1e-10 of the field.

Columns of per cent are shares of truths inside intervals; `rms z` is 1 where widths are right; `KS` is the largest
distance of the PIT's distribution from the uniform one; `s` is the median of processor seconds. A row passes if the
distribution of the PIT stays in its simultaneous band and the sum of z^2 within its chi-square limits, one z per draw:
a perfect method fails a row once in a hundred runs.

```text
{table}
```

## Failures

{failures}
"""


def page(found: Found) -> str:
    table = registry_table(found)
    commits = sorted({record["commit"] for records in found.values() for record in records})
    known = {row.name: row.reason or "the reason is not known yet" for row in found}
    said = zip(table.frame["row"], table.frame["verdict"], strict=True)
    failures = [f"- **{row}**: {verdict}. {known[row]}." for row, verdict in said if verdict != "passes"]
    text = TEXT.format(commits=", ".join(commits), table=_body(table.text()), failures="\n".join(failures) or "None.")
    cells = labels_table(found)
    return text if cells is None else f"{text}\n## Noisy labels, cell by cell\n\n```text\n{_body(cells.text())}\n```\n"


def _body(text: str) -> str:
    """Without the title."""
    return text.partition("\n")[2]
