import { mkdtempSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { shareFakeAdministration, startOnTerminal } from './command.ts';

const hub = shareFakeAdministration();

beforeEach(() => {
  hub.administration.setup = { code: 'BCDF-GHJK-LMNP-QRST', page: 'https://192.168.1.7:8443/', rotations: 0 };
});

test('setup-code on a terminal also shows the address of the page, and a QR code that signs a phone in once', async () => {
  const { status, stdout } = await startOnTerminal(['setup-code'], hub.env, 80).ended;
  expect(status).toBe(0);
  expect(stdout).toContain('Setup code   BCDF-GHJK-LMNP-QRST\r\n');
  expect(stdout).toMatch(/Page {9}https:\/\/192\.168\.1\.7:8443\/\r\n$/);
  expect(stdout).toMatch(/ https:\/\/192\.168\.1\.7:8443\/sign-in\/[\w-]+\r\n/);
  expect(stdout).toContain('It works once, within 10 min.');
  expect(stdout).toMatch(/[▀▄█]{5}/);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours of the terminal
  const lines = stdout.split('\r\n').map((line) => line.replaceAll(/\u001b\[[\d;]*m/g, ''));
  for (const line of lines) expect(line.length, line).toBeLessThanOrEqual(80);
  // A terminal of 80×24 shows everything from the QR code on, with a line left for the shell's prompt.
  expect(lines.slice(lines.findIndex((line) => /[▀▄█]/.test(line))).length).toBeLessThanOrEqual(24);
});

test('setup-code prints only the code without a terminal, and with --json one object', async () => {
  expect(await hub.latchkey('setup-code')).toMatchObject({ status: 0, stdout: 'BCDF-GHJK-LMNP-QRST\n', stderr: '' });
  const { status, stdout, stderr } = await hub.latchkey('setup-code', '--json');
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(JSON.parse(stdout)).toEqual({
    id: hub.administration.hub.id,
    name: 'Cellar hub',
    ca_fingerprint: 'pin-of-the-ca',
    code: 'BCDF-GHJK-LMNP-QRST',
    page: 'https://192.168.1.7:8443/',
    stable_page: 'https://latchkey-1a2b3c.local:8443/',
    sign_in: expect.stringMatching(/^https:\/\/192\.168\.1\.7:8443\/sign-in\//),
    expires_in: 600,
  });
});

test('setup-code --rotate prints a new code without a question, and says that everybody is signed out', async () => {
  const { status, stdout, stderr } = await hub.latchkey('setup-code', '--rotate');
  expect({ status, stdout }).toEqual({ status: 0, stdout: 'QRST-VWXZ-BCDF-GHJK\n' });
  expect(stderr).toBe('there is a new setup code, and everybody was signed out of the page\n');
  expect(hub.administration.setup.rotations).toBe(1);
  expect(JSON.parse((await hub.latchkey('setup-code', '--rotate', '--json')).stdout)).toMatchObject({
    code: 'QRST-VWXZ-BCDF-GHJK',
  });
});

test('setup-code --once prints a one-time address without the code, which a log may keep', async () => {
  const { stdout } = await startOnTerminal(['setup-code', '--once'], hub.env, 80).ended;
  expect(stdout).toMatch(/[▀▄█]{5}/);
  expect(stdout).toMatch(/ https:\/\/192\.168\.1\.7:8443\/sign-in\/[\w-]+\r\n$/);
  expect(stdout).not.toContain('BCDF');
  const { stdout: address } = await hub.latchkey('setup-code', '--once');
  expect(address).toMatch(/^https:\/\/192\.168\.1\.7:8443\/sign-in\/[\w-]+\n$/);
});

test('setup-code --print makes a label with the code and a page that outlives the address, and no way in without the code', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'lk-label-')), 'hub.svg');
  const { status, stdout } = await hub.latchkey('setup-code', '--print', '--output', file);
  expect(status).toBe(0);
  const label = readFileSync(file, 'utf8');
  for (const text of ['BCDF-GHJK-LMNP-QRST', 'Cellar hub'])
    for (const one of [stdout, label]) expect(one).toContain(text);
  expect(stdout).toMatch(/^ {2}█▀▀▀▀▀█ .* █▀▀▀▀▀█/m);
  expect(stdout).toContain('https://latchkey-1a2b3c.local:8443/\n');
  const german = await hub.latchkey('setup-code', '--print', '--output', file, '--yes', '--language', 'de');
  for (const one of [german.stdout, readFileSync(file, 'utf8')]) {
    expect(one).toContain('Einrichtungscode von Cellar hub');
    expect(one).not.toContain('Scan to');
  }
  expect(readFileSync(file, 'utf8')).toContain('Zum Einrichten');
  for (const one of [stdout, label]) expect(one).not.toMatch(/sign-in|192\.168/);
  expect(statSync(file).mode & 0o777).toBe(0o600);
});
