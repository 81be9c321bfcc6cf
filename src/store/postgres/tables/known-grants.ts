import { KnownRevisions } from './revisions.ts';
import { isOlder, type RowVersion, type SiteGrantRow } from './site-grant-row.ts';

/** The open attempt of a row. */
interface OpenAttempt extends Pick<SiteGrantRow, 'generation' | 'attempt' | 'attempt_id' | 'holder' | 'leased_until'> {
  /**
   * When its lease ends on this hub's boot clock, in ms, as it was when this hub first saw the attempt: the database's
   * clock may be set.
   */
  readonly endsAt: number;
}

const NOTHING_KNOWN: RowVersion = { generation: 0, revision: 0 };

/**
 * What a hub knows of the rows of `grants`, by connection. It may be newer than the database after a switch to another
 * server.
 */
export class KnownGrants {
  /** As this hub has read or written them last. */
  readonly revisions = new KnownRevisions();
  readonly #newest = new Map<string, RowVersion>();
  readonly #attempts = new Map<string, OpenAttempt>();

  /** The newest version that was in use. */
  newest(connection: string): RowVersion {
    return this.#newest.get(connection) ?? NOTHING_KNOWN;
  }

  /** The open attempt of any hub. */
  attempt(connection: string): OpenAttempt | null {
    return this.#attempts.get(connection) ?? null;
  }

  /**
   * Notes a row that was read.
   * @param endsAt when the lease of its open attempt ends, on this hub's boot clock in ms
   * @returns whether the database has lost writes that this hub knows
   */
  read(row: SiteGrantRow, endsAt: number): boolean {
    const { connection, generation, revision } = row;
    if (isOlder(row, this.newest(connection))) return true;
    this.#newest.set(connection, { generation, revision });
    if (row.attempt_id === null) this.#attempts.delete(connection);
    else this.#attempts.set(connection, { ...row, endsAt });
    return false;
  }

  /** Notes what a committed transaction of this hub has written. What was read meanwhile may be newer. */
  wrote(connection: string, version: RowVersion): void {
    if (isOlder(version, this.newest(connection))) return;
    this.revisions.wrote(connection, version.revision);
    this.#newest.set(connection, version);
  }

  /** Notes that it has written a new version, or the end of the attempt, so that none is open. */
  wroteWithoutAttempt(connection: string, version: RowVersion): void {
    this.#attempts.delete(connection);
    this.wrote(connection, version);
  }

  /** Notes that it has begun an attempt. */
  began(connection: string, version: RowVersion, attempt: OpenAttempt): void {
    this.#attempts.set(connection, attempt);
    this.wrote(connection, version);
  }

  /** Notes that this hub has deleted a grant, or removed its connection. */
  removed(connection: string): void {
    this.#newest.delete(connection);
    this.#attempts.delete(connection);
    this.revisions.removed(connection);
  }

  /** What the database has is in use, although this hub knows a newer version. */
  accept(connection: string, version: RowVersion): void {
    this.#newest.set(connection, version);
  }
}
