/** The API as a page for people: made once, of the route table, with nothing from anywhere else. */
import { IDEMPOTENCY_HEADER, ROUTES, type Route } from '@dsec/protocol';
import { ERROR_CODES } from '@dsec/std';
import Type from 'typebox';

const nothing = Type.Object({}, { additionalProperties: false });

/** Beside the public routes, and not one of them: programs read `/v1/openapi.json`. */
export const DOCS_ROUTE = {
  ...{ method: 'GET', path: '/docs', operationClass: 'none', effect: 'read', home: 'apiserver' },
  ...{ params: nothing, query: nothing, body: { kind: 'none' } },
  summary: 'This API as a page for people.',
  reply: { kind: 'text', status: 200, contentType: 'text/html; charset=utf-8' },
} as const satisfies Route;

export function buildDocsPage(version: string): string {
  const routes = Object.entries(ROUTES as Readonly<Record<string, Route>>);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>DSec API</title>
<style>${STYLE}</style>
</head>
<body>
<h1>DSec API ${escapeHtml(version)}</h1>
<p>Every request but the open ones carries <code>Authorization: Bearer dsec_…</code>. Operations marked
<em>keyed</em> are safe to repeat with the header <code>${IDEMPOTENCY_HEADER}</code>. The same as an OpenAPI
document for programs: <a href="/v1/openapi.json">/v1/openapi.json</a>.</p>
<h2>Operations</h2>
<table>
<tr><th>operation</th><th>request</th><th>scope</th><th>repetition</th><th>what it does</th></tr>
${routes.map(routeRow).join('\n')}
</table>
<h2>Errors</h2>
<p>An error is <code>{"code", "message", "retryable", "remedy", "details"}</code>; programs look at the
code.</p>
<table>
<tr><th>code</th><th>status</th><th>retry</th><th>what to do</th></tr>
${Object.entries(ERROR_CODES).map(errorRow).join('\n')}
</table>
</body>
</html>
`;
}

const STYLE = `
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #8884; padding: .35rem .6rem; text-align: left; vertical-align: top; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) { body { background: #16181c; color: #dde; } a { color: #8bf; } }
`;

function routeRow([id, route]: [string, Route]): string {
  const request = `${route.method} ${route.path}`;
  const cells = [code(id), code(request), code(route.operationClass), escapeHtml(route.effect)];
  return row([...cells, escapeHtml(route.summary)]);
}

function errorRow([name, { status, retryable, remedy }]: [
  string,
  { readonly status: number; readonly retryable: boolean; readonly remedy: string },
]): string {
  return row([code(name), String(status), retryable ? 'yes' : 'no', escapeHtml(remedy)]);
}

const row = (cells: readonly string[]): string =>
  `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
const code = (text: string): string => `<code>${escapeHtml(text)}</code>`;

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}
