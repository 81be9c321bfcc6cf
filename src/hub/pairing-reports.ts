import type { PairingRun } from '../broker/pairing-run.ts';
import { leadsAstray, linkFor, linksOf, type PairingStep } from '../core/pairing.ts';
import type { PairingReport } from '../core/pairing-report.ts';

/** Follows a pairing: how it stands, and each change, until its end. */
export async function* followPairing(run: PairingRun, signal: AbortSignal): AsyncIterable<PairingReport> {
  let wake: () => void = () => undefined;
  const unwatch = run.watch(() => wake());
  const aborted = () => wake();
  signal.addEventListener('abort', aborted, { once: true });
  let told = '';
  let shown: string | null = null;
  try {
    while (!signal.aborted) {
      const changed = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const report = reportOf(run, shown);
      if (report.event === 'waiting') shown = report.authorize_url;
      const { expires_in: _, reason: __, ...news } = { expires_in: 0, reason: '', ...report };
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

/**
 * @param shown the link that was told before: further ones, for whoever opens the page of a device flow, take nothing from it,
 *   unless the hub has moved
 */
export function reportOf(run: PairingRun, shown: string | null): PairingReport {
  const { step } = run.pairing;
  const expires_in = Math.ceil(run.timeLeft / 1000);
  switch (step.kind) {
    case 'asking':
      return { event: 'connecting', problem: run.trouble, expires_in };
    case 'waiting':
    case 'exchanging':
      return { event: 'waiting', ...linkOf(step, shown, run.redirect), expires_in };
    case 'ended':
      return step.result.kind === 'paired'
        ? { event: 'paired', scope: step.result.scope }
        : { event: 'failed', reason: step.result.reason };
  }
}

type Waiting = Extract<PairingReport, { event: 'waiting' }>;

function linkOf(
  step: Extract<PairingStep, { kind: 'waiting' | 'exchanging' }>,
  shown: string | null,
  redirect: string | null,
): Pick<Waiting, 'authorize_url' | 'reason'> {
  const told = linksOf(step).find(({ authorizeUrl }) => authorizeUrl === shown);
  if (told !== undefined && !leadsAstray(told, redirect)) return { authorize_url: told.authorizeUrl };
  const { authorizeUrl } = linkFor(step, redirect) ?? step.link;
  if (shown === null || authorizeUrl === shown) return { authorize_url: authorizeUrl };
  return { authorize_url: authorizeUrl, reason: told === undefined ? 'link_ended' : 'address_changed' };
}
