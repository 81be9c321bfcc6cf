import { execFile } from 'node:child_process';
import { join } from 'node:path';
import type { NamedCheckResult } from '../../src/doctor/check-result.ts';
import { scaleDeadline } from '../support/deadlines.ts';
import type { HubProcess } from '../support/hub-process.ts';
import { MAIN, SHARED_CACHE } from '../support/program.ts';

/** Runs the doctor on a hub, started by another program. */
export function runDoctorWithin(
  hub: HubProcess,
  command: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<NamedCheckResult[]> {
  const doctor = [process.execPath, MAIN, 'doctor', '--json', '--config', join(hub.directory, 'latchkey.toml')];
  const [program = '', ...args] = [...command, ...doctor];
  const options = {
    timeout: scaleDeadline(30_000),
    env: { PATH: process.env['PATH'], HOME: hub.directory, XDG_CACHE_HOME: SHARED_CACHE, ...env },
  };
  return new Promise((resolve, reject) => {
    execFile(program, args, options, (error, stdout, stderr) => {
      if (!stdout.startsWith('{')) reject(new Error(stderr || String(error)));
      else resolve((JSON.parse(stdout) as { checks: NamedCheckResult[] }).checks);
    });
  });
}
