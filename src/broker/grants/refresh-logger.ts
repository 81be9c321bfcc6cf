import type { Instant } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import type { Grant } from '../../core/grants/grant.ts';
import type { RefreshHealth } from '../../core/grants/refresh-health.ts';
import type { PortalIdentity } from '../../core/portal.ts';
import type { ProblemCode } from '../../core/reports/problem.ts';
import type { Environment } from '../environment.ts';
import type { AppliancePortal } from '../ports.ts';
import { LogDeduplicator, type ProblemSummary } from '../reports/log-deduplicator.ts';
import type { RefreshSchedule, ScheduledGrant } from './refresh-schedule.ts';

/** A grant and how it stands. */
type GrantState = Pick<ScheduledGrant, 'grant' | 'health'>;

/** What goes wrong for every appliance of a portal, and is told of once for all of them. */
const PORTAL_PROBLEMS: readonly ProblemCode[] = [
  'portal_unreachable',
  'portal_deferred',
  'clock_unknown',
  'misconfigured',
];
/** What goes wrong for one appliance. */
const APPLIANCE_PROBLEMS: readonly (ProblemCode | 'access_token_rejected' | 'unexpected')[] = [
  'portal_rejected',
  'answer_lost',
  'misconfigured',
  'refused',
  'access_token_rejected',
  'unexpected',
];
/** The store can't be written, whoever's grant it is for. */
const STORE_KEY = 'store';

/**
 * Tells the log how the grants fare: what begins, what lasts and what is over. A refresh that goes well like the one before it,
 * and each try of many that fail alike, are there for whoever debugs. Whoever keeps books is told of every one.
 */
export class RefreshLogger {
  readonly #environment: Pick<Environment, 'clock' | 'log' | 'emit'>;
  readonly #schedule: Pick<RefreshSchedule, 'dueAt'>;
  readonly #portalOf: (appliance: string) => AppliancePortal | undefined;
  readonly #deduplicator: LogDeduplicator;
  /** The appliances of which it was told in this run that their refreshes succeed. */
  readonly #succeeding = new Set<string>();
  #refreshed = 0;
  #failed = 0;

  constructor(
    environment: Pick<Environment, 'clock' | 'log' | 'emit'>,
    schedule: Pick<RefreshSchedule, 'dueAt'>,
    portalOf: (appliance: string) => AppliancePortal | undefined,
  ) {
    this.#environment = environment;
    this.#schedule = schedule;
    this.#portalOf = portalOf;
    this.#deduplicator = new LogDeduplicator(environment.clock);
  }

  /** The last run of the hub ended while the portal's answer was under way. */
  refreshInterrupted(state: ScheduledGrant): void {
    if (state.health.kind === 'good') return;
    this.#environment.log.warn('refresh_interrupted', this.#fields(state, state.health));
  }

  /**
   * It was an attempt that brought no new tokens, see {@link ApplianceEvent}: called once for each, when it is known what follows.
   * @param sent when the request was sent; null where it was not, or that is not known
   * @param at when it was, where that was long ago
   */
  attemptFailed({ grant, health }: GrantState, sent: Instant | null, at = this.#environment.clock.now()): void {
    if (health.kind === 'good') return;
    const { code } = health.problem;
    const took = sent === null ? null : this.#elapsedMs(sent);
    this.#environment.emit({ kind: 'refresh_failed', appliance: grant.appliance, at, problem: code, took });
  }

