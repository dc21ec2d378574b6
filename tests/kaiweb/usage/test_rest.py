"""History and usage over REST: reports with pages and tables, series, and who may see what."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from kaiweb.api.http import tables
from kaiweb.usage.models import GpuPrice, PriceCurrency, WorkloadEvent
from queues.models import Role, RoleBinding
from tests.kaiweb.api.conftest import token_client
from tests.kaiweb.usage.conftest import MIDNIGHT, MODEL, hold, wait_for

pytestmark = pytest.mark.django_db
SampleAt = Callable[[float], bool]
#: Five minutes after midnight; the samples of these tests are older.
NOW = MIDNIGHT + timedelta(minutes=5)
FROM = "from=2026-11-30T00:00:00Z"


@pytest.fixture(autouse=True)
def minutes(sample_at: SampleAt, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three minutes in which ada holds 12 GPUs of team, bob 2 of lab, and cleo waits for 4."""
    hold("team", "ada", 12)
    hold("lab", "bob", 2)
    wait_for("lab", "cleo", 4)
    for seconds in range(0, 181, 20):
        sample_at(seconds)
    monkeypatch.setattr("kaiweb.api.http.periods.timezone.now", lambda: NOW)


@pytest.fixture
def viewer(db: None) -> APIClient:
    return token_client(User.objects.create_user("vera"), ["read"], now=datetime.now().astimezone())


@pytest.fixture
def lab_editor(db: None) -> APIClient:
    user = User.objects.create_user("emmy")
    RoleBinding.objects.create(user=user, role=Role.EDITOR, subtree="lab")
    return token_client(user, ["read"], now=datetime.now().astimezone())


def get(client: APIClient, path: str, status: int = 200) -> Any:
    response = client.get(f"/api/v1{path}")
    assert response.status_code == status, response.content
    return response.json()


def test_a_report_by_queue_has_parents_and_totals_of_the_work(viewer: APIClient) -> None:
    body = get(viewer, f"/usage?{FROM}")
    rows = {row.pop("key"): row for row in body["items"]}
    assert list(rows) == ["dept", "team", "lab"]
    assert rows["team"] == {
        "gpuHours": 0.6, "inQuotaHours": 0.4, "overQuotaHours": 0.2, "waitingHours": 0,
        "allocatedButIdleHours": None, "utilisationUnknownHours": 0.6, "cost": None,
    }  # fmt: skip
    assert rows["dept"]["inQuotaHours"] == 0.6
    assert body["total"]["gpuHours"] == 0.7
    assert body["total"]["waitingHours"] == 0.2
    assert body["cluster"] == {
        "capacityHours": 0.8, "allocatedHours": 0.6, "idleHours": 0.2, "allocatedButIdleHours": None,
        "utilisationUnknownHours": 0.6,
    }  # fmt: skip
    assert (body["by"], body["from"], body["coveredSeconds"]) == (
        "queue",
        "2026-11-30T00:00:00.000Z",
        180,
    )


def test_cost_follows_the_price_list(viewer: APIClient, settings: Any) -> None:
    settings.KAIWEB_GPU_PRICES = {MODEL: 10.0}
    body = get(viewer, f"/usage?by=owner&{FROM}")
    assert [(row["key"], row["cost"]) for row in body["items"]] == [
        ("ada", 6), ("bob", 1), ("cleo", 0),
    ]  # fmt: skip
    assert (body["total"]["cost"], body["currency"]) == (7, "EUR")
    settings.KAIWEB_GPU_PRICES = {"A100": 1.0}
    assert get(viewer, f"/usage?by=model&{FROM}")["items"][0]["cost"] is None
    settings.KAIWEB_GPU_PRICES = {"A100": 1.0, "*": 2.0}
    assert get(viewer, f"/usage?by=model&{FROM}")["items"][0]["cost"] == 1.4


def test_a_later_price_leaves_the_cost_of_earlier_days(
    viewer: APIClient, settings: Any, monkeypatch: pytest.MonkeyPatch, sample_at: SampleAt
) -> None:
    settings.KAIWEB_GPU_PRICES = {MODEL: 10.0, "A100": 1.0}
    next_day = MIDNIGHT + timedelta(days=1)
    for seconds in range(86_400, 86_581, 20):
        sample_at(seconds)
    monkeypatch.setattr(
        "kaiweb.api.http.periods.timezone.now", lambda: next_day + timedelta(minutes=5)
    )
    assert get(viewer, f"/usage?{FROM}")["total"]["cost"] == 14
    GpuPrice.objects.create(model=MODEL, price=20, valid_from=next_day.date())
    body = get(viewer, f"/usage?by=model&{FROM}")
    assert (body["items"][0]["cost"], body["total"]["cost"]) == (21, 21)
    assert get(viewer, f"/usage?{FROM}&to=2026-12-01T00:00:00Z")["total"]["cost"] == 7
    GpuPrice.objects.create(model="*", price=0, valid_from=next_day.date())
    assert get(viewer, f"/usage?{FROM}")["total"]["cost"] == 21
    PriceCurrency.objects.create(currency="USD")
    assert get(viewer, "/reports/2026-11")["currency"] == "USD"
    csv_answer = viewer.get(f"/api/v1/usage?by=model&format=csv&{FROM}").content.decode()
    assert csv_answer.splitlines()[1].endswith(",21.0")


