import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type Emulator, startEmulator } from '../../src/emulator/index.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import {
  addAppliance,
  applianceStatus,
  beginPairing,
  codeSends,
  logIn,
  pairFleet,
  refreshSends,
  rememberIssued,
  startRefresh,
  stateOf,
  until,
  visit,
} from './fleet.ts';
import { whoami } from './load.ts';

describe.concurrent('kill -9', () => {
  it('leaves an open pairing as it is: the same link, and both ways to the end', async () => {
    await using emulator = await startEmulator();
    await using hub = await HubProcess.start({ emulator });
    for (const name of ['by-redirect', 'by-poll']) await addAppliance(hub, name);
    const redirected = await beginPairing(hub, 'by-redirect');
    const polled = await beginPairing(hub, 'by-poll');
    for (let kill = 0; kill < 2; kill++) {
      await hub.kill('SIGKILL');
      await hub.launch();
    }
    expect(stateOf((await applianceStatus(hub, 'by-redirect')).authorize_url) === redirected).toBe(true);
    expect(stateOf((await applianceStatus(hub, 'by-poll')).authorize_url) === polled).toBe(true);

    const { location } = await emulator.login({ state: redirected, user: 'demo' });
    await emulator.login({ state: polled, user: 'demo' });
    expect(await visit(location)).toContain('is connected');
    await until(hub, 'by-poll', ({ state }) => state === 'active');
    expect(codeSends(emulator)).toEqual([1, 1]);
    rememberIssued(emulator);
  });

  it.each(['received', 'answering'] as const)(
    'in the middle of a code exchange (%s) makes a fresh link, and never sends the code again',
    async (moment) => {
      await using portal = await holdingPortal(moment);
      const { emulator } = portal;
      await using hub = await HubProcess.start({ emulator });
      await addAppliance(hub, 'wallbox');
      const first = await beginPairing(hub, 'wallbox');
      const { location } = await emulator.login({ state: first, user: 'demo' });
      portal.hold(1);
      void visit(location).catch(() => undefined);
      await portal.held(1);
      await hub.kill('SIGKILL');
      portal.release();
      await hub.launch();

      const fresh = stateOf(
        (await until(hub, 'wallbox', (status) => status.authorize_url !== undefined)).authorize_url,
      );
      expect(fresh).not.toBe(first);
      // Somebody reloads the page that the login ended on.
      expect(await visit(location)).not.toContain('is connected');
      await sleep(6000);
      expect(codeSends(emulator)).toEqual([1]);
      expect(await applianceStatus(hub, 'wallbox')).toMatchObject({ state: 'pairing' });

      await logIn(emulator, fresh);
      await until(hub, 'wallbox', ({ state }) => state === 'active');
      expect(codeSends(emulator)).toEqual([1, 1]);
      expect(emulator.observations.codesRepeated).toBe(0);
      rememberIssued(emulator);
    },
  );

  it('in the middle of refreshes at a strict portal keeps the grants or says what was lost', async () => {
    const unsent = ['before-1', 'before-2'];
    const lost = ['after-1', 'after-2'];
    await using before = await holdingPortal('received');
    await using after = await holdingPortal('answering');
    for (const { portal, names, state } of [
      { portal: before, names: unsent, state: 'active' },
      { portal: after, names: lost, state: 'needs_pairing' },
    ]) {
      const { emulator } = portal;
      await using hub = await HubProcess.start({ emulator });
      const fleet = await pairFleet(hub, emulator, names);
      portal.hold(names.length);
      for (const name of names) startRefresh(hub, name);
      await portal.held(names.length);
      await hub.kill('SIGKILL');
      // The portal has to see that nobody waits any more.
      await sleep(100);
      portal.release();
      await hub.launch();

      // By the log: on a busy machine the replay is over before anybody can ask.
      expect(await lostAnswers(hub)).toEqual(names);
      for (const [index, name] of names.entries()) {
        const status = await until(hub, name, (found) => found.state !== 'retrying');
        expect(status.state).toBe(state);
        if (state === 'needs_pairing') {
          expect(status.problem).toMatchObject({
            code: 'refused',
            message: expect.stringMatching(/answer was lost on \d/),
          });
        }
        // The token at hand lives, and is served.
        const answer = await hub.requestToken(fleet[index] ?? expect.fail());
        expect(answer).toMatchObject({ status: 200 });
        expect(await whoami(emulator, answer.body['access_token'])).toBe(200);
      }
      // Neither time nor a restart makes it send the dead token again.
      await hub.kill('SIGKILL');
      await hub.launch();
      await sleep(4000);
      const sends = refreshSends(emulator);
      expect(sends.map((token) => token.sends)).toEqual(names.map(() => 2));
      if (state === 'needs_pairing') {
        const name = names[0] ?? expect.fail();
        await logIn(emulator, await beginPairing(hub, name));
        await until(hub, name, (found) => found.state === 'active');
      }
      rememberIssued(emulator);
    }
  });
});

/** A portal whose token endpoint keeps requests waiting: before it does anything, or when it has and is to answer. */
async function holdingPortal(moment: 'received' | 'answering'): Promise<
  AsyncDisposable & {
    readonly emulator: Emulator;
    /** Holds the next `count` requests. */
    hold(count: number): void;
    /** Resolves when so many are held. */
    held(count: number): Promise<void>;
    release(): void;
  }
> {
  let toHold = 0;
  let holding = 0;
  let gate = Promise.withResolvers<void>();
  const emulator = await startEmulator({
    intercept: {
      async [moment]({ endpoint }: { endpoint: string }) {
        if (endpoint !== 'token' || toHold === 0) return;
        toHold -= 1;
        holding += 1;
        await gate.promise;
      },
    },
  });
  return {
    emulator,
    hold(count) {
      gate = Promise.withResolvers();
      toHold = count;
      holding = 0;
    },
    async held(count) {
      await eventually(async () => holding === count);
    },
    release: () => gate.resolve(),
    [Symbol.asyncDispose]: () => emulator.close(),
  };
}

/** The appliances of which the run that goes on has told that an answer was lost. */
async function lostAnswers(hub: HubProcess): Promise<string[]> {
  const lines = (await readFile(hub.log, 'utf8')).split('\n').filter((line) => line.includes('"answer lost"'));
  return lines.map((line) => String(JSON.parse(line).appliance)).sort();
}
