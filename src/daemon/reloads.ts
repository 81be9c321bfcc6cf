import type { Configuration } from '../configuration/configuration.ts';
import { Failure, messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import type { PreparedReload, ReloadControl, ReloadOutcome } from '../core/reload.ts';

/** A reload whose configuration is valid. */
export interface Reload {
  readonly id: string;
  readonly configuration: Configuration;
}

/**
 * The reloads of a daemon, one at a time. A changed configuration is read and checked, and then waits to be applied.
 */
export class ReloadCoordinator implements ReloadControl {
  readonly #readConfiguration: () => Promise<Configuration>;
  readonly #newId: () => string;
  readonly #outcomes = new Map<string, ReloadOutcome>();
  #running: Configuration;
  #isReading = false;
  /** Prepared but not applied yet. */
  #pending: Reload | null = null;
  #requested = Promise.withResolvers<Reload>();
  /** Where to log the reload that was requested meanwhile; null if none was. */
  #followUpLog: Log | null = null;
  #reloadGuard: () => Promise<string | null> = async () => null;

  /**
   * @param running the configuration that the daemon was started with
   * @param readConfiguration reads the current configuration; rejects with a Failure if it is invalid
   */
  constructor(running: Configuration, readConfiguration: () => Promise<Configuration>, newId: () => string) {
    this.#running = running;
    this.#readConfiguration = readConfiguration;
    this.#newId = newId;
  }

  /** Resolves with the next reload that was started. */
  get requested(): Promise<Reload> {
    return this.#requested.promise;
  }

  /** @param obstacle returns why the running hub must not be replaced now; null if it may be */
  setReloadGuard(obstacle: () => Promise<string | null>): void {
    this.#reloadGuard = obstacle;
  }

  /**
   * Reads and checks the configuration. Nothing changes until the reload is started.
   * @throws Failure `config_invalid`; `not_allowed` while another reload is in progress or the hub must not be replaced
   */
  prepare(): Promise<PreparedReload> {
    return this.#prepare(async () => {
      const configuration = await this.#readConfiguration();
      rejectUnreloadableChanges(this.#running, configuration);
      return configuration;
    });
  }

  /** See {@link ReloadControl.prepareAfter}. */
  prepareAfter(change: () => Promise<void>): Promise<PreparedReload> {
    return this.#prepare(async () => {
      await change();
      return this.#running;
    });
  }

  async #prepare(configure: () => Promise<Configuration>): Promise<PreparedReload> {
    if (this.#isReading || this.#pending !== null) {
      throw new Failure('not_allowed', 'the hub is already applying another configuration: try again afterwards');
    }
    this.#isReading = true;
    try {
      const obstacle = await this.#reloadGuard();
      if (obstacle !== null) throw new Failure('not_allowed', obstacle);
      const configuration = await configure();
      const reload = { id: this.#newId(), configuration };
      this.#pending = reload;
      this.#outcomes.set(reload.id, { state: 'under_way' });
      return { id: reload.id, start: () => this.#requested.resolve(reload) };
    } finally {
      this.#isReading = false;
    }
  }

  /** Starts a reload without reporting the result to the caller. If one is in progress, another follows it. */
  async request(log: Log): Promise<void> {
    if (this.#isReading || this.#pending !== null) {
      this.#followUpLog = log;
      return;
    }
    try {
      (await this.prepare()).start();
    } catch (error) {
      log.error('configuration_rejected', { error: messageOf(error) });
    }
  }

  /** Ends a reload: the hub runs with its configuration or, if there is a `problem`, with the previous one. */
  settle({ id, configuration }: Reload, problem: string | null): void {
    if (problem === null) this.#running = configuration;
    this.#outcomes.set(id, problem === null ? { state: 'done' } : { state: 'failed', message: problem });
    this.#pending = null;
    this.#requested = Promise.withResolvers();
    const again = this.#followUpLog;
    this.#followUpLog = null;
    if (again !== null) void this.request(again);
  }

  /** The outcome of a reload of this daemon. */
  outcome(id: string): ReloadOutcome {
    return this.#outcomes.get(id) ?? { state: 'unknown' };
  }
}

/** @throws Failure `config_invalid` if a key was changed that a running daemon can't apply */
function rejectUnreloadableChanges(running: Configuration, wanted: Configuration): void {
  const fixed = [
    ['hub.state_dir', running.stateDirectory, wanted.stateDirectory],
    ['hub.control_socket', running.controlSocket, wanted.controlSocket],
    // Another user or password of the same database is no other store.
    ['store.postgres_file', running.site?.url.description, wanted.site?.url.description],
  ] as const;
  for (const [key, before, now] of fixed) {
    if (before === now) continue;
    throw new Failure('config_invalid', `${wanted.file}: ${key} can't change while the hub runs: restart it`);
  }
}
