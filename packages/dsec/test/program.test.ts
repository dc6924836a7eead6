import { STAGES } from '@dsec/policy';
import { EVENT_TYPES } from '@dsec/protocol';
import { SANDBOX_STATES } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { buildProgram, optionName } from '../src/command-line/program.ts';
import { COMMANDS, GROUPS } from '../src/command-line/rows.ts';
import { SETTINGS } from '../src/command-line/settings-table.ts';
import {
  EVENT_TYPE_WORDS,
  POLICY_STAGE_WORDS,
  SANDBOX_STATE_WORDS,
} from '../src/command-line/words.ts';

describe('the table of commands', () => {
  it('names each once, with a summary and examples that begin with it', () => {
    const names = COMMANDS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const { name, summary, examples } of COMMANDS) {
      expect(summary).toMatch(/^[a-z`].*[^.]$/);
      expect(examples.length).toBeGreaterThan(0);
      for (const example of examples) expect(example).toContain(name);
    }
  });

  it('tells what each group is', () => {
    const used = COMMANDS.flatMap(({ name }) => (name.includes(' ') ? [name.split(' ')[0]] : []));
    expect([...new Set(used)].sort()).toEqual(Object.keys(GROUPS).sort());
  });

  it.each(COMMANDS.map((row) => [row.name, row] as const))('%s can be loaded', async (_, row) => {
    expect(await row.load()).toHaveProperty('run');
  });

  it('has the option that a setting is said to have', () => {
    for (const { options = [] } of COMMANDS) {
      for (const { flags, setting } of options) {
        if (setting === undefined) continue;
        expect(flags).toContain((SETTINGS[setting] as { option?: string }).option);
      }
    }
  });
});

describe('the words of the table', () => {
  it('are those of the wire', () => {
    expect(SANDBOX_STATE_WORDS).toEqual(SANDBOX_STATES);
    expect(EVENT_TYPE_WORDS).toEqual(EVENT_TYPES);
    expect(POLICY_STAGE_WORDS).toEqual(STAGES);
  });
});

describe('buildProgram', () => {
  it('has every command, each with the options for all', () => {
    const program = buildProgram('9.9.9');
    for (const { name } of COMMANDS) {
      let command = program;
      for (const word of name.split(' ')) {
        const next = command.commands.find((found) => found.name() === word);
        expect(next, name).toBeDefined();
        command = next ?? command;
      }
      const longs = command.options.map(({ long }) => long);
      expect(longs).toEqual(expect.arrayContaining(['--state', '--json', '--config']));
      expect(new Set(longs).size).toBe(longs.length);
    }
  });
});

describe('optionName', () => {
  it.each([
    ['-u, --user <name>', 'user'],
    ['--keep-ended-ms <ms>', 'keepEndedMs'],
    ['--json', 'json'],
  ])('%s', (flags, name) => expect(optionName(flags)).toBe(name));
});
