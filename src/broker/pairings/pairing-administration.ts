import type { Appliance } from '../../core/appliances/appliance.ts';
import { isStaleLink, linksOf, type PairingStep, preferredLink } from '../../core/pairings/pairing.ts';
import type { PairingAdministration, PairingStatus, PairingView } from '../../core/pairings/pairing-administration.ts';
import { sha256 } from '../../system/secret-hash.ts';
import type { Broker } from '../open-broker.ts';
import type { PairingRun } from './pairing-run.ts';

/** How many pairings somebody may be looking at on the page. */
const MAX_MARKED_PAIRINGS = 100;

/**
 * Serves whoever looks at pairings and rounds of them.
 * @param approved throws a Failure `not_allowed` for an appliance that waits to be approved
 */
export function createPairingAdministration(
  {
    appliances,
    pairings,
    pairingBatches: rounds,
    environment: { log },
  }: Pick<Broker, 'appliances' | 'pairings' | 'pairingBatches' | 'environment'>,
  approved: (appliance: Appliance) => Appliance,
): Omit<PairingAdministration, 'label'> {
  const nameOf = (id: string) => appliances.byId(id)?.name ?? '?';

  function view(run: PairingRun): PairingView {
    const { id, appliance, scope, lastFailure, batch: round, step } = run.pairing;
    const newest = pairings.newestFor(appliance)?.pairing.id ?? id;
    const report = toReport(run, null);
    return {
      id,
      appliance: nameOf(appliance),
      scope,
      status:
        step.kind === 'exchanging' && report.event === 'waiting'
          ? { event: 'exchanging', expiresIn: report.expiresIn }
          : report,
      lastFailure,
      credentialLocation: run.credentialLocation,
      unconfirmed: run.unconfirmed,
      batch: round === undefined ? null : rounds.view(round),
      newestPairing: newest === id ? null : newest,
    };
  }

  return {
    async getOrStartPairing(name) {
      const run = await pairings.begin(approved(appliances.get(name)), { joinOpen: true });
      log.info('pairing_started', { appliance: name, by: 'person' });
      return run.pairing.id;
    },
    getPairing: (id) => view(pairings.get(id)),
    async retryPairing(id) {
      const { pairing } = pairings.get(id);
      const appliance = approved(appliances.get(nameOf(pairing.appliance)));
      const run = await rounds.retry(appliance, pairing);
      log.info('pairing_started', { appliance: appliance.name, by: 'person' });
      return run.pairing.id;
    },
    confirmLogin(id, login) {
      // Its exchange ends when the portal has answered; the page shows how.
      void pairings.get(id).confirm(login);
    },
    cancelPairing: (id) => pairings.get(id).fail('cancelled'),
    pairingsVersion: () =>
      pairings
        .filter(() => true)
        .slice(-MAX_MARKED_PAIRINGS)
        .map(({ pairing, portalProblem: trouble, unconfirmed }) => {
          const [link] = linksOf(pairing.step);
          const logins = unconfirmed.map((login) => login.id);
          const shown = [
            pairing.id,
            pairing.step.kind,
            trouble,
            pairing.lastFailure,
            link && sha256(link.authorizeUrl),
          ];
          return [...shown, ...logins].join(' ');
        })
        .join('\n'),
    pairAll: () => rounds.begin(),
    startNextPairing: (round) => rounds.next(round),
    getBatch: (id) => rounds.view(id),
  };
}

/**
 * Follows a pairing: how it stands, and each change, until its end.
 * @param shortUrl its short link as it is now; null while there is none
 */
export async function* followPairing(
  run: PairingRun,
  signal: AbortSignal,
  shortUrl: () => string | null = () => null,
): AsyncIterable<PairingStatus> {
  let wake: () => void = () => undefined;
  const unwatch = run.watch(() => wake());
  const aborted = () => wake();
  signal.addEventListener('abort', aborted, { once: true });
  let told = '';
  const shown: ShownLinks = { link: null, short: null };
  try {
    while (!signal.aborted) {
      const changed = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const report = withShortUrl(toReport(run, shown.link), run, shown, shortUrl());
      if (report.event === 'waiting') {
        shown.link = report.authorizeUrl;
        shown.short = report.shortUrl ?? null;
      }
      const { expiresIn: _, reason: __, ...news } = { expiresIn: 0, reason: '', ...report };
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
function toReport(run: PairingRun, shown: string | null): PairingStatus {
  const { step } = run.pairing;
  const expiresIn = Math.ceil(run.timeLeft / 1000);
  switch (step.kind) {
    case 'asking':
      return { event: 'connecting', problem: run.portalProblem, expiresIn };
    case 'waiting':
    case 'exchanging': {
      const { unconfirmed } = run;
      const logins = unconfirmed.length === 0 ? {} : { unconfirmed };
      return { event: 'waiting', ...linkFields(step, shown, run.redirect), expiresIn, ...logins };
    }
    case 'ended':
      return step.result.kind === 'paired'
        ? { event: 'paired', scope: step.result.scope }
        : { event: 'failed', reason: step.result.reason, message: run.failureMessage(step.result.reason) };
  }
}

type WaitingReport = Extract<PairingStatus, { event: 'waiting' }>;

/** What was told before. */
interface ShownLinks {
  link: string | null;
  short: string | null;
}

/**
 * The report with the short link. An address that is gone for a moment mostly comes back, and where a fresh link is on its way
 * both are told at once.
 * @param now the short link as it is now
 */
function withShortUrl(report: PairingStatus, run: PairingRun, shown: ShownLinks, now: string | null): PairingStatus {
  if (report.event !== 'waiting') return report;
  const { authorizeUrl, expiresIn, reason, unconfirmed } = report;
  const link = linksOf(run.pairing.step).find((one) => one.authorizeUrl === authorizeUrl);
  const isFreshOnItsWay = link !== undefined && isStaleLink(link, run.redirect);
  const shortUrl = isFreshOnItsWay ? (shown.short ?? now) : (now ?? shown.short);
  if (shortUrl === null) return report;
  const isMoved = authorizeUrl === shown.link && shortUrl !== shown.short;
  const why = isMoved ? 'address_changed' : reason;
  const logins = unconfirmed && { unconfirmed };
  return { event: 'waiting', authorizeUrl, shortUrl, expiresIn, ...(why && { reason: why }), ...logins };
}

function linkFields(
  step: Extract<PairingStep, { kind: 'waiting' | 'exchanging' }>,
  shown: string | null,
  redirect: string | null,
): Pick<WaitingReport, 'authorizeUrl' | 'reason'> {
  const told = linksOf(step).find(({ authorizeUrl }) => authorizeUrl === shown);
  if (told !== undefined && !isStaleLink(told, redirect)) return { authorizeUrl: told.authorizeUrl };
  const { authorizeUrl } = preferredLink(step, redirect) ?? step.link;
  if (shown === null || authorizeUrl === shown) return { authorizeUrl };
  return { authorizeUrl, reason: told === undefined ? 'link_ended' : 'address_changed' };
}
