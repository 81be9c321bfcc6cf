import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { CredentialsResponse } from '../../src/control/messages.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { HubProcess } from '../support/hub-process.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';
import { HubClient, type HubResponse, parseJsonBody } from './hub-client.ts';

const ATTACKER = '127.0.0.2';
const APPLIANCE = '127.0.0.3';

let emulator: Emulator;
let hub: HubProcess;
let client: HubClient;
let heater: CredentialsResponse;
let pump: CredentialsResponse;
/** How many requests the portal got. */
let portalRequests = 0;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal({ intercept: { answering: () => void portalRequests++ } }));
  hub = parts.use(await HubProcess.start({ emulator, here: true }));
  client = parts.use(await HubClient.of(hub));
  heater = await hub.addAppliance('heater');
  pump = await hub.addAppliance('pump');
  await hub.pair('heater', emulator);
  await hub.pair('pump', emulator);
});

/** Sends this many requests as fast as possible. */
function hammer(times: number, send: (index: number) => Promise<HubResponse>): Promise<HubResponse[]> {
  return Promise.all(Array.from({ length: times }, (_, index) => send(index)));
}

describe('guessed client secrets', () => {
  it('hundreds of wrong secrets from one device are refused and throttled, and other appliances are served as usual', async () => {
    await using attacker = client.from(ATTACKER);
    await using appliance = client.from(APPLIANCE);
    const before = portalRequests;
    const startedAt = performance.now();
    const tries = hammer(300, (index) => attacker.tokenFor({ ...heater, client_secret: `guess-${index}` }));
    const served = hammer(20, (index) => appliance.tokenFor(index % 2 === 0 ? heater : pump));
    const valid = hammer(10, () => attacker.tokenFor(heater));
    const [replies, ofAppliance, ofAttacker] = await Promise.all([tries, served, valid]);
    // One more every six seconds.
    const refilled = Math.ceil((performance.now() - startedAt) / 6000);
    const [checked, slowed] = [401, 429].map((status) => replies.filter((reply) => reply.status === status));
    expect((checked?.length ?? 0) + (slowed?.length ?? 0)).toBe(300);
    expect(checked?.length).toSatisfy((count: number) => count >= 10 && count <= 10 + refilled);
    for (const response of slowed ?? []) {
      expect(parseJsonBody(response)).toMatchObject({ error: 'invalid_client' });
      expect(Number(response.headers['retry-after'])).toSatisfy((s: number) => s >= 1 && s <= 6);
    }
    // The right secret is accepted from every address, even from the attacker's.
    for (const reply of [...ofAppliance, ...ofAttacker]) expect(reply.status).toBe(200);
    expect(portalRequests).toBe(before);
    await expect
      .poll(() => hub.events('too_many_failed_authentications'))
      .toEqual([expect.objectContaining({ level: 'warn', address: ATTACKER, count: 11 })]);
  });

  it('wrong secrets from another device have a limit of their own, for all endpoints together', async () => {
    await using other = client.from('127.0.0.4');
    let count = 0;
    while (count < 30 && (await other.tokenFor({ ...heater, client_secret: 'wrong' })).status === 401) count++;
    expect(count).toSatisfy((tries: number) => tries >= 10 && tries < 30);
    expect((await other.tokenFor(heater)).status).toBe(200);
    for (const path of ['/oauth/device_authorization', '/oauth/revoke']) {
      expect((await other.post(path, 'token=x', { ...heater, client_secret: 'wrong' })).status, path).toBe(429);
    }
  });

  it("neither a guessed nor a right client secret appears in the hub's log", () => {
    const log = readFileSync(hub.log, 'utf8');
    for (const secret of ['guess-', heater.client_secret, pump.client_secret]) expect(log).not.toContain(secret);
  });
});

describe('an unknown client_id', () => {
  it('an unknown client_id gets exactly the same response as a wrong secret', async () => {
    await using device = client.from('127.0.0.5');
    const wrong = await device.tokenFor({ ...heater, client_secret: 'wrong' });
    const unknown = await device.tokenFor({ client_id: crypto.randomUUID(), client_secret: 'wrong' });
    const seen = ({ status, text, headers: { date, ...headers } }: HubResponse) => ({ status, text, headers });
    expect(seen(unknown)).toEqual(seen(wrong));
  });
});
