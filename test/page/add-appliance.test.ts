import { describe, expect, it } from 'vitest';
import { Secret } from '../../src/core/secret.ts';
import { addAppliancePage } from '../../src/page/add-appliance/add-appliance.ts';
import { credentialsPage } from '../../src/page/add-appliance/credentials.ts';
import { confirmationPage, secretRotationConfirmation } from '../../src/page/appliance/confirmations.ts';
import { qrSvg } from '../../src/page/elements.ts';
import { en } from '../../src/page/texts/en.ts';
import { connectionStatus, named } from '../control/status-samples.ts';
import { rememberSecrets } from '../support/logs.ts';

const FRAME = { hubName: 'Test hub', texts: en };
const SESSION = { cookie: new Secret('a-cookie-of-adding'), csrfToken: 'the-csrf', lifetime: 60 };
const SCRIPT = '"><script>alert(1)</script>';

describe('the form that adds an appliance', () => {
  it('the form for a new appliance asks for the portal only if there are several, and keeps the choice', () => {
    const typed = { name: '', connection: '', scope: '', portal: 'garden' };
    const shown = (portals: string[]) =>
      addAppliancePage(FRAME, SESSION, 'token', { portals: named(...portals), connections: [] }, typed, {}).body;
    expect(shown(['home'])).not.toContain('<select');
    const body = shown(['home', 'garden']);
    expect(body).toContain('<option value="garden" selected>');
    expect(body).not.toContain('<option value="home" selected>');
  });

  it('the form for a new appliance shows a problem beside its field, and escapes what was typed', () => {
    const typed = { name: SCRIPT, connection: SCRIPT, scope: SCRIPT, portal: SCRIPT };
    const connections = [connectionStatus({ name: SCRIPT, users: named(SCRIPT) })];
    const choices = { portals: named(SCRIPT, 'home'), connections };
    const { body } = addAppliancePage(FRAME, SESSION, 'token', choices, typed, { scope: 'Not so.' });
    expect(body).toMatch(
      /<input id="scope"[^>]* aria-describedby="scope-problem scope-hint" aria-invalid="true" autofocus>/,
    );
    expect(body).toContain('<p class="problem" id="scope-problem">Not so.</p>');
    expect(body).toMatch(/<input id="name"[^>]* aria-describedby="name-hint">/);
    expect(body).not.toContain('<script');
  });
});

describe('the choice of a login for a new appliance', () => {
  const shown = (connection: string, problems = {}) => {
    const connections = [
      connectionStatus({ name: 'netatmo', users: named('dashboard', 'thermostat') }),
      connectionStatus({ name: 'spare' }),
      connectionStatus({ name: 'wallbox', own: true, users: named('wallbox') }),
    ];
    const typed = { name: 'blinds', connection, scope: '', portal: '' };
    return addAppliancePage(FRAME, SESSION, 'token', { portals: named('home'), connections }, typed, problems).body;
  };

  it('the form for a new appliance offers a login of its own first, and every login with the appliances that use it', () => {
    const [, options] = /<select id="connection"[^>]*>(.*)<\/select>/.exec(shown('')) ?? [];
    expect(options).toBe(
      '<option value="" selected>A login of its own</option>' +
        '<option value="netatmo">netatmo (used by dashboard and thermostat)</option>' +
        '<option value="spare">spare</option>' +
        '<option value="wallbox">wallbox (its own login)</option>',
    );
  });

  it('the form for a new appliance keeps the chosen login, and says beside it that it no longer exists', () => {
    const html = shown('netatmo', { connection: 'Gone.' });
    expect(html).toContain('<option value="netatmo" selected>');
    expect(html).toMatch(
      /<select id="connection"[^>]* aria-describedby="connection-problem connection-hint" aria-invalid="true">/,
    );
  });
});

describe('the page with new credentials', () => {
  const issued = {
    name: 'wallbox',
    title: 'Wallbox',
    clientId: 'the-client-id',
    clientSecret: new Secret('the-secret-of-the-wallbox'),
    tokenEndpoint: 'https://192.0.2.7:8443/oauth/token',
    caFingerprint: 'the-pin',
  };
  rememberSecrets([issued.clientSecret.reveal()]);

  it('the page shows new credentials as text, and as a QR code of the JSON that the command line prints', () => {
    const { body } = credentialsPage({ credentials: issued, isNewAppliance: true }, FRAME, SESSION, '/done');
    for (const value of ['the-client-id', 'the-secret-of-the-wallbox', issued.tokenEndpoint, 'the-pin']) {
      expect(body).toContain(`>${value}</code>`);
    }
    const json =
      '{"name":"wallbox","title":"Wallbox","client_id":"the-client-id","client_secret":"the-secret-of-the-wallbox","token_endpoint":"https://192.0.2.7:8443/oauth/token","ca_fingerprint":"the-pin"}';
    expect(body).toContain(qrSvg(json, en.adding.credentials.qr));
    expect(body).toContain('action="/appliances/wallbox/pair"');
    const { addressHint } = en.adding.credentials;
    expect(body).toContain(addressHint);
    const named = { ...issued, tokenEndpoint: 'https://hub.home.example:8443/oauth/token' };
    const page = credentialsPage({ credentials: named, isNewAppliance: true }, FRAME, SESSION, '/done');
    expect(page.body).not.toContain(addressHint);
  });

  it('the page shows a token URL for each login of an appliance with several', () => {
    const used = [connectionStatus({ name: 'netatmo', title: 'Netatmo' }), connectionStatus({ name: 'tado' })];
    const login = { connected: null, hasOthers: false, sharedLogin: '', used };
    const { body } = credentialsPage({ credentials: issued, isNewAppliance: false }, FRAME, SESSION, '/done', login);
    expect(body).toContain(`${en.adding.credentials.tokenEndpoint}: Netatmo</span>`);
    for (const name of ['netatmo', 'tado'])
      expect(body).toContain(`>https://192.0.2.7:8443/connections/${name}/oauth/token</code>`);
    expect(body).not.toContain(`>${issued.tokenEndpoint}</code>`);
  });
});

describe('the confirmation of a new secret', () => {
  const confirmation = (keys: 'none' | 'asked' | 'missing') =>
    confirmationPage(
      secretRotationConfirmation(en, { name: 'wallbox', title: 'Wallbox' }, 'token', keys),
      FRAME,
      SESSION,
    ).body;

  it('the confirmation of a new secret has an unchecked checkbox only for an appliance with keys, and asks for it', () => {
    expect(confirmation('none')).not.toContain('checkbox');
    expect(confirmation('asked')).toContain('name="replace_keys"');
    expect(confirmation('asked')).not.toMatch(/checked|aria-invalid/);
    expect(confirmation('missing')).toContain('aria-invalid="true" aria-describedby="keys-problem"');
  });
});
