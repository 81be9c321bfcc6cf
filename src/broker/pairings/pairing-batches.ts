import type { Appliance } from '../../core/appliances/appliance.ts';
import { messageOf } from '../../core/failure.ts';
import { isInstallerInitiated, isPairedByCode, type Pairing, timeLeft } from '../../core/pairings/pairing.ts';
import type {
  BatchAccount,
  BatchForBrowser,
  BatchLoginLinkResult,
  PairingBatch,
  SkippedAppliance,
} from '../../core/pairings/pairing-batch.ts';
import { Secret } from '../../core/secret.ts';
import { type RateLimit, TokenBuckets } from '../../system/limits/token-bucket.ts';
import { sha256 } from '../../system/secret-hash.ts';
import type { Appliances } from '../appliances/appliances.ts';
import type { Environment } from '../environment.ts';
import type { PairingRun } from './pairing-run.ts';
import type { Pairings } from './pairings.ts';

/** So long after the end of its pairing's time the nonce of one tells and begins nothing of others, in ms: browsers keep addresses. */
const NONCE_GRACE_MS = 3_600_000;
/**
 * Pairings that browsers on their way back from the portal begin, after some that came to nothing: each costs the portal a
 * request and the hub some writes.
 */
const BROWSER_START_LIMIT: RateLimit = { burst: 30, interval: 20_000 };
/** Bytes of a browser's pass: 128 bits. */
const PASS_BYTES = 16;
/** Rounds whose passes are remembered, and passes of one round; of more the oldest is forgotten. */
const MAX_BATCHES = 20;
const MAX_PASSES = 10;

/** What rounds work with. */
export interface PairingBatchContext {
  readonly environment: Environment;
  readonly appliances: Appliances;
  readonly pairings: Pairings;
  /** Whether only a person's login can give the appliance a grant that it can go on with. */
  needsPairing(appliance: Appliance): boolean;
  /** With which account of its portal an appliance is connected; null if the portal does not tell. */
  accountOf(appliance: Appliance): string | null;
}

/**
 * Rounds of pairings: all appliances that need one, one after the other. Where a round stands is in its pairings alone, each
 * of which has its mark, so that it outlives the hub. When one has ended well the next is begun, and its link is there
 * when a person wants to go on; after one that has not, a person says how.
 */
export class PairingBatches {
  readonly #context: PairingBatchContext;
  readonly #browserStarts = new TokenBuckets();
  /**
   * The hashes of the passes that were given out, by round. They live in memory alone: after a restart the hub's page goes on.
   */
  readonly #passes = new Map<string, string[]>();
  /** One step after the other, so that two who go on at the same time get the same pairing. */
  #queue: Promise<unknown> = Promise.resolve();

  constructor(context: PairingBatchContext) {
    this.#context = context;
  }

