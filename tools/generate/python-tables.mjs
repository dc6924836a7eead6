/** The tables of the Python SDK: a class for each error code, a row for each route. */

const HEADER = (source) => `# Generated from ${source} by \`npm run generate\`. Do not edit.\n`;

const COLUMNS_MAX = 100;

/** `errors_gen.py`, from the code table of `@dsec/std`. */
export function renderPythonErrors({ ERROR_CODES }) {
  const rows = Object.entries(ERROR_CODES).map(([code, row]) => [className(code), code, row]);
  const classes = rows.map(
    ([name, code, { status, retryable, exitCode, remedy }]) => `class ${name}(DsecError):
    """${remedy}"""

    code = "${code}"
    status = ${status}
    retryable = ${retryable ? 'True' : 'False'}
    exit_code = ${exitCode}
    remedy = ${JSON.stringify(remedy)}
`,
  );
  return `${HEADER('packages/std/src/codes.ts')}
"""A class for each code of docs/reference/errors.md."""

from libdsec._core.error import DsecError


${classes.join('\n\n')}

__all__ = [
${rows
  .map(([name]) => `    "${name}",`)
  .sort()
  .join('\n')}
]

ERROR_CLASSES: dict[str, type[DsecError]] = {
${rows.map(([name, code]) => `    "${code}": ${name},`).join('\n')}
}
`;
}

/** `routes_gen.py`, from the route table of `@dsec/protocol`. */
export function renderPythonRoutes({ ROUTES }) {
  const rows = Object.entries(ROUTES).map(([name, { method, path, effect }]) => {
    const constant = name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
    const line = `${constant} = Route("${name}", "${method}", "${path}", "${effect}")`;
    if (line.length <= COLUMNS_MAX) return line;
    return `${constant} = Route(\n    "${name}", "${method}", "${path}", "${effect}"\n)`;
  });
  return `${HEADER('packages/protocol/src/api')}
"""The operations of the API."""

from libdsec._core.route import Route

${rows.join('\n')}
`;
}

/** `not-found` to `NotFoundError`. */
function className(code) {
  return `${code.replace(/(^|-)([a-z])/g, (_, _hyphen, letter) => letter.toUpperCase())}Error`;
}
