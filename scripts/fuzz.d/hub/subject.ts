import { readFileSync } from 'node:fs';
import type { Subject } from '../subject.ts';
import { startHome } from './home.ts';
import { fuzzHub, onlyToHub } from './run.ts';

/** Bytes of log that a run of any length may come to: bursts are told once. */
const LONGEST_LOG = 50_000_000;

/** A hub of its own, with an emulator as its portal. */
export async function hubSubject(): Promise<Subject> {
  const home = await startHome(true);
  const { hub, memory } = home;
  // It must not outlive the fuzz, however that ends.
  process.once('exit', () => {
    if (hub.pid > 0 && hub.ended === null) process.kill(hub.pid, 'SIGKILL');
  });
  return {
    name: 'hub',
    fill: async () => null,
    fuzz: (run) => fuzzHub(home, { ...run, memory }),
    only: (seed, number) => onlyToHub(home, seed, number),
    ended: () => hub.ended,
    complaints: () => complaintsIn(readFileSync(hub.log, 'utf8')),
    stop: async () => home[Symbol.asyncDispose](),
  };
}

/** The errors that a hub's log tells of, the first ones. */
export function complaintsIn(log: string): string {
  if (log.length > LONGEST_LOG) return `the log has ${log.length} bytes`;
  const errors = log.split('\n').filter((line) => /"level":"(error|fatal)"/.test(line));
  return errors.slice(0, 10).join('\n');
}
