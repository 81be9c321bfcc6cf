import { describe, expect, it } from 'vitest';
import type { Emulator } from '../../src/emulator/index.ts';
import { de } from '../../src/page/texts/de.ts';
import { en } from '../../src/page/texts/en.ts';
import { HubClient } from '../lan/hub-client.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { PageVisitor } from '../support/page-visitor.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';

/** A hub whose portal gives device codes. */
interface DeviceHub {
  readonly emulator: Emulator;
  readonly hub: HubProcess;
  readonly client: HubClient;
  readonly visitor: PageVisitor;
}

async function startDeviceHub(parts: AsyncDisposableStack, verificationUriComplete: boolean): Promise<DeviceHub> {
  const emulator = parts.use(await startPortal({ flows: 'device', deviceInterval: 1, verificationUriComplete }));
  const hub = parts.use(await HubProcess.start({ emulator, here: true, portalType: 'oauth2', lan: 'mdns = false' }));
  const client = parts.use(await HubClient.of(hub));
  return { emulator, hub, client, visitor: parts.use(await PageVisitor.signedIn(hub)) };
}

/** Begins a pairing on the page. @returns the path of its page */
async function begin({ hub, visitor }: DeviceHub, name: string): Promise<string> {
  await hub.addAppliance(name);
  const { headers } = await visitor.post(`/appliances/${name}/pair`, { csrf: await visitor.csrf() });
  return String(headers['location']);
}

/** The newest device code that the portal waits for. */
function pendingCode({ emulator }: DeviceHub): string {
  return emulator.devices().at(-1)?.user_code ?? '';
}

describe('a portal whose code a person types', () => {
  let side: DeviceHub;
  setUpOnce(async (parts) => {
    side = await startDeviceHub(parts, false);
  });

  it('the page of a pairing shows the code and the link, and then the result', async () => {
    const path = await begin(side, 'wallbox');
    const { text } = await side.visitor.get(path);
    const code = pendingCode(side);
    expect(code).toMatch(/^[A-Z]{4}-[A-Z]{4}$/);
    expect(text).toContain(`id="user-code">${code}<`);
    expect(text).toContain(en.pairing.enterCode);
    expect(text).toContain(
      `href="${side.emulator.frontendUrl}/oauth2/device" rel="noopener noreferrer" target="_blank"`,
    );
    expect(text).not.toContain(`${path}/address`);
    const pasting = await side.visitor.get(`${path}/address`);
    expect(pasting).toMatchObject({ status: 303, headers: { location: path } });
    await side.emulator.approveDevice({ userCode: code, user: 'demo' });
    await eventually(async () => (await side.hub.appliance('wallbox')).state === 'active');
    expect((await side.visitor.get(path)).text).toContain('wallbox is connected');
  });

  it('a short link shows the code in the language of the browser, and then the result', async () => {
    await side.hub.addAppliance('heat-pump');
    const { pathname: short } = await side.hub.shortLink('heat-pump');
    const code = pendingCode(side);
    const { status, headers, text } = await side.client.http(short, { headers: { 'accept-language': 'de' } });
    expect(status).toBe(200);
    expect(headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' });
    const page = new URL('/oauth2/device', side.emulator.frontendUrl);
    for (const part of [de.portalCode.heading, `>${code}<`, `href="${page}"`, `>${de.portalCode.logIn(page.host)}<`])
      expect(text).toContain(part);
    expect(text).not.toContain(de.portalCode.notOfAppliance);
    await side.emulator.approveDevice({ userCode: code, user: 'demo' });
    await eventually(async () => (await side.hub.appliance('heat-pump')).state === 'active');
    expect((await side.client.http(short)).text).toContain('heat-pump is connected');
  });

  it('the page for the code of an appliance shows the code of the portal, and tells the two apart', async () => {
    const credentials = await side.hub.addAppliance('inverter');
    const { userCode } = await side.client.beginDeviceFlow(credentials);
    const { status, text } = await side.visitor.post('/pair', { user_code: userCode });
    const code = pendingCode(side);
    expect(status).toBe(200);
    expect(code).not.toBe(userCode);
    for (const part of [en.portalCode.heading, en.portalCode.notOfAppliance, `>${code}<`]) expect(text).toContain(part);
    await side.emulator.approveDevice({ userCode: code, user: 'demo' });
    await eventually(async () => (await side.hub.appliance('inverter')).state === 'active');
    expect((await side.visitor.get(`/pair?user_code=${userCode}`)).text).toContain('inverter is connected');
  });
});

it('a portal whose link contains the code: the page asks to compare it, also that for the code of an appliance', async () => {
  await using parts = new AsyncDisposableStack();
  const side = await startDeviceHub(parts, true);
  const path = await begin(side, 'wallbox');
  const { text } = await side.visitor.get(path);
  const code = pendingCode(side);
  expect(text).toContain(`id="user-code">${code}<`);
  expect(text).toContain(en.pairing.compareCode);
  expect(text).not.toContain(en.pairing.enterCode);
  // After the login the browser is at the portal, from which nothing leads back.
  expect(text).toContain('target="_blank"');
  await side.emulator.approveDevice({ userCode: code, deny: true });
  await eventually(async () => (await side.visitor.get(path)).text.includes(en.result.reasons.refused_by_user));

  const { userCode } = await side.client.beginDeviceFlow(await side.hub.addAppliance('inverter'));
  const shown = await side.visitor.post('/pair', { user_code: userCode });
  const link = `${side.emulator.frontendUrl}/oauth2/device?user_code&#61;${pendingCode(side)}" target="_blank"`;
  for (const part of [en.portalCode.compareHeading, en.portalCode.notOfAppliance, `>${pendingCode(side)}<`, link])
    expect(shown.text).toContain(part);
});
