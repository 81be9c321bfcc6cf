// One pairing at two hubs of a site: a scheduler decides in which order writes, reads, answers and waits end.
import { setImmediate as immediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { PairingContext } from '../../src/broker/pairings/login-completion.ts';
import { PairingRunner } from '../../src/broker/pairings/pairing-runner.ts';
import type { Instant } from '../../src/core/clock.ts';
import type { Grant } from '../../src/core/grants/grant.ts';
import type { Pairing } from '../../src/core/pairings/pairing.ts';
import type { DeviceLink } from '../../src/core/portals/login-link.ts';
import type { TokenOutcome, TokenResponse } from '../../src/core/portals/token-outcome.ts';
import { Secret } from '../../src/core/secret.ts';
import type { Store } from '../../src/core/store.ts';
import { HOUR, instantAt, SAMPLE_LINK, samplePairing } from '../core/samples.ts';
import { logTo } from '../support/log-to.ts';

type HubName = 'a' | 'b';

const PAIRING = samplePairing({ kind: 'waiting', link: SAMPLE_LINK });
const DEVICE_LINK: DeviceLink = {
  kind: 'device',
  authorizeUrl: 'https://portal.example/device',
  redirect: null,
  userCode: 'ABCD-EFGH',
  containsUserCode: false,
  deviceCode: new Secret(''),
  verifier: null,
  interval: 5000,
  begun: instantAt(0),
  lifetime: HOUR,
};
const CONFIGURED = { origin: 'https://portal.example', clientId: 'a-client', name: 'home' };

/** What happens next, and how many of the things under way end before the action after it. */
const action = fc.record({
  what: fc.constantFrom(
    ...(['code', 'code', 'code', 'news', 'news'] as const),
    ...(['tokens', 'cancel', 'link', 'lapse', 'restart', 'lose answer'] as const),
  ),
  hub: fc.constantFrom<HubName>('a', 'b'),
  code: fc.nat(2),
  ends: fc.nat(6),
});

/** The database and the portal of a site. */
class Site {
  readonly scheduler: fc.Scheduler;
  readonly answers: readonly ('granted' | 'refused' | 'ambiguous')[];
  row = { pairing: PAIRING as Pairing, owner: 'a', revision: 1, hasLapsed: false };
  grant: Grant | null = null;
  /** The access tokens of the stored grants, those that the portal has issued, and those that were revoked. */
  readonly stored = new Set<string>();
  readonly issued: { readonly token: string; readonly hub: Hub }[] = [];
  readonly revoked = new Set<string>();
  /** How often each code was sent. */
  readonly sent = new Map<string, number>();
  uptime = 1000;

  constructor(scheduler: fc.Scheduler, answers: readonly ('granted' | 'refused' | 'ambiguous')[]) {
    this.scheduler = scheduler;
    this.answers = answers;
  }

  now(): Instant {
    return instantAt(this.uptime);
  }

  async end(): Promise<void> {
    await this.scheduler.schedule(Promise.resolve());
  }

  answer(hub: Hub, code: string): TokenOutcome {
    const times = (this.sent.get(code) ?? 0) + 1;
    this.sent.set(code, times);
    const answer = this.answers[this.issued.length % this.answers.length];
    if (answer === 'ambiguous') return { kind: 'ambiguous', detail: 'HTTP 500' };
    if (answer === 'refused') return { kind: 'refused', detail: 'says invalid_grant', portalTime: null };
    return { kind: 'granted', tokens: this.issue(hub), portalTime: null };
  }

  issue(hub: Hub): TokenResponse {
    const token = `token-${this.issued.length}`;
    this.issued.push({ token, hub });
    const [accessToken, refreshToken] = [new Secret(token), new Secret(token)];
    return { accessToken, refreshToken, scope: null, lifetime: HOUR };
  }
}

/** One run of a hub. */
class Hub {
  readonly name: HubName;
  readonly runner: PairingRunner;
  readonly #site: Site;
  isDead = false;
  /** Whether nothing can be written. */
  cannotWrite = false;
  /** Whether the answer to the next write is lost, although it is committed. */
  losesAnswer = false;
  hasLostAnswer = false;
  held: Grant | null = null;
  saveLate: (() => Promise<boolean>) | null = null;
  #known = 0;

  constructor(site: Site, name: HubName) {
    this.#site = site;
    this.name = name;
    const work = () =>
      new Promise((resolve) => {
        this.runner.signal.addEventListener('abort', resolve);
        if (this.runner.signal.aborted) resolve(undefined);
      });
    this.runner = new PairingRunner(this.#context(), site.row.pairing, work);
  }

  /** Reads what is stored, as a hub does when it starts, and runs the pairing if it is its own. */
  load(): Promise<void> {
    return this.runner.exclusively(async () => {
      const stored = await this.#take(false);
      if (stored !== null) this.runner.own(stored);
      else this.runner.follow(await this.#read());
    });
  }

  news(): Promise<void> {
    return this.runner.exclusively(async () => {
      const stored = await this.#read();
      if (!this.runner.isOwned || this.#site.row.owner !== this.name) this.runner.follow(stored);
    });
  }

  #context(): PairingContext {
    const site = this.#site;
    const sleep = async (ms: number) => {
      await site.end();
      site.uptime += Math.min(ms, 1000);
    };
    const portal = {
      prepareTokenRequest: async () => {
        await this.#turn();
        return null;
      },
      exchangeCode: async (_: unknown, { code }: { readonly code: Secret }) => {
        const outcome = site.answer(this, code.reveal());
        await this.#turn();
        return outcome;
      },
    };
    return {
      environment: {
        clock: { now: () => site.now() },
        timers: { sleep, after: () => () => undefined },
        random: { fraction: () => 0.5 },
        log: logTo(() => undefined),
        emit: () => undefined,
      },
      store: {
        pairings: {
          all: async () => [await this.#read()],
          take: (_: string, urgent: boolean) => this.#take(urgent),
          save: (pairing: Pairing) => this.#save(pairing),
        },
        saveLogin: (_: string, decide: Parameters<Store['saveLogin']>[1]) => this.#end(decide),
        grants: {
          get: async () => {
            await this.#turn();
            return site.grant && { grant: site.grant, attempt: null };
          },
        },
      },
      grants: {
        get: () => (this.held === null ? undefined : { grant: this.held }),
        getSuspended: () => undefined,
        replace: (grant: Grant, save: (() => Promise<boolean>) | null = null) => {
          this.held = grant;
          this.saveLate = save;
        },
        duringLogin: (_: string, work: () => Promise<void>) => work(),
        revoke: async (_: string, __: unknown, { accessToken }: { readonly accessToken: Secret }) => {
          // As `Grants.revoke`: it could end the other login, which is of the same account.
          if (this.held === null) site.revoked.add(accessToken.reveal());
        },
      },
      referenceClock: { timeAt: () => null },
      times: {},
      nameOf: () => 'wallbox',
      portalOf: () => ({ portal, identity: CONFIGURED }),
    } as unknown as PairingContext;
  }

  /** What is under way at a hub that has died never ends. */
  async #turn(): Promise<void> {
    await this.#site.end();
    if (this.isDead) await new Promise(() => undefined);
  }

  async #read(): Promise<Pairing> {
    await this.#turn();
    const { pairing, revision } = this.#site.row;
    this.#known = revision;
    return pairing;
  }

  async #take(urgent: boolean): Promise<Pairing | null> {
    await this.#turn();
    const { row } = this.#site;
    const isFree = row.owner === this.name || row.hasLapsed || (urgent && row.pairing.step.kind !== 'exchanging');
    if (!isFree) return null;
    this.#write(row.pairing);
    await this.#turn();
    return row.pairing;
  }

  async #save(pairing: Pairing): Promise<boolean> {
    await this.#turn();
    if (this.cannotWrite) throw new Error('the database is away');
    const { row } = this.#site;
    if (row.owner !== this.name || row.revision !== this.#known) return false;
    this.#write(pairing);
    return this.#confirm();
  }

  async #end(decide: Parameters<Store['saveLogin']>[1]): Promise<Grant | null> {
    await this.#turn();
    if (this.cannotWrite) throw new Error('the database is away');
    const { row, grant: stored } = this.#site;
    const end = decide({ generation: stored?.generation ?? 0, grant: stored });
    if (end === null) return null;
    const { grant, pairing } = end;
    if (grant !== null) {
      this.#site.grant = grant;
      this.#site.stored.add(grant.accessToken.reveal());
    }
    const isOwn = row.owner === this.name && row.revision === this.#known;
    if (pairing !== null && (isOwn || row.pairing.step.kind !== 'ended')) this.#write(pairing);
    await this.#confirm();
    return grant;
  }

  #write(pairing: Pairing): void {
    const revision = this.#site.row.revision + 1;
    this.#site.row = { pairing, owner: this.name, revision, hasLapsed: false };
    this.#known = revision;
  }

  async #confirm(): Promise<boolean> {
    await this.#turn();
    if (!this.losesAnswer) return true;
    [this.losesAnswer, this.hasLostAnswer] = [false, true];
    throw new Error('the answer of the database was lost');
  }
}

