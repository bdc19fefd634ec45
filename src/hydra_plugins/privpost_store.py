"""A Hydra plugin: the sweeper of studies, which need not compose points to check them, as all are known."""

from pathlib import Path

from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper
from omegaconf import OmegaConf


class StudySweeper(Sweeper):
    """Runs every requested point; the study's schema has checked them all before Hydra starts."""

    def setup(self, *, hydra_context, task_function, config):
        plugins = Plugins.instance()
        self.config = config
        # For interpolations such as ${hydra:runtime.choices.study} in the sweep's folder.
        HydraConfig.instance().set_config(config)
        self.launcher = plugins.instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments):
        from privpost.commands import run

        folder = Path(self.config.hydra.sweep.dir)
        folder.mkdir(parents=True, exist_ok=True)
        OmegaConf.save(self.config, folder / "multirun.yaml")
        run.sweep(self.launcher)


node = {"_target_": f"{__name__}.StudySweeper"}
ConfigStore.instance().store(group="hydra/sweeper", name="study", node=node, provider="privpost")
