import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  BARE_FACTS,
  BUILTIN_PROFILES,
  explainPolicy,
  MECHANISMS,
  parsePolicyText,
  policySchema,
  renderAnswers,
  resolvePolicy,
  SECTIONS,
  STAGES,
} from '../src/index.ts';

const GUIDE = readFileSync(new URL('../../../docs/guides/policy.md', import.meta.url), 'utf8');
const blocks = [...GUIDE.matchAll(/```json\n(.*?)```/gs)].map(([, text = '']) => text);

describe('the guide to policies', () => {
  it('has examples that are policies, in every stage', () => {
    expect(blocks.length).toBeGreaterThan(0);
    for (const text of blocks) {
      const document = parsePolicyText(text);
      for (const stage of [undefined, ...STAGES]) {
        expect(() => resolvePolicy(document, { ...(stage && { stage }) })).not.toThrow();
      }
    }
  });

  it('shows what explain says', () => {
    const policy = resolvePolicy(parsePolicyText(blocks[0] ?? ''));
    const questions = [{ path: '/opt/answers/1.txt' }, { syscall: 'kill', arguments: [1, 9] }];
    const answers = questions.flatMap((one) => explainPolicy(policy, BARE_FACTS, one));
    expect(GUIDE).toContain(renderAnswers(answers));
  });

  it('names every section, mechanism and profile', () => {
    for (const word of [...SECTIONS, ...MECHANISMS, ...Object.keys(BUILTIN_PROFILES)]) {
      expect(GUIDE).toContain(`\`${word}\``);
    }
  });
});

it('the schema for editors is the one of the code', () => {
  const file = new URL('../../../spec/policy.schema.json', import.meta.url);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(
    JSON.parse(JSON.stringify(policySchema())),
  );
});
