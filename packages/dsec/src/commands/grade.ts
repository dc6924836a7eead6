import { readFileSync, statSync } from 'node:fs';
import type { GradeOptions } from '@dsec/libdsec';
import { check, GradeRequest } from '@dsec/protocol';
import { DsecError, MIB } from '@dsec/std';
import { withClient } from '../client/connect.ts';
import type { Invocation } from '../command-line/invocation.ts';
import { printJson, renderTable } from '../output.ts';

const LEFT_SHOWN = 20;

export async function run({ args, json, settings }: Invocation): Promise<void> {
  const [id = '', file = ''] = args;
  const request = readRequest(file);
  await withClient(settings, async (client) => {
    const sandbox = await client.get(id);
    const onStage = (stage: string) => json || process.stderr.write(`${stage}\n`);
    const report = await sandbox.grade({ ...optionsOf(request), onStage });
    if (json) return printJson(report);
    const tests = report.tests.map(({ name, outcome }) => [name, outcome]);
    process.stdout.write(`${renderTable(['TEST', 'OUTCOME'], tests)}\n`);
    for (const { path, reason } of report.left.slice(0, LEFT_SHOWN)) {
      process.stderr.write(`not taken: ${JSON.stringify(path)} (${reason})\n`);
    }
    const trust = report.trusted ? '' : ', not trusted';
    process.stdout.write(`\n${report.passed} of ${report.total} passed${trust}\n`);
  });
}

function readRequest(file: string): GradeRequest {
  if (file !== '-' && statSync(file).size > MIB) {
    throw new DsecError('too-large', `${file}: more than ${MIB} bytes`);
  }
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file === '-' ? 0 : file, 'utf8'));
  } catch (cause) {
    throw new DsecError('invalid-argument', `${file} is not JSON`, { cause });
  }
  return check(GradeRequest, value, 'task') as GradeRequest;
}

const seconds = (ms: number | undefined) => (ms === undefined ? undefined : ms / 1000);

function optionsOf({ timeoutMs, commands, ...rest }: GradeRequest): GradeOptions {
  return {
    ...rest,
    timeout: seconds(timeoutMs),
    commands: commands.map(({ timeoutMs: own, ...command }) => ({
      ...command,
      timeout: seconds(own),
    })),
  };
}
