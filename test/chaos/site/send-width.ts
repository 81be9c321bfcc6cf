import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { EmulatorProcess } from '../../support/emulator-process.ts';
import { SHARED_CACHE } from '../../support/program.ts';
import { stateFolder } from '../../support/state-folder.ts';

const FOLDER = import.meta.dirname;
/** A request has more bytes than any other message of a connection of the hub's client after its TLS handshake. */
const REQUEST_BYTES = 200;

/**
 * How long after the hub's check of its lease the bytes of a refresh have been written to the socket, in ms: within
 * this time a hub that is paused sends what another hub may have sent meanwhile.
 */
export interface SendWidth {
  readonly sends: number;
  readonly median: number;
  readonly percentile99: number;
  readonly longest: number;
}

/** Why the width can't be measured here; null if it can. */
export function sendWidthSkipReason(): string | null {
  return spawnSync('cc', ['--version']).status === 0 ? null : 'cc is missing';
}

/** Measures the width over this number of refreshes, with the hub's own HTTP client, over TLS. */
export async function measureSendWidth(sends: number): Promise<SendWidth> {
  using folder = stateFolder();
  const caFile = join(folder.path, 'portal.pem');
  await using portal = await EmulatorProcess.start('--tls', '--ca-file', caFile);
  const library = join(folder.path, 'tcp-writes.so');
  execFileSync('cc', ['-shared', '-fPIC', '-O2', '-o', library, join(FOLDER, 'tcp-writes.c'), '-ldl']);
  const writesFile = join(folder.path, 'writes');
  const args = [join(FOLDER, 'send-width-sender.ts'), portal.frontendUrl, caFile, String(sends)];
  const env = {
    ...process.env,
    XDG_CACHE_HOME: SHARED_CACHE,
    LD_PRELOAD: library,
    LATCHKEY_TEST_TCP_WRITES: writesFile,
  };
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  const writes = readFileSync(writesFile, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => line.split(' ').map(Number) as [number, number])
    .filter(([, bytes]) => bytes >= REQUEST_BYTES)
    .map(([at]) => at);
  const widths = stdout
    .trimEnd()
    .split('\n')
    .map(Number)
    .map((check) => ((writes.find((at) => at >= check) ?? Number.NaN) - check) / 1e6)
    .toSorted((one, other) => one - other);
  const at = (fraction: number) => Math.round(1000 * (widths[Math.floor(fraction * (widths.length - 1))] ?? 0)) / 1000;
  return { sends: widths.length, median: at(0.5), percentile99: at(0.99), longest: at(1) };
}

if (import.meta.main) console.log(await measureSendWidth(500));
