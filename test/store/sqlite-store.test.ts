import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { linksOf } from '../../src/core/pairings/pairing.ts';
import type { DeviceLink, PolledLink, RedirectLink } from '../../src/core/portals/login-link.ts';
import { Secret } from '../../src/core/secret.ts';
import { instantAt, SAMPLE_LINK, sampleGrant, samplePairing } from '../core/samples.ts';
import { memoryStateFolder } from '../support/state-folder.ts';
import { addAppliance, HEATER, open, readFilesAsText, removeAppliance, WALLBOX } from './test-store.ts';

const first = sampleGrant({ connection: WALLBOX.id, generation: 1 });
const attemptAt = (uptime: number) => ({ token: 'hash-of-the-refresh-token', at: instantAt(uptime) });
const DEVICE = {
  appliance: '11111111-1111-4111-8111-111111111111',
  codeHash: 'hash-of-the-device-code',
  userCode: 'WDJB-MJHT',
};
const REDIRECT_LINK: RedirectLink = {
  ...{
    kind: 'redirect',
    authorizeUrl: 'https://cloud.example/authorize',
    redirect: 'http://192.168.1.7:8480/callback',
  },
  ...{ state: 'the-state-of-the-login', verifier: new Secret('the-verifier') },
  ...{ issuer: 'https://cloud.example', requiresIssuer: true },
};
const DEVICE_LINK: DeviceLink = {
  ...{ kind: 'device', authorizeUrl: 'https://cloud.example/device', redirect: null, userCode: 'ABCD-EFGH' },
  ...{ containsUserCode: false, deviceCode: new Secret('the-device-code'), verifier: new Secret('the-verifier') },
  ...{ interval: 5000, begun: instantAt(0), lifetime: 300_000 },
};
const OTHER_LINK = { ...SAMPLE_LINK, codeUrl: `${SAMPLE_LINK.codeUrl}-of-earlier` };
const next = (generation: number, refreshToken = `refresh-token-${generation}`) =>
  sampleGrant({ connection: WALLBOX.id, generation, refreshToken: new Secret(refreshToken) });

async function withWallbox(path: string) {
  const store = open(path);
  await addAppliance(store, WALLBOX);
  return store;
}

async function refreshToken(store: ReturnType<typeof open>): Promise<string | undefined> {
  return (await store.grant(WALLBOX.id))?.grant.refreshToken?.reveal();
}