/** Ends what is under way, and what follows from it. */
async function endMost(scheduler: fc.Scheduler): Promise<void> {
  for (let turn = 0; turn < 100; turn++) {
    await immediate();
    if (scheduler.count() > 0) await scheduler.waitOne();
  }
}

test('a failure that belongs to a step that is over does not end the exchange of a code that waits before it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), async (scheduler) => {
      const site = new Site(scheduler, ['granted']);
      const hub = new Hub(site, 'a');
      const { runner } = hub;
      const drain = () => endMost(scheduler);
      await Promise.all([hub.load(), drain()]);
      const { signal } = runner;
      const response = { code: new Secret('code'), issuer: null };
      await Promise.all([
        runner.dispatch({ kind: 'code', hash: 'hash of the code', response }),
        runner.dispatch({ kind: 'failed', reason: 'portal_rejected' }, signal),
        drain(),
      ]);
      await runner.whenIdle();
      expect(runner.pairing.step).toMatchObject({ kind: 'ended', result: { kind: 'paired' } });
    }),
    { numRuns: 20 },
  );
});

test('the end of a pairing that could not be written is written later, so that no other hub goes on with it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), async (scheduler) => {
      const site = new Site(scheduler, ['granted']);
      const hub = new Hub(site, 'a');
      const drain = () => endMost(scheduler);
      await Promise.all([hub.load(), drain()]);
      hub.cannotWrite = true;
      await Promise.all([hub.runner.fail('cancelled'), drain()]);
      expect([hub.runner.pairing.step.kind, site.row.pairing.step.kind]).toEqual(['ended', 'waiting']);
      hub.cannotWrite = false;
      await Promise.all([hub.runner.catchUp(), drain()]);
      expect(site.row.pairing.step.kind).toBe('ended');
    }),
    { numRuns: 5 },
  );
});

