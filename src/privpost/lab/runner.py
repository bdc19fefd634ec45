"""Running Snakemake: its output in a log, progress on one line, and what failed and why."""

import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from privpost.lab.plan import Plan
from privpost.lab.project import LOGS
from privpost.lab.study import Study
from privpost.progress import Progress

LOG = LOGS / "reproduce.log"

_STEPS = re.compile(r"^(\d+) of (\d+) steps")
_ERROR = re.compile(r"^Error in rule (\S+):")
_FIELD = re.compile(r"^    (output|log): (.*?)(?: \(check log file.*)?$")
# Lines with which Snakemake begins an error that belongs on the terminal.
_SHOWN = ("Logfile ", "WorkflowError", "LockException", "MissingInput", "IncompleteFiles")


@dataclass
class Failure:
    """A job that failed: its rule, what it should have made, and its log."""

    rule: str
    output: list[str] = field(default_factory=list)
    log: str = ""

    @property
    def reason(self) -> str:
        """The error's own words: the first `error:` line of the log, or else its last line."""
        path = Path(self.log)
        lines = (
            [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
            if path.is_file()
            else []
        )
        named = [line.split(":", 1)[1].strip() for line in lines if line.startswith(("error:", "privpost:"))]
        return (named or lines[-1:] or ["the job was stopped before it could say why"])[0]

    def concerns(self, study: Study, plan: Plan) -> bool:
        """Whether this failure keeps a study from being built."""
        if self.rule.startswith("cell"):
            return any(path in plan.by_path and plan.by_path[path].study == study.name for path in self.output)
        step, _, name = self.rule.partition("_")
        if step in ("fetch", "prepare"):
            return name in {cell.dataset for cell in plan.cells[study.name]}
        return name.removesuffix("_partial") == study.identifier

    def __str__(self) -> str:
        what = Path(self.output[0]).stem if self.rule == "cell" and self.output else self.rule.replace("_", " ", 1)
        return f"{what}: {self.reason}" + (f" ({self.log})" if self.log else "")


def snakemake(arguments: list[str]) -> tuple[int, list[Failure]]:
    """Run Snakemake with its output in the log; progress and errors also here. Returns its status and what failed."""
    LOG.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "snakemake", *arguments]
    failures: list[Failure] = []
    show = False
    progress = Progress(sys.stdout)
    with (
        LOG.open("w", encoding="utf-8") as log,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", bufsize=1
        ) as process,
    ):
        try:
            for line in process.stdout:
                log.write(line)
                if steps := _STEPS.match(line):
                    progress.update(int(steps[1]), int(steps[2]))
                if error := _ERROR.match(line):
                    failures.append(Failure(error[1]))
                elif failures and (entry := _FIELD.match(line)):
                    _note(failures[-1], entry[1], entry[2])
                # An error's block and the failed job's log reach the terminal; the rest stays in the log.
                if error or line.startswith(_SHOWN):
                    show = True
                elif line.startswith(("[", "Execute ", "Select ", "Cannot restore")) or steps:
                    show = False
                if show:
                    progress.clear()
                    print(line, end="", flush=True)
        except KeyboardInterrupt:
            # The terminal sent the interrupt to Snakemake too: let it stop its jobs.
            process.wait()
            progress.clear()
            print("Stopped. Finished cells are kept: the same command goes on from here.")
            return 130, failures
        except SystemExit:
            # Only this process was asked to end: Snakemake starts no further job and waits for those that run.
            process.terminate()
            process.wait()
            raise
    progress.clear()
    return process.returncode, failures


def _note(failure: Failure, key: str, value: str) -> None:
    if key == "output" and not failure.output:
        failure.output = [path.removesuffix(" (update)") for path in value.split(", ")]
    elif key == "log" and not failure.log:
        # An executor of a cluster adds its own log.
        failure.log = value.split(", ", maxsplit=1)[0]