describe('reading back after a restart', () => {
  test('a setting is read back after the store is reopened', async () => {
    using folder = memoryStateFolder();
    {
      using store = open(folder.path);
      await store.saveSetting('hub_id', 'one');
      await store.saveSetting('hub_id', 'two');
      expect(await store.setting('hub_id')).toBe('two');
    }
    using store = open(folder.path);
    expect(await store.setting('hub_id')).toBe('two');
    expect(await store.setting('another')).toBeNull();
  });

  test.each([
    ['whole', {}],
    ['without scope and portal time', { scope: null, portalTime: null }],
    ['in doubt', { doubt: { lostAt: instantAt(5), sends: 2 } }],
    ['refused', { refused: instantAt(6) }],
    ['with a rejected access token', { accessTokenRejectedAt: instantAt(7) }],
    ['that is misconfigured', { misconfigured: instantAt(8) }],
    ['with a requested scope', { requestedScope: 'Monitoring' }],
    ['with an account', { account: 'somebody@portal.example' }],
    ['with an ID token', { idToken: new Secret('the-id-token') }],
    ['of a known login', { login: { at: instantAt(1), portalTime: 7, refreshTokenLifetime: 9 } }],
    ['of a login without times', { login: { at: instantAt(1), portalTime: null, refreshTokenLifetime: null } }],
    ['whose refresh token ends', { refreshTokenLifetime: 604_800_000 }],
    ['without a refresh token', { refreshToken: null }],
    ['with strange tokens', { accessToken: new Secret('ü"\\\u0000😀'), refreshToken: new Secret('x'.repeat(50_000)) }],
  ])('a grant %s is read back after the store is reopened', async (_, changes) => {
    using folder = memoryStateFolder();
    const grant = { ...first, ...changes };
    {
      using store = await withWallbox(folder.path);
      expect(await store.replaceGrant(grant)).toBe(true);
      expect(await store.beginAttempt(grant, attemptAt(9))).toMatchObject({ kind: 'begun' });
    }
    using store = open(folder.path);
    const [stored] = await store.grants();
    expect(stored).toEqual({ grant, attempt: attemptAt(9) });
    expect(stored?.grant.accessToken.reveal()).toBe(grant.accessToken.reveal());
    expect(stored?.grant.refreshToken?.reveal()).toBe(grant.refreshToken?.reveal());
    expect(stored?.grant.idToken?.reveal()).toBe(grant.idToken?.reveal());
    expect(await store.grant(WALLBOX.id)).toEqual(stored);
  });

  test.each([
    samplePairing({ kind: 'asking' }, { scope: null }),
    samplePairing({ kind: 'waiting', link: SAMPLE_LINK }, { spentCodes: ['a', 'b'], lastFailure: 'code_refused' }),
    samplePairing({ kind: 'exchanging', link: SAMPLE_LINK, since: instantAt(4) }, { spentCodes: ['c'] }),
    samplePairing({ kind: 'waiting', link: REDIRECT_LINK }, { answeredStates: ['an-earlier-state'] }),
    samplePairing({ kind: 'waiting', link: DEVICE_LINK, earlier: [{ ...REDIRECT_LINK, verifier: null }] }),
    samplePairing({ kind: 'asking' }, { device: DEVICE }),
    samplePairing({ kind: 'waiting', link: SAMPLE_LINK, earlier: [OTHER_LINK, SAMPLE_LINK] }, { device: DEVICE }),
    samplePairing(
      { kind: 'exchanging', link: SAMPLE_LINK, earlier: [OTHER_LINK], since: instantAt(4) },
      { device: DEVICE },
    ),
    samplePairing({ kind: 'ended', result: { kind: 'paired', scope: null } }, { device: DEVICE }),
    samplePairing({ kind: 'ended', result: { kind: 'paired', scope: null } }),
    samplePairing({ kind: 'ended', result: { kind: 'failed', reason: 'answer_lost' } }, { lastFailure: 'answer_lost' }),
  ])('a pairing in step $step.kind is read back after the store is reopened', async (pairing) => {
    using folder = memoryStateFolder();
    {
      using store = await withWallbox(folder.path);
      await store.savePairing(samplePairing({ kind: 'asking' }));
      await store.savePairing(pairing);
    }
    using store = open(folder.path);
    expect(await store.pairings()).toEqual([pairing]);
  });

  test('a login through a link of the first version, which had no kind, is read back as a polled one', async () => {
    using folder = memoryStateFolder();
    using store = await withWallbox(folder.path);
    const { kind: _, ...link } = SAMPLE_LINK;
    const pairing = samplePairing({ kind: 'waiting', link: SAMPLE_LINK });
    await store.savePairing({ ...pairing, step: { kind: 'waiting', link: link as PolledLink } });
    expect(await store.pairings()).toEqual([pairing]);
  });

  test('the secrets of a login at an OAuth 2.0 portal are read back, and are in no file in the clear', async () => {
    using folder = memoryStateFolder();
    {
      using store = await withWallbox(folder.path);
      await store.savePairing(samplePairing({ kind: 'waiting', link: DEVICE_LINK, earlier: [REDIRECT_LINK] }));
    }
    const files = readFilesAsText(folder.path);
    for (const secret of ['the-verifier', 'the-device-code', 'the-state-of-the-login'])
      expect(files).not.toContain(secret);
    using store = open(folder.path);
    const [stored] = await store.pairings();
    const [device, redirect] = stored === undefined ? [] : linksOf(stored.step);
    expect(device?.kind === 'device' && device.deviceCode.reveal()).toBe('the-device-code');
    expect(redirect?.kind === 'redirect' && redirect.verifier?.reveal()).toBe('the-verifier');
  });
});

