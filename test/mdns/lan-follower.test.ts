import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { LogFields } from '../../src/core/log.ts';
import { AddressChangeHandler } from '../../src/mdns/networks/address-change-handler.ts';
import { logTo } from '../support/log-to.ts';

const rest = async () => {
  for (let count = 0; count < 5; count++) await turn();
};

/** A handler whose first step ends when `finish` is called, and its second one at once. */
function follower() {
  const current: { address: string | null } = { address: '192.168.1.7' };
  const logged: string[] = [];
  const handled: string[] = [];
  const open: (() => void)[] = [];
  let fails = false;
  const write = (event: string, fields: LogFields = {}) => void logged.push(`${event} ${Object.values(fields)[0]}`);
  const following = new AddressChangeHandler({
    address: () => current.address,
    handlers: [
      (moved) => {
        if (fails) throw new Error('no certificate');
        handled.push(`first ${current.address} ${moved}`);
        return new Promise<void>((resolve) => open.push(resolve));
      },
      () => void handled.push(`second ${current.address}`),
    ],
    log: logTo(write),
  });
  return {
    following,
    logged,
    handled,
    fail: () => {
      fails = true;
    },
    async moveTo(address: string | null) {
      current.address = address;
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
  const { handled, logged, moveTo, finish } = follower();
  await moveTo('192.168.1.8');
  await moveTo(null);
  await moveTo('192.168.1.9');
  expect(handled).toEqual(['first 192.168.1.8 true']);
  await finish();
  expect(handled.slice(1)).toEqual(['second 192.168.1.9', 'first 192.168.1.9 true']);
  await finish();
  expect(handled.slice(3)).toEqual(['second 192.168.1.9']);
  expect(logged).toEqual(['address_changed 192.168.1.8', 'address_changed 192.168.1.9']);
});

test('the hub follows a change of a further address without a log line', async () => {
  const { handled, logged, moveTo, finish } = follower();
  await moveTo('192.168.1.7');
  await finish();
  expect(handled).toEqual(['first 192.168.1.7 false', 'second 192.168.1.7']);
  expect(logged).toEqual([]);
});

test('a step that fails does not stop the other steps or the next change', async () => {
  const { handled, logged, moveTo, fail } = follower();
  fail();
  await moveTo('192.168.1.8');
  await moveTo('192.168.1.9');
  expect(handled).toEqual(['second 192.168.1.8', 'second 192.168.1.9']);
  expect(logged.filter((line) => line === 'address_change_failed no certificate')).toHaveLength(2);
});

test('the hub follows no change after it was stopped', async () => {
  const { following, handled, moveTo, finish } = follower();
  await moveTo('192.168.1.8');
  following[Symbol.dispose]();
  await finish();
  await moveTo('192.168.1.9');
  expect(handled).toEqual(['first 192.168.1.8 true']);
});
