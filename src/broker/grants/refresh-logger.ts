import type { Instant } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import type { Grant } from '../../core/grants/grant.ts';
import type { RefreshHealth } from '../../core/grants/refresh-health.ts';
import type { PortalIdentity } from '../../core/portals/identity.ts';
import type { ProblemCode } from '../../core/reports/problem.ts';
import type { ConnectedPortal, Environment } from '../ports.ts';
import { LogDeduplicator, type ProblemSummary } from '../reports/log-deduplicator.ts';
import type { RefreshSchedule, ScheduledGrant } from './refresh-schedule.ts';

/** A grant and its refresh health. */
type GrantState = Pick<ScheduledGrant, 'grant' | 'health'>;

/** The portal of each connection, and its name; see the options of {@link Grants}. */
interface Connections {
  readonly portalOf: (connection: string) => Pick<ConnectedPortal, 'identity'> | undefined;
  readonly nameOf: (connection: string) => string;
}

/** Problems that affect every appliance of a portal; logged once for all of them. */
const PORTAL_PROBLEMS: readonly ProblemCode[] = [
  'portal_unreachable',
  'portal_deferred',
  'clock_unknown',
  'misconfigured',
];
/** Problems of a single connection. */
const APPLIANCE_PROBLEMS: readonly (ProblemCode | 'access_token_rejected' | 'unexpected')[] = [
  'portal_rejected',
  'answer_lost',
  'misconfigured',
  'refused',
  'access_token_rejected',
  'unexpected',
];
/** The store can't be written, whichever grant it is for. */
const STORE_KEY = 'store';

/**
 * Logs how refreshes go: what begins, what lasts and what is resolved. A refresh that succeeds like the one before it,
 * and each of many failures of the same kind, are logged at debug level. Every attempt is emitted as an event.
 */
export class RefreshLogger {
  readonly #environment: Pick<Environment, 'clock' | 'log' | 'emit'>;
  readonly #schedule: Pick<RefreshSchedule, 'dueAt'>;
  readonly #connections: Connections;
  readonly #deduplicator: LogDeduplicator;
  /** The connections whose first successful refresh of this run has been logged. */
  readonly #succeeding = new Set<string>();
  #refreshed = 0;
  #failed = 0;

  constructor(
    environment: Pick<Environment, 'clock' | 'log' | 'emit'>,
    schedule: Pick<RefreshSchedule, 'dueAt'>,
    connections: Connections,
  ) {
    this.#environment = environment;
    this.#schedule = schedule;
    this.#connections = connections;
    this.#deduplicator = new LogDeduplicator(environment.clock);
  }

  /** A refresh was written ahead and has no outcome: the last run of this hub ended, or the lease of another hub. */
  refreshInterrupted(state: ScheduledGrant): void {
    if (state.health.kind === 'good') return;
    this.#environment.log.warn('refresh_interrupted', this.#fields(state, state.health));
  }

  /**
   * An attempt brought no new tokens, see {@link ConnectionEvent}. Called once for each, when its consequences are
   * known.
   * @param sent when the request was sent; null if it was not, or that is unknown
   * @param at when the attempt was made, if that was long ago
   */
  attemptFailed({ grant, health }: GrantState, sent: Instant | null, at = this.#environment.clock.now()): void {
    if (health.kind === 'good') return;
    const { code } = health.problem;
    const took = sent === null ? null : this.#elapsedMs(sent);
    this.#environment.emit({ kind: 'refresh_failed', connection: grant.connection, at, problem: code, took });
  }

  /** A grant was loaded from the store. */
  grantRestored(before: Grant, state: ScheduledGrant): void {
    this.#logTransition({ grant: before, health: { kind: 'good' } }, state);
  }

  /** An attempt brought no new tokens, or a grant could not be written. */
  failed(before: GrantState, state: ScheduledGrant): void {
    const { grant, health } = state;
    if (health.kind === 'good') return;
    this.#failed += 1;
    if (this.#logTransition(before, state)) return;
    const { code } = health.problem;
    const summary = this.#deduplicator.recordOccurrence(
      this.#deduplicationKey(grant.connection, code),
      grant.connection,
    );
    const fields = this.#fields(state, health);
    const portal = PORTAL_PROBLEMS.includes(code) ? this.#portalNameOf(grant.connection) : undefined;
    if (summary === null) this.#environment.log.debug('refresh_failed', fields);
    else this.#environment.log.warn('refresh_failed', { ...fields, portal, ...durationFields(summary) });
  }

