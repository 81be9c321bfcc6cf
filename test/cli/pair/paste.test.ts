import { join } from 'node:path';
import { expect, test } from 'vitest';
import { rememberSecrets } from '../../support/logs.ts';
import { runLatchkey, shareFakeAdministration, startOn } from '../command.ts';
import { startCloudHub } from './cloud-hub.ts';

const ADDRESS = 'https://app.example/callback?code=the-code&state=the-state';
const waiting = {
  event: 'waiting',
  authorizeUrl: 'https://portal.example/authorize?state=the-state',
  acceptsAddress: true,
  expiresIn: 900,
} as const;
const QUESTION = /If the browser ends on an error page, paste its address here:/;

const fake = shareFakeAdministration();

/** A hub whose redirect URI is not its own. */
async function startPasteHub() {
  const redirectUri = 'http://127.0.0.1:9/callback';
  const house = await startCloudHub(
    `login = "paste"\nredirect_uri = "${redirectUri}"`,
    { redirectUris: [redirectUri] },
    { autoLogin: true, codeLifetime: 3600 },
  );
  /** Starts a pairing and logs in. @returns the address on which the browser ends */
  async function logIn(): Promise<string> {
    const { status, stdout } = await startOn(house.hub, 'pair', 'wallbox', '--no-wait', '--json').ended;
    expect(status).toBe(0);
    const { authorize_url: link } = JSON.parse(stdout);
    const { headers } = await fetch(link, { redirect: 'manual' });
    const address = headers.get('location') ?? '';
    rememberSecrets([new URL(address).searchParams.get('code') ?? '']);
    return address;
  }
  return { ...house, logIn };
}

test('pair --paste hands the address to the open pairing and says how it ended', async () => {
  await using house = await startPasteHub();
  const { hub, emulator, logIn } = house;
  const none = await startOn(hub, 'pair', 'wallbox', '--paste', ADDRESS).ended;
  expect(none).toMatchObject({
    status: 1,
    stdout: '',
    stderr: expect.stringMatching(
      /^latchkey: wallbox has no open pairing: start one with ".*latchkey pair wallbox"\n$/,
    ),
  });

  const address = await logIn();
  const wrong = await startOn(hub, 'pair', 'wallbox', '--paste', 'http://127.0.0.1:9/callback').ended;
  expect(wrong).toMatchObject({ status: 1, stderr: expect.stringMatching(/^latchkey: .*copy the whole address.*\n$/) });
  expect(await startOn(hub, 'pair', 'wallbox', '--paste', address).ended).toMatchObject({
    status: 0,
    stdout: 'wallbox is connected\n',
    stderr: '',
  });

  // The portal refuses the code: the pairing goes on with another link.
  const refused = await logIn();
  emulator.addFault({ kind: 'status', endpoint: 'token', status: 400, body: '{"error":"invalid_grant"}', times: 1 });
  expect(await startOn(hub, 'pair', 'wallbox', '--paste', refused, '--json').ended).toMatchObject({
    status: 1,
    stdout: '{"event":"failed","reason":"code_refused"}\n',
    stderr: expect.stringMatching(/^latchkey: wallbox was not paired: .*newest link.*\n$/),
  });

  // From standard input, where other users can't see it.
  const read = ['pair', 'wallbox', '--paste', '-', '--json', '--config', join(hub.directory, 'latchkey.toml')];
  const third = await runLatchkey(read, {}, `${await logIn()}\n`);
  expect(third).toMatchObject({ status: 0, stdout: '{"event":"paired","scope":null}\n', stderr: '' });
  const empty = await runLatchkey(read, {}, '\n');
  expect(empty).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^latchkey: standard input is empty/),
  });
});

test('pair --paste waits for a portal that is slower than the hub waits', async () => {
  await using house = await startPasteHub();
  const address = await house.logIn();
  house.emulator.addFault({ kind: 'delay', endpoint: 'token', seconds: 11 });
  expect(await startOn(house.hub, 'pair', 'wallbox', '--paste', address).ended).toMatchObject({
    status: 0,
    stderr: '',
  });
});

/** Starts `pair` on a terminal, until it has asked for the address. */
async function startOnTerminal() {
  fake.administration.set({ name: 'wallbox' });
  fake.administration.script = [waiting];
  const before = fake.administration.pasted.length;
  const pair = fake.onTerminal('pair', 'wallbox');
  await pair.stdout(QUESTION);
  const [id = '', pairing] = [...fake.administration.pairings].at(-1) ?? [];
  return { pair, id, pairing, pasted: () => fake.administration.pasted.slice(before) };
}

test('pair on a terminal takes a pasted address without showing it, and asks again after a wrong one', async () => {
  const { pair, id, pasted } = await startOnTerminal();
  pair.process.stdin?.write('https://app.example/error\r');
  await pair.stdout(/this is not the address of a finished login/);
  // A terminal that echoes would cut a line of this length.
  const long = `${ADDRESS}&session_state=${'x'.repeat(6000)}`;
  pair.process.stdin?.write(`${long}\r`);
  const { status, stdout } = await pair.ended;
  expect(status).toBe(0);
  expect(stdout).toMatch(/wallbox is connected\r\n$/);
  expect(stdout).not.toContain('the-code');
  expect(pasted()).toEqual([
    [id, 'https://app.example/error'],
    [id, long],
  ]);
});

test('pair on a terminal ends at once when the pairing ends, or with Ctrl-C, although it waits for an address', async () => {
  const first = await startOnTerminal();
  first.pairing?.push({ event: 'paired', scope: 'A' });
  expect(await first.pair.ended).toMatchObject({ status: 0, stdout: expect.stringMatching(/connected, scope A\r\n$/) });

  const second = await startOnTerminal();
  second.pair.process.stdin?.write('\u0003');
  expect(await second.pair.ended).toMatchObject({
    status: 130,
    stdout: expect.stringMatching(/stopped watching; the pairing continues.*\r\n$/),
  });
});

test('pair asks for no address without a terminal, and for a login that does not redirect', async () => {
  fake.administration.set({ name: 'wallbox' });
  fake.administration.script = [waiting, { event: 'paired', scope: null }];
  expect((await fake.latchkey('pair', 'wallbox')).stderr).not.toMatch(QUESTION);
  const { acceptsAddress: _, ...polled } = waiting;
  fake.administration.script = [polled, { event: 'paired', scope: null }];
  expect((await fake.onTerminal('pair', 'wallbox').ended).stdout).not.toMatch(QUESTION);
});
