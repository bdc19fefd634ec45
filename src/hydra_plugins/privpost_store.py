"""A Hydra plugin with the sweeper of studies. All points are known and checked before the sweeper starts."""

from pathlib import Path

from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper
from omegaconf import OmegaConf


class StudySweeper(Sweeper):
    """Runs every requested point. The study's schema has checked all points before Hydra starts."""

    def setup(self, *, hydra_context, task_function, config):
        plugins = Plugins.instance()
        self.config = config
        # The name of the sweep's folder may contain interpolations such as ${hydra:runtime.choices.study}.
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
