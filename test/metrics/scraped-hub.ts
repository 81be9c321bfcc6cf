import { HubProcess } from '../support/hub-process.ts';
import { startPortal } from '../support/portal.ts';
import { type ScrapedMetrics, scrapeMetrics } from './scrape.ts';

/** The metrics of a hub with one appliance of each kind that has its own series. */
export async function scrapeHub(): Promise<ScrapedMetrics> {
  await using emulator = await startPortal();
  await using hub = await HubProcess.start({ emulator, metrics: '127.0.0.1:0', here: true });
  for (const name of ['wallbox', 'pump']) {
    const appliance = await hub.addAppliance(name);
    await hub.pair(name, emulator);
    await hub.requestToken(appliance);
  }
  emulator.revoke(emulator.grants().at(-1)?.id ?? '');
  await hub.ask((control) => control.request('refresh', { name: 'pump' }));
  return await scrapeMetrics((await hub.status()).hub.metrics_port);
}
