import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import type { InviteRequest } from '../../src/core/administration.ts';
import type { Appliance } from '../../src/core/appliances/appliance.ts';
import type { ClientMetadata, RegistrationResult } from '../../src/core/appliances/registration.ts';
import { comparisonCode } from '../../src/system/comparison-code.ts';
import { sha256 } from '../../src/system/secret-hash.ts';
import { HOUR } from '../core/samples.ts';
import { rememberSecrets } from '../support/logs.ts';
import { BrokerHarness } from './broker-harness.ts';

function introduction(changes: Partial<ClientMetadata> = {}): ClientMetadata {
  return { clientName: 'Wallbox', scope: null, softwareId: null, keys: null, ...changes };
}

/** A broker at which appliances may register themselves for this time. */
async function startOpen(time = HOUR): Promise<BrokerHarness> {
  const harness = await BrokerHarness.start();
  harness.run.registrations.setOpenFor(time);
  return harness;
}

/** Creates an invite. @returns its token */
async function invite(harness: BrokerHarness, changes: Partial<InviteRequest> = {}): Promise<string> {
  const { token } = await harness.run.registrations.createInvite({
    name: null,
    scope: null,
    portal: null,
    connection: null,
    ttl: 3600,
    ...changes,
  });
  rememberSecrets([token.reveal()]);
  return token.reveal();
}

/** Counts the devices: each registration comes from another one unless the test names it. */
let devices = 0;

async function register(
  harness: BrokerHarness,
  token: string | null,
  changes: Partial<ClientMetadata> = {},
  address = `device-${devices++}`,
): Promise<RegistrationResult> {
  const registration = await harness.run.registrations.register(introduction(changes), token, address);
  if (registration.kind === 'registered' && registration.secret !== null)
    rememberSecrets([registration.secret.reveal()]);
  return registration;
}

const appliance = (harness: BrokerHarness, id: string) => harness.run.appliances.byId(id) ?? gone();
const gone = (): never => {
  throw new Error('the appliance is gone');
};
const names = (harness: BrokerHarness) => harness.run.appliances.list().map(({ name }) => name);

test('registration is closed unless it was opened, and closes on timeout, on request and at a restart', async () => {
  const harness = await BrokerHarness.start();
  expect(await register(harness, null)).toEqual({ kind: 'closed' });
  harness.run.registrations.setOpenFor(600_000);
  expect(harness.run.registrations.remainingOpenMs).toBe(600_000);
  expect(await register(harness, null)).toMatchObject({ kind: 'registered', name: 'wallbox', needsApproval: true });
  await harness.time.pass(599_999);
  expect(await register(harness, null)).toMatchObject({ kind: 'registered', name: 'wallbox-2' });
  await harness.time.pass(1);
  expect(harness.run.registrations.remainingOpenMs).toBe(0);
  expect(await register(harness, null)).toEqual({ kind: 'closed' });
  harness.run.registrations.setOpenFor(600_000);
  harness.run.registrations.setOpenFor(0);
  expect(await register(harness, null)).toEqual({ kind: 'closed' });
  harness.run.registrations.setOpenFor(600_000);
  await harness.restart();
  expect(await register(harness, null)).toEqual({ kind: 'closed' });
});

test('the count of registrations lasts from one opening to the next and includes removed appliances', async () => {
  const harness = await BrokerHarness.start();
  const { registrations } = harness.run;
  registrations.setOpenFor(600_000);
  expect(registrations.registeredCount).toBe(0);
  for (let count = 0; count < 3; count++) await register(harness, null);
  await register(harness, await invite(harness));
  await harness.run.appliances.remove(harness.run.appliances.get('wallbox'));
  expect(registrations.registeredCount).toBe(3);
  registrations.setOpenFor(600_000);
  expect(registrations.registeredCount).toBe(3);
  registrations.setOpenFor(0);
  await register(harness, null);
  expect(registrations.registeredCount).toBe(3);
  registrations.setOpenFor(600_000);
  expect(registrations.registeredCount).toBe(0);
});

test("approval needs the appliance's own comparison code, so another one under its name is not approved", async () => {
  const harness = await startOpen();
  const honest = await register(harness, null);
  const code = comparisonCode(honest.kind === 'registered' ? honest.clientId : '');
  await harness.run.appliances.remove(harness.run.appliances.get('wallbox'));
  await register(harness, null);
  const other = harness.run.appliances.get('wallbox');
  await expect(harness.run.registrations.approve(other, code)).rejects.toMatchObject({
    code: 'not_allowed',
    message: expect.stringContaining('the code of wallbox differs'),
  });
  expect(harness.run.appliances.get('wallbox').waiting).not.toBeNull();
  await harness.run.registrations.approve(other, comparisonCode(other.clientId).toLowerCase());
  expect(harness.run.appliances.get('wallbox')).toMatchObject({ waiting: null });
});

