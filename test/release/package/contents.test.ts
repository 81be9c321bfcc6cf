// The files in the package, and its descriptions of them.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Spec, Validation } from '@cyclonedx/cyclonedx-library';
import { parse } from 'smol-toml';
import * as v from 'valibot';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { completePortals } from '../../../src/configuration/presets.ts';
import { configurationSchema } from '../../../src/configuration/schema.ts';
import { root, runCommand } from '../../project/checkout.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { stateFolder } from '../../support/state-folder.ts';
import { buildPackage } from '../machine/packages.ts';

const run = promisify(execFile);

let folder: ReturnType<typeof stateFolder>;
let debian: string;
let unpacked: string;

beforeAll(async () => {
  debian = (await buildPackage()).path;
  folder = stateFolder();
  unpacked = join(folder.path, 'unpacked');
  await run('dpkg-deb', ['-R', debian, unpacked]);
}, scaleDeadline(120_000));

afterAll(() => folder?.[Symbol.dispose]());

const text = (file: string) => readFile(join(unpacked, file), 'utf8');

/** The members of a CycloneDX document that the tests read. */
const componentSchema = v.object({
  name: v.string(),
  group: v.optional(v.string()),
  version: v.string(),
  hashes: v.optional(v.array(v.object({ alg: v.string(), content: v.string() }))),
  components: v.optional(v.array(v.object({ name: v.string() }))),
});
const bomSchema = v.object({ components: v.array(componentSchema) });
const productSchema = v.object({ metadata: v.object({ component: v.object({ licenses: v.array(v.unknown()) }) }) });
const components = async () =>
  v.parse(bomSchema, JSON.parse(await text('usr/share/doc/latchkey/sbom.cdx.json'))).components;

it('the SBOM is valid CycloneDX in the package and beside it, and lists everything that the package contains', async () => {
  const document = await text('usr/share/doc/latchkey/sbom.cdx.json');
  expect(await readFile(debian.replace(/\.deb$/, '.cdx.json'), 'utf8')).toBe(document);
  const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot6);
  expect(await validator.validate(document)).toBeNull();
  expect(await validator.validate(document.replace('"type": "platform"', '"type": "island"'))).not.toBeNull();
  const inside = await components();
  const node = inside.find(({ name }) => name === 'node');
  const binary = await readFile(join(unpacked, 'usr/lib/latchkey/bin/node'));
  expect(node?.hashes).toEqual([{ alg: 'SHA-256', content: createHash('sha256').update(binary).digest('hex') }]);
  expect(node?.components?.map(({ name }) => name)).toEqual(expect.arrayContaining(['openssl', 'v8', 'uv']));
  const names = inside.map(({ group, name }) => (group === undefined ? name : `${group}/${name}`));
  expect(names).toEqual(expect.arrayContaining(['sqlite', 'better-sqlite3', 'fastify', '@peculiar/x509', 'undici']));
  for (const absent of ['vitest', 'typescript', 'esbuild', 'node-addon-api']) expect(names).not.toContain(absent);
  const installed = await readdir(join(unpacked, 'usr/lib/latchkey'));
  expect(installed.sort()).toEqual(['bin', 'dist', 'install-certificate', 'package.json', 'without-namespaces.conf']);
});

describe('the licences in the package', () => {
  it('the copyright file, the SBOM and package.json name MIT for Latchkey, with the whole text', async () => {
    const licence = await readFile(join(root, 'LICENSE'), 'utf8');
    const [, own] = (await text('usr/share/doc/latchkey/copyright')).split('\n\n');
    expect(own).toMatch(/^Files: \*\nCopyright: \(c\) \d{4} The authors of Latchkey\nLicense: MIT\n MIT License\n/);
    expect(own?.replace(/^ \.?/gm, '')).toContain(licence.trim());
    const { metadata } = v.parse(productSchema, JSON.parse(await text('usr/share/doc/latchkey/sbom.cdx.json')));
    expect(metadata.component.licenses).toEqual([{ license: { id: 'MIT' } }]);
    expect(JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))).toMatchObject({ license: 'MIT' });
  });

  it('the copyright file has a licence text and a copyright for each part of the SBOM', async () => {
    const file = await text('usr/share/doc/latchkey/copyright');
    const stanzas = file
      .split('\n\n')
      .map((stanza) => new Map([...stanza.matchAll(/^([A-Z][\w-]*): *(.*)$/gm)].map(([, key, value]) => [key, value])));
    const texts = new Map(
      file.split('\n\n').flatMap((stanza) => {
        const found = /^License: (\S+)\n([\s\S]+)/.exec(stanza);
        return found?.[1] === undefined ? [] : [[found[1], found[2] ?? ''] as const];
      }),
    );
    for (const { group, name, version } of await components()) {
      const full = group === undefined ? name : `${group}/${name}`;
      const stanza = stanzas.find((one) => one.get('Comment')?.startsWith(`${full} ${version} `));
      expect(stanza?.get('Copyright'), full).toBeTruthy();
      expect(texts.get(stanza?.get('License') ?? '')?.length, full).toBeGreaterThan(60);
    }
  });
});

