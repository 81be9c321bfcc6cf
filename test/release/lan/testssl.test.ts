import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { startEmulator } from '../../../src/emulator/index.ts';
import { HubProcess } from '../../support/hub-process.ts';
import { selectRows } from '../../support/long.ts';
import { stateFolder } from '../../support/state-folder.ts';

const run = promisify(execFile);

const TESTSSL = '/usr/bin/testssl';

interface Finding {
  readonly id: string;
  readonly severity: string;
  readonly finding: string;
}

/** Findings that a private CA on a home network causes, and why each is intended. */
const ACCEPTED_FINDINGS: Readonly<Record<string, string>> = {
  cert_chain_of_trust: 'the CA is the hub’s own: appliances pin it, and no browser knows it',
  cert_validityPeriod: 'appliances have no clock to speak of: a leaf is good from 2000, and renewed in its last year',
  cert_revocation: 'nobody serves CRLs on a home network; a hub that was lost is replaced, and its pin with it',
};

/** Low or less; WARN is what the scanner could not check because this machine lacks something. */
const HARMLESS = ['OK', 'INFO', 'LOW', 'WARN'];

/**
 * Protocols, ciphers, forward secrecy, the server's defaults, and all known attacks. The scan contacts no other host.
 */
const SECTIONS = ['--protocols', '--std', '--fs', '--server-defaults', '--vulnerable'];
/** Other tests check protocols, ciphers and certificates one by one; the whole scan takes 20 s of processor time. */
const SCAN = selectRows(SECTIONS, ['--protocols', '--renegotiation']);
/** The lowest exit status of a scan that failed. */
const MIN_SCAN_ERROR_STATUS = 242;
const SCAN_OPTIONS = ['--quiet', '--color', '0', '--warnings', 'off', '--nodns', 'none', '--sneaky'];

async function scan(port: number): Promise<readonly Finding[]> {
  using folder = stateFolder();
  const file = join(folder.path, 'findings.json');
  const target = ['--ip', '127.0.0.1', '--jsonfile', file, `https://127.0.0.1:${port}`];
  // The scanner has an exit status for each severity of its findings.
  const scanning = run(TESTSSL, [...SCAN_OPTIONS, ...SCAN, ...target], { cwd: folder.path });
  const status = await scanning.then(
    () => 0,
    (error: { readonly code: unknown }) => error.code,
  );
  expect(status).toBeTypeOf('number');
  expect(status).toBeLessThan(MIN_SCAN_ERROR_STATUS);
  return JSON.parse(readFileSync(file, 'utf8')) as Finding[];
}

describe.skipIf(!existsSync(TESTSSL))('testssl.sh', () => {
  it('testssl.sh finds nothing above "low" except what a private CA causes', async () => {
    await using emulator = await startEmulator();
    await using hub = await HubProcess.start({ emulator });
    const findings = await scan(hub.httpsPort);
    const found = Object.fromEntries(findings.map(({ id, finding }) => [id, finding]));
    // The scan was completed.
    expect(found).toMatchObject({ TLS1: 'not offered', TLS1_1: 'not offered', TLS1_2: 'offered' });
    for (const last of selectRows(['heartbleed', 'LUCKY13'], ['secure_client_renego']))
      expect(found).toHaveProperty(last);
    const unexpected = findings.filter(
      ({ id, severity }) => !HARMLESS.includes(severity) && !(id in ACCEPTED_FINDINGS),
    );
    expect(unexpected).toEqual([]);
  });
});
