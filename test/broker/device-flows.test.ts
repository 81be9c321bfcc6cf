import { describe, expect, test } from 'vitest';
import type { DeviceAuthorization } from '../../src/core/lan-service.ts';
import { Secret } from '../../src/core/secret.ts';
import { rememberSecrets } from '../support/logs.ts';
import { BrokerHarness, type BrokerHarnessOptions, pairingResult, UNKNOWN_BROWSER } from './broker-harness.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** Who opens a link again sooner gets the same one. */
const SAME_LINK = 5 * SECOND;
const REDIRECT: BrokerHarnessOptions = { redirect: (nonce) => `http://192.168.1.7:8480/callback/${nonce}` };

/** A home with an appliance that has begun a device flow. */
async function begun(options: BrokerHarnessOptions = {}) {
  const home = await BrokerHarness.start(options);
  const { appliance } = await home.addAppliance('wallbox');
  return { home, appliance, id: appliance.id, flow: await begin(home) };
}

async function begin(home: BrokerHarness, name = 'wallbox', scope: string | null = null): Promise<DeviceAuthorization> {
  const outcome = await home.run.deviceFlows.begin(home.run.appliances.get(name), scope);
  if (outcome.kind !== 'begun') throw new Error(`not begun: ${outcome.kind}`);
  await home.time.settle();
  rememberSecrets([outcome.authorization.deviceCode.reveal()]);
  return outcome.authorization;
}

/** A person opens the page and goes on; gives the portal's state. */
async function open(home: BrokerHarness, { userCode }: DeviceAuthorization): Promise<string> {
  const result = await home.run.deviceFlows.openLink(userCode);
  if (result.kind !== 'link') throw new Error(`not opened: ${result.kind}`);
  return new URL(result.authorizeUrl).searchParams.get('state') ?? '';
}

/** Opens it so long after the last time that the link is another one. */
async function openAfresh(home: BrokerHarness, flow: DeviceAuthorization): Promise<string> {
  await home.time.pass(MINUTE);
  return open(home, flow);
}

async function login(home: BrokerHarness, state: string, deny = false): Promise<URL> {
  return new URL((await home.emulator.login({ state, user: 'demo', deny })).location);
}

/** Brings to the hub what the portal's redirect carries. */
async function follow(home: BrokerHarness, location: URL) {
  const nonce = location.pathname.split('/').at(-1) ?? '';
  const code = location.searchParams.get('code');
  const error = location.searchParams.get('error');
  if (code !== null)
    return home.run.pairings.receiveCallback(nonce, { kind: 'code', code: new Secret(code) }, UNKNOWN_BROWSER);
  return home.run.pairings.receiveCallback(
    nonce,
    error === null ? { kind: 'nothing' } : { kind: 'error', error },
    UNKNOWN_BROWSER,
  );
}

function poll(home: BrokerHarness, id: string, { deviceCode }: DeviceAuthorization): string {
  const result = home.run.deviceFlows.poll(id, deviceCode.reveal());
  return result.kind === 'failed' ? result.reason : result.kind;
}

const configs = (home: BrokerHarness) => home.portal.requests('config').length;
/** The states that were polled since then, each once. */
const polled = (home: BrokerHarness, since: number) =>
  new Set(
    home.portal
      .requests('code')
      .slice(since)
      .map(({ query }) => query.get('state')),
  );

