"""Tokens of ServiceAccounts are for an audience: who accepts them, and what a TokenReview says."""

from __future__ import annotations

from typing import Any

from tests.contract.api import Api

ACCOUNTS = "/api/v1/namespaces/{ns}/serviceaccounts"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
PAGE = "https://kaiweb.example.com"


def token_of(api: Api, **spec: Any) -> str:
    api.post(ACCOUNTS, {"metadata": {"name": "kaiweb"}})
    body = api.post(f"{ACCOUNTS}/kaiweb/token", {"spec": spec}).ok(201)
    token: str = body["status"]["token"]
    return token


def review(api: Api, token: str, *audiences: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"token": token}
    if audiences:
        spec["audiences"] = list(audiences)
    status: dict[str, Any] = api.post(REVIEWS, {"spec": spec}).ok(201)["status"]
    return status


def test_a_token_for_an_audience_is_known_to_a_review_that_names_it(api: Api) -> None:
    token = token_of(api, audiences=[PAGE], expirationSeconds=600)

    status = review(api, token, "https://other.example.com", PAGE)

    assert (status["authenticated"], status["audiences"]) == (True, [PAGE])
    assert status["user"]["username"] == f"system:serviceaccount:{api.namespace}:kaiweb"
    assert f"system:serviceaccounts:{api.namespace}" in status["user"]["groups"]


def test_a_token_for_an_audience_is_good_for_nobody_else(api: Api) -> None:
    token = token_of(api, audiences=[PAGE], expirationSeconds=600)

    assert not review(api, token).get("authenticated")
    assert not review(api, token, "https://other.example.com").get("authenticated")
    api.server.tokens = {**api.server.tokens, "narrow": token}
    api.as_user("narrow").get("/api/v1/nodes").refused(401, "Unauthorized")


def test_a_token_for_the_api_server_is_not_for_another_audience(api: Api) -> None:
    token = token_of(api)

    assert not review(api, token, PAGE).get("authenticated")
    assert review(api, token)["authenticated"] is True
