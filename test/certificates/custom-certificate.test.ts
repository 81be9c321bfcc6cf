import 'reflect-metadata';
import { generateKeyPairSync, KeyObject, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'node:tls';
import { X509CertificateGenerator } from '@peculiar/x509';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ReferenceClock } from '../../src/broker/time/reference-clock.ts';
import { Scheduler } from '../../src/broker/time/scheduler.ts';
import { readCustomCertificate, warnAboutCertificate } from '../../src/certificates/custom-certificate.ts';
import { HubLeaf } from '../../src/certificates/leaf.ts';
import { loadConfiguration } from '../../src/configuration/configuration.ts';
import type { LogFields } from '../../src/core/log.ts';
import { systemRandom } from '../../src/system/random.ts';
import { type Authority, type Leaf, spkiFingerprint } from '../../src/system/x509/certificates.ts';
import { createAuthority, createSuccessorAuthority, issueLeaf } from '../../src/system/x509/issuing.ts';
import { FakeTime } from '../support/fake-time.ts';
import { hubAuthority, memorySettings } from '../support/hub-authority.ts';
import { LanServerHarness } from '../support/lan-server-harness.ts';
import { logTo } from '../support/log-to.ts';
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
    [TOML.replace('hub.pem', 'nowhere.pem'), 'lan.certificate_file', 'names a file that does not exist; relative'],
    [TOML.replace('hub.pem', 'hub.key'), 'lan.certificate_file', 'contains no PEM certificate'],
  ])('the hub rejects %j at its start, in one line with the key', async ([toml, key, message]) => {
    chmodSync(config, 0o644);
    const line = await startError(toml);
    expect(line).toContain(`: ${key}: `);
    expect(line).toContain(message);
  });

  it.for<[what: string, prepare: () => void | Promise<void>, key: string, says: string]>([
    ['a key that others can read', () => chmodSync(join(folder.path, 'hub.key'), 0o640), 'key_file', 'mode 0640'],
    ['another leaf’s key', () => write(leaf.certificate, other.key), 'key_file', 'does not match the certificate'],
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
    ['a key that is too short', () => createWeakKey(), 'certificate_file', "can't be used for TLS"],
  ])('the hub rejects %s at its start, in one line with the key', async ([, prepare, key, message]) => {
    await prepare();
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

  async function createWeakKey(): Promise<void> {
    const signingAlgorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' };
    const size = { modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]) };
    const keys = await crypto.subtle.generateKey({ ...signingAlgorithm, ...size }, true, ['sign', 'verify']);
    const certificate = await X509CertificateGenerator.createSelfSigned({ name: 'CN=hub', keys, signingAlgorithm });
    const key = KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' });
    write(certificate.toString('pem'), String(key));
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

  it('the hub warns of an own certificate without a chain, and not of a valid one with its root', async () => {
    expect(await warnings(leaf.notAfter - 1)).toEqual([]);
    write(first(leaf.certificate), leaf.key);
    expect(await warnings()).toEqual(['certificate_chain_missing']);
  });

  it('the hub warns of a chain without its root', async () => {
    const permitted = { names: ['hub.home.example'], networks: ['192.168.0.0/16'] };
    const intermediate = await createSuccessorAuthority(authority, permitted);
    const issued = await issueLeaf(intermediate.authority, { names: NAMES, addresses: [], now: NOW });
    write(first(issued.certificate) + intermediate.crossCertificate, issued.key);
    expect(await warnings()).toEqual(['certificate_root_missing']);
  });

  it("the hub warns of an own certificate that has expired by the machine's clock", async () => {
    const ended = new Date(leaf.notAfter).toISOString();
    expect(await warnings(leaf.notAfter + 1)).toEqual([`certificate_expired ${ended}`]);
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
      store: { settings: memorySettings(new Map()) },
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

  it('the hub loads a renewed own certificate without a restart, and keeps the old one if the new one is invalid', async () => {
    await using hub = await running();
    write(other.certificate, leaf.key);
    const expected = ['certificate_rejected'];
    await expect.poll(hub.eventsAfterCheck).toEqual(expected);
    for (let check = 0; check < 5; check++) expect(await hub.eventsAfterCheck()).toEqual(expected);
    expect(await hub.servedSerial()).toBe(serialOf(leaf.certificate));
    write(other.certificate, other.key);
    await expect.poll(hub.eventsAfterCheck).toEqual([...expected, 'certificate_renewed']);
    expect(await hub.servedSerial()).toBe(serialOf(other.certificate));
    expect(hub.anchors()).toBe(0);
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
    hub.portalClock.recordPortalTime('home', leaf.notAfter - 13 * DAY);
    expect(hub.events()).toEqual(['certificate_expiring']);
    hub.time.skip(DAY + 60_000);
    expect(hub.events()).toEqual(['certificate_expiring', 'certificate_expiring']);
    hub.portalClock.recordPortalTime('home', leaf.notAfter + DAY);
    hub.time.skip(DAY + 60_000);
    expect(hub.events()[2]).toBe('certificate_expired');
    expect(await hub.servedSerial()).toBe(serialOf(leaf.certificate));
  });
});
