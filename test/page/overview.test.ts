import { describe, expect, it } from 'vitest';
import type { HubStatus } from '../../src/core/administration.ts';
import type { ApplianceStatus } from '../../src/core/appliances/appliance-status.ts';
import type { ConnectionStatus } from '../../src/core/connections/connection-status.ts';
import { deriveConditions } from '../../src/core/health/derive-conditions.ts';
import type { Notice } from '../../src/core/health/notice.ts';
import type { Named } from '../../src/core/name.ts';
import { PROBLEM_CODES, type ProblemCode } from '../../src/core/reports/problem.ts';
import { Secret } from '../../src/core/secret.ts';
import { appliancePage } from '../../src/page/appliance/appliance.ts';
import { connectionPage } from '../../src/page/connection/connection.ts';
import { overviewPage } from '../../src/page/overview/overview.ts';
import { de } from '../../src/page/texts/de.ts';
import { en, type Texts } from '../../src/page/texts/en.ts';
import {
  applianceStatus,
  connectionStatus,
  connectionsOf,
  hubStatus,
  hubStatusReport,
  named,
  withLoginOf,
} from '../control/status-samples.ts';
import { waitingForApproval } from '../support/registration-samples.ts';

const NOW = Date.UTC(2031, 4, 5, 6, 7, 8);
const SCRIPT = '"><script>alert(1)</script>';
const SESSION = { cookie: new Secret('a-cookie-of-the-overview'), csrfToken: 'the-csrf-of-the-session', lifetime: 60 };

const HUB = hubStatus({ id: 'abcd', name: 'Test hub', address: '192.0.2.7' });

function appliance(name: string, more: Partial<ApplianceStatus> = {}): ApplianceStatus {
  return applianceStatus({
    name,
    clientId: `id-of-${name}`,
    state: 'active',
    scope: 'Monitoring',
    expiresIn: 3000,
    refreshIn: 2400,
    lastRefresh: new Date(NOW - 300_000).toISOString(),
    ...more,
  });
}

const REFUSED = { since: '2031-05-05T04:05:00Z', count: 12, reason: 'the secret is wrong', address: '192.168.1.23' };

function refused(name: string): ApplianceStatus {
  return appliance(name, { state: 'needs_pairing', problem: problem('refused') });
}

function problem(code: ProblemCode) {
  return { code, message: 'In English, and for logs', since: new Date(NOW - 7_200_000).toISOString() };
}

function page(
  appliances: ApplianceStatus[],
  { texts = en, hub = {}, notices = [] }: { texts?: Texts; hub?: Partial<HubStatus>; notices?: Notice[] } = {},
): string {
  const status = hubStatusReport({ ...HUB, ...hub }, appliances, notices, NOW);
  return overviewPage(status, { hubName: 'Test hub', texts }, SESSION, named('home'), NOW).body;
}

const health = (html: string) => /<h1 id="health">([^<]*)<\/h1>/.exec(html)?.[1];

