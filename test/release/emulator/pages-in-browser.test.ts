import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { refusal, StockClient, startCloud, TOOL } from '../../emulator/oauth2/stock-client.ts';
import { ALICE } from '../../emulator/portal-client.ts';
import { browserSkipReason, PHONE, startBrowser } from '../../support/browser.ts';
import { findUsabilityProblems } from '../../support/usability.ts';

const missing = await browserSkipReason();

test.skipIf(missing !== null)(
  'a person types a user code into the page, logs in, and refuses a second device',
  async () => {
    await using cloud = await startCloud();
    await using browser = await startBrowser();
    await using visit = await browser.visit(PHONE);
    const stock = await StockClient.discover(cloud);
    const { page } = visit;
    const first = await stock.beginDevice({ scope: 'read' });
    await page.goto(first.verification_uri);
    expect(await findUsabilityProblems(page)).toEqual([]);
    await page.getByLabel('The code that your device shows').fill(first.user_code.toLowerCase());
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText(first.user_code).waitFor();
    expect(await findUsabilityProblems(page)).toEqual([]);
    await page.getByLabel('User name').fill(ALICE.name);
    await page.getByLabel('Password').fill(ALICE.password);
    await page.getByRole('button', { name: 'Log in and allow' }).click();
    await page.getByText('Tool now gets access').waitFor();
    expect((await stock.poll(first.device_code)).scope).toBe('read');

    const second = await stock.beginDevice();
    await page.goto(second.verification_uri_complete ?? '');
    await page.getByRole('button', { name: 'Continue as alice' }).waitFor();
    await page.getByRole('button', { name: 'Refuse' }).click();
    await page.getByText('Tool does not get access').waitFor();
    await expect(stock.poll(second.device_code)).rejects.toMatchObject(refusal('access_denied'));
    expect(visit.browserErrors).toEqual([]);
  },
);

test.skipIf(missing !== null)(
  'a person logs in at the authorization endpoint, and the browser returns to the client',
  async () => {
    const server = createServer((_request, response) => response.end('back at the client')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    await using _ = { [Symbol.asyncDispose]: async () => void server.close() };
    const redirectUri = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`;
    await using cloud = await startCloud({ clients: [{ ...TOOL, redirectUris: [redirectUri] }] });
    await using browser = await startBrowser();
    await using visit = await browser.visit(PHONE);
    const stock = await StockClient.discover(cloud);
    const { page } = visit;
    await page.goto(stock.authorizationUrl({ state: 'a b' }, redirectUri));
    await page.getByLabel('User name').fill(ALICE.name);
    await page.getByLabel('Password').fill(ALICE.password);
    await page.getByRole('button', { name: 'Log in and allow' }).click();
    await page.getByText('back at the client').waitFor();
    const landed = new URL(page.url());
    expect([landed.searchParams.get('state'), landed.searchParams.get('iss')]).toEqual(['a b', stock.server.issuer]);
  },
);
