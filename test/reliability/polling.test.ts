import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { describe, expect, it } from 'vitest';
import { startEmulator } from '../../src/emulator/index.ts';
import { systemRandom } from '../../src/system/random.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import {
  addAppliance,
  applianceStatus,
  ask,
  beginPairing,
  codeSends,
  logIn,
  pollTimes,
  rememberIssued,
  stateOf,
  until,
  visit,
} from './fleet.ts';

/** Polls are 5 to 10 s apart where they leave the hub; on the way they may come to lie this much closer, in ms. */
const WIRE = 500;
/** What a machine that has other work may be late with a timer, in ms. */
const LATE = 5000;

describe.concurrent('polling', () => {
  it('goes on every 5 to 10 s, and stops for good with the pairing', async () => {
    await using emulator = await startEmulator({ codeUrlAfterExchange: 'served' });
    await using hub = await HubProcess.start({ emulator });
    const begin = async (name: string) => {
      await addAppliance(hub, name);
      return beginPairing(hub, name);
    };
    const waiting = await begin('waiting');
    const byPoll = await begin('by-poll');
    const byRedirect = await begin('by-redirect');
    const replaced = await begin('replaced');
    const cancelled = await begin('cancelled');
    const removed = await begin('removed');
    const refused = await begin('refused');
    await sleep(9000);

    await emulator.login({ state: byPoll, user: 'demo' });
    await logIn(emulator, byRedirect);
    const replacement = await beginPairing(hub, 'replaced');
    await ask(hub, (control) => control.unpair('cancelled'));
    await ask(hub, (control) => control.removeAppliance('removed'));
    expect(await visit((await emulator.login({ state: refused, deny: true })).location)).toContain('refused');
    const stopped = Date.now();
    await until(hub, 'by-poll', ({ state }) => state === 'active');
    const paired = Date.now();
    await sleep(15_000);

    for (const state of [byRedirect, replaced, cancelled, removed, refused]) {
      const times = pollTimes(emulator, state);
      expect(times.length).toBeGreaterThanOrEqual(1);
      expect(Math.max(...times)).toBeLessThan(stopped);
    }
    expect(Math.max(...pollTimes(emulator, byPoll))).toBeLessThan(paired);
    expect(emulator.polls(byPoll).filter(({ status }) => status === 200)).toHaveLength(1);
    expect(pollTimes(emulator, waiting).length).toBeGreaterThanOrEqual(3);
    expect(pollTimes(emulator, replacement).length).toBeGreaterThanOrEqual(1);
    for (const state of [waiting, byPoll, byRedirect, replaced, replacement, cancelled, removed, refused]) {
      const all = gaps(pollTimes(emulator, state));
      // A redirect has the portal polled at once, which is the last poll then.
      for (const gap of state === byRedirect ? all.slice(0, -1) : all) {
        expect(gap).toBeGreaterThan(5000 - WIRE);
        expect(gap).toBeLessThan(10_000 + LATE);
      }
    }
    expect(codeSends(emulator)).toEqual([1, 1]);
    rememberIssued(emulator);
  });

  it('and the redirect may bring the code at the same moment: it is exchanged once', async () => {
    const secret = systemRandom.token(24);
    // A client for each appliance: by it a poll tells whose it is.
    const clients = Array.from({ length: 9 }, () => ({ id: systemRandom.uuid(), secret }));
    const redirects = new Map<string, string>();
    const pages: Promise<string>[] = [];
    await using emulator = await startEmulator({
      clients,
      codeUrlAfterExchange: 'served',
      intercept: {
        async answering({ endpoint, client }, status) {
          const location = redirects.get(client ?? '');
          if (endpoint !== 'code/get' || status !== 200 || location === undefined) return;
          redirects.delete(client ?? '');
          // The redirect some ms before the poll's answer, at the same moment, or after it.
          const ahead = [6, 3, 1, 0, 0, 0, -1, -3, -6][clients.findIndex(({ id }) => id === client)] ?? 0;
          pages.push(sleep(Math.max(0, -ahead)).then(() => visit(location)));
          await sleep(Math.max(0, ahead));
        },
      },
    });
    const toml = clients.flatMap(({ id }, index) => [
      `[portals.p${index}]`,
      `base_url = "${emulator.baseUrl}"`,
      `frontend_url = "${emulator.frontendUrl}"`,
      `client_id = "${id}"`,
      'client_secret_file = "portal.secret"',
    ]);
    await using hub = await HubProcess.start({ emulator, toml: toml.join('\n') });
    for (const [index, { id }] of clients.entries()) {
      await addAppliance(hub, `appliance-${index}`, `p${index}`);
      const { location } = await emulator.login({ state: await beginPairing(hub, `appliance-${index}`), user: 'demo' });
      redirects.set(id, location);
    }
    for (const index of clients.keys()) await until(hub, `appliance-${index}`, ({ state }) => state === 'active');
    for (const page of await Promise.all(pages)) expect(page).toContain('is connected');
    await sleep(8000);
    expect(pages).toHaveLength(clients.length);
    expect(codeSends(emulator)).toEqual(clients.map(() => 1));
    expect(emulator.observations.codesRepeated).toBe(0);
    expect(emulator.grants()).toHaveLength(clients.length);
    for (const index of clients.keys()) {
      expect(await applianceStatus(hub, `appliance-${index}`)).toMatchObject({ state: 'active', problem: null });
    }
    rememberIssued(emulator);
  });

  it('goes on after a code that the portal refused, and takes the next one', async () => {
    await using emulator = await startEmulator({ codeLifetime: 1 });
    await using hub = await HubProcess.start({ emulator });
    await addAppliance(hub, 'wallbox');
    const { state, cookie } = await beginByShortLink(hub, 'wallbox');
    const { location } = await emulator.login({ state, user: 'demo' });
    await sleep(1500);
    const { body } = await request(location, { headers: { cookie } });
    expect(await body.text()).toContain('not connected yet');
    const before = pollTimes(emulator, state).length;
    await eventually(async () => pollTimes(emulator, state).length > before, 30);
    await logIn(emulator, state);
    await until(hub, 'wallbox', (status) => status.state === 'active');
    expect(codeSends(emulator)).toEqual([1, 1]);
    rememberIssued(emulator);
  });
});

/** Begins a pairing, and opens the hub's own link. @returns the cookie by which the hub knows whom it has sent to the portal */
async function beginByShortLink(hub: HubProcess, name: string): Promise<{ state: string; cookie: string }> {
  const waiting = await ask(hub, async (control) => {
    const reports = control.followPairing(await control.pair(name), new AbortController().signal);
    for await (const report of reports) if (report.event === 'waiting') return report;
    throw new Error('the pairing has ended');
  });
  const { headers, body } = await request(waiting.short_url ?? '');
  await body.dump();
  const [cookie = ''] = String(headers['set-cookie']).split(';');
  rememberSecrets([cookie.split('=')[1] ?? '']);
  return { state: stateOf(waiting.authorize_url), cookie };
}

function gaps(times: readonly number[]): number[] {
  return times.slice(1).map((time, index) => time - (times[index] ?? 0));
}
