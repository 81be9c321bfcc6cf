import { expect, test } from 'vitest';
import { RequestPacer } from '../../../src/portal/oauth2/request-sender.ts';
import { FakeTime } from '../../support/fake-time.ts';

test('requests keep the shortest time between them, in the order in which they came', async () => {
  const time = new FakeTime();
  const pacer = new RequestPacer(6000, time, time);
  const start = time.now().uptime;
  const sent: [string, number][] = [];
  const send = async (name: string) => {
    await pacer.turn();
    sent.push([name, time.now().uptime - start]);
  };
  const all = [send('first'), send('second'), send('third')];
  await time.pass(12_000);
  await Promise.all(all);
  await time.pass(60_000);
  await send('fourth');
  expect(sent).toEqual([
    ['first', 0],
    ['second', 6000],
    ['third', 12_000],
    ['fourth', 72_000],
  ]);
});
