// scripts/build-apt with packages that contain nothing. apt itself uses a repository in apt.test.ts.
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { type CommandResult, root, runCommand } from '../../project/checkout.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { stateFolder } from '../../support/state-folder.ts';
import { MakerKeyRing } from './apt-keys.ts';

const LIST = 'dists/stable/main/binary-amd64';
/** The time of the commit in these tests, in seconds since 1970. */
const COMMIT = 1_700_000_000;

let ring: MakerKeyRing;
let folder: string;
let key: string;
let amd64: string;
let arm64: string;

setUpOnce(
  async (parts) => {
    ring = parts.use(await MakerKeyRing.make());
    folder = parts.use(stateFolder()).path;
    key = await ring.create('maker', { options: `--faked-system-time ${COMMIT - 1000}` });
    amd64 = await emptyPackage('1.0.0', 'amd64');
    arm64 = await emptyPackage('1.0.0', 'arm64');
  },
  { skipReason: () => (existsSync('/usr/bin/apt-ftparchive') ? null : '/usr/bin/apt-ftparchive is missing') },
);

/** A package without files. @returns its path */
async function emptyPackage(version: string, architecture: string, { name = 'latchkey', text = 'empty' } = {}) {
  const tree = join(folder, `${name}-${version}-${architecture}-${text}`);
  mkdirSync(join(tree, 'DEBIAN'), { recursive: true });
  const fields = { Package: name, Version: version, Architecture: architecture, Maintainer: 'x', Description: text };
  const control = Object.entries(fields).map(([field, value]) => `${field}: ${value}\n`);
  writeFileSync(join(tree, 'DEBIAN/control'), control.join(''));
  const path = `${tree}.deb`;
  const { status, stderr } = await runCommand('dpkg-deb', ['--root-owner-group', '--build', tree, path]);
  expect(status, stderr).toBe(0);
  return path;
}

function buildApt(args: readonly string[], env: Record<string, string> = {}): Promise<CommandResult> {
  const options = { env: { ...process.env, SOURCE_DATE_EPOCH: String(COMMIT), ...env } };
  return runCommand(join(root, 'scripts/build-apt'), args, options);
}

/** Builds a repository with packages, or adds them to it. @returns its folder */
async function repository(name: string, debs: readonly string[], keys: readonly string[] = [key]): Promise<string> {
  const output = join(folder, name);
  const args = [
    '--output',
    output,
    ...keys.flatMap((file) => ['--key', file]),
    ...debs.flatMap((deb) => ['--deb', deb]),
  ];
  expect(await buildApt(args)).toEqual({ status: 0, stdout: `${output}\n`, stderr: '' });
  return output;
}

/** The SHA-256 of every file of a repository, by its path. */
function hashesOf(output: string): Record<string, string> {
  const files = globSync('**/*', { cwd: output, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.map((entry) => join(entry.parentPath, entry.name)).sort();
  return Object.fromEntries(paths.map((path) => [path.slice(output.length + 1), sha256(readFileSync(path))]));
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function dateOf(output: string): number {
  const [, date = ''] = /^Date: (.*)$/m.exec(readFileSync(join(output, 'dists/stable/Release'), 'utf8')) ?? [];
  return Date.parse(date) / 1000;
}

/** The ids of the keys that have signed the list, and when, in seconds since 1970. */
async function signaturesOf(output: string): Promise<readonly { readonly signer: string; readonly time: number }[]> {
  const args = ['--status-fd', '1', '--keyring', join(output, 'latchkey.gpg'), join(output, 'dists/stable/InRelease')];
  const { status, stdout, stderr } = await runCommand('/usr/bin/gpgv', args);
  expect(status, stderr).toBe(0);
  const valid = stdout.matchAll(/^\[GNUPG:\] VALIDSIG (\S+) \S+ (\d+)/gm);
  return [...valid].map(([, signer = '', time]) => ({ signer, time: Number(time) }));
}

async function signersOf(output: string): Promise<string[]> {
  return (await signaturesOf(output)).map(({ signer }) => signer).sort();
}

it('an apt repository names its publisher, keeps that name, and lists the architectures of which it has packages', async () => {
  const output = join(folder, 'published');
  const add = (deb: string, maintainer: string) =>
    buildApt(['--output', output, '--key', key, '--deb', deb], { LATCHKEY_MAINTAINER: maintainer });
  expect(await add(amd64, 'Example Hubs <hubs@maker.example>')).toMatchObject({ status: 0, stderr: '' });
  const release = () => readFileSync(join(output, 'dists/stable/Release'), 'utf8');
  expect(release()).toMatch(/^Label: Latchkey$/m);
  expect(release()).toMatch(/^Origin: Example Hubs$/m);
  expect(release()).toMatch(/^Architectures: amd64$/m);
  expect(release()).not.toContain('binary-arm64');
  const refused = await add(arm64, 'Others <others@maker.example>');
  expect(refused).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/has the Origin 'Example Hubs'.* as before\n$/),
  });
  expect(await add(arm64, 'Example Hubs <other@maker.example>')).toMatchObject({ status: 0 });
  expect(release()).toMatch(/^Architectures: amd64 arm64$/m);
});