describe("the hub's health on the overview", () => {
  it.for<[string, ApplianceStatus[], string]>([
    ['nothing is there', [], 'There are no appliances yet.'],
    ['one is connected', [appliance('car')], 'car is connected.'],
    ['all are connected', [appliance('car'), appliance('boiler')], 'Both appliances are connected.'],
    [
      'one of them has not fetched its access yet',
      [appliance('car', { unusualUsage: 'never_served' }), appliance('boiler', { unusualUsage: 'asks_often' })],
      'car is logged in, but has not fetched its access yet.',
    ],
    [
      'none of them has asked for a week',
      [appliance('car', { unusualUsage: 'silent' }), appliance('boiler', { unusualUsage: 'silent' })],
      '2 appliances have not fetched their access for a week or longer.',
    ],
    ['one asks with a wrong secret', [appliance('car', { refused: REFUSED })], 'car asks with wrong credentials.'],
    ['one must be paired again', [appliance('car'), refused('wallbox')], 'wallbox needs a new login.'],
    [
      'several with the same title need a person',
      [refused('car'), refused('car-2')].map((one) => ({ ...one, title: 'Car' })),
      '2 appliances need a new login.',
    ],
    ['one was never paired', [appliance('car', { state: 'unpaired' })], 'car is not connected yet.'],
    [
      'a login is waited for',
      [appliance('car', { state: 'pairing', authorizeUrl: 'https://portal.example/authorize' })],
      'car is waiting for somebody to log in.',
    ],
    [
      'a login is waited for, and others are not connected either',
      [
        appliance('car', { state: 'pairing', authorizeUrl: 'https://portal.example/authorize' }),
        appliance('boiler', { state: 'unpaired' }),
      ],
      '2 appliances are not connected yet.',
    ],
    ['the portal has given no link', [appliance('car', { state: 'pairing' })], 'car is waiting for the portal.'],
    [
      'the portal is away',
      [appliance('car', { state: 'retrying', problem: problem('portal_unreachable') })],
      'The access of car could not be refreshed; the hub keeps trying.',
    ],
    [
      'one asks to join',
      [
        appliance('car', {
          state: 'unpaired',
          waitingForApproval: waitingForApproval(),
        }),
      ],
      'car is waiting for your approval.',
    ],
    [
      'the portal refuses the hub itself',
      [appliance('car', { state: 'retrying', problem: problem('misconfigured') })],
      'car: The portal does not accept the hub’s credentials.',
    ],
  ])("the overview states the hub's health in one sentence if %s", ([, appliances, sentence]) => {
    expect(health(page(appliances))).toBe(sentence);
  });

  it('what is said about the hub tells whether notices go anywhere else', () => {
    const shown = (more: { sendsNotices?: boolean }) =>
      overviewPage(hubStatusReport(HUB, [], [], NOW), { hubName: 'Hub', texts: en }, SESSION, named('home'), NOW, more)
        .body;
    expect(shown({})).toContain(en.overview.noticesHere);
    expect(shown({ sendsNotices: true })).toContain(en.overview.noticesSent);
  });

  it('an appliance whose login ends soon is still shown as one that asks with a wrong secret', () => {
    const car = appliance('car', { refused: REFUSED });
    const connections = connectionsOf([car]).map((one) => ({
      ...one,
      loginEnds: '2031-05-09',
      loginEndingSince: '2031-05-04T06:00:00Z',
    }));
    const status = hubStatusReport(HUB, [car], [], NOW, connections);
    const { body } = overviewPage(status, { hubName: 'Test hub', texts: en }, SESSION, named('home'), NOW);
    expect(body).toContain(en.states.kinds.refused);
  });

  it('the overview of a hub without a cloud says so, and offers the clouds', () => {
    const problems = [{ code: 'no_portal' as const, message: 'In English', since: '2031-05-05T06:00:00Z' }];
    const status = hubStatusReport({ ...HUB, problems }, [], [], NOW);
    const { body } = overviewPage(status, { hubName: 'Test hub', texts: en }, SESSION, [], NOW);
    expect(health(body)).toBe('No portal is chosen yet.');
    expect(body).toContain('id="choose-cloud"');
  });

  it('the overview states that the hub needs a person if only the hub has a problem', () => {
    const problems = [{ code: 'hub_id_taken' as const, message: 'In English', since: '2031-05-05T06:00:00Z' }];
    const html = page([appliance('car')], { hub: { problems } });
    expect(health(html)).toBe('The hub itself needs attention.');
    expect(html).toContain('Another hub in this network has the same identity as this one.');
    expect(html).toContain('<p class="notice bad">');
  });
});

