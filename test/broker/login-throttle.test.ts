import { describe, expect, it } from 'vitest';
import {
  GROUP_RATE_LIMIT,
  LoginThrottle,
  loginSourceForAddress,
  loginSourceForBrowser,
} from '../../src/broker/access/login-throttle.ts';
import type { ReadInterfaces } from '../../src/system/limits/rate-limit-keys.ts';

const BURST = 1000;
const PER_SECOND = 50;

/** The interfaces of a hub in one IPv4 subnet and, as after a Router Advertisement, two IPv6 subnets. */
function interfacesIn(subnet: string): ReadInterfaces {
  const common = { netmask: '', mac: '', internal: false };
  const six = ['2001:db8::7', '2001:db8:0:1::7'].map((address) => ({
    ...common,
    family: 'IPv6' as const,
    address,
    cidr: `${address}/64`,
    scopeid: 0,
  }));
  return () => ({
    eth0: [{ ...common, family: 'IPv4', address: subnet.split('/')[0] ?? '', cidr: subnet }, ...six],
  });
}

/** Sends one wrong code from each address in turn. @returns how many of them the throttle let through */
function flood(codes: LoginThrottle, addresses: Iterable<string>, interfaces: ReadInterfaces, now = () => 0): number {
  let tried = 0;
  for (const address of addresses) {
    const source = loginSourceForAddress(address, interfaces);
    if (codes.remainingLockMs(source, now()) > 0) continue;
    codes.recordFailure(source, now());
    tried += 1;
  }
  return tried;
}

function* remoteAddresses(count: number): Generator<string> {
  for (let index = 0; index < count; index++) yield `2001:db8:${Math.floor(index / 1000)}:${index % 1000}::1`;
}

function* subnetAddresses(count: number): Generator<string> {
  for (let index = 0; index < count; index++) yield `10.9.${index >> 8}.${index & 255}`;
}

describe('wrong codes from very many addresses', () => {
  const HOME = interfacesIn('192.168.1.7/24');
  const limit = { ...GROUP_RATE_LIMIT, burst: BURST };

  it("wrong codes from many addresses lock out neither the hub's own IPv4 subnets nor a browser that signed in before", () => {
    const codes = new LoginThrottle(limit);
    expect(flood(codes, remoteAddresses(2 * BURST), HOME)).toBe(BURST);
    for (const address of ['203.0.113.9', '2001:db8::9', 'fe80::9%eth0', '2001:db8:ffff::1']) {
      expect(codes.remainingLockMs(loginSourceForAddress(address, HOME), 0)).toBeGreaterThan(0);
    }
    for (const address of ['192.168.1.20', '::ffff:192.168.1.20']) {
      expect(codes.remainingLockMs(loginSourceForAddress(address, HOME), 0)).toBe(0);
    }
    expect(codes.remainingLockMs(loginSourceForBrowser('phone', '203.0.113.9'), 0)).toBe(0);
  });

  it("codes from outside the hub's subnets are checked at most 50 times a second after a burst", () => {
    const codes = new LoginThrottle(limit);
    flood(codes, remoteAddresses(BURST), HOME);
    let now = 0;
    function* steadyFlood(seconds: number): Generator<string> {
      for (const address of remoteAddresses(5 * PER_SECOND * seconds)) {
        now += 1000 / (5 * PER_SECOND);
        yield address;
      }
    }
    const tried = flood(codes, steadyFlood(10), HOME, () => now);
    expect(tried).toBeGreaterThanOrEqual(10 * PER_SECOND - 5);
    expect(tried).toBeLessThanOrEqual(10 * PER_SECOND);
  });

  it("the limit for one of the hub's own subnets locks out nobody from elsewhere", () => {
    const codes = new LoginThrottle(limit);
    const wide = interfacesIn('10.0.0.7/8');
    expect(flood(codes, subnetAddresses(2 * BURST), wide)).toBe(BURST);
    expect(codes.remainingLockMs(loginSourceForAddress('10.200.0.1', wide), 0)).toBeGreaterThan(0);
    expect(codes.remainingLockMs(loginSourceForAddress('203.0.113.9', wide), 0)).toBe(0);
  });

  it('the login throttle remembers wrong codes of 10,000 devices, and then forgets the oldest', () => {
    const codes = new LoginThrottle();
    const first = loginSourceForAddress('192.168.1.20', HOME);
    for (let count = 0; count < 5; count++) codes.recordFailure(first, 0);
    flood(codes, subnetAddresses(9999), HOME);
    expect(codes.remainingLockMs(first, 0)).toBeGreaterThan(0);
    flood(codes, ['203.0.113.9'], HOME);
    expect(codes.remainingLockMs(first, 0)).toBe(0);
  });

  it('the group limit exceeds what a subnet of 65,536 addresses can send in an hour', () => {
    const [tries, locks] = [5, Math.log2(3_600_000 / 30_000)];
    expect(GROUP_RATE_LIMIT.burst).toBeGreaterThan(65_536 * (tries + locks));
    // After the burst, one try per address and hour.
    expect(1000 / GROUP_RATE_LIMIT.interval).toBeGreaterThan(65_536 / 3600);
  });
});

describe('burst of wrong codes', () => {
  const sameSubnet = loginSourceForAddress('192.168.1.66');
  const other = loginSourceForAddress('192.168.1.67');
  const HOUR = 3_600_000;

  it("a burst of wrong codes begins with the first lock and ends two hours after any device's last wrong code", () => {
    const codes = new LoginThrottle();
    for (let count = 0; count < 4; count++) codes.recordFailure(sameSubnet, count);
    expect(codes.burst(4)).toBeNull();
    codes.recordFailure(sameSubnet, 4);
    expect(codes.burst(5)).toEqual({ address: '192.168.1.66', startedAt: 4, lastFailureAt: 4 });
    for (let count = 0; count < 5; count++) codes.recordFailure(other, HOUR);
    expect(codes.burst(3 * HOUR - 1)).toEqual({ address: '192.168.1.67', startedAt: 4, lastFailureAt: HOUR });
    expect(codes.burst(3 * HOUR)).toBeNull();
    codes.recordFailure(other, 4 * HOUR);
    expect(codes.burst(4 * HOUR)).toMatchObject({ startedAt: 4 * HOUR });
  });

  it('a burst of wrong codes lasts while a device keeps trying whenever it may', () => {
    const codes = new LoginThrottle();
    let now = 0;
    for (let count = 0; count < 30; count++) {
      now += codes.recordFailure(sameSubnet, now).lockedMs;
      if (count >= 4) expect(codes.burst(now)).toMatchObject({ startedAt: 0 });
    }
  });
});