test('an appliance that registers during an opening waits for approval, also after a restart', async () => {
  const harness = await startOpen();
  await register(harness, null, { softwareId: 'charger/2', scope: 'Monitoring' });
  await harness.restart();
  const waiting = harness.run.appliances.get('wallbox');
  expect(waiting).toMatchObject({ origin: 'registered', softwareId: 'charger/2' });
  expect(harness.connection('wallbox')).toMatchObject({ scope: 'Monitoring', portal: 'home' });
  expect(waiting.waiting).not.toBeNull();
  await harness.run.registrations.approve(waiting, null);
  await harness.restart();
  expect(harness.run.appliances.get('wallbox')).toMatchObject({ waiting: null, clientId: waiting.clientId });
  await harness.time.pass(48 * HOUR);
  expect(names(harness)).toEqual(['wallbox']);
});

test('an appliance that is not approved within a day is removed, also over restarts', async () => {
  const harness = await startOpen(24 * HOUR);
  await register(harness, null);
  await harness.time.pass(HOUR);
  await register(harness, null);
  await harness.reboot(harness.time.wall + 2 * HOUR);
  await harness.time.pass(21 * HOUR - 60_000);
  expect(names(harness)).toEqual(['wallbox', 'wallbox-2']);
  await harness.time.pass(2 * 60_000);
  expect(names(harness)).toEqual(['wallbox-2']);
  await harness.time.pass(HOUR);
  expect(names(harness)).toEqual([]);
  expect(harness.events.filter(({ fields }) => fields['reason'] === 'approval_timeout')).toHaveLength(2);
  await harness.restart();
  expect(names(harness)).toEqual([]);
});

describe('limits on waiting registrations', () => {
  test('at most 300 appliances wait for approval, first come first served, and that does not block invites', async () => {
    const harness = await startOpen();
    const from = (number: number) => register(harness, null, {}, `10.0.${number >> 8}.${number & 255}`);
    for (let number = 0; number < 300; number++) expect(await from(number)).toMatchObject({ kind: 'registered' });
    expect(await from(300)).toEqual({ kind: 'full', retryAfter: 600 });
    expect(names(harness)).toHaveLength(300);
    expect(await register(harness, await invite(harness))).toMatchObject({ kind: 'registered', needsApproval: false });
    await harness.run.registrations.approve(harness.run.appliances.get('wallbox-7'), null);
    expect(await from(301)).toMatchObject({ kind: 'registered' });
  });

  test('at most five appliances of one address wait for approval, also after a restart', async () => {
    const harness = await startOpen();
    for (let round = 0; round < 5; round++) await register(harness, null, {}, 'one');
    await harness.restart();
    harness.run.registrations.setOpenFor(HOUR);
    expect(await register(harness, null, {}, 'one')).toMatchObject({ kind: 'full' });
    expect(await register(harness, null, {}, 'another')).toMatchObject({ kind: 'registered' });
  });
});

test('an invite registers one appliance once, even if many use it at the same time', async () => {
  const harness = await BrokerHarness.start();
  const token = await invite(harness);
  const results = await Promise.all(Array.from({ length: 10 }, () => register(harness, token)));
  expect(results.filter(({ kind }) => kind === 'registered')).toHaveLength(1);
  expect(results.filter(({ kind }) => kind === 'token_refused')).toHaveLength(9);
  expect(harness.run.registrations.isInvite(token)).toBe(false);
  expect(harness.run.appliances.get('wallbox')).toMatchObject({ origin: 'registered', waiting: null });
  await harness.restart();
  expect(await register(harness, token)).toEqual({ kind: 'token_refused' });
});

/** Whether an appliance has the secret of this registration. */
const isGood = (harness: BrokerHarness, registration: RegistrationResult) =>
  registration.kind === 'registered' &&
  isDeepStrictEqual(harness.run.appliances.byId(registration.clientId)?.credentials, {
    kind: 'secret',
    hash: sha256(registration.secret?.reveal() ?? ''),
  });