test('the end of a login that could not be stored is written with its grant, and not without', async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), async (scheduler) => {
      const site = new Site(scheduler, ['granted']);
      const hub = new Hub(site, 'a');
      const drain = () => endMost(scheduler);
      await Promise.all([hub.load(), drain()]);
      hub.cannotWrite = true;
      const link = { ...DEVICE_LINK, deviceCode: new Secret('device-code') };
      await Promise.all([hub.runner.request({ kind: 'link', link }), drain()]);
      await Promise.all([hub.runner.acceptTokens(link, site.issue(hub), site.now()), drain()]);
      hub.cannotWrite = false;
      await Promise.all([hub.runner.catchUp(), drain()]);
      expect([hub.runner.pairing.step.kind, site.row.pairing.step.kind, site.grant]).toEqual([
        'ended',
        'waiting',
        null,
      ]);
      await Promise.all([hub.saveLate?.(), drain()]);
      expect([site.row.pairing.step.kind, site.stored.size]).toEqual(['ended', 1]);
    }),
    { numRuns: 5 },
  );
});

test('in every order of events at two hubs each code is sent once, no token gets lost, and both hubs agree', async () => {
  const answers = fc.array(fc.constantFrom('granted', 'granted', 'refused', 'ambiguous'), { minLength: 1 });
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      answers,
      fc.array(action, { maxLength: 12 }),
      async (scheduler, given, actions) => {
        const site = new Site(scheduler, given);
        const hubs = { a: new Hub(site, 'a'), b: new Hub(site, 'b') };
        const all = new Set(Object.values(hubs));
        const drain = async (count: number) => {
          for (let turn = 0; turn < count; turn++) {
            // Everything that follows from the last one has begun.
            await immediate();
            if (scheduler.count() === 0) return;
            await scheduler.waitOne();
          }
        };
        const ended = (work: Promise<unknown>) => void work.catch(() => undefined);
        for (const hub of all) ended(hub.load());
        await drain(20);
        for (const { what, hub: name, code, ends } of actions) {
          const hub = hubs[name];
          if (what === 'code') ended(hub.runner.submitCode({ code: new Secret(`code-${code}`), issuer: null }, null));
          if (what === 'tokens') {
            const link = { ...DEVICE_LINK, deviceCode: new Secret(`device-code-${site.issued.length}`) };
            ended(hub.runner.acceptTokens(link, site.issue(hub), site.now()));
          }
          if (what === 'news') ended(hub.news());
          if (what === 'cancel') ended(hub.runner.fail('cancelled'));
          if (what === 'link') ended(hub.runner.request({ kind: 'link', link: { ...SAMPLE_LINK } }));
          if (what === 'lose answer') hub.losesAnswer = true;
          if (what === 'lapse') {
            site.row.hasLapsed = true;
            ended(hub.runner.claimIfLapsed());
          }
          if (what === 'restart') {
            hub.isDead = true;
            hubs[name] = new Hub(site, name);
            all.add(hubs[name]);
            ended(hubs[name].load());
          }
          await drain(ends);
        }
        await drain(1000);
        for (const hub of Object.values(hubs)) if (hub.saveLate !== null) ended(hub.saveLate());
        await drain(1000);
        for (const hub of Object.values(hubs)) ended(hub.news());
        await drain(1000);
        expect(scheduler.count()).toBe(0);
        expect([...site.sent.values()].filter((times) => times > 1)).toEqual([]);
        const lost = site.issued.filter(({ token, hub }) => {
          const isKept = site.stored.has(token) || site.revoked.has(token) || hub.held?.accessToken.reveal() === token;
          return !isKept && !hub.isDead && hub.held === null;
        });
        expect(lost.map(({ token }) => token)).toEqual([]);
        // What a hub could not learn is ahead of the database until its next write.
        if ([...all].some(({ hasLostAnswer }) => hasLostAnswer)) return;
        const [here, there] = [hubs.a, hubs.b].map(({ runner }) => runner.pairing.step.kind);
        expect([here, there]).toEqual([site.row.pairing.step.kind, here]);
      },
    ),
    { numRuns: 3000 },
  );
});
