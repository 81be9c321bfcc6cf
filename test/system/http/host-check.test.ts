import { describe, expect, it } from 'vitest';
import { isVerifiedOwnHost } from '../../../src/system/http/host-check.ts';

const nowhere = () => false;

describe('host of a request', () => {
  it.for([
    ['192.168.1.7', '192.168.1.7'],
    ['192.168.1.7', '::ffff:192.168.1.7'],
    ['[fd77::7]', 'fd77:0::7'],
    ['[fe80::7]', 'fe80::7%eth0'],
  ] as const)("the host %s is the hub's own for a connection to the address %s", ([hostname, local]) => {
    expect(isVerifiedOwnHost(hostname, local, nowhere)).toBe(true);
  });

  it.for([
    ['192.168.1.7', '192.168.1.8'],
    ['192.168.1.7', '::ffff:192.168.1.8'],
    ['[fd77::7]', '::ffff:192.168.1.7'],
  ] as const)(
    "the host %s is not the hub's own for a connection to %s unless the server certificate covers it",
    ([hostname, local]) => {
      expect(isVerifiedOwnHost(hostname, local, nowhere)).toBe(false);
      expect(isVerifiedOwnHost(hostname, local, () => true)).toBe(true);
    },
  );
});
