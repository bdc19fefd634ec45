"""The models that a release can have. All statistics are whole numbers, so that the noise can be discrete."""

from privpost.release.models.base import Kind
from privpost.release.models.bayesian_network import Network
from privpost.release.models.beta_bernoulli import Bits
from privpost.release.models.dirichlet_categorical import Categories
from privpost.release.models.gamma_exponential import Exponential
from privpost.release.models.linear_regression import Linear
from privpost.release.models.logistic_regression import Logistic
from privpost.release.models.naive_bayes import NaiveBayes
from privpost.release.models.normal_known_variance import Normal
from privpost.release.models.numeric import Sum

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (Bits(), Categories(), Network(), NaiveBayes(), Sum(), Exponential(), Normal(), Linear(), Logistic())
}
