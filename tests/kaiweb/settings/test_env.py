"""The environment: parsed once, and a bad value names itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kaiweb.settings import env
from kaiweb.settings.celery import beat_schedule, shard_queue


def test_an_empty_variable_is_an_unset_one() -> None:
    assert env.text("A", "x", env={"A": ""}) == "x"
    assert env.number("A", 3, env={"A": ""}) == 3
    assert env.words("A", "a, b,", env={}) == ["a", "b"]


@pytest.mark.parametrize(
    ("raw", "value"), [("1", True), ("Yes", True), ("0", False), ("off", False), ("", False)]
)
def test_flags(raw: str, value: bool) -> None:
    assert env.flag("A", not value, env={"A": raw}) is value


def test_a_bad_flag_or_number_names_the_variable() -> None:
    with pytest.raises(env.EnvError, match="DEMO: expected one of 1, 0, true, false, got 'maybe'"):
        env.flag("DEMO", True, env={"DEMO": "maybe"})
    with pytest.raises(env.EnvError, match="PORT: expected a whole number >= 0, got '-1'"):
        env.number("PORT", 1, env={"PORT": "-1"})


def test_sqlite_is_the_default_and_takes_the_write_lock_at_once() -> None:
    entry = env.database("", sqlite_file=Path("/data/db.sqlite3"))
    assert (entry["ENGINE"], entry["NAME"]) == ("django.db.backends.sqlite3", "/data/db.sqlite3")
    assert entry["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert entry["OPTIONS"]["timeout"] == 20
    assert "journal_mode=WAL" in entry["OPTIONS"]["init_command"]


def test_a_postgres_url_is_taken_apart() -> None:
    url = "postgresql://kai:p%40ss@db.example:5433/kaiweb?sslmode=require"
    entry = env.database(url, sqlite_file=Path("x"))
    assert entry["ENGINE"] == "django.db.backends.postgresql"
    picked = [entry[key] for key in ("NAME", "USER", "PASSWORD", "HOST", "PORT")]
    assert picked == ["kaiweb", "kai", "p@ss", "db.example", "5433"]
    assert entry["OPTIONS"] == {"connect_timeout": "10", "sslmode": "require"}


@pytest.mark.parametrize("url", ["mysql://h/db", "postgresql://h/", "nonsense"])
def test_another_database_is_refused(url: str) -> None:
    with pytest.raises(env.EnvError, match="DATABASE_URL: expected"):
        env.database(url, sqlite_file=Path("x"))


def test_each_shard_has_a_tick_that_is_worthless_after_the_next() -> None:
    schedule = beat_schedule(["default", "a100"], tick_s=1.0)
    tick = schedule["cycle-a100"]
    assert (tick["task"], tick["args"], tick["schedule"]) == (
        "scheduler.tasks.run_cycle",
        ["a100"],
        1.0,
    )
    assert tick["options"] == {"queue": shard_queue("a100"), "expires": 1.0}
    assert set(schedule) == {
        "cycle-default", "cycle-a100", "settle-change-sets", "settle-changes", "sweep-bind-requests", "trim-history",
        "trim-live-log", "sample-usage", "close-usage-days", "read-utilisation", "collect-notifications",
        "deliver-notifications",
    }  # fmt: skip


def test_every_variable_of_the_product_is_in_the_documentation() -> None:
    checkout = Path(__file__).resolve().parents[3]
    packages = ("kaiweb", "frontend", "scheduler", "binder", "queues", "kube", "sandbox")
    files = [file for package in packages for file in (checkout / package).rglob("*.py")]
    read = {
        name
        for file in files
        if "node_modules" not in file.parts
        for name in re.findall(r'"(KAIWEB_[A-Z_]+|REDIS_URL|DATABASE_URL|DEMO)"', file.read_text())
    }
    page = (checkout / "docs" / "operations" / "environment.md").read_text()
    assert "KAIWEB_PORT" in read
    assert sorted(name for name in read if f"`{name}`" not in page) == []


def test_prices_are_read_by_model_and_a_wrong_one_is_named() -> None:
    assert env.prices("P", env={"P": "NVIDIA-H100=2.5, *=1"}) == {"NVIDIA-H100": 2.5, "*": 1.0}
    assert env.prices("P", env={}) == {}
    for raw in ("H100", "=2", "H100=-1", "H100=nan", "H100=cheap"):
        with pytest.raises(
            env.EnvError, match=f"P: expected MODEL=PRICE separated by commas, got '{raw}'"
        ):
            env.prices("P", env={"P": raw})
