import { resolve } from 'node:path';
import { messageOf } from '../core/failure.ts';
import type { PostgresUrl } from '../store/postgres/database/postgres-url.ts';
import { secretLocation } from '../system/secret-file.ts';
import { readCa } from './file.ts';
import type { ReadingContext } from './reading-context.ts';

/** The database of a site. */
export interface SiteConfiguration {
  /** The file of a CA in it is an absolute path, and was readable when the configuration was read. */
  readonly url: PostgresUrl;
  /** Where people find the file with the URL. */
  readonly file: string;
}

const KEY = 'store.postgres_file';

/**
 * Reads the file that {@link KEY} names.
 * @param file undefined if the key is not set
 * @returns null if the key is not set, or its problem was reported
 */
export async function readSite(file: string | undefined, context: ReadingContext): Promise<SiteConfiguration | null> {
  if (file === undefined) return null;
  const { directory, credentialsDirectory: credentials } = context;
  try {
    if (/^postgres(ql)?:/i.test(file)) throw new Error('must name a file with the URL, not be the URL itself');
    const text = await context.readSecret(KEY, file, 'url');
    // Loaded only for a site: a hub on SQLite needs nothing of PostgreSQL.
    const { parsePostgresUrl } = await import('../store/postgres/database/postgres-url.ts');
    const url = parsePostgresUrl(text.reveal());
    const ca = url.tls?.ca ? resolve(directory, url.tls.ca) : null;
    if (ca !== null) await readCa(ca);
    return { url: { ...url, tls: url.tls && { ca } }, file: secretLocation(file, directory, credentials) };
  } catch (error) {
    context.report(KEY, messageOf(error));
    return null;
  }
}