describe('device flow', () => {
  test('a device flow is paired when a person has opened the link and logged in', async () => {
    const { home, id, flow } = await begun();
    await using _ = home;
    expect(flow).toMatchObject({ expiresIn: 900, interval: 5 });
    expect(flow.deviceCode.reveal()).toMatch(/^[\w-]{43}$/);
    expect(poll(home, id, flow)).toBe('pending');
    await login(home, await open(home, flow));
    await home.time.pass(10 * SECOND);
    expect(poll(home, id, flow)).toBe('paired');
    expect(await home.whoami(await home.token(id))).toBe(200);
    expect(home.portal.requests('token')[0]?.form.get('scope')).toBe('Monitoring');
  });

  test('a device flow sends the portal nothing before somebody opens it', async () => {
    const { home, id, flow } = await begun();
    await using _ = home;
    for (let minute = 0; minute < 14; minute++) {
      await home.time.pass(MINUTE);
      expect(poll(home, id, flow)).toBe('pending');
    }
    expect(home.portal.recordedRequests).toEqual([]);
    await home.time.pass(MINUTE);
    expect(poll(home, id, flow)).toBe('expired');
    expect(await home.run.deviceFlows.openLink(flow.userCode)).toEqual({ kind: 'over' });
    expect(home.portal.recordedRequests).toEqual([]);
  });

  test("a device flow does not begin for another scope than the appliance's own", async () => {
    await using home = await BrokerHarness.start();
    await home.addAppliance('wallbox', 'Monitoring RemoteControl');
    await home.addAppliance('meter', null);
    const { deviceFlows, appliances } = home.run;
    const kind = async (name: string, scope: string | null) =>
      deviceFlows.begin(appliances.get(name), scope).then((outcome) => outcome);
    expect(await kind('wallbox', 'Monitoring')).toEqual({ kind: 'other_scope', scope: 'Monitoring RemoteControl' });
    expect(await kind('meter', 'Monitoring')).toEqual({ kind: 'other_scope', scope: null });
    expect(await kind('wallbox', 'RemoteControl Monitoring')).toMatchObject({ kind: 'begun' });
    expect(await kind('wallbox', null)).toMatchObject({ kind: 'begun' });
    expect(await kind('meter', null)).toMatchObject({ kind: 'begun' });
  });

  test('an appliance may begin ten device flows at once, then one a minute, and they share one stored pairing', async () => {
    await using home = await BrokerHarness.start();
    const { appliance } = await home.addAppliance('wallbox');
    const { appliance: other } = await home.addAppliance('meter');
    const { deviceFlows, store } = home.run;
    for (let count = 0; count < 10; count++) {
      expect(await deviceFlows.begin(appliance, null)).toMatchObject({ kind: 'begun' });
    }
    expect(await store.pairings()).toHaveLength(1);
    expect(await deviceFlows.begin(appliance, null)).toEqual({ kind: 'unavailable', retryAfter: 60 });
    expect(await deviceFlows.begin(other, null)).toMatchObject({ kind: 'begun' });
    await home.time.pass(57 * SECOND);
    expect(await deviceFlows.begin(appliance, null)).toEqual({ kind: 'unavailable', retryAfter: 3 });
    await home.time.pass(3 * SECOND - 0.3);
    expect(await deviceFlows.begin(appliance, null)).toEqual({ kind: 'unavailable', retryAfter: 1 });
    await home.time.pass(1);
    expect(await deviceFlows.begin(appliance, null)).toMatchObject({ kind: 'begun' });
    expect(home.portal.recordedRequests).toEqual([]);
  });

  test('only opened device flows count towards the limit of a hundred pairings at the portal', async () => {
    await using home = await BrokerHarness.start();
    const names = Array.from({ length: 102 }, (_, number) => `appliance-${number}`);
    for (const name of names) await home.addAppliance(name);
    const flows = await Promise.all(names.map((name) => begin(home, name)));
    const run = await home.beginPairing('appliance-0');
    expect(pairingResult(run.pairing.step)).toBe('waiting');
    for (const { userCode } of flows.slice(1, 100)) {
      expect(await home.run.deviceFlows.openLink(userCode)).toMatchObject({ kind: 'link' });
    }
    const [first, last] = [flows[1], flows[100]] as [DeviceAuthorization, DeviceAuthorization];
    expect(await home.run.deviceFlows.openLink(last.userCode)).toEqual({ kind: 'too_many' });
    await expect(home.beginPairing('appliance-101')).rejects.toMatchObject({ code: 'not_allowed' });
    expect(await home.run.deviceFlows.openLink(first.userCode)).toMatchObject({ kind: 'link' });
    await run.fail('cancelled');
    expect(await home.run.deviceFlows.openLink(last.userCode)).toMatchObject({ kind: 'link' });
  });

  test('a device flow that cannot be saved does not begin, and the previous one stays valid', async () => {
    const { home, appliance, id, flow } = await begun();
    await using _ = home;
    home.failingWrites.add('savePairing');
    await expect(home.run.deviceFlows.begin(appliance, null)).rejects.toMatchObject({ code: 'store_unwritable' });
    home.failingWrites.clear();
    expect(poll(home, id, flow)).toBe('pending');
  });
});