  /**
   * An attempt brought new tokens, and they are stored.
   * @param sent when the request was sent
   */
  refreshed({ connection, generation, lifetime }: Grant, sent: Instant): void {
    this.#refreshed += 1;
    const { clock, log, emit } = this.#environment;
    emit({ kind: 'refreshed', connection, at: clock.now(), took: this.#elapsedMs(sent) });
    const portal = this.#portalNameOf(connection);
    for (const code of PORTAL_PROBLEMS) {
      const resolved = this.#deduplicator.recordResolution(this.#deduplicationKey(connection, code));
      if (resolved !== null) {
        log.info('portal_available', {
          portal,
          problem: code,
          ...durationFields(resolved, true),
        });
      }
    }
    this.storeWritten();
    const hadProblem = APPLIANCE_PROBLEMS.map((code) =>
      this.#deduplicator.recordResolution(`${connection} ${code}`),
    ).some((resolved) => resolved !== null);
    const isNoteworthy = hadProblem || !this.#succeeding.has(connection);
    this.#succeeding.add(connection);
    log.at(isNoteworthy ? 'info' : 'debug', 'token_refreshed', {
      connection: this.#connections.nameOf(connection),
      expires_in: lifetime / 1000,
      generation,
    });
  }

  /** The store was written. */
  storeWritten(): void {
    const resolved = this.#deduplicator.recordResolution(STORE_KEY);
    if (resolved !== null) this.#environment.log.info('store_writable', durationFields(resolved, true));
  }

  /** An appliance reported that the cloud rejects its access token. */
  tokenRejected(state: ScheduledGrant): void {
    const { connection, generation } = state.grant;
    this.#environment.emit({ kind: 'token_refused', connection, at: this.#environment.clock.now() });
    const summary = this.#deduplicator.recordOccurrence(`${connection} access_token_rejected`, connection);
    const level = summary === null ? 'debug' : 'warn';
    const fields = { connection: this.#connections.nameOf(connection), generation, retry_in: this.#retryIn(state) };
    this.#environment.log.at(level, 'access_token_rejected', fields);
  }

  /** The connection uses another portal than the one that issued its grant. @param current the portal it uses now */
  grantSuspended({ grant }: GrantState, current: PortalIdentity): void {
    const connection = this.#connections.nameOf(grant.connection);
    this.#environment.log.warn('grant_suspended', {
      connection,
      issued_by: grant.issuer.origin,
      issued_to: grant.issuer.clientId,
      portal: current.origin,
      client_id: current.clientId,
      what_to_do: `restore the portal in the configuration, or run latchkey pair ${connection}`,
    });
  }

  storeUnwritable({ grant }: GrantState, error: unknown): void {
    const summary = this.#deduplicator.recordOccurrence(STORE_KEY, grant.connection);
    const fields = { connection: this.#connections.nameOf(grant.connection), error: messageOf(error) };
    if (summary === null) this.#environment.log.debug('store_unwritable', fields);
    else this.#environment.log.error('store_unwritable', { ...fields, ...durationFields(summary) });
  }

  /** An exception that no outcome covers. */
  unexpectedError(connection: string, error: unknown): void {
    const summary = this.#deduplicator.recordOccurrence(`${connection} unexpected`, connection);
    const level = summary === null ? 'debug' : 'error';
    this.#environment.log.at(level, 'refresh_crashed', {
      connection: this.#connections.nameOf(connection),
      error: messageOf(error),
    });
  }

  /** The connection has no grant any more. */
  forget(connection: string): void {
    this.#succeeding.delete(connection);
    for (const code of APPLIANCE_PROBLEMS) this.#deduplicator.recordResolution(`${connection} ${code}`);
  }

  /** The hub stops, and a grant that is only in memory is lost. */
  unsavedGrantLost({ grant }: GrantState, error: unknown): void {
    const connection = this.#connections.nameOf(grant.connection);
    this.#environment.log.error('store_unwritable', { connection, error: messageOf(error) });
  }

  /** A day has ended. @param connections how many have a grant */
  dailySummary(connections: number): void {
    this.#environment.log.info('daily_summary', {
      connections,
      refreshed: this.#refreshed,
      failed: this.#failed,
    });
    this.#refreshed = 0;
    this.#failed = 0;
  }

  /**
   * Logs, once each, what a person must know, however often the refresh is retried or the hub is restarted.
   * @returns whether it logged something
   */
  #logTransition(before: GrantState, state: ScheduledGrant): boolean {
    const { grant, health } = state;
    if (health.kind === 'good') return false;
    const { log } = this.#environment;
    const fields = this.#fields(state, health);
    if (health.kind === 'refused') {
      if (before.grant.refused !== null || before.health.kind === 'refused') return false;
      // From now on its attempts are logged as seldom as any other lasting problem.
      this.#deduplicator.recordOccurrence(`${grant.connection} refused`, grant.connection);
      log.error('pairing_needed', fields);
      return true;
    }
    if (before.grant.doubt !== null || grant.doubt === null) return false;
    const summary = this.#deduplicator.recordOccurrence(`${grant.connection} answer_lost`, grant.connection);
    log.at(summary === null ? 'debug' : 'warn', 'answer_lost', fields);
    return true;
  }

  #deduplicationKey(connection: string, code: ProblemCode): string {
    if (code === 'store_unwritable') return STORE_KEY;
    const portal = this.#portalNameOf(connection);
    return PORTAL_PROBLEMS.includes(code) && portal !== undefined
      ? `portal ${portal} ${code}`
      : `${connection} ${code}`;
  }

  #fields(state: ScheduledGrant, { problem }: Exclude<RefreshHealth, { kind: 'good' }>) {
    const { code, message } = problem;
    const connection = this.#connections.nameOf(state.grant.connection);
    return { connection, problem: code, message, retry_in: this.#retryIn(state) };
  }

  /** Seconds until the next refresh; null if none is planned. */
  #retryIn(state: ScheduledGrant): number | null {
    const due = this.#schedule.dueAt(state);
    if (due === null) return null;
    return Math.max(0, Math.round((due - this.#environment.clock.now().uptime) / 1000));
  }

  /** Another attempt has replaced this one. */
  superseded(connection: string): void {
    this.#environment.log.info('refresh_superseded', { connection: this.#connections.nameOf(connection) });
  }

  #portalNameOf(connection: string): string | undefined {
    return this.#connections.portalOf(connection)?.identity.name;
  }

  /** Milliseconds since an instant, on the boot clock. */
  #elapsedMs({ uptime }: Instant): number {
    return this.#environment.clock.now().uptime - uptime;
  }
}

/** How large a problem is; empty if it has just begun. */
function durationFields(
  { occurrences: tries, durationSeconds: duration, subjectCount: connections }: ProblemSummary,
  isResolved = false,
) {
  if (tries === 1 && !isResolved) return {};
  return { tries, duration, connections };
}
