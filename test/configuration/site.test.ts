import { chmodSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { loadConfiguration } from '../../src/configuration/configuration.ts';
import { stateFolder } from '../support/state-folder.ts';

const PASSWORD = 'pass-word-0815';
const URL_TEXT = `postgresql://latchkey:${PASSWORD}@db.example/latchkey?sslmode=verify-full`;

const folder = stateFolder();
const file = join(folder.path, 'latchkey.toml');
afterAll(() => folder[Symbol.dispose]());

beforeEach(() => write('postgres.url', `${URL_TEXT}\n`));

function write(name: string, content: string, mode = 0o600): void {
  writeFileSync(join(folder.path, name), content);
  chmodSync(join(folder.path, name), mode);
}

async function loadSite(toml = 'store.postgres_file = "postgres.url"', env: NodeJS.ProcessEnv = {}) {
  write('latchkey.toml', toml);
  return (await loadConfiguration(file, { HOME: folder.path, ...env })).site;
}

async function errorOf(toml: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
  return loadSite(toml, env).then(
    () => 'no error',
    (error: unknown) => inspect(error),
  );
}

describe('store.postgres_file', () => {
  it('a configuration without the key has no site', async () => {
    expect(await loadSite('')).toBeNull();
  });

  it('the URL comes from a file beside the configuration, and printing the configuration does not show its password', async () => {
    const site = await loadSite();
    expect(site).toMatchObject({
      url: { host: 'db.example', database: 'latchkey', tls: { ca: null } },
      file: join(folder.path, 'postgres.url'),
    });
    expect(site?.url.password?.reveal()).toBe(PASSWORD);
    expect(JSON.stringify(site) + inspect(site, { depth: 9 })).not.toContain(PASSWORD);
  });

  it('the key can be set by the environment, and can name a systemd credential', async () => {
    mkdirSync(join(folder.path, 'credentials'), { recursive: true });
    write('credentials/secrets_site', 'postgresql://u@localhost/other', 0o444);
    const env = {
      LATCHKEY_STORE_POSTGRES_FILE: 'site',
      CREDENTIALS_DIRECTORY: join(folder.path, 'credentials'),
    };
    expect(await loadSite('', env)).toMatchObject({
      url: { database: 'other' },
      file: '/etc/latchkey/credentials/site',
    });
  });

  it('the file of a CA is relative to the configuration, and must contain a certificate', async () => {
    write('postgres.url', `${URL_TEXT}&sslrootcert=ca.pem`);
    expect(await errorOf('store.postgres_file = "postgres.url"')).toContain(
      `store.postgres_file: ${folder.path}/ca.pem does not exist`,
    );
    mkdirSync(join(folder.path, 'ca.pem'));
    expect(await errorOf('store.postgres_file = "postgres.url"')).toContain("ca.pem can't be read (EISDIR");
    rmdirSync(join(folder.path, 'ca.pem'));
    write('ca.pem', 'no certificate');
    expect(await errorOf('store.postgres_file = "postgres.url"')).toContain('ca.pem contains no PEM certificate');
    write('ca.pem', '-----BEGIN CERTIFICATE-----\n');
    expect((await loadSite())?.url.tls).toEqual({ ca: join(folder.path, 'ca.pem') });
  });

  it.for<[what: string, toml: string, says: string, content?: string, mode?: number]>([
    ['a URL', `store.postgres_file = "${URL_TEXT}"`, 'store.postgres_file: must name a file with the URL'],
    ['a missing file', 'store.postgres_file = "missing"', 'store.postgres_file: names a file that does not exist'],
    ['an open file', 'store.postgres_file = "postgres.url"', 'is open to other users (mode 0644)', URL_TEXT, 0o644],
    ['two lines', 'store.postgres_file = "postgres.url"', 'only the secret, on one line', `${URL_TEXT}\nx\n`],
    ['no TLS', 'store.postgres_file = "postgres.url"', 'must have sslmode=verify-full', URL_TEXT.replace(/\?.*/, '')],
  ])('%s in the key or its file is refused without the password', async ([, toml, says, content, mode]) => {
    if (content !== undefined) write('postgres.url', content, mode);
    const message = await errorOf(toml);
    expect(message).toContain(says);
    expect(message).not.toContain(PASSWORD);
  });
});
