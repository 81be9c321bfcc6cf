import { describe, expect, it } from 'vitest';
import { FAULT_KINDS } from '../../../src/emulator/faults/kinds.ts';
import { expectUsable, NAMED_CLIENTS, useConsole } from '../../emulator/console-visit.ts';
import { ALICE, HEATER, obtainTokens, parseTokens, post, refreshTokens, whoami } from '../../emulator/portal-client.ts';
import { PHONE } from '../../support/browser.ts';

describe("the emulator's console in a browser", () => {
  const open = useConsole();

  it('the console allows the access of one waiting device with a button, and refuses that of another', async () => {
    await using opened = await open({ users: [ALICE, { name: 'bob', password: 'builder' }] });
    const { emulator, section } = opened;
    const client = { client_id: HEATER.id, client_secret: HEATER.secret };
    const begin = async () => {
      const response = await post(`${emulator.frontendUrl}/oauth2/device_authorization`, client);
      return (await response.json()) as { user_code: string; device_code: string };
    };
    const poll = ({ device_code }: { device_code: string }) => {
      const grant_type = 'urn:ietf:params:oauth:grant-type:device_code';
      return post(`${emulator.frontendUrl}/oauth2/token`, { ...client, grant_type, device_code });
    };
    const waiting = section('Devices waiting for their user');
    const first = await begin();
    await waiting.getByText(`Heater <7>, ${first.user_code}`).waitFor();
    await waiting.getByRole('button', { name: 'Log in as bob' }).click();
    await opened.page.getByText('bob is logged in for Heater <7>').waitFor();
    await waiting.waitFor({ state: 'hidden' });
    expect((await poll(first)).status).toBe(200);
    expect(emulator.grants()).toMatchObject([{ user: 'bob' }]);

    const second = await begin();
    await waiting.getByRole('button', { name: 'Refuse' }).click();
    await waiting.waitFor({ state: 'hidden' });
    expect(await (await poll(second)).json()).toMatchObject({ error: 'access_denied' });
  });

  it('the console revokes the access tokens of a grant, and then the whole grant', async () => {
    await using opened = await open();
    const { emulator, section } = opened;
    const { access_token, refresh_token } = await obtainTokens(emulator, { scope: 'Monitoring' });
    const grants = section('Grants');
    await grants.getByText('alice, Monitoring').waitFor();
    await grants.getByText('Generation 1').waitFor();
    await grants.getByRole('button', { name: 'Revoke access tokens' }).click();
    await opened.page.getByText('The access tokens of Heater <7> were revoked').waitFor();
    expect((await whoami(emulator, access_token)).status).toBe(401);
    const next = await parseTokens(await refreshTokens(emulator, refresh_token));
    await grants.getByText('Generation 2').waitFor();
    await grants.getByRole('button', { name: 'Revoke grant' }).click();
    await grants.getByText('revoked', { exact: true }).waitFor();
    expect((await whoami(emulator, next.access_token)).status).toBe(401);
    expect((await refreshTokens(emulator, next.refresh_token)).status).toBe(400);
  });

  it('the console advances the clock, so that tokens expire, and resets the emulator only after a confirmation', async () => {
    await using opened = await open();
    const { emulator, page, section } = opened;
    const { access_token } = await obtainTokens(emulator);
    const clock = section('Clock');
    await clock.getByText('no offset').waitFor();
    await clock.getByRole('button', { name: '+1 min' }).click();
    await clock.getByText('1 min ahead').waitFor();
    expect((await whoami(emulator, access_token)).status).toBe(200);
    await clock.getByLabel('Seconds').fill('3540');
    await clock.getByLabel('Seconds').press('Enter');
    await clock.getByText('1 h ahead').waitFor();
    expect((await whoami(emulator, access_token)).status).toBe(401);
    await section('Requests').getByText('401 Unauthorized').waitFor();

    await page.getByRole('button', { name: 'Reset …' }).click();
    await page.getByRole('button', { name: 'Cancel' }).click();
    expect(emulator.grants()).toHaveLength(1);
    await page.getByRole('button', { name: 'Reset …' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Reset', exact: true }).click();
    await section('Requests').getByText('None yet').waitFor();
    await section('Grants').getByText('None yet').waitFor();
    await clock.getByText('no offset').waitFor();
    expect(emulator.grants()).toEqual([]);
  });

  it('the console changes a setting, and the emulator applies it from then on', async () => {
    await using opened = await open();
    const { emulator, section } = opened;
    const { refresh_token } = await obtainTokens(emulator);
    await section('Settings').getByLabel('on_reuse').selectOption('revoke-family');
    await opened.page.getByText('on_reuse was changed').waitFor();
    const next = await parseTokens(await refreshTokens(emulator, refresh_token));
    expect((await refreshTokens(emulator, refresh_token)).status).toBe(400);
    expect((await refreshTokens(emulator, next.refresh_token)).status).toBe(400);
    const refused = section('Settings').getByLabel('refuse_redirect_urls');
    await refused.fill('(');
    await refused.press('Enter');
    await opened.page.getByText('refuse_redirect_urls: must be a JavaScript regular expression').waitFor();
    await expect.poll(() => refused.inputValue()).toBe('');
    opened.expected.push('400 (Bad Request)');
  });

  it('the console adds a fault as a person has written it, and says what is wrong with it', async () => {
    await using opened = await open({ seed: 7 });
    const { emulator, section } = opened;
    const { refresh_token } = await obtainTokens(emulator);
    const faults = section('Faults');
    const [text, add] = [faults.getByLabel('as in the API'), faults.getByRole('button', { name: 'Add the fault' })];
    for (const [wrong, message] of [
      ['{', 'body: must be valid JSON'],
      ['{"kind":"status","endpoint":"token","status":99}', 'status: must be'],
    ] as const) {
      await text.fill(wrong);
      await add.click();
      await opened.page.getByText(message).waitFor();
      opened.expected.push('400 (Bad Request)');
    }
    const fault = {
      kind: 'status',
      endpoint: 'token',
      status: 429,
      times: null,
      every: 2,
      body: '{"error":\n"slow_down"}',
    };
    await text.fill(JSON.stringify({ ...fault, headers: { 'retry-after': '30' } }));
    await add.click();
    await faults.getByText('0 hits, no limit').waitFor();
    await faults.getByText('every 2').waitFor();
    expect(emulator.faults).toMatchObject([fault]);
    expect((await refreshTokens(emulator, refresh_token)).status).toBe(200);
    const faulty = await refreshTokens(emulator, refresh_token);
    expect([faulty.status, faulty.headers.get('retry-after')]).toEqual([429, '30']);
    await faults.getByRole('button', { name: 'Clear all faults' }).click();
    await faults.getByText('The portal works normally').waitFor();
    expect(emulator.faults).toEqual([]);
  });

  it('the console can add a fault of each kind with its example', async () => {
    await using opened = await open();
    const faults = opened.section('Faults');
    for (const kind of Object.keys(FAULT_KINDS).filter((one) => one !== 'tls_failure')) {
      await faults.getByLabel('Kind').selectOption(kind);
      await faults.getByRole('button', { name: 'Add the fault' }).click();
      await faults.getByRole('button', { name: `: ${kind}` }).waitFor();
      expect(opened.emulator.faults, kind).toEqual([expect.objectContaining({ kind })]);
      await faults.getByRole('button', { name: 'Clear all faults' }).click();
      await faults.getByText('The portal works normally').waitFor();
    }
    await faults.getByLabel('Kind').selectOption('tls_failure');
    await faults.getByRole('button', { name: 'Add the fault' }).click();
    await opened.page.getByText('tls_failure needs an origin with TLS').waitFor();
    opened.expected.push('400 (Bad Request)');
  });

  it('on a phone in the dark everything on the console is legible, reachable and within the window', async () => {
    await using opened = await open({ clients: NAMED_CLIENTS }, { ...PHONE, colorScheme: 'dark' });
    await expectUsable(opened);
    await opened.takeScreenshot('console-on a phone in the dark');
  });
});
