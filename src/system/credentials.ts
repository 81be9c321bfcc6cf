import { join } from 'node:path';

/** What the shipped unit puts before the name of each file of its directory of credentials, as systemd.exec(5) has it. */
const OF_DIRECTORY = 'secrets_';

/**
 * Where a systemd credential may be that goes by this name: one that was loaded by itself, or out of a directory
 * (`LoadCredential=secrets:/etc/latchkey/credentials`).
 * @param credentials systemd's `$CREDENTIALS_DIRECTORY`; undefined where there is none
 */
export function credentialPaths(credentials: string | undefined, name: string): string[] {
  if (credentials === undefined || name.includes('/')) return [];
  return [join(credentials, name), join(credentials, `${OF_DIRECTORY}${name}`)];
}
