import { readFile } from 'node:fs/promises';
import { Failure } from '../../../core/failure.ts';
import type { DatabaseAddress } from './connections.ts';
import type { PostgresUrl } from './postgres-url.ts';

/**
 * How to connect to the database of a URL.
 * @throws Failure `config_invalid` if the file of the CA can't be read
 */
export async function readDatabaseAddress(url: PostgresUrl): Promise<DatabaseAddress> {
  const { host, port, user, password, database, tls, description } = url;
  return {
    host,
    port,
    user,
    database,
    description,
    password: password?.reveal(),
    tls: tls && { ca: tls.ca === null ? undefined : await readCaFile(tls.ca) },
  };
}

function readCaFile(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((cause: unknown) => {
    throw new Failure('config_invalid', `the CA of the database in ${path} (sslrootcert) can't be read`, { cause });
  });
}
