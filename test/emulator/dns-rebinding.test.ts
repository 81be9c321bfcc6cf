import { request } from 'undici';
import { expect, test } from 'vitest';
import type { Emulator } from '../../src/emulator/index.ts';
import { obtainTokens, requestConfig, startTestEmulator } from './portal-client.ts';

function port({ baseUrl }: Emulator): string {
  return new URL(baseUrl).port;
}

/** Sends a request as the browser of a web page on `host` does, after that name was rebound to this address. */
async function requestWithHost(url: string, host: string, method: 'GET' | 'POST' = 'GET') {
  const { statusCode, body } = await request(url, { method, headers: { host } });
  return { status: statusCode, text: await body.text() };
}

test('a web page whose own host name resolves to the emulator can read nothing from it', async () => {
  await using emulator = await startTestEmulator({ showSecrets: true });
  const { access_token } = await obtainTokens(emulator);
  const { code_url, authorize_url } = await requestConfig(emulator);
  const host = (url: string) => `evil.example:${new URL(url).port}`;
  const paths = ['', 'requests', 'grants', 'logins', 'settings', 'events'];
  const urls = [
    ...paths.map((path) => `${emulator.baseUrl}/_emulator/${path}`),
    ...[`${emulator.baseUrl}/api/whoami`, `${emulator.baseUrl}/nothing`, code_url, authorize_url],
    `${emulator.frontendUrl}/sso/token`,
  ];
  for (const url of urls) {
    const { status, text } = await requestWithHost(url, host(url));
    expect(status, url).toBe(421);
    expect(text, url).not.toContain(access_token);
  }
  for (const url of [
    `${emulator.baseUrl}/external/oauth2helper/config/${emulator.clientId}`,
    `${emulator.baseUrl}/_emulator/reset`,
  ]) {
    expect((await requestWithHost(url, host(url), 'POST')).status, url).toBe(421);
  }
  expect(emulator.grants()).toHaveLength(1);
  // The log shows the rejected requests to the person who runs the emulator.
  expect(emulator.requests.at(-1)).toMatchObject({ endpoint: 'config', status: 421 });
});

test.each(['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example', ''])(
  'the emulator answers a request for %j with the allowed hosts and how to add one, in JSON despite errorBody',
  async (host) => {
    await using emulator = await startTestEmulator({ errorBody: 'html' });
    const { status, text } = await requestWithHost(`${emulator.baseUrl}/api/whoami`, host);
    expect(status).toBe(421);
    const { message } = JSON.parse(text) as { message: string };
    expect(message).toContain(`a configured name (found ${JSON.stringify(host)})`);
    expect(message).toContain('--allowed-host NAME');
  },
);

test('the emulator accepts IP addresses, localhost and its configured names as Host, in any case and with any port', async () => {
  await using emulator = await startTestEmulator({
    publicHost: 'Portal.test',
    allowedHosts: ['Bench', 'emulator_1.example'],
  });
  const names = ['localhost', 'LOCALHOST.', 'portal.test', 'bench', 'BENCH', 'emulator_1.example'];
  for (const host of [...names, '127.0.0.1', '192.168.1.7', '[::1]', '[fd00::7]']) {
    for (const one of [host, `${host}:${port(emulator)}`, `${host}:8080`]) {
      expect((await requestWithHost(`http://127.0.0.1:${port(emulator)}/api/whoami`, one)).status, one).toBe(401);
    }
  }
  expect((await requestWithHost(`http://127.0.0.1:${port(emulator)}/api/whoami`, 'a.bench')).status).toBe(421);
});

test('the emulator rejects an invalid host name at its start', async () => {
  for (const name of ['', 'http://bench', 'bench:80', '*', 'a b', 'a..b', 'x'.repeat(254)]) {
    await expect(startTestEmulator({ allowedHosts: [name] }), name).rejects.toThrow(
      /^allowedHosts\.0: must be a host name .*\(found /,
    );
  }
});
