import type { PairingStatus } from '../../src/core/pairings/pairing-administration.ts';

/** A pairing of a FakeAdministration. Tests push its reports and check whether a client follows it. */
export class ScriptedPairing {
  readonly reports: PairingStatus[] = [];
  followers = 0;
  #wake = Promise.withResolvers<void>();

  push(...reports: PairingStatus[]): void {
    this.reports.push(...reports);
    this.#wake.resolve();
    this.#wake = Promise.withResolvers<void>();
  }

  async *follow(signal: AbortSignal): AsyncGenerator<PairingStatus> {
    const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    this.followers += 1;
    try {
      for (let next = 0; !signal.aborted; ) {
        const report = this.reports[next];
        if (report === undefined) await Promise.race([this.#wake.promise, aborted]);
        else {
          next += 1;
          yield report;
          if (report.event === 'paired' || report.event === 'failed') return;
        }
      }
    } finally {
      this.followers -= 1;
    }
  }
}
