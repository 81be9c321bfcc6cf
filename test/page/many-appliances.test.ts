import { expect, test } from 'vitest';
import { HubProcess } from '../support/hub-process.ts';
import { PageVisitor } from '../support/page-visitor.ts';
import { startPortal } from '../support/portal.ts';

const NAMES = Array.from({ length: 130 }, (_, index) => `car-${index}`);
/** A page and all that it loads; style and scripts take half of that. */
const MOST_BYTES = 100_000;

const opened = (html: string) => [...html.matchAll(/id="open-([^"]+)"/g)].map(([, name]) => name);

test('more appliances than a page holds are on several, and a round through them shows what fits', async () => {
  await using emulator = await startPortal();
  await using hub = await HubProcess.start({ emulator });
  for (const name of NAMES) await hub.addAppliance(name);
  await using visitor = await PageVisitor.signedIn(hub);
  const seen: unknown[] = [];
  for (const page of ['/', '/?page=2', '/?page=3']) {
    const { status, text } = await visitor.get(page);
    expect(status).toBe(200);
    expect(text.length).toBeLessThan(MOST_BYTES);
    seen.push(...opened(text));
  }
  expect(seen.toSorted()).toEqual(NAMES.toSorted());
  const [first, last] = [await visitor.get('/'), await visitor.get('/?page=3')];
  for (const odd of ['0', '-1', '1.5', 'x', '', '1&page=2', '%00']) {
    expect(opened((await visitor.get(`/?page=${odd}`)).text), odd).toEqual(opened(first.text));
  }
  for (const far of ['4', '1000000', '9007199254740991']) {
    expect(opened((await visitor.get(`/?page=${far}`)).text), far).toEqual(opened(last.text));
  }

  const begun = await visitor.post('/pair-all', { csrf: await visitor.csrf() });
  const round = await visitor.get(String(begun.headers['location']));
  expect(round.text.length).toBeLessThan(MOST_BYTES);
  expect(round.text).toContain('and 69 more');
});
