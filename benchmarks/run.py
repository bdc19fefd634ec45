"""Run all or some modules of benchmarks/suite, which measure the project's speed against other software.

Each module has a `NAME`, and a function `run()` that returns rows made by `timing.row`. Both sides of a ratio are
measured in one run on one machine, with one thread each. After each module, results/benchmarks.csv is written. Rows of
modules that were not run stay in the table.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import sys
import time
import traceback
from pathlib import Path
from types import ModuleType

# These are set before numpy is imported, since the ratios are for single threads.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

SUITE = Path(__file__).parent / "suite"
TABLE = Path("results/benchmarks.csv")
COLUMNS = ["benchmark", "what", "against", "ratio", "ours", "theirs", "unit", "machine", "note"]


def collect(folder: Path = SUITE) -> dict[str, ModuleType]:
    """Return the benchmarks of a folder by name. Raise ValueError for a module without `run` or its own `NAME`."""
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
    """Return the number of cores and the processor's model as text."""
    model = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.is_file():
        models = [
            line.split(":", 1)[1].strip() for line in information.read_text().splitlines() if "model name" in line
        ]
        model = models[0] if models else model
    return f"{os.cpu_count()} cores, {model}"


def merge(former, rows: dict[str, list[dict]], where: str):
    """Return one table: new rows for the benchmarks that ran, and the former rows of all others."""
    import pandas as pd

    kept = [row for row in former.to_dict("records") if row["benchmark"] not in rows]
    new = [{"benchmark": name, **row, "machine": where} for name, part in rows.items() for row in part]
    table = pd.DataFrame(kept + new, columns=COLUMNS)
    return table.sort_values("benchmark", kind="stable").reset_index(drop=True)


def main(names: list[str]) -> int:
    """Run the named benchmarks or, without names, all benchmarks, and return the exit status."""
    import pandas as pd

    from privpost.lab import store

    known = collect()
    unknown = sorted(set(names) - set(known))
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    former = pd.read_csv(TABLE) if TABLE.is_file() else pd.DataFrame(columns=COLUMNS)
    former = former[former.benchmark.isin(list(known))]
    rows, failed = {}, []
    for name in names or known:
        start = time.perf_counter()
        print(f"{name} ...", flush=True)
        try:
            rows[name] = known[name].run()
        except Exception:
            traceback.print_exc()
            failed.append(name)
            continue
        for row in rows[name]:
            print(f"  {row['what']} | {row['against']}: {row['ratio']:.3g}; {row['note']}")
        print(f"  ({time.perf_counter() - start:.0f} s)", flush=True)
        table = merge(former, rows, machine())
        # Digits beyond the third would be noise.
        store.write_text(TABLE, table.to_csv(index=False, float_format="%.3g", lineterminator="\n"))
    for name in failed:
        print(f"{name} failed (see above); its former rows stay", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
