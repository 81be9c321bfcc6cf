import { beforeEach, expect, test } from 'vitest';
import { shareFakeAdministration, startOnTerminal } from './command.ts';

const hub = shareFakeAdministration();

beforeEach(() => {
  hub.administration.keptOldCa = null;
  hub.administration.rotations = 0;
});

const PEM = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
const OLD_PEM = '-----BEGIN CERTIFICATE-----\nOLD0\n-----END CERTIFICATE-----\n';

test('ca prints only the certificate, or only the pin, on standard output', async () => {
  expect(await hub.latchkey('ca')).toMatchObject({ status: 0, stdout: PEM, stderr: '' });
  const { caFingerprint } = hub.administration.hub;
  expect(await hub.latchkey('ca', '--fingerprint')).toMatchObject({ status: 0, stdout: `${caFingerprint}\n` });
  const { stdout } = await hub.latchkey('ca', '--json');
  expect(JSON.parse(stdout)).toEqual({ certificate: PEM, fingerprint: caFingerprint });
});

test('ca names the old CA during a rotation, and ca --old prints it', async () => {
  const none = await hub.latchkey('ca', '--old');
  expect(none).toMatchObject({ status: 1, stderr: expect.stringContaining('there is no old CA') });
  hub.administration.keptOldCa = 60;
  const { stdout, stderr } = await hub.latchkey('ca');
  expect(stdout).toBe(PEM);
  expect(stderr).toBe(
    'appliances that trust the old CA are served until 2031-05-05T00:00:00Z: "latchkey ca --old" prints it\n',
  );
  expect(await hub.latchkey('ca', '--old')).toMatchObject({ status: 0, stdout: OLD_PEM, stderr: '' });
  expect((await hub.latchkey('ca', '--old', '--fingerprint')).stdout).toBe('the-pin-of-before\n');
  expect(JSON.parse((await hub.latchkey('ca', '--json')).stdout).old).toMatchObject({ certificate: OLD_PEM });
});

test('ca --rotate needs --yes without a terminal, and otherwise changes nothing', async () => {
  const refused = await hub.latchkey('ca', '--rotate');
  expect(refused).toMatchObject({
    status: 1,
    stdout: '',
    stderr: expect.stringContaining('run the command again with --yes'),
  });
  expect(hub.administration.rotations).toBe(0);
  expect(await hub.latchkey('ca', '--rotate', '--yes')).toMatchObject({
    status: 0,
    stdout: PEM,
    stderr: expect.stringMatching(/^the hub has a new CA \(.*\); appliances that trust the old CA are served until /),
  });
  expect([hub.administration.rotations, hub.administration.keptOldCa]).toEqual([1, 30 * 86_400]);
});

test('ca --rotate asks for a confirmation on a terminal, and "no" changes nothing', async () => {
  const terminal = startOnTerminal(['ca', '--rotate', '--keep-old', '0'], hub.env);
  expect(await terminal.stdout(/Continue\? \[y\/N\] /)).toContain('cannot connect');
  terminal.process.stdin?.write('n\n');
  expect((await terminal.ended).status).toBe(1);
  expect(hub.administration.rotations).toBe(0);
});

test.each([
  ['0', null],
  ['7d', 7 * 86_400],
] as const)('ca --rotate accepts --keep-old %s', async (text, seconds) => {
  expect((await hub.latchkey('ca', '--rotate', '--keep-old', text, '--yes')).status).toBe(0);
  expect(hub.administration.keptOldCa).toBe(seconds);
});

test('ca --keep-old without --rotate changes the end of a rotation, and creates no new CA', async () => {
  hub.administration.keptOldCa = 60;
  expect((await hub.latchkey('ca', '--keep-old', '90d', '--yes')).status).toBe(0);
  expect([hub.administration.rotations, hub.administration.keptOldCa]).toEqual([0, 90 * 86_400]);
  const ended = await hub.latchkey('ca', '--keep-old', '0', '--yes');
  expect(ended.stderr).toMatch(
    /^appliances that trust only the old CA cannot connect until you give them the new one, which ".*latchkey ca" prints\n$/,
  );
  expect(hub.administration.keptOldCa).toBeNull();
});

test('ca --rotate rejects a wrong --keep-old as wrong usage', async () => {
  const { status, stdout, stderr } = await hub.latchkey('ca', '--rotate', '--keep-old=366d', '--yes');
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).toContain('Must be 1s to 365d, or 0.');
  expect(hub.administration.rotations).toBe(0);
});
