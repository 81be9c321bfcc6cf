import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startTestModeHub } from '../netns/hub-on-host.ts';
import { scaleDeadline } from '../support/deadlines.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { IS_LONG_FORM } from '../support/long.ts';
import { createLan, type Host, lanSkipReason } from '../support/netns.ts';
import { PageVisitor } from '../support/page-visitor.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';

const WRONG = 'BBBB-BBBB-BBBB';
/** The number of wrong codes that an address can send without a wait. */
const TRIES = 5;
/** In the long form, their tries exceed the limit that all devices together once had. */
const ADDRESSES = IS_LONG_FORM ? 450 : 40;
/** How often the installer signs in during the flood. */
const SIGN_INS = 10;
const SCRIPTS = join(import.meta.dirname, '../netns');

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

it('an installer at an IPv4 address can sign in while an attacker with every IPv6 address sends wrong codes', async (ctx) => {
  const why = await lanSkipReason(['/usr/bin/python3']);
  if (why !== null) return ctx.skip(why);
  await using lan = await createLan(['hub', 'phone', 'attacker']);
  const { hub: machine, phone, attacker } = lan.hosts;
  await using hub = await startTestModeHub(machine);
  const setup = await hub.ask((control) => control.setupCode());
  rememberSecrets([setup.code, setup.sign_in.split('/').at(-1) ?? '']);
  const { https_port } = (await hub.status()).hub;

  await attacker.run('sh', ['-c', 'echo 1 >/proc/sys/net/ipv6/ip_nonlocal_bind']);
  await attacker.run('ip', ['-6', 'route', 'add', 'local', '2001:db8::/32', 'dev', 'lo']);
  // Router Advertisements need a link-local source address (RFC 4861, 6.1.2), which is unusable while it is tentative.
  await expect.poll(() => attacker.run('ip', ['-6', 'address', 'show', 'dev', 'eth0', 'tentative'])).toBe('');
  await attacker.run('python3', [join(SCRIPTS, 'router-advertisement.py'), 'eth0', '2001:db8:0:1::', '2001:db8:0:2::']);
  await expect.poll(() => subnetsOf(machine)).toContain('2001:db8:0:2::');
  const page6 = `https://[${machine.address6}]:${https_port}`;
  const statuses = await signInFrom(attacker, page6, WRONG, TRIES, '2001:db8:#::1', ADDRESSES);
  expect(statuses['401']).toBeGreaterThan(3 * ADDRESSES);
  // The attacker uses up what the overall limit regains.
  const goingOn = signInFrom(attacker, page6, WRONG, TRIES, '2001:db8:1:#::1', ADDRESSES);
  const page = `https://${machine.address}:${https_port}`;
  expect(await signInFrom(phone, page, setup.code, SIGN_INS, phone.address, 1)).toEqual({ 303: SIGN_INS });
  await goingOn;
});

/** Signs in from many addresses. @returns the number of responses by status */
async function signInFrom(host: Host, ...[page, code, times, address, many]: [string, string, number, string, number]) {
  const script = join(SCRIPTS, 'sign-in.ts');
  const guesser = host.spawn(process.execPath, [script, page, code, String(times), address, String(many)]);
  return guesser.line((line): Record<string, number> => JSON.parse(line), scaleDeadline(60_000));
}

/** The IPv6 subnets of a machine, without the link-local one. */
async function subnetsOf(host: Host): Promise<string[]> {
  const routes = await host.run('ip', ['-6', 'route', 'show', 'dev', 'eth0']);
  return routes.split('\n').flatMap((route) => /^([0-9a-f:]+)\/64 /.exec(route)?.[1] ?? []);
}