describe('registration again after a lost answer', () => {
  test('an appliance that registers again with its invite keeps its identity and gets a new secret', async () => {
    const harness = await BrokerHarness.start();
    const token = await invite(harness, { name: 'heater' });
    const first = await register(harness, token, {}, 'heater');
    let last = first;
    for (let again = 0; again < 3; again++) {
      await harness.time.pass(1000);
      const result = await register(harness, token, {}, 'heater');
      expect(result).toMatchObject({ ...first, secret: expect.anything() });
      expect([isGood(harness, last), isGood(harness, result)]).toEqual([false, true]);
      last = result;
    }
    expect(names(harness)).toEqual(['heater']);
    expect(harness.run.registrations.isInvite(token)).toBe(false);
    await harness.restart();
    expect(isGood(harness, last)).toBe(true);
  });

  test.each<[string, (harness: BrokerHarness, id: string) => unknown]>([
    ['it has authenticated', (harness, id) => harness.run.registrations.markAuthenticated(id)],
    [
      'an installer has rotated its secret',
      (harness, id) => harness.run.appliances.rotateSecret(appliance(harness, id)),
    ],
    ['it was removed', (harness, id) => harness.run.appliances.remove(appliance(harness, id))],
    ['ten minutes have passed', (harness) => harness.time.pass(600_001)],
    ['the invite has expired', (harness) => harness.time.pass(120_000)],
  ])('an appliance cannot register again with its invite if %s', async (_, happens) => {
    const harness = await BrokerHarness.start();
    const token = await invite(harness, { ttl: _.includes('invite') ? 100 : 3600 });
    const first = await register(harness, token, {}, 'heater');
    await happens(harness, first.kind === 'registered' ? first.clientId : '');
    await harness.time.pass(1);
    expect(await register(harness, token, {}, 'heater')).toEqual({ kind: 'token_refused' });
  });

  test.each<[string, (harness: BrokerHarness, appliance: Appliance) => Promise<unknown>]>([
    ['an installer rotates its secret', (harness, appliance) => harness.run.appliances.rotateSecret(appliance)],
    ['it is removed', (harness, appliance) => harness.run.appliances.remove(appliance)],
    [
      'it proves who it is',
      async (harness, { id }) => {
        await harness.run.appliances.update(id, (current) => current);
        harness.run.registrations.markAuthenticated(id);
      },
    ],
  ])('an appliance gets no new secret if %s before the new one is saved', async (what, happens) => {
    // The order of the two writes must not be random here.
    const harness = await BrokerHarness.start({ writeTimes: [0, 0] });
    const token = await invite(harness);
    const first = await register(harness, token, {}, 'heater');
    const gate = harness.holdWrites('registry.save');
    const happened = happens(harness, harness.run.appliances.get('wallbox'));
    const again = register(harness, token, {}, 'heater');
    gate.resolve();
    await happened;
    expect(await again).toEqual({ kind: 'token_refused' });
    expect(isGood(harness, first)).toBe(what.includes('proves'));
    expect(await register(harness, token, {}, 'heater')).toEqual({ kind: 'token_refused' });
  });

  test('a registration again is refused if it is simultaneous, from another device or with other metadata', async () => {
    const harness = await BrokerHarness.start();
    const token = await invite(harness);
    const [first, ...others] = await Promise.all([1, 2, 3].map(() => register(harness, token, {}, 'heater')));
    await harness.time.pass(1000);
    others.push(await register(harness, token, {}, 'another'));
    others.push(await register(harness, token, { clientName: 'Another' }, 'heater'));
    expect(new Set(others.map(({ kind }) => kind))).toEqual(new Set(['token_refused']));
    expect(first && isGood(harness, first)).toBe(true);
  });
});

test('an invite survives a restart, and expires also across reboots', async () => {
  const harness = await BrokerHarness.start();
  const [first, second] = [await invite(harness), await invite(harness)];
  await harness.reboot(harness.time.wall + 0.5 * HOUR);
  expect(harness.run.registrations.isInvite(first)).toBe(true);
  expect(await register(harness, first)).toMatchObject({ kind: 'registered' });
  await harness.reboot(harness.time.wall + 0.5 * HOUR);
  expect(harness.run.registrations.isInvite(second)).toBe(false);
  expect(await register(harness, second)).toEqual({ kind: 'token_refused' });
});

test('the name, scope and portal of an invite override what the appliance registers', async () => {
  const harness = await BrokerHarness.start();
  const fixed = await invite(harness, { name: 'garage', scope: 'RemoteControl', portal: 'other' });
  const registered = await register(harness, fixed, { clientName: 'Something', scope: 'Everything' });
  expect(registered).toMatchObject({ name: 'garage', scope: 'RemoteControl' });
  expect(harness.connection('garage')).toMatchObject({ scope: 'RemoteControl', portal: 'other' });
  const free = await register(harness, await invite(harness), { clientName: 'Garage', scope: 'Monitoring' });
  expect(free).toMatchObject({ name: 'garage-2', scope: 'Monitoring' });
});

