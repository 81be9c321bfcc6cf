import { existsSync } from 'node:fs';
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findChangedCredentials, findOpenCredentials } from '../../src/doctor/credentials.ts';
import { parseCredentialSources } from '../../src/doctor/systemd-unit.ts';
import { stateFolder } from '../support/state-folder.ts';

const SYSTEMD_CREDS = '/usr/bin/systemd-creds';
const isRoot = process.getuid?.() === 0;

/** A directory of credentials and another credential, and what systemd loaded from them. */
async function service(folder: string): Promise<{ source: string; credential: string; loaded: string }> {
  const [source, credential, loaded] = [join(folder, 'source'), join(folder, 'alone.cred'), join(folder, 'loaded')];
  await mkdir(source);
  await mkdir(loaded);
  for (const name of ['home.secret', 'wallbox.secret', 'store.key']) {
    await writeFile(join(source, name), `${name} of before\n`);
    await writeFile(join(loaded, `secrets_${name}`), `${name} of before\n`);
  }
  await writeFile(credential, 'alone of before\n');
  await writeFile(join(loaded, 'alone'), 'alone of before\n');
  return { source, credential, loaded };
}

const unit = (source: string, credential: string) =>
  parseCredentialSources(
    `# /usr/lib/systemd/system/latchkey.service\n[Service]\nLoadCredential=secrets:${source}\nLoadCredential=alone:${credential}\n`,
  );

test('the doctor names a credential file whose content differs from what the service loaded', async () => {
  using folder = stateFolder();
  const { source, credential, loaded } = await service(folder.path);
  const check = () => findChangedCredentials(unit(source, credential), process.env, loaded);
  expect(await check()).toEqual([]);
  await writeFile(join(source, 'home.secret'), 'another\n');
  expect(await check()).toEqual([join(source, 'home.secret')]);
  await writeFile(credential, 'another\n');
  expect((await check())?.sort()).toEqual([credential, join(source, 'home.secret')]);
});

test('a new or missing credential or a rotated store key does not count as changed for the doctor', async () => {
  using folder = stateFolder();
  const { source, credential, loaded } = await service(folder.path);
  await writeFile(join(source, 'new.secret'), 'new\n');
  await rm(join(source, 'wallbox.secret'));
  await writeFile(join(source, 'store.key'), 'the key after its rotation\n');
  await writeFile(join(loaded, 'of-nobody'), 'set\n');
  expect(await findChangedCredentials(unit(source, credential), process.env, loaded)).toEqual([]);
  expect(await findChangedCredentials(unit(source, credential), process.env, join(folder.path, 'nowhere'))).toEqual([]);
});

test.skipIf(!isRoot || !existsSync(SYSTEMD_CREDS))(
  'the doctor compares the content of an encrypted credential',
  async () => {
    const { execFileSync } = await import('node:child_process');
    using folder = stateFolder();
    const { credential, loaded } = await service(folder.path);
    const encrypt = (text: string) =>
      execFileSync(SYSTEMD_CREDS, ['encrypt', '--with-key=host', '--name=alone', '-', credential], { input: text });
    const sources = parseCredentialSources(`LoadCredentialEncrypted=alone:${credential}\n`);
    encrypt('alone of before\n');
    expect(await findChangedCredentials(sources, process.env, loaded)).toEqual([]);
    encrypt('another\n');
    expect(await findChangedCredentials(sources, process.env, loaded)).toEqual([credential]);
  },
);

test('the doctor names the credentials that other users can read, but no open file in a closed directory', async () => {
  using folder = stateFolder();
  await chmod(folder.path, 0o755);
  const { source, credential } = await service(folder.path);
  const check = () => findOpenCredentials(unit(source, credential));
  const files = ['home.secret', 'wallbox.secret', 'store.key'].map((name) => join(source, name));
  for (const file of files) await chmod(file, 0o644);
  await chmod(source, 0o700);
  await chmod(credential, 0o600);
  expect(await check()).toEqual([]);
  // Without the right to list it, a file can still be read by its name.
  await chmod(source, 0o711);
  await chmod(files[0] ?? '', 0o600);
  expect(await check()).toEqual([expect.stringContaining('wallbox.secret')]);
  await chmod(source, 0o755);
  await chmod(credential, 0o644);
  expect(await check()).toEqual([
    expect.stringMatching(`^other users can read [^:]*/store.key[^:]*: sudo chmod 700 ${source}$`),
    `other users can read ${credential}: sudo chmod 600 ${credential}`,
  ]);
  expect((await check())[0]).not.toContain('home.secret');
  const encrypted = parseCredentialSources(`LoadCredentialEncrypted=alone:${credential}\n`);
  expect(await findOpenCredentials(encrypted)).toEqual([]);
});

test('a drop-in replaces a credential of the unit with the same name', () => {
  const plain = { id: 'secrets', path: '/etc/latchkey/credentials', isEncrypted: false };
  const files = 'LoadCredential=secrets:/etc/latchkey/credentials\n';
  expect(parseCredentialSources(files)).toEqual([plain]);
  expect(parseCredentialSources(`${files}LoadCredentialEncrypted=secrets:/etc/latchkey/credentials\n`)).toEqual([
    { ...plain, isEncrypted: true },
  ]);
  expect(parseCredentialSources(`${files}LoadCredential=\nSetCredential=a:b\nLoadCredential=c\n`)).toEqual([
    { id: 'a', path: '', isEncrypted: false },
    { id: 'c', path: '', isEncrypted: false },
  ]);
});