it('an apt repository has a signed list for both architectures with the hash of each file', async () => {
  const output = await repository('whole', [amd64, arm64]);
  const hashes = hashesOf(output);
  const release = readFileSync(join(output, 'dists/stable/Release'), 'utf8');
  expect(release).toMatch(/^Acquire-By-Hash: yes$/m);
  expect(release).toMatch(/^Architectures: amd64 arm64$/m);
  expect(release).not.toMatch(/^Valid-Until/m);
  expect(dateOf(output)).toBe(COMMIT);
  const listed = [...release.matchAll(/^ (\S{64}) +(\d+) (\S+)$/gm)];
  expect(listed.map(([, , , path]) => path)).toEqual(
    ['amd64', 'arm64'].flatMap((cpu) => ['', '.gz', '.xz'].map((form) => `main/binary-${cpu}/Packages${form}`)),
  );
  for (const [, hash, , path = ''] of listed) {
    expect(hashes[`dists/stable/${path}`], path).toBe(hash);
    expect(hashes[`dists/stable/${path.replace(/[^/]+$/, `by-hash/SHA256/${hash}`)}`], path).toBe(hash);
  }
  const packages = readFileSync(join(output, LIST, 'Packages'), 'utf8');
  const [, file = ''] = /^Filename: (.*)$/m.exec(packages) ?? [];
  expect(file).toBe('pool/main/l/latchkey/latchkey_1.0.0_amd64.deb');
  expect(packages).toContain(`SHA256: ${hashes[file]}\n`);
  expect(gunzipSync(readFileSync(join(output, LIST, 'Packages.gz'))).toString()).toBe(packages);

  expect(await signaturesOf(output)).toMatchObject([{ time: COMMIT }]);
  const list = join(output, 'dists/stable/Release');
  const detached = ['--keyring', join(output, 'latchkey.gpg'), `${list}.gpg`, list];
  expect(await runCommand('/usr/bin/gpgv', detached)).toMatchObject({ status: 0 });
  expect(await ring.sh(`gpg --show-keys '${output}/latchkey.asc'`)).toMatch(/^pub +ed25519 .* \[SC\]$/m);
});

it('an apt repository keeps earlier packages and lists, and a changed one has a later date', async () => {
  const output = await repository('growing', [amd64]);
  const before = hashesOf(output);
  await repository('growing', [await emptyPackage('1.1.0~rc.1', 'amd64')]);
  const after = hashesOf(output);
  const kept = Object.keys(before).filter((file) => /by-hash|pool/.test(file));
  expect(kept).toHaveLength(4);
  for (const file of kept) expect(after[file], file).toBe(before[file]);
  const packages = readFileSync(join(output, LIST, 'Packages'), 'utf8');
  expect([...packages.matchAll(/^Version: (.*)$/gm)].map(([, version]) => version)).toEqual(['1.0.0', '1.1.0~rc.1']);
  expect(dateOf(output)).toBe(COMMIT + 1);
});

