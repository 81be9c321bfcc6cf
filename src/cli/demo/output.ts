import { styleText } from 'node:util';
import type { TokenUseOutcome } from './simulated-appliance.ts';

/** What happened in the demo, counted; the members of `latchkey demo --json`. */
export interface DemoCounters {
  /** Appliances that were paired. */
  appliances: number;
  hand_outs: number;
  bad_hand_outs: number;
  refreshes: number;
}

/** Tells on a stream what happens, a line each; on a terminal with a line of figures at the bottom. */
export class DemoOutput {
  readonly #stream: NodeJS.WriteStream;
  readonly #now: () => number;
  #figures = '';

  /** @param now ms since 1970 */
  constructor(stream: NodeJS.WriteStream, now: () => number) {
    this.#stream = stream;
    this.#now = now;
  }

  /** A line as it is. */
  writeLine(line = ''): void {
    this.#stream.write(`${this.#clearSequence}${line}\n${this.#figures}`);
  }

  /** A line with the time and the appliance before it. */
  writeEvent(appliance: string, news: string): void {
    const time = new Date(this.#now()).toTimeString().slice(0, 8);
    this.writeLine(`${this.style('dim', time)}  ${appliance.padEnd(10)} ${news}`);
  }

  /** What an appliance got, where that is news. */
  writeTokenUse(appliance: string, use: TokenUseOutcome, scope: string | null): void {
    if (use.kind === 'bad') this.writeEvent(appliance, `${this.style('red', '✗')} ${use.reason}`);
    if (use.kind === 'late') this.writeEvent(appliance, this.style('dim', `… ${use.reason}; it asks again`));
    if (use.kind !== 'good' || !use.fresh) return;
    const may = scope === null ? '' : `, scope ${scope}`;
    this.writeEvent(
      appliance,
      `${this.style('green', '✓')} has a new token for ${use.expiresIn} s; the cloud greets ${use.user}${may}`,
    );
  }

  /** Keeps the figures at the bottom of a terminal up to date. */
  figures({ hand_outs, bad_hand_outs, refreshes }: DemoCounters, left: number | null): void {
    if (!this.#stream.isTTY) return;
    const rest = left === null ? 'Ctrl-C ends it' : `${Math.max(0, Math.ceil(left / 1000))} s left`;
    const text = `tokens issued ${hand_outs} · bad ${bad_hand_outs} · refreshes ${refreshes} · ${rest}`;
    const clearing = this.#clearSequence;
    this.#figures = this.style('dim', text);
    this.#stream.write(`${clearing}${this.#figures}`);
  }

  /** Takes the figures away. */
  clearCounters(): void {
    const clearing = this.#clearSequence;
    this.#figures = '';
    this.#stream.write(clearing);
  }

  style(format: 'bold' | 'dim' | 'green' | 'red' | 'underline', text: string): string {
    return styleText(format, text, { stream: this.#stream });
  }

  get #clearSequence(): string {
    return this.#figures === '' ? '' : '\r\u001b[K';
  }
}
