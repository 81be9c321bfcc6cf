import { expect, test } from 'vitest';
import { followPairing } from '../../src/broker/pairings/pairing-administration.ts';
import type { PairingRun } from '../../src/broker/pairings/pairing-run.ts';
import { linksOf } from '../../src/core/pairings/pairing.ts';
import type { PairingStatus } from '../../src/core/pairings/pairing-administration.ts';
import { MINUTE, SECOND } from '../core/samples.ts';
import { BrokerHarness, pairingResult } from './broker-harness.ts';
import { expectPairedByPolling } from './logins.ts';

/** A hub whose home network changes its address, or takes it away. */
async function startMovingHub(address: string | null = '192.168.1.7') {
  const network = { address };
  const redirect = (nonce: string) => network.address && `http://${network.address}:8480/callback/${nonce}`;
  const { harness, appliance } = await BrokerHarness.startUnpaired({ redirect });
  return {
    harness,
    appliance,
    async moveTo(to: string | null) {
      network.address = to;
      harness.run.pairings.onAddressChanged();
      await harness.time.settle();
    },
    /** Changes the address without a notification to the hub. */
    set(to: string | null) {
      network.address = to;
    },
    /** The redirect hosts of the links that the hub requested; null for polling only. */
    requestedHosts: () =>
      harness.portal.requests('config').map(({ query }) => {
        const to = query.get('redirect_url');
        return to === null ? null : new URL(to).hostname;
      }),
  };
}

/** Collects the reports of a pairing. */
function collectReports(run: PairingRun, shortUrl?: () => string | null) {
  const reports: PairingStatus[] = [];
  const ended = (async () => {
    for await (const report of followPairing(run, new AbortController().signal, shortUrl)) reports.push(report);
  })();
  return { reports, ended, links: () => reports.filter((report) => report.event === 'waiting') };
}

test('a changed hub address brings the installer a fresh link, and a login through the old link still succeeds', async () => {
  const network = await startMovingHub();
  const { harness } = network;
  const run = await harness.beginPairing('wallbox');
  const { links, ended, reports } = collectReports(run);
  await harness.time.pass(20 * SECOND);
  const [old] = linksOf(run.pairing.step);

  await network.moveTo('192.168.1.8');
  expect(network.requestedHosts()).toEqual(['192.168.1.7', '192.168.1.8']);
  const [fresh] = linksOf(run.pairing.step);
  expect(links()).toEqual([
    { event: 'waiting', authorizeUrl: old?.authorizeUrl, expiresIn: 900 },
    { event: 'waiting', authorizeUrl: fresh?.authorizeUrl, expiresIn: 880, reason: 'address_changed' },
  ]);

  const state = new URL(old?.authorizeUrl ?? '').searchParams.get('state') ?? '';
  await harness.emulator.login({ state, user: 'demo' });
  await harness.time.pass(10 * SECOND);
  await ended;
  expect(reports.at(-1)).toMatchObject({ event: 'paired' });
  expect(network.requestedHosts()).toHaveLength(2);
});

test('a pairing requests no fresh link while the hub has no address or one that a link leads to already', async () => {
  const network = await startMovingHub();
  const { harness } = network;
  const run = await harness.beginPairing('wallbox');
  const { links } = collectReports(run);
  const { step } = run.pairing;
  await network.moveTo(null);
  await harness.time.pass(MINUTE);
  await network.moveTo('192.168.1.7');
  await harness.time.pass(MINUTE);
  expect(network.requestedHosts()).toHaveLength(1);
  expect(run.pairing.step).toEqual(step);
  expect(links()).toHaveLength(1);

  for (let times = 0; times < 20; times++) {
    await network.moveTo(times % 2 === 0 ? '192.168.1.8' : '192.168.1.7');
    await harness.time.pass(3 * SECOND);
  }
  expect(network.requestedHosts()).toEqual(['192.168.1.7', '192.168.1.8']);
  // Each report has the link that redirects to the hub's current address.
  const [first, second] = links();
  expect(first?.authorizeUrl).not.toBe(second?.authorizeUrl);
  expect(links().at(-1)?.authorizeUrl).toBe(first?.authorizeUrl);
});

