import { sandboxId } from '../names.ts';
import { GradeEvent, GradeRequest } from './grade.ts';
import { jsonBody, lines, none, params, route } from './route.ts';

export const GRADE_ROUTES = {
  gradeSandbox: route({
    ...{ method: 'POST', path: '/v1/sandboxes/{sandboxId}/grade' },
    ...{ home: 'apiserver', operationClass: 'grading', effect: 'idempotent' },
    summary:
      'Grade what a sandbox has under its solution paths, in a new sandbox of the same environment.',
    params: params({ sandboxId }),
    query: none,
    body: jsonBody(GradeRequest),
    reply: lines(GradeEvent),
  }),
} as const;
