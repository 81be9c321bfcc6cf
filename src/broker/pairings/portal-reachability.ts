import { clockFaultMessage } from '../../core/clock.ts';
import type { Unreachable } from '../../core/portals/portal.ts';
import { LogDeduplicator } from '../reports/log-deduplicator.ts';
import type { PairingContext } from './pairing-context.ts';

/** Whether the portal of one pairing responds. */
export class PortalReachability {
  readonly #context: PairingContext;
  readonly #connection: () => string;
  readonly #log: LogDeduplicator;
  #problem: Unreachable | null = null;

  /** @param connection the id of the pairing's connection */
  constructor(context: PairingContext, connection: () => string) {
    this.#context = context;
    this.#connection = connection;
    this.#log = new LogDeduplicator(context.environment.clock);
  }

  /** The portal's last failure to respond; null while it is reachable. */
  get problem(): Unreachable | null {
    return this.#problem;
  }

  /** The problem as text; null if there is none. */
  get text(): string | null {
    return this.#problem === null ? null : this.#describe(this.#problem);
  }

  /** Forgets the problem. */
  reset(): void {
    this.#problem = null;
  }

  /**
   * Records whether the portal is reachable, and logs it when the portal becomes unreachable.
   * @returns whether the problem has changed
   */
  record(problem: Unreachable | null): boolean {
    const before = this.#problem;
    this.#problem = problem;
    if (before === null && problem !== null) {
      const connection = this.#connection();
      const summary = this.#log.recordOccurrence('portal', connection);
      const fields = { connection: this.#context.nameOf(connection), detail: this.#describe(problem) };
      this.#context.environment.log.at(summary === null ? 'debug' : 'warn', 'portal_unreachable', fields);
      // Resolved at once, so that each outage counts as a new problem: the portal may respond now and then.
      this.#log.recordResolution('portal');
    }
    return before?.detail !== problem?.detail;
  }

  #describe({ detail, certificateError }: Unreachable): string {
    const { environment, referenceClock } = this.#context;
    const fault =
      certificateError && clockFaultMessage(certificateError, environment.clock.now(), referenceClock.confirmed);
    return fault ?? detail;
  }
}
