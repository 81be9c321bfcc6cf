import { once } from 'node:events';
import { mkdtempSync, readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { spkiFingerprint } from '../../src/system/x509/certificates.ts';
import { runLatchkey, spawnLatchkey } from './command.ts';

test('serve --test-mode prints the variables for the appliance examples, and its process is called latchkey', async () => {
  const hub = spawnLatchkey(['serve', '--test-mode'], {
    XDG_STATE_HOME: mkdtempSync(join(tmpdir(), 'lk-')),
    LATCHKEY_LAN_LISTEN: '127.0.0.1',
    LATCHKEY_LAN_HTTP_PORT: '0',
    LATCHKEY_LAN_HTTPS_PORT: '0',
  });
  try {
    const text = await hub.stderr(/^ {2}export .*\n/m);
    expect(text).not.toContain('LATCHKEY_LAN_LISTEN');
    expect(readFileSync(`/proc/${hub.process.pid}/comm`, 'utf8')).toBe('latchkey\n');
    const [, line = ''] = /^ {2}export (.*)\n/m.exec(text) ?? [];
    const set = Object.fromEntries(line.split(' ').map((word) => word.split(/=(.*)/s, 2)));
    expect(Object.keys(set)).toEqual(['HUB', 'HUB_HTTP', 'HUB_NAME', 'HUB_ADDRESS', 'HUB_PORT', 'PIN', 'CLOUD']);
    expect(set['HUB']).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    expect(spkiFingerprint(await (await fetch(`${set['HUB_HTTP']}/ca.pem`)).text())).toBe(set['PIN']);
    expect(set['CLOUD']).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect((await fetch(`${set['CLOUD']}/api/whoami`)).status).toBe(401);
  } finally {
    hub.process.kill('SIGTERM');
    await hub.ended;
  }
});

test('serve --test-mode names its portal only if the hub has started', async () => {
  await using taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  const { status, stderr } = await runLatchkey(['serve', '--test-mode'], {
    LATCHKEY_LAN_LISTEN: '127.0.0.1',
    LATCHKEY_LAN_HTTP_PORT: String(port),
    LATCHKEY_LAN_HTTPS_PORT: '0',
  });
  expect(status).toBe(1);
  expect(stderr).toContain(String(port));
  expect(stderr).not.toContain('The portal emulator is at');
});
