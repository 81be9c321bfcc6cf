import { expect, test } from 'vitest';
import { Home } from './home.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** A home whose portal has been out of reach for so long that its grants are tried seldom. */
async function cutOff() {
  const home = await Home.start({ fraction: 0.999 });
  const ids = [await home.paired('wallbox'), await home.paired('heater')];
  await home.portal.unplug();
  await home.time.pass(6 * HOUR);
  return { home, ids };
}

const states = (home: Home, ids: readonly string[]) => ids.map((id) => home.run.grants.get(id)?.health.kind);

test('when an address comes, what did not leave the hub is tried again within seconds', async () => {
  const { home, ids } = await cutOff();
  await using _ = home;
  expect(states(home, ids)).toEqual(['failing', 'failing']);
  await home.portal.plug();
  home.run.grants.networkChanged();
  await home.time.pass(5 * SECOND);
  expect(states(home, ids)).toEqual(['good', 'good']);
});

test('from there on it backs off anew: names may be known a little later than the address', async () => {
  const { home, ids } = await cutOff();
  await using _ = home;
  home.run.grants.networkChanged();
  await home.time.pass(MINUTE);
  await home.portal.plug();
  await home.time.pass(MINUTE);
  expect(states(home, ids)).toEqual(['good', 'good']);
});

test('a network that comes and goes all the time makes no storm of tries', async () => {
  const { home } = await cutOff();
  await using _ = home;
  const before = home.tries;
  for (let passed = 0; passed < HOUR; passed += 6 * SECOND) {
    home.run.grants.networkChanged();
    await home.time.pass(6 * SECOND);
  }
  // Of each grant: one at once, and what backs off from there within the minute until the next.
  expect((home.tries - before) / 2).toBeLessThan(6 * 60);
  expect((home.tries - before) / 2).toBeGreaterThan(60);
});

test('a portal that asked to come back later is left alone', async () => {
  await using home = await Home.start();
  const id = await home.paired();
  home.portal.fail('token', { kind: 'answer', status: 503, headers: { 'retry-after': '1800' } });
  await home.untilRefreshed();
  const sent = home.refreshes;
  home.run.grants.networkChanged();
  await home.time.pass(20 * MINUTE);
  expect(home.refreshes).toBe(sent);
  expect(home.run.grants.get(id)?.health).toMatchObject({ problem: { code: 'portal_deferred' } });
});
