import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { LogFields } from '../../src/core/log.ts';
import { AddressChangeHandler } from '../../src/mdns/networks/address-change-handler.ts';
import { logTo } from '../support/log-to.ts';

const rest = async () => {
  for (let turns = 0; turns < 5; turns++) await turn();
};

/** A follower whose first step ends when it is told to, and its second one at once. */
function follower() {
  const place: { address: string | null } = { address: '192.168.1.7' };
  const told: string[] = [];
  const seen: string[] = [];
  const open: (() => void)[] = [];
  let fails = false;
  const write = (event: string, fields: LogFields = {}) => void told.push(`${event} ${Object.values(fields)[0]}`);
  const following = new AddressChangeHandler({
    address: () => place.address,
    handlers: [
      (moved) => {
        if (fails) throw new Error('no certificate');
        seen.push(`first ${place.address} ${moved}`);
        return new Promise<void>((resolve) => open.push(resolve));
      },
      () => void seen.push(`second ${place.address}`),
    ],
    log: logTo(write),
  });
  return {
    following,
    told,
    seen,
    fail: () => {
      fails = true;
    },
    async moveTo(address: string | null) {
      place.address = address;
      following.notify();
      await rest();
    },
    async finish() {
      open.shift()?.();
      await rest();
    },
  };
}

test('the hub follows changes of its addresses in order, and skips to the last of several', async () => {
  const { seen, told, moveTo, finish } = follower();
  await moveTo('192.168.1.8');
  await moveTo(null);
  await moveTo('192.168.1.9');
  expect(seen).toEqual(['first 192.168.1.8 true']);
  await finish();
  expect(seen.slice(1)).toEqual(['second 192.168.1.9', 'first 192.168.1.9 true']);
  await finish();
  expect(seen.slice(3)).toEqual(['second 192.168.1.9']);
  expect(told).toEqual(['address_changed 192.168.1.8', 'address_changed 192.168.1.9']);
});

test('the hub follows a change of a further address without a log line', async () => {
  const { seen, told, moveTo, finish } = follower();
  await moveTo('192.168.1.7');
  await finish();
  expect(seen).toEqual(['first 192.168.1.7 false', 'second 192.168.1.7']);
  expect(told).toEqual([]);
});

test('a step that fails does not stop the other steps or the next change', async () => {
  const { seen, told, moveTo, fail } = follower();
  fail();
  await moveTo('192.168.1.8');
  await moveTo('192.168.1.9');
  expect(seen).toEqual(['second 192.168.1.8', 'second 192.168.1.9']);
  expect(told.filter((line) => line === 'address_change_failed no certificate')).toHaveLength(2);
});

test('the hub follows no change after it was stopped', async () => {
  const { following, seen, moveTo, finish } = follower();
  await moveTo('192.168.1.8');
  following[Symbol.dispose]();
  await finish();
  await moveTo('192.168.1.9');
  expect(seen).toEqual(['first 192.168.1.8 true']);
});
