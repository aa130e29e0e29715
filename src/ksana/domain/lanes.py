"""Lanes: what many executions lean on together, and so must not take all the workers of an instance with it."""

from functools import lru_cache
from urllib.parse import urlsplit

from ksana.domain.job import JobSpec

HTTP = "http"


def lane_of(spec: JobSpec) -> str | None:
    """The host that an HTTP job calls; None for any other job, and for one whose host is known only when it is sent."""
    url = spec.config.get("url") if spec.type == HTTP else None
    return _host_of(url) if isinstance(url, str) else None


@lru_cache(maxsize=4_096)
def _host_of(url: str) -> str | None:
    try:
        host = urlsplit(url).netloc.rpartition("@")[2].lower()
    except ValueError:
        return None
    return None if not host or "{" in host else host
