import {
  type Answer,
  explainPolicy,
  type Question,
  renderAnswers,
  resolvePolicy,
  STAGES,
  type Stage,
} from '@dsec/policy';
import { DsecError } from '@dsec/std';
import { type Flags, type Invocation, listFlag, textFlag } from '../command-line/invocation.ts';
import { printJson, printLines } from '../output.ts';
import { factsOfHost, readPolicy } from '../policy-source.ts';

export async function run({ args: [source = ''], flags, json }: Invocation): Promise<void> {
  const questions = questionsOf(flags);
  const stage = stageOf(flags);
  const policy = resolvePolicy(readPolicy(source), { ...(stage !== undefined && { stage }) });
  const facts = factsOfHost();
  const answers: readonly Answer[] = questions.flatMap((one) => explainPolicy(policy, facts, one));
  if (json) printJson({ answers });
  else printLines(renderAnswers(answers).split('\n'));
}

function questionsOf(flags: Flags): readonly Question[] {
  const questions: Question[] = [
    ...listFlag(flags, 'path').map((path) => ({ path })),
    ...listFlag(flags, 'socket').map((text) => {
      const [family = '', type = 'stream'] = text.split(':');
      return { socket: { family, type } };
    }),
    ...listFlag(flags, 'syscall').map(syscallOf),
    ...listFlag(flags, 'service').map((service) => ({ service })),
    ...listFlag(flags, 'host').map((host) => hostOf(host, flags)),
    ...listFlag(flags, 'device').map((device) => ({ device })),
    ...listFlag(flags, 'capability').map((capability) => ({ capability })),
  ];
  if (questions.length === 0) throw refuse('what is asked? --path, --host or another option');
  return questions;
}

/** `kill`, or `kill:1,9` with its first arguments. */
function syscallOf(text: string): Question {
  const [syscall = '', list] = text.split(':');
  if (list === undefined) return { syscall };
  const values = list.split(',').map(Number);
  if (!values.every(Number.isSafeInteger))
    throw refuse(`--syscall ${text}: numbers after the colon`);
  return { syscall, arguments: values };
}

function hostOf(host: string, flags: Flags): Question {
  const [portText, protocol] = [textFlag(flags, 'port'), textFlag(flags, 'protocol')];
  const port = portText === undefined ? undefined : Number(portText);
  if (port !== undefined && !(Number.isInteger(port) && port >= 1 && port <= 65_535)) {
    throw refuse('--port: a number from 1 to 65535');
  }
  if (protocol !== undefined && protocol !== 'tcp' && protocol !== 'udp') {
    throw refuse('--protocol: tcp or udp');
  }
  return { host, ...(port !== undefined && { port }), ...(protocol !== undefined && { protocol }) };
}

function stageOf(flags: Flags): Stage | undefined {
  const text = textFlag(flags, 'stage');
  const stage = STAGES.find((one) => one === text);
  if (text !== undefined && stage === undefined) throw refuse(`--stage: ${STAGES.join(', ')}`);
  return stage;
}

const refuse = (why: string) => new DsecError('invalid-argument', why);
