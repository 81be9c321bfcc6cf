import { AuthorizationCode } from 'simple-oauth2';
import { expect, test } from 'vitest';
import { get, HEATER, redirectLocation, startTestEmulator, whoami } from './portal-client.ts';

test.for(['header', 'body'] as const)(
  'simple-oauth2 gets and refreshes tokens at the emulator, with its credentials in the %s',
  async (authorizationMethod) => {
    await using emulator = await startTestEmulator({ autoLogin: true });
    const redirect_uri = `${emulator.baseUrl}/external/oauth2helper/code/set/${HEATER.id}`;
    const client = new AuthorizationCode({
      client: { id: HEATER.id, secret: HEATER.secret },
      auth: { tokenHost: emulator.frontendUrl, tokenPath: '/sso/token', authorizePath: '/sso/authorize' },
      options: { authorizationMethod },
    });
    const url = client.authorizeURL({ redirect_uri, scope: 'Monitoring', state: 'a b' });
    const landed = new URL(redirectLocation(await get(url))).searchParams;
    expect(landed.get('state')).toBe('a b');
    const first = await client.getToken({ code: landed.get('code') ?? '', redirect_uri, scope: 'Monitoring' });
    const second = await first.refresh({ scope: 'Monitoring' });
    expect(second.token).toMatchObject({ token_type: 'bearer', scope: 'Monitoring', expires_in: 3600 });
    expect(second.token['refresh_token']).not.toBe(first.token['refresh_token']);
    expect((await whoami(emulator, String(second.token['access_token']))).status).toBe(200);
  },
);
