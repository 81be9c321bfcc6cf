import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import type { InviteRequest } from '../../src/core/administration.ts';
import type { Appliance } from '../../src/core/appliances/appliance.ts';
import type { ClientMetadata, RegistrationResult } from '../../src/core/appliances/registration.ts';
import { comparisonCode } from '../../src/system/comparison-code.ts';
import { sha256 } from '../../src/system/secret-hash.ts';
import { rememberSecrets } from '../support/logs.ts';
import { BrokerHarness } from './broker-harness.ts';

const HOUR = 3_600_000;

function introduction(changes: Partial<ClientMetadata> = {}): ClientMetadata {
  return { clientName: 'Wallbox', scope: null, softwareId: null, keys: null, ...changes };
}

/** @returns the token */
async function invite(home: BrokerHarness, changes: Partial<InviteRequest> = {}): Promise<string> {
  const { token } = await home.run.registrations.createInvite({
    name: null,
    scope: null,
    portal: null,
    ttl: 3600,
    ...changes,
  });
  rememberSecrets([token.reveal()]);
  return token.reveal();
}

/** Counts the devices: each is another one, unless a test says which. */
let devices = 0;

async function register(
  home: BrokerHarness,
  token: string | null,
  changes: Partial<ClientMetadata> = {},
  from: string | readonly string[] = `device-${devices++}`,
): Promise<RegistrationResult> {
  const shares = [from].flat();
  const where = { address: shares.at(-1) ?? '', shares };
  const registration = await home.run.registrations.register(introduction(changes), token, where);
  if (registration.kind === 'registered' && registration.secret !== null)
    rememberSecrets([registration.secret.reveal()]);
  return registration;
}

const appliance = (home: BrokerHarness, id: string) => home.run.appliances.byId(id) ?? gone();
const gone = (): never => {
  throw new Error('the appliance is gone');
};
const names = (home: BrokerHarness) => home.run.appliances.list().map(({ name }) => name);

test('registration is closed unless it was opened, and closes on timeout, on request and at a restart', async () => {
  await using home = await BrokerHarness.start();
  expect(await register(home, null)).toEqual({ kind: 'closed' });
  home.run.registrations.setOpenFor(600_000);
  expect(home.run.registrations.remainingOpenMs).toBe(600_000);
  expect(await register(home, null)).toMatchObject({ kind: 'registered', name: 'wallbox', needsApproval: true });
  await home.time.pass(599_999);
  expect(await register(home, null)).toMatchObject({ kind: 'registered', name: 'wallbox-2' });
  await home.time.pass(1);
  expect(home.run.registrations.remainingOpenMs).toBe(0);
  expect(await register(home, null)).toEqual({ kind: 'closed' });
  home.run.registrations.setOpenFor(600_000);
  home.run.registrations.setOpenFor(0);
  expect(await register(home, null)).toEqual({ kind: 'closed' });
  home.run.registrations.setOpenFor(600_000);
  await home.stop();
  await home.start();
  expect(await register(home, null)).toEqual({ kind: 'closed' });
});

test('the count of registrations lasts from one opening to the next and includes removed appliances', async () => {
  await using home = await BrokerHarness.start();
  const { registrations } = home.run;
  registrations.setOpenFor(600_000);
  expect(registrations.registeredCount).toBe(0);
  for (let count = 0; count < 3; count++) await register(home, null);
  await register(home, await invite(home));
  await home.run.appliances.remove(home.run.appliances.get('wallbox'));
  expect(registrations.registeredCount).toBe(3);
  registrations.setOpenFor(600_000);
  expect(registrations.registeredCount).toBe(3);
  registrations.setOpenFor(0);
  await register(home, null);
  expect(registrations.registeredCount).toBe(3);
  registrations.setOpenFor(600_000);
  expect(registrations.registeredCount).toBe(0);
});

