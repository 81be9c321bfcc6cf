import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { HubProcess, type HubProcessOptions } from '../../test/support/hub-process.ts';
import { SERVER_CORE } from './program.ts';
import type { BenchSubject } from './suite.ts';

/** How the service of a checkout starts its daemon. */
interface Service {
  /** What it gives Node. */
  readonly flags: readonly string[];
  /** The variables that it sets and that a process has a use for. */
  readonly env: Readonly<Record<string, string>>;
}

/** Reads the unit of a checkout. */
function serviceOf({ root }: Pick<BenchSubject, 'root'>): Service {
  const unit = readFileSync(join(root, 'systemd/latchkey.service'), 'utf8');
  const flags = (/^ExecStart=\S+ (.*) \S+ serve$/m.exec(unit)?.[1] ?? '').split(' ').filter(Boolean);
  const set = [...unit.matchAll(/^Environment=(.*)$/gm)].flatMap(([, line = '']) => line.split(' '));
  const env = set.map((assignment) => assignment.split('=', 2)).filter(([, value]) => !value?.includes('%'));
  return { flags, env: Object.fromEntries(env) };
}

/** The flags and variables of this checkout's service. */
export const { flags: SERVICE_FLAGS, env: SERVICE_ENV } = serviceOf({ root: join(import.meta.dirname, '../..') });

/**
 * Writes the configuration of a hub that runs as the service runs it: a subject's build, unless `main` is another one, its
 * flags, on the server's core.
 */
export function prepareHub(subject: BenchSubject, options: HubProcessOptions): Promise<HubProcess> {
  const within = ['taskset', '-c', String(SERVER_CORE), ...(options.within ?? [])];
  const { flags, env } = serviceOf(subject);
  return HubProcess.prepare({
    main: join(subject.root, 'dist/main.js'),
    ...options,
    flags,
    env: { ...env, ...options.env },
    within,
  });
}
