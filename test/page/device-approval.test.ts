import { beforeEach, describe, expect, it } from 'vitest';
import type { CredentialsResponse } from '../../src/control/messages.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { HubClient, parseJsonBody } from '../lan/hub-client.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { type PageResponse, PageVisitor } from '../support/page-visitor.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';

let emulator: Emulator;
let hub: HubProcess;
let client: HubClient;
/** A browser that is signed in, and one that is not. */
let installer: PageVisitor;
let stranger: PageVisitor;
let csrf: string;
let made = 0;
let login = '';
let thermostat = '';
let dashboard = '';
let credentials: CredentialsResponse;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
  hub = parts.use(await HubProcess.start({ emulator, here: true }));
  client = parts.use(await HubClient.of(hub));
  installer = parts.use(await PageVisitor.signedIn(hub));
  stranger = parts.use(await PageVisitor.open(hub));
  csrf = await installer.csrf();
});
/** Two appliances that share a login. */
beforeEach(async () => {
  made += 1;
  [login, thermostat, dashboard] = [`netatmo-${made}`, `thermostat-${made}`, `dashboard-${made}`];
  await hub.addConnection(login, 'Monitoring');
  await hub.addAppliance(thermostat, null, null, login);
  credentials = await hub.addAppliance(dashboard, null, null, login);
});

/** An appliance begins a device flow. */
async function begin(of = credentials) {
  const { deviceCode, userCode } = await client.beginDeviceFlow(of);
  return {
    userCode,
    path: `/pair?user_code=${userCode}`,
    question: `/pair/approve?user_code=${userCode}`,
    /** The next poll, as the appliance sends it. */
    async poll() {
      const body = parseJsonBody(await client.poll(of, deviceCode));
      rememberSecrets([body['access_token'], body['refresh_token']].filter((one) => typeof one === 'string'));
      return body;
    },
  };
}

const redirectOf = ({ status, headers }: PageResponse) => [status, headers['location']];
const linkRequests = () => emulator.requests.filter(({ endpoint }) => endpoint === 'config').length;

