// What is in the container images, and what they say of themselves.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, link, mkdir, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Spec, Validation } from '@cyclonedx/cyclonedx-library';
import * as v from 'valibot';
import { beforeAll, describe, expect, it } from 'vitest';
import { version } from '../../../src/system/version.ts';
import { IS_LONG_FORM, selectRows } from '../../support/long.ts';
import { stateFolder } from '../../support/state-folder.ts';
import { BUILD_TIMEOUT, buildImages, LayoutReader } from './images.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../../..');
const ARCHITECTURES = ['amd64', 'arm64'];
const IMAGES = ['latchkey', 'latchkey-home-assistant', 'latchkey-emulator'];
/** The promise of docs/container.md, in bytes. */
const MAX_COMPRESSED = 70_000_000;
const USER = 65_532;
/** In bytes: only Node.js is larger. */
const LARGE_LAYER = 20_000_000;
const SKOPEO = '/usr/bin/skopeo';

let folder: string;
const readers = new Map<string, LayoutReader>();
const layout = (name: string) => {
  const reader = readers.get(name) ?? new LayoutReader(join(folder, `${name}-image`));
  readers.set(name, reader);
  return reader;
};

beforeAll(async () => {
  folder = await buildImages();
}, BUILD_TIMEOUT);

const configSchema = v.looseObject({
  architecture: v.string(),
  config: v.looseObject({
    User: v.string(),
    Env: v.array(v.string()),
    Labels: v.record(v.string(), v.string()),
  }),
});

async function configOf(name: string, arch: string) {
  const { manifest } = await layout(name).platform(arch);
  return v.parse(configSchema, JSON.parse((await layout(name).blob(manifest.config.digest)).toString()));
}

describe('an image layout', () => {
  it.each(IMAGES)(
    'the layout %s has one entry, an index with an image and an SBOM for each architecture',
    async (name) => {
      const { manifests: top } = await layout(name).top();
      expect(top.map(({ annotations }) => annotations)).toEqual([
        { 'org.opencontainers.image.ref.name': `${name}:${version()}` },
      ]);
      const { manifests } = await layout(name).index();
      expect(manifests.map(({ platform, artifactType }) => [platform?.architecture, artifactType])).toEqual(
        ARCHITECTURES.flatMap((arch) => [
          [arch, undefined],
          ['unknown', 'application/vnd.cyclonedx+json'],
        ]),
      );
    },
  );

  it.for(IMAGES)(
    'skopeo finds the image of %s for each architecture in the layout, and in the archive',
    async (name, ctx) => {
      if (!existsSync(SKOPEO)) return ctx.skip(`${SKOPEO} is missing`);
      const archive = `oci-archive:${folder}/${name}_${version()}_oci.tar`;
      const places = [...ARCHITECTURES.map((arch) => [arch, `oci:${folder}/${name}-image`]), ['arm64', archive]];
      for (const [arch = '', place = ''] of places) {
        const { stdout } = await run(SKOPEO, ['--override-arch', arch, 'inspect', place]);
        const Labels = { 'org.opencontainers.image.title': name };
        expect(JSON.parse(stdout)).toMatchObject({ Architecture: arch, Os: 'linux', Labels });
      }
    },
  );

  it('the images consist of the same layers, and that for Home Assistant has the user root and labels', async () => {
    for (const arch of ARCHITECTURES) {
      const [hub, ...others] = await Promise.all(IMAGES.map((name) => layout(name).platform(arch)));
      for (const { manifest } of others) expect(manifest.layers).toEqual(hub?.manifest.layers);
      const [own, app] = await Promise.all(['latchkey', 'latchkey-home-assistant'].map((name) => configOf(name, arch)));
      expect(app?.config).toMatchObject({ ...own?.config, User: '0:0', Labels: { 'io.hass.version': version() } });
    }
  });
});

