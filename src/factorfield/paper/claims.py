"""The paper's claims, one by one: yes, no, partly, or not run - each with its number from the records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from factorfield.paper.plan import NOISES, WIDTHS
from factorfield.paper.tables import (
    Record,
    Records,
    ablation,
    against,
    cell,
    cells_of,
    collapsed,
    mean_of,
    pairs,
    std_ratio,
)

SAME_ORDER = 3.0  # a factor that leaves two numbers of the same order


@dataclass(frozen=True)
class Claim:
    text: str
    answer: str
    number: str


NOT_RUN = ("not run", "no records")


def verdict(*checks: bool) -> str:
    return "yes" if all(checks) else "partly" if any(checks) else "no"


def timing_ratios(records: Records, equation: str, method: str, key: str) -> dict[str, float]:
    """method : message passing, per cell."""
    ours = {cell(r): r for r in records.pick(equation=equation, kind="timing", method="mean-field")}
    theirs = records.pick(equation=equation, kind="timing", method=method)
    return {cell(r): r["results"][key] / ours[cell(r)]["results"][key] for r in theirs if cell(r) in ours}


def speed(equation: str, method: str, key: str, wanted: float) -> Callable[[Records], tuple[str, str]]:
    def check(records: Records) -> tuple[str, str]:
        ratios = timing_ratios(records, equation, method, key)
        if not ratios:
            return NOT_RUN
        text = ", ".join(f"{name}: {value:.3g}x" for name, value in ratios.items())
        return verdict(max(ratios.values()) >= wanted, max(ratios.values()) > 1.0), text

    return check


def as_fast_as_vi(records: Records) -> tuple[str, str]:
    ratios = {
        **timing_ratios(records, "advection", "vi", "predict"),
        **timing_ratios(records, "fisher-kpp", "vi", "predict"),
    }
    if not ratios:
        return NOT_RUN
    text = f"VI : ours {min(ratios.values()):.2f}..{max(ratios.values()):.2f}"
    return verdict(*[0.5 < r < 2.0 for r in ratios.values()]), text


def continuation(records: Records) -> tuple[str, str]:
    ratios = []
    plain = {
        cell(r): r
        for r in records.pick(equation="fisher-kpp", kind="timing", method="mean-field", options={"continuation": ""})
    }
    for r in records.pick(equation="fisher-kpp", kind="timing", method="mean-field"):
        if cell(r) in plain:
            ratios.append(r["results"]["warm"] / plain[cell(r)]["results"]["warm"])
    if not ratios:
        return NOT_RUN
    middle = float(np.median(ratios))
    return verdict(
        1.5 <= middle <= 2.7, middle > 1.2
    ), f"with : without {min(ratios):.2f}..{max(ratios):.2f}, median {middle:.2f}"


def like_sgd(equation: str, lower: bool) -> Callable[[Records], tuple[str, str]]:
    def check(records: Records) -> tuple[str, str]:
        both = pairs(records, equation, "mean-field", "sgd")
        if not both:
            return NOT_RUN
        what = against(equation, [r for p in both for r in p])
        mse = [a["results"][what]["rmse"] ** 2 / b["results"][what]["rmse"] ** 2 for a, b in both]
        residual = [a["results"]["rms_residual"] / b["results"]["rms_residual"] for a, b in both]
        text = f"median of ours : SGD over {len(both)} runs, MSE {np.median(mse):.2f}, "
        text += f"RMS residual {np.median(residual):.2f}"
        if lower:
            return verdict(np.median(mse) < 1.0, np.median(residual) < 1.0), text
        return verdict(*[1 / SAME_ORDER < np.median(v) < SAME_ORDER for v in (mse, residual)]), text

    return check


def std_grows(records: Records) -> tuple[str, str]:
    rates: dict[str, float] = {}
    chosen = records.pick(equation="advection", method="mean-field")
    for name in cells_of(chosen):
        ratio = [
            r["results"]["std_over_time"][-1] / r["results"]["std_over_time"][0] for r in chosen if cell(r) == name
        ]
        rates[name] = float(np.mean(ratio))
    if not rates:
        return NOT_RUN
    values = list(rates.values())
    text = "std at the end : at the start, " + ", ".join(f"{n}: {v:.2f}" for n, v in rates.items())
    return verdict(min(values) > 1.0, values in (sorted(values), sorted(values, reverse=True))), text


def std_where_active(records: Records) -> tuple[str, str]:
    ranks = []
    for r in records.pick(equation="fisher-kpp", method="mean-field"):
        coarse = r["results"]["coarse"]
        activity = np.abs(np.gradient(np.array(coarse["exact"]), np.array(coarse["t"]), axis=0))
        ranks.append(float(stats.spearmanr(activity.ravel(), np.ravel(coarse["std"])).statistic))
    if not ranks:
        return NOT_RUN
    share = float(np.mean(np.array(ranks) > 0.0))
    text = f"rank correlation of std and |u_t|: median {np.median(ranks):.2f}, positive in {100 * share:.0f} % of runs"
    return verdict(share > 0.8, share > 0.5), text


def ratio_by_speed(records: Records) -> tuple[str, str]:
    both = pairs(records, "advection", "mean-field", "hmc")
    if not both:
        return NOT_RUN
    parts, steady = [], []
    for name in cells_of(r for r, _ in both):
        ratios = [std_ratio(a, b) for a, b in both if cell(a) == name]
        parts.append(f"{name}: {np.median(ratios):.2f} ({min(ratios):.2f}..{max(ratios):.2f})")
        steady.append(max(ratios) / min(ratios) < 1.5)
    return verdict(*steady), ", ".join(parts)


def ratio_fisher(records: Records) -> tuple[str, str]:
    ratios = [std_ratio(a, b) for a, b in pairs(records, "fisher-kpp", "mean-field", "hmc")]
    if not ratios:
        return NOT_RUN
    inside = float(np.mean([0.53 <= r <= 0.96 for r in ratios]))
    text = f"{min(ratios):.2f}..{max(ratios):.2f}, median {np.median(ratios):.2f}, {100 * inside:.0f} % inside"
    return verdict(inside > 0.9, inside > 0.5), text


def gate(records: Records) -> tuple[str, str]:
    chosen = [r for e in ("advection", "fisher-kpp") for r in records.pick(equation=e, method="hmc")]
    if not chosen:
        return NOT_RUN
    passed = sum(r["status"] == "converged" for r in chosen)
    worst = max(r["trace"].get("rhat", np.inf) for r in chosen)
    least = min(r["trace"].get("ess", 0.0) for r in chosen)
    answer = "yes" if passed == len(chosen) else "partly"
    return answer, f"{passed} of {len(chosen)} run here; largest R-hat {worst:.3f}, smallest bulk ESS {least:.0f}"


def vi_advection(records: Records) -> tuple[str, str]:
    both = pairs(records, "advection", "vi", "hmc")
    if not both:
        return NOT_RUN
    parts: list[str] = []
    low: list[bool] = []
    high: list[bool] = []
    for name in cells_of(r for r, _ in both):
        speed_ = next(r["spec"]["physics"]["b"] for r, _ in both if cell(r) == name)
        middle = float(np.median([std_ratio(a, b) for a, b in both if cell(a) == name]))
        parts.append(f"{name}: {middle:.2f}")
        if speed_ <= 0.4:
            low.append(middle < 1.0)
        elif speed_ >= 2.0:
            high.append(middle > 1.0)
    answer = verdict(*low, *high) if high else ("partly" if all(low) else "no")
    return answer, "VI : HMC " + ", ".join(parts) + ("" if high else " (b >= 2 not run)")


def vi_fisher(records: Records) -> tuple[str, str]:
    chosen = records.pick(equation="fisher-kpp", method="vi")
    ratios = [std_ratio(a, b) for a, b in pairs(records, "fisher-kpp", "vi", "hmc")]
    if not chosen or not ratios:
        return NOT_RUN
    unfinished = sum(r["status"] != "converged" for r in chosen)
    text = f"{unfinished} of {len(chosen)} stop at the budget; std ratio to HMC {min(ratios):.2f}..{max(ratios):.0f}"
    return verdict(unfinished > len(chosen) / 2, max(ratios) > 10.0), text


def sgd_collapse(records: Records) -> tuple[str, str]:
    def strong(record: Record) -> bool:
        physics = record["spec"]["physics"]
        return physics["rho"] == 10.0 and physics["nu"] >= 1.0

    chosen = records.pick(strong, equation="fisher-kpp", method="sgd")
    if not chosen:
        return NOT_RUN
    lost = sum(collapsed(r) for r in chosen)
    return verdict(lost > len(chosen) / 2, lost > 0), f"{lost} of {len(chosen)} runs"


def data_only(records: Records) -> tuple[str, str]:
    def error(record: Record, times: slice) -> float:
        coarse = record["results"]["coarse"]
        return float(np.sqrt(np.mean((np.array(coarse["mean"])[times] - np.array(coarse["exact"])[times]) ** 2)))

    ratios = []
    for equation in ("advection", "fisher-kpp"):
        for r in records.pick(equation=equation, method="mean-field", options={"schedule": "data"}):
            ratios.append(error(r, slice(-1, None)) / error(r, slice(0, 1)))
    if not ratios:
        return NOT_RUN
    return verdict(
        float(np.median(ratios)) > 3.0
    ), f"error at the end : at t = 0, median {np.median(ratios):.1f} ({len(ratios)} runs)"


def noise_sweep(records: Records) -> tuple[str, str]:
    by_noise: dict[float, list[float]] = {}
    lost = []
    for noise in NOISES:
        for r in ablation(records, "advection", "residual_noise", noise, 0.05):
            by_noise.setdefault(noise, []).append(r["results"]["exact"]["rmse"])
            if collapsed(r) or r["status"] == "diverged":
                lost.append(f"{cell(r)}, eps_C = {noise:g}")
    if len(by_noise) < 3:
        return NOT_RUN
    mean = {noise: float(np.mean(values)) for noise, values in sorted(by_noise.items())}
    large, middle = mean[max(mean)], mean.get(0.1, np.nan)
    small = [value for noise, value in mean.items() if 0.01 <= noise <= 0.1]
    text = (
        ", ".join(f"{n:g}: {v:.2e}" for n, v in mean.items())
        + f"; collapsed or diverged: {'; '.join(sorted(set(lost))) or 'none'}"
    )
    seven = any("b = 7, eps_C = 0.005" in item for item in lost)
    return verdict(large > 1.5 * middle, max(small) < 1.5 * min(small), seven), text


def widths(records: Records) -> tuple[str, str]:
    parts, checks = [], []
    by_width = {count: ablation(records, "advection", "width", count, 1) for count in WIDTHS}
    for name in cells_of(by_width[2]):
        errors = [mean_of([r for r in by_width[h] if cell(r) == name], "exact", "relative_l2") for h in WIDTHS]
        parts.append(f"{name}: " + "/".join(f"{e:.3f}" for e in errors))
        value = float(name.rpartition("=")[2])
        checks.append(min(errors[1:]) < errors[0] if value <= 1.0 else max(errors[2:]) > errors[0])
    if not parts:
        return NOT_RUN
    return verdict(*checks), "relative L2 for H = 1/2/3/4, " + ", ".join(parts)


def width_time(records: Records) -> tuple[str, str]:
    ratios = []
    wide, plain = (ablation(records, "advection", "width", count, 1) for count in (4, 1))
    for name in cells_of(wide):
        times = [np.median([r["timings"]["fit"] for r in part if cell(r) == name]) for part in (wide, plain)]
        ratios.append(float(times[0] / times[1]))
    if not ratios:
        return NOT_RUN
    return verdict(
        max(ratios) < 2.0, min(ratios) < 2.0
    ), f"fit time H = 4 : H = 1, {min(ratios):.1f}..{max(ratios):.1f} over speeds"


CLAIMS: Sequence[tuple[str, Callable[[Records], tuple[str, str]]]] = (
    ("training up to 6.6x faster than HMC (advection)", speed("advection", "hmc", "cold", 6.6)),
    ("training up to 13x faster than VI (advection)", speed("advection", "vi", "cold", 13.0)),
    ("training about 4x faster than HMC (Fisher-KPP)", speed("fisher-kpp", "hmc", "cold", 4.0)),
    ("training about 9x faster than VI (Fisher-KPP)", speed("fisher-kpp", "vi", "cold", 9.0)),
    ("inference as fast as VI", as_fast_as_vi),
    ("inference up to 150x faster than HMC (advection)", speed("advection", "hmc", "predict", 150.0)),
    ("inference up to 80x faster than HMC (Fisher-KPP)", speed("fisher-kpp", "hmc", "predict", 80.0)),
    ("continuation about doubles the training time", continuation),
    ("MSE and RMS residual of ours and SGD of the same order (advection)", like_sgd("advection", False)),
    ("ours slightly lower than SGD (Fisher-KPP)", like_sgd("fisher-kpp", True)),
    ("predictive std grows with t at a rate set by b (advection)", std_grows),
    ("predictive std largest where the process is active (Fisher-KPP)", std_where_active),
    ("std ratio to HMC roughly constant within each b (advection)", ratio_by_speed),
    ("std ratio to HMC 0.53-0.96 (Fisher-KPP)", ratio_fisher),
    ("all HMC references pass the gate", gate),
    ("VI underestimates std for b <= 0.4 and overestimates for b >= 2", vi_advection),
    ("VI does not converge on Fisher-KPP and is off by up to two orders of magnitude", vi_fisher),
    ("SGD collapses to u = 0 on most runs at rho = 10, nu >= 1", sgd_collapse),
    ("data-only training fits t = 0 but not the evolution", data_only),
    ("eps_C: error falls down to about 0.1, then flat; collapse at b = 7, eps_C = 0.005", noise_sweep),
    ("width H = 2..4 lowers the error for b <= 1 and degrades it for H >= 3 at larger b", widths),
    ("more width does not substantially raise the training time", width_time),
)  # fmt: skip


def answered(records: Records) -> list[Claim]:
    claims = []
    for text, check in CLAIMS:
        answer, number = check(records)
        claims.append(Claim(text, answer, number))
    return claims


def as_rows(claims: Sequence[Claim]) -> list[list[Any]]:
    return [[claim.text, claim.answer, claim.number] for claim in claims]