test("approval needs the appliance's own comparison code, so another one under its name is not approved", async () => {
  await using home = await BrokerHarness.start();
  home.run.registrations.setOpenFor(600_000);
  const honest = await register(home, null);
  const code = comparisonCode(honest.kind === 'registered' ? honest.clientId : '');
  await home.run.appliances.remove(home.run.appliances.get('wallbox'));
  await register(home, null);
  const other = home.run.appliances.get('wallbox');
  await expect(home.run.registrations.approve(other, code)).rejects.toMatchObject({
    code: 'not_allowed',
    message: expect.stringContaining('the code of wallbox differs'),
  });
  expect(home.run.appliances.get('wallbox').waitingSince).not.toBeNull();
  await home.run.registrations.approve(other, comparisonCode(other.clientId).toLowerCase());
  expect(home.run.appliances.get('wallbox')).toMatchObject({ waitingSince: null });
  expect(home.run.appliances.get('wallbox')).not.toHaveProperty('registeredFrom');
});

test('the address that a waiting appliance registered from survives a restart', async () => {
  await using home = await BrokerHarness.start();
  home.run.registrations.setOpenFor(600_000);
  await register(home, null, {}, ['fe80::/64', 'fe80::7']);
  await home.stop();
  await home.start();
  expect(home.run.appliances.get('wallbox').registeredFrom).toEqual({
    address: 'fe80::7',
    shares: ['fe80::/64', 'fe80::7'],
  });
});

test('an appliance that registers during an opening waits for approval, also after a restart', async () => {
  await using home = await BrokerHarness.start();
  home.run.registrations.setOpenFor(600_000);
  await register(home, null, { softwareId: 'charger/2', scope: 'Monitoring' });
  await home.stop();
  await home.start();
  const waiting = home.run.appliances.get('wallbox');
  expect(waiting).toMatchObject({ origin: 'registered', softwareId: 'charger/2', scope: 'Monitoring', portal: 'home' });
  expect(waiting.waitingSince).not.toBeNull();
  await home.run.registrations.approve(waiting, null);
  await home.stop();
  await home.start();
  expect(home.run.appliances.get('wallbox')).toMatchObject({ waitingSince: null, clientId: waiting.clientId });
  await home.time.pass(48 * HOUR);
  expect(names(home)).toEqual(['wallbox']);
});

test('an appliance that is not approved within a day is removed, also over restarts', async () => {
  await using home = await BrokerHarness.start();
  home.run.registrations.setOpenFor(24 * HOUR);
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
  expect(home.events.filter(({ fields }) => fields['reason'] === 'approval_timeout')).toHaveLength(2);
  await home.stop();
  await home.start();
  expect(names(home)).toEqual([]);
});

test('an expired registration that cannot be removed is removed once the store is writable', async () => {
  await using home = await BrokerHarness.start();
  home.run.registrations.setOpenFor(HOUR);
  await register(home, null);
  home.failingWrites.add('removeAppliance');
  await home.time.pass(24 * HOUR + 1000);
  expect(names(home)).toEqual(['wallbox']);
  home.failingWrites.clear();
  await home.time.pass(60_000);
  expect(names(home)).toEqual([]);
});

