import { setTimeout as sleep } from 'node:timers/promises';
import { type Agent, errors } from 'undici';
import { expect, test } from 'vitest';
import { createAgent } from '../support/agent.ts';
import { HubProcess, type TokenReply } from '../support/hub-process.ts';
import { IS_LONG_FORM } from '../support/long.ts';
import { startPortal } from '../support/portal.ts';
import { whoami } from './load.ts';
import { type FleetMember, storeFleet } from './stored-fleet.ts';

const APPLIANCES = IS_LONG_FORM ? 1000 : 70;
/** The lifetime of access tokens, in ms. */
const LIFETIME = 3_600_000;
/** The portal's response time, in ms, as over the internet. */
const PORTAL_TAKES = 100;
/** The hub accepts 250 connections of one address, and 1000 in total. */
const DEVICES = ['127.0.0.11', '127.0.0.12', '127.0.0.13', '127.0.0.14'];
const CONNECTIONS = 240;

const BUSY: TokenReply = { status: 408, headers: {}, body: {} };

interface Served {
  readonly token: string;
  readonly expiresIn: number;
}

test(`${APPLIANCES} appliances with expired tokens that request new ones at once all get them, with one refresh each`, async () => {
  let refreshes = 0;
  await using emulator = await startPortal({
    tokenLifetime: LIFETIME / 1000,
    intercept: {
      async answering({ endpoint }) {
        if (endpoint !== 'token') return;
        refreshes += 1;
        await sleep(PORTAL_TAKES);
      },
    },
  });
  await using hub = await HubProcess.prepare({ emulator, here: true });
  const names = Array.from({ length: APPLIANCES }, (_, index) => `appliance-${index}`);
  const fleet = await storeFleet(hub, emulator, names, LIFETIME);
  refreshes = 0;
  await hub.launch();

  const { certificate } = await hub.ask((control) => control.request('authority'));
  await using agents = new AsyncDisposableStack();
  const devices = DEVICES.map((localAddress) => {
    const agent = createAgent({ connections: CONNECTIONS, localAddress, connect: { ca: certificate } });
    agents.defer(() => agent.destroy());
    return agent;
  });
  const served = await Promise.all(
    fleet.map((appliance, index) => serve(hub, appliance, devices[index % devices.length])),
  );

  expect(refreshes).toBe(APPLIANCES);
  expect(emulator.grants().filter(({ generation }) => generation !== 2)).toEqual([]);
  expect(emulator.observations).toMatchObject({ refreshTokensRepeated: 0, overlappingRefreshes: 0 });
  expect(new Set(served.map(({ token }) => token)).size).toBe(APPLIANCES);
  expect(served.filter(({ expiresIn }) => expiresIn > LIFETIME / 1000)).toEqual([]);
  for (const { token } of served) expect(await whoami(emulator, token)).toBe(200);
});

/** Requests a token until it is issued, and obeys `Retry-After`. */
async function serve(hub: HubProcess, by: FleetMember, dispatcher: Agent | undefined): Promise<Served> {
  if (dispatcher === undefined) throw new Error('there is no device');
  for (;;) {
    const { status, headers, body } = await hub.requestToken(by, {}, dispatcher).catch((error: unknown) => {
      // A kept-alive connection may be closed just when it is reused.
      if (error instanceof errors.SocketError) return BUSY;
      throw error;
    });
    // On a very busy machine the request may have timed out.
    if (status === BUSY.status) continue;
    if (status === 200) return { token: String(body['access_token']), expiresIn: Number(body['expires_in']) };
    expect({ status, ...body }).toMatchObject({ status: 503, error: 'temporarily_unavailable' });
    const retryAfter = Number(headers['retry-after']);
    expect(retryAfter).toBeGreaterThanOrEqual(1);
    await sleep(retryAfter * 1000);
  }
}
