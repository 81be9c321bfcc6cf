import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { HubProcess, type HubProcessOptions } from '../../test/support/hub-process.ts';
import { SERVER_CORE } from './program.ts';
import type { BenchSubject } from './suite.ts';

/** How the systemd service of a checkout starts the daemon. */
interface Service {
  /** Node's options. */
  readonly flags: readonly string[];
  /** Environment variables of the unit, except those with systemd specifiers. */
  readonly env: Readonly<Record<string, string>>;
}

/** Reads the systemd unit of a checkout. */
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
 * Prepares a hub that runs like the service: the subject's build (or `main`), the service's flags and variables, on the
 * server's core.
 */
export function prepareHub(subject: BenchSubject, options: HubProcessOptions): Promise<HubProcess> {
  return HubProcess.prepare(likeService(subject, options));
}

/** The options of such a hub. */
export function likeService(subject: BenchSubject, options: HubProcessOptions): HubProcessOptions {
  const { flags, env } = serviceOf(subject);
  return {
    main: join(subject.root, 'dist/main.js'),
    ...options,
    flags,
    env: { ...env, ...options.env },
    within: ['taskset', '-c', String(SERVER_CORE), ...(options.within ?? [])],
  };
}

/**
 * The code of a checkout that fills the store of a hub: its own, because another revision may have another schema.
 */
export function storedFleetCode({
  root,
}: BenchSubject): Promise<typeof import('../../test/reliability/stored-fleet.ts')> {
  return import(join(root, 'test/reliability/stored-fleet.ts'));
}
