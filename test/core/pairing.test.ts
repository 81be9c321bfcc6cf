import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  advance,
  areDeviceCodesRetained,
  areRivals,
  isInstallerInitiated,
  linksOf,
  needsPortalRequests,
  type Pairing,
  type PairingEvent,
  type PairingStep,
  pollDelay,
  resumeAfterRestart,
  timeLeft,
} from '../../src/core/pairings/pairing.ts';
import { instantAt, MINUTE, SAMPLE_LINK, SECOND, samplePairing } from './samples.ts';

const numbered = (number: number) => ({ ...SAMPLE_LINK, authorizeUrl: `${SAMPLE_LINK.authorizeUrl}-${number}` });
const NEW_LINK = numbered(2);
const paired = { kind: 'ended', result: { kind: 'paired', scope: 'Monitoring' } } as const;
const failed = (reason: 'cancelled' | 'expired' | 'refused_by_user' | 'portal_rejected') =>
  ({ kind: 'ended', result: { kind: 'failed', reason } }) as const;

const steps = {
  asking: { kind: 'asking' },
  'asking, with a link that somebody has opened': { kind: 'asking', earlier: [SAMPLE_LINK] },
  waiting: { kind: 'waiting', link: SAMPLE_LINK },
  'waiting at two links': { kind: 'waiting', link: SAMPLE_LINK, earlier: [numbered(1)] },
  exchanging: { kind: 'exchanging', link: SAMPLE_LINK, since: instantAt(1) },
  'exchanging, with two links': { kind: 'exchanging', link: SAMPLE_LINK, earlier: [numbered(1)], since: instantAt(1) },
  paired,
  failed: failed('cancelled'),
} as const satisfies Record<string, PairingStep>;

const events = {
  link: { kind: 'link', link: NEW_LINK },
  code: { kind: 'code', hash: 'hash-of-the-code', at: instantAt(2) },
  'spent code': { kind: 'code', hash: 'hash-of-a-spent-code', at: instantAt(2) },
  'not sent': { kind: 'not_sent' },
  'code refused': { kind: 'code_refused', reason: 'code_refused' },
  'answer lost': { kind: 'answer_lost' },
  paired: { kind: 'paired', scope: 'Monitoring' },
  failed: { kind: 'failed', reason: 'refused_by_user' },
  deadline: { kind: 'deadline' },
  installer: { kind: 'installer', at: instantAt(2), lifetime: MINUTE, isLinkUsable: false },
} as const satisfies Record<string, PairingEvent>;

/** The step that follows each step and event; other events leave the step unchanged. */
const table: Record<keyof typeof steps, Partial<Record<keyof typeof events, PairingStep>>> = {
  asking: {
    link: { kind: 'waiting', link: NEW_LINK },
    failed: failed('refused_by_user'),
    deadline: failed('expired'),
    installer: { kind: 'asking' },
  },
  'asking, with a link that somebody has opened': {
    link: { kind: 'waiting', link: NEW_LINK, earlier: [SAMPLE_LINK] },
    code: { kind: 'exchanging', link: SAMPLE_LINK, since: instantAt(2) },
    failed: failed('refused_by_user'),
    deadline: failed('expired'),
    installer: { kind: 'asking', earlier: [SAMPLE_LINK] },
  },
  waiting: {
    link: { kind: 'waiting', link: NEW_LINK, earlier: [SAMPLE_LINK] },
    code: { kind: 'exchanging', link: SAMPLE_LINK, since: instantAt(2) },
    failed: failed('refused_by_user'),
    deadline: failed('expired'),
    installer: { kind: 'asking', earlier: [SAMPLE_LINK] },
  },
  'waiting at two links': {
    link: { kind: 'waiting', link: NEW_LINK, earlier: [SAMPLE_LINK, numbered(1)] },
    code: { kind: 'exchanging', link: SAMPLE_LINK, earlier: [numbered(1)], since: instantAt(2) },
    failed: failed('refused_by_user'),
    deadline: failed('expired'),
    installer: { kind: 'asking', earlier: [SAMPLE_LINK, numbered(1)] },
  },
  'exchanging, with two links': {
    'not sent': { kind: 'waiting', link: SAMPLE_LINK, earlier: [numbered(1)] },
    'code refused': { kind: 'waiting', link: SAMPLE_LINK, earlier: [numbered(1)] },
    'answer lost': { kind: 'asking' },
    paired,
    failed: failed('refused_by_user'),
    installer: steps['exchanging, with two links'],
  },
  exchanging: {
    'not sent': { kind: 'waiting', link: SAMPLE_LINK },
    'code refused': { kind: 'waiting', link: SAMPLE_LINK },
    'answer lost': { kind: 'asking' },
    paired,
    failed: failed('refused_by_user'),
    installer: steps.exchanging,
  },
  paired: {},
  failed: {},
};

