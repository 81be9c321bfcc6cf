import type { StatusResponse } from '../../control/messages.ts';
import { rewriteCommands } from '../../system/command-invocation.ts';
import { tableWidth, wrapText } from '../terminal/table.ts';
import type { StatusDisplay } from './displays.ts';
import { statusText } from './text.ts';

/** The terminal's other screen, without a cursor: what stood there before comes back at the end. */
const ENTER_ALTERNATE_SCREEN = '\u001b[?1049h\u001b[?25l';
const LEAVE_ALTERNATE_SCREEN = '\u001b[?25h\u001b[?1049l';
const CURSOR_HOME = '\u001b[H';
const CLEAR_LINE = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';

/** How the hub stands, drawn over and over on the terminal of standard output. */
export class StatusScreen implements StatusDisplay, Disposable {
  #text = '';
  readonly #redraw = () => this.#draw();
  readonly #leave = () => process.stdout.write(LEAVE_ALTERNATE_SCREEN);
  readonly #suspend = () => {
    this.#leave();
    process.kill(process.pid, 'SIGSTOP');
  };
  readonly #resume = () => {
    process.stdout.write(ENTER_ALTERNATE_SCREEN);
    this.#draw();
  };

  constructor() {
    process.stdout.write(ENTER_ALTERNATE_SCREEN);
    process.stdout.on('resize', this.#redraw);
    process.on('SIGTSTP', this.#suspend).on('SIGCONT', this.#resume);
    // However the process ends, the terminal is the shell's again.
    process.on('exit', this.#leave);
  }

  show(status: StatusResponse): void {
    this.#text = rewriteCommands(statusText(status));
    this.#draw();
  }

  hubUnavailable(): void {
    this.#text = `the hub is away, trying again\n\n${this.#text.replace(/^the hub is away.*\n\n/, '')}`;
    this.#draw();
  }

  [Symbol.dispose](): void {
    process.stdout.off('resize', this.#redraw);
    process.off('SIGTSTP', this.#suspend).off('SIGCONT', this.#resume).off('exit', this.#leave);
    this.#leave();
  }

  #draw(): void {
    const { columns = 80, rows = 24 } = process.stdout;
    const lines = fitLines(this.#text.split('\n'), columns, rows - 1);
    process.stdout.write(`${CURSOR_HOME}${lines.map((line) => `${line}${CLEAR_LINE}`).join('\r\n')}${CLEAR_BELOW}`);
  }
}

/** As many lines as there is room for; a link that is too long is the terminal's to break, so that it can be copied. */
function fitLines(lines: readonly string[], columns: number, rows: number): string[] {
  const shown: string[] = [];
  let used = 0;
  const whole = lines.flatMap((line) => wrapText(line, columns));
  for (const line of whole) {
    used += Math.max(1, Math.ceil(tableWidth(line) / columns));
    if (used > rows) return [...shown.slice(0, rows - 1), `… ${whole.length - shown.length + 1} more`];
    shown.push(line);
  }
  return shown;
}
