import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findChangedCredentials } from '../../src/doctor/credentials.ts';
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
