import { systemClock, systemTimers } from '../system/clock.ts';
import { formatDuration } from './duration.ts';
import { notice } from './output.ts';
import { drawsOver } from './terminal.ts';

/** "waiting for login … expires in 14:59 min" on standard error: counted down on a terminal, said once elsewhere. */
export class WaitingLine {
  readonly #clock = systemClock('');
  readonly #redraw = () => this.#draw();
  #stop: (() => void) | null = null;
  /** On the boot clock, in ms. */
  #deadline = 0;
  /** Characters that stand in the line. */
  #shown = 0;

  /** @param expiresIn seconds */
  begin(expiresIn: number): void {
    if (!drawsOver(process.stderr)) {
      notice(`waiting for login, expires in ${formatDuration(expiresIn)}`);
      return;
    }
    this.#deadline = this.#clock.now().uptime + 1000 * expiresIn;
    process.stderr.on('resize', this.#redraw);
    const tick = () => {
      this.#draw();
      this.#stop = systemTimers.after(1000, tick);
    };
    tick();
  }

  /** Takes the line away. */
  end(): void {
    if (this.#stop === null) return;
    this.#stop();
    this.#stop = null;
    process.stderr.off('resize', this.#redraw);
    this.#clear();
  }

  #draw(): void {
    this.#clear();
    const left = countdown(Math.round((this.#deadline - this.#clock.now().uptime) / 1000));
    const texts = [`waiting for login … expires in ${left}`, `expires in ${left}`, left];
    const text = texts.find(({ length }) => length < columns()) ?? '';
    this.#shown = text.length;
    process.stderr.write(text);
  }

  /** A terminal that has become narrower has broken the line. */
  #clear(): void {
    const above = Math.max(0, Math.ceil(this.#shown / columns()) - 1);
    process.stderr.write(`${above > 0 ? `\u001b[${above}A` : ''}\r\u001b[J`);
    this.#shown = 0;
  }
}

function columns(): number {
  return process.stderr.columns || 80;
}

/** `14:59 min`, and the last two minutes in seconds. */
function countdown(seconds: number): string {
  if (seconds < 120 || seconds >= 3600) return formatDuration(seconds);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')} min`;
}