test('frequent address changes bring at most one fresh link in 10 s, and the last one leads to the hub', async () => {
  const network = await startMovingHub();
  const run = await network.harness.beginPairing('wallbox');
  for (let number = 10; number < 30; number++) {
    await network.moveTo(`192.168.1.${number}`);
    await network.harness.time.pass(3 * SECOND);
  }
  await network.harness.time.pass(10 * SECOND);
  expect(network.requestedHosts().length).toBeLessThanOrEqual(1 + 70 / 10 + 1);
  expect(network.requestedHosts().at(-1)).toBe('192.168.1.29');
  expect(linksOf(run.pairing.step)).toHaveLength(3);
});

test("a link made without an address, or with a fixed redirect, stays in use when the hub's address changes", async () => {
  const network = await startMovingHub(null);
  await network.harness.beginPairing('wallbox');
  await network.moveTo('192.168.1.7');
  await network.harness.time.pass(MINUTE);
  expect(network.requestedHosts()).toEqual([null]);

  const fixed = await BrokerHarness.start({ redirect: (nonce) => `https://hub.example/callback/${nonce}` });
  await fixed.addAppliance('wallbox');
  await fixed.beginPairing('wallbox');
  fixed.run.pairings.onAddressChanged();
  await fixed.time.pass(MINUTE);
  expect(fixed.portal.requests('config')).toHaveLength(1);
});

test('the hub asks for a fresh link until the portal is reachable again after an address change', async () => {
  const network = await startMovingHub();
  const { harness } = network;
  const run = await harness.beginPairing('wallbox');
  harness.portal.fail('config', ...Array(4).fill({ kind: 'answer', status: 503 } as const));
  await network.moveTo('192.168.1.8');
  expect(pairingResult(run.pairing.step)).toBe('waiting');
  await harness.time.pass(2 * MINUTE);
  expect(network.requestedHosts()).toHaveLength(6);
  expect(linksOf(run.pairing.step)).toHaveLength(2);
  // The portal still answers the polls of the current link.
  expect(harness.events.filter(({ event }) => event === 'portal_unreachable')).toEqual([]);
});

test('a pairing keeps its link if the portal rejects one for the new address, and the hub does not ask again', async () => {
  const network = await startMovingHub();
  const { harness } = network;
  const run = await harness.beginPairing('wallbox');
  harness.portal.fail('config', ...Array(50).fill({ kind: 'answer', status: 403 } as const));
  await network.moveTo('192.168.1.8');
  await harness.time.pass(5 * MINUTE);
  // Once with the redirect, once without.
  expect(network.requestedHosts()).toEqual(['192.168.1.7', '192.168.1.8', null]);
  expect(harness.events.filter(({ event }) => event === 'login_link_rejected')).toHaveLength(1);
  await expectPairedByPolling(harness, run);
});

test('the hub notices at its start that its address changed while it was off', async () => {
  const network = await startMovingHub();
  const { harness } = network;
  await harness.beginPairing('wallbox');
  await harness.stop();
  network.set('192.168.1.8');
  await harness.start();
  await harness.time.settle();
  expect(network.requestedHosts()).toEqual(['192.168.1.7', '192.168.1.8']);
  await harness.restart();
  await harness.time.pass(MINUTE);
  expect(network.requestedHosts()).toHaveLength(2);
});

test('a follower of a pairing gets the short link with each link, and a new one only with a fresh link', async () => {
  const network = await startMovingHub();
  let address: string | null = '192.168.1.7';
  const run = await network.harness.beginPairing('wallbox');
  const { links } = collectReports(run, () => address && `http://${address}/l`);
  await network.harness.time.settle();
  const move = async (to: string | null) => {
    address = to;
    await network.moveTo(to);
    await network.harness.time.pass(20 * SECOND);
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