describe('generation check of grant writes', () => {
  test('a write of a grant changes nothing if another generation is stored', async () => {
    using folder = memoryStateFolder();
    using store = await withWallbox(folder.path);
    expect(await store.replaceGrant(next(2))).toBe(false);
    expect(await store.grants()).toEqual([]);
    await store.replaceGrant(first);
    await store.replaceGrant(next(2));
    const before = await store.grants();
    expect(await store.replaceGrant(first)).toBe(false);
    expect(await store.replaceGrant(next(2, 'late'))).toBe(false);
    expect(await store.replaceGrant(next(4))).toBe(false);
    expect(await store.beginAttempt(first, attemptAt(9))).toEqual({ kind: 'superseded' });
    expect(await store.endAttempt({ ...first, refused: instantAt(9) })).toBe(false);
    expect(await store.markTokenRejected(WALLBOX.id, 1, instantAt(9))).toBe(false);
    expect(await store.forgetGrant(WALLBOX.id, 1)).toBe(false);
    expect(await store.grants()).toEqual(before);
    expect(await store.generation(WALLBOX.id)).toBe(2);
  });

  test('new tokens end the attempt, and so does a failure, which is stored with its meaning', async () => {
    using folder = memoryStateFolder();
    using store = await withWallbox(folder.path);
    await store.replaceGrant(first);
    await store.beginAttempt(first, attemptAt(9));
    const doubt = { lostAt: instantAt(9), sends: 1 };
    const meaning = { doubt, misconfigured: instantAt(9) };
    expect(await store.endAttempt({ ...first, ...meaning })).toBe(true);
    expect(await store.grant(WALLBOX.id)).toMatchObject({ attempt: null, grant: { ...meaning, refused: null } });
    await store.beginAttempt({ ...first, doubt: { ...doubt, sends: 2 } }, attemptAt(10));
    expect(await store.grant(WALLBOX.id)).toMatchObject({ attempt: attemptAt(10), grant: { doubt: { sends: 2 } } });
    expect(await store.replaceGrant(next(2))).toBe(true);
    expect(await store.grant(WALLBOX.id)).toMatchObject({ attempt: null, grant: { doubt: null, generation: 2 } });
  });

  test('a rejected access token stays rejected until another one replaces it', async () => {
    using folder = memoryStateFolder();
    using store = await withWallbox(folder.path);
    await store.replaceGrant(first);
    expect(await store.markTokenRejected(WALLBOX.id, 1, instantAt(9))).toBe(true);
    await store.beginAttempt(first, attemptAt(10));
    await store.endAttempt(first);
    expect(await store.grants()).toEqual([{ grant: { ...first, accessTokenRejectedAt: instantAt(9) }, attempt: null }]);
    expect(await store.replaceGrant({ ...next(2), accessTokenRejectedAt: instantAt(9) })).toBe(true);
    expect(await store.grant(WALLBOX.id)).toMatchObject({ grant: { accessTokenRejectedAt: instantAt(9) } });
    const ended = samplePairing({ kind: 'ended', result: { kind: 'paired', scope: null } });
    expect(await store.completePairing(ended, next(3))).toBe(true);
    expect(await store.grant(WALLBOX.id)).toMatchObject({ grant: { accessTokenRejectedAt: null } });
    await store.markTokenRejected(WALLBOX.id, 3, instantAt(9));
    await store.forgetGrant(WALLBOX.id, 3);
    expect((await store.readAllRows()).grants.get(WALLBOX.id)).toMatchObject({ generation: 4, distrusted: null });
    await store.replaceGrant(next(5));
    expect(await store.grant(WALLBOX.id)).toMatchObject({ grant: { generation: 5, accessTokenRejectedAt: null } });
  });

  test('a deleted grant leaves its generation, so no late response can bring it back', async () => {
    using folder = memoryStateFolder();
    using store = await withWallbox(folder.path);
    await store.replaceGrant(first);
    expect(await store.forgetGrant(WALLBOX.id, 1)).toBe(true);
    expect(await store.grants()).toEqual([]);
    expect(await store.grant(WALLBOX.id)).toBeNull();
    expect(await store.generation(WALLBOX.id)).toBe(2);
    expect(await store.replaceGrant(next(2))).toBe(false);
    expect(await store.beginAttempt(next(2), attemptAt(9))).toEqual({ kind: 'superseded' });
    expect(await store.endAttempt(next(2))).toBe(false);
    expect(await store.markTokenRejected(WALLBOX.id, 2, instantAt(9))).toBe(false);
    expect(await store.forgetGrant(WALLBOX.id, 2)).toBe(false);
    expect(await store.replaceGrant(next(3, 'paired anew'))).toBe(true);
    expect(await store.replaceGrant(next(2, 'late'))).toBe(false);
    expect(await refreshToken(store)).toBe('paired anew');
  });

  test('a grant without its appliance cannot be written', async () => {
    using folder = memoryStateFolder();
    using store = open(folder.path);
    await expect(store.replaceGrant(first)).rejects.toMatchObject({ code: 'store_unwritable' });
    expect(await store.generation(WALLBOX.id)).toBe(0);
  });
});

