import { beforeEach, expect, test } from 'vitest';
import { toWire } from '../../../src/control/messages.ts';
import { runLatchkey, runShell, shareFakeAdministration, startLatchkey } from '../command.ts';

const hub = shareFakeAdministration();

beforeEach(() => hub.administration.appliances.clear());

test('appliance add --json shows the credentials once, under the documented member names', async () => {
  const added = await hub.latchkey('appliance', 'add', 'wallbox', '--scope', 'A B', '--portal', 'home', '--json');
  expect(added).toMatchObject({ status: 0, stderr: '' });
  expect(JSON.parse(added.stdout)).toEqual({
    name: 'wallbox',
    title: 'wallbox',
    client_id: hub.administration.appliances.get('wallbox')?.clientId,
    client_secret: hub.administration.issued.at(-1),
    token_endpoint: 'https://192.168.1.7:8443/oauth/token',
    ca_fingerprint: 'pin-of-the-ca',
  });
  expect(hub.administration.appliances.get('wallbox')?.scope).toBe('A B');
});

test('appliance add shows the secret and a curl command that can be pasted into a shell', async () => {
  const added = await hub.latchkey('appliance', 'add', 'wallbox');
  const secret = hub.administration.issued.at(-1);
  expect(added).toMatchObject({ status: 0, stderr: '' });
  expect(added.stdout).toContain(`client_secret   ${secret}`);
  const example = added.stdout.slice(added.stdout.indexOf('  curl '));
  const words = await runShell(`curl() { printf '%s\\n' "$@"; echo; cat; }; ${example}`);
  const [typed = '', read] = words.stdout.split('\n\n');
  // Every user of the machine can read the arguments of a process, so the secret goes through standard input.
  expect(read).toBe(`user = "${hub.administration.appliances.get('wallbox')?.clientId}:${secret}"\n`);
  expect(typed.split('\n')).toEqual([
    ...['--cacert', 'latchkey-ca.pem', '--config', '-', '--data', 'grant_type=client_credentials'],
    'https://192.168.1.7:8443/oauth/token',
  ]);
  const address = 'HUB_NAME=\\S+\\.local HUB_ADDRESS=192\\.168\\.1\\.7 HUB_PORT=8443';
  expect(added.stdout).toMatch(new RegExp(`^ {2}export HUB=.* ${address} .* CLIENT_SECRET=${secret}$`, 'm'));
});

test('rename passes the title to the hub, and says what stays', async () => {
  for (const kind of ['appliance', 'connection']) {
    await hub.latchkey(kind, 'add', 'heatpmup');
    const { status, stdout } = await hub.latchkey(kind, 'rename', 'heatpmup', 'Heat pump cellar');
    expect([status, stdout]).toEqual([0, expect.stringMatching(/^heatpmup is called Heat pump cellar now\.\n.*stay/)]);
    const json = await hub.latchkey(kind, 'rename', 'heatpmup', 'Heat pump', '--json');
    expect(JSON.parse(json.stdout)).toMatchObject({ name: 'heatpmup', title: 'Heat pump', state: 'unpaired' });
  }
});

test('appliance remove and unpair act without a question if there is no terminal', async () => {
  hub.administration.set({ name: 'wallbox', state: 'active' });
  expect(await hub.latchkey('unpair', 'wallbox')).toMatchObject({
    status: 0,
    stdout: '',
    stderr: 'wallbox is unpaired.\n',
  });
  hub.administration.isPortalTold = false;
  expect(await hub.latchkey('unpair', 'wallbox')).toMatchObject({
    status: 0,
    stdout: '',
    stderr: expect.stringContaining('The portal was not told, so the login may go on'),
  });
  expect(hub.administration.appliances.get('wallbox')?.state).toBe('unpaired');
  expect(await hub.latchkey('appliance', 'remove', 'wallbox')).toMatchObject({
    status: 0,
    stdout: '',
    stderr: expect.stringContaining('The portal was not told, so the login may go on'),
  });
  hub.administration.isPortalTold = true;
  expect(hub.administration.appliances.size).toBe(0);
});

