"""Several cells a job: the same tables as one cell a job, and a failing cell costs no other."""

from __future__ import annotations

import base64

QUICK = "geumlek2017/rdp_curves"
CONFIG = ("--config", "scale=smoke", f"studies={QUICK}")


def test_batches_of_any_size_give_the_same_tables(clone, _smoke):
    output = clone.run("snakemake", "tables", "--cores", "1", *CONFIG, "batch=5")
    assert "Compute geumlek2017/rdp_curves, cells 1 of 1" in output
    built = clone.contents("build/smoke")
    expected = _smoke.contents("build/smoke")
    assert f"build/smoke/{QUICK}.csv" in built
    assert built == {name: expected[name] for name in built}
    # What one way of batching has stored, another finds done.
    output = clone.run("snakemake", "tables", "--cores", "1", *CONFIG)
    assert "Nothing to be done" in output


def test_after_a_failure_the_profile_of_clusters_keeps_the_batchs_other_cells(clone):
    module, line = f"src/privpost/experiments/{QUICK}/study.py", "    epsilon = np.full"
    failing = f'    if config.coefficient == 0.5:\n        raise RuntimeError("no curve today")\n{line}'
    clone.edit(module, line, failing)
    # The cluster's own profile, with jobs on this computer.
    local = ("--workflow-profile", "profiles/slurm", "--executor", "local", "--cores", "1", "--retries", "0")
    output = clone.run("snakemake", "tables", *local, *CONFIG, status=1)
    assert "privpost: 0.5: RuntimeError: no curve today" in output
    (stored,) = (clone / "build/smoke/cells" / QUICK).glob("*.npz")
    before = stored.read_bytes()
    clone.edit(module, failing, line)
    clone.run("snakemake", "tables", *local, *CONFIG)
    # The record in the file says when it was computed: it is the same file.
    assert stored.read_bytes() == before
    assert (clone / f"build/smoke/{QUICK}.csv").is_file()


def test_cells_of_a_killed_batch_are_kept_by_a_rebuild_without_batches(smoke):
    """A killed batch leaves all of its cells marked as incomplete, also those that it had stored."""
    found = sorted((smoke / "build/smoke/cells" / QUICK).glob("*.npz"))
    for path in found:
        name = base64.b64encode(str(path.relative_to(smoke.folder)).encode()).decode()
        (smoke / ".snakemake/incomplete" / name).touch()
    # A record says when its cell was computed: equal bytes are of the same computation.
    before = [path.read_bytes() for path in found]
    output = smoke.snakemake("--rerun-incomplete")
    assert output.count("Compute geumlek2017/rdp_curves") == len(found)
    assert [path.read_bytes() for path in found] == before
