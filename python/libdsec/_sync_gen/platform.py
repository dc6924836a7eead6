# Generated from python/libdsec/_async/platform.py by `npm run generate`. Do not edit.

"""Keys and jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from libdsec import models_gen as models
from libdsec import routes_gen as routes
from libdsec._sync_gen.transport import Transport
from libdsec._core.request import Request, build_request
from libdsec._core.route import Route
from libdsec._core.spec import as_model, milliseconds


class Keys:
    """API keys of the project."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        name: str,
        scopes: Sequence[str],
        *,
        lifetime: float | None = None,
        principal: str | None = None,
        project: str | None = None,
    ) -> models.KeyCreated:
        """Creates a key. Its `secret` is told this once.

        `scopes`: what it allows, such as `sandboxes:read`, `exec`. `lifetime`: seconds; without end, where absent.
        """
        lifetime_ms = None if lifetime is None else milliseconds(lifetime)
        fields = {"name": name, "scopes": [*scopes], "lifetime_ms": lifetime_ms}
        body = as_model(models.KeyCreate, {**fields, "principal": principal, "project": project})
        request = build_request(routes.CREATE_KEY, body=body)
        return self._transport.call(models.KeyCreated, request)

    def list(self) -> Iterator[models.Key]:
        """All keys, without their secrets."""

        def request_of(cursor: str | None) -> Request:
            return build_request(routes.LIST_KEYS, query={"cursor": cursor})

        for page in self._transport.pages(models.KeyPage, request_of):
            for key in page.keys:
                yield key

    def revoke(self, key_id: str) -> None:
        """Makes a key invalid at once."""
        self._transport.run(build_request(routes.REVOKE_KEY, {"keyId": key_id}))


class Jobs:
    """The sandboxes that carry one job label, as one."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[models.Job]:
        """All jobs, by name."""

        def request_of(cursor: str | None) -> Request:
            return build_request(routes.LIST_JOBS, query={"cursor": cursor})

        for page in self._transport.pages(models.JobPage, request_of):
            for job in page.jobs:
                yield job

    def get(self, job: str) -> models.Job:
        """How many sandboxes a job has, by state."""
        return self._transport.call(models.Job, build_request(routes.GET_JOB, {"jobId": job}))

    def stop(self, job: str, *, timeout: float | None = None) -> models.JobResult:
        """Stops every sandbox of a job. `timeout`: seconds for all of them."""
        return self._act(routes.STOP_JOB, job, timeout)

    def pause(self, job: str, *, timeout: float | None = None) -> models.JobResult:
        """Pauses every sandbox of a job."""
        return self._act(routes.PAUSE_JOB, job, timeout)

    def resume(self, job: str, *, timeout: float | None = None) -> models.JobResult:
        """Resumes every sandbox of a job."""
        return self._act(routes.RESUME_JOB, job, timeout)

    def _act(self, route: Route, job: str, timeout: float | None) -> models.JobResult:
        request = build_request(route, {"jobId": job})
        return self._transport.call(models.JobResult, request, timeout)
