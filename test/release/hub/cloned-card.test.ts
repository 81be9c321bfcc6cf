import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readHubStatus, serveHub, waitForLogEvent, writeHubConfiguration } from '../../netns/served-hub.ts';
import { eventually } from '../../support/hub-process.ts';
import { createLan, lanSkipReason } from '../../support/netns.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';
import { stateFolder } from '../../support/state-folder.ts';

skipIfUnavailable(() => lanSkipReason([]));

it('a hub on a copied SD card says so in status, and the original hub is not disturbed', async () => {
  using folder = stateFolder();
  await using lan = await createLan(['original', 'copy']);
  const [card, copy] = [join(folder.path, 'card'), join(folder.path, 'copied')];
  writeHubConfiguration(card);
  const firstRun = serveHub(lan.hosts.original, card);
  await waitForLogEvent(firstRun, 'hub_started');
  expect(await firstRun.stop('SIGTERM')).toBe(0);
  cpSync(card, copy, { recursive: true });
  writeHubConfiguration(copy);

  const original = serveHub(lan.hosts.original, card);
  await waitForLogEvent(original, 'hub_announced');
  const clone = serveHub(lan.hosts.copy, copy);
  await waitForLogEvent(clone, 'announcement_failed');
  const { hub } = await eventually(async () => {
    const status = await readHubStatus(copy);
    return status.hub.problems !== undefined && status;
  });
  expect(hub.problems).toEqual([
    {
      code: 'hub_id_taken',
      message: expect.stringMatching(/^Another hub .*\(10\.77\.0\.1\b.*card was copied/),
      since: expect.any(String),
    },
  ]);
  const older = (await readHubStatus(card)).hub;
  expect(older.id).toBe(hub.id);
  expect(older.problems).toBeUndefined();

  // With the older one gone, it is the only hub with the id.
  expect(await original.stop('SIGTERM')).toBe(0);
  await waitForLogEvent(clone, 'hub_announced');
  expect((await readHubStatus(copy)).hub.problems).toBeUndefined();
  expect(await clone.stop('SIGTERM')).toBe(0);
});
