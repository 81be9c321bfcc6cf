import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect, it, vi } from 'vitest';
import { logIn } from '../../browser/browser-test-hub.ts';
import { PortalOnHost } from '../../netns/portal-on-host.ts';
import { browserSkipReason, PHONE, startBrowser } from '../../support/browser.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { eventually } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { Machine, machineSkipReason } from '../../support/machine.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';
import { stateFolder } from '../../support/state-folder.ts';
import { CONFIGURATION_FILE, configurationText, InstalledHub, SECRET_FILE } from '../machine/installed-hub.ts';
import { buildPackage } from '../machine/packages.ts';
import { buildAppRepository } from '../package/home-assistant-app.ts';
import { homeAssistantSkipReason, installHomeAssistant, writeConfiguration } from './home-assistant.ts';

/** As scripts/test-home-assistant installs Home Assistant in it. */
const DEBIAN = { suite: 'trixie', packages: ['python3-venv'] } as const;
const PORTAL_CA = 'portal-ca.pem';
const UNIT = 'home-assistant';

vi.setConfig({ testTimeout: scaleDeadline(600_000) });

skipIfUnavailable(
  async () => (await browserSkipReason()) ?? (await machineSkipReason([], DEBIAN)) ?? (await homeAssistantSkipReason()),
);

it('a person with a phone lets a Home Assistant on another machine join the hub, and logs in for the integration of a cloud', async () => {
  using folder = stateFolder();
  await using hub = await InstalledHub.boot(DEBIAN.suite);
  const caFile = join(folder.path, PORTAL_CA);
  await using portal = await PortalOnHost.startNamed(hub.host, hub.host.address, { caFile });
  await startHub(hub, portal, readFileSync(caFile, 'utf8'));
  await using machine = await Machine.boot(hub.peer, await installHomeAssistant(), DEBIAN);
  await startHomeAssistant(machine, portal.baseUrl, readFileSync(caFile, 'utf8'), folder.path);

  await using browser = await startBrowser({ namespace: hub.phone.namespace });
  await using visit = await browser.visit({ ...PHONE, ignoreHTTPSErrors: true });
  const { page: frontend } = visit;
  // The frontend of Home Assistant is large.
  for (const one of [frontend, frontend.context()]) one.setDefaultTimeout(scaleDeadline(20_000));
  const origin = `http://${hub.peer.address}:8123`;
  await onboard(frontend, origin);

  // Found by mDNS, and approved by the code that both pages show.
  await frontend.goto(`${origin}/config/integrations/dashboard`);
  await frontend.getByText('Cellar hub').waitFor();
  await frontend.getByRole('button', { name: 'Add', exact: true }).click();
  await frontend.getByTitle('Join the hub').waitFor();
  const pin = (await frontend.locator('code').textContent()) ?? '';
  await frontend.getByText('Ask to join').click();
  await frontend.getByText('The hub lets no new appliances join at the moment.').waitFor();
  const page = await openedBy(frontend, () => frontend.getByRole('link', { name: 'page of the hub' }).click());
  await signIn(page, hub);
  await page.getByText('About this hub').click();
  expect(await page.getByText(pin).textContent()).toBe(pin);
  await page.getByText('Appliances that ask to join').click();
  await page.getByRole('button', { name: 'Let appliances join for 10 minutes' }).click();
  await page.getByText('New appliances are allowed to join').waitFor();
  await frontend.bringToFront();
  await frontend.getByRole('button', { name: 'Submit' }).click();
  const code = await frontend.locator('strong', { hasText: /^[A-Z]{3}-[A-Z]{3}$/ }).textContent();
  await page.bringToFront();
  expect(await page.locator('.compare').textContent()).toBe(code);
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.getByRole('heading', { name: 'Home Assistant' }).waitFor();
  await frontend.bringToFront();
  await frontend.getByRole('button', { name: 'Skip and finish' }).click();

  // It may use a login.
  await page.bringToFront();
  await page.getByText('More', { exact: true }).click();
  await page.getByRole('link', { name: 'Add a login to share' }).click();
  await page.getByLabel('Name', { exact: true }).fill('demo-cloud');
  await page.getByLabel('Permissions', { exact: true }).fill('Monitoring');
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await page.getByRole('heading', { name: 'Login “demo-cloud”' }).waitFor();
  await page.goto(`https://${hub.host.address}:8443/appliances/home-assistant`);
  await page.getByText('More', { exact: true }).click();
  await page.getByText('Use other logins', { exact: true }).click();
  await page.getByLabel('demo-cloud').check();
  await page.getByLabel('Home Assistant (its own login)').uncheck();
  await page.getByRole('button', { name: 'Use these logins' }).click();
  await page.getByRole('link', { name: 'demo-cloud' }).waitFor();

  // The integration of the cloud is added at once, and its login is missing.
  await frontend.bringToFront();
  await frontend.goto(`${origin}/config/integrations/dashboard`);
  await frontend.getByText('Add integration').click();
  await frontend.getByLabel('Search for a brand name').fill('demo cloud');
  const login = await openedBy(frontend, () => frontend.getByText('Demo cloud').click());
  await login.getByText('Continue only if your appliance has opened this page').waitFor();
  const repairs = await frontend.context().newPage();
  await repairs.goto(`${origin}/config/repairs`);
  await repairs.getByText('demo-cloud needs a login').click();
  const overview = await openedBy(repairs, () => repairs.getByRole('link', { name: 'page of the hub' }).click());
  await overview.getByText('The login “demo-cloud” is waiting for somebody to log in.').waitFor();
  await overview.close();
  await login.bringToFront();
  await login.getByRole('button', { name: 'Continue' }).click();
  await login.getByText('Connect Home Assistant with the login “demo-cloud”?').waitFor();
  await login.getByRole('button', { name: 'Continue' }).click();
  await logIn(login);
  await login.getByText('Home Assistant is connected').waitFor();

  await frontend.bringToFront();
  await frontend.getByText('Created configuration for Demo cloud.').waitFor();
  await frontend.getByRole('button', { name: 'Finish' }).click();
  await page.bringToFront();
  await page.goto(`https://${hub.host.address}:8443/`);
  await page.getByText('Home Assistant is connected.').waitFor();
  await page.getByText(/^Home Assistant \(.+ ago\)$/).waitFor();
  await repairs.bringToFront();
  await repairs.keyboard.press('Escape');
  const issue = repairs.getByText('demo-cloud needs a login').first();
  await issue.waitFor();
  await issue.waitFor({ state: 'hidden', timeout: scaleDeadline(90_000) });

  const lines = await machine.journal(UNIT);
  const own = lines.filter((line) => /WARNING|ERROR|CRITICAL/.test(line) && /latchkey|demo_cloud/.test(line));
  expect(own.filter((line) => !line.includes('has not been tested by Home Assistant'))).toEqual([]);
});

