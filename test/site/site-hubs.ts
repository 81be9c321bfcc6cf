import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StatusResponse } from '../../src/control/messages.ts';
import { HubProcess, type HubProcessOptions } from '../support/hub-process.ts';
import type { TestDatabase } from '../support/postgres/server.ts';

/** Prepares the process of a hub of a site, without starting it. @param url of the site's database */
export async function prepareSiteHub(
  { url }: Pick<TestDatabase, 'url'>,
  name: string,
  options: HubProcessOptions = {},
): Promise<HubProcess> {
  const hub = await HubProcess.prepare({
    ...options,
    toml: `[store]\npostgres_file = "postgres.url"\n${options.toml ?? ''}`,
    env: { LATCHKEY_HUB_NAME: name, ...options.env },
  });
  await writeFile(join(hub.directory, 'postgres.url'), `${url}\n`, { mode: 0o600 });
  return hub;
}

/** Gives a hub the store key of another one of its site. */
export function copyStoreKey(from: HubProcess, to: HubProcess): Promise<void> {
  return copyFile(join(from.directory, 'state/store.key'), join(to.directory, 'state/store.key'));
}

/** The whole status of a hub. */
export function fullStatus(hub: HubProcess): Promise<StatusResponse> {
  return hub.ask((control) => control.request('status'));
}