describe('device flow polling', () => {
  test('a poll sooner than every 5 s gets slow_down and lengthens the interval by 5 s each time', async () => {
    const { home, id, flow } = await begun();
    await using _ = home;
    const pollAfter = async (seconds: number) => {
      await home.time.pass(seconds * SECOND);
      return poll(home, id, flow);
    };
    expect(await pollAfter(0)).toBe('pending');
    expect(await pollAfter(5)).toBe('pending');
    expect(await pollAfter(4)).toBe('slow_down');
    expect(await pollAfter(9)).toBe('slow_down');
    expect(await pollAfter(15)).toBe('pending');
    expect(await pollAfter(14)).toBe('slow_down');
    expect(await pollAfter(20)).toBe('pending');
    await login(home, await open(home, flow));
    await home.time.pass(10 * SECOND);
    expect(await pollAfter(0)).toBe('paired');
    // The answer may have been lost.
    expect(await pollAfter(1)).toBe('paired');
  });

  test('a device flow accepts a poll that is 0.4 s early', async () => {
    const { home, id, flow } = await begun();
    await using _ = home;
    poll(home, id, flow);
    await home.time.pass(4600);
    expect(poll(home, id, flow)).toBe('pending');
  });

  test('a slow_down in one device flow does not affect the next one', async () => {
    const { home, id, flow } = await begun();
    await using _ = home;
    poll(home, id, flow);
    expect(poll(home, id, flow)).toBe('slow_down');
    const second = await begin(home);
    expect(poll(home, id, second)).toBe('pending');
  });

  test("a poll with an unknown device code, or with another appliance's, is answered with unknown", async () => {
    const { home, id, flow } = await begun();
    await using _ = home;
    const { appliance: other } = await home.addAppliance('meter');
    expect(poll(home, other.id, flow)).toBe('unknown');
    for (const deviceCode of ['', 'x', flow.userCode, `${flow.deviceCode.reveal()}x`]) {
      expect(home.run.deviceFlows.poll(id, deviceCode)).toEqual({ kind: 'unknown' });
    }
    expect(poll(home, id, flow)).toBe('pending');
  });

  test('a poll repeats the result, in case its response was lost, until ten minutes after the pairing expired', async () => {
    const { home, id, flow } = await begun();
    await using _ = home;
    await login(home, await open(home, flow));
    await home.time.pass(24 * MINUTE);
    expect(poll(home, id, flow)).toBe('paired');
    expect(home.run.deviceFlows.findByUserCode(flow.userCode)).not.toBeNull();
    await home.time.pass(MINUTE);
    expect(poll(home, id, flow)).toBe('expired');
    expect(home.run.deviceFlows.findByUserCode(flow.userCode)).toBeNull();
  });
});

describe('user code', () => {
  test('a user code is found in any spelling, and a different code is not', async () => {
    const { home, flow } = await begun();
    await using _ = home;
    const { deviceFlows } = home.run;
    const found = (typed: string) => deviceFlows.findByUserCode(typed)?.device?.userCode;
    const bare = flow.userCode.replace('-', '');
    for (const typed of [flow.userCode, bare, bare.toLowerCase(), ` ${bare.slice(0, 2)} ${bare.slice(2)} `]) {
      expect(found(typed)).toBe(flow.userCode);
    }
    const other = bare.startsWith('B') ? 'C' : 'B';
    for (const typed of ['', other + bare.slice(1), bare.slice(1), `${bare}B`]) expect(found(typed)).toBeUndefined();
  });
});

