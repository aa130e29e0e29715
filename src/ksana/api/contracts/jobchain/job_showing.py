"""A job as document 001 writes it (§3.2, §4), whichever contract made it."""

from collections.abc import Mapping
from typing import Any

from ksana.api.contracts.jobchain.retries import retry_shown
from ksana.api.times import rfc3339
from ksana.domain.durations import format_duration
from ksana.domain.job import Job
from ksana.domain.job_config import joined_config
from ksana.store.requests import Page


def job_summary(job: Job) -> dict[str, Any]:
    spec = job.spec
    return {
        "jobId": job.key,
        "name": spec.name,
        "description": spec.description,
        "type": spec.type,
        "enabled": spec.enabled,
        "createdAt": rfc3339(job.created_at),
        "updatedAt": rfc3339(job.updated_at),
    }


def job_shown(job: Job) -> dict[str, Any]:
    """The whole job."""
    spec = job.spec
    return {
        **job_summary(job),
        "configJson": joined_config(spec),
        "timeout": format_duration(spec.timeout),
        "retry": retry_shown(spec.retry),
        "maxConcurrency": spec.max_concurrency,
        "concurrencyPolicy": spec.concurrency.value,
        "recovery": spec.recovery.value,
        "labels": dict(spec.labels),
        "workerQueue": spec.worker_queue,
    }


def jobs_shown(page: Page[Job], more: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """`more`: what else is to be shown of each, by its number."""
    items = [{**job_summary(job), **more.get(job.id, {})} for job in page.items]
    return {"page": page.page, "size": page.size, "total": page.total or 0, "items": items}
