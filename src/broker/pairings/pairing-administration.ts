import type { Connection } from '../../core/connections/connection.ts';
import { missingScope } from '../../core/connections/scope.ts';
import { Failure } from '../../core/failure.ts';
import { parsePastedAddress } from '../../core/pairings/authorization-response.ts';
import { isStaleLink, linkKey, linksOf, type PairingStep, preferredLink } from '../../core/pairings/pairing.ts';
import {
  AddressRejection,
  type PairingAdministration,
  type PairingStatus,
  type PairingView,
} from '../../core/pairings/pairing-administration.ts';
import { toShownLink } from '../../core/portals/login-link.ts';
import { sha256 } from '../../system/secret-hash.ts';
import type { Connections } from '../connections/connections.ts';
import type { PairingBatches } from './pairing-batches.ts';
import { loginElsewhere, type PairingRun } from './pairing-run.ts';
import type { Pairings } from './pairings.ts';

/** What the administration of pairings needs. */
interface PairingSources {
  readonly connections: Pick<Connections, 'get' | 'byId' | 'portals'>;
  readonly pairings: Pairings;
  readonly pairingBatches: PairingBatches;
  /** Resolves when the pairings of the last run have resumed. */
  readonly ready: Promise<void>;
}

/** What the administration of pairings needs besides its sources. */
interface PairingAdministrationContext {
  /** @throws Failure `connection_unknown`, `name_invalid` */
  getConnection(name: string): Connection;
  /** @throws Failure `not_allowed` if the only appliance of the connection waits for approval */
  requireApproved(connection: Connection): Connection;
  /** The URL of a short link, by its key; null while there is none. */
  shortLink(key: string): string | null;
  /** The name of the user in whose name it acts; undefined if it is unknown. */
  readonly user: string | undefined;
}

/** Creates the administration of pairings and pairing batches. */
export function createPairingAdministration(
  { connections, pairings, pairingBatches, ready }: PairingSources,
  { getConnection, requireApproved, shortLink, user }: PairingAdministrationContext,
): Omit<PairingAdministration, 'label'> {
  const nameOf = (id: string) => connections.byId(id)?.name ?? '?';

  function view(run: PairingRun): PairingView {
    const { id, connection, portal, scope, lastFailure, batch, step } = run.pairing;
    const newest = pairings.newestFor(connection)?.pairing.id ?? id;
    const report = toReport(run, null);
    return {
      id,
      connection: nameOf(connection),
      scope,
      status:
        step.kind === 'exchanging' && report.event === 'waiting'
          ? { event: 'exchanging', expiresIn: report.expiresIn }
          : report,
      lastFailure,
      portal: connections.portals.length > 1 ? portal : null,
      credentialLocation: run.credentialLocation,
      unconfirmed: run.responses.unconfirmed,
      batch: batch === undefined ? null : pairingBatches.view(batch),
      newestPairing: newest === id ? null : newest,
    };
  }

  return {
    async pair(typed) {
      await ready;
      const run = await pairings.begin(requireApproved(getConnection(typed)), { user });
      return run.pairing.id;
    },
    async getOpenPairing(typed) {
      await ready;
      const { id, name, title } = getConnection(typed);
      const run = pairings.newestFor(id);
      if (run?.isOpen === true) return run.pairing.id;
      throw new Failure('pairing_unknown', `${title} has no open pairing: start one with "latchkey pair ${name}"`);
    },
    async *followPairing(id, signal) {
      // A client that follows a pairing across a restart would get an unknown-pairing error otherwise.
      await ready;
      const run = pairings.get(id);
      yield* followPairing(run, signal, () => shortLink(run.shortKey));
    },
    async getOrStartPairing(typed) {
      const run = await pairings.begin(requireApproved(connections.get(typed)), { joinOpen: true, user });
      return run.pairing.id;
    },
    getPairing: (id) => view(pairings.get(id)),
    async retryPairing(id) {
      const { pairing } = pairings.get(id);
      const connection = requireApproved(connections.get(nameOf(pairing.connection)));
      const run = await pairingBatches.retry(connection, pairing, user);
      return run.pairing.id;
    },
    confirmLogin(id, login) {
      // The exchange ends when the portal responds; the page shows the result.
      void pairings.get(id).responses.confirm(login, user);
    },
    async pasteAddress(id, address) {
      const { pairing } = pairings.get(id);
      const name = nameOf(pairing.connection);
      const newLink = 'open the newest link and log in again';
      if (pairing.step.kind === 'ended') {
        const next = `start another with "latchkey pair ${name}"`;
        throw new AddressRejection('ended', `the login of ${name} has ended`, next);
      }
      const stateful = parsePastedAddress(address);
      if (stateful === null) {
        const advice = 'copy the whole address from the browser, with everything behind the "?"';
        throw new AddressRejection('malformed', 'this is not the address of a finished login', advice);
      }
      const received = await pairings.receive(stateful, null, id);
      if (received === null)
        throw new AddressRejection('unknown', 'the login of this address is not known, or over', newLink);
      const { rejected } = received;
      const other = nameOf(received.pairing.connection);
      switch (rejected) {
        case 'other_pairing':
          throw other === name
            ? new AddressRejection(rejected, 'this address belongs to an earlier login', newLink)
            : new AddressRejection(rejected, `this address belongs to the login of ${other}`, 'paste it there');
        case 'used':
          throw new AddressRejection(rejected, 'this address was used before', newLink);
        case 'foreign_issuer':
          throw new AddressRejection(rejected, 'this address does not come from the portal', newLink);
        case null:
      }
    },
    async cancelPairing(id) {
      if (!(await pairings.get(id).fail('cancelled'))) throw loginElsewhere();
    },
    pairingsVersion: () =>
      pairings
        .filter(() => true)
        .map(({ pairing, runner, responses }) => {
          const [link] = linksOf(pairing.step);
          const logins = responses.unconfirmed.map((login) => login.id);
          const fields = [
            pairing.id,
            pairing.step.kind,
            runner.portalProblem,
            pairing.lastFailure,
            link && sha256(linkKey(link)),
          ];
          return [...fields, ...logins].join(' ');
        })
        .join('\n'),
    pairAll: () => pairingBatches.begin(user),
    startNextPairing: (batch) => pairingBatches.next(batch, user),
    getBatch: (id) => pairingBatches.view(id),
  };
}

