"""Grading of what a sandbox has."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from libdsec import models_gen as models
from libdsec import routes_gen as routes
from libdsec._async.transport import AsyncTransport
from libdsec._core.request import build_request
from libdsec._core.retry import Deadline
from libdsec.errors import UnavailableError, error_of_body

# Tests may take long without saying anything.
GRADE_STALL_S = 7 * 3600.0


async def grade_sandbox(
    transport: AsyncTransport,
    params: Mapping[str, str | int],
    body: models.GradeRequest,
    on_stage: Callable[[str], None] | None,
) -> models.GradeReport:
    request = build_request(routes.GRADE_SANDBOX, params, body=body)
    async with transport.open(request, Deadline(None), stall=GRADE_STALL_S) as response:
        async for event in transport.lines(response, models.GradeEvent):
            if event.error is not None:
                raise error_of_body(event.error.model_dump(by_alias=True))
            if event.report is not None:
                return event.report
            if on_stage is not None:
                on_stage(event.stage)
    raise UnavailableError("grading ended without a result")
