import type { StatusResponse } from '../../control/messages.ts';
import { rewriteCommands } from '../../system/command-invocation.ts';
import { DEFAULT_COLUMNS, tableWidth, wrapText } from '../terminal/table.ts';
import { HUB_UNAVAILABLE, type StatusDisplay } from './displays.ts';
import { statusText } from './text.ts';

/** The terminal's alternate screen, without a cursor: the previous content returns at the end. */
const ENTER_ALTERNATE_SCREEN = '\u001b[?1049h\u001b[?25l';
const LEAVE_ALTERNATE_SCREEN = '\u001b[?25h\u001b[?1049l';
const CURSOR_HOME = '\u001b[H';
const CLEAR_LINE = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';

/** Shows the status on the terminal of standard output, redrawn for each change. */
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
    // Restores the terminal for the shell, however the process ends.
    process.on('exit', this.#leave);
  }

  show(status: StatusResponse): void {
    this.#text = rewriteCommands(statusText(status));
    this.#draw();
  }

  hubUnavailable(): void {
    const prefix = `${HUB_UNAVAILABLE}\n\n`;
    if (!this.#text.startsWith(prefix)) this.#text = `${prefix}${this.#text}`;
    this.#draw();
  }

  [Symbol.dispose](): void {
    process.stdout.off('resize', this.#redraw);
    process.off('SIGTSTP', this.#suspend).off('SIGCONT', this.#resume).off('exit', this.#leave);
    this.#leave();
  }

  #draw(): void {
    const { columns, rows } = process.stdout;
    const lines = fitLines(this.#text.split('\n'), columns || DEFAULT_COLUMNS, (rows || 24) - 1);
    process.stdout.write(`${CURSOR_HOME}${lines.map((line) => `${line}${CLEAR_LINE}`).join('\r\n')}${CLEAR_BELOW}`);
  }
}

/** The lines that fit on the terminal. The terminal itself wraps a link that is too long, so that it can be copied. */
function fitLines(lines: readonly string[], columns: number, rows: number): string[] {
  const shown: string[] = [];
  let used = 0;
  const wrapped = lines.flatMap((line) => wrapText(line, columns));
  for (const line of wrapped) {
    used += Math.max(1, Math.ceil(tableWidth(line) / columns));
    if (used > rows) return [...shown.slice(0, rows - 1), `… ${wrapped.length - shown.length + 1} more lines`];
    shown.push(line);
  }
  return shown;
}
