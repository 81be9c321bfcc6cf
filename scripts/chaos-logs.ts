// Looks for the secrets of a run in the logs of everything that it started.
import { globSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { secretSearch } from '../test/after/secret-search.ts';

/**
 * @param run the run's folder: `logs`, and beside it `secrets`, which is removed
 * @returns where a secret is told, as `file:line: form`, never with the secret itself
 */
export function secretsInLogs(run: string): string[] {
  const folder = join(run, 'secrets');
  const files = globSync('*', { cwd: folder }).map((name) => readFileSync(join(folder, name), 'utf8'));
  const secrets = files.flatMap((text) =>
    text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => String(JSON.parse(line))),
  );
  rmSync(folder, { recursive: true, force: true });
  const search = secretSearch(secrets);
  const logs = globSync('**', { cwd: join(run, 'logs') }).map((name) => join(run, 'logs', name));
  return logs
    .filter((log) => statSync(log).isFile())
    .flatMap((log) => search(readFileSync(log)).map(({ line, kind }) => `${log}:${line}: a secret, ${kind}`));
}
