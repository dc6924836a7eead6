# Generated from python/libdsec/_async/platform.py by `npm run generate`. Do not edit.

"""Keys and jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from libdsec import models_gen as models
from libdsec import routes_gen as routes
from libdsec._sync_gen.transport import Transport
from libdsec._core.request import build_request
from libdsec._core.route import Route
from libdsec._core.secret import with_secret
from libdsec._core.spec import as_model


class Keys:
    """API keys of the project."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        name: str,
        scopes: Sequence[str],
        *,
        lifetime_ms: int | None = None,
        principal: str | None = None,
        project: str | None = None,
        limits: models.KeyLimits | Mapping[str, object] | None = None,
        sandbox: str | None = None,
    ) -> models.KeyCreated:
        """Creates a key. Its `secret` is told this once; `SecretLostError` where that answer got lost.

        `scopes`: what it allows, such as `sandboxes:read`, `exec`. `lifetime_ms`: without
        end, where absent. `limits` with `sandbox`, the id of one: a key for the agent in it, which makes
        sandboxes of its own within the limits, reaches nothing else, and ends with that sandbox.
        """
        fields = {"name": name, "scopes": [*scopes], "lifetime_ms": lifetime_ms}
        if limits is not None:
            limits = as_model(models.KeyLimits, limits)
        own = {"principal": principal, "project": project, "limits": limits, "sandbox": sandbox}
        body = as_model(models.KeyCreate, {**fields, **own})
        request = build_request(routes.CREATE_KEY, body=body)
        return with_secret(self._transport.call(models.KeyCreated, request), "made")

    def rotate(self, key_id: str, *, grace_ms: int | None = None) -> models.KeyCreated:
        """Another secret for the key of this client, or for one that comes of it.

        The earlier ones are good for `grace_ms` more, an hour unless it is said; with 0 they end.
        `SecretLostError` as in `create`.
        """
        body = as_model(models.KeyRotate, {"grace_ms": grace_ms})
        request = build_request(routes.ROTATE_KEY, {"keyId": key_id}, body=body)
        return with_secret(self._transport.call(models.KeyCreated, request), "rotated")

    def list(
        self, *, limit: int | None = None, page_size: int | None = None
    ) -> Iterator[models.Key]:
        """All keys, without their secrets. `limit`: the most; `page_size`: asked for at a time."""
        return self._transport.items(
            models.KeyPage,
            lambda page: build_request(routes.LIST_KEYS, query=page),
            lambda page: page.keys,
            limit,
            page_size,
        )

    def revoke(self, key_id: str) -> None:
        """Makes a key invalid at once."""
        self._transport.run(build_request(routes.REVOKE_KEY, {"keyId": key_id}))


class Jobs:
    """The sandboxes that carry one job label, as one."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self, *, limit: int | None = None, page_size: int | None = None
    ) -> Iterator[models.Job]:
        """All jobs, by name. `limit`: the most; `page_size`: asked for at a time."""
        return self._transport.items(
            models.JobPage,
            lambda page: build_request(routes.LIST_JOBS, query=page),
            lambda page: page.jobs,
            limit,
            page_size,
        )

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
