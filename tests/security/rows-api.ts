/** Rows about callers of the API, and about what an attack may cost others; they need no container. */
import type { Row } from './rows.ts';

const API = 'tests/security/api.test.ts';

export const API_ROWS: readonly Row[] = [
  {
    ...{ id: 71, name: 'audit-flood', expected: "another's event arrives; loss is counted" },
    shownBy: API,
  },
  {
    ...{ id: 86, name: 'relay-ssrf', expected: 'loopback of the sandbox only' },
    shownBy: API,
  },
  {
    ...{ id: 87, name: 'preview-origin', expected: 'no page of a sandbox, no key for a page' },
    shownBy: API,
  },
  {
    ...{ id: 88, name: 'ticket-replay', expected: '401 each' },
    shownBy: 'tests/integration/edge-http-hostile.test.ts',
  },
  {
    ...{ id: 89, name: 'idem-cross', expected: "own result, 409 or a wait; never another's" },
    shownBy: API,
  },
  { ...{ id: 91, name: 'id-host', expected: '404, and nobody is dialled' }, shownBy: API },
  { ...{ id: 92, name: 'path-names', expected: '400' }, shownBy: API },
  {
    ...{ id: 110, name: 'agent-key', expected: 'sandboxes of its own alone' },
    shownBy: API,
  },
  {
    ...{ id: 115, name: 'agent-caller', expected: 'the API from inside, and nothing else' },
    shownBy: 'tests/security/agent-caller.test.ts',
  },
  {
    ...{ id: 111, name: 'rate-flood', expected: 'refused, and others are not' },
    shownBy: API,
  },
  { ...{ id: 112, name: 'key-stolen', expected: 'of no use at once' }, shownBy: API },
  {
    ...{ id: 113, name: 'tls-old', expected: 'nothing below 1.2, nothing in the clear' },
    shownBy: 'packages/transport/test/tls-files.test.ts',
  },
  {
    ...{ id: 114, name: 'tamper', expected: 'told, whatever way a watched path is changed' },
    shownBy: 'tests/security/tamper.test.ts',
  },
];
