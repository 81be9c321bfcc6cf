/** What happened to a hub, or to the database of all hubs. */
export type FaultKind =
  | 'killed'
  /** From a kill until the daemon is started again: from then on it can tell the others what it had begun. */
  | 'down'
  | 'paused'
  | 'cut_from_database'
  | 'cut_from_portal'
  | 'cut_from_lan'
  | 'database_away';

/** A fault. Times are ms since 1970. */
export interface Fault {
  readonly kind: FaultKind;
  /** The name of the hub; null for all hubs. */
  readonly hub: string | null;
  readonly from: number;
  /** Infinity while it lasts. */
  readonly to: number;
}

/** The faults of a run, with their times. */
export class FaultLog {
  readonly #faults: { kind: FaultKind; hub: string | null; from: number; to: number }[] = [];

  get faults(): readonly Fault[] {
    return this.#faults;
  }

  /** @returns call it when the fault has ended */
  begin(kind: FaultKind, hub: string | null): () => void {
    const fault = { kind, hub, from: Date.now(), to: Number.POSITIVE_INFINITY };
    this.#faults.push(fault);
    return () => {
      fault.to = Date.now();
    };
  }

  /** Whether a hub suffers a fault now. Faults of the database do not count. */
  isFaulty(hub: string): boolean {
    return this.#faults.some((fault) => fault.hub === hub && fault.to === Number.POSITIVE_INFINITY);
  }

  /** The number of faults of a kind. */
  count(kind: FaultKind): number {
    return this.#faults.filter((fault) => fault.kind === kind).length;
  }

  /** The durations of the ended faults of a kind, in seconds. */
  seconds(kind: FaultKind): number[] {
    return this.#faults.flatMap((fault) =>
      fault.kind === kind && fault.to !== Number.POSITIVE_INFINITY ? [(fault.to - fault.from) / 1000] : [],
    );
  }
}
