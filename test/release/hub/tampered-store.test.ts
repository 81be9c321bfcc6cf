import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { CredentialsResponse } from '../../../src/control/messages.ts';
import type { Emulator } from '../../../src/emulator/index.ts';
import { runSql } from '../../store/corrupt-store.ts';
import { HubProcess } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { startPortal } from '../../support/portal.ts';
import { setUpOnce } from '../../support/set-up.ts';

let emulator: Emulator;
let hub: HubProcess;
let wallbox: CredentialsResponse;
let heater: CredentialsResponse;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
});

beforeEach(async () => {
  hub = await HubProcess.start({ emulator, here: true });
  wallbox = await hub.addAppliance('wallbox');
  heater = await hub.addAppliance('heater');
  await hub.pair('wallbox', emulator);
});

afterEach(() => hub[Symbol.asyncDispose]());

/** Changes the database while the hub is stopped, and removes its snapshot, as a person with the SD card can. */
async function attack(statements: string, victim = hub): Promise<void> {
  await victim.kill('SIGTERM');
  rmSync(join(victim.directory, 'state/latchkey.db.copy'), { force: true });
  runSql(join(victim.directory, 'state'), statements);
  await victim.launch();
}

const SWAPPED_SECRETS = `CREATE TEMP TABLE before AS SELECT id, sealed FROM appliances;
  UPDATE appliances SET sealed = (SELECT sealed FROM before WHERE before.id <> appliances.id)`;

test('secrets that were swapped between two appliances in the database get no token, and the hub reports it', async () => {
  expect((await hub.requestToken(wallbox)).status).toBe(200);
  await attack(SWAPPED_SECRETS);
  const stolen = { client_id: wallbox.client_id, client_secret: heater.client_secret };
  expect(await hub.requestToken(stolen)).toMatchObject({ status: 401, body: { error: 'invalid_client' } });
  expect(await hub.requestToken(wallbox)).toMatchObject({ status: 401 });
  const { hub: status, notices } = await hub.status();
  const message = expect.stringMatching(
    /changed by something other than the hub: appliances (wallbox, heater|heater, wallbox)/,
  );
  expect(status.problems).toMatchObject([{ code: 'store_changed', message }]);
  expect(notices).toMatchObject([{ code: 'store_changed', severity: 'error' }]);
  expect(readFileSync(hub.log, 'utf8')).toMatch(/"wallbox".*appliance_damaged/);
  expect((await hub.cli('doctor')).stdout).toMatch(
    /fail.*wallbox gets no tokens, because its entry in the store was damaged/,
  );
});

test('the configuration gives two declared appliances no grant of each other if their names were swapped in the store', async () => {
  await using declared = await HubProcess.prepare({
    emulator,
    here: true,
    toml: '[appliances.ours]\nsecret_file = "ours.secret"\n[appliances.theirs]\nsecret_file = "theirs.secret"',
  });
  const credentials: Record<string, CredentialsResponse> = {};
  for (const name of ['ours', 'theirs']) {
    const file = join(declared.directory, `${name}.secret`);
    writeFileSync(file, `the-secret-of-${name}`);
    chmodSync(file, 0o600);
    rememberSecrets([`the-secret-of-${name}`]);
  }
  await declared.launch();
  for (const name of ['ours', 'theirs']) {
    const { client_id } = await declared.appliance(name);
    credentials[name] = { ...wallbox, client_id, client_secret: `the-secret-of-${name}` };
  }
  await declared.pair('ours', emulator);
  await attack(
    `UPDATE appliances SET name = name || '-before';
     UPDATE appliances SET name = CASE name WHEN 'ours-before' THEN 'theirs' ELSE 'ours' END`,
    declared,
  );
  for (const name of ['ours', 'theirs']) {
    expect(await declared.requestToken(credentials[name] ?? wallbox)).toMatchObject({ status: 401 });
  }
});
