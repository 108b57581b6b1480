"""The longer studies, one after another, as tables in benchmarks/results/: hours, so a second call resumes.

    python benchmarks/long.py [STUDY ...]      calibration, steep, intervals, classical; all: `make check-long`

Finished parts are kept in benchmarks/results/.parts/, in a folder per state of src: changed code starts over. The
registry of coverage writes its own page, calibration.md.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PROBLEMS = ("reaction-coefficient", "wave-speed", "fisher-kpp-rates", "reaction-inverse")
REGISTRY = ["calibrate", "--all", "--records", "benchmarks/results/.parts/calibration"]
STUDIES: dict[str, list[list[str]]] = {  # parts, each one call of Python
    "steep": [["benchmarks/steep.py"]],
    "intervals": [["benchmarks/gallery.py", "intervals", name, "--draws", "100"] for name in PROBLEMS],
    "classical": [["benchmarks/classical.py", name, "--draws", "20"] for name in (*PROBLEMS, "hare-lynx")],
}


def made(part: list[str], file: Path) -> str:
    """What a part prints; a killed one leaves no file, so that it is run again."""
    if not file.exists():
        done = subprocess.run([sys.executable, *part], cwd=HERE.parent, stdout=subprocess.PIPE, text=True, check=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_suffix(".part").write_text(done.stdout)
        file.with_suffix(".part").rename(file)
    return file.read_text()


def main() -> None:
    sources = [path.read_bytes() for path in sorted((HERE.parent / "src").rglob("*.py"))]
    state = hashlib.sha256(b"".join(sources)).hexdigest()[:12]
    describe = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(describe, cwd=HERE, capture_output=True, text=True).stdout.strip() or "unknown"
    for study in sys.argv[1:] or ("calibration", *STUDIES):
        if study == "calibration":
            page = ["--out", "benchmarks/results/calibration.md"]
            subprocess.run([sys.executable, "-m", "factorfield", *REGISTRY, *page], cwd=HERE.parent, check=True)
            continue
        lines = [f"# {study}, at commit {commit}"]
        for index, part in enumerate(STUDIES[study]):
            text = made(part, RESULTS / ".parts" / state / f"{study}-{index}.txt")
            lines += ["", f"    python {' '.join(part)}", "", text.rstrip()]
        (RESULTS / f"long-{study}.md").write_text("\n".join(lines) + "\n")
        print(f"{RESULTS / f'long-{study}.md'} written", flush=True)


if __name__ == "__main__":
    main()
