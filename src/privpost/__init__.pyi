# The public names, for type checkers and editors: at run time a class is imported when it is first asked for.
from privpost.discovery import serving as serving
from privpost.distributions.noise import SecureNoise as SecureNoise
from privpost.distributions.noise import SimulationNoise as SimulationNoise
from privpost.evaluation.calibration import ks_statistic as ks_statistic
from privpost.evaluation.diagnostics import assess as assess
from privpost.evaluation.mmd import mmd2 as mmd2
from privpost.experiments.results import results as results
from privpost.mechanisms import *  # noqa: F403
from privpost.models import *  # noqa: F403
from privpost.privacy.accounting.composition import compose as compose
from privpost.privacy.accounting.costs import Cost as Cost
from privpost.privacy.ledger.gate import Ledger as Ledger
from privpost.privacy.ledger.gate import Release as Release
from privpost.samplers.noise_aware.draws import NotConverged as NotConverged

__version__: str
