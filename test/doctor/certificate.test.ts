import 'reflect-metadata';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PemConverter, SubjectAlternativeNameExtension, X509CertificateGenerator } from '@peculiar/x509';
import { expect, it } from 'vitest';
import type { StatusResponse } from '../../src/control/messages.ts';
import type { NamedCheckResult } from '../../src/doctor/check-result.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { jsonOn, startOn } from '../cli/command.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';
import { stateFolder } from '../support/state-folder.ts';

const DAY = 86_400_000;

const folder = stateFolder();
let emulator: Emulator;
let hub: HubProcess;

setUpOnce(async (parts) => {
  parts.use(folder);
  emulator = parts.use(await startPortal());
  await write('localhost', 60, 30);
  const lan = `certificate_file = "${folder.path}/hub.pem"\nkey_file = "${folder.path}/hub.key"`;
  hub = parts.use(await HubProcess.start({ emulator, lan, here: true }));
  // The portal's time confirms the clock.
  await hub.addAppliance('fan');
  await hub.pair('fan', emulator);
});

/** Writes the hub's certificate. @param age for how many days it has been valid @param left how many days are left */
async function write(name: string, age: number, left: number): Promise<void> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const at = (days: number) => new Date(Date.now() + days * DAY);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: 'CN=hub',
    notBefore: at(-age),
    notAfter: at(left),
    signingAlgorithm: algorithm,
    keys,
    extensions: [new SubjectAlternativeNameExtension([{ type: 'dns', value: name }])],
  });
  const key = await crypto.subtle.exportKey('pkcs8', keys.privateKey);
  writeFileSync(join(folder.path, 'hub.pem'), certificate.toString('pem'));
  writeFileSync(join(folder.path, 'hub.key'), PemConverter.encode(key, PemConverter.PrivateKeyTag), { mode: 0o600 });
}

/** Loads the certificate that was written, and returns what `status` and the doctor say of it. */
async function reports() {
  await hub.reload();
  const status: StatusResponse = await hub.ask((control) => control.request('status'));
  const { checks } = await jsonOn<{ checks: NamedCheckResult[] }>(hub, 'doctor');
  const check = (name: string) => {
    const found = checks.find((one) => one.name === name);
    return `${found?.result}: ${found?.detail}`;
  };
  return {
    conditions: status.conditions
      .filter((one) => one.connection === null)
      .map(({ code, severity, message }) => `${severity} ${code}: ${message}`),
    file: check('certificate'),
    name: check('certificate.name'),
    port: check('ports.https_port'),
    hub: check('hub'),
  };
}

const path = `${folder.path}/hub.pem`;
const day = '\\d{4}-\\d\\d-\\d\\d';

it('the doctor and status find nothing wrong with an own certificate that was renewed in time', async () => {
  const found = await reports();
  expect(found.conditions).toEqual([]);
  expect(found.file).toMatch(new RegExp(`^ok: ${path} is valid until ${day}$`));
  expect(found.name).toBe('ok: localhost leads to this hub (127.0.0.1)');
  // Its name is enough: no public CA issues a certificate for an address of a home network.
  expect(found.port).toMatch(/^ok: /);
  await write('localhost', 4, 2);
  expect((await reports()).conditions).toEqual([]);
});

it('the doctor, status and a notice warn of an own certificate that was not renewed in time', async () => {
  // Two weeks of a long lifetime, and a sixth of a short one.
  for (const [age, left] of [
    [351, 13.9],
    [5.1, 0.9],
  ] as const) {
    await write('localhost', age, left);
    const found = await reports();
    const message = `The hub's certificate for localhost expires on ${day} and has not been renewed`;
    expect(found.conditions).toEqual([expect.stringMatching(`^warning certificate_expiring: ${message}$`)]);
    expect(found.file).toMatch(new RegExp(`^warn: ${path} expires on ${day}, and should have been renewed by now: `));
    expect(found.hub).toMatch(new RegExp(`^warn: ${message}.*Renew the certificate of lan.certificate_file`, 'i'));
  }
  await eventually(async () => (await hub.status()).notices.some(({ code }) => code === 'certificate_expiring'));
});

it('the doctor and status fail if an own certificate has expired', async () => {
  await write('localhost', 90, -1);
  const found = await reports();
  expect(found.conditions).toEqual([
    expect.stringMatching(`^error certificate_expired: The hub's certificate for localhost expired on ${day}`),
  ]);
  expect(found.file).toMatch(new RegExp(`^fail: ${path} expired on ${day}: renew it`));
  expect(found.port).toMatch(/^fail: .* expired on /);
  expect((await startOn(hub, 'status').ended).status).toBe(3);
});

it('the doctor says how to correct a name of the certificate that leads to another machine', async () => {
  // Resolved on this machine, to an address that is not the hub's.
  await write('127.0.0.2', 60, 30);
  const { name } = await reports();
  expect(name).toMatch(
    /^warn: 127\.0\.0\.2 has the address 127\.0\.0\.2, not that of this hub \(127\.0\.0\.1\): create a DNS record/,
  );
});
