import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'undici';
import { expect, test } from 'vitest';
import { messageOf } from '../../../src/core/failure.ts';
import { HubProcess } from '../../support/hub-process.ts';
import { startPortal } from '../../support/portal.ts';

const CLIENTS = 4;
const RELOADS = 8;
/** The pause between two requests of a client, in ms. */
const PAUSE = 10;
/** A client that was silent for this long, in ms, may find that the hub has closed its connection meanwhile. */
const BUSY = 100;

test('a reload answers every request of busy clients that keep their connections', async () => {
  await using emulator = await startPortal();
  await using hub = await HubProcess.start({ emulator });
  const { client_id, client_secret } = await hub.addAppliance('wallbox');
  await hub.pair('wallbox', emulator);
  const { certificate: ca } = await hub.authority();
  const stop = new AbortController();
  const failures: string[] = [];
  let answers = 0;

  const work = Array.from({ length: CLIENTS }, async () => {
    const client = new Client(`https://127.0.0.1:${hub.httpsPort}`, { connect: { ca } });
    const body = new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret });
    for (let last = performance.now(); !stop.signal.aborted; last = performance.now()) {
      await sleep(PAUSE);
      const silent = performance.now() - last;
      const request = {
        ...({ method: 'POST', path: '/oauth/token', body: body.toString() } as const),
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      };
      try {
        const response = await client.request(request);
        await response.body.dump();
        if (response.statusCode !== 200) failures.push(`HTTP ${response.statusCode}`);
        answers += 1;
      } catch (error) {
        if (silent < BUSY) failures.push(messageOf(error));
      }
    }
    await client.close();
  });
  for (let count = 0; count < RELOADS; count++) await hub.reload();
  stop.abort();
  await Promise.all(work);
  expect(failures).toEqual([]);
  expect(answers).toBeGreaterThan(RELOADS * CLIENTS);
});