  /** A grant was taken up from the disk. */
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
    const told = this.#deduplicator.recordOccurrence(this.#deduplicationKey(grant.appliance, code), grant.appliance);
    const fields = this.#fields(state, health);
    const portal = PORTAL_PROBLEMS.includes(code) ? this.#portalOf(grant.appliance)?.identity.name : undefined;
    if (told === null) this.#environment.log.debug('refresh_failed', fields);
    else this.#environment.log.warn('refresh_failed', { ...fields, portal, ...durationFields(told) });
  }

  /**
   * An attempt brought new tokens, and they are written down.
   * @param lifetime of the tokens, in ms
   * @param sent when the request was sent
   */
  refreshed({ appliance, generation }: Grant, lifetime: number, sent: Instant): void {
    this.#refreshed += 1;
    const { clock, log, emit } = this.#environment;
    emit({ kind: 'refreshed', appliance, at: clock.now(), took: this.#elapsedMs(sent) });
    const connection = this.#portalOf(appliance);
    for (const code of PORTAL_PROBLEMS) {
      const over = this.#deduplicator.recordResolution(this.#deduplicationKey(appliance, code));
      if (over !== null) {
        log.info('portal_available', {
          portal: connection?.identity.name,
          problem: code,
          ...durationFields(over, true),
        });
      }
    }
    this.storeWritten();
    const own = APPLIANCE_PROBLEMS.map((code) => this.#deduplicator.recordResolution(`${appliance} ${code}`)).some(
      (over) => over !== null,
    );
    const isNews = own || !this.#succeeding.has(appliance);
    this.#succeeding.add(appliance);
    log.at(isNews ? 'info' : 'debug', 'token_refreshed', {
      appliance: connection?.name,
      expires_in: lifetime / 1000,
      generation,
    });
  }

  /** The store was written. */
  storeWritten(): void {
    const over = this.#deduplicator.recordResolution(STORE_KEY);
    if (over !== null) this.#environment.log.info('store_writable', durationFields(over, true));
  }

  /** The cloud refuses the token at hand, its appliance says. */
  tokenRejected({ grant }: GrantState): void {
    const { appliance, generation } = grant;
    this.#environment.emit({ kind: 'token_refused', appliance, at: this.#environment.clock.now() });
    const told = this.#deduplicator.recordOccurrence(`${appliance} distrusted`, appliance);
    const level = told === null ? 'debug' : 'warn';
    this.#environment.log.at(level, 'access_token_rejected', { appliance: this.nameOf(appliance), generation });
  }

  /** Its appliance goes to another portal than the one that gave it. @param present the portal it goes to */
  grantSuspended({ grant }: GrantState, present: PortalIdentity): void {
    const appliance = this.nameOf(grant.appliance);
    this.#environment.log.warn('grant_suspended', {
      appliance,
      issued_by: grant.issuer.origin,
      issued_to: grant.issuer.clientId,
      portal: present.origin,
      client_id: present.clientId,
      what_to_do: `put the portal back into the configuration, or latchkey pair ${appliance}`,
    });
  }

  storeUnwritable({ grant }: GrantState, error: unknown): void {
    const told = this.#deduplicator.recordOccurrence(STORE_KEY, grant.appliance);
    const fields = { appliance: this.nameOf(grant.appliance), error: messageOf(error) };
    if (told === null) this.#environment.log.debug('store_unwritable', fields);
    else this.#environment.log.error('store_unwritable', { ...fields, ...durationFields(told) });
  }

  /** What nobody has thought of. */
  unexpectedError(appliance: string, error: unknown): void {
    const told = this.#deduplicator.recordOccurrence(`${appliance} unexpected`, appliance);
    const level = told === null ? 'debug' : 'error';
    this.#environment.log.at(level, 'refresh_crashed', {
      appliance: this.nameOf(appliance),
      error: messageOf(error),
    });
  }

  /** The hub ends, and with it what it has in memory alone. */
  unsavedGrantLost({ grant }: GrantState, error: unknown): void {
    const appliance = this.nameOf(grant.appliance);
    this.#environment.log.error('store_unwritable', { appliance, error: messageOf(error) });
  }

  /** A day is over. @param appliances how many have a grant */
  dailySummary(appliances: number): void {
    this.#environment.log.info('daily_summary', {
      appliances,
      refreshed: this.#refreshed,
      failed: this.#failed,
    });
    this.#refreshed = 0;
    this.#failed = 0;
  }

  /**
   * Tells of what a person should know, however often it is tried again and the hub is started.
   * @returns whether there was any of it
   */
  #logTransition(before: GrantState, state: ScheduledGrant): boolean {
    const { grant, health } = state;
    if (health.kind === 'good') return false;
    const { log } = this.#environment;
    const fields = this.#fields(state, health);
    if (health.kind === 'refused') {
      if (before.grant.refused !== null || before.health.kind === 'refused') return false;
      // Its tries from now on are told of as seldom as those of any other trouble.
      this.#deduplicator.recordOccurrence(`${grant.appliance} refused`, grant.appliance);
      log.error('pairing_needed', fields);
      return true;
    }
    if (before.grant.doubt !== null || grant.doubt === null) return false;
    const told = this.#deduplicator.recordOccurrence(`${grant.appliance} answer_lost`, grant.appliance);
    log.at(told === null ? 'debug' : 'warn', 'answer_lost', fields);
    return true;
  }

  #deduplicationKey(appliance: string, code: ProblemCode): string {
    if (code === 'store_unwritable') return STORE_KEY;
    const portal = this.#portalOf(appliance)?.identity.name;
    return PORTAL_PROBLEMS.includes(code) && portal !== undefined ? `portal ${portal} ${code}` : `${appliance} ${code}`;
  }

  #fields(state: ScheduledGrant, { problem }: Exclude<RefreshHealth, { kind: 'good' }>) {
    const due = this.#schedule.dueAt(state);
    const now = this.#environment.clock.now().uptime;
    const retryIn = due === null ? null : Math.max(0, Math.round((due - now) / 1000));
    const { code, message } = problem;
    return { appliance: this.nameOf(state.grant.appliance), problem: code, message, retry_in: retryIn };
  }

  /** What people call an appliance; undefined where it is gone. */
  nameOf(appliance: string): string | undefined {
    return this.#portalOf(appliance)?.name;
  }

  /** Milliseconds from then to now, on the boot clock. */
  #elapsedMs({ uptime }: Instant): number {
    return this.#environment.clock.now().uptime - uptime;
  }
}

/** The extent of a problem; nothing of one that has just begun. */
function durationFields(
  { occurrences: times, durationSeconds: lasting, subjectCount: subjects }: ProblemSummary,
  isOver = false,
) {
  if (times === 1 && !isOver) return {};
  return { tries: times, duration: lasting, appliances: subjects };
}