describe('end of a pairing with its grant', () => {
  const open1 = samplePairing({ kind: 'waiting', link: SAMPLE_LINK });
  const ended = samplePairing({ kind: 'ended', result: { kind: 'paired', scope: null } });

  test('the end of a pairing and its grant are written together', async () => {
    using folder = memoryStateFolder();
    using store = await withWallbox(folder.path);
    await store.savePairing(open1);
    expect(await store.completePairing(ended, first)).toBe(true);
    expect(await store.pairings()).toEqual([ended]);
    expect(await store.grants()).toEqual([{ grant: first, attempt: null }]);
  });

  test('neither the end of a pairing nor its grant is written if one of them fails', async () => {
    using folder = memoryStateFolder();
    using store = await withWallbox(folder.path);
    await store.replaceGrant(first);
    await store.replaceGrant(next(2));
    await store.savePairing(open1);
    expect(await store.completePairing(ended, next(2, 'late'))).toBe(false);
    expect(await store.pairings()).toEqual([open1]);
    expect(await refreshToken(store)).toBe('refresh-token-2');
    const ofNobody = { ...ended, id: 'another', connection: HEATER.id };
    await expect(store.completePairing(ofNobody, next(3))).rejects.toMatchObject({ code: 'store_unwritable' });
    expect(await refreshToken(store)).toBe('refresh-token-2');
  });
});

test('the removal of an appliance deletes its grant and pairings, and no others', async () => {
  using folder = memoryStateFolder();
  using store = await withWallbox(folder.path);
  await addAppliance(store, HEATER);
  const others = { ...first, connection: HEATER.id };
  const othersPairing = { ...samplePairing({ kind: 'asking' }), id: 'others', connection: HEATER.id };
  await store.replaceGrant(first);
  await store.replaceGrant(others);
  await store.savePairing(samplePairing({ kind: 'waiting', link: SAMPLE_LINK }));
  await store.savePairing(othersPairing);
  await removeAppliance(store, WALLBOX.id);
  expect(await store.appliances()).toEqual([HEATER]);
  expect(await store.grants()).toEqual([{ grant: others, attempt: null }]);
  expect(await store.pairings()).toEqual([othersPairing]);
  expect(await store.generation(WALLBOX.id)).toBe(0);
});

test('the store keeps all open pairings and the last five that ended', async () => {
  using folder = memoryStateFolder();
  using store = await withWallbox(folder.path);
  const open2 = { ...samplePairing({ kind: 'waiting', link: SAMPLE_LINK }), id: 'open' };
  await store.savePairing(open2);
  for (let i = 0; i < 50; i += 1) {
    const ended = samplePairing({ kind: 'ended', result: { kind: 'failed', reason: 'expired' } });
    await store.savePairing({ ...ended, id: `ended-${i}` });
  }
  expect((await store.pairings()).map(({ id }) => id)).toEqual([
    'open',
    ...['ended-45', 'ended-46', 'ended-47', 'ended-48', 'ended-49'],
  ]);
});

test('the files of the store contain no secret in plain text, neither in the database nor in the WAL', async () => {
  using folder = memoryStateFolder();
  {
    using store = await withWallbox(folder.path);
    await store.saveSetting('setup_code', 'the-setup-code');
    await store.replaceGrant(first);
    await store.savePairing(
      samplePairing({ kind: 'waiting', link: SAMPLE_LINK, earlier: [OTHER_LINK] }, { device: DEVICE }),
    );
    expect(existsSync(join(folder.path, 'latchkey.db-wal'))).toBe(true);
    expect(readFilesAsText(folder.path)).toContain('wallbox');
    expect(readFilesAsText(folder.path)).not.toMatch(
      /the-(setup-code|access-token|refresh-token|nonce|state)|sso\/authorize|MJHT/,
    );
  }
  expect(readFilesAsText(folder.path)).toContain('wallbox');
  expect(readFilesAsText(folder.path)).not.toMatch(
    /the-(setup-code|access-token|refresh-token|nonce|state)|sso\/authorize|MJHT/,
  );
});
