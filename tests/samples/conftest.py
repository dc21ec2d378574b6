"""One installation per kind of cluster for all samples, and a namespace of its own for each sample file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.samples.installations import (
    Installation,
    embedded_installation,
    real_cluster_installation,
)
from tests.samples.sample import Sample, prepared_sample

INSTALLATIONS = {"embedded": embedded_installation, "real": real_cluster_installation}


@pytest.fixture(
    scope="session",
    params=[
        pytest.param("embedded", marks=pytest.mark.integration),
        pytest.param("real", marks=[pytest.mark.e2e, pytest.mark.integration]),
    ],
)
def installation(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """The running installation; pytest stops one before it starts the other."""
    with INSTALLATIONS[request.param](tmp_path_factory.mktemp(request.param)) as running:
        yield running


@pytest.fixture(scope="module")
def sample(installation: Installation, request: pytest.FixtureRequest) -> Iterator[Sample]:
    """A namespace named after the module (`test_10_jobs` -> `s-10-jobs`), emptied at the end."""
    module = request.module.__name__.rpartition(".")[2]
    name = "s-" + module.removeprefix("test_").replace("_", "-")
    with prepared_sample(installation, name) as prepared:
        yield prepared