describe('opening the link', () => {
  test("opening the link again and again, by anybody with the code, keeps the first person's login valid", async () => {
    const { home, id, flow } = await begun();
    await using _ = home;
    const state = await open(home, flow);
    for (let seconds = 0; seconds < 110; seconds += 5) {
      await home.time.pass(5 * SECOND);
      await open(home, flow);
    }
    await login(home, state);
    await home.time.pass(10 * SECOND);
    expect(poll(home, id, flow)).toBe('paired');
  });

  test("opening the link again gets a fresh one, so that the portal's links may be short-lived", async () => {
    const { home, id, flow } = await begun({ emulator: { stateLifetime: 60 } });
    await using _ = home;
    const first = await open(home, flow);
    await home.time.pass(10 * MINUTE);
    await expect(login(home, first)).rejects.toThrow();
    const second = await open(home, flow);
    expect(second).not.toBe(first);
    await login(home, second);
    await home.time.pass(10 * SECOND);
    expect(poll(home, id, flow)).toBe('paired');
  });

  test('opening the link several times within 5 s sends the portal one request', async () => {
    const { home, flow } = await begun();
    await using _ = home;
    const states = await Promise.all([1, 2, 3].map(() => open(home, flow)));
    await home.time.pass(SAME_LINK - 1);
    states.push(await open(home, flow));
    expect(new Set(states).size).toBe(1);
    expect(configs(home)).toBe(1);
    await home.time.pass(1);
    expect(await open(home, flow)).not.toBe(states[0]);
    expect(configs(home)).toBe(2);
  });

  test('opening the link in a loop sends the portal at most three requests a minute', async () => {
    const { home, flow } = await begun();
    await using _ = home;
    for (let tries = 0; tries < 120; tries++) {
      await open(home, flow);
      await home.time.pass(500);
    }
    expect(configs(home)).toBeLessThanOrEqual(3);
  });

  test.each(['drop', 'answer'] as const)(
    'opening the link reports that the portal is unreachable (%s), and a later try succeeds',
    async (kind) => {
      const { home, id, flow } = await begun();
      await using _ = home;
      home.portal.fail('config', kind === 'drop' ? { kind } : { kind, status: 503, headers: { 'retry-after': '3' } });
      expect(await home.run.deviceFlows.openLink(flow.userCode)).toEqual({ kind: 'unreachable' });
      expect(await home.run.deviceFlows.openLink(flow.userCode)).toEqual({ kind: 'unreachable' });
      expect(configs(home)).toBe(1);
      expect(poll(home, id, flow)).toBe('pending');
      await home.time.pass(3 * SECOND);
      await login(home, await open(home, flow));
      await home.time.pass(10 * SECOND);
      expect(poll(home, id, flow)).toBe('paired');
    },
  );

  test('opening the link waits less than 10 s for a portal that hangs, and the next try gets its late response', async () => {
    const { home, flow } = await begun();
    await using _ = home;
    const answer = Promise.withResolvers<void>();
    home.portal.fail('config', { kind: 'wait', until: answer.promise });
    const opening = home.run.deviceFlows.openLink(flow.userCode);
    await expect.poll(() => configs(home)).toBe(1);
    home.time.skip(9 * SECOND);
    expect(await opening).toEqual({ kind: 'unreachable' });
    const again = open(home, flow);
    answer.resolve();
    await again;
    expect(configs(home)).toBe(1);
  });

  test('every opening of the link uses the same redirect address, if the portal accepts one', async () => {
    const { home, flow } = await begun(REDIRECT);
    await using _ = home;
    await open(home, flow);
    await openAfresh(home, flow);
    const addresses = home.portal.requests('config').map(({ query }) => query.get('redirect_url'));
    expect(addresses).toHaveLength(2);
    expect(new Set(addresses).size).toBe(1);
  });
});

