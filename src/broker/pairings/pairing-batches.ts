import type { Connection } from '../../core/connections/connection.ts';
import { messageOf } from '../../core/failure.ts';
import { isInstallerInitiated, isPairedByCode, type Pairing, timeLeft } from '../../core/pairings/pairing.ts';
import type {
  BatchAccount,
  BatchForBrowser,
  BatchLoginLinkResult,
  PairingBatch,
  SkippedConnection,
} from '../../core/pairings/pairing-batch.ts';
import { Secret } from '../../core/secret.ts';
import { type RateLimit, TokenBuckets } from '../../system/limits/token-buckets.ts';
import { sha256 } from '../../system/secret-hash.ts';
import { SerialQueue } from '../../system/serial-queue.ts';
import type { Appliances } from '../appliances/appliances.ts';
import type { Connections } from '../connections/connections.ts';
import type { Grants } from '../grants/grants.ts';
import type { Environment } from '../ports.ts';
import { toLinkResult } from './link-requests.ts';
import type { PairingRun } from './pairing-run.ts';
import type { Pairings } from './pairings.ts';

/**
 * Browsers keep addresses: this long after its pairing's lifetime a nonce no longer reveals or starts other pairings,
 * in ms.
 */
const NONCE_GRACE_MS = 3_600_000;
/**
 * Limits the pairings that browsers start on their way back from the portal after failed ones: each costs the portal a
 * request and the hub some writes.
 */
const BROWSER_START_LIMIT: RateLimit = { burst: 30, interval: 20_000 };
/** Bytes of a browser's batch token, the `batchToken` of {@link BatchForBrowser}: 128 bits. */
const BATCH_TOKEN_BYTES = 16;
/** The most batch tokens that are remembered; beyond that the oldest is dropped. */
const MAX_BATCH_TOKENS = 100;

/** What pairing batches work with. */
interface PairingBatchContext {
  readonly environment: Environment;
  readonly connections: Connections;
  readonly appliances: Pick<Appliances, 'waitForApproval'>;
  readonly grants: Pick<Grants, 'get' | 'needsPairing'>;
  readonly pairings: Pairings;
}

/**
 * Pairing batches: all connections that need pairing, one after the other. The state of a batch is only in its pairings,
 * each of which carries its id, so a batch survives restarts. When a pairing succeeds, the next one begins, and its
 * link is ready when the person continues. After a failure the person chooses how to continue.
 *
 * On a site, the hub where a batch was begun or continued last begins the next pairing; other hubs do that only if a
 * person continues there. They do not know the batch tokens of its browsers either.
 */
export class PairingBatches {
  readonly #context: PairingBatchContext;
  readonly #browserStarts = new TokenBuckets();
  /**
   * The batches of the issued batch tokens, by their hashes. They are only in memory: after a restart the batch continues
   * on the hub's page.
   */
  readonly #batchesByToken = new Map<string, string>();
  /** Serializes steps, so that two browsers that continue at the same time get the same pairing. */
  readonly #steps = new SerialQueue();

  constructor(context: PairingBatchContext) {
    this.#context = context;
  }