it('the overview names the address from which wrong setup codes came, and needs no shell for it', () => {
  const found = { code: 'wrong_setup_codes', message: 'In English', since: '2031-05-05T06:00:00Z' } as const;
  const problems = [{ ...found, address: '192.168.1.23' }];
  const conditions = deriveConditions({ connections: [], appliances: [], problems, pageUrl: 'https://hub/', now: NOW });
  const status = { ...hubStatusReport(HUB, [appliance('car')], [], NOW), conditions };
  for (const [texts, text] of [
    [en, 'The address of the device is 192.168.1.23.'],
    [de, 'Die Adresse des Geräts ist 192.168.1.23.'],
  ] as const) {
    const { body } = overviewPage(status, { hubName: 'Test hub', texts }, SESSION, named('home'), NOW);
    expect(body).toContain(text);
    expect(body).not.toContain('latchkey status');
  }
});

describe('the card of an appliance on the overview', () => {
  it('the card of an appliance shows the last and the next refresh, in words and as machine-readable times', () => {
    const html = page([appliance('car')]);
    expect(html).toContain('<time datetime="2031-05-05T06:02:08.000Z">5 minutes ago</time>');
    expect(html).toContain('<time datetime="2031-05-05T06:47:08.000Z">in 40 minutes</time>');
  });

  it('the card of an appliance shows when it last got its access, and how often it asked with a wrong secret since when', () => {
    const fetched = page([appliance('car', { lastToken: new Date(NOW - 120_000).toISOString() })]);
    expect(fetched).toMatch(/<dt>Last got its access<\/dt><dd><time [^>]*>2 minutes ago</);
    const never = page([appliance('car', { unusualUsage: 'never_served' })]);
    expect(never).toContain('<dt>Last got its access</dt><dd>not yet</dd>');
    expect(never).toContain('Logged in, but not used yet');
    const wrong = page([appliance('car', { refused: REFUSED })]);
    expect(wrong).toContain('Logged in, but asks with wrong credentials');
    expect(wrong).toMatch(/12 ×, from 192\.168\.1\.23, since <time class="exact" datetime="2031-05-05T04:05:00.000Z"/);
  });

  it('a time of the past that the clock of the hub has not reached yet is no time to come, but a date or now', () => {
    const at = (ms: number) => new Date(NOW + ms).toISOString();
    const html = page([appliance('car', { lastToken: at(26 * 3_600_000), lastRefresh: at(5000) })]);
    expect(html).toMatch(
      /<dt>Last got its access<\/dt><dd><time class="exact" datetime="2031-05-06T08:07:08.000Z">6 May/,
    );
    expect(html).toContain(`<dt>Last refreshed</dt><dd><time datetime="${at(0)}">now</time>`);
  });

  it('the button of an appliance names the cloud if the hub has several', () => {
    const unpaired = appliance('car', { state: 'unpaired', portal: 'tado' });
    const tado = { name: 'tado', title: 'tado°' };
    const body = (portals: readonly Named[]) =>
      overviewPage(hubStatusReport(HUB, [unpaired], [], NOW), { hubName: 'Hub', texts: en }, SESSION, portals, NOW)
        .body;
    expect(body([tado])).toContain('id="pair-car">Connect<');
    expect(body([...named('home'), tado])).toContain('id="pair-car">Connect at “tado°”<');
  });

  it.for(PROBLEM_CODES)(
    "the card explains %s and what to do in the reader's language, without the text of the log",
    (code) => {
      const ill = [
        appliance('wallbox', { state: code === 'refused' ? 'needs_pairing' : 'retrying', problem: problem(code) }),
      ];
      expect(page(ill).replaceAll('&#39;', "'")).toContain(en.states.conditions[code]('wallbox'));
      const german = page(ill, { texts: de });
      expect(german).toContain(de.states.conditions[code]('wallbox'));
      expect(german).not.toContain('In English');
    },
  );

  it('the card names the file of the client secret that the portal does not accept', () => {
    const secretFile = '/etc/latchkey/credentials/home.secret';
    const credentialLocation = { portal: 'home', secretFile, appliedBy: 'service_restart' } as const;
    const ill = appliance('car', { state: 'retrying', problem: problem('misconfigured'), credentialLocation });
    for (const word of ['The portal does not accept', 'systemctl restart', 'portals.home.client_id', secretFile])
      expect(page([ill])).toContain(word);
  });

  it('the card of what a login cannot mend has the button that leads to the form that can', () => {
    const leadsTo = (one: Partial<ApplianceStatus>) =>
      /class="button primary" id="fix-pair-car" href="([^"]+)"/.exec(page([appliance('car', one)]))?.[1];
    const rejected = { state: 'retrying', problem: problem('misconfigured') } as const;
    const credentialLocation = { portal: 'home', appliedBy: 'enter_again' } as const;
    expect(leadsTo({ ...rejected, credentialLocation })).toBe('/portals/add?again&#61;home');
    expect(leadsTo({ ...rejected, credentialLocation: { portal: 'home' } })).toBeUndefined();
    expect(leadsTo({ refused: REFUSED })).toBe('/appliances/car/rotate-secret');
    expect(leadsTo({ refused: REFUSED, declared: true })).toBeUndefined();
  });

  it('the card of an unpaired appliance shows why and when its last pairing failed', () => {
    const pairingFailed = { reason: 'client_unknown', message: 'In English', at: '2031-05-05T06:02:08Z' } as const;
    const html = page([appliance('car', { state: 'unpaired', pairingFailed })], { texts: de });
    const why =
      'Der letzte Versuch, car zu verbinden, ist fehlgeschlagen. Das Portal kennt die client_id des Hubs nicht.';
    for (const word of [why, 'portals.home.client_id', de.states.lastPairing]) expect(html).toContain(word);
    expect(html).toContain('<time datetime="2031-05-05T06:02:08.000Z">');
    expect(html).not.toContain('In English');
  });

  it('the card of an appliance offers the one action that is needed, and none if all is well', () => {
    const actions = (one: ApplianceStatus) =>
      [...page([one]).matchAll(/action="(\/appliances[^"]*)"/g)].map(([, to]) => to);
    expect(actions(appliance('car'))).toEqual([]);
    expect(actions(refused('car'))).toEqual(['/appliances/car/pair']);
    const waiting = waitingForApproval({ softwareId: 'app' });
    expect(actions(appliance('car', { state: 'unpaired', waitingForApproval: waiting }))).toEqual([
      '/appliances/car/approve',
    ]);
  });

  it('the card shows the comparison code and the address of an appliance that waits for approval', () => {
    const card = (changes = {}) =>
      page([appliance('car', { state: 'unpaired', waitingForApproval: waitingForApproval(changes) })]);
    expect(card()).toContain('<code class="compare">KFD-WQX</code>');
    expect(card()).toContain('<dt>IP address</dt><dd>192.168.1.20</dd>');
    expect(card({ address: SCRIPT })).not.toContain('<script');
  });

  it('the card of an appliance that needs a person comes first', () => {
    const html = page([appliance('car'), refused('wallbox')]);
    expect(html.indexOf('id="appliance-wallbox"')).toBeLessThan(html.indexOf('id="appliance-car"'));
  });

  it('the card warns that an appliance is about to lose its access', () => {
    const notice: Notice = {
      code: 'token_ending',
      severity: 'error',
      appliance: 'car',
      connection: 'car',
      appliances: ['car'],
      message: 'In English',
      what_to_do: 'In English',
      since: '2031-05-05T06:00:00Z',
    };
    const html = page(
      [appliance('car', { state: 'retrying', problem: problem('portal_unreachable') }), appliance('boiler')],
      {
        notices: [notice],
      },
    );
    expect(html.match(/The access of car ends soon/g)).toHaveLength(1);
    expect(html).not.toContain('In English');
  });
});

