import { expect, test } from 'vitest';
import { Home } from './home.ts';

test('an appliance that is added may authenticate with the secret that was shown once, also after a restart', async () => {
  await using home = await Home.start();
  const { appliance, secret } = await home.add('wallbox', ' RemoteControl  Monitoring ');
  expect(appliance).toMatchObject({ name: 'wallbox', scope: 'RemoteControl Monitoring', portal: 'home' });
  expect(secret.reveal()).toHaveLength(43);
  expect(home.run.appliances.authenticate(appliance.id, secret.reveal())).toEqual(appliance);
  await home.stop();
  const { appliances } = await home.start();
  expect(appliances.authenticate(appliance.id, secret.reveal())).toEqual(appliance);
  expect(JSON.stringify(appliances.list())).not.toContain(secret.reveal());
});

test('nobody authenticates with another secret, another id, the hash, or nothing', async () => {
  await using home = await Home.start();
  const wallbox = await home.add('wallbox');
  const heater = await home.add('heater');
  const { appliances } = home.run;
  expect(appliances.authenticate(wallbox.appliance.id, heater.secret.reveal())).toBeNull();
  expect(appliances.authenticate('nobody', wallbox.secret.reveal())).toBeNull();
  expect(appliances.authenticate(wallbox.appliance.id, wallbox.appliance.secretHash)).toBeNull();
  expect(appliances.authenticate(wallbox.appliance.id, '')).toBeNull();
  expect(appliances.authenticate('', '')).toBeNull();
  expect(appliances.authenticate('__proto__', '')).toBeNull();
});

test('a secret that was rotated is good, and the one before is not', async () => {
  await using home = await Home.start();
  const { appliance, secret } = await home.add('wallbox');
  const rotated = await home.run.appliances.rotateSecret(appliance);
  const check = () => {
    const { appliances } = home.run;
    expect(appliances.authenticate(appliance.id, secret.reveal())).toBeNull();
    expect(appliances.authenticate(appliance.id, rotated.secret.reveal())).toMatchObject({ name: 'wallbox' });
  };
  check();
  await home.stop();
  await home.start();
  check();
});

test('an appliance that is removed is gone, and its name is free for another', async () => {
  await using home = await Home.start();
  const { appliance, secret } = await home.add('wallbox');
  await home.run.appliances.remove(appliance);
  expect(home.run.appliances.authenticate(appliance.id, secret.reveal())).toBeNull();
  expect(() => home.run.appliances.named('wallbox')).toThrow(expect.objectContaining({ code: 'appliance_unknown' }));
  await expect(home.run.appliances.rotateSecret(appliance)).rejects.toMatchObject({ code: 'appliance_unknown' });
  const again = await home.add('wallbox');
  expect(again.appliance.id).not.toBe(appliance.id);
});

test.each([
  ['wallbox', null, null, 'appliance_exists'],
  ['Wallbox', null, null, 'name_invalid'],
  ['heater', 'a"b', null, 'scope_invalid'],
  ['heater', null, 'nowhere', 'portal_unknown'],
])('%s with scope %s at portal %s can not be added: %s', async (name, scope, portal, code) => {
  await using home = await Home.start();
  await home.add('wallbox');
  await expect(home.run.appliances.add(name, scope, portal)).rejects.toMatchObject({ code });
  expect(home.run.appliances.list()).toHaveLength(1);
});

test('two that are added under one name at the same time are one', async () => {
  await using home = await Home.start();
  const results = await Promise.allSettled([home.add('wallbox'), home.add('wallbox'), home.add('wallbox')]);
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  expect(home.run.appliances.list()).toHaveLength(1);
});

test('what can not be written is not there', async () => {
  await using home = await Home.start();
  const { appliance, secret } = await home.add('wallbox');
  for (const write of ['addAppliance', 'changeAppliance', 'removeAppliance'] as const) home.unwritable.add(write);
  await expect(home.run.appliances.add('heater', null, null)).rejects.toMatchObject({ code: 'store_unwritable' });
  await expect(home.run.appliances.rotateSecret(appliance)).rejects.toMatchObject({ code: 'store_unwritable' });
  await expect(home.run.appliances.remove(appliance)).rejects.toMatchObject({ code: 'store_unwritable' });
  expect(home.run.appliances.list()).toEqual([appliance]);
  expect(home.run.appliances.authenticate(appliance.id, secret.reveal())).toEqual(appliance);
});

test('they are listed by name', async () => {
  await using home = await Home.start();
  for (const name of ['wallbox', 'heater', 'pump-2', 'pump-10']) await home.add(name);
  expect(home.run.appliances.list().map(({ name }) => name)).toEqual(['heater', 'pump-10', 'pump-2', 'wallbox']);
});
