"""Long JSON is compressed on the wire, and nothing else is."""

from __future__ import annotations

import gzip
import json

import pytest
from rest_framework.test import APIClient

from kube.resources import QUEUES
from queues.mirror.feed import Mirror
from queues.mirror.kinds import KINDS
from queues.mirror.writer import Writer
from tests.queues.cluster_objects import a_queue, listed

pytestmark = pytest.mark.django_db
TAKES_GZIP = {"HTTP_ACCEPT_ENCODING": "gzip"}


@pytest.fixture
def queues(db: None) -> None:
    queues = [a_queue(f"queue-{number}", number + 1) for number in range(30)]
    Mirror(KINDS, Writer(sleep=lambda _s: None)).consume([listed(QUEUES, *queues)])


def test_a_list_is_compressed_for_clients_that_take_it(client: APIClient, queues: None) -> None:
    plain = client.get("/api/v1/queues")
    packed = client.get("/api/v1/queues", **TAKES_GZIP)
    assert "Content-Encoding" not in plain
    assert packed["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in packed["Vary"]
    assert len(packed.content) < len(plain.content) / 5
    assert json.loads(gzip.decompress(packed.content)) == plain.json()


def test_an_answer_with_an_etag_keeps_its_strong_etag(client: APIClient, queues: None) -> None:
    answer = client.get("/api/v1/queues/queue-1", **TAKES_GZIP)
    assert "Content-Encoding" not in answer
    assert answer["ETag"].startswith('"')


def test_the_page_with_its_csrf_token_is_not_compressed(client: APIClient) -> None:
    answer = client.get("/login", **TAKES_GZIP)
    assert answer.status_code == 200
    assert "Content-Encoding" not in answer
