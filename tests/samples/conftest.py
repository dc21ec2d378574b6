"""One installation per lane for all samples, and a place of its own for each sample file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.samples.lanes import Lane, embedded_lane, real_lane
from tests.samples.place import Place, prepared_place

LANES = {"embedded": embedded_lane, "real": real_lane}


@pytest.fixture(
    scope="session",
    params=[
        pytest.param("embedded", marks=pytest.mark.integration),
        pytest.param("real", marks=[pytest.mark.e2e, pytest.mark.integration]),
    ],
)
def lane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lane]:
    """The running installation; pytest ends one lane before it starts the other."""
    with LANES[request.param](tmp_path_factory.mktemp(request.param)) as running:
        yield running


@pytest.fixture(scope="module")
def place(lane: Lane, request: pytest.FixtureRequest) -> Iterator[Place]:
    """A namespace named after the module (`test_10_jobs` -> `s-10-jobs`), emptied at the end."""
    module = request.module.__name__.rpartition(".")[2]
    name = "s-" + module.removeprefix("test_").replace("_", "-")
    with prepared_place(lane, name) as made:
        yield made
