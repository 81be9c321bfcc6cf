import { execFileSync } from 'node:child_process';
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ReferenceClock } from '../../src/broker/time/reference-clock.ts';
import { Scheduler } from '../../src/broker/time/scheduler.ts';
import { readCustomCertificate, warnAboutCertificate } from '../../src/certificates/custom-certificate.ts';
import { HubLeaf } from '../../src/certificates/leaf.ts';
import { loadConfiguration } from '../../src/configuration/configuration.ts';
import type { LogFields } from '../../src/core/log.ts';
import { systemRandom } from '../../src/system/random.ts';
import { type Authority, type Leaf, spkiFingerprint } from '../../src/system/x509/certificates.ts';
import { createAuthority, issueLeaf } from '../../src/system/x509/issuing.ts';
import { startTestModeHub } from '../netns/hub-on-host.ts';
import { OBSERVER_TOOLS, observeWithZeroconf } from '../netns/observers.ts';
import { scaleDeadline } from '../support/deadlines.ts';
import { FakeTime } from '../support/fake-time.ts';
import { hubAuthority } from '../support/hub-authority.ts';
import { HubProcess } from '../support/hub-process.ts';
import { LanServerHarness } from '../support/lan-server-harness.ts';
import { logTo } from '../support/log-to.ts';
import { createLan, lanSkipReason } from '../support/netns.ts';
import { startPortal } from '../support/portal.ts';
import { stateFolder } from '../support/state-folder.ts';

const NAMES = ['hub.home.example', '*.hub.home.example'];
const DAY = 86_400_000;
const NOW = Date.UTC(2027, 4, 6);

const folder = stateFolder();
let authority: Authority;
let leaf: Leaf;
let other: Leaf;

beforeAll(async () => {
  authority = await createAuthority('Home CA of');
  leaf = await issueLeaf(authority, { names: NAMES, addresses: ['127.0.0.1'], now: NOW });
  other = await issueLeaf(authority, { names: NAMES, addresses: ['127.0.0.1'], now: NOW + DAY });
});

beforeEach(() => write(leaf.certificate, leaf.key));

afterAll(() => folder[Symbol.dispose]());

function write(certificate: string, key: string, mode = 0o600): void {
  writeFileSync(join(folder.path, 'hub.pem'), certificate);
  writeFileSync(join(folder.path, 'hub.key'), key);
  chmodSync(join(folder.path, 'hub.key'), mode);
}

function files(credentials?: string) {
  return { certificate: 'hub.pem', key: 'hub.key', directory: folder.path, credentials };
}

/** The first certificate of a PEM text. */
function first(pem: string): string {
  return `${pem.split('-----END CERTIFICATE-----')[0]}-----END CERTIFICATE-----\n`;
}