describe.each(ARCHITECTURES)('the image for %s', (arch) => {
  it(`the image for ${arch} has at most 70 MB, compressed`, async () => {
    const { manifest } = await layout('latchkey').platform(arch);
    expect(manifest.layers.reduce((sum, { size }) => sum + size, 0)).toBeLessThan(MAX_COMPRESSED);
  });

  it(`the image for ${arch} says what it is, and runs as an unprivileged user without declaring a volume`, async () => {
    const { manifest } = await layout('latchkey').platform(arch);
    const { architecture, config } = await configOf('latchkey', arch);
    expect(architecture).toBe(arch);
    expect(config.User).toBe(`${USER}:${USER}`);
    expect(config).not.toHaveProperty('Volumes');
    const label = (name: string) => `org.opencontainers.image.${name}`;
    expect(config.Labels).toEqual({
      [label('title')]: 'latchkey',
      [label('description')]: expect.stringContaining('OAuth'),
      [label('version')]: version(),
      [label('revision')]: expect.stringMatching(/^[0-9a-f]{40}$/),
      [label('created')]: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.000Z$/),
      [label('licenses')]: 'MIT',
      [label('base.name')]: 'scratch',
    });
    expect(manifest.annotations).toEqual(config.Labels);
  });

  it(`the image for ${arch} has no shell, no package manager and no set-uid file, and only its own folders can be written`, async () => {
    const files = await layout('latchkey').files(arch);
    const isLink = (path: string) => files.get(path)?.type === 'symlink';
    const programs = [...files.keys()].filter((path) => /^(usr\/)?s?bin\//.test(path) && !isLink(path));
    expect(programs).toEqual(['usr/bin/latchkey']);
    const special = [...files.values()].filter(({ mode = 0 }) => (mode & 0o6000) !== 0);
    expect(special.map(({ name, mode }) => [name, mode])).toEqual([]);
    const writable = [...files.values()].filter(
      ({ mode = 0, uid, type }) => type !== 'symlink' && (uid !== 0 || (mode & 0o022) !== 0),
    );
    expect(writable.map(({ name, mode = 0, uid }) => [name, mode.toString(8), uid]).sort()).toEqual([
      ['tmp', '1777', 0],
      ['var/cache/latchkey', '700', USER],
      ['var/lib/latchkey', '700', USER],
      ['var/lib/latchkey-emulator', '700', USER],
      ['var/tmp', '1777', 0],
    ]);
  });

  it(`the image for ${arch} lists its Debian packages, with licences, where scanners look for them`, async () => {
    const files = await layout('latchkey').files(arch);
    const list = await readFile(join(folder, `latchkey_${version()}_oci.packages`), 'utf8');
    const packages = list.split('\n').filter((line) => line.startsWith(`${arch} `));
    expect(packages.length).toBeGreaterThan(3);
    for (const [, name = '', packageVersion] of packages.map((line) => line.split(' '))) {
      const status = files.get(`var/lib/dpkg/status.d/${name}`)?.content;
      expect(status?.split('\n')).toEqual(
        expect.arrayContaining([`Package: ${name}`, `Version: ${packageVersion}`, 'Status: install ok installed']),
      );
      const checksums = files.get(`var/lib/dpkg/status.d/${name}.md5sums`)?.content ?? '';
      for (const path of checksums.trim().split('\n')) expect(files.has(path.slice(34)), path).toBe(true);
      // The licence of gcc's libraries is with gcc-14-base.
      expect(
        [...files.keys()].some((path) => path.startsWith(`usr/share/doc/${name}`)),
        name,
      ).toBe(true);
    }
    expect(files.get('usr/share/doc/latchkey/copyright')?.content).toContain('License: MIT');
  });

  it(`the SBOM for ${arch} refers to the image, is valid, and lists the program, Node.js and the Debian packages`, async () => {
    const { descriptor } = await layout('latchkey').platform(arch);
    const { manifests } = await layout('latchkey').index();
    const artifacts = await Promise.all(
      manifests
        .filter(({ artifactType }) => artifactType !== undefined)
        .map(({ digest }) => layout('latchkey').manifest(digest)),
    );
    const artifact = artifacts.find(({ subject }) => subject?.digest === descriptor.digest);
    const sbom = (await layout('latchkey').blob(artifact?.layers[0]?.digest ?? '')).toString();
    expect(await new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(sbom)).toBeNull();
    const { components, metadata } = JSON.parse(sbom) as {
      components: { purl?: string; name: string }[];
      metadata: { component: { purl: string } };
    };
    expect(metadata.component.purl).toContain(encodeURIComponent(descriptor.digest));
    const purls = components.map(({ purl = '' }) => purl);
    for (const start of ['pkg:generic/node@24', 'pkg:npm/fastify@', 'pkg:generic/sqlite@', `pkg:deb/debian/libc6@`]) {
      expect(
        purls.filter((purl) => purl.startsWith(start)),
        start,
      ).toHaveLength(1);
    }
  });
});