describe('limits on waiting registrations', () => {
  test('each IPv4 address can register an appliance, however many a device with many addresses has registered', async () => {
    await using home = await BrokerHarness.start();
    home.run.registrations.setOpenFor(24 * HOUR);
    const squat = async (network: number, addresses: number, each: number) => {
      for (let host = 1; host <= addresses; host++) {
        for (let round = 0; round < each; round++) {
          const clientName = ['Battery', 'Wallbox', `Heat pump ${round}`][host % 3] ?? '';
          await register(home, null, { clientName }, `192.168.${network}.${host}`);
        }
        await home.time.pass(1000);
      }
    };
    await squat(1, 100, 2);
    const honest = await register(home, null, { clientName: 'Battery' }, '192.168.1.254');
    expect(honest).toMatchObject({ kind: 'registered', name: expect.stringMatching(/^battery-\d+$/) });
    await squat(2, 100, 3);
    for (const network of ['fe80::/64', 'fd00::/64', '2001:db8::/64']) {
      for (let host = 0; host < 20; host++) await register(home, null, {}, [network, `${network}${host}`]);
    }
    expect(home.run.appliances.byId(honest.kind === 'registered' ? honest.clientId : '')).toBeDefined();
    expect(names(home).length).toBeLessThanOrEqual(300 + 3 * 15);
    // It has one, and nobody has three.
    expect(await register(home, null, {}, '192.168.1.254')).toMatchObject({ kind: 'full' });
  });

  test('each IPv6 neighbour can register an appliance, however many other addresses have registered', async () => {
    await using home = await BrokerHarness.start();
    home.run.registrations.setOpenFor(HOUR);
    const neighbour = async (link: string, host: number) => {
      await home.time.pass(1);
      return register(home, null, {}, [link, `fe80::${link}${host}`]);
    };
    const early = await neighbour('02:00:00:00:00:01', 1);
    for (let host = 0; host < 30; host++) await register(home, null, {}, `192.168.1.${host}`);
    for (let host = 0; host < 30; host++) await neighbour('02:00:00:00:00:bad', host);
    const late = await neighbour('02:00:00:00:00:02', 1);
    for (let host = 30; host < 60; host++) await neighbour('02:00:00:00:00:bad', host);
    for (let host = 30; host < 60; host++) await register(home, null, {}, `192.168.1.${host}`);
    for (const one of [early, late]) {
      expect(one).toMatchObject({ kind: 'registered' });
      expect(home.run.appliances.byId(one.kind === 'registered' ? one.clientId : '')).toBeDefined();
    }
  });

  test('appliances from at most 300 IPv4 addresses wait for approval, and that does not block IPv6 or invites', async () => {
    await using home = await BrokerHarness.start();
    home.run.registrations.setOpenFor(HOUR);
    const from = (number: number) => register(home, null, {}, `10.0.${number >> 8}.${number & 255}`);
    for (let number = 0; number < 300; number++) expect(await from(number)).toMatchObject({ kind: 'registered' });
    expect(await from(300)).toEqual({ kind: 'full', retryAfter: 600 });
    expect(await register(home, null, {}, ['fe80::/64', 'fe80::1'])).toMatchObject({ kind: 'registered' });
    expect(await register(home, await invite(home))).toMatchObject({ kind: 'registered', needsApproval: false });
    await home.run.registrations.approve(home.run.appliances.get('wallbox-7'), null);
    expect(await from(301)).toMatchObject({ kind: 'registered' });
  });

  test('at most 15 appliances of one IPv6 network wait, and the address with the most gives way', async () => {
    await using home = await BrokerHarness.start();
    home.run.registrations.setOpenFor(HOUR);
    const neighbour = (address: string) => register(home, null, { clientName: address }, ['fe80::/64', address]);
    for (const address of ['a', 'b', 'c']) {
      for (let round = 0; round < 5; round++) expect(await neighbour(address)).toMatchObject({ kind: 'registered' });
    }
    for (const address of ['d', 'e']) expect(await neighbour(address)).toMatchObject({ kind: 'registered' });
    expect(names(home)).toHaveLength(15);
    for (let i = 0; i < 9; i++) await neighbour(`spread-${i}`);
    expect(names(home)).toHaveLength(15);
    expect(names(home)).toEqual(expect.arrayContaining(['d', 'e']));
    expect(await register(home, null)).toMatchObject({ kind: 'registered' });
    expect(names(home)).toHaveLength(16);
  });

  test('the limits on waiting registrations count the same addresses after a restart', async () => {
    await using home = await BrokerHarness.start();
    home.run.registrations.setOpenFor(HOUR);
    for (let round = 0; round < 5; round++) await register(home, null, {}, 'one');
    await home.stop();
    await home.start();
    home.run.registrations.setOpenFor(HOUR);
    expect(await register(home, null, {}, 'one')).toMatchObject({ kind: 'full' });
    expect(await register(home, null, {}, 'another')).toMatchObject({ kind: 'registered' });
  });
});

