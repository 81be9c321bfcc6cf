import { hash } from 'node:crypto';
import type { Connections } from '../../../src/broker/connections/connections.ts';
import { GrantImports } from '../../../src/broker/connections/grant-imports.ts';
import type { GrantRunner } from '../../../src/broker/grants/grant-runner.ts';
import { Grants } from '../../../src/broker/grants/grants.ts';
import { createHubRanking } from '../../../src/broker/grants/refresh-schedule.ts';
import type { BrokerStore, ConnectedPortal, Environment } from '../../../src/broker/ports.ts';
import { ReferenceClock } from '../../../src/broker/time/reference-clock.ts';
import type { Scheduler } from '../../../src/broker/time/scheduler.ts';
import type { Connection } from '../../../src/core/connections/connection.ts';
import { messageOf } from '../../../src/core/failure.ts';
import type { Grant } from '../../../src/core/grants/grant.ts';
import type { LostAnswerRetry } from '../../../src/core/grants/login-end.ts';
import type { Portal } from '../../../src/core/portals/portal.ts';
import { Secret } from '../../../src/core/secret.ts';
import type { SiteHub } from '../../../src/core/site.ts';
import type { Sealing } from '../../../src/store/keys/sealing.ts';
import type { SiteDatabase } from '../../../src/store/postgres/database/database.ts';
import { SiteClocks } from '../../../src/store/postgres/link/clocks.ts';
import { SiteGrants } from '../../../src/store/postgres/tables/grants.ts';
import { logTo } from '../../support/log-to.ts';
import { withMethods } from '../../support/store-calls.ts';
import { type Ghost, ModelConnections, type ModelDatabase } from './model-database.ts';
import type { ModelPortal } from './model-portal.ts';
import type { Defect } from './scenario.ts';

export const HUBS = ['A', 'B'] as const;
/** The hubs of the check. */
export type HubName = (typeof HUBS)[number];

/** The one connection whose grant they refresh. */
export const CONNECTION = 'wallbox';

/** The boot clock of each hub at time 0, and how far its wall clock is off; both in ms. */
const CLOCKS = { A: { uptime: 5_000_000, wall: 7_200_000 }, B: { uptime: 90_000_000, wall: -10_800_000 } };

/** Rows in the clear: what is sealed is not what is checked. */
const NO_SEALING: Sealing = { seal: (_row, text) => text, open: (_row, text) => text };

/** What the login of another program is imported to. */
const OF_IMPORT: Connection = {
  id: CONNECTION,
  name: CONNECTION,
  title: CONNECTION,
  portal: 'home',
  scope: null,
  origin: 'added',
};

/** A hub's plan for its next refresh. */
interface Plan {
  /** On the boot clock, in ms. */
  readonly at: number;
  readonly run: () => void;
}

/** What all hubs of a check have in common. */
export interface HubContext {
  readonly database: ModelDatabase;
  readonly portal: ModelPortal;
  readonly retryLostAnswer: LostAnswerRetry;
  readonly defects: ReadonlySet<Defect>;
}

/** One run of a hub: the real `Grants` and `SiteGrants` over the model of the database. */
export interface HubRun {
  readonly number: number;
  readonly grants: Grants;
  readonly connections: ModelConnections;
  readonly site: SiteGrants;
  readonly imports: GrantImports;
  plan: Plan | null;
  /** News that were not applied yet. */
  news: 'none' | 'some' | 'all';
  /** The number of promotions that it knows of. */
  timeline: number;
  isLoaded: boolean;
  isApplying: boolean;
  /** How many imports and unpairings are under way. */
  commands: number;
  /** Whether it has written something without an answer. */
  hasUnknownWrites: boolean;
}

/** Writes the end of a login without a pairing, as `PostgresStore` does. */
async function saveLogin(
  connections: Pick<ModelConnections, 'write'>,
  site: SiteGrants,
  ...[connection, decide]: Parameters<BrokerStore['saveLogin']>
): Promise<Grant | null> {
  const written = await connections.write([`grants/${connection}`], (sql) => site.replaceAs(sql, connection, decide));
  if (written?.grant == null || written.revision === null) return null;
  site.noteReplaced(written.grant, written.revision);
  return written.grant;
}

/** A hub, and what a check may do to it. */
export class ModelHub {
  readonly name: HubName;
  readonly #context: HubContext;
  #run: HubRun | null = null;
  #runs = 0;
  /** What the running hub does when the database can be used again. */
  #onReturn: () => void = () => undefined;
  /** Stands for everything that the hub has seen so far, and so for its state. */
  #history = '';
  /** What the database may still execute for a run or connections that have ended. */
  ghosts: Ghost[] = [];
  /** Whether time has passed while it had something to do. */
  isPaused = false;

  constructor(name: HubName, context: HubContext) {
    this.name = name;
    this.#context = context;
  }

  get run(): HubRun | null {
    return this.#run;
  }

