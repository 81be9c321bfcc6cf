import { writeFileSync } from 'node:fs';
import type { NetworkInterfaceInfo } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { excludeUnstableAddresses, readIpv6Flags } from '../../src/mdns/networks/kernel.ts';
import { stateFolder } from '../support/state-folder.ts';

const [STABLE, TEMPORARY, OLD, OLD_TEMPORARY, TENTATIVE, DUPLICATE] = ['80', '01', '20', '21', '41', 'c8'];

describe('the IPv6 addresses that the hub uses', () => {
  it.each<[what: string, flags: Readonly<Record<string, string | undefined>>, left: readonly string[]]>([
    ['are all that last', { 'fd00::1': STABLE, '2001:db8::1': '00' }, ['fd00::1', '2001:db8::1']],
    [
      'are no temporary ones',
      { '2001:db8::9': TEMPORARY, '2001:db8::8': OLD_TEMPORARY, '2001:db8::1': '00' },
      ['2001:db8::1'],
    ],
    ['are none of a prefix that goes', { '2001:db8:1::1': OLD, '2001:db8:2::1': '00' }, ['2001:db8:2::1']],
    ['are none that may be another host’s', { 'fd00::1': DUPLICATE, 'fd00::2': TENTATIVE }, []],
    ['are temporary ones where there is nothing better', { 'fd00::1': TEMPORARY, 'fd00::2': OLD }, ['fd00::1']],
    ['are old ones where there is nothing better', { 'fd00::1': OLD, 'fe80::1': STABLE }, ['fd00::1', 'fe80::1']],
    ['are all where the kernel says nothing', { 'fd00::1': undefined }, ['fd00::1']],
  ])('the IPv6 addresses of a hub %s', (_, flags, expected) => {
    expect(steady(flags)).toEqual(expected);
  });

  it('the IPv6 addresses of a hub include a configured one, whatever its flags', () => {
    expect(steady({ 'fd00::1': STABLE, 'fd00::2': TEMPORARY }, 'fd00::2')).toEqual(['fd00::1', 'fd00::2']);
  });
});

it('the hub knows no IPv6 flags if the kernel has no table', () => {
  expect(readIpv6Flags('/proc/no-such-table').size).toBe(0);
});

/** The addresses of an interface that remain, given their flags in the kernel's table. */
function steady(flags: Readonly<Record<string, string | undefined>>, keeping = 'auto'): readonly string[] {
  using folder = stateFolder();
  const file = join(folder.path, 'if_inet6');
  const rows = Object.entries(flags).filter(([, flag]) => flag !== undefined);
  writeFileSync(file, rows.map(([address, flag]) => `${digits(address)} 02 40 00 ${flag}     eth0\n`).join(''));
  const entries = [ipv4('192.168.1.20'), ...Object.keys(flags).map(ipv6)];
  const found = excludeUnstableAddresses({ eth0: entries, lo: [ipv6('::1')] }, readIpv6Flags(file), keeping);
  expect(found['eth0']?.[0]?.address).toBe('192.168.1.20');
  expect(found['lo']).toHaveLength(1);
  return found['eth0']?.slice(1).map(({ address }) => address) ?? [];
}

function digits(address: string): string {
  const [head = '', tail = ''] = address.split('::').map((part) => part.split(':'));
  const groups = [...head, ...Array(8 - head.length - tail.length).fill('0'), ...tail];
  return groups.map((group) => String(group).padStart(4, '0')).join('');
}

function ipv4(address: string): NetworkInterfaceInfo {
  return { address, family: 'IPv4', netmask: '', mac: '02:00:00:00:00:01', internal: false, cidr: `${address}/24` };
}

function ipv6(address: string): NetworkInterfaceInfo {
  return { ...ipv4(address), family: 'IPv6', cidr: `${address}/64`, scopeid: 0 };
}