  /** Resumes the batches of the last run; call it when the pairings are loaded. */
  resume(): void {
    for (const run of this.#context.pairings.filter(
      ({ isOpen: open, runner, pairing }) => open && runner.isOwned && pairing.batch !== undefined,
    )) {
      this.#continueAfter(run);
    }
  }

  /**
   * Begins a batch with the first connection that needs pairing, or returns the batch that is under way.
   * @throws Failure as `Pairings.begin`
   */
  begin(user?: string): Promise<PairingBatch> {
    return this.#steps.run(() => {
      const open = this.#context.pairings.find((run) => run.isOpen && run.pairing.batch !== undefined);
      return this.#continue(open?.pairing.batch ?? this.#context.environment.random.uuid(), user);
    });
  }

  /**
   * Begins the pairing of the batch's next connection, unless one of the batch is open already.
   * @throws Failure as `Pairings.begin`
   */
  next(id: string, user?: string): Promise<PairingBatch> {
    return this.#steps.run(() => this.#continue(id, user));
  }

  /**
   * Begins another pairing of the same connection, in the same batch if it was in one.
   * @throws Failure as `Pairings.begin`
   */
  async retry(connection: Connection, { batch }: Pick<Pairing, 'batch'>, user?: string): Promise<PairingRun> {
    const run = await this.#context.pairings.begin(connection, { batch, user });
    if (batch !== undefined) this.#continueAfter(run);
    return run;
  }

  /** The state of a batch. For an unknown id it lists the paired connections and those left to pair. */
  view(id: string): PairingBatch {
    const { connections, appliances, grants } = this.#context;
    const connected: string[] = [];
    let connectedNow = 0;
    const skipped: SkippedConnection[] = [];
    const open = this.#findOpen(id);
    for (const connection of connections.list()) {
      const { name, damaged } = connection;
      if (damaged) continue;
      if (appliances.waitForApproval(connection.id))
        skipped.push({ name, pairing: null, reason: 'waiting_for_approval' });
      else if (!grants.needsPairing(connection)) {
        connected.push(name);
        if (this.#hasPaired(id, connection)) connectedNow += 1;
      } else {
        const attempt = this.#findAttempt(id, connection);
        const result = attempt?.pairing.step.kind === 'ended' ? attempt.pairing.step.result : null;
        const reason = result?.kind === 'failed' ? result.reason : 'not_begun';
        skipped.push({ name, pairing: attempt?.pairing.id ?? null, reason });
      }
    }
    const current = open && connections.byId(open.pairing.connection);
    return {
      id,
      titles: Object.fromEntries(connections.list().map(({ name, title }) => [name, title])),
      current: open && current ? { pairing: open.pairing.id, connection: current.name } : null,
      next: this.#findNext(id)?.name ?? null,
      connected,
      connectedNow,
      skipped: skipped.filter(({ name }) => name !== current?.name),
      differentAccounts: this.#differentAccounts(id),
    };
  }

  /**
   * The batch of the pairing with this nonce, for a browser that has come back from the portal. Everybody who saw the
   * link knows the nonce, so the state is only shown to a browser that brought the code with which the pairing
   * succeeded.
   * @param code the code that the browser has just brought; null for none
   * @param batchToken the token that the browser was issued before; null for none
   * @returns null if the pairing is in no batch, or the batch ended long ago
   */
  forBrowser(nonce: string, code: Secret | null, batchToken: string | null): BatchForBrowser | null {
    const run = this.#context.pairings.findByNonce(nonce);
    const id = run?.pairing.batch;
    if (run === undefined || id === undefined || this.#isExpired(run)) return null;
    if (this.#isValidToken(id, batchToken)) return { id, batch: this.view(id), batchToken: null };
    if (code === null || !isPairedByCode(run.pairing, sha256(code.reveal())))
      return { id, batch: null, batchToken: null };
    return { id, batch: this.view(id), batchToken: this.#issuePass(id) };
  }

  /**
   * Takes a browser that has brought an accepted code of a batch to the next connection's login, within the time that a
   * person waits. A failed pairing is skipped, or retried if `retry` is set.
   * @param nonce of one of the batch's pairings
   * @param batchToken the token that {@link forBrowser} issued to the browser; null for none
   * @throws Failure as `Pairings.begin`
   */
  async continueInBrowser(nonce: string, retry: boolean, batchToken: string | null): Promise<BatchLoginLinkResult> {
    const run = this.#context.pairings.findByNonce(nonce);
    const batch = run?.pairing.batch;
    if (run === undefined || batch === undefined || this.#isExpired(run)) return { kind: 'over' };
    if (!this.#isValidToken(batch, batchToken)) return { kind: 'not_proved', batch };
    const connection = this.#context.connections.byId(run.pairing.connection);
    if (retry && connection !== undefined)
      return this.#openLinkOf(await this.#steps.run(() => this.#retryInBrowser(connection, run)));
    await this.#steps.run(async () => {
      const isDue = this.#findOpen(batch) === undefined && this.#findNext(batch) !== undefined;
      if (isDue && this.#takeStartPermit()) await this.#beginNext(batch, run.pairing.user);
    });
    return this.#openLinkOf(this.#findOpen(batch));
  }

  /** Two retries at the same time get the same pairing; a pairing that was begun since is used. */
  async #retryInBrowser(connection: Connection, { pairing }: PairingRun): Promise<PairingRun | undefined> {
    if (!this.#context.grants.needsPairing(connection))
      return pairing.batch === undefined ? undefined : this.#findOpen(pairing.batch);
    const newest = this.#context.pairings.newestFor(connection.id);
    if (newest?.isOpen === true && isInstallerInitiated(newest.pairing)) return newest;
    return this.#takeStartPermit() ? this.retry(connection, pairing, pairing.user) : undefined;
  }

  #isValidToken(batch: string, batchToken: string | null): boolean {
    return batchToken !== null && this.#batchesByToken.get(sha256(batchToken)) === batch;
  }

  /** A batch token is always new: another person may have planted the one that a browser sends, and would then know it. */
  #issuePass(batch: string): Secret {
    const batchToken = this.#context.environment.random.token(BATCH_TOKEN_BYTES);
    this.#batchesByToken.set(sha256(batchToken), batch);
    const [oldest] = this.#batchesByToken.keys();
    if (this.#batchesByToken.size > MAX_BATCH_TOKENS && oldest !== undefined) this.#batchesByToken.delete(oldest);
    return new Secret(batchToken);
  }

  #takeStartPermit(): boolean {
    const now = this.#context.environment.clock.now().uptime;
    return this.#browserStarts.take('', BROWSER_START_LIMIT, now) === 0;
  }

  async #openLinkOf(run: PairingRun | undefined): Promise<BatchLoginLinkResult> {
    if (run === undefined) return { kind: 'over' };
    const link = await run.openLink();
    const { id, step } = run.pairing;
    if (link.kind === 'link') return { ...link, pairing: id };
    // An existing link may still work if the portal issues no further one.
    if (step.kind === 'waiting') return { ...toLinkResult(step.link), pairing: id };
    const connection = this.#context.connections.byId(run.pairing.connection)?.title;
    return link.kind === 'over' || connection === undefined ? { kind: 'over' } : { kind: 'unreachable', connection };
  }

  async #continue(id: string, user: string | undefined): Promise<PairingBatch> {
    if (this.#findOpen(id) === undefined) await this.#beginNext(id, user);
    return this.view(id);
  }

  async #beginNext(id: string, user: string | undefined): Promise<void> {
    const connection = this.#findNext(id);
    if (connection === undefined) return;
    const run = await this.#context.pairings.begin(connection, { joinOpen: true, batch: id, user });
    this.#continueAfter(run);
  }

  /** The first connection that needs pairing and was not tried in this batch. */
  #findNext(id: string): Connection | undefined {
    return this.#context.connections
      .list()
      .find(
        (connection) =>
          !connection.damaged &&
          !this.#context.appliances.waitForApproval(connection.id) &&
          this.#context.grants.needsPairing(connection) &&
          this.#findAttempt(id, connection) === undefined,
      );
  }

  #differentAccounts(id: string): BatchAccount[] {
    const { connections, grants } = this.#context;
    const known = connections.list().flatMap((connection) => {
      const account = this.#hasPaired(id, connection) ? grants.get(connection.id)?.grant.account : undefined;
      return account === undefined ? [] : [{ connection: connection.name, portal: connection.portal, account }];
    });
    const differs = ({ portal, account }: (typeof known)[number]) =>
      known.some((other) => other.portal === portal && other.account !== account);
    return known.filter(differs).map(({ connection, account }) => ({ connection, account }));
  }

  /** Whether the batch has connected a connection. */
  #hasPaired(id: string, connection: Connection): boolean {
    const step = this.#findAttempt(id, connection)?.pairing.step;
    return step?.kind === 'ended' && step.result.kind === 'paired';
  }

  #findAttempt(id: string, connection: Connection): PairingRun | undefined {
    return this.#context.pairings.find(({ pairing }) => pairing.batch === id && pairing.connection === connection.id);
  }

  #findOpen(id: string): PairingRun | undefined {
    return this.#context.pairings.find((run) => run.isOpen && run.pairing.batch === id);
  }

  #isExpired({ pairing }: PairingRun): boolean {
    const withGrace = { ...pairing, lifetime: pairing.lifetime + NONCE_GRACE_MS };
    return timeLeft(withGrace, this.#context.environment.clock.now()) <= 0;
  }

  #continueAfter(run: PairingRun): void {
    const unwatch = run.runner.watch(() => {
      const { step, batch } = run.pairing;
      if (step.kind !== 'ended') return;
      unwatch();
      if (step.result.kind !== 'paired' || batch === undefined) return;
      this.next(batch, run.pairing.user).catch((error: unknown) => {
        this.#context.environment.log.warn('pairing_start_failed', {
          error: messageOf(error),
        });
      });
    });
  }
}