  /** The grant that the running hub holds; undefined if it has none. */
  get held(): GrantRunner | undefined {
    return this.#run?.isLoaded === true ? this.#run.grants.get(CONNECTION) : undefined;
  }

  /** On the boot clock, in ms. */
  get uptime(): number {
    return CLOCKS[this.name].uptime + this.#context.database.time;
  }

  /** When the plan is due, in ms from the start of the check; null if there is none. */
  get dueAt(): number | null {
    const plan = this.#run?.plan ?? null;
    return plan === null ? null : plan.at - CLOCKS[this.name].uptime;
  }

  /** Whether it has nothing to do at the moment. */
  get isQuiet(): boolean {
    const { held } = this;
    const run = this.#run;
    if (run === null || !run.isLoaded || run.commands > 0) return false;
    const isIdle = run.connections.calls.length === 0 && (held?.refreshing ?? null) === null && !run.isApplying;
    return isIdle && !run.connections.isAway && run.news === 'none';
  }

  /** Whether it has read what the database has since the last promotion, and written again what that has lost. */
  get hasCaughtUp(): boolean {
    const run = this.#run;
    if (run === null || !run.isLoaded || run.timeline !== this.#context.database.timeline) return false;
    return !run.connections.isAway && !run.isApplying && run.news !== 'all';
  }

  /** Notes what the hub sees. */
  note(...seen: unknown[]): void {
    this.#history = hash('sha1', JSON.stringify([this.#history, this.#context.database.time, seen]), 'base64');
  }

  /** Does what is due. */
  runPlan(): void {
    const plan = this.#run?.plan;
    if (this.#run !== null) this.#run.plan = null;
    plan?.run();
  }

  /** Starts a run. Its grants are loaded when the database has answered. */
  async start(): Promise<void> {
    const { database } = this.#context;
    this.ghosts = [];
    database.checkServer();
    const connections = new ModelConnections(database, this.name, `${this.name}${this.#runs}`);
    const { clock } = this.#environment;
    const clocks = new SiteClocks(clock, (work) => connections.read(work));
    await clocks.synchronize({ all: async () => [{ now: database.now }] as never, run: async () => 0 });
    await clocks.load({ all: async () => HUBS.map(bootTimeOf(database)) as never, run: async () => 0 });
    const site = new SiteGrants({
      database: connections as unknown as SiteDatabase,
      sealing: NO_SEALING,
      clocks,
      clock,
      hubId: this.name,
    });
    const run = { number: this.#runs++, connections, site, plan: null, news: 'none', isLoaded: false } as const;
    const started: HubRun = {
      ...run,
      isApplying: false,
      commands: 0,
      hasUnknownWrites: false,
      timeline: database.timeline,
      ...this.#createGrants(connections, site, () => started),
    };
    this.#run = started;
    void started.grants.load().then(
      () => {
        started.isLoaded = true;
      },
      () => {
        if (this.#run === started) this.#run = null;
      },
    );
  }

  /** Kills the process: what it has asked the database for may be executed, but not answered. */
  async kill(): Promise<void> {
    await this.#loseCalls();
    this.#run = null;
  }

  /** Loses the connections to the database. */
  async disconnect(): Promise<void> {
    if (this.#run === null || this.#run.connections.isAway) return;
    this.#run.connections.isAway = true;
    await this.#loseCalls();
  }

  /** Uses the database again, as `SiteLink` does. */
  async return(): Promise<void> {
    const run = this.#run;
    if (run === null) return;
    this.ghosts = [];
    const { database } = this.#context;
    database.checkServer();
    if (run.timeline !== database.timeline) run.news = 'all';
    run.timeline = database.timeline;
    run.connections.isAway = false;
    if (run.hasUnknownWrites && run.news === 'none') run.news = 'some';
    run.hasUnknownWrites = false;
    try {
      await run.site.onReturning();
    } catch {
      return;
    }
    await this.applyNews();
    this.#onReturn();
  }

  /** Applies the news so far; if that fails, everything counts as news. */
  async applyNews(): Promise<void> {
    const run = this.#run;
    if (run === null || run.news === 'none' || run.isApplying) return;
    const isAll = run.news === 'all';
    run.news = 'none';
    run.isApplying = true;
    try {
      if (this.#context.defects.has('news_applied_over_refresh')) await run.grants.resumeStored(CONNECTION);
      else await run.grants.applyNews(new Set([CONNECTION]), isAll);
    } catch {
      run.news = 'all';
    }
    run.isApplying = false;
  }

  /** Imports the login of another program. @returns what it says at the end; null if the hub was killed */
  async import(): Promise<string | null> {
    const request = { refreshToken: new Secret('imported-1'), replace: true };
    return this.#command(({ imports }) => imports.run(OF_IMPORT, request));
  }

  /** Deletes the grant, and revokes it. @returns as {@link import} */
  async unpair(): Promise<string | null> {
    return this.#command(async ({ grants }) => {
      const deleted = await grants.delete(CONNECTION);
      if (deleted !== null)
        await grants.revoke(CONNECTION, { name: CONNECTION, portal: this.#revokingPortal }, deleted, true);
    });
  }

  async #command(work: (run: HubRun) => Promise<unknown>): Promise<string | null> {
    const run = this.#run;
    if (run === null) return null;
    run.commands += 1;
    const end = await work(run).then(() => 'done', messageOf);
    run.commands -= 1;
    if (this.#run !== run) return null;
    this.note(end);
    return end;
  }

  /** What everything that follows depends on. */
  fingerprint(): string {
    const run = this.#run;
    const calls = run?.connections.calls.map(({ number, result }) => [number, result]);
    const ghosts = this.ghosts.map(({ text }) => text);
    const state =
      run === null ? null : [run.number, run.timeline, run.news, run.isLoaded, run.isApplying, run.connections.isAway];
    return JSON.stringify([this.#history, state, run?.connections.seen, run?.plan?.at, calls, ghosts, this.isPaused]);
  }

  async #loseCalls(): Promise<void> {
    for (const call of [...(this.#run?.connections.calls ?? [])]) {
      if (this.#run !== null && call.kind === 'write') this.#run.hasUnknownWrites = true;
      const ghost = await call.lose();
      if (ghost !== null) this.ghosts.push(ghost);
    }
  }

  get #environment(): Environment {
    const { database } = this.#context;
    const { uptime, wall } = CLOCKS[this.name];
    return {
      clock: {
        now: () => ({ boot: `boot-${this.name}`, uptime: uptime + database.time, wall: database.now + wall }),
      },
      timers: { after: () => () => undefined, sleep: () => new Promise(() => undefined) },
      random: { token: () => '', uuid: () => '', below: () => 0, fraction: () => 0.5 },
      log: logTo(() => undefined),
      emit: () => undefined,
    };
  }

  get #revokingPortal(): Pick<Portal, 'revoke'> {
    return {
      revoke: async ({ refreshToken }) => {
        this.#context.portal.revoke(refreshToken?.reveal() ?? '');
        return { kind: 'revoked' };
      },
    };
  }

  #createGrants(
    connections: ModelConnections,
    site: SiteGrants,
    run: () => HubRun,
  ): Pick<HubRun, 'grants' | 'imports'> {
    const environment = this.#environment;
    const { portal, database, retryLostAnswer, defects } = this.#context;
    const hubs = HUBS.map((id) => ({ id, isAlive: true }) as SiteHub);
    const store = {
      grants: defects.has('nothing_is_put_back') ? withMethods(site, { reconcile: async () => {} }) : site,
      saveLogin: (...call: Parameters<BrokerStore['saveLogin']>) => saveLogin(connections, site, ...call),
      site: {},
    } as unknown as BrokerStore;
    const scheduler = {
      plan: (key: string, at: number, work: () => void) => {
        if (key === CONNECTION) run().plan = { at, run: work };
      },
      cancel: (key: string) => {
        if (key === CONNECTION) run().plan = null;
      },
    } as unknown as Scheduler;
    const connectionPortal = {
      name: CONNECTION,
      portal: {
        prepareTokenRequest: async () => null,
        refresh: async (token, maySend = () => true) => {
          const begun = database.begun(this.name);
          return portal.refresh(this.name, token, begun, maySend);
        },
        revoke: async (tokens) =>
          defects.has('late_tokens_are_kept') ? { kind: 'unsupported' } : this.#revokingPortal.revoke(tokens),
      } as Partial<Portal> as Portal,
      identity: { origin: 'https://portal.example', clientId: 'a-client', name: 'home', otherOrigins: [] },
      credentialLocation: { portal: 'home' },
      retryLostAnswer,
      loginLifetime: null,
      idleLifetime: null,
      refreshEndsAccessToken: false,
    } as ConnectedPortal;
    const referenceClock = new ReferenceClock(environment);
    const grants = new Grants({
      environment,
      store,
      scheduler,
      referenceClock,
      portalOf: () => connectionPortal,
      nameOf: () => 'home',
      jitterOffset: () => 0,
      isDamaged: () => false,
      stopTime: 0,
      rankOf: createHubRanking({ hubId: this.name, hubs }),
    });
    this.#onReturn = () => void grants.onStoreReturned();
    const imports = new GrantImports({
      environment,
      grants,
      referenceClock,
      portalOf: () => connectionPortal,
      store,
      connections: {
        byId: () => ({}),
        save: async () => true,
        writeUnwritten: async () => undefined,
      } as unknown as Connections,
    });
    return { grants, imports };
  }
}

/** The rows of `clocks`. */
function bootTimeOf(database: ModelDatabase): (name: HubName) => { boot: string; bootedAt: number } {
  return (name) => ({ boot: `boot-${name}`, bootedAt: database.now - database.time - CLOCKS[name].uptime });
}
