import { randomBytes } from 'node:crypto';
import type { AuthenticationNotes, GrantNotes } from '../audit/client-audit.ts';
import type { AuthorizationCode } from '../oauth/authorization-codes.ts';
import type { Grant } from '../oauth/grants.ts';
import type { HelperRun } from '../oauth/helper-runs.ts';
import type { PersistentMap } from './bounded.ts';

/** A state file that can't be used; the message says which and what to do. */
export class StateFileError extends Error {
  override readonly name = 'StateFileError';
}

/** What the emulator keeps beyond its process, or, with {@link PASSING}, does not. */
export interface Memory {
  /** Null: kept in memory only. */
  readonly grants: PersistentMap<Grant> | null;
  readonly codes: PersistentMap<AuthorizationCode> | null;
  readonly runs: PersistentMap<HelperRun> | null;
  readonly notes: PersistentMap<GrantNotes> | null;
  readonly authentications: PersistentMap<AuthenticationNotes> | null;
  /** The key for a purpose, 32 bytes; the same as before where it is kept. */
  key(purpose: 'states' | 'tokens'): Buffer;
  /** A fresh key for a purpose, instead of the one before. */
  newKey(purpose: 'states' | 'tokens'): Buffer;
  /** Something that is kept by name, or null. */
  setting(name: string): string | null;
  keepSetting(name: string, value: string): void;
  /** Does several writes at once: a crash leaves all of them behind or none. */
  together<Result>(work: () => Result): Result;
  /** Nothing is kept from here on. */
  end(): void;
}

/** A memory that ends with the process. */
export const PASSING: Memory = {
  grants: null,
  codes: null,
  runs: null,
  notes: null,
  authentications: null,
  key: () => randomBytes(32),
  newKey: () => randomBytes(32),
  setting: () => null,
  keepSetting: () => {},
  together: (work) => work(),
  end: () => {},
};