describe.each(Object.keys(steps) as (keyof typeof steps)[])('pairing that is %s', (from) => {
  const pairing = samplePairing(steps[from], { spentCodes: ['hash-of-a-spent-code'] });
  test.each(Object.keys(events) as (keyof typeof events)[])(
    "the transition table gives the pairing's next step on the event %s",
    (on) => {
      const next = advance(pairing, events[on]);
      const expected = table[from][on];
      if (expected === undefined) expect(next).toBe(pairing);
      else expect(next.step).toEqual(expected);
    },
  );
});

describe('device codes of a pairing', () => {
  const codes = (number: number) => ({ codeHash: `hash-${number}`, userCode: `WDJB-MJH${number}` });
  const beginFlow = (number: number, minutes: number) =>
    ({
      kind: 'device',
      appliance: 'a',
      codes: codes(number),
      at: instantAt(minutes * MINUTE),
      lifetime: 15 * MINUTE,
    }) as const;
  const minutesLeft = (pairing: Pairing, minutes: number) => timeLeft(pairing, instantAt(minutes * MINUTE)) / MINUTE;

  test('the codes of a device flow are attached to an open pairing in any step, and not to an ended one', () => {
    for (const [name, step] of Object.entries(steps)) {
      const pairing = samplePairing(step);
      const next = advance(pairing, beginFlow(1, 1));
      if (step.kind === 'ended') expect(next, name).toBe(pairing);
      else expect(next, name).toMatchObject({ step, device: { ...codes(1), shared: true } });
    }
  });

  test('new codes of a device flow replace the previous ones, of which the last five are remembered', () => {
    const flow = samplePairing(steps.asking, { device: { appliance: 'a', ...codes(0) } });
    const next = [1, 2, 3, 4, 5, 6].reduce((before, number) => advance(before, beginFlow(number, 1)), flow);
    expect(next.device).toEqual({ appliance: 'a', ...codes(6), superseded: [5, 4, 3, 2, 1].map(codes) });
    const shared = advance(next, events.installer);
    expect(shared.device).toEqual({ ...next.device, shared: true });
    expect(advance(shared, beginFlow(7, 1)).device).toMatchObject({ ...codes(7), shared: true });
  });

  test('new codes of a device flow give an unopened pairing its whole lifetime again', () => {
    let flow = samplePairing(steps.asking, { device: { appliance: 'a', ...codes(0) } });
    for (let minute = 14; minute < 100; minute += 14) {
      flow = advance(flow, beginFlow(minute, minute));
      expect(minutesLeft(flow, minute)).toBe(15);
    }
  });

  test('new codes prolong a pairing to at most twice its lifetime, and are refused when little of it is left', () => {
    const flow = samplePairing(steps.waiting, { device: { appliance: 'a', ...codes(0) } });
    expect(minutesLeft(advance(flow, beginFlow(1, 10)), 10)).toBe(15);
    const prolonged = advance(advance(flow, beginFlow(1, 14)), beginFlow(2, 26));
    expect(minutesLeft(prolonged, 26)).toBe(4);
    expect(advance(prolonged, beginFlow(3, 27))).toBe(prolonged);
    const exchanging = { ...prolonged, step: steps.exchanging };
    expect(advance(exchanging, beginFlow(3, 27)).device).toMatchObject(codes(3));
  });

  test('a device flow uses the portal only when an installer joins it or somebody opens a link', () => {
    const flow = samplePairing(steps.asking, { device: { appliance: 'a', ...codes(0) } });
    const taken = advance(flow, { ...events.installer, at: instantAt(9 * MINUTE), lifetime: 15 * MINUTE });
    expect([isInstallerInitiated(flow), needsPortalRequests(flow)]).toEqual([false, false]);
    expect([isInstallerInitiated(taken), needsPortalRequests(taken), minutesLeft(taken, 9)]).toEqual([true, true, 15]);
    expect(needsPortalRequests(advance(flow, events.link))).toBe(true);
    expect(needsPortalRequests({ ...flow, step: steps['asking, with a link that somebody has opened'] })).toBe(true);
    expect([isInstallerInitiated(samplePairing(paired)), needsPortalRequests(samplePairing(paired))]).toEqual([
      true,
      false,
    ]);
  });
});

