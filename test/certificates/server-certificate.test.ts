import { X509Certificate } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { ReferenceClock } from '../../src/broker/time/reference-clock.ts';
import { Scheduler } from '../../src/broker/time/scheduler.ts';
import type { ServedCertificate } from '../../src/certificates/custom-certificate.ts';
import { HubLeaf } from '../../src/certificates/leaf.ts';
import { createLog } from '../../src/system/log.ts';
import { type Authority, spkiFingerprint } from '../../src/system/x509/certificates.ts';
import { createAuthority } from '../../src/system/x509/issuing.ts';
import { FakeTime } from '../support/fake-time.ts';
import { hubAuthority, memorySettings } from '../support/hub-authority.ts';

const DAY = 86_400_000;

let authority: Authority;

beforeAll(async () => {
  authority = await createAuthority();
});

async function open(changes: { wall?: number; settings?: Map<string, string>; issuer?: Authority } = {}) {
  const time = new FakeTime();
  time.wall = changes.wall ?? time.wall;
  const log = createLog('silent');
  const scheduler = new Scheduler({ clock: time, timers: time });
  const portalClock = new ReferenceClock({ clock: time, log });
  const addresses = ['192.168.1.20', 'fd00::20', 'fe80::1%eth0'];
  const shown: ServedCertificate['pem'][] = [];
  const { settings = new Map<string, string>(), issuer = authority } = changes;
  const leaf = await HubLeaf.open({
    environment: { clock: time, log },
    scheduler,
    portalClock,
    identity: { id: 'latchkey-1', ca: await hubAuthority(issuer, settings) },
    store: { settings: memorySettings(settings) },
    names: ['latchkey-1.local', 'pi', 'localhost'],
    addresses: () => addresses,
    custom: null,
  });
  leaf.keepCurrent({ renewLeaf: (pem) => void shown.push(pem) });
  return { time, portalClock, addresses, shown, leaf, settings };
}

function certificateOf({ pem }: ServedCertificate): X509Certificate {
  return new X509Certificate(pem.certificate);
}

test("the server certificate covers the hub's names, loopback and every address, and its CA is the pinned one", async () => {
  const { leaf } = await open();
  const certificate = certificateOf(leaf.current);
  for (const name of ['latchkey-1.local', 'pi', 'localhost']) expect(certificate.checkHost(name)).toBe(name);
  for (const address of ['127.0.0.1', '::1', '192.168.1.20', 'fd00::20', 'fe80::1'])
    expect(certificate.checkIP(address)).toBe(address);
  expect(leaf.names).toEqual(['latchkey-1.local', 'pi', 'localhost']);
  expect(leaf.current.anchor).toEqual({
    certificate: authority.certificate,
    fingerprint: spkiFingerprint(authority.certificate),
  });
});

test('the server certificate keeps its addresses while the hub has no network', async () => {
  const { leaf, addresses } = await open();
  const { key } = leaf.current.pem;
  const former = addresses.splice(0);
  await leaf.reissue();
  expect(leaf.current.pem.key).toBe(key);
  addresses.push(...former);
  await leaf.reissue();
  expect(leaf.current.pem.key).toBe(key);
});

test('a server certificate issued by a clock far behind is reissued once the clock is confirmed', async () => {
  const { leaf, portalClock, time, shown } = await open({ wall: Date.UTC(2026, 5, 1) });
  expect(certificateOf(leaf.current).validToDate.getUTCFullYear()).toBe(2036);
  const before = leaf.current;
  await time.pass(30 * DAY);
  expect(leaf.current).toBe(before);
  portalClock.recordPortalTime('home', Date.UTC(2040, 0, 1));
  await expect.poll(() => leaf.current).not.toBe(before);
  expect(shown.at(-1)).toBe(leaf.current.pem);
  expect(leaf.current.notAfter).toBeGreaterThanOrEqual(Date.UTC(2050, 0, 1));
  const renewed = leaf.current;
  await time.pass(DAY);
  expect(leaf.current).toBe(renewed);
});

test('a restart reuses the server certificate unless addresses, CA or expiry require another one', async () => {
  const { leaf, settings, addresses } = await open();
  const { current: before } = leaf;
  expect((await open({ settings })).leaf.current).toEqual(before);

  const again = await open({ settings });
  again.addresses.push('10.0.0.9');
  await again.leaf.reissue();
  expect(again.leaf.current.pem.key).not.toBe(before.pem.key);
  expect(addresses).not.toContain('10.0.0.9');

  const { leaf: former } = await open({ settings });
  expect((await open({ settings, issuer: await createAuthority() })).leaf.current.pem).not.toEqual(former.current.pem);
  const late = await open({ settings, wall: Date.UTC(2040, 0, 1) });
  expect(late.leaf.current.notAfter).toBeGreaterThanOrEqual(Date.UTC(2050, 0, 1));
});

test.each(['{', '{"for":{},"leaf":{}}'])('the stored server certificate %j is replaced by a new one', async (text) => {
  const settings = new Map([['leaf', text]]);
  expect(certificateOf((await open({ settings })).leaf.current).checkHost('pi')).toBe('pi');
  expect(settings.get('leaf')).not.toBe(text);
});

test('the TLS session ticket keys are replaced once a day, also during suspend', async () => {
  const { time, leaf, shown } = await open();
  await time.pass(DAY - 60_000);
  expect(shown).toEqual([]);
  await time.pass(2 * 60_000);
  expect(shown).toEqual([leaf.current.pem]);
  time.suspend(DAY);
  await time.pass(2 * 60_000);
  expect(shown).toHaveLength(2);
});
