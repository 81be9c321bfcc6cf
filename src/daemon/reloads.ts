import type { Configuration } from '../configuration/configuration.ts';
import type { BegunReload, ReloadOutcome } from '../core/administration.ts';
import { Failure, messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';

/** A reload whose configuration was found right. */
export interface Reload {
  readonly id: string;
  readonly configuration: Configuration;
}

/** How many outcomes are kept for those who ask. */
const MAX_KEPT = 20;

/** The reloads of a daemon, one at a time: a changed configuration is read and checked, and then waits to be taken over. */
export class Reloads {
  readonly #read: () => Promise<Configuration>;
  readonly #newId: () => string;
  readonly #outcomes = new Map<string, ReloadOutcome>();
  #running: Configuration;
  #reading = false;
  /** Begun, and not taken over yet. */
  #begun: Reload | null = null;
  #wanted = Promise.withResolvers<Reload>();
  /** Where another one was asked for meanwhile. */
  #again: Log | null = null;
  #obstacle: () => string | null = () => null;

  /**
   * @param running what the daemon was started with
   * @param read gives the configuration as it is now, or a Failure
   */
  constructor(running: Configuration, read: () => Promise<Configuration>, newId: () => string) {
    this.#running = running;
    this.#read = read;
    this.#newId = newId;
  }

  /** Resolves with the next one that has begun. */
  get wanted(): Promise<Reload> {
    return this.#wanted.promise;
  }

  /** @param obstacle says in words why the hub that runs must not be replaced just now; null if it may */
  setReloadGuard(obstacle: () => string | null): void {
    this.#obstacle = obstacle;
  }

  /**
   * Reads the configuration and checks it; nothing has happened until the reload is begun.
   * @throws Failure `config_invalid`, or `not_allowed` while another one is under way or the hub must not go
   */
  async prepare(): Promise<BegunReload> {
    if (this.#reading || this.#begun !== null) {
      throw new Failure('not_allowed', 'the hub is taking another configuration over: try again when it has done so');
    }
    const obstacle = this.#obstacle();
    if (obstacle !== null) throw new Failure('not_allowed', obstacle);
    this.#reading = true;
    try {
      const configuration = await this.#read();
      refuseLasting(this.#running, configuration);
      const reload = { id: this.#newId(), configuration };
      this.#begun = reload;
      this.#note(reload.id, { state: 'under_way' });
      return { id: reload.id, begin: () => this.#wanted.resolve(reload) };
    } finally {
      this.#reading = false;
    }
  }

  /** Somebody wants a reload who waits for no answer; where one is under way, another follows it. */
  async ask(log: Log): Promise<void> {
    if (this.#reading || this.#begun !== null) {
      this.#again = log;
      return;
    }
    try {
      (await this.prepare()).begin();
    } catch (error) {
      log.error('configuration_rejected', { error: messageOf(error) });
    }
  }

  /** The hub runs with the configuration of a reload, or, where there is a `problem`, with the one before. */
  settle({ id, configuration }: Reload, problem: string | null): void {
    if (problem === null) this.#running = configuration;
    this.#note(id, problem === null ? { state: 'done' } : { state: 'failed', message: problem });
    this.#begun = null;
    this.#wanted = Promise.withResolvers();
    const again = this.#again;
    this.#again = null;
    if (again !== null) void this.ask(again);
  }

  outcome(id: string): ReloadOutcome {
    return this.#outcomes.get(id) ?? { state: 'unknown' };
  }

  #note(id: string, outcome: ReloadOutcome): void {
    this.#outcomes.set(id, outcome);
    for (const old of [...this.#outcomes.keys()].slice(0, -MAX_KEPT)) this.#outcomes.delete(old);
  }
}

/** @throws Failure `config_invalid` where something was changed that a running daemon can't follow */
function refuseLasting(running: Configuration, wanted: Configuration): void {
  const lasting = [
    ['hub.state_dir', running.stateDirectory, wanted.stateDirectory],
    ['hub.control_socket', running.controlSocket, wanted.controlSocket],
  ] as const;
  for (const [key, before, now] of lasting) {
    if (before === now) continue;
    throw new Failure('config_invalid', `${wanted.file}: ${key} can't change while the hub runs: restart it`);
  }
}
