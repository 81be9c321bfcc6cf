import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';

/** What of a grant and its pairing is on disk, as far as it can be read without the key. */
export interface StoredGrantRecord {
  readonly generation: number;
  readonly hasTokens: boolean;
  /** The SHA-256 of the refresh token that was about to be sent, base64url. */
  readonly attempt: string | null;
  readonly inDoubt: boolean;
  /** Where the newest pairing stands. */
  readonly pairing: string | null;
}

interface Row {
  readonly generation: number;
  readonly sealed: string | null;
  readonly attempt: string | null;
  readonly doubt: string | null;
  readonly step: string | null;
}

/** Reads what a hub that was killed has left, in a copy: what it left stays as it is. Null where there is no grant. */
export async function readStoredGrant(stateDirectory: string, appliance: string): Promise<StoredGrantRecord | null> {
  const copy = await mkdtemp(join(tmpdir(), 'latchkey-left-'));
  try {
    for (const name of ['latchkey.db', 'latchkey.db-wal']) {
      await cp(join(stateDirectory, name), join(copy, name)).catch((error: unknown) => {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
      });
    }
    const database = new Database(join(copy, 'latchkey.db'));
    try {
      const row = database.prepare<[string], Row>(QUERY).get(appliance);
      return row === undefined ? null : stateOf(row);
    } finally {
      database.close();
    }
  } finally {
    await rm(copy, { recursive: true });
  }
}

const QUERY = `SELECT generation, grants.sealed, attempt, doubt,
    (SELECT step FROM pairings WHERE pairings.appliance = appliances.id ORDER BY number DESC LIMIT 1) AS step
  FROM appliances JOIN grants ON grants.appliance = appliances.id WHERE name = ?`;

function stateOf({ generation, sealed, attempt, doubt, step }: Row): StoredGrantRecord {
  return {
    generation,
    hasTokens: sealed !== null,
    attempt: (JSON.parse(attempt ?? 'null') as { token: string } | null)?.token ?? null,
    inDoubt: doubt !== null,
    pairing: step,
  };
}
