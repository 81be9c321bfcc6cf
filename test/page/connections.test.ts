import { beforeEach, describe, expect, it } from 'vitest';
import type { Emulator } from '../../src/emulator/index.ts';
import { HubClient } from '../lan/hub-client.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { type PageResponse, PageVisitor } from '../support/page-visitor.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';

/** The form key of a page, which a form carries once. */
const formKey = (index: number) => `form-key-number-${String(index).padStart(6, '0')}`;

let emulator: Emulator;
let hub: HubProcess;
let visitor: PageVisitor;
let csrf: string;
let made = 0;
/** A connection for appliances to share, with the permission `Monitoring`. */
let login = '';

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
  hub = parts.use(await HubProcess.start({ emulator, here: true }));
  visitor = parts.use(await PageVisitor.signedIn(hub));
  csrf = await visitor.csrf();
});
beforeEach(async () => {
  login = `login-${++made}`;
  await hub.addConnection(login, 'Monitoring');
});

const send = (path: string, more: Record<string, string> = {}) => visitor.post(path, { csrf, ...more });
const redirectOf = ({ status, headers }: PageResponse) => [status, headers['location']];

async function share(...names: string[]): Promise<void> {
  for (const name of names) await hub.addAppliance(name, null, null, login);
}

describe('the form that gives another name', () => {
  it('an appliance and a login get another name that people see, on their pages', async () => {
    const name = `heatpmup-${made}`;
    await hub.addAppliance(name);
    for (const [path, heading, typed] of [
      [`/appliances/${name}`, (title: string) => title, `Wärmepumpe ${made}`],
      [`/connections/${login}`, (title: string) => `Login “${title}”`, `Netatmo ${made}`],
    ] as const) {
      const before = await visitor.get(path);
      expect(before.text).toContain(`action="${path}/rename"`);
      expect(redirectOf(await send(`${path}/rename`, { name: ` ${typed} ` }))).toEqual([303, path]);
      expect((await visitor.get(path)).text).toContain(`<h1>${heading(typed)}</h1>`);
    }
  });

  it('the form says beside the field why a name is not possible, and keeps what was typed', async () => {
    const name = `lamp-${made}`;
    for (const one of [name, `taken-${made}`]) await hub.addAppliance(one);
    for (const [path, typed, text] of [
      [`/appliances/${name}`, '', 'Type a name.'],
      [`/appliances/${name}`, 'x'.repeat(65), 'This name is not possible.'],
      [`/appliances/${name}`, `Taken ${made}`, 'There is already an appliance with this name'],
      [`/appliances/${name}`, login, 'There is already a login with this name.'],
      [`/connections/${login}`, `Taken ${made}`, 'There is already a login with this name.'],
    ] as const) {
      const { status, text: page } = await send(`${path}/rename`, { name: typed });
      expect([status, page]).toEqual([400, expect.stringContaining(text)]);
      expect(page).toContain(`value="${typed}"`);
      expect(page).toContain('aria-invalid="true"');
    }
  });
});

describe('the form that adds a login to share', () => {
  it('the form adds a connection once, however often it is sent, and leads to its page', async () => {
    const name = `netatmo-${made}`;
    const fields = { form: formKey(made), name, scope: 'Monitoring RemoteControl' };
    const sent = await Promise.all([send('/connections/add', fields), send('/connections/add', fields)]);
    for (const response of sent) expect(redirectOf(response)).toEqual([303, `/connections/${name}`]);
    expect(redirectOf(await send('/connections/add', fields))).toEqual([303, `/connections/${name}`]);
    expect(await hub.connection(name)).toMatchObject({ scope: 'Monitoring RemoteControl', appliances: [] });
    const page = await visitor.get(`/connections/${name}`);
    expect(page.text).toContain('No appliance uses this login yet.');
    expect(page.text).toContain(`action="/connections/${name}/pair"`);
  });

  it('the form says beside the field what is wrong with the name or the permissions', async () => {
    for (const [fields, text] of [
      [{ name: 'x'.repeat(65) }, 'This name is not possible.'],
      [{ name: login }, 'There is already a login with this name.'],
      [{ name: 'fine', scope: 'not"so' }, 'This is too long or has a character that is not allowed.'],
    ] as const) {
      const response = await send('/connections/add', { form: formKey(made), ...fields });
      expect(response).toMatchObject({ status: 400, text: expect.stringContaining(text) });
      expect(response.text).toContain('aria-invalid="true"');
    }
  });
});

