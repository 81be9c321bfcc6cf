import { GrantRunner, type RunnerStore, type SaveGrant } from '../../src/broker/grants/grant-runner.ts';
import { RefreshLogger } from '../../src/broker/grants/refresh-logger.ts';
import { RefreshSchedule } from '../../src/broker/grants/refresh-schedule.ts';
import { ReferenceClock } from '../../src/broker/time/reference-clock.ts';
import { Failure } from '../../src/core/failure.ts';
import type { Grant } from '../../src/core/grants/grant.ts';
import type { RevokedTokens } from '../../src/core/portals/portal.ts';
import type { ConnectionEvent } from '../../src/core/reports/history.ts';
import type { AttemptStart, FoundGrant, RefreshAttempt } from '../../src/core/store.ts';
import { systemRandom } from '../../src/system/random.ts';
import { sha256 } from '../../src/system/secret-hash.ts';
import { instantAt, MINUTE, sampleGrant } from '../core/samples.ts';
import { logTo } from '../support/log-to.ts';

/** The time of a hub, in ms since the boot, until a test changes it. */
export const START = 10 * MINUTE;

/** A write to the database, with what it was about. */
type Write = 'reconcile' | 'beginAttempt' | 'endAttempt' | 'replace' | 'rejectAccessToken';

/** The database of a site that has one grant. */
class GrantDatabase implements RunnerStore {
  /** What it has; null for nothing. */
  found: FoundGrant | null;
  /** What it has after it was reconciled with the grants of a hub; null for the same. */
  reconciled: FoundGrant | null = null;
  readonly damaged = new Set<string>();
  /** The writes, in order. */
  readonly writes: { readonly write: Write; readonly grant: Partial<Grant>; readonly attempt?: RefreshAttempt }[] = [];
  /** Whether it has the generation that is to be replaced; or the results of its next writes, one after another. */
  hasGeneration: boolean | boolean[] = true;
  /** What it answers when an attempt is to begin. */
  start: AttemptStart = { kind: 'begun', sendBefore: null };
  /** Whether it can't be used; or the writes that fail. */
  isAway: boolean | readonly Write[] = false;
  /** What happens elsewhere while it reads or writes. */
  meanwhile: () => void = () => undefined;

  constructor(grant: Grant) {
    this.found = found(grant);
  }

  readonly find: RunnerStore['find'] = async (connections) => {
    this.#visit(null);
    const { connection } = sampleGrant();
    return new Map(this.found === null || connections?.has(connection) === false ? [] : [[connection, this.found]]);
  };
  readonly reconcile: RunnerStore['reconcile'] = async (grants) => {
    for (const grant of grants) this.writes.push({ write: 'reconcile', grant });
    this.found = this.reconciled ?? this.found;
  };
  readonly beginAttempt = async (grant: Partial<Grant>, attempt: RefreshAttempt) => {
    this.#visit('beginAttempt');
    this.writes.push({ write: 'beginAttempt', grant, attempt });
    return this.start;
  };
  readonly endAttempt = async (grant: Partial<Grant>) => this.#write('endAttempt', grant);
  readonly replace = async (grant: Partial<Grant>) => this.#write('replace', grant);
  readonly rejectAccessToken = async (connection: string, generation: number) =>
    this.#write('rejectAccessToken', { connection, generation });

  /** The names of the writes so far. */
  get written(): Write[] {
    return this.writes.map(({ write }) => write);
  }

  #write(write: Write, grant: Partial<Grant>): boolean {
    this.#visit(write);
    this.writes.push({ write, grant });
    return Array.isArray(this.hasGeneration) ? (this.hasGeneration.shift() ?? true) : this.hasGeneration;
  }

  #visit(write: Write | null): void {
    this.meanwhile();
    const fails = typeof this.isAway === 'boolean' ? this.isAway : write !== null && this.isAway.includes(write);
    if (fails) throw new Failure('store_unwritable', 'the database is away');
  }
}

/** A grant as it is found in the database of a site. */
export function found(grant: Grant, attempt: RefreshAttempt | null = null, hasLostWrites = false): FoundGrant {
  return { stored: { grant, attempt }, hasLostWrites };
}

/** An attempt for the refresh token of a grant. @param leasedUntil undefined if this hub has begun it */
export function attemptFor({ refreshToken }: Grant, leasedUntil?: number): RefreshAttempt {
  const attempt = { token: sha256(refreshToken?.reveal() ?? ''), at: instantAt(START - MINUTE) };
  return leasedUntil === undefined ? attempt : { ...attempt, leasedUntil };
}

/** A hub of a site that holds a grant, which the database has too. */
export interface GrantHolder {
  readonly runner: GrantRunner;
  readonly database: GrantDatabase;
  /** The names of the events that it has logged, but not at debug level. */
  readonly logged: string[];
  readonly emitted: ConnectionEvent[];
  /** The refresh tokens that were revoked at the portal. */
  readonly revoked: string[];
  /** Its time, in ms since the boot. */
  uptime: number;
}

/** @param saveLogin writes the grant, if it is only in memory */
export function holdGrant(grant: Grant, saveLogin: SaveGrant | null = null): GrantHolder {
  const logged: string[] = [];
  const emitted: ConnectionEvent[] = [];
  const environment = {
    clock: { now: () => instantAt(holder.uptime) },
    random: { ...systemRandom, fraction: () => 0.5 },
    log: logTo((event, _, level) => level !== 'debug' && logged.push(event)),
    emit: (event: ConnectionEvent) => void emitted.push(event),
  };
  const time = { uptime: START };
  const holder = Object.assign(time, { logged, emitted, revoked: [] as string[], database: new GrantDatabase(grant) });
  const referenceClock = new ReferenceClock(environment);
  const schedule = new RefreshSchedule(
    environment,
    referenceClock,
    () => undefined,
    () => 0.5,
  );
  const logger = new RefreshLogger(environment, schedule, { portalOf: () => undefined, nameOf: () => 'heatpump' });
  const stopping = new AbortController().signal;
  const revoke = async (_connection: string, { refreshToken }: RevokedTokens) =>
    holder.revoked.push(refreshToken?.reveal() ?? '');
  const context = {
    environment,
    store: { grants: holder.database },
    referenceClock,
    schedule,
    logger,
    stopping,
    revoke,
  };
  return Object.assign(holder, { runner: GrantRunner.hold(context, grant, saveLogin) });
}
