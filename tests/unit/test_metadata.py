"""What the project says about itself in several files is the same in all of them."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
import yaml

import privpost


@pytest.fixture
def files(checkout) -> tuple[dict, dict, dict]:
    """The project's table of pyproject.toml, CITATION.cff and .zenodo.json."""
    return (
        tomllib.loads((checkout / "pyproject.toml").read_text())["project"],
        yaml.safe_load((checkout / "CITATION.cff").read_text()),
        json.loads((checkout / ".zenodo.json").read_text()),
    )


def test_the_version_is_one(files, checkout):
    project, citation, zenodo = files
    assert {project["version"], citation["version"], zenodo["version"], privpost.__version__} == {privpost.__version__}
    newest = next(line for line in (checkout / "CHANGELOG.md").read_text().splitlines() if line.startswith("## "))
    assert newest.split()[1] == privpost.__version__


def test_title_keywords_licence_and_papers_are_one(files):
    project, citation, zenodo = files
    assert citation["title"] == zenodo["title"]
    assert project["keywords"] == citation["keywords"] == zenodo["keywords"]
    assert [author["name"] for author in project["authors"]] == [author["name"] for author in citation["authors"]]
    assert [author["name"] for author in zenodo["creators"]] == [author["name"] for author in citation["authors"]]
    assert (project["license"], citation["license"], zenodo["license"]) == ("MIT", "MIT", "mit-license")
    papers = [reference["identifiers"][0]["value"] for reference in citation["references"]]
    assert [related["identifier"] for related in zenodo["related_identifiers"]] == papers
    assert [url.rpartition("/")[2] for url in project["urls"].values()] == [paper[6:] for paper in papers]


def test_the_snakemake_catalogue_finds_what_it_needs(checkout):
    found = yaml.safe_load((checkout / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert found["software-stack-deployment"]["conda"] is True
    assert (checkout / "environment.yml").is_file()
    text = (checkout / "workflow/Snakefile").read_text()
    # The keys of `--config` are described, and no other ones.
    keys = set(re.findall(r'\bconfig(?:\.get\(|\[)"(\w+)"', text))
    assert keys == set(re.findall(r"^\| `(\w+)` \|", (checkout / "config/README.md").read_text(), re.MULTILINE))
    schema = yaml.safe_load((checkout / "workflow/schemas/config.schema.yaml").read_text())
    assert keys == set(schema["properties"]) == set(yaml.safe_load((checkout / "config/config.yaml").read_text()))
    assert found["report"] is True
