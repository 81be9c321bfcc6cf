import { afterAll, beforeAll, beforeEach, expect, it, type TestContext } from 'vitest';
import { whyNoMachine } from '../support/machine.ts';
import { InstalledHub } from './installed-hub.ts';
import { ownPackage } from './packages.ts';

/** What docs/notices.md says that a hook can and can't do under systemd. */
const HOOK = `#!/bin/sh
{
  cat
  touch /var/lib/latchkey/kept && touch /tmp/kept && echo it writes its own
  touch /etc/latchkey/kept 2>/dev/null || echo it writes nothing else
  cat /etc/latchkey/credentials/portal-home.secret 2>/dev/null || echo it reads no credentials there
  curl -s -o /dev/null -w 'the network answers %{http_code}\\n' http://127.0.0.1:8490/api/whoami
  env | grep -c -e LATCHKEY -e CREDENTIALS
} > /var/lib/latchkey/told
echo bye >&2
`;

let reason: string | null;
let hub: InstalledHub;

beforeAll(async () => {
  reason = await whyNoMachine(['/usr/bin/curl']);
  if (reason !== null) return;
  hub = await InstalledHub.bootInstalled(await ownPackage(), { toml: '[notify]\ncommand = ["./notify"]' });
  await hub.machine.write('/etc/latchkey/notify', HOOK, '755');
  await hub.start();
}, 600_000);

afterAll(() => hub?.[Symbol.asyncDispose]());

beforeEach((ctx: TestContext) => {
  if (reason !== null) ctx.skip(reason);
});

it('runs a hook within the sandbox of its service', async () => {
  expect(await hub.latchkey('notify --test')).toMatchObject({ status: 0, stdout: 'command notify: ok (done)\n' });
  const [message = '', ...told] = (await hub.machine.sh('cat /var/lib/private/latchkey/told')).split('\n');
  expect(JSON.parse(message)).toMatchObject({ notice: 'test', hub: { name: 'Cellar hub' } });
  expect(told).toEqual([
    'it writes its own',
    'it writes nothing else',
    'it reads no credentials there',
    'the network answers 401',
    '0',
  ]);
});
