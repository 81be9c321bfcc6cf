import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startTestModeHub } from '../../netns/hub-on-host.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { IS_LONG_FORM } from '../../support/long.ts';
import { createLan, type Host, lanSkipReason } from '../../support/netns.ts';

const WRONG = 'BBBB-BBBB-BBBB';
/** The number of wrong codes that an address can send without a wait. */
const TRIES = 5;
/** In the long form, their tries exceed the limit that all devices together once had. */
const ADDRESSES = IS_LONG_FORM ? 450 : 40;
/** How often the installer signs in during the flood. */
const SIGN_INS = 10;
const SCRIPTS = join(import.meta.dirname, '../../netns');

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
  await attacker.run('/usr/bin/python3', [
    join(SCRIPTS, 'router-advertisement.py'),
    'eth0',
    '2001:db8:0:1::',
    '2001:db8:0:2::',
  ]);
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
