import { describe, expect, it } from 'vitest';
import type { ApplianceResponse, CredentialsResponse } from '../../src/control/messages.ts';
import { logIn } from '../reliability/fleet.ts';
import { whoami } from '../reliability/load.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { startPortal } from '../support/portal.ts';

describe('the main job', () => {
  it('the command line pairs an appliance, and the hub issues its token, refreshes it and forgets it', async () => {
    await using emulator = await startPortal();
    await using hub = await HubProcess.start({ emulator, here: true });
    const scope = ['--scope', 'Monitoring RemoteControl'];
    const wallbox = await hub.json<CredentialsResponse>('appliance', 'add', 'wallbox', ...scope);
    expect(await hub.requestToken(wallbox)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });

    const { authorize_url } = await hub.json<{ authorize_url: string }>('pair', 'wallbox', '--no-wait');
    expect(await logIn(emulator, authorize_url)).toContain('wallbox is connected');
    const first = await hub.requestToken(wallbox);
    expect(first).toMatchObject({
      status: 200,
      headers: { 'cache-control': 'no-store' },
      body: { token_type: 'Bearer', scope: 'Monitoring RemoteControl' },
    });
    expect(await whoami(emulator, first.body['access_token'])).toBe(200);

    expect(await hub.json('refresh', 'wallbox')).toMatchObject({ name: 'wallbox', state: 'active', problem: null });
    const second = await hub.requestToken(wallbox);
    expect(second.body['access_token']).not.toBe(first.body['access_token']);
    expect(await whoami(emulator, second.body['access_token'])).toBe(200);

    expect(await hub.cli('unpair', 'wallbox')).toMatchObject({ status: 0 });
    const { appliances } = await hub.json<{ appliances: ApplianceResponse[] }>('status');
    expect(appliances).toMatchObject([{ name: 'wallbox', state: 'unpaired', expires_in: null }]);
    expect(emulator.observations).toMatchObject({
      refreshTokensRepeated: 0,
      codesRepeated: 0,
      overlappingRefreshes: 0,
    });
    rememberSecrets([wallbox.client_secret]);
  });
});
