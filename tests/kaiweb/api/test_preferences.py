"""How a user wants to see the dashboard is kept on the server."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

pytestmark = pytest.mark.django_db
PATH = "/api/v1/me/preferences"


@pytest.fixture
def user() -> User:
    return User.objects.create_user("ana", is_superuser=True)


@pytest.fixture
def client(user: User) -> APIClient:
    client = APIClient()
    client.force_login(user)
    return client


def test_a_choice_stays_beside_the_others_and_follows_the_user(
    client: APIClient, user: User
) -> None:
    assert client.get(PATH).json() == {}
    client.patch(PATH, {"memoryUnit": "GiB", "utc": True}, format="json")
    answer = client.patch(PATH, {"hiddenColumns": {"Workloads": ["age"]}}, format="json")
    expected = {"memoryUnit": "GiB", "utc": True, "hiddenColumns": {"Workloads": ["age"]}}
    assert answer.json() == expected
    other_browser = APIClient()
    other_browser.force_login(user)
    assert other_browser.get(PATH).json() == expected


def test_users_have_choices_of_their_own(client: APIClient) -> None:
    client.patch(PATH, {"theme": "dark"}, format="json")
    other = APIClient()
    other.force_login(User.objects.create_user("ben", is_superuser=True))
    assert other.get(PATH).json() == {}


@pytest.mark.parametrize(
    "body",
    [
        {"theme": "pink"},
        {"color": "red"},
        {"hiddenColumns": {"Workloads": ["x" * 65]}},
    ],
)
def test_what_is_no_choice_is_refused(client: APIClient, body: dict[str, object]) -> None:
    answer = client.patch(PATH, body, format="json")
    assert answer.status_code == 422
    assert client.get(PATH).json() == {}