test('an invite registers one appliance once, even if many use it at the same time', async () => {
  await using home = await BrokerHarness.start();
  const token = await invite(home);
  const results = await Promise.all(Array.from({ length: 10 }, () => register(home, token)));
  expect(results.filter(({ kind }) => kind === 'registered')).toHaveLength(1);
  expect(results.filter(({ kind }) => kind === 'token_refused')).toHaveLength(9);
  expect(home.run.registrations.isInvite(token)).toBe(false);
  expect(home.run.appliances.get('wallbox')).toMatchObject({ origin: 'registered', waitingSince: null });
  await home.stop();
  await home.start();
  expect(await register(home, token)).toEqual({ kind: 'token_refused' });
});

/** Whether an appliance has this secret. */
const isGood = (home: BrokerHarness, registration: RegistrationResult) =>
  registration.kind === 'registered' &&
  isDeepStrictEqual(home.run.appliances.byId(registration.clientId)?.credentials, {
    kind: 'secret',
    hash: sha256(registration.secret?.reveal() ?? ''),
  });

describe('registration again after a lost answer', () => {
  test('an appliance that registers again with its invite keeps its identity and gets a new secret', async () => {
    await using home = await BrokerHarness.start();
    const token = await invite(home, { name: 'heater' });
    const first = await register(home, token, {}, 'heater');
    let last = first;
    for (let again = 0; again < 3; again++) {
      await home.time.pass(1000);
      const answer = await register(home, token, {}, 'heater');
      expect(answer).toMatchObject({ ...first, secret: expect.anything() });
      expect([isGood(home, last), isGood(home, answer)]).toEqual([false, true]);
      last = answer;
    }
    expect(names(home)).toEqual(['heater']);
    expect(home.run.registrations.isInvite(token)).toBe(false);
    await home.stop();
    await home.start();
    expect(isGood(home, last)).toBe(true);
  });

  test.each<[string, (home: BrokerHarness, id: string) => unknown]>([
    ['it has authenticated', (home, id) => home.run.registrations.markAuthenticated(id)],
    ['an installer has rotated its secret', (home, id) => home.run.appliances.rotateSecret(appliance(home, id))],
    ['it was removed', (home, id) => home.run.appliances.remove(appliance(home, id))],
    ['ten minutes have passed', (home) => home.time.pass(600_001)],
    ['the invite has expired', (home) => home.time.pass(120_000)],
  ])('an appliance cannot register again with its invite if %s', async (_, happens) => {
    await using home = await BrokerHarness.start();
    const token = await invite(home, { ttl: _.includes('invite') ? 100 : 3600 });
    const first = await register(home, token, {}, 'heater');
    await happens(home, first.kind === 'registered' ? first.clientId : '');
    await home.time.pass(1);
    expect(await register(home, token, {}, 'heater')).toEqual({ kind: 'token_refused' });
  });

  test('an appliance can register again for ten minutes from the first time, however often it does', async () => {
    await using home = await BrokerHarness.start();
    const token = await invite(home);
    await register(home, token, {}, 'heater');
    for (let round = 0; round < 2; round++) {
      await home.time.pass(290_000);
      expect(await register(home, token, {}, 'heater')).toMatchObject({ kind: 'registered' });
    }
    await home.time.pass(20_001);
    expect(await register(home, token, {}, 'heater')).toEqual({ kind: 'token_refused' });
  });

  test.each<[string, (home: BrokerHarness, it: Appliance) => Promise<unknown>]>([
    ['an installer rotates its secret', (home, it) => home.run.appliances.rotateSecret(it)],
    [
      'it is removed',
      async (home, { id }) => {
        await home.run.appliances.update(id, (current) => current);
        await home.run.appliances.remove(appliance(home, id));
      },
    ],
    [
      'it proves who it is',
      async (home, { id }) => {
        await home.run.appliances.update(id, (current) => current);
        home.run.registrations.markAuthenticated(id);
      },
    ],
  ])('an appliance gets no new secret if %s before the new one is saved', async (what, happens) => {
    // Which of two writes is done first must not be left to chance here.
    await using home = await BrokerHarness.start({ writeTimes: [0, 0] });
    const token = await invite(home);
    const first = await register(home, token, {}, 'heater');
    const gate = Promise.withResolvers<void>();
    home.delayedWrites.set('updateAppliance', gate.promise);
    const happened = happens(home, home.run.appliances.get('wallbox'));
    const again = register(home, token, {}, 'heater');
    gate.resolve();
    await happened;
    expect(await again).toEqual({ kind: 'token_refused' });
    expect(isGood(home, first)).toBe(what.includes('proves'));
    expect(await register(home, token, {}, 'heater')).toEqual({ kind: 'token_refused' });
  });

  test('an appliance keeps its secret if it authenticates with it while a new one is being saved', async () => {
    await using home = await BrokerHarness.start();
    const token = await invite(home);
    const first = await register(home, token, {}, 'heater');
    const gate = Promise.withResolvers<void>();
    home.delayedWrites.set('updateAppliance', gate.promise);
    const again = register(home, token, {}, 'heater');
    await sleep(20);
    home.run.registrations.markAuthenticated(home.run.appliances.get('wallbox').id);
    gate.resolve();
    expect(await again).toEqual({ kind: 'token_refused' });
    expect(isGood(home, first)).toBe(true);
    await home.stop();
    await home.start();
    expect(isGood(home, first)).toBe(true);
  });

  test('a registration again is refused if it is simultaneous, from another device or with other metadata', async () => {
    await using home = await BrokerHarness.start();
    const token = await invite(home);
    const [first, ...others] = await Promise.all([1, 2, 3].map(() => register(home, token, {}, 'heater')));
    await home.time.pass(1000);
    others.push(await register(home, token, {}, 'another'));
    others.push(await register(home, token, { clientName: 'Another' }, 'heater'));
    expect(new Set(others.map(({ kind }) => kind))).toEqual(new Set(['token_refused']));
    expect(first && isGood(home, first)).toBe(true);
  });
});