  /** Takes up the rounds that the last run left; to be called when the pairings are loaded. */
  resume(): void {
    for (const run of this.#context.pairings.filter(
      ({ isOpen: open, pairing }) => open && pairing.batch !== undefined,
    )) {
      this.#continueAfter(run);
    }
  }

  /**
   * Begins a round with the first appliance that needs pairing; where one is under way, that is the one.
   * @throws Failure as `Pairings.begin`
   */
  begin(): Promise<PairingBatch> {
    return this.#serialize(async () => {
      const open = this.#context.pairings.find((run) => run.isOpen && run.pairing.batch !== undefined);
      const id = open?.pairing.batch ?? this.#context.environment.random.uuid();
      if (open === undefined) await this.#beginNext(id);
      return this.view(id);
    });
  }

  /**
   * Begins the pairing of the round's next appliance, unless one of the round is open already.
   * @throws Failure as `Pairings.begin`
   */
  next(id: string): Promise<PairingBatch> {
    return this.#serialize(async () => {
      if (this.#findOpen(id) === undefined) await this.#beginNext(id);
      return this.view(id);
    });
  }

  /**
   * Another pairing of the same appliance, in the same round if it was in one.
   * @throws Failure as `Pairings.begin`
   */
  async retry(appliance: Appliance, { batch: round }: Pairing): Promise<PairingRun> {
    const run = await this.#context.pairings.begin(appliance, round === undefined ? {} : { batch: round });
    if (round !== undefined) this.#continueAfter(run);
    return run;
  }

  /** How a round stands. Of one that nobody has begun: which appliances are connected. */
  view(id: string): PairingBatch {
    const { appliances, needsPairing } = this.#context;
    const connected: string[] = [];
    const skipped: SkippedAppliance[] = [];
    const open = this.#findOpen(id);
    for (const appliance of appliances.list()) {
      const { name } = appliance;
      if (appliance.waitingSince !== null) skipped.push({ name, pairing: null, reason: 'waiting_for_approval' });
      else if (!needsPairing(appliance)) connected.push(name);
      else {
        const tried = this.#findAttempt(id, appliance);
        const result = tried?.pairing.step.kind === 'ended' ? tried.pairing.step.result : null;
        const reason = result?.kind === 'failed' ? result.reason : 'not_begun';
        skipped.push({ name, pairing: tried?.pairing.id ?? null, reason });
      }
    }
    const current = open && appliances.byId(open.pairing.appliance);
    return {
      id,
      current: open && current ? { pairing: open.pairing.id, appliance: current.name } : null,
      next: this.#findNext(id)?.name ?? null,
      connected,
      skipped: skipped.filter(({ name }) => name !== current?.name),
      differentAccounts: this.#differentAccounts(id),
    };
  }

  /**
   * The round that the pairing of a nonce is part of, for a browser that has come back from the portal. The nonce is known to
   * everybody who saw the link, so only a browser that brought the code by which the pairing ended well sees how the round stands.
   * @param code the one that it has just brought; null for none
   * @param pass what it was given before; null for none
   * @returns null if the pairing is part of no round, or the round is long over
   */
  forBrowser(nonce: string, code: Secret | null, pass: string | null): BatchForBrowser | null {
    const run = this.#findByNonce(nonce);
    const id = run?.pairing.batch;
    if (run === undefined || id === undefined || this.#isExpired(run)) return null;
    if (this.#isValidPass(id, pass)) return { id, batch: this.view(id), batchToken: null };
    if (code === null || !isPairedByCode(run.pairing, sha256(code.reveal())))
      return { id, batch: null, batchToken: null };
    return { id, batch: this.view(id), batchToken: this.#issuePass(id) };
  }

  /**
   * Takes a browser that has brought an accepted code of a round on to the next appliance's login, within the time that a
   * person waits; a pairing that came to nothing is gone past, or tried again.
   * @param nonce of one of the round's pairings
   * @param pass what the browser was given by {@link forBrowser}; null for none
   * @throws Failure as `Pairings.begin`
   */
  async continueInBrowser(nonce: string, again: boolean, pass: string | null): Promise<BatchLoginLinkResult> {
    const run = this.#findByNonce(nonce);
    const round = run?.pairing.batch;
    if (run === undefined || round === undefined || this.#isExpired(run)) return { kind: 'over' };
    if (!this.#isValidPass(round, pass)) return { kind: 'not_proved', batch: round };
    const appliance = this.#context.appliances.byId(run.pairing.appliance);
    if (again && appliance !== undefined)
      return this.#openLinkOf(await this.#serialize(() => this.#retryInBrowser(appliance, run)));
    await this.#serialize(async () => {
      const isDue = this.#findOpen(round) === undefined && this.#findNext(round) !== undefined;
      if (isDue && this.#takeStartPermit()) await this.#beginNext(round);
    });
    return this.#openLinkOf(this.#findOpen(round));
  }

  /** Two who try again at the same time get the same pairing; one that was begun since is the one. */
  async #retryInBrowser(appliance: Appliance, { pairing }: PairingRun): Promise<PairingRun | undefined> {
    if (!this.#context.needsPairing(appliance))
      return pairing.batch === undefined ? undefined : this.#findOpen(pairing.batch);
    const newest = this.#context.pairings.newestFor(appliance.id);
    if (newest?.isOpen === true && isInstallerInitiated(newest.pairing)) return newest;
    return this.#takeStartPermit() ? this.retry(appliance, pairing) : undefined;
  }

  #isValidPass(round: string, pass: string | null): boolean {
    return pass !== null && (this.#passes.get(round)?.includes(sha256(pass)) ?? false);
  }

  /** A pass is always a new one: what a browser brings may have been put there by somebody who then knows it. */
  #issuePass(round: string): Secret {
    const pass = this.#context.environment.random.token(PASS_BYTES);
    const hashes = [...(this.#passes.get(round) ?? []), sha256(pass)];
    this.#passes.set(round, hashes.slice(-MAX_PASSES));
    const [oldest] = this.#passes.keys();
    if (this.#passes.size > MAX_BATCHES && oldest !== undefined) this.#passes.delete(oldest);
    return new Secret(pass);
  }

  #takeStartPermit(): boolean {
    const bucket = this.#browserStarts.refill('', BROWSER_START_LIMIT, this.#context.environment.clock.now().uptime);
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  }

  async #openLinkOf(run: PairingRun | undefined): Promise<BatchLoginLinkResult> {
    if (run === undefined) return { kind: 'over' };
    const link = await run.openLink();
    const { id, step } = run.pairing;
    if (link.kind === 'link') return { ...link, pairing: id };
    // A link that is there may serve even where the portal gives no further one.
    if (step.kind === 'waiting') return { kind: 'link', pairing: id, authorizeUrl: step.link.authorizeUrl };
    const appliance = this.#context.appliances.byId(run.pairing.appliance)?.name;
    return link.kind === 'over' || appliance === undefined ? { kind: 'over' } : { kind: 'unreachable', appliance };
  }

  async #beginNext(id: string): Promise<void> {
    const appliance = this.#findNext(id);
    if (appliance === undefined) return;
    const run = await this.#context.pairings.begin(appliance, { joinOpen: true, batch: id });
    this.#context.environment.log.info('pairing_started', { appliance: appliance.name, by: 'person' });
    this.#continueAfter(run);
  }

  /** The first that needs pairing and was not tried in this round. */
  #findNext(id: string): Appliance | undefined {
    return this.#context.appliances
      .list()
      .find(
        (appliance) =>
          appliance.waitingSince === null &&
          this.#context.needsPairing(appliance) &&
          this.#findAttempt(id, appliance) === undefined,
      );
  }

  #differentAccounts(id: string): BatchAccount[] {
    const { appliances, accountOf } = this.#context;
    const known = appliances.list().flatMap((appliance) => {
      const tried = this.#findAttempt(id, appliance);
      const isPaired = tried?.pairing.step.kind === 'ended' && tried.pairing.step.result.kind === 'paired';
      const account = isPaired ? accountOf(appliance) : null;
      return account === null ? [] : [{ appliance: appliance.name, portal: appliance.portal, account }];
    });
    const differs = ({ portal, account }: (typeof known)[number]) =>
      known.some((other) => other.portal === portal && other.account !== account);
    return known.filter(differs).map(({ appliance, account }) => ({ appliance, account }));
  }

  #findAttempt(id: string, appliance: Appliance): PairingRun | undefined {
    return this.#context.pairings.find(({ pairing }) => pairing.batch === id && pairing.appliance === appliance.id);
  }

  #findOpen(id: string): PairingRun | undefined {
    return this.#context.pairings.find((run) => run.isOpen && run.pairing.batch === id);
  }

  #findByNonce(nonce: string): PairingRun | undefined {
    const hash = sha256(nonce);
    return this.#context.pairings.find(({ nonceHash }) => nonceHash === hash);
  }

  #isExpired({ pairing }: PairingRun): boolean {
    const late = { ...pairing, lifetime: pairing.lifetime + NONCE_GRACE_MS };
    return timeLeft(late, this.#context.environment.clock.now()) <= 0;
  }

  #continueAfter(run: PairingRun): void {
    const unwatch = run.watch(() => {
      const { step, batch: round } = run.pairing;
      if (step.kind !== 'ended') return;
      unwatch();
      if (step.result.kind !== 'paired' || round === undefined) return;
      this.next(round).catch((error: unknown) => {
        this.#context.environment.log.warn('pairing_start_failed', {
          error: messageOf(error),
        });
      });
    });
  }

  #serialize<T>(work: () => Promise<T>): Promise<T> {
    const step = this.#queue.then(work);
    this.#queue = step.catch(() => undefined);
    return step;
  }
}