describe('actions on the overview', () => {
  it('the overview offers to open registration, and to close it if it is open', () => {
    expect(page([])).toContain('action="/registration/open"');
    const open = page([], { hub: { registrationOpenFor: 300 } });
    expect(open).toContain('action="/registration/close"');
    expect(open).toContain('>in 5 minutes</time>');
  });

  it('every form on the overview contains the CSRF token of the session', () => {
    const html = page([appliance('car', { state: 'unpaired' }), appliance('b', { state: 'unpaired' })]);
    const forms = html.match(/<form /g)?.length ?? 0;
    expect(forms).toBeGreaterThan(3);
    expect(html.match(/name="csrf" value="the-csrf-of-the-session"/g)).toHaveLength(forms);
  });
});

describe('a login that several appliances share on the overview', () => {
  const shared = (changes: Partial<ConnectionStatus> = {}) =>
    connectionStatus({ name: 'netatmo', state: 'active', users: named('dashboard', 'thermostat'), ...changes });
  const users = (connection: ConnectionStatus) =>
    connection.users.map(({ name }) => withLoginOf(appliance(name, { connection: connection.name }), connection));
  function pageWith(
    connection: ConnectionStatus,
    { others = [], texts = en, usage = {} }: { others?: ApplianceStatus[]; texts?: Texts; usage?: object } = {},
  ): string {
    const appliances = [...users(connection).map((user) => ({ ...user, ...usage })), ...others];
    const status = hubStatusReport(HUB, appliances, [], NOW, [connection, ...connectionsOf(others)]);
    return overviewPage(status, { hubName: 'Test hub', texts }, SESSION, named('home'), NOW).body;
  }
  const needsLogin = { state: 'needs_pairing', problem: problem('refused') } as const;

  it('appliances that share a login have one card, with one state and one button', () => {
    const html = pageWith(shared({ state: 'unpaired' }), { others: [appliance('car')] });
    const cards = [...html.matchAll(/<li class="card [^"]*" id="([^"]+)"/g)].map(([, id]) => id);
    expect(cards).toEqual(['connection-netatmo', 'appliance-car']);
    for (const name of ['dashboard', 'thermostat']) expect(html).toContain(`href="/appliances/${name}"`);
    expect(html.match(/Not connected yet/g)).toHaveLength(1);
    expect([...html.matchAll(/action="([^"]*\/pair)"/g)].map(([, path]) => path)).toEqual([
      '/connections/netatmo/pair',
    ]);
    expect(html).toContain('Log in at the portal once to connect dashboard and thermostat.');
  });

  it.for<[Partial<ConnectionStatus>, string]>([
    [needsLogin, 'The login “netatmo” must be renewed. This affects dashboard and thermostat.'],
    [{ state: 'active' }, 'Both appliances are connected.'],
    [{ state: 'unpaired' }, 'The login “netatmo” is not connected yet.'],
    [
      { state: 'pairing', authorizeUrl: 'https://portal.example/a' },
      'The login “netatmo” is waiting for somebody to log in.',
    ],
    [{ state: 'pairing' }, 'The login “netatmo” is waiting for the portal.'],
    [
      { state: 'retrying', problem: problem('portal_unreachable') },
      'The access of the login “netatmo” could not be refreshed; the hub keeps trying.',
    ],
    [
      { state: 'retrying', problem: problem('misconfigured') },
      'The login “netatmo”: The portal does not accept the hub’s credentials.',
    ],
    [{ ...needsLogin, users: [] }, 'The login “netatmo” must be renewed.'],
  ])("the overview states the hub's health in one sentence if a shared login is %j", ([changes, sentence]) => {
    expect(health(pageWith(shared(changes)))).toBe(sentence);
  });

  it('the card and the page of a shared login show both that one of its appliances needs a person', () => {
    const connection = shared();
    const usage = { credentialsDamaged: true } as const;
    expect(pageWith(connection, { usage })).toContain('<li class="card bad" id="connection-netatmo">');
    const status = hubStatusReport(
      HUB,
      users(connection).map((user) => ({ ...user, ...usage })),
      [],
      NOW,
      [connection],
    );
    const view = { connection, status, portals: [], history: [], now: NOW };
    expect(connectionPage(view, { hubName: 'Test hub', texts: en }, SESSION).body).toContain(
      '<section class="card bad"',
    );
  });

  it('the card of a login shows when each of its appliances last got its access', () => {
    const usage = { lastToken: new Date(NOW - 120_000).toISOString() };
    expect(pageWith(shared(), { usage })).toMatch(/>dashboard<\/a> <span class="quiet">\(<time [^>]*>2 minutes ago</);
  });

  it('the card of a login says of an appliance of several logins what it got of this one, and nothing about the others', () => {
    const tokens = { today: 1, last14Days: 1 };
    const [lastToken, unusualUsage] = [new Date(NOW - 120_000).toISOString(), 'never_served'] as const;
    const usage = [
      { connection: 'netatmo', title: 'netatmo', lastToken, tokens },
      { connection: 'tado', title: 'tado', lastToken: null, tokens: { today: 0, last14Days: 0 } },
    ];
    const ofHass = { connections: ['netatmo', 'tado'], lastToken, usage, unusualUsage, unusualConnection: 'tado' };
    const card = (name: string, texts: Texts = en) =>
      pageWith(shared({ name, title: name, users: named('hass') }), { usage: ofHass, texts });
    expect(card('netatmo')).toContain('2 minutes ago');
    expect(health(card('netatmo'))).toBe('hass (tado) is logged in, but has not fetched its access yet.');
    expect(card('netatmo')).not.toContain('hass has not fetched');
    expect(card('tado')).not.toContain('2 minutes ago');
    expect(card('tado')).toContain('hass has not fetched its access to tado yet.');
    expect(card('tado', de)).toContain('hass hat den Zugang zu tado noch nicht abgeholt.');
  });

  it('a login that no appliance uses is shown, and does not hide which appliance is not connected', () => {
    const spare = shared({ state: 'unpaired', users: [] });
    const html = pageWith(spare, { others: [appliance('car', { state: 'unpaired' })] });
    expect(html).toContain('No appliance uses this login yet.');
    expect(html).toContain('Log in at the portal once to connect the login “netatmo”.');
    expect(health(html)).toBe('car is not connected yet.');
    expect(health(pageWith(spare))).toBe('The login “netatmo” is not connected yet.');
  });

  it('the card of a login with many appliances shows some and counts the others', () => {
    const sensors = Array.from({ length: 40 }, (_, number) => `sensor-${number}`);
    const html = pageWith(shared({ users: named(...sensors) }));
    expect(html.match(/href="\/appliances\/sensor-/g)).toHaveLength(12);
    expect(html).toContain('and 28 more');
  });

  it('the overview shows when a shared login or that of an appliance ends', () => {
    const loginEnds = new Date(NOW + 3 * 86_400_000).toISOString();
    const shown = `<dt>Login ends</dt><dd><time datetime="${loginEnds}">`;
    expect(pageWith(shared({ loginEnds }))).toContain(shown);
    const own = appliance('car');
    const connection = { ...connectionsOf([own])[0], loginEnds } as ConnectionStatus;
    const status = hubStatusReport(HUB, [own], [], NOW, [connection]);
    expect(overviewPage(status, { hubName: 'Test hub', texts: en }, SESSION, named('home'), NOW).body).toContain(shown);
  });

  it('"Connect all" is offered if several logins need it, however many appliances use them', () => {
    expect(pageWith(shared({ state: 'unpaired' }))).not.toContain('action="/pair-all"');
    const others = [appliance('car', { state: 'unpaired' })];
    expect(pageWith(shared({ state: 'unpaired' }), { others })).toContain('action="/pair-all"');
  });
});

describe('text from appliances and portals', () => {
  const hostile = appliance(SCRIPT, {
    clientId: SCRIPT,
    scope: SCRIPT,
    portal: SCRIPT,
    state: 'unpaired',
    problem: { code: 'refused', message: SCRIPT, since: '2031-05-05T06:00:00Z' },
    waitingForApproval: waitingForApproval({ softwareId: SCRIPT }),
  });

  it('the overview lists the hubs of a site, and marks the own one', () => {
    const hub = { address: '192.0.2.7', version: '1.2.3' };
    const site = {
      id: 'site-1',
      hubs: [
        { ...hub, id: 'a', name: 'attic', lastSeen: new Date(NOW).toISOString(), thisHub: true as const },
        { ...hub, id: 'b', name: '<b>', address: null, lastSeen: new Date(NOW - 7_200_000).toISOString() },
      ],
    };
    const status = { ...hubStatusReport(HUB, [], [], NOW), site };
    const { body } = overviewPage(status, { hubName: 'Test hub', texts: en }, SESSION, named('home'), NOW);
    for (const text of ['The hub attic', 'this hub', 'The hub &#60;b&#62;', 'last seen', '2 hours ago'])
      expect(body).toContain(text);
    expect(body.match(/class="site-hub"/g)).toHaveLength(2);
    expect(page([])).not.toContain('site-hub');
  });

  it('the overview escapes text from appliances and portals', () => {
    const html = page([hostile], { hub: { version: SCRIPT, address: SCRIPT, caFingerprint: SCRIPT } });
    expect(html).not.toContain('<script');
    expect(html).toContain('&#60;script&#62;');
  });

  it('the page of an appliance escapes text from appliances and portals', () => {
    const shown = { appliance: hostile, status: hubStatusReport(HUB, [hostile]), portals: [], history: [], now: NOW };
    const { body } = appliancePage(shown, { hubName: SCRIPT, texts: en }, SESSION);
    expect(body).not.toContain('<script');
  });

  it('the card and the page of a connection escape text from appliances and portals', () => {
    const connection = connectionStatus({
      name: SCRIPT,
      users: named(SCRIPT, 'x'),
      scope: SCRIPT,
      portal: SCRIPT,
    });
    const status = hubStatusReport(HUB, [{ ...hostile, connection: SCRIPT }], [], NOW, [connection]);
    const context = { hubName: SCRIPT, texts: en };
    expect(overviewPage(status, context, SESSION, named('home', SCRIPT), NOW).body).not.toContain('<script');
    const shown = { connection, status, portals: [], history: [], now: NOW };
    expect(connectionPage(shown, context, SESSION).body).not.toContain('<script');
  });
});

describe('the page of an appliance', () => {
  const show = (one: ApplianceStatus, hub: Partial<HubStatus> = {}) =>
    appliancePage(
      { appliance: one, status: hubStatusReport({ ...HUB, ...hub }, [one]), portals: [], history: [], now: NOW },
      { hubName: 'Test hub', texts: en },
      SESSION,
    ).body;

  it('the page says in one sentence that all is well, unless something is wrong with the appliance or the hub', () => {
    const { allWell } = en.states;
    expect(show(appliance('car'))).toContain(`<p>${allWell}</p>`);
    const expired = {
      code: 'certificate_expired',
      message: 'It has expired',
      since: new Date(NOW).toISOString(),
    } as const;
    expect(show(appliance('car'), { problems: [expired] })).not.toContain(allWell);
    for (const changes of [
      { unusualUsage: 'never_served' },
      { unusualUsage: 'asks_often' },
      { wantedScope: 'B' },
    ] as const)
      expect(show(appliance('car', changes))).not.toContain(allWell);
    expect(show(refused('car'))).not.toContain(allWell);
  });

  it('the page says what was counted, and what a disconnection and a removal do', () => {
    const lastToken = new Date(NOW).toISOString();
    const html = show(appliance('car', { lastToken, tokens: { today: 119, last14Days: 300 } }));
    expect(html).toContain('<dt>Got its access</dt><dd>119 × today, 300 × in 14 days</dd>');
    const { disconnectMeaning, removeMeaning, removeFromLoginMeaning } = en.appliance;
    const lines = (page: string) => [...page.matchAll(/id="\w+-meaning">([^<]*)</g)].map(([, line]) => line);
    expect(lines(html)).toEqual([disconnectMeaning, removeMeaning]);
    expect(lines(show(appliance('car', { connection: 'netatmo' })))).toEqual([removeFromLoginMeaning]);
    const ofLogin = (users: readonly Named[]) => {
      const connection = connectionStatus({ name: 'netatmo', state: 'active', users });
      const view = { connection, status: hubStatusReport(HUB, []), portals: [], history: [], now: NOW };
      return lines(connectionPage(view, { hubName: 'Test hub', texts: en }, SESSION).body);
    };
    const { connection } = en;
    expect(ofLogin(named('car', 'fan'))).toEqual([connection.disconnectMeaning, connection.removeMeaning]);
    expect(ofLogin([])).toEqual([connection.disconnectMeaning, connection.removeUnusedMeaning]);
  });

  it('the page of a declared appliance says where to change it, and offers no removal and no new secret', () => {
    const html = show(appliance('car', { declared: true }));
    expect(html).toContain('configuration file declares this appliance');
    expect(html).not.toContain('/appliances/car/remove');
    expect(html).not.toContain('/appliances/car/rotate-secret');
    expect(html).toContain('/connections/car/unpair');
  });

  it('the page of an appliance with a changed row says that it must be removed, and offers no new secret', () => {
    const html = show(appliance('car', { withoutCredentials: true, credentialsDamaged: true }));
    expect(html).toContain('somebody changed it there. Remove the appliance');
    expect(html).toContain('/appliances/car/remove');
    expect(html).not.toContain('/appliances/car/rotate-secret');
  });

  it('the page of an appliance with the name "add" has its own address', () => {
    expect(page([appliance('add')])).toContain('href="/appliances/add/"');
    expect(show(appliance('add'))).toContain('href="/appliances/add/remove"');
  });
});

describe('several appliances that asked to join', () => {
  const waiting = appliance('car', { state: 'unpaired', waitingForApproval: waitingForApproval() });

  it('the overview says how many appliances asked to join, and that their codes must be compared', () => {
    const html = page([waiting], { hub: { registrationAsked: 7 } });
    expect(html).toMatch(/7 appliances have asked to join.*Compare the codes/);
    expect(page([waiting], { hub: { registrationAsked: 1 } })).not.toContain('asked to join');
    expect(page([appliance('car')], { hub: { registrationAsked: 7 } })).not.toContain('asked to join');
  });
});

it('the overview shows the account of an appliance if the portal names it', () => {
  const html = page([appliance('wallbox', { account: '<b>anna</b>' })]);
  expect(html).toContain('<dt>Account</dt><dd>&#60;b&#62;anna&#60;/b&#62;</dd>');
  expect(page([appliance('wallbox')])).not.toContain('<dt>Account</dt>');
});

it('the overview shows every appliance that waits for approval, however many there are', () => {
  const unpaired = { state: 'unpaired', expiresIn: null, refreshIn: null } as const;
  const others = Array.from({ length: 80 }, (_, index) =>
    appliance(`a-${index}`, { ...unpaired, waitingForApproval: waitingForApproval() }),
  );
  const own = appliance('wallbox', { ...unpaired, waitingForApproval: waitingForApproval() });
  const html = page([...others, own, appliance('zoo')]);
  expect(html).toContain('id="appliance-wallbox"');
  expect(html).not.toContain('id="appliance-zoo"');
  expect(html).toContain('and one more');
});
