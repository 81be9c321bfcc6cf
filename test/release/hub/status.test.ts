import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { logIn } from '../../reliability/fleet.ts';
import { runSql } from '../../store/corrupt-store.ts';
import { eventually, HubProcess, reservePort } from '../../support/hub-process.ts';
import { startPortal } from '../../support/portal.ts';

describe('the status while the portal hangs', () => {
  it('status shows an appliance as active until its token expires, and then since when the portal is unreachable', async () => {
    await using emulator = await startPortal({ tokenLifetime: 4 });
    await using hub = await HubProcess.start({ emulator });
    await hub.addAppliance('wallbox');
    await hub.pair('wallbox', emulator);
    emulator.addFault({ kind: 'hang', endpoint: 'token', times: null });
    expect(await hub.appliance('wallbox')).toMatchObject({ state: 'active', problem: null });

    const first = await eventually(async () => {
      const { state, problem } = await hub.appliance('wallbox');
      return state === 'retrying' && problem;
    });
    expect(first).toMatchObject({ code: 'portal_unreachable', message: 'The portal has not responded yet' });
    const later = await eventually(async () => {
      const { problem } = await hub.appliance('wallbox');
      return Date.now() - Date.parse(first.since) > 3000 && problem;
    });
    // The problem began when the token expired, and its time does not move with the clock.
    expect(Math.abs(Date.parse(later.since) - Date.parse(first.since))).toBeLessThanOrEqual(1000);
    await hub.kill();
  });
});

describe('the status of an appliance with damaged credentials', () => {
  it('status distinguishes damaged credentials from an appliance that is no longer declared', async () => {
    await using emulator = await startPortal();
    await using hub = await HubProcess.start({ emulator, here: true });
    // If the snapshot contained the appliance, its credentials would be repaired from there.
    await eventually(async () => existsSync(join(hub.directory, 'state/latchkey.db.copy')));
    await hub.addAppliance('wallbox');
    await hub.kill('SIGTERM');
    runSql(join(hub.directory, 'state'), "UPDATE appliances SET sealed = 'damaged'");
    await hub.launch();
    expect(await hub.appliance('wallbox')).toMatchObject({ without_credentials: true, credentials_damaged: true });
    const { stdout } = await hub.cli('appliance', 'list');
    expect(stdout).toContain('its entry in the store was damaged');
    await expect(hub.ask((control) => control.request('rotateSecret', { name: 'wallbox' }))).rejects.toMatchObject({
      code: 'not_allowed',
    });
    await hub.ask((control) => control.request('removeAppliance', { name: 'wallbox' }));
    await hub.addAppliance('wallbox');
    expect(await hub.appliance('wallbox')).not.toHaveProperty('credentials_damaged');
  });
});

describe('a pairing while the portal is down', () => {
  it('pair reports that the portal is down, and the pairing succeeds when the portal is back', async () => {
    const before = await startPortal({ port: await reservePort(), frontendPort: await reservePort() });
    await using hub = await HubProcess.start({ emulator: before, here: true });
    await before.close();
    await hub.addAppliance('wallbox');
    const { status, stdout, stderr } = await hub.cli('pair', 'wallbox', '--no-wait');
    expect({ status, stdout, stderr }).toEqual({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(/\nlatchkey: the portal is unreachable .+; the pairing continues: .+\n$/),
    });
    expect(await hub.appliance('wallbox')).toMatchObject({ state: 'pairing' });

    await using emulator = await startPortal({
      port: Number(new URL(before.baseUrl).port),
      frontendPort: Number(new URL(before.frontendUrl).port),
      clients: [{ id: before.clientId, secret: before.clientSecret }],
    });
    const url = await eventually(async () => (await hub.appliance('wallbox')).authorize_url, 45);
    expect(await logIn(emulator, url)).toContain('wallbox is connected');
  });
});
