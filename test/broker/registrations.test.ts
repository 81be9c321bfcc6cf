import { expect, test } from 'vitest';
import type { InviteRequest } from '../../src/core/administration.ts';
import type { Introduction, Registration } from '../../src/core/registration.ts';
import { rememberSecrets } from '../support/logs.ts';
import { Home } from './home.ts';

const HOUR = 3_600_000;

function introduction(changes: Partial<Introduction> = {}): Introduction {
  return { clientName: 'Wallbox', scope: null, softwareId: null, keys: null, ...changes };
}

/** @returns the token */
async function invite(home: Home, changes: Partial<InviteRequest> = {}): Promise<string> {
  const { token } = await home.run.registrations.invite({
    name: null,
    scope: null,
    portal: null,
    ttl: 3600,
    ...changes,
  });
  rememberSecrets([token.reveal()]);
  return token.reveal();
}

async function register(home: Home, token: string | null, changes: Partial<Introduction> = {}): Promise<Registration> {
  const registration = await home.run.registrations.register(introduction(changes), token);
  if (registration.kind === 'registered' && registration.secret !== null)
    rememberSecrets([registration.secret.reveal()]);
  return registration;
}

const names = (home: Home) => home.run.appliances.list().map(({ name }) => name);

test('registration is closed until it is held open, and again when that is over, it is closed, or the hub is restarted', async () => {
  await using home = await Home.start();
  expect(await register(home, null)).toEqual({ kind: 'closed' });
  home.run.registrations.hold(600_000);
  expect(home.run.registrations.openFor).toBe(600_000);
  expect(await register(home, null)).toMatchObject({ kind: 'registered', name: 'wallbox', waiting: true });
  await home.time.pass(599_999);
  expect(await register(home, null)).toMatchObject({ kind: 'registered', name: 'wallbox-2' });
  await home.time.pass(1);
  expect(home.run.registrations.openFor).toBe(0);
  expect(await register(home, null)).toEqual({ kind: 'closed' });
  home.run.registrations.hold(600_000);
  home.run.registrations.hold(0);
  expect(await register(home, null)).toEqual({ kind: 'closed' });
  home.run.registrations.hold(600_000);
  await home.stop();
  await home.start();
  expect(await register(home, null)).toEqual({ kind: 'closed' });
});

test('who registers while it is open waits, also after a restart, until somebody approves', async () => {
  await using home = await Home.start();
  home.run.registrations.hold(600_000);
  await register(home, null, { softwareId: 'charger/2', scope: 'Monitoring' });
  await home.stop();
  await home.start();
  const waiting = home.run.appliances.named('wallbox');
  expect(waiting).toMatchObject({ origin: 'registered', softwareId: 'charger/2', scope: 'Monitoring', portal: 'home' });
  expect(waiting.waitingSince).not.toBeNull();
  await home.run.registrations.approve(waiting);
  await home.stop();
  await home.start();
  expect(home.run.appliances.named('wallbox')).toMatchObject({ waitingSince: null, clientId: waiting.clientId });
  await home.time.pass(48 * HOUR);
  expect(names(home)).toEqual(['wallbox']);
});

test('who is not approved within a day is removed, however often the hub was restarted', async () => {
  await using home = await Home.start();
  home.run.registrations.hold(24 * HOUR);
  await register(home, null);
  await home.time.pass(HOUR);
  await register(home, null);
  await home.stop();
  home.time.reboot(home.time.wall + 2 * HOUR);
  await home.start();
  await home.time.pass(21 * HOUR - 60_000);
  expect(names(home)).toEqual(['wallbox', 'wallbox-2']);
  await home.time.pass(2 * 60_000);
  expect(names(home)).toEqual(['wallbox-2']);
  await home.time.pass(HOUR);
  expect(names(home)).toEqual([]);
  expect(home.events.filter(({ event }) => event.includes('not approved in time'))).toHaveLength(2);
  await home.stop();
  await home.start();
  expect(names(home)).toEqual([]);
});

test('one that can not be removed when its time is over is removed when that can be written', async () => {
  await using home = await Home.start();
  home.run.registrations.hold(HOUR);
  await register(home, null);
  home.unwritable.add('removeAppliance');
  await home.time.pass(24 * HOUR + 1000);
  expect(names(home)).toEqual(['wallbox']);
  home.unwritable.clear();
  await home.time.pass(60_000);
  expect(names(home)).toEqual([]);
});

test('twenty may wait, and another is told to come back', async () => {
  await using home = await Home.start();
  home.run.registrations.hold(HOUR);
  const results = await Promise.all(Array.from({ length: 25 }, () => register(home, null)));
  expect(results.filter(({ kind }) => kind === 'registered')).toHaveLength(20);
  expect(results.at(-1)).toEqual({ kind: 'full', retryAfter: 600 });
  expect(await register(home, await invite(home))).toMatchObject({ kind: 'registered', waiting: false });
  await home.run.registrations.approve(home.run.appliances.named('wallbox-7'));
  expect(await register(home, null)).toMatchObject({ kind: 'registered' });
  expect(await register(home, null)).toMatchObject({ kind: 'full' });
});

