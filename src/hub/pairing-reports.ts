import type { PairingRun } from '../broker/pairing-run.ts';
import type { PairingReport } from '../core/administration.ts';

/** Follows a pairing: how it stands, and each change, until its end. */
export async function* followPairing(run: PairingRun, signal: AbortSignal): AsyncIterable<PairingReport> {
  let wake: () => void = () => undefined;
  const unwatch = run.watch(() => wake());
  const aborted = () => wake();
  signal.addEventListener('abort', aborted, { once: true });
  let told = '';
  try {
    while (!signal.aborted) {
      const changed = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const report = reportOf(run);
      const { expires_in: _, ...news } = { expires_in: 0, ...report };
      if (JSON.stringify(news) !== told) yield report;
      told = JSON.stringify(news);
      if (report.event === 'paired' || report.event === 'failed') return;
      await changed;
    }
  } finally {
    unwatch();
    signal.removeEventListener('abort', aborted);
  }
}

function reportOf(run: PairingRun): PairingReport {
  const { step } = run.pairing;
  const expires_in = Math.ceil(run.timeLeft / 1000);
  switch (step.kind) {
    case 'asking':
      return { event: 'connecting', problem: run.trouble, expires_in };
    case 'waiting':
    case 'exchanging':
      return { event: 'waiting', authorize_url: step.link.authorizeUrl, expires_in };
    case 'ended':
      return step.result.kind === 'paired'
        ? { event: 'paired', scope: step.result.scope }
        : { event: 'failed', reason: step.result.reason };
  }
}
