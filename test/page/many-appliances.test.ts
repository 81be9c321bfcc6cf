import { expect, test } from 'vitest';
import { HubProcess } from '../support/hub-process.ts';
import { PageVisitor } from '../support/page-visitor.ts';
import { startPortal } from '../support/portal.ts';

/** The maximum size of a page with everything that it loads; the style and the scripts take half of it. */
const MAX_BYTES = 100_000;

test('the overview and the page of a pairing batch show as many of 130 appliances as fit', async () => {
  await using emulator = await startPortal();
  await using hub = await HubProcess.start({ emulator, here: true });
  for (let count = 0; count < 130; count++) await hub.addAppliance(`car-${count}`);
  await using visitor = await PageVisitor.signedIn(hub);
  const overview = await visitor.get('/');
  expect(overview.text.length).toBeLessThan(MAX_BYTES);
  expect(overview.text).toContain('and 70 more');

  const begun = await visitor.post('/pair-all', { csrf: await visitor.csrf() });
  const batchPage = await visitor.get(String(begun.headers['location']));
  expect(batchPage.text.length).toBeLessThan(MAX_BYTES);
  expect(batchPage.text).toContain('and 69 more');
});