it('an apt repository refuses a published version with other contents, and what is no package of Latchkey', async () => {
  const output = await repository('refusing', [amd64]);
  const before = hashesOf(output);
  const refused = async (deb: string) => {
    const { status, stderr } = await buildApt(['--key', key, '--output', output, '--deb', deb]);
    expect(status).toBe(1);
    return stderr;
  };
  const changed = await emptyPackage('1.0.0', 'amd64', { text: 'changed' });
  expect(await refused(changed)).toMatch(/^latchkey: pool\/\S+_1\.0\.0_amd64\.deb is .* other contents: .*\n$/);
  expect(await refused(await emptyPackage('1.0.0', 'amd64', { name: 'other' }))).toMatch(
    /^latchkey: .* no package of.*\n$/,
  );
  expect(await refused(key)).toMatch(/^latchkey: .* is no Debian package, or can't be read\n$/);
  expect(hashesOf(output)).toEqual(before);
});

it('an apt repository can be signed again with more keys, without a package', async () => {
  const output = await repository('rotating', [amd64]);
  const [first] = await signersOf(output);
  const second = await ring.create('second');
  expect(await buildApt(['--key', key, '--key', second, '--sign-only', '--output', output])).toMatchObject({
    status: 0,
  });
  const both = await signersOf(output);
  expect(both).toHaveLength(2);
  expect(both).toContain(first);
  expect(await buildApt(['--key', second, '--sign-only', '--output', output])).toMatchObject({ status: 0 });
  expect(both).toEqual([first, ...(await signersOf(output))].sort());
  expect(await buildApt(['--key', key, '--sign-only', '--output', join(folder, 'none')])).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(
      /^latchkey: .* has no package to sign: leave out --sign-only, or name the repository with --output\n$/,
    ),
  });
});

it('the published key file has only the keys that sign, whatever else the files with the keys contain', async () => {
  await ring.create('stranger');
  const mixed = join(folder, 'mixed.asc');
  writeFileSync(mixed, readFileSync(key, 'utf8') + readFileSync(join(ring.folder, 'stranger.asc.public'), 'utf8'));
  const output = await repository('mixed', [amd64], [mixed]);
  for (const file of ['latchkey.asc', 'latchkey.gpg']) {
    const listed = await ring.sh(`gpg --show-keys --with-colons '${output}/${file}'`);
    expect([...listed.matchAll(/^fpr:+(\w+):/gm)].map(([, fingerprint]) => fingerprint)).toEqual(
      await signersOf(output),
    );
  }
});

const createSha1Key = () => ring.create('old', { algorithm: 'rsa2048', options: '--cert-digest-algo SHA1' });

const UNUSABLE_KEYS: readonly [string, () => Promise<string>, RegExp][] = [
  ['a file that is missing', async () => join(folder, 'missing'), /can't be read/],
  ['a public key', async () => `${key}.public`, /has no secret key/],
  [
    'a key that is bound with SHA-1',
    () => createSha1Key(),
    /SHA-1.*'gpg --cert-digest-algo SHA512 --quick-set-expire [0-9A-F]{40} 0'/,
  ],
  ['a short RSA key', () => ring.create('short', { algorithm: 'rsa1024' }), /RSA with less than 2048 bits/],
  ['a key with a passphrase', () => ring.create('locked', { passphrase: 'secret words' }), /has a passphrase/],
];

it('a key that was bound with SHA-1 signs after its owner has done what the script says', async () => {
  const old = await ring.create('renewed', { algorithm: 'rsa2048', options: '--cert-digest-algo SHA1' });
  const { stderr } = await buildApt(['--key', old, '--output', join(folder, 'renewed'), '--deb', amd64]);
  const [, command = ''] = /'gpg (--cert-digest-algo [^']*)'/.exec(stderr) ?? [];
  const gpg = "gpg --batch --quiet --pinentry-mode loopback --passphrase ''";
  // The new signature must be newer than the old one.
  await ring.sh(`sleep 1; ${gpg} ${command}; ${gpg} --armor --export-secret-keys =renewed > renewed.asc`);
  await repository('renewed', [amd64], [old]);
});

it.each(UNUSABLE_KEYS)(
  'an apt repository is not signed with %s, and one line says why',
  async (_what, file, reason) => {
    const output = join(folder, 'unsigned');
    const temporary = join(folder, 'temporary');
    mkdirSync(temporary, { recursive: true });
    const args = ['--key', await file(), '--output', output, '--deb', amd64];
    const { status, stdout, stderr } = await buildApt(args, { TMPDIR: temporary });
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(/^latchkey: [^\n]*\n$/);
    expect(stderr).toMatch(reason);
    expect(existsSync(output)).toBe(false);
    expect(readdirSync(temporary)).toEqual([]);
  },
);
