"""Hydra plugins: a sweeper without a composition per point, and a launcher that computes all cells in one loop."""

from pathlib import Path

from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from omegaconf import OmegaConf


class StudySweeper(Sweeper):
    """Every point that was asked for: the study's schema has checked them all before Hydra starts."""

    def setup(self, *, hydra_context, task_function, config):
        plugins = Plugins.instance()
        self.config = config
        self.launcher = plugins.instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments):
        from privpost.commands import run

        folder = Path(self.config.hydra.sweep.dir)
        folder.mkdir(parents=True, exist_ok=True)
        OmegaConf.save(self.config, folder / "multirun.yaml")
        return run.sweep(self.launcher)


class StoreLauncher(Launcher):
    """All jobs in one loop of one process, without a composition or a folder for each."""

    def setup(self, *, hydra_context, task_function, config):
        # What the jobs share was understood before Hydra started.
        self.config = config

    def launch(self, job_overrides, initial_job_idx):
        from privpost.commands import run

        # Where the sweeper writes what it found.
        Path(self.config.hydra.sweep.dir).mkdir(parents=True, exist_ok=True)
        jobs = list(map(list, job_overrides))
        return [
            JobReturn(overrides=job, _return_value=value, status=JobStatus.COMPLETED)
            for job, value in zip(jobs, run.launch(jobs), strict=True)
        ]


for group, name, plugin in (("launcher", "store", StoreLauncher), ("sweeper", "study", StudySweeper)):
    target = f"{plugin.__module__}.{plugin.__name__}"
    ConfigStore.instance().store(group=f"hydra/{group}", name=name, node={"_target_": target}, provider="privpost")
