// Faults as they are asked for over the API.
import fc from 'fast-check';
import { sometimes, value } from '../texts.ts';
import type { Facts } from './values.ts';

const ENDPOINTS = ['config', 'code/get', 'code/set', 'authorize', 'token', 'whoami', '*'];
const endpoint = fc.constantFrom(...ENDPOINTS);

/** A fault, good or not, that costs no answer its status whatever a mutation makes of it. */
export function harmlessFault({ victimId }: Facts, good: boolean): fc.Arbitrary<object> {
  const who = { endpoint, client: fc.constant(victimId), times: fc.constant(1) };
  const right = fc.oneof(
    fc.record({ kind: fc.constant('wrong_date'), ...who, offset: fc.constantFrom(0, -3600, 1e10) }),
    fc.record({ kind: fc.constant('content_type'), ...who, content_type: fc.constantFrom('text/plain', 'x') }),
  );
  const odd = fc.record({ endpoint: fc.constant('token'), kind: value, status: value, never: value });
  return good ? right : sometimes<object>(50, odd, right);
}

/** A fault, in force for whatever comes; of a kind for each turn. */
export function fault(clientId: string, turn: number): fc.Arbitrary<Readonly<Record<string, unknown>>> {
  const often = {
    times: fc.constantFrom(1, 3, null),
    probability: fc.constantFrom(1, 0.5),
    every: fc.constantFrom(1, 2),
  };
  const where = sometimes(
    50,
    sometimes(70, fc.constant({ endpoint: 'token', grant_type: 'refresh_token' }), fc.constant({ endpoint: 'token' })),
    fc.record({ endpoint }),
  );
  const narrowed = fc
    .tuple(where, sometimes(30, fc.constant({ client: clientId }), fc.constant({})), fc.record(often))
    .map((parts): object => Object.assign({}, ...parts));
  const commit = fc.boolean();
  const origin = fc.constantFrom('base', 'frontend');
  const kinds: readonly Kind[] = [
    [
      'status',
      narrowed,
      {
        commit,
        status: fc.integer({ min: 200, max: 599 }),
        headers: fc.constant({ 'x-a': 'b' }),
        body: fc.constant('{"a":'),
      },
    ],
    [
      'redirect',
      narrowed,
      { commit, location: fc.constant('http://127.0.0.1:1/'), status: fc.constantFrom(301, 302, 307, 308) },
    ],
    ['not_json', narrowed, { commit }],
    ['delay', narrowed, { commit, seconds: fc.constantFrom(0.001, 0.02, 60) }],
    ['hang', narrowed, { commit }],
    ['reset_before', narrowed, {}],
    ['commit_then_drop', narrowed, {}],
    ['truncate', narrowed, { bytes: fc.constantFrom(0, 1, 20, 1_000_000) }],
    ['slow_body', narrowed, { bytes_per_second: fc.constantFrom(1, 500, 1_000_000) }],
    ['content_type', narrowed, { content_type: fc.constant('text/html') }],
    ['oversize', narrowed, { bytes: fc.constantFrom(1, 100_000, 1e10) }],
    ['wrong_date', narrowed, { offset: fc.constantFrom(-1e10, 3600, 1e10) }],
    ['tls_failure', fc.record(often), { origin, answer: fc.constantFrom('garbage', 'close') }],
    ['origin_down', fc.constant({}), { origin, seconds: fc.constant(0.02) }],
  ];
  const [kind, at, members] = kinds[turn % kinds.length] ?? ['not_json', narrowed, {}];
  return fc.tuple(at, fc.record(members)).map(([common, own]) => ({ kind, ...common, ...own }));
}

type Kind = readonly [kind: string, at: fc.Arbitrary<object>, members: Readonly<Record<string, fc.Arbitrary<unknown>>>];
