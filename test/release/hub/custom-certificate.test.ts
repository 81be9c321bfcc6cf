import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type Authority, type Leaf, spkiFingerprint } from '../../../src/system/x509/certificates.ts';
import { createAuthority, issueLeaf } from '../../../src/system/x509/issuing.ts';
import { startTestModeHub } from '../../netns/hub-on-host.ts';
import { OBSERVER_TOOLS, observeWithZeroconf } from '../../netns/observers.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { HubProcess } from '../../support/hub-process.ts';
import { createLan, lanSkipReason } from '../../support/netns.ts';
import { startPortal } from '../../support/portal.ts';
import { stateFolder } from '../../support/state-folder.ts';

const NAMES = ['hub.home.example', '*.hub.home.example'];

const folder = stateFolder();
const [certificateFile, keyFile] = [join(folder.path, 'hub.pem'), join(folder.path, 'hub.key')];
const lanSettings = `certificate_file = "${certificateFile}"\nkey_file = "${keyFile}"`;
let authority: Authority;
let leaf: Leaf;

beforeAll(async () => {
  authority = await createAuthority('Home CA of');
  leaf = await issueLeaf(authority, { names: NAMES, addresses: ['127.0.0.1'], now: Date.now() });
});

beforeEach(() => write(leaf));

afterAll(() => folder[Symbol.dispose]());

function write({ certificate, key }: Leaf): void {
  writeFileSync(certificateFile, certificate);
  writeFileSync(keyFile, key, { mode: 0o600 });
}

it('a hub with an own certificate serves it, uses its names, and shows the pin of its last certificate', async () => {
  await using emulator = await startPortal();
  await using hub = await HubProcess.start({ emulator, lan: lanSettings, here: true });
  const { certificate: ca, fingerprint } = await hub.authority();
  expect([spkiFingerprint(ca), fingerprint]).toEqual([
    spkiFingerprint(authority.certificate),
    spkiFingerprint(authority.certificate),
  ]);
  expect((await hub.status()).hub.ca_fingerprint).toBe(fingerprint);
  expect(await hub.cli('ca', '--rotate', '--yes')).toMatchObject({
    status: 1,
    stdout: '',
    stderr: expect.stringContaining('lan.certificate_file'),
  });
  expect((await hub.authority()).fingerprint).toBe(fingerprint);
  const { ca_fingerprint, token_endpoint } = await hub.addAppliance('fan');
  expect(ca_fingerprint).toBe(fingerprint);
  // The certificate is also for this address.
  expect(token_endpoint).toBe(`https://127.0.0.1:${hub.httpsPort}/oauth/token`);

  const get = async (servername: string, host: string) => {
    const socket = connect({ host: '127.0.0.1', port: hub.httpsPort, ca, servername });
    await once(socket, 'secureConnect');
    socket.write(`GET /ca.pem HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
    let text = '';
    for await (const chunk of socket) text += String(chunk);
    return text;
  };
  for (const name of ['hub.home.example', 'x.hub.home.example', 'X.Hub.Home.Example.']) {
    const text = await get(name.replace(/\.$/, ''), name);
    expect(text).toMatch(/^HTTP\/1.1 200 /);
    expect(spkiFingerprint(text.slice(text.indexOf('-----BEGIN')))).toBe(fingerprint);
  }
  const { id } = (await hub.status()).hub;
  expect(await get('hub.home.example', `${id}.local`)).toMatch(/^HTTP\/1.1 200 /);
  for (const name of ['home.example', 'x.y.hub.home.example', 'evil.example'])
    expect(await get('hub.home.example', name), name).toMatch(/^HTTP\/1.1 421 /);
});

it('a hub with an own certificate announces its pin, and the pin of the next one after a change', async (ctx) => {
  const reason = await lanSkipReason(OBSERVER_TOOLS);
  if (reason !== null) return ctx.skip(reason);
  await using lan = await createLan(['hub', 'observer']);
  const env = { LATCHKEY_LAN_CERTIFICATE_FILE: certificateFile, LATCHKEY_LAN_KEY_FILE: keyFile };
  await using hub = await startTestModeHub(lan.hosts.hub, undefined, env);
  const observer = await observeWithZeroconf(lan.hosts.observer);
  expect((await observer.found()).txt['capk']).toBe(spkiFingerprint(authority.certificate));
  const elsewhere = await createAuthority();
  write(await issueLeaf(elsewhere, { names: NAMES, addresses: [], now: Date.now() }));
  const currentPin = async () => (await hub.ask((control) => control.request('authority'))).fingerprint;
  expect(await currentPin()).toBe(spkiFingerprint(authority.certificate));
  // The hub checks the files once a minute.
  await observer.found(({ txt }) => txt['capk'] === spkiFingerprint(elsewhere.certificate), scaleDeadline(60_000));
  expect(await currentPin()).toBe(spkiFingerprint(elsewhere.certificate));
});

it('a hub gives appliances a name of its own certificate if that does not contain its address', async () => {
  write(await issueLeaf(authority, { names: ['*.example', ...NAMES], addresses: [], now: Date.now() }));
  await using emulator = await startPortal();
  await using hub = await HubProcess.start({ emulator, lan: lanSettings, here: true });
  expect((await hub.addAppliance('fan')).token_endpoint).toBe(`https://hub.home.example:${hub.httpsPort}/oauth/token`);
});
