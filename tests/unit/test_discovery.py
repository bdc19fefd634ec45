"""The package discovers mechanisms by the place of their files."""

import inspect
import subprocess
import sys

import pytest

from privpost import discovery, mechanisms
from privpost.mechanisms import (
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    PosteriorDraw,
)
from privpost.mechanisms.base import Mechanism

CLASSES = [kind.mechanism for kind in discovery.kinds()]


def steps_below(kind):
    """How many classes of mechanisms stand one above the other, Mechanism itself not counted."""
    return (
        0 if kind is Mechanism else 1 + max(steps_below(base) for base in kind.__bases__ if issubclass(base, Mechanism))
    )


def test_discovery_finds_the_shipped_mechanisms():
    found = {method: [kind.mechanism for kind in kinds] for method, kinds in discovery.mechanisms().items()}
    assert LaplaceMechanism in found["laplace"]
    assert GaussianMechanism in found["gaussian"]
    assert ExponentialMechanism in found["ops"]
    assert all(PosteriorDraw in found[weighting] for weighting in PosteriorDraw.weightings)
    assert not any(inspect.isabstract(mechanism) for mechanism in CLASSES)
    assert all(issubclass(mechanism, Mechanism) for mechanism in CLASSES)
    assert max(map(steps_below, CLASSES)) <= 4
    with pytest.raises(AttributeError, match="no attribute 'NoSuchMechanism'"):
        _ = mechanisms.NoSuchMechanism


NEW_MODULE = "privpost.mechanisms.new_mechanism"
NEW_MECHANISM = """
from dataclasses import dataclass
from privpost.mechanisms.laplace import LaplaceMechanism

@dataclass(frozen=True)
class NewMechanism(LaplaceMechanism):
    method = "new"
"""


@pytest.mark.parametrize("place", ["new_mechanism", "of_mine.new_mechanism", "of_mine.and_others.new_mechanism"])
def test_a_new_file_is_a_new_mechanism_in_whichever_folder(tmp_path, monkeypatch, place):
    path = tmp_path.joinpath(*place.split(".")).with_suffix(".py")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(NEW_MECHANISM)
    monkeypatch.setattr(mechanisms, "__path__", [*mechanisms.__path__, str(tmp_path)])
    assert [kind.name for kind in discovery.mechanisms()["new"]] == ["NewMechanism"]
    assert mechanisms.NewMechanism.method == "new"
    assert mechanisms.NewMechanism.__module__ == f"privpost.mechanisms.{place}"
    for name in [name for name in sys.modules if name.startswith(("privpost.mechanisms.of_mine", NEW_MODULE))]:
        monkeypatch.delitem(sys.modules, name)


def test_the_order_is_that_of_the_files_names_in_whichever_folder():
    files = [kind.__module__.rpartition(".")[2] for kind in CLASSES]
    assert files == sorted(files)


def test_importing_one_mechanism_leaves_the_others_alone():
    code = "import sys; import privpost.mechanisms.exponential; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "privpost.mechanisms.exponential" in loaded
    assert not {"privpost.mechanisms.gaussian", "scipy.stats", "pandas", "matplotlib"} & set(loaded)