/**
 * Follows a pairing: yields its status, and each change until its end.
 * @param shortUrl the current short link; null while there is none
 */
export async function* followPairing(
  run: PairingRun,
  signal: AbortSignal,
  shortUrl: () => string | null = () => null,
): AsyncIterable<PairingStatus> {
  let changed = Promise.withResolvers<void>();
  const wake = () => changed.resolve();
  const unwatch = run.runner.watch(wake);
  signal.addEventListener('abort', wake, { once: true });
  let lastReport = '';
  const shown: ShownLinks = { link: null, short: null };
  try {
    while (!signal.aborted) {
      changed = Promise.withResolvers();
      const report = withShortUrl(toReport(run, shown.link), run, shown, shortUrl());
      if (report.event === 'waiting') {
        shown.link = linkKey(report);
        shown.short = report.shortUrl ?? null;
      }
      const { expiresIn: _, reason: __, ...comparable } = { expiresIn: 0, reason: '', ...report };
      if (JSON.stringify(comparable) !== lastReport) yield report;
      lastReport = JSON.stringify(comparable);
      if (report.event === 'paired' || report.event === 'failed') return;
      await changed.promise;
    }
  } finally {
    unwatch();
    signal.removeEventListener('abort', wake);
  }
}

/**
 * @param shown the link that was reported before. It stays the reported one even if the page of a device flow adds
 * newer links, unless the hub's address has changed.
 */
function toReport(run: PairingRun, shown: string | null): PairingStatus {
  const { step } = run.pairing;
  const expiresIn = Math.ceil(run.runner.timeLeft / 1000);
  switch (step.kind) {
    case 'asking':
      return { event: 'connecting', problem: run.runner.portalProblem, expiresIn };
    case 'waiting':
    case 'exchanging': {
      const { unconfirmed } = run.responses;
      const { lastFailure } = run.pairing;
      return {
        event: 'waiting',
        ...linkFields(step, shown, run),
        ...(lastFailure !== null && { lastFailure }),
        ...(unconfirmed.length > 0 && { unconfirmed }),
      };
    }
    case 'ended': {
      if (step.result.kind === 'paired') {
        const { scope } = step.result;
        const missing = missingScope(run.requestedScope, scope);
        return { event: 'paired', scope, ...(missing.length > 0 && { missingScope: missing }) };
      }
      return { event: 'failed', reason: step.result.reason, message: run.failureMessage(step.result.reason) };
    }
  }
}

type WaitingReport = Extract<PairingStatus, { event: 'waiting' }>;

/** The links that were reported before. */
interface ShownLinks {
  link: string | null;
  short: string | null;
}

/**
 * Adds the short link to a report. While the hub has no address, the last short link is kept, because the address
 * mostly returns in a moment. It is also kept while a fresh link is on its way, so that both new links are reported
 * together.
 * @param now the current short link
 */
function withShortUrl(report: PairingStatus, run: PairingRun, shown: ShownLinks, now: string | null): PairingStatus {
  if (report.event !== 'waiting') return report;
  const { reason, ...rest } = report;
  const key = linkKey(report);
  const link = linksOf(run.pairing.step).find((one) => linkKey(one) === key);
  const isRenewing = link !== undefined && isStaleLink(link, run.runner.redirect);
  const shortUrl = isRenewing ? (shown.short ?? now) : (now ?? shown.short);
  if (shortUrl === null) return report;
  const isMoved = key === shown.link && shortUrl !== shown.short;
  const why = isMoved ? 'address_changed' : reason;
  return { ...rest, shortUrl, ...(why && { reason: why }) };
}

function linkFields(
  step: Extract<PairingStep, { kind: 'waiting' | 'exchanging' }>,
  shown: string | null,
  { runner }: PairingRun,
): Omit<WaitingReport, 'event' | 'shortUrl' | 'lastFailure' | 'unconfirmed'> {
  const { redirect } = runner;
  const shownLink = linksOf(step).find((link) => linkKey(link) === shown);
  const isShown = shownLink !== undefined && !isStaleLink(shownLink, redirect);
  const link = (isShown ? shownLink : preferredLink(step, redirect)) ?? step.link;
  const { kind } = link;
  const isReplaced = shown !== null && linkKey(link) !== shown;
  const left = runner.linkTimeLeft(link);
  return {
    ...toShownLink(link),
    expiresIn: Math.ceil(left / 1000),
    ...(left < runner.timeLeft && { isRenewed: true }),
    ...(link.redirect === null && { endsAtPortal: true }),
    ...(kind === 'redirect' && { acceptsAddress: true }),
    ...(isReplaced && { reason: shownLink === undefined ? 'link_ended' : 'address_changed' }),
  };
}
