import { describe, expect, it } from 'vitest';
import { HubProcess } from '../support/hub-process.ts';
import { PageVisitor } from '../support/page-visitor.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';

const WRONG = 'BBBB-BBBB-BBBB';
/** The number of wrong codes that an address can send without a wait. */
const TRIES = 5;
const ADDRESSES = 40;
/** How often the installer signs in during the flood. */
const SIGN_INS = 10;

describe('sign-in during a flood of wrong setup codes', () => {
  let hub: HubProcess;

  setUpOnce(async (parts) => {
    const emulator = parts.use(await startPortal());
    hub = parts.use(await HubProcess.start({ emulator, here: true }));
  });

  const setupCode = async (rotate = false) => (await hub.setupCode({ rotate })).code;

  async function sendWrongCodes(from: string): Promise<number[]> {
    await using guesser = await PageVisitor.open(hub, from);
    const statuses = [];
    for (let count = 0; count < TRIES; count++) statuses.push((await guesser.signIn(WRONG)).status);
    return statuses;
  }

  it('an installer can sign in while many other addresses send as many wrong setup codes as they may', async () => {
    const code = await setupCode();
    const addresses = Array.from({ length: ADDRESSES }, (_, index) => `127.7.${1 + (index >> 8)}.${index & 255}`);
    for (let first = 0; first < addresses.length; first += 10) {
      await Promise.all(addresses.slice(first, first + 10).map(sendWrongCodes));
    }
    for (let last = 1; last <= SIGN_INS; last++) {
      await using installer = await PageVisitor.open(hub, `127.8.0.${last}`);
      expect(await installer.signIn(code)).toMatchObject({ status: 303 });
    }
  });

  it('a browser that signed in before can sign in from a locked address until the setup code is rotated', async () => {
    const address = '127.9.0.1';
    await using installer = await PageVisitor.open(hub, address);
    expect(await installer.signIn(await setupCode())).toMatchObject({ status: 303 });
    expect(await sendWrongCodes(address)).toEqual([401, 401, 401, 401, 429]);
    await using other = await PageVisitor.open(hub, address);
    expect(await other.signIn(await setupCode())).toMatchObject({ status: 429 });
    installer.cookie = null;
    expect(await installer.signIn(await setupCode())).toMatchObject({ status: 303 });
    const rotated = await setupCode(true);
    expect(await installer.signIn(rotated)).toMatchObject({ status: 429 });
  });

  it('a browser gets a long-lived cookie that no script and no other site can read, and that grants no access', async () => {
    await using installer = await PageVisitor.open(hub, '127.9.0.2');
    const { headers } = await installer.signIn(await setupCode());
    expect([headers['set-cookie'] ?? []].flat()[1]).toMatch(
      /^__Host-latchkey-known=[\w-]{22}\.[\w-]{43}; Max-Age=34560000; Path=\/; HttpOnly; Secure; SameSite=Strict$/,
    );
    const known = installer.browserCookie;
    await installer.signIn(await setupCode());
    expect(installer.browserCookie).toBe(known);
    // This cookie alone does not sign the browser in.
    installer.cookie = null;
    expect(await installer.isSignedIn()).toBe(false);
  });
});
