import type { Instant } from '../../core/clock.ts';
import { areDeviceCodesRetained, isInstallerInitiated, type Pairing } from '../../core/pairings/pairing.ts';
import type { PairingRun } from './pairing-run.ts';

/**
 * The most ended pairings that are remembered, so that their result page can be shown again. Pairings whose appliance
 * may still poll its device flow are kept in addition.
 */
const MAX_ENDED = 1000;

/** The pairings that the hub knows, open or ended, in the order in which they began. */
export class PairingIndex {
  readonly #runs = new Map<string, PairingRun>();
  /** Ids of pairings that are stored, and added only when another one has ended. */
  readonly reserved = new Set<string>();
  /** Those of each connection, in the order in which they began. */
  readonly #byConnection = new Map<string, readonly PairingRun[]>();

  get(id: string): PairingRun | undefined {
    return this.#runs.get(id);
  }

  /** The newest matching pairing. */
  find(matches: (run: PairingRun) => boolean): PairingRun | undefined {
    return [...this.#runs.values()].findLast(matches);
  }

  /** The matching pairings. */
  filter(matches: (run: PairingRun) => boolean): PairingRun[] {
    return [...this.#runs.values()].filter(matches);
  }

  /** The pairings of a connection. */
  of(connection: string): readonly PairingRun[] {
    return this.#byConnection.get(connection) ?? [];
  }

  /**
   * The open pairing of a connection: the one that an installer waits for, else the newest.
   * @param appliance the id of an appliance: device flows of others don't count
   */
  findOpen(connection: string, appliance?: string): PairingRun | undefined {
    const open = this.of(connection).filter(
      ({ isOpen, pairing: { device } }) =>
        isOpen && (appliance === undefined || device === null || device.appliance === appliance),
    );
    return open.findLast(({ pairing }) => isInstallerInitiated(pairing)) ?? open.at(-1);
  }

  add(run: PairingRun): void {
    this.#runs.set(run.pairing.id, run);
    const { connection } = run.pairing;
    this.#byConnection.set(connection, [...this.of(connection), run]);
  }

  forget(run: PairingRun): void {
    const { id, connection } = run.pairing;
    this.#runs.delete(id);
    const others = this.of(connection).filter((other) => other !== run);
    if (others.length > 0) this.#byConnection.set(connection, others);
    else this.#byConnection.delete(connection);
  }

  /** Forgets the oldest ended pairings beyond a limit. */
  evictEnded(now: Instant): void {
    const ended = this.filter(({ isOpen }) => !isOpen);
    for (const run of ended.slice(0, -MAX_ENDED)) {
      if (!this.#isAwaited(run, now)) this.forget(run);
    }
  }

  /** Whether an appliance may still poll, with its current codes, how this pairing ended. */
  #isAwaited(run: PairingRun, now: Instant): boolean {
    const { pairing } = run;
    const key = flowKey(pairing);
    const newest = this.of(pairing.connection).findLast((other) => flowKey(other.pairing) === key);
    return pairing.device !== null && newest === run && areDeviceCodesRetained(pairing, now);
  }
}

/** What a newer pairing replaces: the pairing of a connection, or the device flow of one appliance. */
function flowKey({ connection, device }: Pairing): string {
  return `${connection} ${device?.appliance ?? connection}`;
}
