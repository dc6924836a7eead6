/** `docs/reference/errors.md`, from the code table of `@dsec/std`. */
export function renderErrorsPage({ ERROR_CODES, REMEDIES }) {
  const rows = Object.entries(ERROR_CODES).map(
    ([code, { status, retryable, exitCode, remedy }]) =>
      `| \`${code}\` | ${status} | ${retryable ? 'yes' : 'no'} | ${exitCode} | ${remedy} |`,
  );
  const topics = Object.entries(REMEDIES).flatMap(([about, remedies]) =>
    Object.entries(remedies).map(([code, remedy]) => `| \`${about}\` | \`${code}\` | ${remedy} |`),
  );
  return `<!-- Generated from packages/std/src/{codes,remedies}.ts by \`npm run generate\`. Do not edit. -->

# Errors

Every error of DSec has a code; programs decide by the code, never by the message. An HTTP response that
is not a success has this body:

\`\`\`json
{
  "code": "not-found",
  "message": "no sandbox sb-a-b-0123456789abcdef",
  "retryable": false,
  "remedy": "Check the name or id; list what exists with the matching ls command.",
  "details": {}
}
\`\`\`

*Retryable* means that the same request may succeed later without a change. *Exit code* is that of the
command line when it ends with the error; \`dsec run\` and \`dsec exec\` otherwise pass on the exit
code of the command inside.

| Code | HTTP status | Retryable | Exit code | What to do |
|---|---|---|---|---|
${rows.join('\n')}

Where \`details.about\` says what an error is about, \`remedy\` may say more:

| About | Code | What to do |
|---|---|---|
${topics.join('\n')}
`;
}
