import type { Appliance } from './appliances/appliance.ts';
import type { Session } from './appliances/session.ts';
import type { Connection } from './connections/connection.ts';
import { Failure } from './failure.ts';
import type { Grant } from './grants/grant.ts';
import { Secret } from './secret.ts';
import { HUB_NOTICES_SETTING, KEY_CHECK_SETTING, SITE_ID_SETTING } from './site.ts';

/** In characters. */
const MIN_PASSPHRASE_LENGTH = 12;
const MAX_PASSPHRASE_LENGTH = 1024;
/** Rejects input such as one key held down. */
const MIN_DISTINCT_CHARACTERS = 5;

/** What a passphrase for a new backup needs. */
export const PASSPHRASE_RULE = `at least ${MIN_PASSPHRASE_LENGTH} characters, ${MIN_DISTINCT_CHARACTERS} of them different`;

/**
 * The setting with the signed-in browsers of the hub's page. Backups leave it out: restoring one would sign in a
 * browser that has signed out since.
 */
export const PAGE_SESSIONS_SETTING = 'page_sessions';

/**
 * The setting with the notices that were sent about connections and appliances. Backups leave it out: its notices would
 * be about problems that are long over.
 */
export const NOTICES_SETTING = 'notices';

const EXCLUDED_SETTINGS: ReadonlySet<string> = new Set([
  ...[PAGE_SESSIONS_SETTING, NOTICES_SETTING, HUB_NOTICES_SETTING],
  ...[SITE_ID_SETTING, KEY_CHECK_SETTING],
]);

/** Whether backups leave out a setting. */
export function isExcludedFromBackup(setting: string): boolean {
  return EXCLUDED_SETTINGS.has(setting);
}

/**
 * The state of a hub in a backup: its settings, connections, appliances, grants and sessions. Pairings are left out:
 * they last a quarter of an hour, and a hub that resumed one from a backup could send its code a second time. Invites
 * are left out, because one that was used since would be valid again.
 */
export interface BackupContents {
  /** When it was made, in ms since 1970 by the hub's wall clock. */
  readonly made: number;
  /** The hub's settings by name, such as `hub_id`; some are secret. */
  readonly settings: ReadonlyMap<string, string>;
  readonly connections: readonly Connection[];
  readonly appliances: readonly Appliance[];
  readonly grants: readonly Grant[];
  /** For each appliance the oldest first. */
  readonly sessions: readonly Session[];
}

/** What happened to the grants when a backup was restored. */
export interface RestoredGrants {
  /** Names of the connections whose grant now is the backup's. */
  readonly restored: readonly string[];
  /** Names of the connections whose existing grant is not older than the backup's, and was kept. */
  readonly kept: readonly string[];
}

/**
 * Checks a passphrase for a new backup, and returns it normalized.
 * @throws Failure `passphrase_weak`
 */
export function checkPassphrase(text: string): Secret {
  const passphrase = normalizePassphrase(text);
  const characters = [...passphrase.reveal()];
  if (characters.length >= MIN_PASSPHRASE_LENGTH && new Set(characters).size >= MIN_DISTINCT_CHARACTERS)
    return passphrase;
  throw new Failure('passphrase_weak', `the passphrase is too weak: use ${PASSPHRASE_RULE}, such as four random words`);
}

/**
 * Normalizes a typed passphrase to Unicode NFC, because terminals compose characters in different ways.
 * @throws Failure `passphrase_weak` if it is empty or longer than any passphrase of a backup
 */
export function normalizePassphrase(text: string): Secret {
  if (text !== '' && text.length <= MAX_PASSPHRASE_LENGTH) return new Secret(text.normalize('NFC'));
  throw new Failure('passphrase_weak', `the passphrase must have 1 to ${MAX_PASSPHRASE_LENGTH} characters`);
}