test('an invite survives a restart, and expires also across reboots', async () => {
  await using home = await BrokerHarness.start();
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

test('the name, scope and portal of an invite override what the appliance registers', async () => {
  await using home = await BrokerHarness.start();
  const fixed = await invite(home, { name: 'garage', scope: 'RemoteControl', portal: 'other' });
  const registered = await register(home, fixed, { clientName: 'Something', scope: 'Everything' });
  expect(registered).toMatchObject({ name: 'garage', scope: 'RemoteControl' });
  expect(home.run.appliances.get('garage')).toMatchObject({ scope: 'RemoteControl', portal: 'other' });
  const free = await register(home, await invite(home), { clientName: 'Garage', scope: 'Monitoring' });
  expect(free).toMatchObject({ name: 'garage-2', scope: 'Monitoring' });
});

test('an appliance that waits for approval gives up its name to an added appliance or an invite', async () => {
  await using home = await BrokerHarness.start();
  home.run.registrations.setOpenFor(HOUR);
  await register(home, null, { clientName: 'Battery' });
  const stranger = home.run.appliances.get('battery').clientId;
  const isNow = (name: string) => expect(home.run.appliances.byId(stranger)?.name).toBe(name);
  await home.addAppliance('battery');
  isNow('battery-2');
  const token = await invite(home, { name: 'battery-2' });
  isNow('battery-2-2');
  expect(await register(home, token)).toMatchObject({ kind: 'registered', name: 'battery-2' });
  // One that is approved keeps its name.
  await home.run.registrations.approve(home.run.appliances.get('battery-2-2'), comparisonCode(stranger));
  await expect(home.addAppliance('battery-2-2')).rejects.toMatchObject({ code: 'appliance_exists' });
  await home.stop();
  await home.start();
  expect(names(home)).toEqual(['battery', 'battery-2', 'battery-2-2']);
  isNow('battery-2-2');
});

test("an appliance that registers under an approved appliance's name gets another name", async () => {
  await using home = await BrokerHarness.start();
  home.run.registrations.setOpenFor(HOUR);
  await register(home, null, { clientName: 'Battery' });
  const approved = await home.run.registrations.approve(home.run.appliances.get('battery'), null);
  expect(await register(home, null, { clientName: ' battery! ' })).toMatchObject({
    name: 'battery-2',
    needsApproval: true,
  });
  expect(home.run.appliances.get('battery')).toEqual(approved);
});

test('an invite reserves its name, and stays valid when an installer has given the name to another appliance', async () => {
  await using home = await BrokerHarness.start();
  const token = await invite(home, { name: 'wallbox' });
  expect(await register(home, await invite(home))).toMatchObject({ name: 'wallbox-2' });
  await home.addAppliance('wallbox');
  expect(await register(home, token)).toMatchObject({
    kind: 'invalid',
    description: expect.stringContaining('this hub already has an appliance wallbox'),
  });
  await home.run.appliances.remove(home.run.appliances.get('wallbox'));
  expect(await register(home, token)).toMatchObject({ kind: 'registered', name: 'wallbox' });
});

test.each<[Partial<InviteRequest>, string]>([
  [{ name: 'heater' }, 'appliance_exists'],
  [{ name: 'Wall box' }, 'name_invalid'],
  [{ scope: 'ä' }, 'scope_invalid'],
  [{ portal: 'nowhere' }, 'portal_unknown'],
])('an invite with %o is refused: %s', async (request, code) => {
  await using home = await BrokerHarness.start();
  await home.addAppliance('heater');
  await expect(invite(home, request)).rejects.toMatchObject({ code });
  expect(await home.run.store.invites()).toEqual([]);
});

test('the hub has at most 100 open invites and drops expired ones', async () => {
  await using home = await BrokerHarness.start();
  await invite(home, { ttl: 60 });
  for (let made = 1; made < 100; made++) await invite(home);
  await expect(invite(home)).rejects.toMatchObject({ code: 'not_allowed' });
  await home.time.pass(60_000);
  await invite(home);
  expect(await home.run.store.invites()).toHaveLength(100);
});

test('the store contains neither invite tokens nor appliance secrets in plain text', async () => {
  await using home = await BrokerHarness.start();
  const token = await invite(home);
  expect(JSON.stringify(await home.run.store.invites())).not.toContain(token);
  const registered = await register(home, token);
  const secret = registered.kind === 'registered' ? registered.secret?.reveal() : undefined;
  expect(secret).toHaveLength(43);
  expect(JSON.stringify(await home.run.store.appliances())).not.toContain(secret);
});

test('an appliance that registers with its own keys gets no secret', async () => {
  await using home = await BrokerHarness.start();
  const keys = [{ kty: 'OKP', crv: 'Ed25519', x: 'x' }];
  expect(await register(home, await invite(home), { keys })).toMatchObject({ kind: 'registered', secret: null });
  expect(home.run.appliances.get('wallbox').credentials).toEqual({ kind: 'keys', keys });
});

test('an invite stays valid if its registration cannot be saved', async () => {
  await using home = await BrokerHarness.start();
  const token = await invite(home);
  home.failingWrites.add('addAppliance');
  await expect(register(home, token)).rejects.toMatchObject({ code: 'store_unwritable' });
  home.failingWrites.clear();
  expect(await register(home, token)).toMatchObject({ kind: 'registered', name: 'wallbox' });
});
