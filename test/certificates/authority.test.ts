import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ReferenceClock } from '../../src/broker/time/reference-clock.ts';
import { Scheduler } from '../../src/broker/time/scheduler.ts';
import { HubAuthority } from '../../src/certificates/authority.ts';
import { CaRotation } from '../../src/certificates/ca-rotation.ts';
import { permittedNames } from '../../src/certificates/permitted-names.ts';
import { createLog } from '../../src/system/log.ts';
import { type Authority, spkiFingerprint } from '../../src/system/x509/certificates.ts';
import { createAuthority } from '../../src/system/x509/issuing.ts';
import { FakeTime } from '../support/fake-time.ts';
import { hubAuthority, memorySettings } from '../support/hub-authority.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const PERMITTED = permittedNames(['4f2a.local', 'pi'], ['192.168.1.20']);
const TRUE_TIME = Date.UTC(2027, 4, 6);

let first: Authority;
let other: Authority;
let settings: Map<string, string>;
let time: FakeTime;

beforeAll(async () => {
  first = await createAuthority('Latchkey hub', PERMITTED);
  other = await createAuthority('Latchkey hub', PERMITTED);
});

beforeEach(() => {
  settings = new Map();
  time = new FakeTime();
});

const load = () => HubAuthority.load({ settings: memorySettings(settings) }, () => PERMITTED);

/** A hub's CA and everything that ends its rotation. @param options.confirmedTime the time that a portal has confirmed */
async function startRotation(options: { confirmedTime?: number; ca?: HubAuthority; hasOwnCertificate?: boolean } = {}) {
  const log = createLog('silent');
  const ca = options.ca ?? (await hubAuthority(first, settings));
  const portalClock = new ReferenceClock({ clock: time, log });
  if (options.confirmedTime !== undefined) portalClock.recordPortalTime('home', options.confirmedTime);
  let renewals = 0;
  const rotation = new CaRotation({
    environment: { clock: time, log },
    scheduler: new Scheduler({ clock: time, timers: time }),
    portalClock,
    ca,
    hasCustomCertificate: options.hasOwnCertificate ?? false,
    anchor: () => ({ certificate: ca.authority.certificate, fingerprint: ca.fingerprint }),
    permittedNames: () => PERMITTED,
    reissueLeaf: async () => void renewals++,
    onRotated: () => undefined,
  });
  return { ca, rotation, portalClock, renewals: () => renewals };
}

describe('old CA after a rotation', () => {
  it('the hub serves the old CA until its time ends by the confirmed clock', async () => {
    const { ca, rotation, renewals } = await startRotation({ confirmedTime: TRUE_TIME });
    const { old } = await rotation.rotate(3600);
    expect(old).toEqual({
      ...first,
      key: undefined,
      fingerprint: spkiFingerprint(first.certificate),
      until: '2027-05-06T01:00:00Z',
    });
    await time.pass(HOUR - 2000);
    expect(ca.old?.fingerprint).toBe(spkiFingerprint(first.certificate));
    await time.pass(4000);
    expect(ca.old).toBeNull();
    expect(renewals()).toBe(2);
    expect((await load()).old).toBeNull();
    expect(rotation.report()).not.toHaveProperty('old');
  });

  it('an unconfirmed clock does not end the old CA, however far it jumps', async () => {
    const { ca, rotation, portalClock } = await startRotation();
    expect((await rotation.rotate(2 * 3600)).old?.until).toBeNull();
    time.wall += 4000 * DAY;
    await time.pass(HOUR);
    expect(ca.old).not.toBeNull();
    portalClock.recordPortalTime('home', TRUE_TIME);
    await expect.poll(() => ca.old?.servedUntil).toBe(TRUE_TIME + HOUR);
    await time.pass(HOUR + 60_000);
    expect(ca.old).toBeNull();
  });

  it('the old CA is served for its full time if the clock is confirmed only after a restart', async () => {
    const { rotation } = await startRotation();
    await rotation.rotate(30 * 86_400);
    time.boot = 'boot-2';
    time.uptime = 7;
    const { ca } = await startRotation({ ca: await load(), confirmedTime: TRUE_TIME });
    await time.pass(61_000);
    expect(ca.old?.servedUntil).toBe(TRUE_TIME + 61_000 + 30 * DAY - 1000);
  });

  it('an old CA that expired while the hub was off ends once the clock is confirmed', async () => {
    const { rotation } = await startRotation({ confirmedTime: TRUE_TIME });
    await rotation.rotate(3600);
    time.boot = 'boot-2';
    time.wall = 0;
    const { ca, portalClock } = await startRotation({ ca: await load() });
    await time.pass(2 * HOUR);
    expect(ca.old).not.toBeNull();
    portalClock.recordPortalTime('home', TRUE_TIME + 3 * DAY);
    await expect.poll(() => ca.old).toBeNull();
  });

  it('the old CA ends after a restart only if the last two dates of the portal agree about it', async () => {
    const { rotation } = await startRotation({ confirmedTime: TRUE_TIME });
    await rotation.rotate(30 * 86_400);
    time.boot = 'boot-2';
    time.uptime = 7;
    const { ca, portalClock } = await startRotation({ ca: await load(), confirmedTime: TRUE_TIME + DAY });
    portalClock.recordPortalTime('home', TRUE_TIME + 365 * DAY);
    await time.pass(61_000);
    expect(ca.old).not.toBeNull();
    portalClock.recordPortalTime('home', TRUE_TIME + 365 * DAY + 61_000);
    await time.pass(61_000);
    expect(ca.old).toBeNull();
  });

  it('the serving time of an old CA can be changed, and ended at once', async () => {
    const { ca, rotation } = await startRotation({ confirmedTime: TRUE_TIME });
    await expect(rotation.setOldServingTime(0)).rejects.toMatchObject({ code: 'not_allowed' });
    await rotation.rotate(86_400);
    expect((await rotation.setOldServingTime(2 * 86_400)).old?.until).toBe('2027-05-08T00:00:00Z');
    await rotation.setOldServingTime(0);
    expect([ca.old, (await load()).old]).toEqual([null, null]);
  });

  it.each([-1, 365 * 86_400 + 1])('a rotation that keeps the old CA for %d s is refused', async (keep) => {
    const { ca, rotation } = await startRotation();
    await expect(rotation.rotate(keep)).rejects.toThrow('0 to 31536000 seconds (365 d)');
    expect(ca.fingerprint).toBe(spkiFingerprint(first.certificate));
  });
});