describe('invalid settings of an own certificate', () => {
  const TOML = 'lan.certificate_file = "hub.pem"\nlan.key_file = "hub.key"\n';
  const config = join(folder.path, 'latchkey.toml');

  async function startError(toml = TOML): Promise<string> {
    writeFileSync(config, toml);
    const failure = await loadConfiguration(config, { HOME: folder.path }).then(
      () => null,
      (error: unknown) => error,
    );
    expect(failure).toMatchObject({ name: 'Failure', code: 'config_invalid' });
    const { message } = failure as Error;
    expect(message).not.toContain('\n');
    expect(message).not.toContain('BEGIN');
    return message;
  }

  it('the hub accepts a valid pair of certificate and key', async () => {
    writeFileSync(config, TOML);
    const { lan } = await loadConfiguration(config, { HOME: folder.path });
    expect(lan.certificate?.leaf.anchor.fingerprint).toBe(spkiFingerprint(authority.certificate));
    writeFileSync(config, '');
    expect((await loadConfiguration(config, { HOME: folder.path })).lan.certificate).toBeNull();
  });

  it.for<[toml: string, key: string, says: string]>([
    [
      'lan.certificate_file = "hub.pem"\n',
      'lan.key_file',
      'is missing; it is required together with lan.certificate_file',
    ],
    ['lan.key_file = "hub.key"\n', 'lan.certificate_file', 'is missing; it is required together with lan.key_file'],
    [TOML.replace('hub.pem', 'nowhere.pem'), 'lan.certificate_file', 'names a file that does not exist; relative'],
    [TOML.replace('hub.key', 'nowhere.key'), 'lan.key_file', 'names a file that does not exist'],
    [TOML.replace('hub.pem', 'hub.key'), 'lan.certificate_file', 'contains no PEM certificate'],
    [TOML.replace('hub.key', 'latchkey.toml'), 'lan.key_file', 'is open to other users'],
    ['lan.certificate_file = 7\n', 'lan.certificate_file', 'must be a path (found 7)'],
  ])('the hub rejects %j at its start, in one line with the key', async ([toml, key, message]) => {
    chmodSync(config, 0o644);
    const line = await startError(toml);
    expect(line).toContain(`: ${key}: `);
    expect(line).toContain(message);
  });

  it.for<[what: string, prepare: () => void, key: string, says: string]>([
    ['a key that others can read', () => chmodSync(join(folder.path, 'hub.key'), 0o640), 'key_file', 'mode 0640'],
    ['another leaf’s key', () => write(leaf.certificate, other.key), 'key_file', 'does not match the certificate'],
    ['no key', () => write(leaf.certificate, 'nothing'), 'key_file', 'no readable private key'],
    [
      'an encrypted key',
      () => write(leaf.certificate, encryptedKey()),
      'key_file',
      'it must be an unencrypted PEM key',
    ],
    [
      'the CA first',
      () => write(authority.certificate + first(leaf.certificate), leaf.key),
      'certificate_file',
      'certificate 2 is not the issuer of certificate 1; the file must contain the certificate of the hub first',
    ],
    [
      'a chain with a gap',
      () => write(leaf.certificate + first(other.certificate), leaf.key),
      'certificate_file',
      'certificate 3 is not the issuer of certificate 2',
    ],
    [
      'a damaged certificate',
      () => write(leaf.certificate.replace(/MII/, 'MIX'), leaf.key),
      'certificate_file',
      'damaged',
    ],
    ['a key that is too short', () => createWeakKey(), 'certificate_file', "can't be used for TLS"],
  ])('the hub rejects %s at its start, in one line with the key', async ([, prepare, key, message]) => {
    prepare();
    const line = await startError();
    expect(line).toContain(`: lan.${key}: `);
    expect(line).toContain(message);
  });

  function encryptedKey(): string {
    return generateKeyPairSync('ec', {
      namedCurve: 'P-256',
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' },
    }).privateKey;
  }

  function createWeakKey(): void {
    const outputs = ['-keyout', join(folder.path, 'hub.key'), '-out', join(folder.path, 'hub.pem')];
    const request = ['req', '-x509', '-newkey', 'rsa:1024', '-nodes', '-subj', '/CN=hub', '-days', '9', ...outputs];
    execFileSync('/usr/bin/openssl', request, { stdio: 'ignore' });
    chmodSync(join(folder.path, 'hub.key'), 0o600);
  }
});

describe('the loaded pair of certificate and key', () => {
  it('an own certificate provides its names, and its last certificate is the one to pin', async () => {
    const own = await readCustomCertificate(files());
    expect(own.names).toEqual(NAMES);
    expect(own.notAfter).toBe(leaf.notAfter);
    expect(own.anchor.fingerprint).toBe(spkiFingerprint(authority.certificate));
    expect(new X509Certificate(own.anchor.certificate).ca).toBe(true);
    write(first(leaf.certificate), leaf.key);
    expect((await readCustomCertificate(files())).anchor.fingerprint).toBe(spkiFingerprint(leaf.certificate));
  });

  it('an own certificate may have text between its PEM blocks, and its key in a systemd credential', async () => {
    const credentials = join(folder.path, 'credentials');
    mkdirSync(credentials, { recursive: true });
    writeFileSync(join(credentials, 'hub.key'), leaf.key, { mode: 0o440 });
    write(`subject=hub\r\n${leaf.certificate.replaceAll('\n', '\r\n')}`, 'not this one');
    expect((await readCustomCertificate(files(credentials))).pem.key).toBe(leaf.key);
  });
});

