from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
import uvicorn

from kaiweb.management.commands.serve import Server


def test_what_was_loaded_at_the_start_is_not_collected_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def nothing(*_arguments: Any) -> None:
        pass

    monkeypatch.setattr(uvicorn.Server, "startup", nothing)
    gc.unfreeze()
    try:
        asyncio.run(Server(uvicorn.Config("kaiweb.asgi:application", log_config=None)).startup())
        assert gc.get_freeze_count() > 10_000
    finally:
        gc.unfreeze()