test('an invite is good for one appliance, once, also when many come with it at the same time', async () => {
  await using home = await Home.start();
  const token = await invite(home);
  const results = await Promise.all(Array.from({ length: 10 }, () => register(home, token)));
  expect(results.filter(({ kind }) => kind === 'registered')).toHaveLength(1);
  expect(results.filter(({ kind }) => kind === 'token_refused')).toHaveLength(9);
  expect(home.run.registrations.isInvite(token)).toBe(false);
  expect(home.run.appliances.named('wallbox')).toMatchObject({ origin: 'registered', waitingSince: null });
  await home.stop();
  await home.start();
  expect(await register(home, token)).toEqual({ kind: 'token_refused' });
});

test('an invite survives a restart, and runs out also across boots', async () => {
  await using home = await Home.start();
  const [first, second] = [await invite(home), await invite(home)];
  await home.stop();
  home.time.reboot(home.time.wall + 0.5 * HOUR);
  await home.start();
  expect(home.run.registrations.isInvite(first)).toBe(true);
  expect(await register(home, first)).toMatchObject({ kind: 'registered' });
  await home.stop();
  home.time.reboot(home.time.wall + 0.5 * HOUR);
  await home.start();
  expect(home.run.registrations.isInvite(second)).toBe(false);
  expect(await register(home, second)).toEqual({ kind: 'token_refused' });
});

test('what an invite says of the appliance counts, whatever the appliance says', async () => {
  await using home = await Home.start();
  const fixed = await invite(home, { name: 'garage', scope: 'RemoteControl', portal: 'other' });
  const registered = await register(home, fixed, { clientName: 'Something', scope: 'Everything' });
  expect(registered).toMatchObject({ name: 'garage', scope: 'RemoteControl' });
  expect(home.run.appliances.named('garage')).toMatchObject({ scope: 'RemoteControl', portal: 'other' });
  const free = await register(home, await invite(home), { clientName: 'Garage', scope: 'Monitoring' });
  expect(free).toMatchObject({ name: 'garage-2', scope: 'Monitoring' });
});

test('the name of an invite is kept for it; one that was taken all the same is told, and the invite stays good', async () => {
  await using home = await Home.start();
  const token = await invite(home, { name: 'wallbox' });
  expect(await register(home, await invite(home))).toMatchObject({ name: 'wallbox-2' });
  await home.add('wallbox');
  expect(await register(home, token)).toMatchObject({
    kind: 'invalid',
    description: expect.stringContaining('there is an appliance wallbox on this hub'),
  });
  await home.run.appliances.remove(home.run.appliances.named('wallbox'));
  expect(await register(home, token)).toMatchObject({ kind: 'registered', name: 'wallbox' });
});

test.each<[Partial<InviteRequest>, string]>([
  [{ name: 'heater' }, 'appliance_exists'],
  [{ name: 'Wall box' }, 'name_invalid'],
  [{ scope: 'ä' }, 'scope_invalid'],
  [{ portal: 'nowhere' }, 'portal_unknown'],
])('an invite with %o is refused: %s', async (request, code) => {
  await using home = await Home.start();
  await home.add('heater');
  await expect(invite(home, request)).rejects.toMatchObject({ code });
  expect(await home.run.store.invites()).toEqual([]);
});

test('a hundred invites may be out, and those that ran out are dropped', async () => {
  await using home = await Home.start();
  await invite(home, { ttl: 60 });
  for (let made = 1; made < 100; made++) await invite(home);
  await expect(invite(home)).rejects.toMatchObject({ code: 'not_allowed' });
  await home.time.pass(60_000);
  await invite(home);
  expect(await home.run.store.invites()).toHaveLength(100);
});

test('the store has no token of an invite, and no secret of an appliance', async () => {
  await using home = await Home.start();
  const token = await invite(home);
  expect(JSON.stringify(await home.run.store.invites())).not.toContain(token);
  const registered = await register(home, token);
  const secret = registered.kind === 'registered' ? registered.secret?.reveal() : undefined;
  expect(secret).toHaveLength(43);
  expect(JSON.stringify(await home.run.store.appliances())).not.toContain(secret);
});

test('an appliance with keys of its own gets no secret', async () => {
  await using home = await Home.start();
  const keys = [{ kty: 'OKP', crv: 'Ed25519', x: 'x' }];
  expect(await register(home, await invite(home), { keys })).toMatchObject({ kind: 'registered', secret: null });
  expect(home.run.appliances.named('wallbox').credentials).toEqual({ kind: 'keys', keys });
});

test('a registration that can not be written leaves the invite good', async () => {
  await using home = await Home.start();
  const token = await invite(home);
  home.unwritable.add('addAppliance');
  await expect(register(home, token)).rejects.toMatchObject({ code: 'store_unwritable' });
  home.unwritable.clear();
  expect(await register(home, token)).toMatchObject({ kind: 'registered', name: 'wallbox' });
});
