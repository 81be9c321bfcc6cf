import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Instant } from '../../src/core/clock.ts';
import {
  areDeviceCodesRetained,
  areRivals,
  isInstallerInitiated,
  linksOf,
  needsPortalRequests,
  type Pairing,
  type PairingStep,
  pollDelay,
  timeLeft,
} from '../../src/core/pairings/pairing.ts';
import { type PairingEvent, stepPairing } from '../../src/core/pairings/pairing-step.ts';
import type { DeviceLink, LoginLink, RedirectLink } from '../../src/core/portals/login-link.ts';
import type { TokenOutcome } from '../../src/core/portals/token-outcome.ts';
import { Secret } from '../../src/core/secret.ts';
import { HOUR, instantAt, MINUTE, SAMPLE_LINK, SECOND, samplePairing } from './samples.ts';

const numbered = (number: number) => ({ ...SAMPLE_LINK, authorizeUrl: `${SAMPLE_LINK.authorizeUrl}-${number}` });
const NEW_LINK = numbered(2);
const DEVICE_LINK: DeviceLink = {
  kind: 'device',
  authorizeUrl: 'https://portal.example/device',
  redirect: null,
  userCode: 'ABCD-EFGH',
  containsUserCode: false,
  deviceCode: new Secret('a-device-code'),
  verifier: null,
  interval: 5 * SECOND,
  begun: instantAt(0),
  lifetime: 5 * MINUTE,
};
const REDIRECT_LINK: RedirectLink = {
  kind: 'redirect',
  authorizeUrl: 'https://portal.example/authorize',
  redirect: 'http://192.168.1.7/callback',
  state: 'a-state',
  verifier: null,
  issuer: null,
  requiresIssuer: false,
};
const paired = { kind: 'ended', result: { kind: 'paired', scope: 'Monitoring' } } as const;
const failed = (reason: 'cancelled' | 'expired' | 'refused_by_user' | 'portal_rejected') =>
  ({ kind: 'ended', result: { kind: 'failed', reason } }) as const;

const SPENT = 'hash-of-a-spent-code';
const steps = {
  asking: { kind: 'asking' },
  'asking, with a link that somebody has opened': { kind: 'asking', earlier: [SAMPLE_LINK] },
  waiting: { kind: 'waiting', link: SAMPLE_LINK },
  'waiting at two links': { kind: 'waiting', link: SAMPLE_LINK, earlier: [numbered(1)] },
  'waiting for a device code': { kind: 'waiting', link: DEVICE_LINK },
  'waiting for redirects': { kind: 'waiting', link: numbered(1), earlier: [REDIRECT_LINK] },
  exchanging: { kind: 'exchanging', link: SAMPLE_LINK, since: instantAt(1) },
  'exchanging, with two links': { kind: 'exchanging', link: SAMPLE_LINK, earlier: [numbered(1)], since: instantAt(1) },
  'exchanging the code of a redirect': { kind: 'exchanging', link: REDIRECT_LINK, since: instantAt(1) },
  paired,
  failed: failed('cancelled'),
} as const satisfies Record<string, PairingStep>;

/** Members of pairings of the table, besides their step. */
const members: readonly Partial<Pairing>[] = [
  ...Object.keys(steps).map(() => ({})),
  // A device flow that nobody has opened, and one whose login is under way.
  ...[1, 2].map(() => ({ device: { appliance: 'a', codeHash: 'hash', userCode: 'ABCD-EFGH' } })),
  { failed: instantAt(1), batch: 'a-batch', lastFailure: 'code_refused' },
];
const tableSteps: readonly PairingStep[] = [...Object.values(steps), steps.asking, steps.exchanging, steps.failed];
const tablePairings = tableSteps.map((step, index) => samplePairing(step, { spentCodes: [SPENT], ...members[index] }));

const tokens = { accessToken: new Secret('new'), refreshToken: new Secret('new-r'), scope: null, lifetime: HOUR };
const portalTime = null;
const sent = instantAt(1);
const code = (hash: string) => ({ kind: 'code', hash, response: { code: new Secret(hash), issuer: null } }) as const;
/** The answer to the code that is being exchanged. */
const answered = (outcome: TokenOutcome, hash = SPENT) =>
  ({ kind: 'answered', hash, link: SAMPLE_LINK, outcome, sent }) as const;
const rejected = (error: string) => answered({ kind: 'rejected', error, detail: `says ${error}`, portalTime });
const granted = { kind: 'granted', tokens, portalTime } as const;