@pytest.mark.parametrize("sort", ["key", "-key", "-gpuHours", "waitingHours"])
def test_pages_hold_every_row_once(viewer: APIClient, sort: str) -> None:
    path = f"/usage?by=owner&limit=1&count=exact&sort={sort}&{FROM}"
    keys, cursor = [], ""
    for _ in range(3):
        body = get(viewer, path + cursor)
        keys += [row["key"] for row in body["items"]]
        cursor = f"&cursor={body['next']}"
    assert sorted(keys) == ["ada", "bob", "cleo"]
    assert (body["next"], body["count"]) == (None, 3)


def test_a_queue_has_a_report_of_its_users(viewer: APIClient) -> None:
    body = get(viewer, f"/queues/lab/usage?{FROM}")
    assert [(row["key"], row["gpuHours"]) for row in body["items"]] == [("bob", 0.1), ("cleo", 0)]
    assert get(viewer, f"/usage?by=owner&queue=lab&{FROM}")["items"] == body["items"]


def test_a_table_has_all_rows_and_no_formulas(viewer: APIClient, settings: Any) -> None:
    settings.KAIWEB_GPU_PRICES = {MODEL: 10.0}
    response = viewer.get(f"/api/v1/usage?by=owner&limit=1&format=csv&{FROM}")
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert response["Content-Disposition"] == 'attachment; filename="usage-by-owner.csv"'
    rows = list(csv.reader(io.StringIO(response.content.decode())))
    assert rows[0] == [
        "owner", "gpuHours", "inQuotaHours", "overQuotaHours", "waitingHours",
        "allocatedButIdleHours", "utilisationUnknownHours", "cost",
    ]  # fmt: skip
    assert rows[1] == ["ada", "0.6", "0.4", "0.2", "0", "", "0.6", "6.0"]
    assert len(rows) == 4
    body = tables.CsvRenderer().render({"columns": ["owner"], "items": [{"owner": "=1+1"}]})
    assert body == b"owner\r\n'=1+1\r\n"


def test_a_parquet_file_has_the_same_rows(viewer: APIClient) -> None:
    from pyarrow import BufferReader, parquet

    response = viewer.get(f"/api/v1/usage?by=owner&{FROM}", headers={"Accept": tables.ParquetRenderer.media_type})  # fmt: skip
    assert response.status_code == 200
    table = parquet.read_table(BufferReader(response.content))
    assert table.column("owner").to_pylist() == ["ada", "bob", "cleo"]
    assert table.column("gpuHours").to_pylist() == [0.6, 0.1, 0]


def test_parquet_without_its_library_is_a_clear_refusal(
    viewer: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "find_spec", lambda _name: None)
    response = viewer.get(f"/api/v1/usage?format=parquet&{FROM}")
    assert response.status_code == 406
    assert response["Content-Type"] == "application/problem+json"
    assert "kaiweb[parquet]" in response.json()["detail"]


def test_series_of_queues_have_a_number_for_each_step(viewer: APIClient) -> None:
    body = get(viewer, f"/history/queues?queue=lab,team&step=60&fields=allocated,quota&{FROM}")
    assert body["stepSeconds"] == 60
    assert body["times"][:2] == ["2026-11-30T00:00:00.000Z", "2026-11-30T00:01:00.000Z"]
    assert body["coveredSeconds"] == [60, 60, 60, 0, 0]
    assert body["series"] == [
        {"queue": "lab", "allocated": [2, 2, 2, None, None], "quota": [4] * 5},
        {"queue": "team", "allocated": [12, 12, 12, None, None], "quota": [8] * 5},
    ]
    response = viewer.get(f"/api/v1/history/queues?queue=lab&step=60&format=csv&{FROM}")
    assert response.content.decode().splitlines()[1] == "2026-11-30T00:00:00.000Z,lab,60,2,4,0,4,0"


