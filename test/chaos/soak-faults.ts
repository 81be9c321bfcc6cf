import type { SeededRandom } from '../support/seeded-random.ts';

/** Every kind of fault that the emulator has for requests, each a request in twenty. */
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
  { kind: 'oversize', bytes: 400_000 },
];
const PROBABILITY = 0.05;

/** The faults of the soak, as the emulator's API takes them; an outage of an origin is a matter of time and not of chance. */
export function everyFault(random: SeededRandom): Readonly<Record<string, unknown>>[] {
  const always = { times: null, probability: PROBABILITY };
  const offset = random.pick([-1, 1]) * 365 * 86_400;
  const kinds = [...KINDS, { kind: 'wrong_date', offset }];
  return [
    ...['token', 'config', 'code/get'].flatMap((endpoint) => kinds.map((fault) => ({ ...fault, ...always, endpoint }))),
    { kind: 'tls_failure', origin: 'frontend', answer: 'garbage', ...always },
    { kind: 'tls_failure', origin: 'base', answer: 'close', ...always },
  ];
}
