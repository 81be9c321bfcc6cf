import { expect, test } from 'vitest';
import { followPairing } from '../../src/broker/pairings/pairing-administration.ts';
import type { PairingRun } from '../../src/broker/pairings/pairing-run.ts';
import { linksOf } from '../../src/core/pairings/pairing.ts';
import type { PairingStatus } from '../../src/core/pairings/pairing-administration.ts';
import { BrokerHarness, pairingResult } from './broker-harness.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** A hub on a home network that gives it now this address and now that, and at times none. */
async function movingHome(address: string | null = '192.168.1.7') {
  const place = { address };
  const redirect = (nonce: string) => place.address && `http://${place.address}:8480/callback/${nonce}`;
  const home = await BrokerHarness.start({ redirect });
  const { appliance } = await home.addAppliance('wallbox');
  return {
    home,
    appliance,
    async moveTo(to: string | null) {
      place.address = to;
      home.run.pairings.onAddressChanged();
      await home.time.settle();
    },
    /** Changes while the hub does not look. */
    set(to: string | null) {
      place.address = to;
    },
    /** The hosts that links were asked to lead to; null for polling only. */
    asked: () =>
      home.portal.requests('config').map(({ query }) => {
        const to = query.get('redirect_url');
        return to === null ? null : new URL(to).hostname;
      }),
    async [Symbol.asyncDispose]() {
      await home[Symbol.asyncDispose]();
    },
  };
}

/** What whoever waits for a pairing is told, as it comes. */
function followed(run: PairingRun, shortUrl?: () => string | null) {
  const reports: PairingStatus[] = [];
  const ended = (async () => {
    for await (const report of followPairing(run, new AbortController().signal, shortUrl)) reports.push(report);
  })();
  return { reports, ended, links: () => reports.filter((report) => report.event === 'waiting') };
}

test('a changed hub address brings the installer a fresh link, and a login through the old link still succeeds', async () => {
  await using place = await movingHome();
  const { home } = place;
  const run = await home.beginPairing('wallbox');
  const { links, ended, reports } = followed(run);
  await home.time.pass(20 * SECOND);
  const [old] = linksOf(run.pairing.step);

  await place.moveTo('192.168.1.8');
  expect(place.asked()).toEqual(['192.168.1.7', '192.168.1.8']);
  const [fresh] = linksOf(run.pairing.step);
  expect(links()).toEqual([
    { event: 'waiting', authorizeUrl: old?.authorizeUrl, expiresIn: 900 },
    { event: 'waiting', authorizeUrl: fresh?.authorizeUrl, expiresIn: 880, reason: 'address_changed' },
  ]);

  const state = new URL(old?.authorizeUrl ?? '').searchParams.get('state') ?? '';
  await home.emulator.login({ state, user: 'demo' });
  await home.time.pass(10 * SECOND);
  await ended;
  expect(reports.at(-1)).toMatchObject({ event: 'paired' });
  expect(place.asked()).toHaveLength(2);
});

test('a pairing requests no fresh link while the hub has no address or one that a link leads to already', async () => {
  await using place = await movingHome();
  const { home } = place;
  const run = await home.beginPairing('wallbox');
  const { links } = followed(run);
  const { step } = run.pairing;
  await place.moveTo(null);
  await home.time.pass(MINUTE);
  await place.moveTo('192.168.1.7');
  await home.time.pass(MINUTE);
  expect(place.asked()).toHaveLength(1);
  expect(run.pairing.step).toEqual(step);
  expect(links()).toHaveLength(1);

  for (let times = 0; times < 20; times++) {
    await place.moveTo(times % 2 === 0 ? '192.168.1.8' : '192.168.1.7');
    await home.time.pass(3 * SECOND);
  }
  expect(place.asked()).toEqual(['192.168.1.7', '192.168.1.8']);
  // Each time the link that leads to where the hub is.
  const [first, second] = links();
  expect(first?.authorizeUrl).not.toBe(second?.authorizeUrl);
  expect(links().at(-1)?.authorizeUrl).toBe(first?.authorizeUrl);
});

test('frequent address changes bring at most one fresh link in 10 s, and the last one leads to the hub', async () => {
  await using place = await movingHome();
  const run = await place.home.beginPairing('wallbox');
  for (let number = 10; number < 30; number++) {
    await place.moveTo(`192.168.1.${number}`);
    await place.home.time.pass(3 * SECOND);
  }
  await place.home.time.pass(10 * SECOND);
  expect(place.asked().length).toBeLessThanOrEqual(1 + 70 / 10 + 1);
  expect(place.asked().at(-1)).toBe('192.168.1.29');
  expect(linksOf(run.pairing.step)).toHaveLength(3);
});

test("a link made without an address, or with a fixed redirect, stays in use when the hub's address changes", async () => {
  await using place = await movingHome(null);
  await place.home.beginPairing('wallbox');
  await place.moveTo('192.168.1.7');
  await place.home.time.pass(MINUTE);
  expect(place.asked()).toEqual([null]);

  await using fixed = await BrokerHarness.start({ redirect: (nonce) => `https://hub.example/callback/${nonce}` });
  await fixed.addAppliance('wallbox');
  await fixed.beginPairing('wallbox');
  fixed.run.pairings.onAddressChanged();
  await fixed.time.pass(MINUTE);
  expect(fixed.portal.requests('config')).toHaveLength(1);
});

