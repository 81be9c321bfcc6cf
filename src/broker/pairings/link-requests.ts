import { backoffDelay } from '../../core/grants/backoff.ts';
import type { LinkResult } from '../../core/lan-service.ts';
import { advance, type FailureReason, isInstallerInitiated, isStale, linkFor } from '../../core/pairings/pairing.ts';
import type { LinkOutcome, LoginLink } from '../../core/portal.ts';
import { withTimeout } from '../../system/clock.ts';
import { type RateLimit, TokenBuckets } from '../../system/limits/token-bucket.ts';
import type { ConnectedPortal } from '../ports.ts';
import type { PairingContext } from './pairing-context.ts';
import type { PairingProgress } from './pairing-progress.ts';

const BACKOFF = { base: 2000, cap: 30_000 };
/** A person who opens a link waits no longer than this for the portal, in ms; with all around it, that is under 10 s. */
const MAX_WAIT = 8000;
/** Who opens a link so soon again means the same one: a second click, or a page that is sent twice; in ms. */
const SAME_LINK = 5000;
/**
 * How often there is a fresh one: who comes back from a link that has run out gets another at once. Only the newest few are
 * polled, so that somebody who opens it again and again, or takes it over, must not push out the one that a person is just
 * logging in through.
 */
const FRESH_LINKS: RateLimit = { burst: 2, interval: 60_000 };
/** Whoever tries again sooner after the portal did not answer gets the same answer, in ms. */
const SAME_FAILURE = 2000;

/** How one pairing gets its links of the portal. */
export class LinkRequests {
  readonly #context: PairingContext;
  readonly #progress: PairingProgress;
  readonly #fresh = new TokenBuckets();
  #underWay: { readonly signal: AbortSignal; readonly result: Promise<LinkResult> } | null = null;
  /** The result that serves until then, on the boot clock in ms. */
  #last: { readonly result: LinkResult; readonly until: number; readonly link: LoginLink | null } | null = null;
  /** Where the portal would bring no code when it was asked for a link beside those at hand. */
  #refusedFor: string | null = null;

  constructor(context: PairingContext, progress: PairingProgress) {
    this.#context = context;
    this.#progress = progress;
  }

