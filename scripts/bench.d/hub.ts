import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { HubProcess, type HubProcessOptions } from '../../test/support/hub-process.ts';
import { SERVER_CORE } from './program.ts';
import type { Subject } from './suite.ts';

const UNIT = readFileSync(join(import.meta.dirname, '../../systemd/latchkey.service'), 'utf8');

/** The flags that the service gives Node. */
export const SERVICE_FLAGS = (/^ExecStart=\S+ (.*) \S+ serve$/m.exec(UNIT)?.[1] ?? '').split(' ').filter(Boolean);

/** The variables that the service sets and that a process has a use for. */
export const SERVICE_ENV = { MALLOC_ARENA_MAX: /MALLOC_ARENA_MAX=(\d+)/.exec(UNIT)?.[1] };

/** Writes the configuration of a hub that runs as the service runs it: a subject's build, its flags, on the server's core. */
export function prepareHub(subject: Subject, options: HubProcessOptions): Promise<HubProcess> {
  const within = ['taskset', '-c', String(SERVER_CORE), ...(options.within ?? [])];
  return HubProcess.prepare({
    ...options,
    main: join(subject.root, 'dist/main.js'),
    flags: SERVICE_FLAGS,
    env: { ...SERVICE_ENV, ...options.env },
    within,
  });
}