describe('the warnings about an own certificate', () => {
  async function warnings(clock = NOW): Promise<string[]> {
    const events: string[] = [];
    const warn = (event: string, fields: LogFields = {}) =>
      void events.push(`${event} ${fields['expires_at'] ?? ''}`.trim());
    const log = logTo(warn);
    warnAboutCertificate(
      await readCustomCertificate(files()),
      { now: () => ({ boot: 'one', uptime: 0, wall: clock }) },
      log,
    );
    return events;
  }

  it('the hub does not warn of a valid own certificate with its root', async () => {
    expect(await warnings()).toEqual([]);
    expect(await warnings(leaf.notAfter - 1)).toEqual([]);
  });

  it('the hub warns of an own certificate without a chain', async () => {
    write(first(leaf.certificate), leaf.key);
    expect(await warnings()).toEqual(['certificate_chain_missing']);
  });

  it('the hub warns of a chain without its root', async () => {
    const { chain, key } = chainWithoutRoot();
    write(chain, key);
    expect(await warnings(Date.now())).toEqual(['certificate_root_missing']);
  });

  it("the hub warns of an own certificate that has expired by the machine's clock", async () => {
    const ended = new Date(leaf.notAfter).toISOString();
    expect(await warnings(leaf.notAfter + 1)).toEqual([`certificate_expired ${ended}`]);
  });

  /** A leaf and the intermediate that issued it, made with openssl. */
  function chainWithoutRoot(): { chain: string; key: string } {
    const openssl = (...args: string[]) =>
      execFileSync('/usr/bin/openssl', args, { cwd: folder.path, stdio: 'ignore' });
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '9'];
    const ca = ['-addext', 'basicConstraints=critical,CA:true'];
    openssl('req', '-x509', ...key, ...ca, '-subj', '/CN=Root', '-keyout', 'r.key', '-out', 'r.pem');
    const byRoot = ['-CA', 'r.pem', '-CAkey', 'r.key'];
    openssl('req', '-x509', ...key, ...ca, ...byRoot, '-subj', '/CN=Middle', '-keyout', 'm.key', '-out', 'm.pem');
    const byIntermediate = ['-CA', 'm.pem', '-CAkey', 'm.key', '-addext', 'basicConstraints=CA:false'];
    openssl('req', '-x509', ...key, ...byIntermediate, '-subj', '/CN=hub', '-keyout', 'l.key', '-out', 'l.pem');
    const text = (name: string) => readFileSync(join(folder.path, name), 'utf8');
    return { chain: text('l.pem') + text('m.pem'), key: text('l.key') };
  }
});

describe('a hub with an own certificate', () => {
  it('a hub with an own certificate serves it, uses its names, and shows the pin of its last certificate', async () => {
    await using emulator = await startPortal();
    const lan = `certificate_file = "${folder.path}/hub.pem"\nkey_file = "${folder.path}/hub.key"`;
    await using hub = await HubProcess.start({ emulator, lan, here: true });
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
      return { text, serial: socket };
    };
    for (const name of ['hub.home.example', 'x.hub.home.example', 'X.Hub.Home.Example.']) {
      const { text } = await get(name.replace(/\.$/, ''), name);
      expect(text).toMatch(/^HTTP\/1.1 200 /);
      expect(spkiFingerprint(text.slice(text.indexOf('-----BEGIN')))).toBe(fingerprint);
    }
    const { id } = (await hub.status()).hub;
    expect((await get('hub.home.example', `${id}.local`)).text).toMatch(/^HTTP\/1.1 200 /);
    for (const name of ['home.example', 'x.y.hub.home.example', 'evil.example'])
      expect((await get('hub.home.example', name)).text, name).toMatch(/^HTTP\/1.1 421 /);
  });
});

describe('the announcement of an own certificate', () => {
  it('a hub with an own certificate announces its pin, and the pin of the next one after a change', async (ctx) => {
    const reason = await lanSkipReason(OBSERVER_TOOLS);
    if (reason !== null) return ctx.skip(reason);
    await using lan = await createLan(['hub', 'observer']);
    const named = { LATCHKEY_LAN_CERTIFICATE_FILE: 'hub.pem', LATCHKEY_LAN_KEY_FILE: 'hub.key' };
    const absolute = Object.entries(named).map(([name, file]) => [name, join(folder.path, file)] as const);
    await using hub = await startTestModeHub(lan.hosts.hub, undefined, Object.fromEntries(absolute));
    const observer = await observeWithZeroconf(lan.hosts.observer);
    expect((await observer.found()).txt['capk']).toBe(spkiFingerprint(authority.certificate));
    const elsewhere = await createAuthority();
    const moved = await issueLeaf(elsewhere, { names: NAMES, addresses: [], now: NOW });
    write(moved.certificate, moved.key);
    const currentPin = async () => (await hub.ask((control) => control.authority())).fingerprint;
    expect(await currentPin()).toBe(spkiFingerprint(authority.certificate));
    // The hub checks the files once a minute.
    await observer.found(({ txt }) => txt['capk'] === spkiFingerprint(elsewhere.certificate), scaleDeadline(60_000));
    expect(await currentPin()).toBe(spkiFingerprint(elsewhere.certificate));
  });
});

describe('an own certificate without the address of the hub', () => {
  it('a hub gives appliances a name of its own certificate if that does not contain its address', async () => {
    const named = await issueLeaf(authority, { names: ['*.example', ...NAMES], addresses: [], now: NOW });
    write(named.certificate, named.key);
    const lan = `certificate_file = "${folder.path}/hub.pem"\nkey_file = "${folder.path}/hub.key"`;
    await using emulator = await startPortal();
    await using hub = await HubProcess.start({ emulator, lan, here: true });
    expect((await hub.addAppliance('fan')).token_endpoint).toBe(
      `https://hub.home.example:${hub.httpsPort}/oauth/token`,
    );
  });
});

