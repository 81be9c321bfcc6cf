import { expect, test } from 'vitest';
import { followPairing } from '../../src/broker/pairings/pairing-administration.ts';
import type { PairingStatus } from '../../src/core/pairings/pairing-administration.ts';
import { MINUTE } from '../core/samples.ts';
import { BrokerHarness } from './broker-harness.ts';
import { beginFlow, openFlow } from './logins.ts';

test('a follower of a pairing gets a new link only when its link is dropped, not for links that others open', async () => {
  const { harness } = await BrokerHarness.startUnpaired();
  const flow = await beginFlow(harness);
  const openPage = async () => {
    await harness.time.pass(MINUTE);
    await openFlow(harness, flow);
  };
  await openPage();
  const run = await harness.beginPairing('wallbox');
  const reports: PairingStatus[] = [];
  const following = (async () => {
    for await (const report of followPairing(run, new AbortController().signal)) reports.push(report);
  })();
  const links = () => reports.flatMap((report) => (report.event === 'waiting' ? [report.authorizeUrl] : []));
  for (let opened = 0; opened < 2; opened++) await openPage();
  expect(links()).toHaveLength(1);
  // The third opening exceeds the number of links, so the reported link is dropped.
  await openPage();
  expect(new Set(links()).size).toBe(2);
  expect(links()).toHaveLength(2);
  await harness.login(run);
  await harness.time.pass(10_000);
  await following;
  expect(reports.at(-1)).toEqual({ event: 'paired', scope: 'Monitoring' });
});

test('a login that grants less than was asked for gives its token, and names what is missing until all is granted', async () => {
  const harness = await BrokerHarness.start();
  const { appliance } = await harness.addAppliance('wallbox', 'Monitoring RemoteControl');
  const unticked = (body: string) => body.replace('"Monitoring RemoteControl"', '"Monitoring"');
  harness.portal.fail('token', { kind: 'alter', with: unticked });
  const run = await harness.beginPairing('wallbox');
  await harness.login(run);
  await harness.time.pass(10_000);
  const reports: PairingStatus[] = [];
  for await (const report of followPairing(run, new AbortController().signal)) reports.push(report);
  expect(reports.at(-1)).toEqual({ event: 'paired', scope: 'Monitoring', missingScope: ['RemoteControl'] });
  expect(harness.statusOf('wallbox')).toMatchObject({
    state: 'active',
    problem: null,
    missingScope: ['RemoteControl'],
  });
  expect(await harness.whoami(await harness.token(appliance.id))).toBe(200);
  // Somebody must log in anyway.
  harness.portal.fail('token', { kind: 'answer', status: 400, body: '{"error":"invalid_grant"}' });
  await harness.run.grants.refresh(appliance.connection);
  expect(harness.statusOf('wallbox')).toMatchObject({ state: 'needs_pairing' });
  expect(harness.statusOf('wallbox')).not.toHaveProperty('missingScope');
  await harness.pairAgain('wallbox');
  expect(harness.statusOf('wallbox')).not.toHaveProperty('missingScope');
});