describe('the contents of the package', () => {
  it('the package contains no path of the machine that built it', async () => {
    const places = [root, '/tmp/', `${process.env['HOME'] ?? '/root'}/`].flatMap((place) => ['-e', place]);
    const allowed = ['--exclude=node', '--exclude=*.md', '--exclude-dir=DEBIAN'];
    const { status, stdout, stderr } = await runCommand('grep', ['-rlF', ...allowed, ...places, unpacked]);
    expect(stderr).toBe('');
    expect(status).toBeLessThanOrEqual(1);
    // SQLite's own default path for temporary files.
    expect(stdout.split('\n').filter((file) => file !== '' && !file.endsWith('.node'))).toEqual([]);
  });

  it.each(['etc/latchkey/latchkey.toml', 'usr/share/doc/latchkey/examples/latchkey.toml'])(
    'the commented settings of the shipped configuration are valid: %s',
    async (file) => {
      const shipped = await text(file);
      expect(parse(shipped)).toEqual({});
      const uncommented = shipped.replace(/^#(?=\[|\w+ =)/gm, '').replace(/x{8}-[x-]{27}/, crypto.randomUUID());
      const { raw } = await completePortals(parse(uncommented), (key, problem) =>
        expect(`${key}: ${problem}`).toBe(''),
      );
      expect(v.safeParse(configurationSchema, raw).issues).toBeUndefined();
    },
  );

  it('the package installs the manual page and the completions where the shells look for them', async () => {
    const share = join(unpacked, 'usr/share');
    const files = (await readdir(share, { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name).slice(share.length + 1))
      .filter((file) => !file.startsWith('doc/'));
    expect(files.sort()).toEqual([
      'bash-completion/completions/latchkey',
      'fish/vendor_completions.d/latchkey.fish',
      'lintian/overrides/latchkey',
      'man/man1/latchkey.1.gz',
      'man/man5/latchkey.toml.5.gz',
      'zsh/vendor-completions/_latchkey',
    ]);
    // What they contain is shown by test/cli.
    for (const file of files) expect((await readFile(join(share, file))).length, file).toBeGreaterThan(100);
  });

  it('the package passes lintian, except for overrides with a reason', async (ctx) => {
    const lintian = '/usr/bin/lintian';
    if (!existsSync(lintian)) ctx.skip(`${lintian} is missing`);
    // It would scan 120 MB of Node.js for a quarter of a minute, so another program replaces Node.js.
    const lighter = join(folder.path, 'lighter');
    await run('cp', ['-al', unpacked, lighter]);
    await run('cp', ['--remove-destination', '/bin/true', join(lighter, 'usr/lib/latchkey/bin/node')]);
    const file = join(folder.path, 'lighter.deb');
    await run('dpkg-deb', ['--root-owner-group', '-Zxz', '-z0', '--build', lighter, file]);
    const options = ['--allow-root', '--fail-on', 'none', '--suppress-tags', 'md5sum-mismatch'];
    const { stdout } = await run(lintian, [...options, file]);
    expect(stdout).toBe('');
  });

  it('the package names its maker if the build is told, and else a maintainer whose address nobody can own', async () => {
    const control = await text('DEBIAN/control');
    expect(control).toMatch(/^Maintainer: .*@latchkey\.invalid>$/m);
    expect(control).not.toMatch(/@[A-Z]+@|^Homepage|\n\n/m);
    const maker = {
      LATCHKEY_MAINTAINER: 'A & B <hubs@maker.example>',
      LATCHKEY_HOMEPAGE: 'https://maker.example/?a&b',
    };
    const options = ['--level', 'none', '--arch', 'amd64', '--output', folder.path];
    const env = { ...process.env, ...maker };
    const { stdout } = await run(join(root, 'scripts/build-deb'), options, { env, timeout: scaleDeadline(120_000) });
    const fields = await run('dpkg-deb', ['--field', stdout.trim(), 'Maintainer', 'Homepage']);
    expect(fields.stdout).toBe('Maintainer: A & B <hubs@maker.example>\nHomepage: https://maker.example/?a&b\n');
  });

  it('the package has the version of package.json, and depends on the libraries with which its binaries are linked', async () => {
    const control = await text('DEBIAN/control');
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string };
    expect(control).toContain(`\nVersion: ${version.replace('-', '~')}\n`);
    const needed = new Set<string>();
    let newest = [0, 0];
    const pieces = join(unpacked, 'usr/lib/latchkey/dist/pieces');
    const bindings = (await readdir(pieces)).filter((file) => file.endsWith('.node')).map((file) => join(pieces, file));
    expect(bindings).toHaveLength(1);
    for (const binary of [join(unpacked, 'usr/lib/latchkey/bin/node'), ...bindings]) {
      const { stdout } = await run('/usr/bin/objdump', ['-p', binary], { maxBuffer: 2 ** 24 });
      for (const [, library] of stdout.matchAll(/NEEDED\s+(\S+)/g)) if (library !== undefined) needed.add(library);
      for (const [, major, minor] of stdout.matchAll(/GLIBC_(\d+)\.(\d+)/g)) {
        const version = [Number(major), Number(minor)];
        if ((version[1] ?? 0) > (newest[1] ?? 0)) newest = version;
      }
    }
    const libc = /^(lib(dl|m|pthread|c)\.so\.\d|ld-linux-(x86-64|aarch64)\.so\.\d)$/;
    expect([...needed].filter((library) => !libc.test(library)).sort()).toEqual(['libgcc_s.so.1', 'libstdc++.so.6']);
    expect(control).toContain(`libc6 (>= ${newest.join('.')})`);
  });
});
