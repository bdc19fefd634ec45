"""Measure the project's speed against its bars: every module of benchmarks/suite, or those named on the command line.

A module there has `NAME` and `run()`, which returns rows made by `bars.row`. Both sides of a ratio are measured in one
run on one machine, one thread each. Writes results/benchmarks.csv, in which the rows of benchmarks that were not run
stay, and figures/benchmarks.{pdf,png,svg}.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from pathlib import Path
from types import ModuleType

# Before numpy is imported: the ratios are those of single threads.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

SUITE = Path(__file__).parent / "suite"
TABLE, FIGURE = Path("results/benchmarks.csv"), Path("figures/benchmarks")
COLUMNS = ["benchmark", "what", "against", "ratio", "bar", "met", "machine", "note"]


def collect(folder: Path = SUITE) -> dict[str, ModuleType]:
    """Return the benchmarks of a folder by name, in alphabetical order of their files.

    Raises ValueError for a module without NAME or run, or with a name that another one has.
    """
    found: dict[str, ModuleType] = {}
    for path in sorted(folder.glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"benchmark_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for attribute in ("NAME", "run"):
            if not hasattr(module, attribute):
                raise ValueError(f"{path}: a benchmark needs {attribute}")
        if module.NAME in found:
            raise ValueError(f"{path}: the name {module.NAME!r} is taken by {found[module.NAME].__file__}")
        found[module.NAME] = module
    return found


def machine() -> str:
    """Return the number of cores and the processor's model: what the absolute times in the notes belong to."""
    model = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.is_file():
        models = [
            line.split(":", 1)[1].strip() for line in information.read_text().splitlines() if "model name" in line
        ]
        model = models[0] if models else model
    return f"{os.cpu_count()} cores, {model}"


def merge(former, rows: dict[str, list[dict]], where: str):
    """Return the table of all benchmarks: new rows of those that ran (by name), the former table's of the others."""
    import pandas as pd

    kept = [row for row in former.to_dict("records") if row["benchmark"] not in rows]
    new = [{"benchmark": name, **row, "machine": where} for name, part in rows.items() for row in part]
    table = pd.DataFrame(kept + new, columns=COLUMNS)
    return table.sort_values("benchmark", kind="stable").reset_index(drop=True)


def main(names: list[str]) -> int:
    """Run the named benchmarks (all by default) and write table and figure; returns 1 when a bar is missed."""
    import pandas as pd

    from privpost.figures import benchmarks, style
    from privpost.pipeline import store

    known = collect()
    unknown = sorted(set(names) - set(known))
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    rows = {}
    for name in names or known:
        print(f"{name} ...", flush=True)
        rows[name] = known[name].run()
        for row in rows[name]:
            verdict = "met" if row["met"] else "MISSED"
            print(f"  {row['what']} | {row['against']}: {row['ratio']:.3g} ({row['bar']}) {verdict}; {row['note']}")
    former = pd.read_csv(TABLE) if TABLE.is_file() else pd.DataFrame(columns=COLUMNS)
    table = merge(former, rows, machine())
    # Three digits: more would be noise.
    store.write_text(TABLE, table.to_csv(index=False, float_format="%.3g", lineterminator="\n"))
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    with style.context():
        figure = benchmarks.draw({"benchmarks": table})
        for ending in ("pdf", "png", "svg"):
            with store.replacing(FIGURE.with_suffix(f".{ending}")) as temporary:
                style.save(figure, temporary)
        style.close(figure)
    return 0 if all(row["met"] for part in rows.values() for row in part) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