const events = {
  link: { kind: 'link', link: NEW_LINK },
  'link ended': { kind: 'link_ended', link: SAMPLE_LINK },
  'slow down': { kind: 'slow_down', link: DEVICE_LINK, interval: 10 * SECOND },
  code: code('hash-of-the-code'),
  'code through the redirect': { ...code('hash-of-the-code'), link: REDIRECT_LINK },
  'code that was sent before': code(SPENT),
  'tokens of a device code': { kind: 'tokens', hash: 'hash-of-the-device-code', link: DEVICE_LINK, tokens, sent },
  'not sent': { kind: 'not_sent', hash: SPENT },
  'not sent, another code': { kind: 'not_sent', hash: 'another' },
  'answered: tokens': answered(granted),
  'answered: tokens for another code': answered(granted, 'another'),
  'answered: refused': answered({ kind: 'refused', detail: 'says invalid_grant', portalTime }),
  'answered: nothing': answered({ kind: 'ambiguous', detail: 'HTTP 500' }),
  'answered: wrong credentials': answered({ kind: 'misconfigured', detail: 'says invalid_client', portalTime }),
  'answered: no such scope': rejected('invalid_scope'),
  'answered: another error': rejected('another_error'),
  'answered: something before the portal': answered({ kind: 'blocked', detail: 'HTTP 403', portalTime }),
  'answered: no tokens, to another code': answered({ kind: 'ambiguous', detail: 'HTTP 500' }, 'another'),
  'answer lost': { kind: 'answer_lost', hash: SPENT },
  'answer lost, of another code': { kind: 'answer_lost', hash: 'another' },
  resumed: { kind: 'resumed' },
  'login failed': { kind: 'login_failed', reason: 'refused_by_user', detail: 'says access_denied' },
  paired: { kind: 'paired', scope: 'Monitoring' },
  approved: { kind: 'approved', scope: 'Monitoring' },
  failed: { kind: 'failed', reason: 'refused_by_user' },
  replaced: { kind: 'failed', reason: 'replaced' },
  deadline: { kind: 'deadline' },
  'failure cleared': { kind: 'failure_cleared' },
  batch: { kind: 'batch', batch: 'a-batch' },
  device: { kind: 'device', appliance: 'a', codes: { codeHash: 'hash', userCode: 'WDJB-MJHT' }, lifetime: MINUTE },
  installer: { kind: 'installer', lifetime: MINUTE, isLinkUsable: false },
  'installer, the link can be used': { kind: 'installer', lifetime: MINUTE, isLinkUsable: true, user: 'a user' },
} as const satisfies Record<string, PairingEvent>;

const advance = (pairing: Pairing, event: PairingEvent, now: Instant = instantAt(2)) =>
  stepPairing(pairing, event, now).pairing;

/** The names of the links in the table. */
const LINK_NAMES = new Map<LoginLink, string>([
  [SAMPLE_LINK, 'L'],
  [numbered(1), 'older'],
  [NEW_LINK, 'new'],
  [DEVICE_LINK, 'D'],
  [REDIRECT_LINK, 'R'],
]);

function nameOf(link: LoginLink): string {
  const known = [...LINK_NAMES].find(([one]) => JSON.stringify(one) === JSON.stringify(link));
  return known?.[1] ?? 'D, slower';
}

function describeStep(step: PairingStep): string {
  const links = linksOf(step).map(nameOf);
  if (step.kind !== 'ended') return [step.kind, ...(links.length === 0 ? [] : [`(${links.join(', ')})`])].join(' ');
  return step.result.kind === 'paired' ? 'paired' : `failed: ${step.result.reason}`;
}

/** The head of a column. */
function headOf({ step, device, failed }: Pairing): string {
  const what = [...(device === null ? [] : ['device flow']), ...(failed === undefined ? [] : ['reported'])];
  return [describeStep(step), ...what].join(', ');
}

/** What follows from an event: the step if it changes, other members that change, the write, and the effects. */
function cell(pairing: Pairing, event: PairingEvent): string {
  const change = stepPairing(pairing, event, instantAt(2));
  const { step, ...members } = change.pairing;
  const before: Readonly<Record<string, unknown>> = { ...pairing };
  const stepText = describeStep(step) === describeStep(pairing.step) ? [] : [`**${describeStep(step)}**`];
  const changed = Object.entries(members).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]),
  );
  const text = [
    ...stepText,
    ...changed.map(([name, value]) => (name === 'lastFailure' ? `${value}` : `${name}`)),
    ...change.effects.map(({ kind }) => `[${kind}]`),
  ].join(' ');
  if (text === '') return '–';
  return (['by_effect', 'nothing'].includes(change.write) ? text : `${text} (${change.write})`).replaceAll('_', ' ');
}

test('docs/pairing-states.md has what follows from every event in every step', async () => {
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const page = [
    '# What follows from every event of a pairing',
    '',
    'Computed from `stepPairing` in `src/core/pairings/pairing-step.ts`; [one-state.md](decisions/one-state.md) says why. A new step is bold, with its links; then the',
    'other members that change, when it is written, and the effects in brackets. "–" means that nothing follows. After a change:',
    '`./scripts/test --update core/pairing.test`',
    '',
    row(['event', ...tablePairings.map(headOf)]),
    row(['event', ...tablePairings].map(() => '---')),
    ...Object.entries(events).map(([name, event]) =>
      row([name, ...tablePairings.map((pairing) => cell(pairing, event))]),
    ),
    '',
  ].join('\n');
  await expect(page).toMatchFileSnapshot(join(import.meta.dirname, '../../docs/pairing-states.md'));
});

