# For type checkers and editors: at run time a class is imported when it is first asked for.
from privpost.mechanisms import *  # noqa: F403
from privpost.models import *  # noqa: F403
from privpost.privacy.accounting import Cost as Cost
from privpost.privacy.ledger import Ledger as Ledger
from privpost.privacy.ledger import Release as Release

__version__: str
