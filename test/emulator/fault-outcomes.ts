import { expect } from 'vitest';
import type { Emulator, FaultOptions } from '../../src/emulator/index.ts';

const REFRESH = { endpoint: 'token', grantType: 'refresh_token' } as const;

/** Every kind of fault that a client sees in a response. Those from `delay` on, a client should tolerate. */
const FAULTS = {
  status: { ...REFRESH, kind: 'status', status: 503, body: '{"error":"temporarily_unavailable"}' },
  redirect: { ...REFRESH, kind: 'redirect', location: 'http://127.0.0.1:1/', status: 307 },
  not_json: { ...REFRESH, kind: 'not_json' },
  reset_before: { ...REFRESH, kind: 'reset_before' },
  commit_then_drop: { ...REFRESH, kind: 'commit_then_drop' },
  truncate: { ...REFRESH, kind: 'truncate', bytes: 20 },
  content_type: { ...REFRESH, kind: 'content_type', contentType: 'text/plain' },
  delay: { ...REFRESH, kind: 'delay', seconds: 0.1 },
  slow_body: { ...REFRESH, kind: 'slow_body', bytesPerSecond: 2000 },
  oversize: { ...REFRESH, kind: 'oversize', bytes: 100_000 },
  wrong_date: { ...REFRESH, kind: 'wrong_date', offset: -86_400 },
} as const satisfies Record<string, FaultOptions>;

/** The outcomes of the faults that a client should tolerate. */
export const UNNOTICED = { delay: 'good', slow_body: 'good', oversize: 'good', wrong_date: 'good' };

/**
 * Adds each fault in turn, and lets the client refresh.
 * @param refresh rejects if the client reports an error
 * @returns `good`, or a summary of the error, by the fault
 */
export async function outcomesOfFaults(
  emulator: Emulator,
  refresh: () => Promise<unknown>,
  summarize: (error: unknown) => string = String,
): Promise<Record<string, string>> {
  const outcomes: Record<string, string> = {};
  for (const [kind, fault] of Object.entries<FaultOptions>(FAULTS)) {
    const { id } = emulator.addFault(fault);
    outcomes[kind] = await refresh().then(() => 'good', summarize);
    expect(emulator.faults.find((found) => found.id === id)?.hits, kind).toBe(1);
  }
  return outcomes;
}
