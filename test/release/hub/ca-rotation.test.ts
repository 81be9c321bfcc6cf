import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type DetailedPeerCertificate, type TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import { Agent } from 'undici';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CredentialsResponse } from '../../../src/control/messages.ts';
import { type Emulator, startEmulator } from '../../../src/emulator/index.ts';
import { spkiFingerprint } from '../../../src/system/x509/certificates.ts';
import { readExample } from '../../emulator/examples/guide.ts';
import { ApplianceTestBed } from '../../lan/clients/appliance-test-bed.ts';
import { missingPackages } from '../../lan/clients/programs.ts';
import { basicAuthorization, FORM } from '../../lan/hub-client.ts';
import { startTestModeHub } from '../../netns/hub-on-host.ts';
import { OBSERVER_TOOLS, observeWithZeroconf } from '../../netns/observers.ts';
import { eventually, HubProcess } from '../../support/hub-process.ts';
import { createLan, lanSkipReason } from '../../support/netns.ts';
import { GO_CACHE } from '../../support/program.ts';
import { stateFolder } from '../../support/state-folder.ts';

const DAY = 86_400;

let emulator: Emulator;
let hub: HubProcess;

beforeEach(async () => {
  emulator = await startEmulator();
  hub = await HubProcess.start({ emulator, here: true });
});

afterEach(async () => {
  await hub[Symbol.asyncDispose]();
  await emulator.close();
});

/** Requests a token on a new connection. @returns the HTTP status; rejects if the appliance does not trust the hub */
type Appliance = () => Promise<number>;

/** Stores the CA certificate, and trusts it. */
function trusting(ca: string, credentials: CredentialsResponse): Appliance {
  return async () => {
    const agent = new Agent({ connect: { ca } });
    try {
      return (await hub.requestToken(credentials, {}, agent)).status;
    } finally {
      await agent.destroy();
    }
  };
}