describe('the page of a connection', () => {
  it('the page of a connection shows its appliances, its account and its history, and can refresh and disconnect it', async () => {
    const [one, other] = [`thermostat-${made}`, `dashboard-${made}`];
    await share(one, other);
    await hub.pair(login, emulator);
    const { status, text } = await visitor.get(`/connections/${login}`);
    expect(status).toBe(200);
    for (const name of [one, other]) expect(text).toContain(`href="/appliances/${name}"`);
    expect(text).toContain('Connected after a login');
    const before = (await hub.connection(login)).last_refresh;
    expect(before).not.toBeNull();
    expect(redirectOf(await send(`/connections/${login}/refresh`))).toEqual([303, `/connections/${login}`]);
    expect((await visitor.get(`/connections/${login}`)).text).toContain('Access refreshed');

    const question = await visitor.get(`/connections/${login}/unpair`);
    expect(question.text).toContain(`access to the portal: ${other} and ${one}.`);
    expect(redirectOf(await send(`/connections/${login}/unpair`))).toEqual([303, `/connections/${login}`]);
    expect((await hub.connection(login)).state).toBe('unpaired');
  });

  it('a page or a form of an unknown connection says that there is none', async () => {
    const page = await visitor.get('/connections/nobody/remove');
    expect(page).toMatchObject({ status: 404, text: expect.stringContaining('does not know this login.') });
    const form = await send('/connections/nobody/remove');
    expect(form).toMatchObject({ status: 404, text: expect.stringContaining('Login not found') });
  });

  it('the page of a pairing names the login and its appliances, and leads back to the login', async () => {
    const [one, other] = [`thermostat-${made}`, `dashboard-${made}`];
    await share(one, other);
    // Connecting one of the appliances connects their login.
    const [status, path] = redirectOf(await send(`/appliances/${one}/pair`));
    expect(status).toBe(303);
    expect(redirectOf(await send(`/connections/${login}/pair`))).toEqual([303, path]);
    const { text } = await visitor.get(String(path));
    expect(text).toContain(`<h1>Connect the login “${login}”</h1>`);
    expect(text).toContain(`Used by ${other} and ${one}`);
    expect(text).toContain(`href="/connections/${login}"`);
    expect(redirectOf(await send(`${path}/cancel`))).toEqual([303, `/connections/${login}`]);
    expect(redirectOf(await visitor.get(`/p/${one}`, { 'sec-fetch-site': 'none' }))[0]).toBe(303);
    expect((await hub.connection(login)).state).toBe('pairing');
  });
});

describe('removing a connection', () => {
  it('a connection in use is removed only after a question that names its appliances', async () => {
    const name = `thermostat-${made}`;
    const unused = await visitor.get(`/connections/${login}/remove`);
    expect(unused.text).toContain('The hub deletes the login. This cannot be undone.');
    expect(unused.text).not.toContain('even_if_used');
    await share(name);
    // The hub asks again, because an appliance has begun to use it since the question.
    const { status, text } = await send(`/connections/${login}/remove`);
    expect(status).toBe(409);
    expect(text).toContain(`needs a login of its own: ${name}.`);
    const question = await visitor.get(`/connections/${login}/remove`);
    expect(question.text).toContain(`needs a login of its own: ${name}.`);
    expect(question.text).toContain('name="even_if_used" value="yes"');
    expect(redirectOf(await send(`/connections/${login}/remove`, { even_if_used: 'yes' }))).toEqual([303, '/']);
    expect(await hub.appliance(name)).toMatchObject({ connection: name, state: 'unpaired' });
  });
});

