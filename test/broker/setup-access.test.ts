import { appendFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type SignInTokens, StoredSetupAccess } from '../../src/broker/access/setup-access.ts';
import { PAGE_SESSIONS_SETTING } from '../../src/core/backup-contents.ts';
import type { ConfirmedTime } from '../../src/core/clock.ts';
import { Failure } from '../../src/core/failure.ts';
import type { LogFields } from '../../src/core/log.ts';
import type { BrowserInfo, BrowserSession } from '../../src/core/setup-access.ts';
import { captureState, restoreState } from '../../src/store/backup/backup.ts';
import { jweSealing, STORE_KEY_BYTES } from '../../src/store/keys/sealing.ts';
import { openStore } from '../../src/store/sqlite/open-store.ts';
import type { SqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { systemRandom } from '../../src/system/random.ts';
import { HOUR } from '../core/samples.ts';
import { FakeTime } from '../support/fake-time.ts';
import { logTo } from '../support/log-to.ts';
import { logFile, rememberSecrets } from '../support/logs.ts';
import { memoryStateFolder } from '../support/state-folder.ts';

const PHONE = '192.168.1.20';
const OTHER_DEVICE = '192.168.1.66';
const WRONG = 'BBBB-BBBB-BBBB-BBBB';

const browserAt = (address: string, browser: string | null = null): BrowserInfo => ({ address, browser });

let time: FakeTime;
let folder: ReturnType<typeof memoryStateFolder>;
let sealing: ReturnType<typeof jweSealing>;
let store: SqliteStore;
let setupAccess: StoredSetupAccess;
let events: { readonly event: string; readonly fields: LogFields }[];
let unwritable: boolean;
let writes: number;
let referenceClock: { confirmed: ConfirmedTime | null };
const log = logFile('setup-access');

beforeEach(async () => {
  time = new FakeTime();
  folder = memoryStateFolder();
  sealing = jweSealing(Buffer.from(systemRandom.token(STORE_KEY_BYTES), 'base64url'));
  events = [];
  unwritable = false;
  writes = 0;
  referenceClock = { confirmed: null };
  store = await open(folder.path);
  setupAccess = await load();
});

afterEach(() => {
  store[Symbol.dispose]();
  folder[Symbol.dispose]();
});

function open(directory: string): Promise<SqliteStore> {
  return openStore(directory, sealing, () => time.wall);
}

/** Loads the setup access from the store, as each run of the hub does. */
async function load(tokens?: SignInTokens, settings = store.settings): Promise<StoredSetupAccess> {
  const recordEvent = (event: string, fields: LogFields = {}) => {
    events.push({ event, fields });
    appendFileSync(log, `${JSON.stringify({ event, ...fields })}\n`);
  };
  const loaded = await StoredSetupAccess.load(
    {
      settings: {
        ...settings,
        async save(values) {
          if (unwritable) throw new Failure('store_unwritable', 'the disk is full');
          writes += 1;
          await settings.save(values);
        },
        async replace(expected, values) {
          if (unwritable) throw new Failure('store_unwritable', 'the disk is full');
          writes += 1;
          return settings.replace(expected, values);
        },
      },
    },
    { clock: time, random: systemRandom, log: logTo(recordEvent), referenceClock },
    tokens,
  );
  rememberSecrets([loaded.code.reveal()]);
  return loaded;
}

/** Stops the hub and starts it again. */
async function restart(): Promise<void> {
  store[Symbol.dispose]();
  store = await open(folder.path);
  setupAccess = await load();
}

function rememberSession(session: BrowserSession): BrowserSession {
  rememberSecrets([session.cookie.reveal(), session.csrfToken]);
  return session;
}

async function signIn(from = PHONE): Promise<BrowserSession> {
  const result = await setupAccess.signIn(setupAccess.code.reveal(), browserAt(from));
  if (result.kind !== 'signed_in') throw new Error(`not signed in: ${result.kind}`);
  return rememberSession(result.session);
}

function issue(): string {
  const token = setupAccess.issueSignInToken().token.reveal();
  rememberSecrets([token]);
  return token;
}

/** NTP has set the clock. */
const confirmTime = () => {
  referenceClock.confirmed = { wall: time.wall, at: time.now() };
};
const isSignedIn = ({ cookie }: BrowserSession) => setupAccess.findSession(cookie.reveal()) !== null;
const eventsNamed = (name: string) => events.filter(({ event }) => event === name);

describe('setup code', () => {
  it('the setup code is created once and never logged', async () => {
    const code = setupAccess.code.reveal();
    await restart();
    expect(setupAccess.code.reveal()).toBe(code);
    expect(JSON.stringify(events)).not.toContain(code);
  });

  it('the setup code is shown to a browser while it is signed in, and not after that', async () => {
    const session = await signIn();
    const show = () => setupAccess.showSetupCode(session.cookie.reveal(), browserAt(PHONE));
    expect((await show())?.reveal()).toBe(setupAccess.code.reveal());
    await setupAccess.signOut(session);
    expect(await show()).toBeNull();
    expect(eventsNamed('setup_code_shown')).toEqual([{ event: 'setup_code_shown', fields: { address: PHONE } }]);
  });

  it('setup access records whether anybody has ever signed in, also after a restart', async () => {
    await restart();
    expect(setupAccess.hadSignIns).toBe(false);
    await setupAccess.signOut(await signIn());
    await restart();
    expect(setupAccess.hadSignIns).toBe(true);
  });

  it('the setup code is accepted in any spelling', async () => {
    const typed = ` ${setupAccess.code.reveal().toLowerCase().replaceAll('-', ' ')} `;
    expect(await setupAccess.signIn(typed, browserAt(PHONE))).toMatchObject({ kind: 'signed_in' });
    expect(await setupAccess.signIn(WRONG, browserAt(PHONE))).toEqual({ kind: 'wrong' });
  });

  it('rotating the setup code ends all sessions and one-time addresses, also after a restart', async () => {
    const before = setupAccess.code.reveal();
    const session = await signIn();
    const token = issue();
    await setupAccess.rotate();
    rememberSecrets([setupAccess.code.reveal()]);
    expect(setupAccess.code.reveal()).not.toBe(before);
    expect(isSignedIn(session)).toBe(false);
    expect(await setupAccess.redeemSignInToken(token, browserAt(PHONE))).toBeNull();
    expect(await setupAccess.signIn(before, browserAt(PHONE))).toEqual({ kind: 'wrong' });
    const later = await signIn();
    await restart();
    expect([isSignedIn(session), isSignedIn(later)]).toEqual([false, true]);
  });

  it('a power cut in the middle of a rotation of the setup code still ends the sessions', async () => {
    const session = await signIn();
    await store.settings.save({ setup_code: 'BCDF-GHJK-LMNP-QRST' });
    await restart();
    expect(isSignedIn(session)).toBe(false);
  });

  it('the setup code and the sessions stay if a rotated code cannot be saved', async () => {
    const before = setupAccess.code.reveal();
    const session = await signIn();
    unwritable = true;
    await expect(setupAccess.rotate()).rejects.toMatchObject({ code: 'store_unwritable' });
    expect([setupAccess.code.reveal(), isSignedIn(session)]).toEqual([before, true]);
  });
});

describe("session of the hub's page", () => {
  it('a session of the page survives a restart, and is written only at its beginning and its end', async () => {
    const before = writes;
    const session = await signIn();
    for (let looks = 0; looks < 50; looks++) expect(isSignedIn(session)).toBe(true);
    expect(writes).toBe(before + 1);
    await restart();
    expect(setupAccess.findSession(session.cookie.reveal())).toMatchObject({ csrfToken: session.csrfToken });
    await setupAccess.signOut(session);
    expect(writes).toBe(before + 2);
    expect(isSignedIn(session)).toBe(false);
    await restart();
    expect(isSignedIn(session)).toBe(false);
  });

  it('the store contains neither the cookie nor the CSRF token of a session in plain text', async () => {
    const session = await signIn();
    const kept = (await store.settings.get(PAGE_SESSIONS_SETTING)) ?? '';
    expect(kept).toContain('hash');
    for (const secret of [session.cookie.reveal(), session.csrfToken, setupAccess.code.reveal()])
      expect(kept).not.toContain(secret);
  });

  it('a session of the page lasts twelve hours, whatever the wall clock does', async () => {
    const session = await signIn();
    time.wall += 100 * HOUR;
    time.skip(12 * HOUR - 1000);
    expect(setupAccess.findSession(session.cookie.reveal())?.lifetime).toBe(1);
    time.skip(1000);
    expect(isSignedIn(session)).toBe(false);
  });

  it('a session of the page ages by the wall clock while the machine is off', async () => {
    const session = await signIn();
    const { wall } = time;
    time.reboot(wall + 11 * HOUR);
    await restart();
    confirmTime();
    expect(isSignedIn(session)).toBe(true);
    time.reboot(wall + 12 * HOUR);
    await restart();
    confirmTime();
    expect(isSignedIn(session)).toBe(false);
  });

  it('a session of the page outlasts a power cut after which the clock is years behind, but not twelve hours of it', async () => {
    const session = await signIn();
    const { wall } = time;
    time.reboot(wall - 14 * 365 * 24 * HOUR);
    await restart();
    expect(isSignedIn(session)).toBe(true);
    time.wall = wall + 2 * HOUR;
    confirmTime();
    expect(isSignedIn(session)).toBe(true);
    time.reboot(wall - 14 * 365 * 24 * HOUR);
    await restart();
    referenceClock.confirmed = null;
    time.skip(12 * HOUR);
    expect(isSignedIn(session)).toBe(false);
  });

  it('a session of the page does not last longer because the clock was years ahead at the sign-in', async () => {
    const { wall } = time;
    time.wall += 14 * 365 * 24 * HOUR;
    const session = await signIn();
    time.reboot(wall + HOUR);
    await restart();
    confirmTime();
    expect(isSignedIn(session)).toBe(false);
  });

  it('the oldest session of the page ends when there are more than twenty', async () => {
    const first = await signIn();
    for (let others = 0; others < 19; others++) await signIn();
    expect(isSignedIn(first)).toBe(true);
    await signIn();
    expect(isSignedIn(first)).toBe(false);
    await restart();
    expect(JSON.parse((await store.settings.get(PAGE_SESSIONS_SETTING)) ?? '{}')).toMatchObject({
      sessions: { length: 20 },
    });
  });

  it('a session of the page begins and ends in memory while the store is unwritable', async () => {
    unwritable = true;
    const session = await signIn();
    expect(isSignedIn(session)).toBe(true);
    await setupAccess.signOut(session);
    expect(isSignedIn(session)).toBe(false);
    expect(eventsNamed('store_unwritable')).not.toEqual([]);
  });

  it.each(['', 'no JSON', '{}', '{"code":1,"sessions":[]}', '[]'])(
    'stored sessions of the form %j are ignored, and sign-in works',
    async (damaged) => {
      await store.settings.save({ [PAGE_SESSIONS_SETTING]: damaged });
      await restart();
      await signIn();
    },
  );

  it('a restored backup contains the setup code but no sessions of the page', async () => {
    const session = await signIn();
    const copy = await captureState(store, time.wall);
    expect(copy.settings.get('setup_code')).toBe(setupAccess.code.reveal());
    expect(copy.settings.has(PAGE_SESSIONS_SETTING)).toBe(false);
    await setupAccess.signOut(session);
    await restoreState(store, copy);
    await restart();
    expect(isSignedIn(session)).toBe(false);
    using another = memoryStateFolder();
    using other = await open(another.path);
    await restoreState(other, copy);
    const elsewhere = await load(undefined, other.settings);
    expect(elsewhere.code.reveal()).toBe(setupAccess.code.reveal());
    expect(elsewhere.findSession(session.cookie.reveal())).toBeNull();
  });
});

describe('signed-in browsers', () => {
  it('signed-in browsers are listed with address, browser and last visit, the current one first', async () => {
    const old = rememberSession(
      (await setupAccess.redeemSignInToken(issue(), browserAt(OTHER_DEVICE, 'Firefox, Linux'))) ?? (await signIn()),
    );
    time.skip(HOUR);
    const own = await signIn();
    const begun = time.wall;
    time.skip(60_000);
    await signIn('192.168.1.21');
    expect(isSignedIn(old)).toBe(true);
    time.skip(60_000);
    const browsers = setupAccess.listBrowsers(own);
    const others = { browser: null, isCurrent: false };
    expect(browsers).toMatchObject([
      { address: PHONE, browser: null, signedInAt: begun, lastSeenAt: null, isCurrent: true },
      { ...others, address: '192.168.1.21' },
      { ...others, address: OTHER_DEVICE, browser: 'Firefox, Linux', signedInAt: begun - HOUR },
    ]);
    expect(browsers[2]?.lastSeenAt).toBe(begun + 60_000);
    expect(JSON.stringify(browsers)).not.toContain(own.cookie.reveal());
  });
});

describe('one-time address', () => {
  it('a one-time address works once and expires after ten minutes', async () => {
    const [used, late] = [issue(), issue()];
    const results = await Promise.all([
      setupAccess.redeemSignInToken(used, browserAt(PHONE)),
      setupAccess.redeemSignInToken(used, browserAt(PHONE)),
      setupAccess.redeemSignInToken(used, browserAt(PHONE)),
    ]);
    const [session, ...others] = results.filter((result) => result !== null);
    expect(others).toEqual([]);
    expect(session !== undefined && isSignedIn(rememberSession(session))).toBe(true);
    time.skip(600_000);
    expect(await setupAccess.redeemSignInToken(late, browserAt(PHONE))).toBeNull();
    expect(await setupAccess.redeemSignInToken('', browserAt(PHONE))).toBeNull();
  });

  it('a one-time address is dropped when five newer ones exist, and at a restart', async () => {
    const tokens = Array.from({ length: 6 }, issue);
    expect(await setupAccess.redeemSignInToken(tokens[0] ?? '', browserAt(PHONE))).toBeNull();
    await restart();
    expect(await setupAccess.redeemSignInToken(tokens[5] ?? '', browserAt(PHONE))).toBeNull();
  });

  it('a one-time address stays valid when the configuration is reloaded', async () => {
    const token = issue();
    setupAccess = await load(setupAccess.signInTokens);
    expect(await setupAccess.redeemSignInToken(token, browserAt(PHONE))).not.toBeNull();
  });
});

describe('limit for wrong setup codes', () => {
  const wrong = (from = OTHER_DEVICE) => setupAccess.signIn(WRONG, browserAt(from));

  it('after ten wrong setup codes an address may try one every six seconds, and meanwhile not even the right one', async () => {
    for (let count = 0; count < 10; count++) expect(await wrong()).toEqual({ kind: 'wrong' });
    const right = () => setupAccess.signIn(setupAccess.code.reveal(), browserAt(OTHER_DEVICE));
    for (let count = 0; count < 3; count++) {
      expect([await wrong(), await right()]).toEqual(Array(2).fill({ kind: 'locked', retryAfter: 6 }));
      time.skip(6000);
      expect(await wrong()).toEqual({ kind: 'wrong' });
    }
    time.skip(6000);
    expect(await right()).toMatchObject({ kind: 'signed_in' });
  });

  it('simultaneous wrong setup codes give no extra tries', async () => {
    const kinds = (await Promise.all(Array.from({ length: 20 }, () => wrong()))).map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'wrong')).toHaveLength(10);
  });

  it('too many wrong setup codes are logged once, with the address and without the codes, and reported for two hours', async () => {
    expect(setupAccess.tooManyWrongCodes()).toBeNull();
    const since = time.wall;
    for (let count = 0; count < 30; count++) await wrong();
    expect(eventsNamed('too_many_wrong_setup_codes')).toEqual([
      { event: 'too_many_wrong_setup_codes', fields: { address: OTHER_DEVICE, count: 11 } },
    ]);
    expect(JSON.stringify(events)).not.toContain(WRONG);
    time.skip(2 * HOUR - 1);
    expect(setupAccess.tooManyWrongCodes()).toEqual({ address: OTHER_DEVICE, since });
    time.skip(1);
    expect(setupAccess.tooManyWrongCodes()).toBeNull();
  });
});