/** Stores only the pin: one of the certificates that the hub presents must have it, and must have issued the leaf. */
function pinning(fingerprint: string, credentials: CredentialsResponse): Appliance {
  return async () => {
    const socket = connect({ host: '127.0.0.1', port: hub.httpsPort, rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    try {
      checkPin(presented(socket), fingerprint);
      const body = 'grant_type=client_credentials';
      socket.write(
        `POST /oauth/token HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\nauthorization: ${basicAuthorization(credentials)}\r\n` +
          `content-type: ${FORM}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
      let response = '';
      for await (const chunk of socket) response += String(chunk);
      return Number(response.split(' ')[1]);
    } finally {
      socket.destroy();
    }
  };
}

/**
 * Follows the hub's announcements: a person or mDNS supplies the current pin, and it fetches the certificate for it.
 */
function following(credentials: CredentialsResponse): Appliance {
  return async () => {
    const { ca_fingerprint } = (await hub.status()).hub;
    const ca = await (await fetch(`http://127.0.0.1:${hub.httpPort}/ca.pem`)).text();
    // The CA was replaced between the two responses: it tries again.
    if (spkiFingerprint(ca) !== ca_fingerprint) return following(credentials)();
    return trusting(ca, credentials)();
  };
}

function checkPin(chain: readonly X509Certificate[], fingerprint: string): void {
  const anchor = chain.findIndex((certificate) => spkiFingerprint(certificate.toString()) === fingerprint);
  if (anchor < 1) throw new Error('no certificate with the pin');
  for (let index = 0; index < anchor; index++) {
    const issuer = chain[index + 1];
    const issued = chain[index];
    if (issuer === undefined || issued === undefined || !issued.verify(issuer.publicKey)) throw new Error('no chain');
  }
}

function presented(socket: TLSSocket): X509Certificate[] {
  const chain: X509Certificate[] = [];
  let next: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  while (next !== undefined && chain.length < 9) {
    chain.push(new X509Certificate(next.raw));
    next = next.issuerCertificate === next ? undefined : next.issuerCertificate;
  }
  return chain;
}

/** In ms. */
async function durationOf(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

async function presentedPins(): Promise<string[]> {
  const socket = connect({ host: '127.0.0.1', port: hub.httpsPort, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const pins = presented(socket).map((certificate) => spkiFingerprint(certificate.toString()));
  socket.destroy();
  return pins;
}

async function paired(name: string): Promise<CredentialsResponse> {
  const credentials = await hub.addAppliance(name);
  await hub.pair(name, emulator);
  return credentials;
}

/** Three appliances that pin differently, as they were set up before the rotation. */
async function threeAppliances() {
  const { certificate, fingerprint } = await hub.authority();
  return {
    pem: trusting(certificate, await paired('heater')),
    pin: pinning(fingerprint, await paired('cooler')),
    follower: following(await paired('washer')),
  };
}

/** Lets an appliance request tokens until `stop`. @returns its different outcomes, and how often it was served */
function inLoop(appliance: Appliance) {
  const outcomes = new Set<string>();
  const stopped = new AbortController();
  let served = 0;
  const loop = async () => {
    while (!stopped.signal.aborted) {
      const outcome = await appliance().catch((error: Error) => error.message);
      outcomes.add(String(outcome));
      if (outcome === 200) served += 1;
      await sleep(5);
    }
  };
  const ended = loop();
  return {
    outcomes,
    get served() {
      return served;
    },
    async stop() {
      stopped.abort();
      await ended;
    },
  };
}

describe('a rotation of the CA', () => {
  it('appliances that have the CA, its pin, or follow the rotation are served without a gap', async () => {
    const { pem, pin: pinned, follower } = await threeAppliances();
    const before = await hub.authority();
    const loops = [pem, pinned, follower].map(inLoop);
    const servedEach = (more: number) => {
      const from = loops.map((loop) => loop.served);
      return eventually(async () => loops.every((loop, index) => loop.served >= (from[index] ?? 0) + more), 60);
    };
    await servedEach(2);
    const { status, stdout, stderr } = await hub.cli('ca', '--rotate', '--yes', '--json');
    expect({ status, stderr }).toEqual({ status: 0, stderr: expect.stringContaining('the hub has a new CA') });
    const report = JSON.parse(stdout);
    expect(report.fingerprint).not.toBe(before.fingerprint);
    expect(report.old).toMatchObject({ certificate: before.certificate, fingerprint: before.fingerprint });
    const newAppliance = inLoop(trusting(report.certificate, await paired('dryer')));
    await servedEach(5);
    await newAppliance.stop();
    for (const loop of loops) await loop.stop();
    expect([...loops, newAppliance].map(({ outcomes }) => [...outcomes])).toEqual([['200'], ['200'], ['200'], ['200']]);

    // All of it survives a restart.
    const chain = await presentedPins();
    expect(chain.slice(1)).toEqual([report.fingerprint, before.fingerprint]);
    await hub.kill('SIGTERM');
    await hub.launch();
    expect(await presentedPins()).toEqual(chain);
    expect(await Promise.all([pem(), pinned(), follower()])).toEqual([200, 200, 200]);

    // A person ends the rotation: appliances that have not moved lose access at once.
    expect((await hub.cli('ca', '--keep-old', '0', '--yes')).status).toBe(0);
    expect(await follower()).toBe(200);
    await expect(pem()).rejects.toThrow(/certificate|issuer/);
    await expect(pinned()).rejects.toThrow('no certificate with the pin');
    expect((await hub.status()).hub).not.toHaveProperty('ca_rotation');
    expect((await presentedPins()).slice(1)).toEqual([report.fingerprint]);
  });

  it('the hub shows the new CA at every place, and how to get the old one', async () => {
    const before = await hub.authority();
    const report = await hub.ask((control) => control.request('rotateAuthority', { keep: 30 * DAY }));
    expect(spkiFingerprint(report.certificate)).toBe(report.fingerprint);
    const { hub: status } = await hub.status();
    expect(status.ca_fingerprint).toBe(report.fingerprint);
    expect(status.ca_rotation?.old_fingerprint).toBe(before.fingerprint);
    expect((await hub.addAppliance('fan')).ca_fingerprint).toBe(report.fingerprint);
    const http = `http://127.0.0.1:${hub.httpPort}`;
    const present = await fetch(`${http}/ca.pem`);
    expect(await present.text()).toBe(report.certificate);
    expect(present.headers.get('link')).toBe('</ca-old.pem>; rel="predecessor-version"');
    expect(await (await fetch(`${http}/ca-old.pem`)).text()).toBe(before.certificate);
    expect(await hub.cli('ca')).toMatchObject({
      stdout: report.certificate,
      stderr: expect.stringContaining('latchkey ca --old'),
    });
    expect((await hub.cli('ca', '--old')).stdout).toBe(before.certificate);
    expect((await hub.cli('status')).stdout).toContain(`old CA          ${before.fingerprint}, until `);
    const again = await hub.cli('ca', '--rotate', '--yes');
    expect(again).toMatchObject({ status: 1, stdout: '', stderr: expect.stringContaining('latchkey ca --keep-old 0') });
    expect(await hub.authority()).toEqual(report);
    const last = await hub.ask((control) => control.request('rotateAuthority', { keep: 0 }));
    expect(last.fingerprint).not.toBe(report.fingerprint);
    expect((await presentedPins()).slice(1)).toEqual([last.fingerprint]);
    expect((await fetch(`${http}/ca.pem`)).headers.get('link')).toBeNull();
    expect((await fetch(`${http}/ca-old.pem`)).status).toBe(404);
    expect(await hub.cli('ca', '--old')).toMatchObject({ status: 1, stdout: '' });
  });

  it('a backup contains both CAs, and the restored hub serves appliances that trust either', async () => {
    const credentials = await paired('heater');
    const before = await hub.authority();
    const report = await hub.ask((control) => control.request('rotateAuthority', { keep: 30 * DAY }));
    const passphrase = 'a passphrase that is long';
    const { copy } = await hub.ask((control) => control.request('backUp', { passphrase }));
    await hub[Symbol.asyncDispose]();
    hub = await HubProcess.start({ emulator, here: true });
    await hub.ask((control) => control.request('restore', { copy, passphrase }));
    await eventually(async () => (await hub.authority().catch(() => null))?.fingerprint === report.fingerprint);
    expect((await hub.authority()).old?.fingerprint).toBe(before.fingerprint);
    for (const { certificate } of [before, report]) expect(await trusting(certificate, credentials)()).toBe(200);
  });

  it('a store that is damaged after a rotation is salvaged with the new CA', async () => {
    const credentials = await paired('heater');
    const state = join(hub.directory, 'state');
    const copy = join(state, 'latchkey.db.copy');
    const copied = async () => ((await stat(copy).catch(() => null))?.mtimeMs ?? 0) > before;
    let before = 0;
    await eventually(copied);
    await sleep(1000);
    before = (await stat(copy)).mtimeMs;
    const { fingerprint, old } = await hub.ask((control) => control.request('rotateAuthority', { keep: 30 * DAY }));
    await eventually(copied);
    await hub.kill('SIGTERM');
    await writeFile(join(state, 'latchkey.db'), Buffer.alloc(40_000, 7));
    await rm(join(state, 'latchkey.db-wal'), { force: true });
    await hub.launch();
    const now = await hub.authority();
    expect([now.fingerprint, now.old]).toEqual([fingerprint, old]);
    expect(await trusting(old?.certificate ?? '', credentials)()).toBe(200);
  });

  it('an appliance gets the new CA with the example of the page for developers', async () => {
    using folder = stateFolder();
    const before = await hub.authority();
    const file = join(folder.path, 'latchkey-ca.pem');
    writeFileSync(file, before.certificate);
    const move = () =>
      promisify(execFile)('/bin/sh', ['-euc', readExample('When the CA changes', 'sh', 'docs/appliances.md')], {
        cwd: folder.path,
        env: { PATH: process.env['PATH'], HUB: `https://127.0.0.1:${hub.httpsPort}` },
      });
    await move();
    expect(spkiFingerprint(readFileSync(file, 'utf8'))).toBe(before.fingerprint);
    const { fingerprint } = await hub.ask((control) => control.request('rotateAuthority', { keep: 30 * DAY }));
    await move();
    expect(spkiFingerprint(readFileSync(file, 'utf8'))).toBe(fingerprint);
    await hub.ask((control) => control.request('keepOldAuthority', { keep: 0 }));
    await move();
  });

  it('a hub that is killed during a rotation starts again with the old or the new CA, complete', async () => {
    await hub[Symbol.asyncDispose]();
    hub = await HubProcess.start({ emulator });
    const credentials = await paired('heater');
    const observed = new Set<boolean>();
    const rounds = 3;
    // The duration after a start, when the required code is not loaded yet.
    const duration =
      2 * (await durationOf(() => hub.ask((control) => control.request('rotateAuthority', { keep: 0 }))));
    await hub.kill();
    await hub.launch();
    for (let round = 0; round < rounds; round++) {
      const before = await hub.authority();
      const rotating = hub
        .ask((control) => control.request('rotateAuthority', { keep: 30 * DAY }))
        .catch(() => undefined);
      await (round === rounds - 1 ? rotating : sleep((duration * round) / rounds));
      await hub.kill();
      await rotating;
      await hub.launch();
      const now = await hub.authority();
      observed.add(now.old !== undefined);
      expect([now.fingerprint, now.old?.fingerprint]).toContain(before.fingerprint);
      expect((await presentedPins())[1]).toBe(now.fingerprint);
      for (const { certificate } of [before, now]) expect(await trusting(certificate, credentials)()).toBe(200);
      if (now.old !== undefined) await hub.ask((control) => control.request('keepOldAuthority', { keep: 0 }));
    }
    expect(observed).toEqual(new Set([false, true]));
  });
});

describe('a program that fetches the CA at each start, as in the guide', () => {
  it('a program that fetches the CA at each start is served with the old pin while it is kept, and with the new one', async () => {
    await using bench = await ApplianceTestBed.start();
    using workspace = bench.createWorkspace(null);
    const dryer = await bench.addAppliance('dryer');
    const { fingerprint } = await bench.hub.ask((control) => control.request('rotateAuthority', { keep: 30 * DAY }));
    const programs = [(env: NodeJS.ProcessEnv) => workspace.js(guide('js'), env)];
    if (missingPackages('golang.org/x/oauth2').length === 0) {
      workspace.write('example.go', guide('go'));
      const go = { GO111MODULE: 'off', GOPATH: '/usr/share/gocode', GOCACHE: GO_CACHE };
      expect((await workspace.run('go', ['build', '-o', 'example', 'example.go'], go)).stderr).toBe('');
      programs.push((env) => workspace.run('./example', [], env));
    }
    const token = readExample('Get a token with a client secret', 'sh', 'docs/appliances.md');
    const served = async (program: (typeof programs)[0], PIN: string) => {
      expect(await program({ PIN })).toMatchObject({ status: 0, stderr: '' });
      expect(await workspace.sh(token, dryer)).toMatchObject({ status: 0 });
    };
    for (const program of programs) for (const pin of [bench.pin, fingerprint]) await served(program, pin);
    await bench.hub.ask((control) => control.request('keepOldAuthority', { keep: 0 }));
    for (const program of programs) {
      expect((await program({})).stderr).toContain('This is not our hub');
      await served(program, fingerprint);
    }
  });

  const guide = (language: string) => readExample('Trust the hub', language, 'docs/appliances.md');
});

describe('the announcement of a new CA', () => {
  it('the hub announces a new CA over mDNS at once', async (ctx) => {
    const reason = await lanSkipReason(OBSERVER_TOOLS);
    if (reason !== null) return ctx.skip(reason);
    await using lan = await createLan(['hub', 'observer']);
    await using announced = await startTestModeHub(lan.hosts.hub);
    const observer = await observeWithZeroconf(lan.hosts.observer);
    const before = (await announced.ask((control) => control.request('authority'))).fingerprint;
    expect((await observer.found()).txt['capk']).toBe(before);
    const { fingerprint } = await announced.ask((control) => control.request('rotateAuthority', { keep: 30 * DAY }));
    expect(fingerprint).not.toBe(before);
    await observer.found(({ txt }) => txt['capk'] === fingerprint);
    return undefined;
  });
});