describe('an appliance whose login is connected already', () => {
  beforeEach(() => hub.pair(login, emulator));

  it('a person with the setup code lets the appliance use the login, without a login at the portal', async () => {
    const flow = await begin();
    const requests = linkRequests();
    for (const path of [flow.path, flow.question]) {
      const { status, text } = await installer.get(path);
      expect(status).toBe(200);
      expect(text).toContain(`<h1>May ${dashboard} use the login “${login}”?</h1>`);
      for (const shown of [flow.userCode, 'Monitoring', thermostat]) expect(text).toContain(shown);
    }
    expect(await flow.poll()).toMatchObject({ error: 'authorization_pending' });
    // However often the button is pressed.
    for (let times = 0; times < 2; times++) {
      const allowed = await installer.post('/pair/approve', { csrf, user_code: flow.userCode });
      expect(redirectOf(allowed)).toEqual([303, flow.path]);
    }
    const result = await installer.get(flow.path);
    expect(result.text).toContain(`<h1>${dashboard} is connected</h1>`);
    expect(await flow.poll()).toMatchObject({ token_type: 'Bearer', refresh_token: expect.any(String) });
    expect(linkRequests()).toBe(requests);
    const approvals = hub.events('device_flow_approved').filter(({ appliance }) => appliance === dashboard);
    expect(approvals).toMatchObject([{ level: 'info', appliance: dashboard, connection: login }]);
    expect(redirectOf(await installer.get(flow.question))).toEqual([303, flow.path]);
  });

  it('the hub tells the appliance that a person has refused it, and the login goes on', async () => {
    const flow = await begin();
    const refused = await installer.post('/pair/refuse', { csrf, user_code: flow.userCode });
    expect(redirectOf(refused)).toEqual([303, flow.path]);
    expect((await installer.get(flow.path)).text).toContain(`<h1>${dashboard} is not connected</h1>`);
    expect(await flow.poll()).toMatchObject({ error: 'access_denied' });
    await installer.post('/pair/approve', { csrf, user_code: flow.userCode });
    expect(await flow.poll()).toMatchObject({ error: 'access_denied' });
    expect(await hub.connection(login)).toMatchObject({ state: 'active', problem: null });
  });

  it('a browser that is not signed in is asked for the setup code, and then sees the question', async () => {
    const flow = await begin();
    const requests = linkRequests();
    const { status, text } = await stranger.get(flow.path);
    expect(status).toBe(200);
    expect(text).toContain(`May ${dashboard} use the login “${login}”?`);
    expect(text).toContain('<form method="get" action="/pair/approve">');
    // Who else uses the login is not for everybody.
    expect(text).not.toContain(thermostat);
    expect(text).not.toContain('method="post"');
    // Not even a form that a page did not offer leads to the portal: its login would replace that of the others.
    expect(redirectOf(await stranger.post('/pair', { user_code: flow.userCode }))).toEqual([303, flow.path]);
    for (const action of ['approve', 'refuse']) {
      const sent = await stranger.post(`/pair/${action}`, { csrf, user_code: flow.userCode });
      expect(sent.status).toBe(401);
    }
    expect(linkRequests()).toBe(requests);
    expect(await flow.poll()).toMatchObject({ error: 'authorization_pending' });

    const asked = await stranger.get(flow.question);
    expect(asked.status).toBe(401);
    const [, next] = /name="next" value="([^"]+)"/.exec(asked.text) ?? [];
    const address = next?.replaceAll(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)));
    await using person = await PageVisitor.open(hub);
    const signedIn = await person.signIn((await hub.setupCode()).code, address);
    expect(redirectOf(signedIn)).toEqual([303, flow.question]);
    expect((await person.get(flow.question)).text).toContain('id="allow"');
  });

  it("an appliance can't begin a login of its own while an installer connects the shared one anew", async () => {
    await hub.beginPairing(login);
    const flow = await begin();
    const requests = linkRequests();
    const { text } = await stranger.get(flow.path);
    expect(text).toContain('<form method="get" action="/pair/approve">');
    expect(text).not.toContain('method="post"');
    expect(redirectOf(await stranger.post('/pair', { user_code: flow.userCode }))).toEqual([303, flow.path]);
    expect(linkRequests()).toBe(requests);

    expect(redirectOf(await installer.get(flow.question))).toEqual([303, flow.path]);
    expect((await installer.get(flow.path)).text).toContain(`<h1>Connect ${dashboard} with the login “${login}”?</h1>`);
    const link = await installer.post('/pair', { user_code: flow.userCode });
    expect(String(link.headers['location'])).toContain(emulator.frontendUrl);
  });

  it('the question is only about the current code of a waiting appliance', async () => {
    const former = await begin();
    const flow = await begin();
    expect(redirectOf(await installer.get(former.question))).toEqual([303, former.path]);
    expect((await installer.get(former.path)).text).toContain(`${dashboard} now shows a different code`);
    await installer.post('/pair/approve', { csrf, user_code: former.userCode });
    expect(await flow.poll()).toMatchObject({ error: 'authorization_pending' });
    expect(redirectOf(await installer.get('/pair/approve'))).toEqual([303, '/pair?user_code=']);
    expect((await installer.get('/pair?user_code=BBBB-BBBB')).status).toBe(404);
  });

  it('an appliance with a login of its own may use that again, and a login at the portal is possible too', async () => {
    const name = `wallbox-${made}`;
    const own = await hub.addAppliance(name, 'Monitoring');
    await hub.pair(name, emulator);
    const flow = await begin(own);
    const { text } = await stranger.get(flow.path);
    expect(text).toContain(`May ${name} use its login again?`);
    expect(text).toContain('Log in at the portal instead');
    expect((await installer.get(`/appliances/${name}`)).text).toContain(
      `${name} asks whether it may use its login again.`,
    );
    const link = await stranger.post('/pair', { user_code: flow.userCode });
    expect(link.status).toBe(303);
    expect(String(link.headers['location'])).toContain(emulator.frontendUrl);
    await installer.post('/pair/approve', { csrf, user_code: flow.userCode });
    expect(await flow.poll()).toMatchObject({ token_type: 'Bearer' });
  });
});

describe('an appliance whose login is not connected', () => {
  it('the code of the appliance leads to the portal without a setup code, and the login connects all its appliances', async () => {
    const flow = await begin();
    const { text } = await stranger.get(flow.path);
    expect(text).toContain(`<h1>Connect ${dashboard} with the login “${login}”?</h1>`);
    expect(redirectOf(await installer.get(flow.question))).toEqual([303, flow.path]);
    await installer.post('/pair/approve', { csrf, user_code: flow.userCode });
    expect(await flow.poll()).toMatchObject({ error: 'authorization_pending' });
    const link = await stranger.post('/pair', { user_code: flow.userCode });
    const state = new URL(String(link.headers['location'])).searchParams.get('state') ?? '';
    const result = await client.logIn(emulator, state);
    expect(result.text).toContain(`<h1>${dashboard} and ${thermostat} are connected</h1>`);
    expect(result.text).toContain(`This is about the login “${login}”.`);
    expect(await flow.poll()).toMatchObject({ token_type: 'Bearer' });
    expect((await hub.appliance(thermostat)).state).toBe('active');
  });
});
