import { expect, it } from 'vitest';
import { HubProcess } from '../../support/hub-process.ts';
import { startPortal } from '../../support/portal.ts';

it('status shows the tokens of each appliance, which a reload and a stop keep and a kill may lose', async () => {
  await using emulator = await startPortal();
  await using hub = await HubProcess.start({ emulator });
  const wallbox = await hub.addAppliance('wallbox');
  await hub.addAppliance('heater');
  await hub.pair('wallbox', emulator);
  const request = async (times: number) => {
    for (let count = 0; count < times; count++) expect((await hub.requestToken(wallbox)).status).toBe(200);
  };
  const usage = async (appliance: string) => {
    const { appliances } = await hub.status();
    const found = appliances.find(({ name }) => name === appliance);
    return { lastToken: found?.last_token, tokens: found?.tokens.last_14_days };
  };
  await request(3);
  // A person reads it: no appliance uses it.
  await hub.ask((control) => control.request('token', { name: 'wallbox' }));
  expect(await usage('heater')).toEqual({ lastToken: null, tokens: 0 });
  const used = await usage('wallbox');
  expect(used).toEqual({ lastToken: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/), tokens: 3 });

  await hub.reload();
  expect(await usage('wallbox')).toEqual(used);
  await request(2);
  await hub.kill('SIGTERM');
  await hub.launch();
  expect(await usage('wallbox')).toMatchObject({ tokens: 5 });
  await request(1);
  expect(await usage('wallbox')).toMatchObject({ tokens: 6 });
  await hub.kill('SIGKILL');
  await hub.launch();
  expect(await usage('wallbox')).toMatchObject({ tokens: 5 });
});