async function startHub(hub: InstalledHub, portal: PortalOnHost, portalCa: string): Promise<void> {
  await hub.installStopped(await buildPackage());
  await hub.machine.write(CONFIGURATION_FILE, configurationText(portal, `ca_file = "${PORTAL_CA}"`));
  await hub.machine.write(`/etc/latchkey/${PORTAL_CA}`, portalCa);
  await hub.machine.write(SECRET_FILE, portal.clientSecret, '600');
  await hub.start();
}

/** Starts Home Assistant as a service of its machine, and waits until it serves its frontend. */
async function startHomeAssistant(machine: Machine, cloud: string, cloudCa: string, folder: string): Promise<void> {
  const repository = await buildAppRepository(folder, '--version', '1.2.3', '--image', 'registry.example/a/latchkey');
  const integration = join(repository, 'custom_components/latchkey');
  await writeConfiguration(machine.path('/root/config'), integration, ['frontend']);
  await machine.write(`/etc/${PORTAL_CA}`, cloudCa);
  const unit = [
    '[Service]',
    'BindReadOnlyPaths=/mnt:/opt',
    `Environment=HOME=/root DEMO_CLOUD=${cloud} REQUESTS_CA_BUNDLE=/etc/${PORTAL_CA}`,
    'ExecStart=/opt/bin/hass --config /root/config --skip-pip --log-no-color',
    '',
  ];
  await machine.write(`/etc/systemd/system/${UNIT}.service`, unit.join('\n'));
  await machine.sh(`systemctl daemon-reload; systemctl start ${UNIT}`);
  const isUp = async () => (await machine.run('curl -sf http://127.0.0.1:8123/manifest.json')).status === 0;
  await eventually(isUp, 60, 500);
}

/** Creates the owner of a new Home Assistant, which shows on the way what it has found. */
async function onboard(page: Page, origin: string): Promise<void> {
  const next = () => page.getByRole('button', { name: 'Next' }).click();
  await page.goto(origin);
  await page.getByText('Create my smart home').click();
  const password = 'a password of the test';
  const fields = Object.entries({ name: 'Owner', username: 'owner', password, password_confirm: password });
  const create = page.getByRole('button', { name: 'Create account' });
  // The form loses what is filled in while it processes another field.
  await eventually(async () => {
    for (const [name, value] of fields) await page.locator(`input[name=${name}]`).fill(value);
    return create.isEnabled();
  });
  await create.click();
  await page.getByText('Home location').waitFor();
  await next();
  await page.getByText('We would like to know the').waitFor();
  await next();
  await page.getByText('Help us help you').waitFor();
  await next();
  await page.getByText('Latchkey').waitFor();
  await page.getByRole('button', { name: 'Finish' }).click();
  await page.getByText('Welcome Owner').waitFor();
}

/** The page that a click opens in another tab. */
async function openedBy(page: Page, click: () => Promise<void>): Promise<Page> {
  const [opened] = await Promise.all([page.waitForEvent('popup'), click()]);
  return opened;
}

async function signIn(page: Page, hub: InstalledHub): Promise<void> {
  const { code } = await hub.ask((control) => control.request('setupCode'));
  rememberSecrets([code]);
  await page.getByLabel('Setup code').fill(code);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('There are no appliances yet.').waitFor();
}
