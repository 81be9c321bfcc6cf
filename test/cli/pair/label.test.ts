import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runShell, shareFakeAdministration } from '../command.ts';

const hub = shareFakeAdministration();
const folder = mkdtempSync(join(tmpdir(), 'lk-label-'));

test('pair --print writes a label of 60 by 40 mm, and names the lasting link and the current address', async () => {
  const file = join(folder, 'label.svg');
  const { status, stdout } = await hub.latchkey('pair', 'wallbox', '--print', '--output', file);
  expect(status).toBe(0);
  for (const text of ['wallbox', 'https://latchkey-1a2b3c.local:8443/p/wallbox', 'https://192.168.1.7:8443/p/wallbox'])
    expect(stdout).toContain(text);
  // The upper edge of the finder patterns, after a quiet zone of two modules: the dark modules are drawn.
  expect(stdout).toMatch(/^ {2}█▀▀▀▀▀█ .* █▀▀▀▀▀█/m);
  const label = readFileSync(file, 'utf8');
  expect(label).toMatch(/^<svg [^>]*width="60mm" height="40mm"/);
  for (const text of ['wallbox', 'Cellar hub', 'Scan to connect']) expect(label).toContain(text);
  const args = ['pair', 'wallbox', '--print', '--output', file, '--yes', '--language', 'de'];
  expect((await hub.latchkey(...args)).stdout).toContain('Zum Verbinden scannen, oder öffnen:\n  https://');
  expect(readFileSync(file, 'utf8')).toContain('Zum Verbinden');
});

test('pair --print replaces an existing file only with --yes', async () => {
  const file = join(folder, 'kept.svg');
  writeFileSync(file, 'precious');
  const refused = await hub.latchkey('pair', 'wallbox', '--print', '--output', file);
  expect(refused).toMatchObject({ status: 1, stdout: '', stderr: expect.stringContaining('--yes') });
  expect(readFileSync(file, 'utf8')).toBe('precious');
  expect((await hub.latchkey('pair', 'wallbox', '--print', '--output', file, '--yes')).status).toBe(0);
  expect(readFileSync(file, 'utf8')).toMatch(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" /);
});

test('pair --print without --output writes into the working directory, under the name of the appliance', async () => {
  const place = mkdtempSync(join(tmpdir(), 'lk-label-'));
  const { status, stdout } = await runShell(`cd ${place} && $LATCHKEY pair heat-pump --print --json`, hub.env);
  expect(status).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ name: 'heat-pump', file: 'latchkey-heat-pump.svg' });
  expect(existsSync(join(place, 'latchkey-heat-pump.svg'))).toBe(true);
});
