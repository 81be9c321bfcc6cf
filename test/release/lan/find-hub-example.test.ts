import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readExample } from '../../emulator/examples/guide.ts';
import { startTestModeHub } from '../../netns/hub-on-host.ts';
import { temporaryFolder } from '../../project/checkout.ts';
import { createLan, lanSkipReason } from '../../support/netns.ts';

const PAGE = 'docs/appliances.md';
const TOOLS = ['/usr/bin/python3', '/usr/bin/curl', '/usr/bin/openssl'];
const ZEROCONF = '/usr/lib/python3/dist-packages/zeroconf';

it('the examples of the page find the hub, save its CA and get its endpoints', async ({ skip }) => {
  const reason = existsSync(ZEROCONF) ? await lanSkipReason(TOOLS) : 'without python3-zeroconf';
  skip(reason !== null, reason ?? '');
  await using lan = await createLan(['hub', 'appliance']);
  const { appliance } = lan.hosts;
  await using hub = await startTestModeHub(lan.hosts.hub);
  await hub.logged('hub_announced');
  const { id } = (await hub.status()).hub;
  const found = await appliance.run('/usr/bin/python3', ['-c', readExample('Find the hub', 'python', PAGE)]);
  const [hubLine = '', addressLine] = found.split('\n');
  expect(hubLine).toBe(`ID=${id} HUB=https://10.77.0.1:8443 HUB_HTTP=http://10.77.0.1:8480`);
  expect(addressLine).toBe(`HUB_NAME=${id}.local HUB_ADDRESS=10.77.0.1 HUB_PORT=8443`);

  using folder = temporaryFolder();
  const pin = (await hub.ask((control) => control.request('authority'))).fingerprint;
  const script = [
    `cd '${folder.path}'; PIN=${pin} ${hubLine}`,
    readExample('Trust the hub', 'sh', PAGE),
    'curl -sS --fail --cacert latchkey-ca.pem "$HUB/.well-known/oauth-authorization-server"',
  ];
  const output = await appliance.run('/bin/sh', ['-euc', script.join('\n')]);
  expect(JSON.parse(output)).toMatchObject({ issuer: 'https://10.77.0.1:8443' });
  expect(await readFile(join(folder.path, 'latchkey-ca.pem'), 'utf8')).toBe(await readFile(hub.caFile, 'utf8'));
});
