// @ts-check

const NAME_WIDTH = 12;
const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/**
 * @typedef {object} Report
 * @property {(line: string) => void} say A line of its own.
 * @property {(name: string) => void} start A step begins.
 * @property {(text: string) => void} note What the step does now; a line of its own where there is no
 *   terminal.
 * @property {(text: string) => void} progress The newest output of a command; shown only on a terminal.
 * @property {(summary: string) => void} done The step has ended.
 * @property {() => void} stop Ends the display, whatever was shown.
 */

/**
 * Says what happens and how long it took: one moving line on a terminal, plain lines elsewhere.
 *
 * @param {{ write(text: string): unknown, isTTY?: boolean, columns?: number }} out
 * @param {() => number} nowMs
 * @returns {Report}
 */
export function createReport(out, nowMs = () => performance.now()) {
  const moving = out.isTTY === true;
  let name = '';
  let startedMs = 0;
  let detail = '';
  let frame = 0;
  /** @type {NodeJS.Timeout | undefined} */
  let timer;

  const seconds = () => `${((nowMs() - startedMs) / 1000).toFixed(1)} s`;
  const wipe = () => (moving ? out.write('\r\x1b[K') : undefined);
  const draw = () => {
    frame = (frame + 1) % FRAMES.length;
    const line = `${FRAMES[frame]} ${name.padEnd(NAME_WIDTH)} ${seconds().padStart(8)}  ${detail}`;
    out.write(`\r\x1b[K${line.slice(0, (out.columns ?? 100) - 1)}`);
  };
  const stop = () => {
    clearInterval(timer);
    timer = undefined;
    wipe();
  };

  return {
    say(line) {
      wipe();
      out.write(`${line}\n`);
    },
    start(stepName) {
      name = stepName;
      startedMs = nowMs();
      detail = '';
      if (moving) timer = setInterval(draw, 100).unref();
    },
    note(text) {
      detail = text;
      if (!moving) out.write(`  ${name.padEnd(NAME_WIDTH)} ${text} …\n`);
    },
    progress(text) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: output of other programs may hold escapes
      detail = text.replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ').trim();
    },
    done(summary) {
      stop();
      out.write(`  ${name.padEnd(NAME_WIDTH)} ${seconds().padStart(8)}  ${summary}\n`);
    },
    stop,
  };
}