def test_the_history_of_a_queue_has_its_waiting_times(viewer: APIClient) -> None:
    WorkloadEvent.objects.create(kind="start", uid="a", at=MIDNIGHT, queue="lab", waited_s=30)
    WorkloadEvent.objects.create(kind="eviction", uid="a", at=MIDNIGHT, queue="team")
    body = get(viewer, f"/queues/dept/history?{FROM}&step=300")
    assert body["series"][0]["allocated"] == [14]
    assert body["days"] == [
        {
            "day": "2026-11-30", "starts": 1, "evictions": 1,
            "waitedP50Seconds": 30, "waitedP90Seconds": 30, "waitedMaxSeconds": 30,
        }
    ]  # fmt: skip


def test_hours_of_each_step_for_some_queues_and_the_idle_ones_of_the_cluster(
    viewer: APIClient,
) -> None:
    body = get(viewer, f"/history/usage?queue=team&step=86400&{FROM}")
    assert {name: body[name] for name in body if name.endswith("Hours")} == {
        "inQuotaHours": [0.4],
        "overQuotaHours": [0.2],
        "waitingHours": [0],
        "capacityHours": [0.8],
        "idleHours": [0.2],
        "allocatedButIdleHours": [None],
    }


def test_a_caller_with_a_subtree_sees_only_the_use_below_it(lab_editor: APIClient) -> None:
    body = get(lab_editor, f"/usage?{FROM}")
    assert [row["key"] for row in body["items"]] == ["lab"]
    assert body["total"]["gpuHours"] == 0.1
    assert [row["key"] for row in get(lab_editor, f"/usage?by=owner&{FROM}")["items"]] == ["bob", "cleo"]  # fmt: skip
    assert get(lab_editor, f"/history/usage?step=300&{FROM}")["overQuotaHours"] == [0]
    for path in ("/usage?queue=team", "/history/queues?queue=lab,team", "/queues/dept/history", "/queues/team/usage"):  # fmt: skip
        assert "may not see" in get(lab_editor, path, 403)["detail"]
    rows = lab_editor.get(f"/api/v1/usage?by=owner&format=csv&{FROM}").content.decode().splitlines()
    assert [row.split(",")[0] for row in rows] == ["owner", "bob", "cleo"]


def test_a_token_for_a_subtree_sees_only_that(db: None) -> None:
    admin = User.objects.create_superuser("ada")
    client = token_client(admin, ["read"], subtree="team", now=datetime.now().astimezone())
    assert [row["key"] for row in get(client, f"/usage?{FROM}")["items"]] == ["team"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/usage?by=node", 400),
        ("/usage?from=yesterday", 400),
        ("/usage?from=2026-11-30T01:00:00Z", 400),
        ("/usage?step=7", 400),
        ("/usage?cursor=nonsense", 400),
        ("/usage?sort=cost", 400),
        ("/usage?queue=missing", 404),
        ("/history/queues", 400),
        ("/history/queues?queue=lab&fields=colour", 400),
        ("/queues/missing/history", 404),
    ],
)
def test_what_cannot_be_answered_is_refused(viewer: APIClient, path: str, status: int) -> None:
    assert get(viewer, path, status)["status"] == status


def test_months_are_listed_and_the_present_one_is_open(viewer: APIClient) -> None:
    [month] = get(viewer, "/reports")["items"]
    assert (month["month"], month["closed"]) == ("2026-11", False)
    assert (month["from"], month["to"]) == ("2026-11-01T00:00:00.000Z", "2026-12-01T00:00:00.000Z")


def test_an_ended_month_is_closed(viewer: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    later = MIDNIGHT + timedelta(days=40)
    monkeypatch.setattr("kaiweb.api.views.reports.months.timezone.now", lambda: later)
    months = [(item["month"], item["closed"]) for item in get(viewer, "/reports")["items"]]
    assert months == [("2027-01", False), ("2026-12", True), ("2026-11", True)]


def test_the_report_of_a_month_has_what_usage_says_of_it(viewer: APIClient) -> None:
    report = get(viewer, "/reports/2026-11?by=owner")
    usage = get(viewer, "/usage?by=owner&from=2026-11-01T00:00:00Z&to=2026-12-01T00:00:00Z")
    assert [row["key"] for row in report["items"]] == ["ada", "bob", "cleo"]
    assert (report["items"], report["total"]) == (usage["items"], usage["total"])
    answer = viewer.get("/api/v1/reports/2026-11?by=owner&format=csv")
    first = next(csv.DictReader(io.StringIO(answer.content.decode())))
    assert (first["owner"], first["gpuHours"]) == ("ada", "0.6")


@pytest.mark.parametrize("month", ["2026-10", "2026-13", "november", "2026-11-01"])
def test_a_month_without_observations_has_no_report(viewer: APIClient, month: str) -> None:
    get(viewer, f"/reports/{month}", 404)