describe('links of one pairing', () => {
  test('the hub polls the newest three links of a pairing, 5 to 10 s apart', async () => {
    const { home, flow } = await begun();
    await using _ = home;
    const states: string[] = [await open(home, flow)];
    for (let count = 0; count < 4; count++) states.push(await openAfresh(home, flow));
    const before = home.portal.requests('code').length;
    await home.time.pass(MINUTE);
    expect(polled(home, before)).toEqual(new Set(states.slice(2)));
    for (const state of states.slice(2)) {
      const times = home.emulator.polls(state).map(({ at }) => at);
      const gaps = times.slice(1).map((at, index) => at - (times[index] ?? 0));
      expect(Math.min(...gaps)).toBeGreaterThanOrEqual(5 * SECOND);
      expect(Math.max(...gaps)).toBeLessThanOrEqual(10 * SECOND);
    }
  });

  test.each([0, 1, 2])(
    'any open link of a pairing may bring the code (number %d), and polling then stops for all links',
    async (number) => {
      const { home, id, flow } = await begun();
      await using _ = home;
      const states = [await open(home, flow), await openAfresh(home, flow), await openAfresh(home, flow)];
      await login(home, states[number] ?? '');
      await home.time.pass(10 * SECOND);
      expect(poll(home, id, flow)).toBe('paired');
      expect(home.exchanges).toBe(1);
      const polls = home.portal.requests('code').length;
      await home.time.pass(5 * MINUTE);
      expect(home.portal.requests('code')).toHaveLength(polls);
    },
  );

  test("a polled code is exchanged at the token URL of its own link, a redirected one at the newest link's", async () => {
    const { home, appliance, id } = await begun(REDIRECT);
    await using _ = home;
    const { run } = home;
    const at = async (through: 'earlier' | 'redirect') => {
      await home.time.pass(10 * SECOND);
      const flow = await begin(home);
      await open(home, flow);
      home.portal.fail('config', { kind: 'alter', with: (body) => body.replace(/(sso\\?\/token)/, '$1?newest') });
      await openAfresh(home, flow);
      const pairing = run.pairings.newestFor(appliance.id);
      const step = pairing?.pairing.step;
      if (step?.kind !== 'waiting') throw new Error('nobody can log in');
      const link = through === 'redirect' ? step.link : step.earlier?.[0];
      const location = await login(home, new URL(link?.authorizeUrl ?? '').searchParams.get('state') ?? '');
      if (through === 'redirect') await follow(home, location);
      else await home.time.pass(10 * SECOND);
      expect(poll(home, id, flow)).toBe('paired');
      return home.portal.requests('token').at(-1)?.query.has('newest');
    };
    expect(await at('earlier')).toBe(false);
    expect(await at('redirect')).toBe(true);
  });

  test('all links stay valid after the portal refused a code, and the next opening gets a fresh link at once', async () => {
    const { home, id, flow } = await begun(REDIRECT);
    await using _ = home;
    const states = [await open(home, flow), await openAfresh(home, flow)];
    home.portal.fail('token', { kind: 'answer', status: 400, body: '{"error":"invalid_grant"}' });
    await follow(home, await login(home, states[1] ?? ''));
    expect(home.exchanges).toBe(1);
    expect(poll(home, id, flow)).toBe('pending');
    expect(await open(home, flow)).not.toBe(states[1]);
    await login(home, states[0] ?? '');
    await home.time.pass(10 * SECOND);
    expect(poll(home, id, flow)).toBe('paired');
    expect(home.emulator.observations.codesRepeated).toBe(0);
  });

  test('no link is polled after a lost answer until the next opening gets a fresh link', async () => {
    const { home, id, flow } = await begun({ ...REDIRECT, emulator: { codeUrlAfterExchange: 'served' } });
    await using _ = home;
    const states = [await open(home, flow), await openAfresh(home, flow)];
    home.portal.fail('token', { kind: 'commit then drop' });
    await follow(home, await login(home, states[1] ?? ''));
    expect(poll(home, id, flow)).toBe('pending');
    const before = home.portal.recordedRequests.length;
    await home.time.pass(MINUTE);
    expect(home.portal.recordedRequests).toHaveLength(before);
    const fresh = await open(home, flow);
    expect(states).not.toContain(fresh);
    await login(home, fresh);
    await home.time.pass(10 * SECOND);
    expect(poll(home, id, flow)).toBe('paired');
    expect(home.emulator.observations.codesRepeated).toBe(0);
  });

  test("a link that the portal rejects does not slow the polling of the pairing's other links", async () => {
    const { home, id, flow } = await begun({ fraction: 0.999 });
    await using _ = home;
    const states = [await open(home, flow), await openAfresh(home, flow)];
    const gone = { kind: 'answer', status: 410 } as const;
    // Two polls a round; which comes first does not matter, as long as one is answered.
    for (let round = 0; round < 8; round++) {
      home.portal.fail('code', gone);
      await home.time.pass(7500);
    }
    const times = home.emulator.polls(states[1] ?? '').length + home.emulator.polls(states[0] ?? '').length;
    expect(times).toBeGreaterThanOrEqual(6);
    expect(home.events.filter(({ event }) => event === 'portal_unreachable')).toEqual([]);
    await login(home, states[1] ?? '');
    await home.time.pass(10 * SECOND);
    expect(poll(home, id, flow)).toBe('paired');
  });
});

describe('restart with device flows', () => {
  test.each(['stop', 'crash'] as const)(
    '(%s) a device flow that nobody has opened continues after a restart, and its codes stay valid',
    async (end) => {
      const { home, id, flow } = await begun();
      await using _ = home;
      await home[end]();
      await home.start();
      await home.time.pass(MINUTE);
      expect(home.portal.recordedRequests).toEqual([]);
      expect(poll(home, id, flow)).toBe('pending');
      await login(home, await open(home, flow));
      await home.time.pass(10 * SECOND);
      expect(poll(home, id, flow)).toBe('paired');
    },
  );

  test.each(['stop', 'crash'] as const)(
    '(%s) all open links of a device flow stay valid after a restart',
    async (end) => {
      const { home, id, flow } = await begun(REDIRECT);
      await using _ = home;
      const states = [await open(home, flow), await openAfresh(home, flow), await openAfresh(home, flow)];
      await home[end]();
      await home.start();
      await login(home, states[0] ?? '');
      await home.time.pass(10 * SECOND);
      expect(poll(home, id, flow)).toBe('paired');
      expect(configs(home)).toBe(3);
    },
  );
});

test('the log contains no user code and no device code', async () => {
  const { home, flow } = await begun(REDIRECT);
  await using _ = home;
  await follow(home, await login(home, await open(home, flow), true));
  const told = JSON.stringify(home.events);
  expect(told).toContain('pairing_started');
  expect(told).not.toContain(flow.userCode);
  expect(told).not.toContain(flow.deviceCode.reveal());
});