test('the hub asks for a fresh link until the portal is reachable again after an address change', async () => {
  await using place = await movingHome();
  const { home } = place;
  const run = await home.beginPairing('wallbox');
  home.portal.fail('config', ...Array(4).fill({ kind: 'answer', status: 503 } as const));
  await place.moveTo('192.168.1.8');
  expect(pairingResult(run.pairing.step)).toBe('waiting');
  await home.time.pass(2 * MINUTE);
  expect(place.asked()).toHaveLength(6);
  expect(linksOf(run.pairing.step)).toHaveLength(2);
  // The polls of the link at hand are answered all the while.
  expect(home.events.filter(({ event }) => event === 'portal_unreachable')).toEqual([]);
});

test('a pairing keeps its link if the portal rejects one for the new address, and the hub does not ask again', async () => {
  await using place = await movingHome();
  const { home } = place;
  const run = await home.beginPairing('wallbox');
  home.portal.fail('config', ...Array(50).fill({ kind: 'answer', status: 403 } as const));
  await place.moveTo('192.168.1.8');
  await home.time.pass(5 * MINUTE);
  // Once with the redirect, once without.
  expect(place.asked()).toEqual(['192.168.1.7', '192.168.1.8', null]);
  expect(home.events.filter(({ event }) => event === 'login_link_rejected')).toHaveLength(1);
  await home.login(run);
  await home.time.pass(10 * SECOND);
  expect(pairingResult(run.pairing.step)).toBe('paired');
});

test('the hub notices at its start that its address changed while it was off', async () => {
  await using place = await movingHome();
  const { home } = place;
  await home.beginPairing('wallbox');
  await home.stop();
  place.set('192.168.1.8');
  await home.start();
  await home.time.settle();
  expect(place.asked()).toEqual(['192.168.1.7', '192.168.1.8']);
  await home.stop();
  await home.start();
  await home.time.pass(MINUTE);
  expect(place.asked()).toHaveLength(2);
});

test('a device flow gets a fresh link for a changed address only when somebody opens the page', async () => {
  await using place = await movingHome();
  const { home, appliance } = place;
  const flow = await home.run.deviceFlows.begin(appliance, null);
  if (flow.kind !== 'begun') throw new Error(flow.kind);
  const open = () => home.run.deviceFlows.openLink(flow.authorization.userCode);
  const first = await open();
  expect(await open()).toEqual(first);
  await place.moveTo('192.168.1.8');
  await home.time.pass(MINUTE);
  expect(place.asked()).toEqual(['192.168.1.7']);
  const second = await open();
  expect(second).toMatchObject({ kind: 'link' });
  expect(second).not.toEqual(first);
  await place.moveTo('192.168.1.9');
  expect(await open()).not.toEqual(second);
  expect(place.asked()).toEqual(['192.168.1.7', '192.168.1.8', '192.168.1.9']);
});

test('a follower of a pairing gets the short link with each link, and a new one only with a fresh link', async () => {
  await using place = await movingHome();
  let address: string | null = '192.168.1.7';
  const run = await place.home.beginPairing('wallbox');
  const { links } = followed(run, () => address && `http://${address}/l`);
  await place.home.time.settle();
  const move = async (to: string | null) => {
    address = to;
    await place.moveTo(to);
    await place.home.time.pass(20 * SECOND);
  };
  await move(null);
  await move('192.168.1.7');
  expect(links()).toMatchObject([{ shortUrl: 'http://192.168.1.7/l' }]);
  await move('192.168.1.8');
  expect(links()).toMatchObject([
    { shortUrl: 'http://192.168.1.7/l' },
    { shortUrl: 'http://192.168.1.8/l', reason: 'address_changed' },
  ]);
  expect(links()[1]?.authorizeUrl).not.toBe(links()[0]?.authorizeUrl);
});

test('a follower of a pairing gets the new short link after an address change that leaves the link the same', async () => {
  await using home = await BrokerHarness.start();
  await home.addAppliance('wallbox');
  const run = await home.beginPairing('wallbox');
  let address: string | null = null;
  const { links } = followed(run, () => address && `http://${address}/l`);
  for (const at of ['192.168.1.7', '192.168.1.8', null]) {
    await home.time.settle();
    address = at;
    home.run.pairings.onAddressChanged();
  }
  await home.time.settle();
  const { authorizeUrl } = linksOf(run.pairing.step)[0] ?? {};
  const moved = { event: 'waiting', authorizeUrl, expiresIn: 900, reason: 'address_changed' };
  expect(links()).toEqual([
    { event: 'waiting', authorizeUrl, expiresIn: 900 },
    { ...moved, shortUrl: 'http://192.168.1.7/l' },
    { ...moved, shortUrl: 'http://192.168.1.8/l' },
  ]);
});
