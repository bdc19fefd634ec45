# The public names, for type checkers and editors: at run time a class is imported when it is first asked for.
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli as BetaBernoulli
from privpost.models.conjugate.beta_bits import BetaBits as BetaBits
from privpost.models.conjugate.beta_geometric import BetaGeometric as BetaGeometric
from privpost.models.conjugate.clamped_moments import ClampedMoments as ClampedMoments
from privpost.models.conjugate.dirichlet_categorical import DirichletCategorical as DirichletCategorical
from privpost.models.conjugate.gamma_exponential import GammaExponential as GammaExponential
from privpost.models.conjugate.gamma_pareto import GammaPareto as GammaPareto
from privpost.models.conjugate.gamma_poisson import GammaPoisson as GammaPoisson
from privpost.models.conjugate.normal_known_variance import NormalKnownVariance as NormalKnownVariance
from privpost.models.conjugate.normal_unknown_variance import NormalUnknownVariance as NormalUnknownVariance
from privpost.models.events import EventCounts as EventCounts
from privpost.models.networks.bayesian_network import BayesianNetwork as BayesianNetwork
from privpost.models.regression.binary import BinaryRegression as BinaryRegression
from privpost.models.regression.linear import LinearRegression as LinearRegression
from privpost.models.regression.link import LinkRegression as LinkRegression
from privpost.models.regression.normal import NormalRegression as NormalRegression