describe('rotation of the CA', () => {
  it('the new and the old CA with its cross-certificate are complete after a restart', async () => {
    const { ca, rotation } = await startRotation();
    await rotation.rotate(60);
    const again = await load();
    expect([again.authority, again.old]).toEqual([ca.authority, ca.old]);
    expect([...settings.values()].join()).not.toContain(first.key);
  });

  it('the CA stays the same if the store cannot save the rotation', async () => {
    const full = { ...memorySettings(settings), save: () => Promise.reject(new Error('full')) };
    await hubAuthority(first, settings);
    const { rotation, ca } = await startRotation({ ca: await HubAuthority.load({ settings: full }, () => PERMITTED) });
    const before = new Map(settings);
    await expect(rotation.rotate(60)).rejects.toThrow('full');
    expect([ca.authority, ca.old]).toEqual([first, null]);
    expect(settings).toEqual(before);
  });

  it('the CA can be rotated after a write of it that failed, but is in the store all the same', async () => {
    const store = memorySettings(settings);
    let fails = true;
    const torn = {
      ...store,
      async save(values: Readonly<Record<string, string>>) {
        await store.save(values);
        if (fails) throw new Error('no answer');
      },
    };
    await hubAuthority(first, settings);
    const { rotation, ca } = await startRotation({ ca: await HubAuthority.load({ settings: torn }, () => PERMITTED) });
    await expect(rotation.rotate(60)).rejects.toThrow('no answer');
    fails = false;
    await rotation.rotate(60);
    expect((await load()).authority).toEqual(ca.authority);
  });

  it('only one of two simultaneous rotations of the CA succeeds', async () => {
    const { ca, rotation } = await startRotation();
    const [one, two] = await Promise.allSettled([rotation.rotate(60), rotation.rotate(60)]);
    expect([one.status, two.status]).toEqual(['fulfilled', 'rejected']);
    expect(ca.old?.fingerprint).toBe(spkiFingerprint(first.certificate));
  });

  it("the CA cannot be rotated while the hub serves the owner's certificate", async () => {
    const { ca, rotation } = await startRotation({ hasOwnCertificate: true });
    await expect(rotation.rotate(60)).rejects.toThrow('lan.certificate_file');
    await expect(rotation.setOldServingTime(0)).rejects.toThrow('lan.certificate_file');
    expect(ca.authority).toEqual(first);
  });
});

describe('CA in the store', () => {
  it('an old CA in the store that belongs to another rotation is ignored', async () => {
    const { rotation } = await startRotation();
    await rotation.rotate(60);
    settings.set('ca_key', first.key).set('ca_certificate', first.certificate);
    expect((await load()).old).toBeNull();
  });

  it.each(['', '{', '{"for":1}', '[]'])('a CA in the store is used alone if the old one is %j', async (text) => {
    await hubAuthority(first, settings);
    settings.set('ca_old', text);
    const { authority, old } = await load();
    expect([authority, old]).toEqual([first, null]);
  });

  it('the hub creates a new CA if the stored key and certificate do not match', async () => {
    await hubAuthority(first, settings);
    settings.set('ca_key', other.key);
    const { authority } = await load();
    expect([first.certificate, other.certificate]).not.toContain(authority.certificate);
    expect((await load()).authority).toEqual(authority);
  });
});
