import { Command, CommanderError } from 'commander';
import { describe, expect, it } from 'vitest';
import { passCommandThrough } from '../src/command-line/pass-through.ts';

function parserOf(ownCount: number) {
  const program = new Command('dsec').enablePositionalOptions().option('--state <dir>');
  const command = program
    .command('exec')
    .exitOverride()
    .configureOutput({ writeErr: () => {}, writeOut: () => {} })
    .option('-d, --detach')
    .option('--json')
    .option('--cwd <path>')
    .option('-v, --var <x>', '', (value: string, before: string[] = []) => [...before, value]);
  if (ownCount > 0) command.argument('<sandbox>');
  command.argument('[command...]').action(() => {});
  passCommandThrough(command, ownCount);
  return (...words: string[]) => {
    program.parse(['--state', '/s', 'exec', ...words], { from: 'user' });
    return [command.args, command.opts()];
  };
}

describe('options of exec', () => {
  it.each([
    ['SB -- echo hi', ['SB', 'echo', 'hi'], {}],
    ['SB echo hi', ['SB', 'echo', 'hi'], {}],
    ['SB --json -- echo hi', ['SB', 'echo', 'hi'], { json: true }],
    ['SB -d -- sleep 1', ['SB', 'sleep', '1'], { detach: true }],
    ['-d SB --cwd /x -- pwd', ['SB', 'pwd'], { detach: true, cwd: '/x' }],
    ['-v a SB -v b -- env', ['SB', 'env'], { var: ['a', 'b'] }],
    ['--json SB -- -x --json -- y', ['SB', '-x', '--json', '--', 'y'], { json: true }],
    ['SB git checkout -- file', ['SB', 'git', 'checkout', '--', 'file'], {}],
    ['SB ls --json', ['SB', 'ls', '--json'], {}],
    ['-- SB echo', ['SB', 'echo'], {}],
    ['-- SB -- -x', ['SB', '-x'], {}],
    ['SB --', ['SB'], {}],
    ['SB', ['SB'], {}],
  ])('%s', (typed, args, options) => {
    expect(parserOf(1)(...typed.split(' '))).toEqual([args, options]);
  });

  it.each([
    ['SB -d', /options go before SANDBOX, or put -- before the command/],
    ['SB --json echo hi', /options go before SANDBOX, or put -- before the command/],
    ['SB --json echo -- hi', /put -- before the whole command/],
    ['SB --bogus -- echo', /unknown option '--bogus'/],
    ['--bogus SB -- echo', /unknown option '--bogus'/],
    ['--json', /missing required argument 'sandbox'/],
  ])('%s is refused', (typed, message) => {
    const parse = () => parserOf(1)(...typed.split(' '));
    expect(parse).toThrow(CommanderError);
    expect(parse).toThrow(message);
  });

  it('shows the help behind the sandbox too', () => {
    expect(() => parserOf(1)('SB', '--help')).toThrow(/outputHelp/);
  });
});

describe('options of run', () => {
  it.each([
    ['--json -- echo hi', ['echo', 'hi'], { json: true }],
    ['--json echo --cwd', ['echo', '--cwd'], { json: true }],
    ['-d -- -x', ['-x'], { detach: true }],
    ['--json', [], { json: true }],
  ])('%s', (typed, args, options) => {
    expect(parserOf(0)(...typed.split(' '))).toEqual([args, options]);
  });
});
