/** Commands whose last words belong to somebody else: `exec SANDBOX [--] COMMAND...`. */
import type { Command, ParseOptionsResult } from 'commander';

/**
 * Makes the parser split what was typed: options and `ownCount` arguments of ours in any order before the
 * first `--`; without it, the command begins behind the last argument of ours. A word that could be meant
 * either way is refused. What is then left of the arguments are ours and the command.
 */
export function passCommandThrough(command: Command, ownCount: number): void {
  const parse = command.parseOptions.bind(command);
  command.passThroughOptions();
  command.parseOptions = (words) => {
    const first = parse(words);
    // An unknown option, of which the parser tells itself.
    if (first.unknown.length > 0) return first;
    const rest = first.operands;
    if (words[words.length - rest.length - 1] === '--') {
      if (ownCount > 0 && rest[ownCount] === '--') rest.splice(ownCount, 1);
      return first;
    }
    const own = rest.slice(0, ownCount);
    return splitRest(command, own, rest.slice(ownCount), (between) => {
      command.passThroughOptions(false);
      return parse(between);
    });
  };
}

const HELP: ReadonlySet<string> = new Set(['-h', '--help']);

function splitRest(
  command: Command,
  own: readonly string[],
  tail: readonly string[],
  parse: (words: string[]) => ParseOptionsResult,
): ParseOptionsResult {
  const [head = ''] = tail;
  if (!head.startsWith('-')) return { operands: [...own, ...tail], unknown: [] };
  const end = tail.indexOf('--');
  if (HELP.has(head)) return { operands: [...own], unknown: [head] };
  if (end === -1) {
    const place = own.length === 0 ? 'the command' : 'SANDBOX';
    command.error(`error: options go before ${place}, or put -- before the command`);
  }
  const { operands, unknown } = parse(tail.slice(0, end));
  if (unknown.length > 0) return { operands: [...own], unknown };
  if (operands.length > 0) command.error('error: put -- before the whole command');
  return { operands: [...own, ...tail.slice(end + 1)], unknown: [] };
}
