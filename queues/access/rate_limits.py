"""The header fields RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers): what is allowed, what is left."""

from __future__ import annotations

from dataclasses import dataclass

AT_ONCE = "concurrent-requests"


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """A limit on what one client may do.

    Attributes
    ----------
    unit : what `quota` counts; empty for requests within `window_s`
    window_s : the length of the time window that `quota` is for; 0 if the limit has none
    """

    name: str
    quota: int
    unit: str = ""
    window_s: int = 0

    def headers(self, remaining: int) -> dict[str, str]:
        """Return the fields for a request that was allowed."""
        parts = [f'"{self.name}"', f"q={self.quota}"]
        if self.window_s:
            parts.append(f"w={self.window_s}")
        if self.unit:
            parts.append(f'qu="{self.unit}"')
        return {
            "RateLimit-Policy": ";".join(parts),
            "RateLimit": f'"{self.name}";r={max(0, remaining)}',
        }

    def refusal_headers(self, wait_s: int) -> dict[str, str]:
        """Return the fields for a request that was refused; it may be repeated after `wait_s`."""
        fields = self.headers(0)
        return {
            **fields,
            "RateLimit": f"{fields['RateLimit']};t={wait_s}",
            "Retry-After": str(wait_s),
        }