test('an installer gets the newest link again while it is usable, and a new installer gets a separate one', () => {
  const flow = samplePairing(steps.waiting, { device: { appliance: 'a', codeHash: 'hash', userCode: 'WDJB-MJHT' } });
  const installer = { ...events.installer, at: instantAt(9 * MINUTE), lifetime: 15 * MINUTE, isLinkUsable: true };
  const taken = advance(flow, installer);
  expect(taken.step).toEqual({ kind: 'asking', earlier: [SAMPLE_LINK] });
  const waiting = advance(taken, events.link);
  const again = advance(waiting, { ...installer, at: instantAt(20 * MINUTE) });
  expect([again.step, timeLeft(again, instantAt(20 * MINUTE))]).toEqual([waiting.step, 15 * MINUTE]);
  const spent = advance(waiting, { ...installer, isLinkUsable: false });
  expect(spent.step).toEqual({ kind: 'asking', earlier: [NEW_LINK, SAMPLE_LINK] });
});

test('only the newest three links of a pairing are valid', () => {
  const links = [1, 2, 3, 4, 5].map(numbered);
  const pairing = links.reduce((before, link) => advance(before, { kind: 'link', link }), samplePairing(steps.asking));
  expect(linksOf(pairing.step)).toEqual([numbered(5), numbered(4), numbered(3)]);
  expect(linksOf(advance(pairing, events.code).step)).toEqual(linksOf(pairing.step));
  for (const step of ['asking', 'paired', 'failed'] as const) expect(linksOf(steps[step])).toEqual([]);
});

test('the codes of a device flow are known ten minutes longer than its pairing lasts', () => {
  const pairing = samplePairing(paired);
  expect(areDeviceCodesRetained(pairing, instantAt(25 * MINUTE - 1))).toBe(true);
  expect(areDeviceCodesRetained(pairing, instantAt(25 * MINUTE))).toBe(false);
  expect(areDeviceCodesRetained(pairing, { ...instantAt(0, 'boot-2'), wall: pairing.begun.wall + 25 * MINUTE })).toBe(
    false,
  );
});

test('a code that was accepted once is not accepted again after the portal refused it', () => {
  const exchanging = advance(samplePairing(steps.waiting), events.code);
  expect(exchanging.spentCodes).toEqual(['hash-of-the-code']);
  const waiting = advance(exchanging, events['code refused']);
  expect(advance(waiting, events.code)).toBe(waiting);
  expect(advance(waiting, { ...events.code, hash: 'another' }).step.kind).toBe('exchanging');
});

test('a code that was never sent is accepted again', () => {
  const waiting = samplePairing(steps.waiting, { spentCodes: ['another'] });
  expect(advance(advance(waiting, events.code), events['not sent'])).toEqual(waiting);
});

test('a code is not accepted again through the fresh link after a lost answer', () => {
  const asking = advance(advance(samplePairing(steps.waiting), events.code), events['answer lost']);
  const waiting = advance(asking, events.link);
  expect(waiting.step).toEqual({ kind: 'waiting', link: NEW_LINK });
  expect(advance(waiting, events.code)).toBe(waiting);
});

test.each([
  ['code_refused', { kind: 'code_refused', reason: 'code_refused' }],
  ['portal_rejected', { kind: 'code_refused', reason: 'portal_rejected' }],
  ['answer_lost', { kind: 'answer_lost' }],
] as const)('a pairing that expires after a failure ends with that failure as its reason: %s', (reason, event) => {
  const after = advance(advance(samplePairing(steps.exchanging), event), events.deadline);
  expect(after.step).toEqual({ kind: 'ended', result: { kind: 'failed', reason } });
});

