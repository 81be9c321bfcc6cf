import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findChangedCredentials } from '../../src/doctor/credentials.ts';
import { parseCredentialSources } from '../../src/doctor/systemd-unit.ts';
import { stateFolder } from '../support/state-folder.ts';

const SYSTEMD_CREDS = '/usr/bin/systemd-creds';
const isRoot = process.getuid?.() === 0;

/** A directory of credentials and another credential, and what systemd has made of them. */
async function service(folder: string): Promise<{ source: string; alone: string; loaded: string }> {
  const [source, alone, loaded] = [join(folder, 'source'), join(folder, 'alone.cred'), join(folder, 'loaded')];
  await mkdir(source);
  await mkdir(loaded);
  for (const name of ['home.secret', 'wallbox.secret', 'store.key']) {
    await writeFile(join(source, name), `${name} of before\n`);
    await writeFile(join(loaded, `secrets_${name}`), `${name} of before\n`);
  }
  await writeFile(alone, 'alone of before\n');
  await writeFile(join(loaded, 'alone'), 'alone of before\n');
  return { source, alone, loaded };
}

const unit = (source: string, alone: string) =>
  parseCredentialSources(
    `# /usr/lib/systemd/system/latchkey.service\n[Service]\nLoadCredential=secrets:${source}\nLoadCredential=alone:${alone}\n`,
  );

test('the doctor names a credential file whose content differs from what the service loaded', async () => {
  using folder = stateFolder();
  const { source, alone, loaded } = await service(folder.path);
  const look = () => findChangedCredentials(unit(source, alone), process.env, loaded);
  expect(await look()).toEqual([]);
  await writeFile(join(source, 'home.secret'), 'another\n');
  expect(await look()).toEqual([join(source, 'home.secret')]);
  await writeFile(alone, 'another\n');
  expect((await look())?.sort()).toEqual([alone, join(source, 'home.secret')]);
});

test('a new or missing credential or a rotated store key does not count as changed for the doctor', async () => {
  using folder = stateFolder();
  const { source, alone, loaded } = await service(folder.path);
  await writeFile(join(source, 'new.secret'), 'new\n');
  await rm(join(source, 'wallbox.secret'));
  await writeFile(join(source, 'store.key'), 'the key after its rotation\n');
  await writeFile(join(loaded, 'of-nobody'), 'set\n');
  expect(await findChangedCredentials(unit(source, alone), process.env, loaded)).toEqual([]);
  expect(await findChangedCredentials(unit(source, alone), process.env, join(folder.path, 'nowhere'))).toEqual([]);
});

test('the doctor distinguishes credentials that it can not read from unchanged ones', async () => {
  using folder = stateFolder();
  const { source, alone } = await service(folder.path);
  // No directory: as a closed one, it can't be listed.
  expect(await findChangedCredentials(unit(source, alone), process.env, alone)).toBeNull();
});

test.skipIf(!isRoot || !existsSync(SYSTEMD_CREDS))(
  'the doctor compares the content of an encrypted credential',
  async () => {
    const { execFileSync } = await import('node:child_process');
    using folder = stateFolder();
    const { alone, loaded } = await service(folder.path);
    const encrypt = (text: string) =>
      execFileSync(SYSTEMD_CREDS, ['encrypt', '--with-key=host', '--name=alone', '-', alone], { input: text });
    const sources = parseCredentialSources(`LoadCredentialEncrypted=alone:${alone}\n`);
    encrypt('alone of before\n');
    expect(await findChangedCredentials(sources, process.env, loaded)).toEqual([]);
    encrypt('another\n');
    expect(await findChangedCredentials(sources, process.env, loaded)).toEqual([alone]);
  },
);

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
