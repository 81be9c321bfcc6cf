import type { Configuration } from '../configuration/configuration.ts';
import type { PreparedReload, ReloadOutcome } from '../core/administration.ts';
import { Failure, messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';

/** A reload whose configuration was found right. */
export interface Reload {
  readonly id: string;
  readonly configuration: Configuration;
}

/** How many outcomes are kept for those who ask. */
const MAX_OUTCOMES = 20;

/** The reloads of a daemon, one at a time: a changed configuration is read and checked, and then waits to be taken over. */
export class ReloadCoordinator {
  readonly #readConfiguration: () => Promise<Configuration>;
  readonly #newId: () => string;
  readonly #outcomes = new Map<string, ReloadOutcome>();
  #running: Configuration;
  #isReading = false;
  /** Begun, and not taken over yet. */
  #pending: Reload | null = null;
  #requested = Promise.withResolvers<Reload>();
  /** Where another one was asked for meanwhile. */
  #followUpLog: Log | null = null;
  #reloadGuard: () => string | null = () => null;

  /**
   * @param running what the daemon was started with
   * @param readConfiguration gives the configuration as it is now, or a Failure
   */
  constructor(running: Configuration, readConfiguration: () => Promise<Configuration>, newId: () => string) {
    this.#running = running;
    this.#readConfiguration = readConfiguration;
    this.#newId = newId;
  }

  /** Resolves with the next one that has begun. */
  get requested(): Promise<Reload> {
    return this.#requested.promise;
  }

  /** @param obstacle says in words why the hub that runs must not be replaced just now; null if it may */
  setReloadGuard(obstacle: () => string | null): void {
    this.#reloadGuard = obstacle;
  }

  /**
   * Reads the configuration and checks it; nothing has happened until the reload is begun.
   * @throws Failure `config_invalid`, or `not_allowed` while another one is under way or the hub must not go
   */
  async prepare(): Promise<PreparedReload> {
    if (this.#isReading || this.#pending !== null) {
      throw new Failure('not_allowed', 'the hub is taking another configuration over: try again when it has done so');
    }
    const obstacle = this.#reloadGuard();
    if (obstacle !== null) throw new Failure('not_allowed', obstacle);
    this.#isReading = true;
    try {
      const configuration = await this.#readConfiguration();
      rejectUnreloadableChanges(this.#running, configuration);
      const reload = { id: this.#newId(), configuration };
      this.#pending = reload;
      this.#recordOutcome(reload.id, { state: 'under_way' });
      return { id: reload.id, start: () => this.#requested.resolve(reload) };
    } finally {
      this.#isReading = false;
    }
  }

  /** Somebody wants a reload who waits for no answer; where one is under way, another follows it. */
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

  /** The hub runs with the configuration of a reload, or, where there is a `problem`, with the one before. */
  settle({ id, configuration }: Reload, problem: string | null): void {
    if (problem === null) this.#running = configuration;
    this.#recordOutcome(id, problem === null ? { state: 'done' } : { state: 'failed', message: problem });
    this.#pending = null;
    this.#requested = Promise.withResolvers();
    const again = this.#followUpLog;
    this.#followUpLog = null;
    if (again !== null) void this.request(again);
  }

  outcome(id: string): ReloadOutcome {
    return this.#outcomes.get(id) ?? { state: 'unknown' };
  }

  #recordOutcome(id: string, outcome: ReloadOutcome): void {
    this.#outcomes.set(id, outcome);
    for (const old of [...this.#outcomes.keys()].slice(0, -MAX_OUTCOMES)) this.#outcomes.delete(old);
  }
}

/** @throws Failure `config_invalid` where something was changed that a running daemon can't follow */
function rejectUnreloadableChanges(running: Configuration, wanted: Configuration): void {
  const lasting = [
    ['hub.state_dir', running.stateDirectory, wanted.stateDirectory],
    ['hub.control_socket', running.controlSocket, wanted.controlSocket],
  ] as const;
  for (const [key, before, now] of lasting) {
    if (before === now) continue;
    throw new Failure('config_invalid', `${wanted.file}: ${key} can't change while the hub runs: restart it`);
  }
}
