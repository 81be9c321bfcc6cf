// Faults as they are asked for over the API.
import type { Dice } from './dice.ts';
import { value } from './mutations.ts';
import type { Values } from './values.ts';

/** A fault, good or not, that costs no answer its status whatever a mutation makes of it. */
export function harmlessFault(values: Values): object {
  const { dice, facts, good } = values;
  if (!good && dice.chance(0.5))
    return { endpoint: 'token', kind: value(dice), status: value(dice), never: value(dice) };
  const who = { endpoint: endpoint(dice), client: facts.victimId, times: 1 };
  return dice.chance(0.5)
    ? { kind: 'wrong_date', ...who, offset: dice.of([0, -3600, 1e10], 0) }
    : { kind: 'content_type', ...who, content_type: dice.of(['text/plain', 'x'], '') };
}

/** A fault of each kind, in force for whatever comes; `turn` chooses the kind. */
export function fault(dice: Dice, clientId: string, turn: number): Record<string, unknown> {
  const often = {
    times: dice.of([1, 3, null], null),
    probability: dice.of([1, 0.5], 1),
    every: dice.of([1, 2], 1),
  };
  const at = dice.chance(0.3) ? 'token' : endpoint(dice);
  const narrowed = {
    endpoint: at,
    ...(at === 'token' && dice.chance(0.5) && { grant_type: 'refresh_token' }),
    ...(dice.chance(0.3) && { client: clientId }),
    ...often,
  };
  const commit = { commit: dice.chance(0.5) };
  const origin = dice.of(['base', 'frontend'], 'base');
  const kinds: readonly Record<string, unknown>[] = [
    { kind: 'status', ...narrowed, ...commit, status: 200 + dice.below(400), headers: { 'x-a': 'b' }, body: '{"a":' },
    {
      kind: 'redirect',
      ...narrowed,
      ...commit,
      location: 'http://127.0.0.1:1/',
      status: dice.of([301, 302, 307, 308], 302),
    },
    { kind: 'not_json', ...narrowed, ...commit },
    { kind: 'delay', ...narrowed, ...commit, seconds: dice.of([0.001, 0.02, 60], 1) },
    { kind: 'hang', ...narrowed, ...commit },
    { kind: 'reset_before', ...narrowed },
    { kind: 'commit_then_drop', ...narrowed },
    { kind: 'truncate', ...narrowed, bytes: dice.of([0, 1, 20, 1_000_000], 0) },
    { kind: 'slow_body', ...narrowed, bytes_per_second: dice.of([1, 500, 1_000_000], 1) },
    { kind: 'content_type', ...narrowed, content_type: 'text/html' },
    { kind: 'oversize', ...narrowed, bytes: dice.of([1, 100_000, 1e10], 1) },
    { kind: 'wrong_date', ...narrowed, offset: dice.of([-1e10, 3600, 1e10], 0) },
    { kind: 'tls_failure', origin, ...often, answer: dice.of(['garbage', 'close'], '') },
    { kind: 'origin_down', origin, seconds: 0.02 },
  ];
  return kinds[turn % kinds.length] ?? {};
}

function endpoint(dice: Dice): string {
  return dice.of(['config', 'code/get', 'code/set', 'authorize', 'token', 'whoami', '*'], '*');
}