describe('device codes of a pairing', () => {
  const codes = (number: number) => ({ codeHash: `hash-${number}`, userCode: `WDJB-MJH${number}` });
  /** The appliance begins its flow in that minute. */
  const beginFlow = (pairing: Pairing, number: number, minute: number) => {
    const event = { kind: 'device', appliance: 'a', codes: codes(number), lifetime: 15 * MINUTE } as const;
    return advance(pairing, event, instantAt(minute * MINUTE));
  };
  const minutesLeft = (pairing: Pairing, minutes: number) => timeLeft(pairing, instantAt(minutes * MINUTE)) / MINUTE;

  test('the codes of a device flow are attached to an open pairing in any step, and not to an ended one', () => {
    for (const [name, step] of Object.entries(steps)) {
      const pairing = samplePairing(step);
      const next = beginFlow(pairing, 1, 1);
      if (step.kind === 'ended') expect(next, name).toBe(pairing);
      else expect(next, name).toMatchObject({ step, device: { ...codes(1), shared: true } });
    }
  });

  test('new codes of a device flow replace the previous ones, of which the last five are remembered', () => {
    const flow = samplePairing(steps.asking, { device: { appliance: 'a', ...codes(0) } });
    const next = [1, 2, 3, 4, 5, 6].reduce((before, number) => beginFlow(before, number, 1), flow);
    expect(next.device).toEqual({ appliance: 'a', ...codes(6), superseded: [5, 4, 3, 2, 1].map(codes) });
    const shared = advance(next, events.installer);
    expect(shared.device).toEqual({ ...next.device, shared: true });
    expect(beginFlow(shared, 7, 1).device).toMatchObject({ ...codes(7), shared: true });
  });

  test('new codes of a device flow give an unopened pairing its whole lifetime again', () => {
    let flow = samplePairing(steps.asking, { device: { appliance: 'a', ...codes(0) } });
    for (let minute = 14; minute < 100; minute += 14) {
      flow = beginFlow(flow, minute, minute);
      expect(minutesLeft(flow, minute)).toBe(15);
    }
  });

  test('new codes prolong a pairing to at most twice its lifetime, and are refused when little of it is left', () => {
    const flow = samplePairing(steps.waiting, { device: { appliance: 'a', ...codes(0) } });
    expect(minutesLeft(beginFlow(flow, 1, 10), 10)).toBe(15);
    const prolonged = beginFlow(beginFlow(flow, 1, 14), 2, 26);
    expect(minutesLeft(prolonged, 26)).toBe(4);
    expect(beginFlow(prolonged, 3, 27)).toBe(prolonged);
    const exchanging = { ...prolonged, step: steps.exchanging };
    expect(beginFlow(exchanging, 3, 27).device).toMatchObject(codes(3));
  });

  test('a device flow uses the portal only when an installer joins it or somebody opens a link', () => {
    const flow = samplePairing(steps.asking, { device: { appliance: 'a', ...codes(0) } });
    const taken = advance(flow, { ...events.installer, lifetime: 15 * MINUTE }, instantAt(9 * MINUTE));
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
  const installer = { ...events.installer, lifetime: 15 * MINUTE, isLinkUsable: true };
  const taken = advance(flow, installer);
  expect(taken.step).toEqual({ kind: 'asking', earlier: [SAMPLE_LINK] });
  const waiting = advance(taken, events.link);
  const again = advance(waiting, installer, instantAt(20 * MINUTE));
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
  const refused = answered({ kind: 'refused', detail: 'says invalid_grant', portalTime }, 'hash-of-the-code');
  const waiting = advance(exchanging, refused);
  expect(advance(waiting, events.code)).toBe(waiting);
  expect(advance(waiting, { ...events.code, hash: 'another' }).step.kind).toBe('exchanging');
});

test('a code that was never sent is accepted again', () => {
  const waiting = samplePairing(steps.waiting, { spentCodes: ['another'] });
  expect(advance(advance(waiting, events.code), { kind: 'not_sent', hash: 'hash-of-the-code' })).toEqual(waiting);
});

test('a code is not accepted again through the fresh link after a lost answer', () => {
  const asking = advance(advance(samplePairing(steps.waiting), events.code), {
    kind: 'answer_lost',
    hash: 'hash-of-the-code',
  });
  const waiting = advance(asking, events.link);
  expect(waiting.step).toEqual({ kind: 'waiting', link: NEW_LINK });
  expect(advance(waiting, events.code)).toBe(waiting);
});

test.each([
  ['code_refused', events['answered: refused']],
  ['portal_rejected', events['answered: another error']],
  ['answer_lost', { kind: 'answer_lost', hash: SPENT }],
] as const)('a pairing that expires after a failure ends with that failure as its reason: %s', (reason, event) => {
  const after = advance(advance(samplePairing(steps.exchanging, { spentCodes: [SPENT] }), event), events.deadline);
  expect(after.step).toEqual({ kind: 'ended', result: { kind: 'failed', reason } });
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
