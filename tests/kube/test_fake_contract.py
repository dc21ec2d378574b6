"""The fake gateway keeps the contract of the real one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fakes.gateway import FakeGateway
from tests.kube.contract import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_fake_gateway_meets_the_contract(check: Callable[[FakeGateway, str], None]) -> None:
    check(FakeGateway(), "contract")