describe('the login of an appliance', () => {
  it('the form for a new appliance adds it to the chosen login, which the link of the login has chosen', async () => {
    const name = `blinds-${made}`;
    const form = await visitor.get(`/appliances/add?login=${login}`);
    expect(form.text).toContain(`<option value="${login}" selected>${login}</option>`);
    const fields = { form: formKey(made), name, connection: login, scope: 'ignored', portal: 'ignored' };
    const added = await send('/appliances/add', fields);
    const [status, credentials] = redirectOf(added);
    expect(status).toBe(303);
    expect(redirectOf(await send('/appliances/add', fields))).toEqual([303, credentials]);
    expect(await hub.appliance(name)).toMatchObject({ connection: login, scope: 'Monitoring' });
    const shown = await visitor.get(String(credentials));
    rememberSecrets([/id="client-secret">([^<]+)</.exec(shown.text)?.[1] ?? '']);
    expect(shown.text).toContain('id="connect"');
    await hub.pair(login, emulator);
    const later = await visitor.get(String(credentials));
    expect(later.text).toContain(`It uses the login “${login}”, which is connected`);
    expect(later.text).not.toContain('id="connect"');
    // The next one probably shares it, too.
    const [, chosen = ''] = /name="login" value="([^"]*)"/.exec(later.text) ?? [];
    const another = await send(`${String(credentials)}/done`, { next: 'add', login: chosen });
    expect(redirectOf(another)).toEqual([303, `/appliances/add?login=${login}`]);
  });

  it('an appliance is called what stands on its cabinet, from the form to its login', async () => {
    const [name, title] = [`waermepumpe-keller-${made}`, `Wärmepumpe Keller ${made}`];
    const added = await send('/appliances/add', { form: formKey(made), name: title });
    const credentials = await visitor.get(String(added.headers['location']));
    rememberSecrets([/id="client-secret">([^<]+)</.exec(credentials.text)?.[1] ?? '']);
    expect(credentials.text).toContain(`${title} has been added.`);
    expect(await hub.appliance(name)).toMatchObject({ name, title });
    expect(redirectOf(await send(`${String(added.headers['location'])}/done`))[0]).toBe(303);
    const page = await visitor.get(`/appliances/${name}`);
    expect(page.text).toContain(`<h1>${title}</h1>`);
    expect(page.text).toContain(`<dt>Name in commands</dt><dd><code>${name}</code>`);
    const paths = [];
    for (const _ of ['one visit', 'another']) paths.push(redirectOf(await send(`/appliances/${name}/pair`))[1]);
    expect(paths[1]).toBe(paths[0]);
    expect((await visitor.get(String(paths[0]))).text).toContain(`Connect ${title}`);
    // Only the first visit has started a pairing.
    expect(hub.events('pairing_started').filter(({ connection }) => connection === name)).toHaveLength(1);
  });

  it('the page of an appliance that shares a login leads to the login, and leaves the login to its own page', async () => {
    const [one, other] = [`thermostat-${made}`, `dashboard-${made}`];
    await share(one, other);
    await hub.pair(login, emulator);
    const { text } = await visitor.get(`/appliances/${one}`);
    expect(text).toContain(`href="/connections/${login}"`);
    for (const action of ['unpair', 'refresh', 'pair']) expect(text).not.toContain(`/${action}"`);

    const question = await visitor.get(`/appliances/${one}/remove`);
    expect(question.text).toContain(`The login “${login}” stays.`);
    await send(`/appliances/${one}/remove`);
    expect(await hub.connection(login)).toMatchObject({ state: 'active', appliances: [other] });
  });

  it('an appliance is moved to another login at the same portal with the same permissions', async () => {
    const name = `wallbox-${made}`;
    await hub.addAppliance(name, 'Monitoring');
    const page = await visitor.get(`/appliances/${name}`);
    expect(page.text).toContain(`href="/appliances/${name}/move"`);
    const form = await visitor.get(`/appliances/${name}/move`);
    expect(form.text).toContain(`name="login-${login}" value="yes">`);
    expect(form.text).toContain(`name="login-${name}" value="yes" checked>`);
    expect(form.text).toContain('the hub removes it, because it is not connected.');
    for (let times = 0; times < 2; times++) {
      const moved = await send(`/appliances/${name}/move`, { [`login-${login}`]: 'yes' });
      expect(redirectOf(moved)).toEqual([303, `/appliances/${name}`]);
    }
    expect((await hub.appliance(name)).connection).toBe(login);
    expect((await visitor.get(`/appliances/${name}/move`)).text).toContain('you can remove it on its page.');
    await expect(hub.connection(name)).rejects.toThrow('there is no connection');
  });

  it('an appliance gets other permissions from a new login, as its page says, and keeps its secret', async () => {
    const name = `wallbox-${made}`;
    const credentials = await hub.addAppliance(name, 'RemoteControl');
    for (const [path, hint] of [
      [`/appliances/${name}`, 'first add a login that has them. After that, “Use other logins” is here.'],
      [`/connections/${login}`, 'on the page of an appliance “More”, then “Use other logins”.'],
    ] as const) {
      const { text } = await visitor.get(path);
      expect(text).toContain(hint);
      expect(text).toContain('href="/connections/add"');
    }
    expect((await send(`/appliances/${name}/move`, { [`login-${login}`]: 'yes' })).status).toBe(303);
    await hub.pair(login, emulator);
    expect(await hub.appliance(name)).toMatchObject({ connection: login, scope: 'Monitoring' });
    expect((await hub.requestToken(credentials)).status).toBe(200);
  });

  it('an appliance is not moved to a login that is gone, or to none', async () => {
    const name = `wallbox-${made}`;
    await hub.addAppliance(name, 'RemoteControl');
    const gone = await send(`/appliances/${name}/move`, { 'login-gone': 'yes' });
    expect(gone.text).toContain('This login no longer exists.');
    const none = await send(`/appliances/${name}/move`);
    expect(none.text).toContain('No login was chosen.');
    for (const { status, text } of [gone, none]) {
      expect(status).toBe(400);
      expect(text).toContain(`<input type="checkbox" name="login-${login}" value="yes">`);
    }
    expect((await hub.appliance(name)).connection).toBe(name);
  });

  it('an appliance can use several logins, which its page names with the address of each', async () => {
    const name = `hass-${made}`;
    await hub.addAppliance(name, 'RemoteControl');
    const both = { [`login-${login}`]: 'yes', [`login-${name}`]: 'yes' };
    expect(redirectOf(await send(`/appliances/${name}/move`, both))).toEqual([303, `/appliances/${name}`]);
    expect(await hub.appliance(name)).toMatchObject({ connections: [login, name] });
    const { text } = await visitor.get(`/appliances/${name}`);
    for (const used of [login, name]) {
      expect(text).toContain(`<li><a class="back" href="/connections/${used}">`);
      expect(text).toContain(`<code>/connections/${used}/oauth/token</code>`);
    }
    for (const subject of [name, `${name} (${login})`]) {
      expect(text).toContain(`<p>Log in at the portal once to connect ${subject}.</p>`);
    }
    const form = await visitor.get(`/appliances/${name}/move`);
    for (const used of [login, name]) expect(form.text).toContain(`name="login-${used}" value="yes" checked>`);
  });
});

