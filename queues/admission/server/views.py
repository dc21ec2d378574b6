"""The webhooks as Django views, for installations where a proxy terminates TLS."""

from __future__ import annotations

from functools import cache

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseNotFound
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from queues import cluster
from queues.admission.review import BadReviewError
from queues.admission.routes import ListedTree, Routes
from queues.admission.server.switches import settings_from_environment

JSON = "application/json"


@csrf_exempt
@require_POST
def review(request: HttpRequest) -> HttpResponse:
    """Respond to the AdmissionReview that the API server posts to this path."""
    try:
        answer = _routes().answer(request.path, request.body)
    except BadReviewError as error:
        return HttpResponseBadRequest(str(error), content_type="text/plain")
    if answer is None:
        return HttpResponseNotFound()
    return HttpResponse(answer, content_type=JSON)


@cache
def _routes() -> Routes:
    settings, compares_quotas = settings_from_environment()
    return Routes(
        tree=ListedTree(cluster.gateway()),
        settings=settings,
        compares_quotas=compares_quotas,
    )