describe('the renewal of an own certificate on disk', () => {
  async function running() {
    const parts = new AsyncDisposableStack();
    const side = parts.use(await LanServerHarness.start());
    const time = new FakeTime();
    const { log, events } = side.home;
    const environment = { clock: time, timers: time, random: systemRandom, log };
    const scheduler = parts.use(new Scheduler(environment));
    const portalClock = new ReferenceClock(environment);
    let anchors = 0;
    const logged = () => events.map(({ event }) => event).filter((event) => event.startsWith('certificate'));
    const hubLeaf = await HubLeaf.open({
      environment,
      scheduler,
      portalClock,
      identity: { id: 'latchkey-1', ca: await hubAuthority(authority) },
      store: { setting: async () => null, saveSetting: async () => undefined },
      names: ['latchkey-1.local'],
      addresses: () => ['127.0.0.1'],
      custom: { files: files(), leaf: await readCustomCertificate(files()) },
    });
    hubLeaf.onAnchorChange(() => void anchors++);
    side.server.renewLeaf(hubLeaf.current.pem);
    hubLeaf.keepCurrent(side.server);
    return {
      time,
      portalClock,
      hubLeaf,
      events: logged,
      /** The events that were logged by the time of the next check of the files. */
      async eventsAfterCheck() {
        await time.pass(30_000);
        await sleep(20);
        return logged();
      },
      anchors: () => anchors,
      /** The serial number of the certificate that a device gets. */
      async servedSerial() {
        const socket = connect({ host: '127.0.0.1', port: side.server.httpsPort, rejectUnauthorized: false });
        await once(socket, 'secureConnect');
        const { raw } = socket.getPeerCertificate();
        socket.destroy();
        return new X509Certificate(raw).serialNumber;
      },
      [Symbol.asyncDispose]: () => parts.disposeAsync(),
    };
  }

  const serialOf = (pem: string) => new X509Certificate(pem).serialNumber;

  it('the hub loads a renewed own certificate without a restart', async () => {
    await using hub = await running();
    expect(await hub.servedSerial()).toBe(serialOf(leaf.certificate));
    await hub.time.pass(120_000);
    expect(hub.events()).toEqual([]);
    write(other.certificate, other.key);
    await expect.poll(hub.eventsAfterCheck).toEqual(['certificate_renewed']);
    expect(await hub.servedSerial()).toBe(serialOf(other.certificate));
    expect(hub.anchors()).toBe(0);
  });

  it('the hub keeps the old own certificate if the new one is invalid, and logs that once', async () => {
    await using hub = await running();
    write(other.certificate, leaf.key);
    const expected = ['certificate_rejected'];
    await expect.poll(hub.eventsAfterCheck).toEqual(expected);
    for (let check = 0; check < 20; check++) expect(await hub.eventsAfterCheck()).toEqual(expected);
    expect(await hub.servedSerial()).toBe(serialOf(leaf.certificate));
    write(other.certificate, other.key);
    await expect.poll(hub.eventsAfterCheck).toEqual([...expected, 'certificate_renewed']);
    expect(await hub.servedSerial()).toBe(serialOf(other.certificate));
  });

  it('the hub warns if a renewed own certificate changes the pin', async () => {
    await using hub = await running();
    const elsewhere = await createAuthority();
    const moved = await issueLeaf(elsewhere, { names: NAMES, addresses: [], now: NOW });
    write(moved.certificate, moved.key);
    await expect.poll(hub.eventsAfterCheck).toContain('certificate_anchor_changed');
    expect(hub.hubLeaf.current.anchor.fingerprint).toBe(spkiFingerprint(elsewhere.certificate));
    expect(hub.anchors()).toBe(1);
  });

  it('the hub warns once a day in the last two weeks of an own certificate, by the confirmed clock', async () => {
    await using hub = await running();
    await hub.time.pass(3 * 60_000);
    expect(hub.events()).toEqual([]);
    hub.portalClock.recordPortalTime(leaf.notAfter - 13 * DAY);
    expect(hub.events()).toEqual(['certificate_expiring']);
    hub.time.skip(DAY + 60_000);
    expect(hub.events()).toEqual(['certificate_expiring', 'certificate_expiring']);
    hub.portalClock.recordPortalTime(leaf.notAfter + DAY);
    hub.time.skip(DAY + 60_000);
    expect(hub.events()[2]).toBe('certificate_expired');
    expect(await hub.servedSerial()).toBe(serialOf(leaf.certificate));
  });
});
