import { beforeEach, describe, expect, it } from 'vitest';
import type { LogFields } from '../../../src/core/log.ts';
import { ClientRateLimiter } from '../../../src/system/limits/client-rate-limiter.ts';
import { FakeTime } from '../../support/fake-time.ts';
import { logTo } from '../../support/log-to.ts';

const EVENT = 'too_many_registrations';

let time: FakeTime;
let lines: { readonly event: string; readonly fields: LogFields | undefined }[];
let limit: ClientRateLimiter;

beforeEach(() => {
  time = new FakeTime();
  lines = [];
  const log = logTo((event, fields, level) => level === 'warn' && lines.push({ event, fields }));
  limit = new ClientRateLimiter(EVENT, { burst: 3, interval: 6000 }, { clock: time, log });
});

function take(times: number, address = '10.0.0.1'): boolean[] {
  return Array.from({ length: times }, () => limit.take(address).ok);
}

describe('rate limit by client address', () => {
  it('the rate limiter allows a burst of requests, then one in each interval', () => {
    expect(take(5)).toEqual([true, true, true, false, false]);
    time.skip(6000);
    expect(take(2)).toEqual([true, false]);
    time.skip(60_000);
    expect(take(4)).toEqual([true, true, true, false]);
  });

  it('the rate limiter returns the time until the next allowed request, in whole seconds', () => {
    take(3);
    expect(limit.take('10.0.0.1')).toEqual({ ok: false, retryAfter: 6 });
    time.skip(4500);
    expect(limit.peek('10.0.0.1')).toEqual({ ok: false, retryAfter: 2 });
    time.skip(1500);
    expect(limit.peek('10.0.0.1')).toEqual({ ok: true });
    expect(limit.peek('10.0.0.1')).toEqual({ ok: true });
  });

  it('each IPv4 address has its own rate limit, and a remote IPv6 network of 64 bits has one', () => {
    expect(take(4, '10.0.0.1')[3]).toBe(false);
    expect(take(1, '10.0.0.2')).toEqual([true]);
    take(2, '2001:db8::1:2');
    expect(take(2, '2001:db8::9:9')).toEqual([true, false]);
    expect(take(1, '2001:db8:0:1::2')).toEqual([true]);
    expect(lines.at(-1)?.fields).toEqual({ address: '2001:db8:0:0::/64', count: 4 });
  });

  it("each address of the hub's own IPv6 networks has its own rate limit", () => {
    expect(take(4, 'fe80::1%eth0')).toEqual([true, true, true, false]);
    expect(lines.at(-1)?.fields).toEqual({ address: 'fe80::1%eth0', count: 4 });
    expect(take(1, 'fe80::2%eth0')).toEqual([true]);
  });

  it('the rate limiter logs a burst once, with the address and the count', () => {
    take(1000);
    expect(lines).toEqual([{ event: EVENT, fields: { address: '10.0.0.1', count: 4 } }]);
    // The burst is not over: it was never quiet for long enough.
    time.skip(12_000);
    take(50);
    expect(lines).toHaveLength(1);
    time.skip(18_000);
    take(4);
    expect(lines).toHaveLength(2);
    expect(lines[1]?.fields).toEqual({ address: '10.0.0.1', count: 4 });
  });

  it('the rate limiter logs a burst that does not end once an hour', () => {
    for (let passed = 0; passed < 125 * 60_000; passed += 12_000) {
      take(20);
      time.skip(12_000);
    }
    expect(lines).toHaveLength(3);
    expect(Number(lines[1]?.fields?.['count'])).toBeGreaterThan(5000);
  });
});
