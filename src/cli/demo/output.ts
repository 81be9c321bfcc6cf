import { styleText } from 'node:util';
import { urlAddressScope } from '../../system/addresses.ts';
import { renderQrCode } from '../terminal/qr-code.ts';
import type { TokenUseOutcome } from './simulated-appliance.ts';

/** Counters of the demo; the members of `latchkey demo --json`. */
export interface DemoCounters {
  /** Appliances that were paired. */
  appliances: number;
  hand_outs: number;
  bad_hand_outs: number;
  refreshes: number;
}

/** Writes a line per event to a stream; on a terminal also a line of counters at the bottom. */
export class DemoOutput {
  readonly #stream: NodeJS.WriteStream;
  readonly #now: () => number;
  #counterLine = '';

  /** @param now ms since 1970 */
  constructor(stream: NodeJS.WriteStream, now: () => number) {
    this.#stream = stream;
    this.#now = now;
  }

  /** Writes a line unchanged. */
  writeLine(line = ''): void {
    this.#stream.write(`${this.#clearSequence}${line}\n${this.#counterLine}`);
  }

  /** Writes a link, and its QR code if a phone can open it and the terminal is large enough. @param note what a person has to know about it */
  writeLink(url: string, note: readonly string[] = []): void {
    const isForPhones = this.#stream.isTTY && urlAddressScope(url) !== 'machine';
    const code = isForPhones ? renderQrCode(url, this.#stream) : null;
    const lines = [url, ...note, ...(code === null ? [] : ['', ...code.split('\n')])];
    this.writeLine(`\n${lines.map((line) => `    ${line}\n`).join('')}`);
  }

  /** Writes a line that begins with the time and the appliance. */
  writeEvent(appliance: string, text: string): void {
    const time = new Date(this.#now()).toTimeString().slice(0, 8);
    this.writeLine(`${this.style('dim', time)}  ${appliance.padEnd(10)} ${text}`);
  }

  /** Writes the outcome of a token use, unless the appliance used the same token successfully before. */
  writeTokenUse(appliance: string, use: TokenUseOutcome, scope: string | null): void {
    if (use.kind === 'bad') this.writeEvent(appliance, `${this.style('red', '✗')} ${use.reason}`);
    if (use.kind === 'late') this.writeEvent(appliance, this.style('dim', `… ${use.reason}; the appliance retries`));
    if (use.kind !== 'good' || !use.fresh) return;
    const scopeText = scope === null ? '' : `, scope ${scope}`;
    this.writeEvent(
      appliance,
      `${this.style('green', '✓')} has a new token for ${use.expiresIn} s; the cloud accepts it for user ${use.user}${scopeText}`,
    );
  }

  /**
   * Updates the counters at the bottom of a terminal.
   * @param remainingMs until the end of the demo; null if it has none
   */
  showCounters({ hand_outs, bad_hand_outs, refreshes }: DemoCounters, remainingMs: number | null): void {
    if (!this.#stream.isTTY) return;
    const end = remainingMs === null ? 'Ctrl-C ends it' : `${Math.max(0, Math.ceil(remainingMs / 1000))} s left`;
    const text = `tokens issued ${hand_outs} · bad ${bad_hand_outs} · refreshes ${refreshes} · ${end}`;
    const clearSequence = this.#clearSequence;
    this.#counterLine = this.style('dim', text);
    this.#stream.write(`${clearSequence}${this.#counterLine}`);
  }

  /** Removes the counters. */
  clearCounters(): void {
    const clearSequence = this.#clearSequence;
    this.#counterLine = '';
    this.#stream.write(clearSequence);
  }

  style(format: 'bold' | 'dim' | 'green' | 'red' | 'underline', text: string): string {
    return styleText(format, text, { stream: this.#stream });
  }

  get #clearSequence(): string {
    return this.#counterLine === '' ? '' : '\r\u001b[K';
  }
}
