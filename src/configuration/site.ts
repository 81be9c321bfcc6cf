import { resolve } from 'node:path';
import { messageOf } from '../core/failure.ts';
import type { PostgresUrl } from '../store/postgres/database/postgres-url.ts';
import { type readSecret, secretLocation } from '../system/secret-file.ts';
import { readCa } from './file.ts';

/** The database of a site. */
export interface SiteConfiguration {
  /** The file of a CA in it is an absolute path, and was readable when the configuration was read. */
  readonly url: PostgresUrl;
  /** Where people find the file with the URL. */
  readonly file: string;
}

/** What is needed to read {@link SiteConfiguration}. */
interface SiteContext {
  /** The base of relative paths. */
  readonly directory: string;
  /** systemd's `$CREDENTIALS_DIRECTORY`. */
  readonly credentialsDirectory: string | undefined;
  /** Reads a file with a secret. */
  readonly readSecret: typeof readSecret;
  /** Called with the problem of the key `store.postgres_file`. */
  report(problem: string): void;
  /** Called if white space was removed from the URL. */
  reportTrimmed(): void;
}

/**
 * Reads the file that `store.postgres_file` names.
 * @param file undefined if the key is not set
 * @returns null if the key is not set, or its problem was reported
 */
export async function readSite(file: string | undefined, context: SiteContext): Promise<SiteConfiguration | null> {
  if (file === undefined) return null;
  const { directory, credentialsDirectory: credentials } = context;
  try {
    if (/^postgres(ql)?:/i.test(file)) throw new Error('must name a file with the URL, not be the URL itself');
    const text = await context.readSecret(file, directory, credentials, 'url', context.reportTrimmed);
    // Loaded only for a site: a hub on SQLite needs nothing of PostgreSQL.
    const { parsePostgresUrl } = await import('../store/postgres/database/postgres-url.ts');
    const url = parsePostgresUrl(text.reveal());
    const ca = url.tls?.ca ? resolve(directory, url.tls.ca) : null;
    if (ca !== null) await readCa(ca);
    return { url: { ...url, tls: url.tls && { ca } }, file: secretLocation(file, directory, credentials) };
  } catch (error) {
    context.report(messageOf(error));
    return null;
  }
}
