// scripts/release in a clone with a real version commit.
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { lastRun } from '../../../scripts/test.d/last-run.ts';
import { root } from '../../project/checkout.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { MakerKeyRing } from './apt-keys.ts';
import { BUILD_EMULATOR, ReleaseClone, SECTION, VERSION } from './release-clone.ts';

const NEEDED = ['/usr/bin/apt-ftparchive', '/usr/bin/dpkg-deb', join(root, '.git')];

let clone: ReleaseClone;
/** The file with a secret key that can sign. */
let key: string;

setUpOnce(
  async (parts) => {
    const ring = parts.use(await MakerKeyRing.make());
    key = await ring.create('maker', { options: '--faked-system-time 20200101T000000' });
    clone = parts.use(await ReleaseClone.make());
  },
  {
    skipReason: () => NEEDED.filter((path) => !existsSync(path)).map((path) => `${path} is missing`)[0] ?? null,
    timeout: scaleDeadline(120_000),
  },
);

/** Commits another heading for the version's changes. */
async function commitSection(heading: string): Promise<void> {
  clone.change('CHANGELOG.md', (text) => text.replace(SECTION, heading));
  await clone.commit();
}

/** What is wrong, how to make it so, and the reason that is given. */
const REFUSALS: readonly [string, () => unknown, RegExp][] = [
  ['a changed file', () => clone.change('README.md', (text) => `${text}\n`), /not committed \( M README\.md\)/],
  ['a version that was released', () => clone.run('git', ['tag', `v${VERSION}`, 'HEAD^']), /is already released, from/],
  ['a version before a released one', () => clone.run('git', ['tag', 'v99.10.0', 'HEAD^']), /is older than 99\.10\.0/],
  [
    'a version without a section of CHANGELOG.md',
    () => commitSection('## [Unreleased]'),
    /no section for 99\.2\.0: rename "## \[Unreleased\]" to "## \[99\.2\.0\] - \d{4}-\d{2}-\d{2}"/,
  ],
  ['a section of CHANGELOG.md without a date', () => commitSection(`## [${VERSION}]`), /no date for 99\.2\.0: write/],
  [
    'an empty section of CHANGELOG.md',
    () => commitSection(`${SECTION}\n\n## [99.1.0]`),
    /lists no change for 99\.2\.0/,
  ],
];

it.each(REFUSALS)('a release is refused for %s, and one line says why', async (_what, prepare, reason) => {
  await clone.restore();
  await prepare();
  await expectRefusal([VERSION], reason);
});

it.each<[string, () => readonly string[], RegExp]>([
  ['something that is no version', () => ['99.2'], /99\.2 is no version: allowed is/],
  ['another version than that of package.json', () => ['99.3.0'], /package\.json has the version 99\.2\.0: run/],
  ['a public key', () => [VERSION, '--key', `${key}.public`], /has no secret key/],
  ['other files in its folder', () => [VERSION, '--output', 'docs'], /docs exists and is no release/],
])('a release is refused if it is given %s', async (_what, args, reason) => {
  await clone.restore();
  await expectRefusal(args(), reason);
});

it('a second release at the same time is refused, because both would build into the same folder', async () => {
  await clone.restore();
  const second = ['bash', '-c', `! scripts/release ${VERSION} 2>&1`];
  expect(await clone.run('flock', ['.cache/release.lock', ...second])).toMatch(
    /^latchkey: another scripts\/release is/,
  );
});

async function expectRefusal(args: readonly string[], reason: RegExp): Promise<void> {
  const { status, stdout, stderr } = await clone.release(args);
  expect({ status, stdout }, stderr).toEqual({ status: 1, stdout: '' });
  expect(stderr).toMatch(/^latchkey: [^\n]*\n$/);
  expect(stderr).toMatch(reason);
  expect(existsSync(join(clone.path, 'build'))).toBe(false);
}

it('a release runs the suite if it has not passed on the commit, and is refused if it fails', async () => {
  await clone.restore();
  clone.makeSuite('fail');
  const { status, stdout, stderr } = await clone.release([VERSION]);
  expect({ status, stdout }, stderr).toEqual({ status: 1, stdout: '' });
  expect(stderr).toContain('\nFailed:\n');
  expect(stderr.trim().split('\n').at(-1)).toMatch(/^latchkey: the suite has failed on commit \w{12}: see above$/);
  const result = expect.stringMatching(/ passed, [1-9]\d* failed, 0 skipped$/);
  expect(lastRun(clone.path)).toMatchObject({ commit: clone.releasable, result });
});

