import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import type { Emulator } from '../../src/emulator/index.ts';
import { HubProcess } from '../support/hub-process.ts';
import { PageVisitor } from '../support/page-visitor.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';

let emulator: Emulator;
let hub: HubProcess;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
  hub = parts.use(await HubProcess.start({ emulator, here: true }));
});

async function signedIn(from: string, userAgent?: string): Promise<PageVisitor> {
  const visitor = await PageVisitor.open(hub, from);
  const { code, sign_in } = await hub.setupCode();
  const seen =
    userAgent === undefined ? await visitor.signIn(code) : await visitor.follow(sign_in, { 'user-agent': userAgent });
  expect(seen.status).toBe(303);
  return visitor;
}

/** The ids in the sign-out forms, in the order of the page. */
const idsOn = (text: string) => [...text.matchAll(/name="id" value="([^"]+)"/g)].map(([, id]) => id ?? '');
const addressesOn = (text: string) => [...text.matchAll(/<dd>(127[^<]+)<\/dd>/g)].map(([, address]) => address);

it('the page lists the browsers that are signed in, and signs out one or all others at once', async () => {
  await using own = await signedIn('127.0.0.2');
  await using phone = await signedIn('127.0.0.3', 'Mozilla/5.0 (Android 15; Mobile; rv:140.0) Firefox/140.0');
  await using laptop = await signedIn('127.0.0.4', '"><script>alert(1)</script>');
  const csrf = await own.csrf();
  const { status, text } = await own.get('/browsers');
  expect(status).toBe(200);
  expect(addressesOn(text)).toEqual(['127.0.0.2', '127.0.0.4', '127.0.0.3']);
  expect(text).toContain('Firefox, Android');
  expect(text).toContain('Unknown browser');
  expect(text).not.toContain('<script>alert');
  expect(text.match(/This browser/g)).toHaveLength(1);
  const [, idOfPhone = ''] = idsOn(text);
  // A form of another site and a form of another session change nothing.
  const foreign = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
  expect(await own.post('/browsers/sign-out', { csrf, id: idOfPhone }, foreign)).toMatchObject({ status: 403 });
  expect(await own.post('/browsers/sign-out-others', { csrf: await phone.csrf() })).toMatchObject({ status: 403 });
  expect(await phone.isSignedIn()).toBe(true);

  expect(await own.post('/browsers/sign-out', { csrf, id: idOfPhone })).toMatchObject({
    status: 303,
    headers: { location: '/browsers' },
  });
  expect([await own.isSignedIn(), await phone.isSignedIn(), await laptop.isSignedIn()]).toEqual([true, false, true]);
  expect(await own.post('/browsers/sign-out-others', { csrf })).toMatchObject({ status: 303 });
  expect(await laptop.isSignedIn()).toBe(false);
  await hub.kill('SIGTERM');
  await hub.launch();
  await using again = await PageVisitor.open(hub, '127.0.0.2');
  again.cookie = laptop.cookie;
  expect(await again.isSignedIn()).toBe(false);
  again.cookie = own.cookie;
  const { text: after } = await again.get('/browsers', { 'accept-language': 'de' });
  expect(addressesOn(after)).toEqual(['127.0.0.2']);
  expect(after).toContain('Dieser Browser');
  expect(after).not.toContain('Alle anderen abmelden');
  expect(await readFile(hub.log, 'utf8')).not.toContain(idOfPhone);
});