  /** Asks once. @param failures how often that has failed in a row. @returns whether the portal answered */
  async ask(failures: number): Promise<boolean> {
    const { signal, askedDelay } = this.#progress;
    const backoff = failures === 0 ? 0 : backoffDelay(BACKOFF, failures, this.#context.environment.random.fraction());
    if (!(await this.#progress.pause(Math.max(backoff, askedDelay), signal))) return true;
    return (await this.#share(signal)).kind !== 'unreachable';
  }

  /**
   * A fresh link for a person who opens the pairing: the portal's own may end long before the pairing does. All who come
   * at the same time, or shortly after one another, get the same.
   */
  async open(): Promise<LinkResult> {
    const serving = this.#serving;
    if (this.#mayOpen && serving !== null) return serving;
    let result: LinkResult = { kind: 'unreachable' };
    const opened = this.#open().then((its) => {
      result = its;
    });
    await withTimeout(opened, MAX_WAIT, this.#context.environment.timers);
    return result;
  }

  /** Whether the hub has moved since, so that an installer's link leads a person to where it no longer is. */
  get renewalWanted(): boolean {
    const { pairing, redirect } = this.#progress;
    if (pairing.step.kind !== 'waiting' || !isInstallerInitiated(pairing) || redirect === this.#refusedFor)
      return false;
    const link = linkFor(pairing.step, redirect);
    return link !== undefined && isStale(link, redirect);
  }

  /**
   * Asks for a link that leads to where the hub is now, beside those at hand. Where the portal has something against it, they
   * serve on: polling brings their code all the same. @returns whether the portal answered
   */
  async renew(): Promise<boolean> {
    return (await this.#share(this.#progress.signal, 'beside')).kind !== 'unreachable';
  }

  /** Whether the newest link is the one that whoever opens the pairing now would get. */
  get linkServes(): boolean {
    return this.#serving?.kind === 'link';
  }

  /** A login came through the newest link, so that it can't serve once more. */
  spend(): void {
    this.#last = null;
  }

  /** Another step may come between, and the pairing may be opened all the same: an installer has taken it over. */
  async #open(): Promise<LinkResult> {
    for (let result: LinkResult = { kind: 'over' }; ; ) {
      const { signal } = this.#progress;
      if (!this.#mayOpen) return result;
      result = await this.#share(signal);
      if (result.kind !== 'over' || !signal.aborted) return result;
    }
  }

  /** All who want a link at the same step get it by one request. */
  #share(signal: AbortSignal, place: 'first' | 'beside' = 'first'): Promise<LinkResult> {
    if (this.#underWay?.signal === signal) return this.#underWay.result;
    const underWay = {
      signal,
      result: this.#request(place).finally(() => {
        if (this.#underWay === underWay) this.#underWay = null;
      }),
    };
    this.#underWay = underWay;
    return underWay.result;
  }

  get #serving(): LinkResult | null {
    const last = this.#last;
    if (last === null || this.#context.environment.clock.now().uptime >= last.until) return null;
    return last.link !== null && isStale(last.link, this.#progress.redirect) ? null : last.result;
  }

  get #mayOpen(): boolean {
    const { stopping, timeLeft, pairing } = this.#progress;
    return !stopping && timeLeft > 0 && (pairing.step.kind === 'asking' || pairing.step.kind === 'waiting');
  }

  /** @param place whether the link stands beside others, through which a person may log in all the same */
  async #request(place: 'first' | 'beside'): Promise<LinkResult> {
    const progress = this.#progress;
    const { signal, redirect } = progress;
    const found = this.#context.portalOf(progress.pairing.portal);
    if (found === undefined) {
      await progress.move({ kind: 'failed', reason: 'misconfigured' });
      return { kind: 'over' };
    }
    const outcome = await this.#outcome(found, signal);
    if (signal.aborted) return { kind: 'over' };
    // What the polls of the links at hand find out counts for more.
    if (place === 'first') progress.note(outcome.kind === 'unreachable' ? outcome : null);
    switch (outcome.kind) {
      case 'unreachable':
        return this.#remember({ kind: 'unreachable' }, Math.max(SAME_FAILURE, outcome.retryAfter ?? 0));
      case 'link':
        if (!(await this.#take(outcome.link))) return { kind: 'over' };
        return this.#remember(
          { kind: 'link', authorizeUrl: outcome.link.authorizeUrl },
          this.#untilNextLink(),
          outcome.link,
        );
      default:
        if (place === 'beside') {
          this.#refusedFor = redirect;
          progress.log.warn('login_link_rejected', { appliance: progress.name, detail: outcome.detail });
          return { kind: 'over' };
        }
        progress.log.warn('pairing_rejected', { appliance: progress.name, detail: outcome.detail });
        await progress.move({ kind: 'failed', reason: reasonOf(outcome) });
        return { kind: 'over' };
    }
  }

  /** Where the portal will not have the redirect address, polling alone brings the code. */
  async #outcome({ portal, redirectUrl }: ConnectedPortal, signal: AbortSignal): Promise<LinkOutcome<LoginLink>> {
    const address = redirectUrl(this.#progress.pairing.nonce);
    const redirect = redirectUrl('');
    const ask = async (to: string | null): Promise<LinkOutcome<LoginLink>> => {
      const outcome = await portal.requestLink(to, signal);
      this.#context.portalClock.learn(outcome.portalTime);
      if (outcome.kind !== 'link') return outcome;
      return { ...outcome, link: { ...outcome.link, redirect: to === null ? null : redirect } };
    };
    const outcome = await ask(address);
    if (outcome.kind !== 'rejected' || address === null || signal.aborted) return outcome;
    const polled = await ask(null);
    if (polled.kind === 'link') {
      this.#progress.log.info('redirect_address_rejected', { appliance: this.#progress.name, detail: outcome.detail });
    }
    return polled;
  }

  /**
   * Writes a link down before anybody sees it: after a power cut it is the one that a person logs in through.
   * @returns false where the pairing has moved on
   */
  async #take(link: LoginLink): Promise<boolean> {
    for (;;) {
      const before = this.#progress.pairing;
      const next = advance(before, { kind: 'link', link });
      if (next === before) return false;
      await this.#progress.saveIfPossible(next);
      // The codes of a device flow may have come to it meanwhile; a login does not want this link any more.
      const now = this.#progress.pairing;
      if (now.step.kind !== before.step.kind) return false;
      if (now !== before) continue;
      this.#progress.take(next);
      return true;
    }
  }

  /** Takes one of the fresh links. @returns milliseconds until the next */
  #untilNextLink(): number {
    const bucket = this.#fresh.filled('', FRESH_LINKS, this.#context.environment.clock.now().uptime);
    bucket.left = Math.max(0, bucket.left - 1);
    return Math.max(SAME_LINK, (1 - bucket.left) * FRESH_LINKS.interval);
  }

  #remember(result: LinkResult, ms: number, link: LoginLink | null = null): LinkResult {
    this.#last = { result, until: this.#context.environment.clock.now().uptime + ms, link };
    return result;
  }
}

function reasonOf(outcome: Extract<LinkOutcome, { kind: 'rejected' | 'foreign_origin' }>): FailureReason {
  if (outcome.kind === 'foreign_origin') return 'foreign_origin';
  return outcome.clientUnknown ? 'client_unknown' : 'portal_rejected';
}