it('a release has the packages for Debian and npm, and says what to push and to upload', async () => {
  await clone.restore();
  clone.makeSuite('pass');
  const { status, stdout, stderr } = await clone.release([VERSION]);
  expect(status, stderr).toBe(0);
  expect(stderr).toMatch(/running everything.*\n\d+ passed, 0 failed, 0 skipped\n/s);
  const output = join(clone.path, 'build/release', VERSION);
  const debs = ['amd64', 'arm64'].map((cpu) => `latchkey_${VERSION}_${cpu}.deb`);
  const expected = [...debs, 'latchkey-emulator.tgz'];
  expect(readdirSync(output).sort()).toEqual(['SHA256SUMS', ...expected].sort());
  expect(listedIn(output)).toEqual(expected.sort());
  await clone.run('sh', ['-c', `cd '${output}' && sha256sum --check --quiet SHA256SUMS`]);

  expect(stdout).toMatch(/^The suite: \d+ passed, 0 failed, 0 skipped\.$/m);
  expect(stdout).toContain(`git tag --annotate v${VERSION} ${clone.releasable.slice(0, 12)}`);
  expect(stdout).toContain(`git push origin v${VERSION}\n`);
  const published = [...stdout.matchAll(/npm publish (\S+)/g)].map(([, file]) => file);
  expect(published).toEqual([`build/release/${VERSION}/latchkey-emulator-${VERSION}.tgz`]);
  expect(stdout).not.toContain('build-image');
  expect(readdirSync(join(clone.path, 'build/release'))).toEqual([VERSION]);
  expect(readdirSync(clone.temporary).filter((name) => name.startsWith('tmp.'))).toEqual([]);
  expect(await clone.run('git', ['status', '--porcelain'])).toBe('');
});

/** The files of SHA256SUMS. */
function listedIn(output: string): string[] {
  const sums = readFileSync(join(output, 'SHA256SUMS'), 'utf8');
  return sums
    .trim()
    .split('\n')
    .map((line) => line.slice(66)); // after the hash and two spaces
}

it('a release with an apt repository has the same files whenever it is built, with its signatures', async () => {
  await clone.restore();
  clone.recordPassed();
  const first = await clone.release([VERSION, '--key', key]);
  expect(first, first.stderr).toMatchObject({ status: 0, stderr: expect.not.stringContaining('suite') });
  const output = join(clone.path, 'build/release', VERSION);
  const files = globSync('**', { cwd: output, withFileTypes: true }).filter((entry) => entry.isFile());
  const names = files.map((entry) => join(entry.parentPath, entry.name).slice(output.length + 1)).sort();
  expect(names).toContain('apt/dists/stable/InRelease');
  expect(names).toContain(`apt/pool/main/l/latchkey/latchkey_${VERSION}_arm64.deb`);
  expect(listedIn(output)).toEqual(names.filter((name) => name !== 'SHA256SUMS'));
  expect(first.stdout).toContain('./scripts/build-apt --key FILE --output COPY --deb');
  const sums = readFileSync(join(output, 'SHA256SUMS'), 'utf8');

  const second = await clone.release([VERSION, '--key', key]);
  expect(second, second.stderr).toMatchObject({ status: 0, stdout: first.stdout });
  expect(readFileSync(join(output, 'SHA256SUMS'), 'utf8')).toBe(sums);
});

it('a release is refused if a second build differs, and both builds are kept', async () => {
  await clone.restore();
  clone.replaceScript('build-emulator-package', `${BUILD_EMULATOR}; date +%N >"$2/differing"`);
  await clone.commit();
  clone.recordPassed();
  const output = join(clone.path, 'build/differing');
  const { status, stdout, stderr } = await clone.release([VERSION, '--output', output]);
  expect({ status, stdout }, stderr).toEqual({ status: 1, stdout: '' });
  expect(stderr.trim().split('\n').at(-1)).toBe(
    `latchkey: the second build differs in differing: nothing is released; compare ${output}.first with ${output}.second`,
  );
  for (const kept of ['first', 'second']) expect(readdirSync(`${output}.${kept}`)).toContain('differing');
  expect(existsSync(output)).toBe(false);
});
