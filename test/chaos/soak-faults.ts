import type { SeededRandom } from '../support/seeded-random.ts';

/** The emulator's kinds of faults for requests. */
const KINDS: readonly Readonly<Record<string, unknown>>[] = [
  { kind: 'status', status: 500, commit: true },
  { kind: 'status', status: 503, headers: { 'retry-after': '1' } },
  { kind: 'redirect', location: 'https://captive.example/', commit: true },
  { kind: 'not_json', commit: true },
  { kind: 'delay', seconds: 2 },
  { kind: 'hang', commit: true },
  { kind: 'reset_before' },
  { kind: 'commit_then_drop' },
  { kind: 'truncate', bytes: 40 },
  { kind: 'slow_body', bytes_per_second: 200 },
  { kind: 'content_type', content_type: 'text/html' },
  { kind: 'change_members', members: '{"scope":[["deep"]]}' },
  { kind: 'oversize', bytes: 400_000 },
];
/** Random faults hit one request in twenty. */
const BY_CHANCE = { times: null, probability: 0.05 };
const ONCE = { times: 1 };

/**
 * The faults of the soak in the form of the emulator's API: every kind except `origin_down`, which the soak starts at
 * fixed times.
 * @param once true: each kind occurs once at the token endpoint and at handshakes, as soon as possible; else all are
 * random
 */
export function soakFaults(random: SeededRandom, once: boolean): Readonly<Record<string, unknown>>[] {
  const often = once ? ONCE : BY_CHANCE;
  const offset = random.pick([-1, 1]) * 365 * 86_400;
  const kinds = [...KINDS, { kind: 'wrong_date', offset }];
  return [
    ...kinds.map((fault) => ({ ...fault, ...often, endpoint: 'token' })),
    ...['config', 'code/get'].flatMap((endpoint) => kinds.map((fault) => ({ ...fault, ...BY_CHANCE, endpoint }))),
    { kind: 'tls_failure', origin: 'frontend', answer: 'garbage', ...often },
    { kind: 'tls_failure', origin: 'base', answer: 'close', ...often },
  ];
}
