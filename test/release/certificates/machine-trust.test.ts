import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { createAuthority } from '../../../src/system/x509/issuing.ts';
import { HubProcess } from '../../support/hub-process.ts';
import { startPortal } from '../../support/portal.ts';
import { MAIN } from '../../support/program.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';

/** Asks the hub at $1 after each step. The lists of CAs are copies that only this script sees. */
const SCRIPT = `
  origin=$1 pin=$2 copy=$3
  shift 3
  mount -t tmpfs tmpfs /usr/local/share
  mkdir "$copy"
  cp -a /etc/ssl/certs/. "$copy"
  mount --bind "$copy" /etc/ssl/certs
  ask() {
    code=0
    curl -sS -o /dev/null "$origin/ca.pem" 2>/dev/null || code=$?
    echo "curl $code"
  }
  run() { "$node" "$main" ca "$@" --config "$config" || echo "status $?"; }
  ask
  # An earlier CA of the hub, before a rotation.
  crt=/usr/local/share/ca-certificates/latchkey.crt
  mkdir "\${crt%/*}"
  cp "$earlier" "$crt"
  update-ca-certificates >/dev/null
  (umask 077; run --install)
  ask
  openssl verify -no-CAfile -no-CAstore -CApath /etc/ssl/certs "$crt"
  run --uninstall
  ask
  run --uninstall
  run --install --from "$origin" --pin "$pin"
  ask
  run --install --from "$origin" --pin wrong
  run --uninstall --from "$origin"
  ask`;

describe('a machine that trusts the CA of the hub', () => {
  skipIfUnavailable(() => {
    if (process.getuid?.() !== 0) return 'only root can change what a machine trusts';
    return existsSync('/usr/sbin/update-ca-certificates') ? null : 'update-ca-certificates is missing';
  });

  it('curl trusts the hub without an option from "ca --install" until "ca --uninstall", also from another machine', async () => {
    await using emulator = await startPortal();
    await using hub = await HubProcess.start({ emulator });
    const pin = (await hub.cli('ca', '--fingerprint')).stdout.trim();
    const earlier = join(hub.directory, 'earlier.pem');
    await writeFile(earlier, (await createAuthority()).certificate);
    const variables = { node: process.execPath, main: MAIN, config: join(hub.directory, 'latchkey.toml'), earlier };
    const origin = `https://127.0.0.1:${hub.httpsPort}`;
    const script = ['--mount', '/bin/sh', '-ec', `exec 2>&1\n${SCRIPT}`, 'sh', origin, pin];
    const { stdout } = await promisify(execFile)('/usr/bin/unshare', [...script, join(hub.directory, 'certs')], {
      env: { ...process.env, ...variables },
    });
    const lines = stdout.trim().split('\n');
    const answers = lines.filter((line) => line.startsWith('curl '));
    // 60: curl does not trust the certificate.
    expect(answers).toEqual(['curl 60', 'curl 0', 'curl 60', 'curl 0', 'curl 60']);
    // By the name of the CA, as OpenSSL looks it up in the folder.
    expect(lines).toContain('/usr/local/share/ca-certificates/latchkey.crt: OK');
    const failures = lines.filter((line) => line.startsWith('latchkey: '));
    expect(failures).toEqual([
      expect.stringContaining('there is no /usr/local/share/ca-certificates/latchkey.crt'),
      expect.stringContaining('has another CA'),
    ]);
  });
});