test('a restart turns an unfinished code exchange into a lost answer and leaves other steps as they are', () => {
  expect(resumeAfterRestart(samplePairing(steps.exchanging)).step).toEqual({ kind: 'asking' });
  expect(resumeAfterRestart(samplePairing(steps.exchanging)).lastFailure).toBe('answer_lost');
  for (const step of ['asking', 'waiting', 'paired', 'failed'] as const) {
    const pairing = samplePairing(steps[step]);
    expect(resumeAfterRestart(pairing)).toBe(pairing);
  }
});

describe('remaining time of a pairing', () => {
  const pairing = samplePairing(steps.waiting);

  test("a pairing's remaining time is measured on the boot clock within a boot", () => {
    expect(timeLeft(pairing, { ...instantAt(5 * MINUTE), wall: 0 })).toBe(10 * MINUTE);
    expect(timeLeft(pairing, { ...instantAt(5 * MINUTE), wall: 9e15 })).toBe(10 * MINUTE);
    expect(timeLeft(pairing, instantAt(15 * MINUTE))).toBe(0);
    expect(timeLeft(pairing, instantAt(99 * MINUTE))).toBe(0);
  });

  test("a pairing's remaining time after a reboot is measured by the wall clock, up to its lifetime", () => {
    const wall = pairing.begun.wall;
    expect(timeLeft(pairing, { boot: 'boot-2', uptime: 7, wall: wall + 5 * MINUTE })).toBe(10 * MINUTE);
    expect(timeLeft(pairing, { boot: 'boot-2', uptime: 7, wall: wall - 400 * MINUTE })).toBe(15 * MINUTE);
    expect(timeLeft(pairing, { boot: 'boot-2', uptime: 7, wall: wall + 400 * MINUTE })).toBe(0);
  });
});

test('polls are 5 to 10 s apart for every allowed interval, unless Retry-After is longer', () => {
  const interval = fc.integer({ min: 5 * SECOND, max: 10 * SECOND });
  const fraction = fc.double({ min: 0, max: 1, noNaN: true });
  const asked = fc.option(fc.integer({ min: 0, max: 100 * SECOND }));
  fc.assert(
    fc.property(interval, asked, fraction, (ms, retryAfter, jitter) => {
      const delay = pollDelay(ms, retryAfter, jitter);
      expect(delay).toBeGreaterThanOrEqual(Math.max(ms, retryAfter ?? 0));
      expect(delay).toBeLessThanOrEqual(Math.max(10 * SECOND, retryAfter ?? 0));
    }),
  );
  expect(pollDelay(5 * SECOND, null, 1)).toBeGreaterThan(pollDelay(5 * SECOND, null, 0));
});

test('at most a hundred codes are exchanged for one pairing', () => {
  const spent = (count: number) => Array.from({ length: count }, (_, i) => `hash-${i}`);
  expect(advance(samplePairing(steps.waiting, { spentCodes: spent(99) }), events.code).step.kind).toBe('exchanging');
  const full = samplePairing(steps.waiting, { spentCodes: spent(100) });
  expect(advance(full, events.code)).toBe(full);
});

describe('two open pairings of a connection', () => {
  const waiting = steps.waiting;
  const installer = samplePairing(waiting);
  const codes = { codeHash: 'hash', userCode: 'WDJB-MJHT' };
  const flow = (appliance: string) => samplePairing(waiting, { device: { appliance, ...codes } });
  const shared = samplePairing(waiting, { device: { appliance: 'wallbox', ...codes, shared: true } });

  test.each([
    ['installers wait for both', installer, installer],
    ['an installer waits for one, and has taken over the device flow of the other', installer, shared],
    ['both are the device flow of one appliance', flow('wallbox'), flow('wallbox')],
    ['an installer has taken over one of two device flows of an appliance', flow('wallbox'), shared],
  ])('are rivals if %s', (_, one, other) => {
    expect([areRivals(one, other), areRivals(other, one)]).toEqual([true, true]);
  });

  test.each([
    ['only one of them is a device flow that nobody has taken over', installer, flow('wallbox')],
    ['they are device flows of two appliances', flow('wallbox'), flow('heater')],
    ['they are of two connections after all', installer, { ...installer, connection: 'another' }],
  ])('are no rivals if %s', (_, one, other) => {
    expect([areRivals(one, other), areRivals(other, one)]).toEqual([false, false]);
  });
});
