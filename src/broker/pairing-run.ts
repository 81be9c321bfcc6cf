import { messageOf } from '../core/failure.ts';
import type { LinkResult } from '../core/lan-service.ts';
import { type FailureReason, type Pairing, resumed } from '../core/pairing.ts';
import type { Link } from '../core/portal.ts';
import type { Secret } from '../core/secret.ts';
import { sha256 } from '../system/compare.ts';
import { pollForCode } from './code-polling.ts';
import { LinkRequests } from './link-requests.ts';
import type { PairingContext } from './pairing-context.ts';
import { PairingExchange } from './pairing-exchange.ts';
import { PairingProgress } from './pairing-progress.ts';

/**
 * One pairing at work: asks for the link, polls for the code while the redirect may bring it too, and exchanges the
 * first code that comes, once. In a device flow the portal is asked for nothing until a person opens the link.
 */
export class PairingRun implements AsyncDisposable {
  /** SHA-256 of the pairing's nonce, base64url, to find it by. */
  readonly nonceHash: string;
  readonly #context: PairingContext;
  readonly #progress: PairingProgress;
  readonly #links: LinkRequests;
  readonly #exchange: PairingExchange;
  #done: Promise<void> = Promise.resolve();

  private constructor(context: PairingContext, pairing: Pairing) {
    this.nonceHash = sha256(pairing.nonce);
    this.#context = context;
    this.#progress = new PairingProgress(context, pairing);
    this.#links = new LinkRequests(context, this.#progress);
    this.#exchange = new PairingExchange(context, this.#progress);
  }

  /** Takes a pairing up where it stands; an ended one only remembers its result. */
  static resume(context: PairingContext, pairing: Pairing): PairingRun {
    const run = new PairingRun(context, resumed(pairing));
    run.#done = run.#goOn(pairing).catch(async (error: unknown) => {
      run.#progress.log('error', 'pairing failed unexpectedly', { error: messageOf(error) });
      await run.#progress.move({ kind: 'failed', reason: 'cancelled' });
    });
    return run;
  }

  get pairing(): Pairing {
    return this.#progress.pairing;
  }

  /** Whether it has not ended yet. */
  get open(): boolean {
    return this.pairing.step.kind !== 'ended';
  }

  /** Why there is no link or code just now, in words; null while the portal answers. */
  get trouble(): string | null {
    return this.#progress.trouble;
  }

  /** Milliseconds until the pairing expires. */
  get timeLeft(): number {
    return this.#progress.timeLeft;
  }

  /** The hub's clock was set: where the portal's certificate did not fit it, the portal is asked again at once. */
  clockSet(): void {
    this.#progress.clockSet();
  }

  /** Calls `watcher` after every change, until the function it returns is called. */
  watch(watcher: () => void): () => void {
    return this.#progress.watch(watcher);
  }

  /** A fresh link for a person who opens a device flow's page, within the time that one waits. */
  openLink(): Promise<LinkResult> {
    return this.#links.open();
  }

  /**
   * Takes a code, however it came. Resolves when its exchange has ended, or at once where another is under way.
   * @param link the one that it came through, where that is known
   */
  async takeCode(code: Secret, link: Link | null = null): Promise<void> {
    this.#links.spend();
    await this.#exchange.take(code, link);
  }

  /** Ends the pairing, unless it has ended already, or ends just now with its grant being put in place. */
  async fail(reason: FailureReason): Promise<void> {
    await this.#exchange.concluded();
    await this.#progress.move({ kind: 'failed', reason });
  }

  /** Stops, leaving the pairing open; waits for an exchange that was sent. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#progress.stop();
    await Promise.all([this.#done, this.#exchange.settled()]);
  }

  /** @param before as the last run left it */
  async #goOn(before: Pairing): Promise<void> {
    if (before.step.kind === 'exchanging') {
      const since = new Date(before.step.since.wall).toISOString();
      this.#progress.log('warn', 'code exchange was cut short', { since });
      // Told once, however often the hub is started before the portal gives a fresh link.
      await this.#progress.saveIfPossible(this.pairing);
    }
    await this.#work();
  }

  async #work(): Promise<void> {
    for (let failures = 0; !this.#progress.stopping; ) {
      switch (this.pairing.step.kind) {
        case 'asking':
          if (this.pairing.device !== null) await this.#progress.pause(Number.POSITIVE_INFINITY, this.#progress.signal);
          else failures = (await this.#links.ask(failures)) ? 0 : failures + 1;
          break;
        case 'waiting':
          await pollForCode(this.#context, this.#progress, (code, link) => this.takeCode(code, link));
          break;
        case 'exchanging':
          await this.#exchange.settled();
          break;
        case 'ended':
          return;
      }
    }
  }
}
