import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { scaleDeadline } from '../support/deadlines.ts';
import { createLan, lanSkipReason } from '../support/netns.ts';
import { MAIN, SHARED_CACHE } from '../support/program.ts';
import { stateFolder } from '../support/state-folder.ts';

/** Addresses of `/etc/hosts`: Node tries those that have a route first, and IPv6 before IPv4. */
const NAMES = {
  'no-ipv6-route.example': ['2001:db8::2', '10.78.0.2'],
  'dead-ipv6.example': ['fd78::2', '10.78.0.2', '10.78.0.9'],
};

test('a portal and a webhook 400 ms away are reached, whichever of their other addresses are dead', async (ctx) => {
  const reason = await lanSkipReason(['/usr/bin/python3', '/usr/bin/curl', '/usr/bin/unshare']);
  if (reason !== null) ctx.skip(reason);
  await using lan = await createLan(['house']);
  const { house } = lan.hosts;
  using folder = stateFolder();
  const at = (name: string) => join(folder.path, name);
  const mirror = house.spawn('/usr/bin/python3', [join(import.meta.dirname, '../netns/slow-mirror.py')]);
  await mirror.line((line) => line === 'ready' || undefined);
  const script = join(import.meta.dirname, '../netns/slow-portal.ts');
  const portal = house.spawn(process.execPath, [script, at('ca.pem'), ...Object.keys(NAMES)]);
  await portal.line((line) => line === 'listening' || undefined);

  await writeFile(at('secret'), 'the-client-secret', { mode: 0o600 });
  const hosts = Object.entries(NAMES).flatMap(([name, addresses]) => addresses.map((address) => `${address} ${name}`));
  await writeFile(at('hosts'), `127.0.0.1 localhost\n${hosts.join('\n')}\n`);
  const portals = Object.keys(NAMES).map((name) => {
    const origin = `"https://${name}:8443"`;
    const client = `client_id = "6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01"\nclient_secret_file = "secret"`;
    return `[portals.${name.replace('.example', '')}]\nbase_url = ${origin}\nfrontend_url = ${origin}\n${client}\n`;
  });
  const notify = '[notify]\nwebhook = "https://dead-ipv6.example:8443/hook"\n';
  const ports = '[lan]\nhttp_port = 0\nhttps_port = 0\nmdns = false\n[metrics]\nlisten = ""\n';
  await writeFile(at('latchkey.toml'), `[hub]\nstate_dir = "${at('state')}"\n${ports}${notify}${portals.join('')}`);
  const env = { PATH: process.env['PATH'], XDG_CACHE_HOME: SHARED_CACHE, NODE_EXTRA_CA_CERTS: at('ca.pem') };
  /** With these names in /etc/hosts. */
  const named = (...command: string[]) =>
    [['--mount', '/bin/sh', '-c', `mount --bind ${at('hosts')} /etc/hosts && exec "$@"`, 'sh'], command].flat();
  const latchkey = (...args: string[]) => named(process.execPath, MAIN, ...args, '--config', at('latchkey.toml'));

  for (const name of Object.keys(NAMES)) {
    const curl = named('/usr/bin/curl', '-sS', '--noproxy', '*', '--cacert', at('ca.pem'), `https://${name}:8443/`);
    expect(await house.run('/usr/bin/unshare', curl, { env })).toContain('invalid_grant');
  }
  const hub = house.spawn('/usr/bin/unshare', latchkey('serve'), { env });
  await hub.errorLine((line) => line.includes('"hub_started"') || undefined);
  const checking = Object.keys(NAMES).map(async (name) => {
    const check = latchkey('portals', 'check', name.replace('.example', ''), '--json');
    const asking = house.spawn('/usr/bin/unshare', check, { env });
    const line = await asking.line((text) => (text.startsWith('{') ? text : undefined), scaleDeadline(60_000));
    const checks: { name: string; result: string }[] = JSON.parse(line).checks;
    expect(
      checks.find((one) => one.name === 'tls'),
      asking.output,
    ).toMatchObject({ result: 'ok' });
    expect(
      checks.find((one) => one.name === 'client'),
      asking.output,
    ).toMatchObject({
      detail: expect.stringContaining('HTTP 400 invalid_grant'),
    });
  });
  await Promise.all(checking);
  const notice = house.spawn('/usr/bin/unshare', latchkey('notify', '--test'), { env });
  expect(await notice.end(scaleDeadline(60_000)), notice.output).toBe(0);
});
