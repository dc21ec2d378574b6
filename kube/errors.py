"""Errors of requests to the API server, and whether a retry can succeed.

Every error names the request it came from. `permanent` is true if a retry cannot succeed. Status codes
follow the Kubernetes API conventions (a `Status` object with a `reason`).
"""

from __future__ import annotations


class KubeError(Exception):
    """Any failure of a request to the API server."""

    permanent: bool = False

    def __init__(self, message: str, *, status: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class BadValueError(ValueError):
    """A value inside an object that cannot be read; the reader sets the object aside and goes on."""


#: The exceptions that reading a bad value may raise: also arithmetic errors, when a float cannot hold an
#: amount, and recursion errors, when a document is nested too deeply.
UNREADABLE = (ValueError, ArithmeticError, RecursionError)


class BadRequestError(KubeError):
    """400: the server could not understand the request."""

    permanent = True


class UnauthorizedError(KubeError):
    """401 after credentials were reloaded once: the process must end, as KAI's scheduler does."""

    permanent = True


class ForbiddenError(KubeError):
    """403: RBAC or an admission webhook refused."""

    permanent = True


class NotFoundError(KubeError):
    """404: the object, or its whole kind, does not exist."""

    permanent = True


class ConflictError(KubeError):
    """409 with reason Conflict: written from a stale resourceVersion, or the pod is bound already."""


class AlreadyExistsError(KubeError):
    """409 with reason AlreadyExists."""

    permanent = True


class GoneError(KubeError):
    """410: the resourceVersion asked for is no longer in the server's history; list again."""


class InvalidError(KubeError):
    """422: the object violates its schema or a validation rule."""

    permanent = True


class TooManyRequestsError(KubeError):
    """429: too many requests; `retry_after_s` is how long to wait."""

    def __init__(self, message: str, *, retry_after_s: float = 1.0) -> None:
        super().__init__(message, status=429, reason="TooManyRequests")
        self.retry_after_s = retry_after_s


class DisruptionBudgetError(TooManyRequestsError):
    """429: a disruption budget does not allow the eviction now; `budget_text` names it."""

    def __init__(self, message: str, *, budget_text: str, retry_after_s: float = 1.0) -> None:
        super().__init__(message, retry_after_s=retry_after_s)
        self.budget_text = budget_text


class UnreadableError(KubeError):
    """The server answered with an object that cannot be read."""

    permanent = True


class ServerError(KubeError):
    """5xx, or no answer at all (connection refused, reset, timed out)."""


_BY_STATUS: dict[int, type[KubeError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    405: BadRequestError,
    406: BadRequestError,
    410: GoneError,
    415: BadRequestError,
    422: InvalidError,
}


#: Reason of the cause in a refusal because of a disruption budget.
DISRUPTION_BUDGET = "DisruptionBudget"


def error_of(
    status: int, reason: str, message: str, *, retry_after_s: float = 0.0, budget_text: str = ""
) -> KubeError:
    """Return the error of an API server's refusal.

    Parameters
    ----------
    status, reason : the HTTP status code, and the reason of the `Status` object
    retry_after_s : the pause that the server asks for; 0 if it names none
    budget_text : which disruption budget forbids the eviction; empty if none does
    """
    if status == 409 and reason == "AlreadyExists":
        return AlreadyExistsError(message, status=status, reason=reason)
    if status == 409:
        return ConflictError(message, status=status, reason=reason)
    if status == 429 and budget_text:
        return DisruptionBudgetError(
            message, budget_text=budget_text, retry_after_s=retry_after_s or 1.0
        )
    if status == 429:
        return TooManyRequestsError(message, retry_after_s=retry_after_s or 1.0)
    kind = _BY_STATUS.get(status, ServerError if status >= 500 else KubeError)
    return kind(message, status=status, reason=reason)