describe('the build of images', () => {
  it('an image is identical wherever it is built, with the same packages', async () => {
    using elsewhere = stateFolder();
    const tree = join(elsewhere.path, 'a longer name of a folder');
    await mkdir(join(tree, '.cache'), { recursive: true });
    const parts = [
      'src',
      'scripts',
      'node_modules',
      'package.json',
      'package-lock.json',
      'tsconfig.json',
      'LICENSE',
      '.npmrc',
    ];
    // Hard links, because the tree has some hundred MB.
    for (const part of parts) await run('cp', ['-al', join(ROOT, part), join(tree, part)]);
    for (const part of await readdir(join(ROOT, '.cache'))) {
      if (/^(node-|packages|image-packages)/.test(part))
        await cp(join(ROOT, '.cache', part), join(tree, '.cache', part), { recursive: true, force: true });
    }
    // Compressing Node.js once more would take most of the time.
    await mkdir(join(tree, '.cache/image-layers'));
    // Others are still being written, for another version.
    const complete = (await readdir(join(ROOT, '.cache/image-layers'))).filter((name) => name.endsWith('.gz'));
    for (const layer of complete) {
      const kept = join(ROOT, '.cache/image-layers', layer);
      if ((await stat(kept)).size > LARGE_LAYER) await link(kept, join(tree, '.cache/image-layers', layer));
    }
    const output = join(elsewhere.path, 'there');
    const list = join(folder, `latchkey_${version()}_oci.packages`);
    const own = process.arch === 'arm64' ? 'arm64' : 'amd64';
    const architectures = selectRows(ARCHITECTURES, [own]).flatMap((arch) => ['--arch', arch]);
    const script = 'umask 077; list=$1; shift; exec "$0" --level 1 --packages "$list" --output "$@"';
    const { annotations } = (await layout('latchkey').platform('amd64')).manifest;
    const env = {
      ...process.env,
      TZ: 'Pacific/Auckland',
      SOURCE_DATE_EPOCH: String(Date.parse(annotations['org.opencontainers.image.created'] ?? '') / 1000),
      SOURCE_REVISION: annotations['org.opencontainers.image.revision'],
    };
    const build = ['-c', script, join(tree, 'scripts/build-image'), list, output, ...architectures];
    await run('bash', build, { env, maxBuffer: 2 ** 24 });
    expect((await readdir(output)).sort()).toEqual((await readdir(folder)).sort());
    for (const name of IMAGES) {
      const blobs = (of: string) => readdir(join(of, `${name}-image/blobs/sha256`));
      const index = (await new LayoutReader(join(output, `${name}-image`)).top()).manifests[0]?.digest ?? '';
      // Only the index names all architectures.
      const same = (await blobs(output)).filter((hash) => IS_LONG_FORM || `sha256:${hash}` !== index);
      expect(same.length).toBeGreaterThan(5);
      expect(await blobs(folder)).toEqual(expect.arrayContaining(same));
      const archive = `${name}_${version()}_oci.tar`;
      if (IS_LONG_FORM) await run('cmp', [join(output, archive), join(folder, archive)]);
    }
  });
});
