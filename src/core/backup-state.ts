import type { Appliance } from './appliances/appliance.ts';
import type { Session } from './appliances/session.ts';
import { Failure } from './failure.ts';
import type { Grant } from './grants/grant.ts';
import { Secret } from './secret.ts';

/** Characters of a passphrase. */
const MIN_PASSPHRASE_LENGTH = 12;
const MAX_PASSPHRASE_LENGTH = 1024;
/** Fewer different characters are no passphrase but a key held down. */
const MIN_DISTINCT_CHARACTERS = 5;

/**
 * The setting that holds who is signed in to the installer's page: this machine's alone, and in no copy. Somebody who has
 * signed out would be signed in again.
 */
export const PAGE_SESSIONS_SETTING = 'page_sessions';

/** The setting that remembers which notices were told; of this machine alone too: a copy's would be of things long over. */
export const NOTICES_SETTING = 'notices';

/** Whether a setting is in no copy. */
export function isExcludedFromBackup(setting: string): boolean {
  return setting === PAGE_SESSIONS_SETTING || setting === NOTICES_SETTING;
}

/**
 * The state of a hub, as a backup holds it: what makes it this hub, its appliances, their grants and their sessions.
 * Pairings are left out: they live for a quarter of an hour, and a hub that took one up from a copy would send its code a
 * second time. So are invites: one that was used since would be good again.
 */
export interface BackupState {
  /** When it was made, in ms since 1970 by the hub's wall clock. */
  readonly made: number;
  /** The hub's own values by their names, such as `hub_id`; secrets are among them. */
  readonly settings: ReadonlyMap<string, string>;
  readonly appliances: readonly Appliance[];
  readonly grants: readonly Grant[];
  /** Each appliance's oldest first. */
  readonly sessions: readonly Session[];
}

/** What became of the state when a copy was restored. */
export interface RestoredGrants {
  /** Names of the appliances whose grant is now the copy's. */
  readonly restored: readonly string[];
  /** Names of the appliances whose grant at hand is not older than the copy's, and was kept. */
  readonly kept: readonly string[];
}

/**
 * Takes a passphrase that a copy is to be encrypted with.
 * @throws Failure `passphrase_weak`
 */
export function checkPassphrase(text: string): Secret {
  const passphrase = normalizePassphrase(text);
  const characters = [...passphrase.reveal()];
  if (characters.length >= MIN_PASSPHRASE_LENGTH && new Set(characters).size >= MIN_DISTINCT_CHARACTERS)
    return passphrase;
  throw new Failure(
    'passphrase_weak',
    `the passphrase is too weak: use at least ${MIN_PASSPHRASE_LENGTH} characters, ${MIN_DISTINCT_CHARACTERS} of them different, such as four words taken at random`,
  );
}

/**
 * Takes a passphrase as it is typed: the same characters are the same passphrase, however the terminal composes them.
 * @throws Failure `passphrase_weak` where it is empty or none that was ever taken
 */
export function normalizePassphrase(text: string): Secret {
  if (text !== '' && text.length <= MAX_PASSPHRASE_LENGTH) return new Secret(text.normalize('NFC'));
  throw new Failure('passphrase_weak', `the passphrase must have 1 to ${MAX_PASSPHRASE_LENGTH} characters`);
}
