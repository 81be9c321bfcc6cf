import type { Appliance } from '../../core/appliances/appliance.ts';
import type { RefusedRequestsStatus } from '../../core/appliances/appliance-status.ts';
import { rfc3339 } from '../../core/clock.ts';
import type { Environment } from '../ports.ts';
import { LogDeduplicator, type ProblemSummary } from '../reports/log-deduplicator.ts';
import type { Appliances } from './appliances.ts';

/**
 * The appliances whose requests the hub refuses because of their credentials, until they ask with the right ones or get
 * others. Only in memory: a refused request causes no write. Only appliances that exist count, so there is no limit.
 */
export class RefusedRequests {
  readonly #environment: Pick<Environment, 'clock' | 'log'>;
  readonly #appliances: Pick<Appliances, 'byId'>;
  readonly #logDeduplicator: LogDeduplicator;
  /** New credentials with which nobody has asked yet. */
  readonly #unused = new WeakSet<Appliance['credentials']>();
  readonly #series = new Map<string, RefusedRequestsStatus & Pick<Appliance, 'credentials'>>();

  constructor(environment: Pick<Environment, 'clock' | 'log'>, appliances: Pick<Appliances, 'byId'>) {
    this.#environment = environment;
    this.#appliances = appliances;
    this.#logDeduplicator = new LogDeduplicator(environment.clock);
  }

  /** @param reason why the request was refused, as the appliance is told. @param address that it came from */
  record(appliance: Appliance, reason: string, address: string): void {
    const { clock, log } = this.#environment;
    const { id, name, credentials } = appliance;
    for (const known of this.#series.keys()) this.#endIfOver(known);
    const { since, count } = this.of(appliance) ?? { since: rfc3339(clock.now().wall), count: 0 };
    this.#series.set(id, { credentials, since, count: count + 1, reason, address });
    if (this.#logDeduplicator.recordOccurrence(id, id) === null) return;
    log.warn('appliance_refused', { appliance: name, address, detail: reason, count: count + 1 });
  }

  /** Drops the series of an appliance that was removed, or that has got other credentials. */
  #endIfOver(id: string): void {
    const appliance = this.#appliances.byId(id);
    if (appliance === undefined || this.of(appliance) === undefined) this.#drop(id);
  }

  /** Null if it is not worth a log line that the series has ended. */
  #drop(id: string): ProblemSummary | null {
    this.#series.delete(id);
    return this.#logDeduplicator.recordResolution(id);
  }

  /** The appliance has got these credentials, in place of others. */
  credentialsReplaced({ credentials }: Appliance): void {
    this.#unused.add(credentials);
  }

  /** Whether it got other credentials since the hub was started, and has not asked with them. */
  hasUnusedCredentials({ credentials }: Appliance): boolean {
    return this.#unused.has(credentials);
  }

  /** The appliance has asked with the right credentials. */
  end({ id, name, credentials }: Appliance): void {
    this.#unused.delete(credentials);
    if (!this.#series.has(id)) return;
    const ended = this.#drop(id);
    if (ended !== null) this.#environment.log.info('appliance_accepted', { appliance: name, count: ended.occurrences });
  }

  /** Undefined if there were none since the appliance last asked with the right credentials, or got these. */
  of({ id, credentials }: Appliance): RefusedRequestsStatus | undefined {
    const series = this.#series.get(id);
    if (series === undefined || series.credentials !== credentials) return undefined;
    const { credentials: _, ...status } = series;
    return status;
  }
}
