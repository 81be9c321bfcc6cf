import { describe, expect, it } from 'vitest';
import { requestToken, runCurl, startTestModeHub } from '../../netns/hub-on-host.ts';
import { browserSkipReason, startBrowser } from '../../support/browser.ts';
import { createLan, lanSkipReason } from '../../support/netns.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';
import { stateFolder } from '../../support/state-folder.ts';

skipIfUnavailable(async () => (await lanSkipReason(['/usr/bin/curl'])) ?? (await browserSkipReason()));

describe('latchkey serve --test-mode, with nothing configured', () => {
  it('a hub in test mode pairs through a phone and serves an appliance on a home network with only IPv6', async () => {
    await using lan = await createLan(['hub', 'phone', 'appliance']);
    const { phone, appliance } = lan.hosts;
    await lan.hosts.hub.run('ip', ['-4', 'addr', 'flush', 'dev', 'eth0']);
    await using hub = await startTestModeHub(lan.hosts.hub);
    await hub.process.errorLine((line) => line.includes('LATCHKEY_LAN_LISTEN=127.0.0.1 keeps both') || undefined);
    const emulator = await hub.logged('emulator_started');
    const [http, https] = ['http://[fd77::1]', 'https://[fd77::1]:8443'];
    expect(emulator).toMatchObject({ base_url: expect.stringContaining(`${http}:`) });
    const credentials = await hub.addAppliance('wallbox');
    expect(credentials.token_endpoint).toBe(`${https}/oauth/token`);

    await using browser = await startBrowser({ namespace: phone.namespace });
    await using visit = await browser.visit();
    const { page } = visit;
    await page.goto((await hub.beginPairing('wallbox')).href);
    await page.getByText(/Latchkey on .+ asks for access to your account/).waitFor();
    await page.getByLabel('User name').fill('demo');
    await page.getByLabel('Password').fill('demo');
    await page.getByRole('button', { name: 'Log in' }).tap();
    await page.getByText('wallbox is connected').waitFor();
    expect(visit.origins).toEqual([emulator['frontend_url'], emulator['base_url'], `${http}:8480`]);
    expect(visit.browserErrors).toEqual([]);

    const token = await requestToken(appliance, { origin: https, caFile: hub.caFile }, credentials);
    expect(token).toMatchObject({ token_type: 'Bearer', scope: 'Monitoring RemoteControl' });
    const authorization = ['--header', `authorization: Bearer ${token['access_token']}`];
    const whoami = await runCurl(appliance, ['--globoff', ...authorization, `${emulator['base_url']}/api/whoami`]);
    expect(JSON.parse(whoami)).toMatchObject({ user: 'demo', scope: 'Monitoring RemoteControl' });
    const rebound = [`${emulator['base_url']}/_emulator/grants`, `${emulator['frontend_url']}/sso/token`].map((url) =>
      runCurl(appliance, ['--globoff', '--header', 'host: evil.example', '--write-out', '%{http_code}', url]),
    );
    for (const response of await Promise.all(rebound)) expect(response).toMatch(/421$/);
  });

  it('a hub in test mode keeps nothing from one start to the next', async () => {
    using home = stateFolder();
    await using lan = await createLan(['hub']);
    await using hub = await startTestModeHub(lan.hosts.hub, home.path);
    await hub.addAppliance('wallbox');
    const id = (await hub.status()).hub.id;
    expect(await hub.process.stop('SIGTERM')).toBe(0);
    await using next = await startTestModeHub(lan.hosts.hub, home.path);
    const { hub: other, appliances } = await next.status();
    expect(appliances).toEqual([]);
    expect(other.id).not.toBe(id);
  });
});