describe('a form that comes back with an error', () => {
  it('the form for a new appliance still has the permissions that were typed, also if another login is chosen', async () => {
    const fields = { form: formKey(made), name: `blinds-${made}`, connection: 'gone', scope: 'Monitoring' };
    const { status, text } = await send('/appliances/add', fields);
    expect([status, text]).toEqual([400, expect.stringContaining('name="scope" value="Monitoring"')]);
  });
});

describe('the approval of an appliance that asks to join', () => {
  it('an appliance is approved for the login that the person has chosen', async () => {
    await hub.ask((control) => control.request('openRegistration', { open_for: 600 }));
    await using client = await HubClient.of(hub);
    const registered = await client.register({ client_name: `sensor ${made}`, scope: 'Monitoring' });
    const [id, name] = [String(registered['client_id']), String(registered['client_name'])];
    const other = `other-${made}`;
    await hub.addConnection(other, 'Monitoring openid');
    const { text } = await visitor.get('/');
    expect(text).toContain(`<select id="login-${name}" name="connection"`);
    expect(text).toContain(`<option value="${login}">${login}</option>`);
    expect(text).toContain('Not offered, because their permissions differ: ');
    const mismatch = await send(`/appliances/${name}/approve`, { client_id: id, connection: other });
    expect([mismatch.status, mismatch.text]).toEqual([400, expect.stringContaining(`id="login-${name}-problem">`)]);
    const approved = await send(`/appliances/${name}/approve`, { client_id: id, connection: login });
    expect(redirectOf(approved)).toEqual([303, `/appliances/${name}`]);
    expect((await hub.appliance(name)).connection).toBe(login);
  });

  it('with several portals, the person chooses at which one the appliance logs in, and none is chosen already', async () => {
    const toml = '[portals.second]\npreset = "tado"\nissuer = "http://127.0.0.1:9"';
    await using several = await HubProcess.start({ emulator, here: true, toml });
    await several.ask((control) => control.request('openRegistration', { open_for: 600 }));
    await using client = await HubClient.of(several);
    const { client_id: id } = await client.register({ client_name: 'sensor' });
    await several.addConnection('heating', null, 'second');
    await using person = await PageVisitor.signedIn(several);
    const fields = { csrf: await person.csrf(), client_id: String(id) };
    for (const path of ['/', '/appliances/sensor']) {
      const { text } = await person.get(path);
      expect(text).toContain('<select id="portal-sensor" name="portal"><option value="" selected>Choose…</option>');
      // A login at another portal than the first one is offered, too.
      expect(text).toContain('<option value="heating">');
    }
    for (const [portal, status, why] of [
      ['', 400, 'id="portal-sensor-problem">Choose the portal of this appliance.'],
      ['third', 409, 'The hub does not have this portal.'],
    ] as const)
      expect(await person.post('/appliances/sensor/approve', { ...fields, portal })).toMatchObject({
        status,
        text: expect.stringContaining(why),
      });
    await person.post('/appliances/sensor/approve', { ...fields, portal: 'second' });
    const { waiting_for_approval: waiting, portal } = await several.appliance('sensor');
    expect([waiting, portal]).toEqual([undefined, 'second']);
  });
});