test('an appliance that waits for approval gives up its name to an added appliance or an invite', async () => {
  const harness = await startOpen();
  await register(harness, null, { clientName: 'Battery' });
  const waitingId = harness.run.appliances.get('battery').clientId;
  const isNow = (name: string) => expect(harness.run.appliances.byId(waitingId)?.name).toBe(name);
  await harness.addAppliance('battery');
  isNow('battery-2');
  expect(harness.run.appliances.get('battery-2').title).toBe('Battery 2');
  const token = await invite(harness, { name: 'battery-2' });
  isNow('battery-2-2');
  expect(await register(harness, token)).toMatchObject({ kind: 'registered', name: 'battery-2' });
  // An approved appliance keeps its name.
  await harness.run.registrations.approve(harness.run.appliances.get('battery-2-2'), comparisonCode(waitingId));
  await expect(harness.addAppliance('battery-2-2')).rejects.toMatchObject({ code: 'appliance_exists' });
  await harness.restart();
  expect(names(harness)).toEqual(['battery', 'battery-2', 'battery-2-2']);
  isNow('battery-2-2');
});

test("an appliance that registers under an approved appliance's name gets another name", async () => {
  const harness = await startOpen();
  await register(harness, null, { clientName: 'Battery' });
  const approved = await harness.run.registrations.approve(harness.run.appliances.get('battery'), null);
  expect(await register(harness, null, { clientName: ' battery! ' })).toMatchObject({
    name: 'battery-2',
    needsApproval: true,
  });
  expect(harness.run.appliances.get('battery')).toEqual(approved);
});

test('an invite reserves its name, and stays valid when an installer has given the name to another appliance', async () => {
  const harness = await BrokerHarness.start();
  const token = await invite(harness, { name: 'wallbox' });
  expect(await register(harness, await invite(harness))).toMatchObject({ name: 'wallbox-2' });
  await harness.addAppliance('wallbox');
  expect(await register(harness, token)).toMatchObject({
    kind: 'invalid',
    description: expect.stringContaining('this hub already has an appliance wallbox'),
  });
  await harness.run.appliances.remove(harness.run.appliances.get('wallbox'));
  expect(await register(harness, token)).toMatchObject({ kind: 'registered', name: 'wallbox' });
});

test.each<[Partial<InviteRequest>, string]>([
  [{ name: 'heater' }, 'appliance_exists'],
  [{ name: 'a\nb' }, 'name_invalid'],
  [{ scope: 'ä' }, 'scope_invalid'],
  [{ portal: 'nowhere' }, 'portal_unknown'],
])('an invite with %o is refused: %s', async (request, code) => {
  const harness = await BrokerHarness.start();
  await harness.addAppliance('heater');
  await expect(invite(harness, request)).rejects.toMatchObject({ code });
  expect(await harness.run.store.invites.all()).toEqual([]);
});

test('the hub has at most 100 open invites and drops expired ones', async () => {
  const harness = await BrokerHarness.start();
  await invite(harness, { ttl: 60 });
  for (let made = 1; made < 100; made++) await invite(harness);
  await expect(invite(harness)).rejects.toMatchObject({ code: 'not_allowed' });
  await harness.time.pass(60_000);
  await invite(harness);
  expect(await harness.run.store.invites.all()).toHaveLength(100);
});

test('the store contains neither invite tokens nor appliance secrets in plain text', async () => {
  const harness = await BrokerHarness.start();
  const token = await invite(harness);
  expect(JSON.stringify(await harness.run.store.invites.all())).not.toContain(token);
  const registered = await register(harness, token);
  const secret = registered.kind === 'registered' ? registered.secret?.reveal() : undefined;
  expect(secret).toHaveLength(43);
  expect(JSON.stringify(await harness.run.store.registry.appliances())).not.toContain(secret);
});

test('an appliance that registers with its own keys gets no secret', async () => {
  const harness = await BrokerHarness.start();
  const keys = [{ kty: 'OKP', crv: 'Ed25519', x: 'x' }];
  expect(await register(harness, await invite(harness), { keys })).toMatchObject({ kind: 'registered', secret: null });
  expect(harness.run.appliances.get('wallbox').credentials).toEqual({ kind: 'keys', keys });
});

test('an invite stays valid if its registration cannot be saved', async () => {
  const harness = await BrokerHarness.start();
  const token = await invite(harness);
  harness.failingWrites.add('registry.save');
  await expect(register(harness, token)).rejects.toMatchObject({ code: 'store_unwritable' });
  harness.failingWrites.clear();
  expect(await register(harness, token)).toMatchObject({ kind: 'registered', name: 'wallbox' });
});