test('token passes on the shortest lifetime, and on standard input the token that the cloud has refused', async () => {
  hub.administration.set({ name: 'wallbox', state: 'active', scope: 'A' });
  const refused = await runLatchkey(['token', 'wallbox', '--rejected', '--min-ttl', '10m'], hub.env, 'the-old-one\n');
  expect(refused).toMatchObject({ status: 0, stdout: `${hub.administration.accessToken}\n` });
  expect(hub.administration.tokensAsked.at(-1)).toEqual([600_000, 'the-old-one']);
  const none = await runLatchkey(['token', 'wallbox', '--rejected'], hub.env, '');
  expect(none).toMatchObject({ status: 1, stderr: expect.stringContaining('latchkey token NAME --rejected < FILE') });
});

test('token prints only the token, and with --json a token response', async () => {
  hub.administration.set({ name: 'wallbox', state: 'active', scope: 'A' });
  expect(await hub.latchkey('token', 'wallbox')).toMatchObject({
    status: 0,
    stdout: `${hub.administration.accessToken}\n`,
  });
  expect(JSON.parse((await hub.latchkey('token', 'wallbox', '--json')).stdout)).toEqual({
    access_token: hub.administration.accessToken,
    token_type: 'Bearer',
    expires_in: 3000,
    scope: 'A',
  });
});

test('refresh says how long the new token is valid', async () => {
  const wallbox = hub.administration.set({ name: 'wallbox', state: 'active', expiresIn: 3600 });
  expect(await hub.latchkey('refresh', 'wallbox')).toMatchObject({
    status: 0,
    stdout: 'wallbox is refreshed; its access token expires in 60 min.\n',
  });
  expect(JSON.parse((await hub.latchkey('refresh', 'wallbox', '--json')).stdout)).toEqual(toWire(wallbox));
});

test('commands that the portal answers late say what they wait for, and not on standard output', async () => {
  hub.administration.set({ name: 'wallbox', state: 'active', expiresIn: 3600 });
  const { promise, resolve } = Promise.withResolvers<void>();
  hub.administration.portal = promise;
  const running = [
    ['refresh', 'wallbox'],
    ['token', 'wallbox'],
    ['portals', 'check', 'home'],
    ['connection', 'import', 'cloud'],
  ].map((args) => startLatchkey([...args, '--json'], hub.env, 'a-refresh-token'));
  for (const { stderr } of running) await stderr(/^Waiting for the portal's answer, two minutes at most …\n$/);
  resolve();
  const results = await Promise.all(running.map(async ({ ended }) => JSON.parse((await ended).stdout)));
  const { accessToken: access_token } = hub.administration;
  expect(results).toMatchObject([{ name: 'wallbox' }, { access_token }, { checks: [] }, { name: 'cloud' }]);
});

test('refresh fails with the reason and what to do if the appliance still has a problem', async () => {
  const problem = { code: 'refused', message: 'the portal refused the token', since: '2026-01-01T00:00:00Z' } as const;
  const wallbox = hub.administration.set({ name: 'wallbox', state: 'needs_pairing', problem });
  const reason = expect.stringMatching(
    /^latchkey: wallbox is no longer connected: the portal refused the token\. Noticed .* ago\. Log in again .* "latchkey pair wallbox"\.\n$/,
  );
  expect(await hub.latchkey('refresh', 'wallbox')).toMatchObject({ status: 1, stdout: '', stderr: reason });
  const result = await hub.latchkey('refresh', 'wallbox', '--json');
  expect(result).toMatchObject({ status: 1, stderr: reason });
  expect(JSON.parse(result.stdout)).toEqual(toWire(wallbox));
});

test.each([
  [['appliance', 'remove', '..'], /"\.\." is not a valid appliance name/],
  [['appliance', 'remove', 'a?b#c%2f'], /"a\?b#c%2f" is not a valid appliance name/],
  [['token', 'ä\n\u001b[31m'], /is not a valid connection name/],
])('the command %j fails with one clear line', async (args, problem) => {
  const failed = await hub.latchkey(...args);
  expect(failed).toMatchObject({ status: 1, stdout: '' });
  expect(failed.stderr).toMatch(problem);
  expect(failed.stderr).toMatch(/^latchkey: [\P{Cc}]{1,400}\n$/u);
});
