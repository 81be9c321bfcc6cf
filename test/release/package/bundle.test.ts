import { globSync, readFileSync } from 'node:fs';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { bundle } from '../../../scripts/deb.d/bundle.ts';
import { startEmulator } from '../../../src/emulator/index.ts';
import { HubProcess } from '../../support/hub-process.ts';

const ROOT = join(import.meta.dirname, '../../..');

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'latchkey-bundle-'));
  await bundle(ROOT, process.arch === 'arm64' ? 'arm64' : 'x64', join(folder, 'dist'));
  await copyFile(join(ROOT, 'package.json'), join(folder, 'package.json'));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

it("the packaged program keeps `using` natively, as esbuild's version carries an error into the next loop round", () => {
  const program = globSync('**/*.js', { cwd: folder }).map((file) => readFileSync(join(folder, file), 'utf8'));
  expect(program.some((text) => text.includes('await using '))).toBe(true);
  expect(program.filter((text) => text.includes('__callDispose'))).toEqual([]);
});

it('a hub of the Debian packages finds the thread that issues its certificates', async () => {
  await using emulator = await startEmulator();
  await using hub = await HubProcess.start({ emulator, main: join(folder, 'dist/main.js') });
  const before = await hub.authority();
  const { fingerprint } = await hub.ask((control) => control.request('rotateAuthority', { keep: 0 }));
  expect(fingerprint).not.toBe(before.fingerprint);
});
