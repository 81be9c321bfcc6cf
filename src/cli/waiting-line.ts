import { systemClock, systemTimers } from '../system/clock.ts';
import { formatDuration } from './duration.ts';
import { notice } from './output.ts';

/** "waiting for login … expires in 15 min" on standard error: kept up to date on a terminal, said once elsewhere. */
export class WaitingLine {
  readonly #clock = systemClock('');
  #stop: (() => void) | null = null;

  /** @param expiresIn seconds */
  begin(expiresIn: number): void {
    if (!process.stderr.isTTY) {
      notice(`waiting for login, expires in ${formatDuration(expiresIn)}`);
      return;
    }
    const end = this.#clock.now().uptime + 1000 * expiresIn;
    const tick = () => {
      const left = (end - this.#clock.now().uptime) / 1000;
      process.stderr.write(`\r\u001b[Kwaiting for login … expires in ${formatDuration(left)}`);
      this.#stop = systemTimers.after(1000, tick);
    };
    tick();
  }

  /** Takes the line away. */
  end(): void {
    if (this.#stop === null) return;
    this.#stop();
    this.#stop = null;
    process.stderr.write('\r\u001b[K');
  }
}
