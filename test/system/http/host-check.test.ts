import { describe, expect, it } from 'vitest';
import { isVerifiedOwnHost } from '../../../src/system/http/host-check.ts';

const nowhere = () => false;

describe('an address that a request names', () => {
  it.for([
    ['192.168.1.7', '192.168.1.7'],
    ['192.168.1.7', '::ffff:192.168.1.7'],
    ['[fd77::7]', 'fd77:0::7'],
    ['[fe80::7]', 'fe80::7%eth0'],
  ] as const)('%s can only mean the hub where the connection came to %s', ([hostname, local]) => {
    expect(isVerifiedOwnHost(hostname, local, nowhere)).toBe(true);
  });

  it.for([
    ['192.168.1.7', '192.168.1.8'],
    ['192.168.1.7', '::ffff:192.168.1.8'],
    ['[fd77::7]', '::ffff:192.168.1.7'],
  ] as const)('%s may be another’s where it came to %s, and the leaf is not for it', ([hostname, local]) => {
    expect(isVerifiedOwnHost(hostname, local, nowhere)).toBe(false);
    expect(isVerifiedOwnHost(hostname, local, () => true)).toBe(true);
  });
});
