import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';

/** The parts of a stored grant and its pairing that can be read without the store key. */
export interface StoredGrantRecord {
  readonly generation: number;
  readonly hasTokens: boolean;
  /** The SHA-256 of the refresh token that was written ahead, base64url. */
  readonly attempt: string | null;
  /** The step of the newest pairing. */
  readonly pairing: string | null;
}

interface Row {
  readonly generation: number;
  readonly sealed: string | null;
  readonly attempt: string | null;
  readonly step: string | null;
}

/** Reads a copy of the store of a killed hub, so that the store stays unchanged. Null if there is no grant. */
export async function readStoredGrant(stateDirectory: string, connection: string): Promise<StoredGrantRecord | null> {
  const copy = await mkdtemp(join(tmpdir(), 'latchkey-left-'));
  try {
    for (const name of ['latchkey.db', 'latchkey.db-wal']) {
      await cp(join(stateDirectory, name), join(copy, name)).catch((error: unknown) => {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
      });
    }
    const database = new Database(join(copy, 'latchkey.db'));
    try {
      const row = database.prepare<[string], Row>(QUERY).get(connection);
      return row === undefined ? null : stateOf(row);
    } finally {
      database.close();
    }
  } finally {
    await rm(copy, { recursive: true });
  }
}

const QUERY = `SELECT generation, grants.sealed, attempt,
    (SELECT step FROM pairings WHERE pairings.connection = connections.id ORDER BY number DESC LIMIT 1) AS step
  FROM connections JOIN grants ON grants.connection = connections.id WHERE name = ?`;

function stateOf({ generation, sealed, attempt, step }: Row): StoredGrantRecord {
  return {
    generation,
    hasTokens: sealed !== null,
    attempt: (JSON.parse(attempt ?? 'null') as { token: string } | null)?.token ?? null,
    pairing: step,
  };
}
