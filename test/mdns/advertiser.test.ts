import { expect, it } from 'vitest';
import type { Log, LogFields } from '../../src/core/log.ts';
import { MdnsAdvertiser } from '../../src/mdns/announcing/advertiser.ts';
import type { LanState } from '../../src/mdns/networks/lan-watch.ts';
import { systemRandom } from '../../src/system/random.ts';
import { FakeTime } from '../support/fake-time.ts';
import { logTo } from '../support/log-to.ts';

/** A network on which mDNS is impossible: no interface of this machine has the address. */
const UNUSABLE_NETWORK: LanState = {
  address: { address: '198.51.100.9', family: 'IPv4', interface: 'eth9', loopback: false },
  addresses: ['198.51.100.9'],
  segments: [
    {
      interfaces: [{ name: 'eth9', ipv4: '198.51.100.9', ipv6: false, epoch: '' }],
      addresses: [{ family: 'IPv4', address: '198.51.100.9' }],
    },
  ],
  interfaceCidrs: [],
};
const NO_NETWORK: LanState = { address: null, addresses: [], segments: [], interfaceCidrs: [] };

it('the hub logs once why it can not be announced, and retries without a log line until the network changes', async () => {
  const { announcing, lines, time } = start();
  expect(announcing.announcementProblem).toBeNull();
  await announcing.update(UNUSABLE_NETWORK);
  for (let times = 0; times < 5; times++) {
    await time.pass(5000);
    await announcing.update(UNUSABLE_NETWORK);
  }
  expect(lines.map(({ event }) => event)).toEqual(['announcement_failed']);
  expect(lines[0]?.fields).toMatchObject({ error: expect.stringContaining('198.51.100.9'), retry_in: 5 });
  expect(announcing.announcementProblem).toMatch(/^can't use mDNS \(UDP port 5353\) at 198\.51\.100\.9: /);
  expect(announcing.idConflict).toBeNull();
  await announcing.update(NO_NETWORK);
  expect(announcing.announcementProblem).toBeNull();
  await announcing[Symbol.asyncDispose]();
  expect(lines).toHaveLength(1);
});

it('the hub reports no problem on loopback, and reports a configured address that no interface has', async () => {
  const { announcing, lines } = start();
  const address = { address: '127.0.0.1', family: 'IPv4', interface: 'lo', loopback: true } as const;
  await announcing.update({ ...NO_NETWORK, address });
  expect(announcing.announcementProblem).toBeNull();
  await announcing.update({
    ...NO_NETWORK,
    address: { ...address, address: '203.0.113.4', interface: null, loopback: false },
  });
  expect(announcing.announcementProblem).toContain('203.0.113.4');
  await announcing[Symbol.asyncDispose]();
  expect(lines).toEqual([]);
});

it('a hub that has stopped is not announced on a network that comes up a moment later', async () => {
  const { announcing, lines } = start();
  await announcing[Symbol.asyncDispose]();
  await announcing.update(UNUSABLE_NETWORK);
  expect(lines).toEqual([]);
});

function start() {
  const lines: { event: string; fields?: LogFields | undefined }[] = [];
  const write = (event: string, fields?: LogFields) => void lines.push({ event, fields });
  const log: Log = logTo(write);
  const time = new FakeTime();
  const announcing = new MdnsAdvertiser({
    instanceName: 'Cellar hub',
    id: 'latchkey-1',
    httpsPort: 8443,
    txt: () => ({}),
    timers: time,
    random: systemRandom,
    isClone: async () => false,
    log,
  });
  return { announcing, lines, time };
}
