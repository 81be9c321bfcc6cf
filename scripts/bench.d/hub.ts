import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CredentialsResponse } from '../../src/control/messages.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { pairFleet } from '../../test/reliability/fleet.ts';
import { eventually, HubProcess, type HubProcessOptions } from '../../test/support/hub-process.ts';
import { type RequestLoop, tokenRequest } from './load.ts';
import { SERVER_CORE } from './program.ts';
import { type BenchSubject, LATCHKEY } from './suite.ts';

/** Connections of a load. */
const CONNECTIONS = 16;

/** This checkout, as the suites measure it. */
export const HERE: BenchSubject = { name: LATCHKEY, root: join(import.meta.dirname, '../..') };

/** How the systemd service of a checkout starts the daemon: Node's options, and variables without systemd specifiers. */
export function serviceOf({ root }: BenchSubject): { flags: readonly string[]; env: Readonly<Record<string, string>> } {
  const unit = readFileSync(join(root, 'systemd/latchkey.service'), 'utf8');
  const flags = (/^ExecStart=\S+ (.*) \S+ serve$/m.exec(unit)?.[1] ?? '').split(' ').filter(Boolean);
  const set = [...unit.matchAll(/^Environment=(.*)$/gm)].flatMap(([, line = '']) => line.split(' '));
  const env = set.map((assignment) => assignment.split('=', 2)).filter(([, value]) => !value?.includes('%'));
  return { flags, env: Object.fromEntries(env) };
}

/** The options of a hub that runs like the service: the subject's build, on the server's core. */
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

/** Starts such a hub. */
export async function startHub(subject: BenchSubject, options: HubProcessOptions): Promise<HubProcess> {
  const hub = await HubProcess.prepare(likeService(subject, options));
  await hub.launch();
  return hub;
}

/** Pairs appliances at a running hub, and waits for the snapshot that follows each pairing. */
export async function pairAppliances(
  hub: HubProcess,
  emulator: Emulator,
  count: number,
): Promise<CredentialsResponse[]> {
  const paired: CredentialsResponse[] = [];
  for (let number = 1; number <= count; number += 1) {
    const before = countSnapshots(hub);
    paired.push(...(await pairFleet(hub, emulator, [`appliance-${number}`])));
    await eventually(async () => countSnapshots(hub) > before);
  }
  return paired;
}

/** How many snapshots a hub has written since its start. */
export function countSnapshots(hub: HubProcess): number {
  return hub.events('snapshot_written').length;
}

/** Loops of token requests, one for each connection. */
export function tokenLoops(
  port: number,
  appliances: readonly Pick<CredentialsResponse, 'client_id' | 'client_secret'>[],
): RequestLoop[] {
  return Array.from({ length: CONNECTIONS }, (_, index) => {
    const appliance = appliances[index % appliances.length];
    if (appliance === undefined) throw new Error('there are no appliances');
    return { request: tokenRequest(port, appliance), expected: '"access_token"' };
  });
}
