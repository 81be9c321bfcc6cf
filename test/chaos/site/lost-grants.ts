import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../../src/core/failure.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import type { ChaosSite } from './chaos-site.ts';
import type { PortalGrant } from './portal-log.ts';
import type { Resend } from './send-audit.ts';

/**
 * The result of some work, which goes on if it takes longer.
 * @param ms the longest time that it takes on a quiet machine
 */
async function withDeadline<Result>(work: Promise<Result>, ms: number): Promise<Result> {
  const timer = new AbortController();
  const late = sleep(scaleDeadline(ms), undefined, { signal: timer.signal }).then(() => {
    throw new Error(`no result within ${scaleDeadline(ms)} ms`);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    timer.abort();
    late.catch(() => undefined);
  }
}

/** A grant that the hubs report as lost. Times are ms since 1970. */
interface LostGrant {
  readonly connection: string;
  readonly at: number;
  /** What `status` says. */
  readonly message: string;
  /** When the connection was paired again; Infinity before. */
  repaired: number;
}

/** Finds the connections that need a new login, notes why, and pairs them again. */
export class LostGrants {
  readonly #site: ChaosSite;
  readonly #lost: LostGrant[] = [];
  readonly #unpaired = new Set<string>();

  constructor(site: ChaosSite) {
    this.#site = site;
  }

  get count(): number {
    return this.#lost.length;
  }

  /** Looks again and again until it is stopped. @param interval in ms */
  async watch(interval: number, stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      await sleep(interval, undefined, { signal: stop }).catch(() => undefined);
      await this.repair();
    }
  }

  /** Looks once, if a hub can be asked, and pairs each such connection once. @returns how many still need it */
  async repair(): Promise<number> {
    const hub = this.#site.healthyHub;
    if (hub === undefined) return 0;
    // The hub may suffer a fault meanwhile.
    const status = await withDeadline(hub.process.status(), 5000).catch(() => null);
    for (const { name, state, problem } of status?.connections ?? []) {
      if (!this.#site.connections.includes(name)) continue;
      if (state === 'unpaired') this.#unpaired.add(name);
      if (state !== 'needs_pairing') continue;
      // This hub may not know yet that the connection was paired again.
      const since = Date.parse(problem?.since ?? '');
      if (this.#lost.some(({ connection, repaired }) => connection === name && since < repaired && repaired < Infinity))
        continue;
      const open = this.#lost.find(({ connection, repaired }) => connection === name && !Number.isFinite(repaired));
      const lost = open ?? { connection: name, at: Date.now(), message: problem?.message ?? '', repaired: Infinity };
      if (open === undefined) this.#lost.push(lost);
      const isPaired = await withDeadline(this.#site.pair(name, hub), 20_000).then(
        () => true,
        () => false,
      );
      if (isPaired) lost.repaired = Date.now();
    }
    return this.#lost.filter(({ repaired }) => !Number.isFinite(repaired)).length;
  }

  /** Whether a connection was without a grant at some time in this span. */
  wasLost(connection: string, from: number, to: number): boolean {
    // The portal revoked it before a hub could be asked.
    return this.#lost.some((lost) => lost.connection === connection && lost.at - 60_000 < to && lost.repaired > from);
  }

  /** The broken promises: each lost grant must be one that the portal has revoked, and each of those be explained. */
  findUnexplained(grants: readonly PortalGrant[], resends: readonly Resend[]): string[] {
    const broken = [...this.#unpaired].map((name) => `${name} lost its grant without a trace`);
    const reused = (id: string) => resends.find(({ second }) => second.grant === id);
    for (const { id, user } of grants.filter(({ revoked }) => revoked)) {
      if (this.#site.portalLog.wasRevoked(id)) continue;
      if (reused(id) === undefined)
        broken.push(`the portal revoked a grant of ${user} without a second use of a token`);
    }
    const byConnection = Map.groupBy(this.#lost, ({ connection }) => connection);
    for (const [connection, lost] of byConnection) {
      // A grant stays until an import over it has ended.
      const isImport = (id: string) => this.#site.imported.has(reused(id)?.second.token ?? '');
      const revoked = grants.filter(({ id, user, revoked }) => user === connection && revoked && !isImport(id)).length;
      if (lost.length > revoked)
        broken.push(`${connection} was lost ${lost.length} times, but the portal revoked ${revoked} of its grants`);
    }
    for (const { connection, message } of this.#lost) {
      // If a hub is killed during a refresh just before a promotion, the grant is in doubt for that first. Either way the
      // portal's second use of the token says whether the loss could be avoided.
      if (!/^(An answer was lost on|The grant was restored from a copy of) /.test(message))
        broken.push(`${connection} does not report a lost answer, but: ${message}`);
    }
    return broken;
  }
}

/**
 * Refreshes every connection, and looks whether all hubs of a site then issue the same token for it.
 * @returns what is wrong
 */
export async function findDisagreement(site: ChaosSite): Promise<string[]> {
  const broken: string[] = [];
  await Promise.all(
    site.hubs.map(async ({ name: hub, process }, index) => {
      for (const name of site.connections.filter((_, number) => number % site.hubs.length === index)) {
        const problem = await process
          .ask((control) => control.request('refresh', { name }))
          .then(({ state, problem }) => (state === 'active' ? null : `${state}, ${problem?.message}`), messageOf);
        if (problem !== null) broken.push(`${name} could not be refreshed by ${hub}: ${problem}`);
      }
    }),
  );
  // News take up to some seconds if a notification was missed.
  await sleep(5000);
  const tokens = await Promise.all(
    site.hubs.map(({ process }) =>
      process.ask(async (control) => {
        const issued = new Map<string, string>();
        for (const name of site.connections) {
          issued.set(
            name,
            await control.request('token', { name }).then(({ access_token }) => access_token, messageOf),
          );
        }
        return issued;
      }),
    ),
  );
  for (const name of site.connections) {
    if (new Set(tokens.map((byName) => byName.get(name))).size > 1 && !(await doHubsAgree(site, name)))
      broken.push(`the hubs issue different tokens for ${name} after the end`);
  }
  return broken;
}

/** Whether all hubs issue the same token, at the third try at the latest: it may have been refreshed in between. */
async function doHubsAgree(site: ChaosSite, name: string): Promise<boolean> {
  for (let tries = 0; tries < 3; tries += 1) {
    const tokens = await Promise.all(
      site.hubs.map(({ process }) =>
        process.ask((control) =>
          control.request('token', { name }).then(({ access_token }) => access_token, messageOf),
        ),
      ),
    );
    if (new Set(tokens).size === 1) return true;
    await sleep(3000);
  }
  return false;
}
