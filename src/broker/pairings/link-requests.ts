import { backoffDelay } from '../../core/grants/backoff.ts';
import type { LoginLinkResult } from '../../core/lan-service.ts';
import {
  advance,
  isInstallerInitiated,
  isStaleLink,
  type PairingFailureReason,
  preferredLink,
} from '../../core/pairings/pairing.ts';
import type { LoginLink, LoginLinkOutcome } from '../../core/portal.ts';
import { withTimeout } from '../../system/clock.ts';
import { type RateLimit, TokenBuckets } from '../../system/limits/token-bucket.ts';
import type { ConnectedPortal } from '../ports.ts';
import type { PairingContext } from './pairing-context.ts';
import type { PairingStateMachine } from './pairing-state-machine.ts';

const BACKOFF = { base: 2000, cap: 30_000 };
/** A person who opens a link waits no longer than this for the portal, in ms; with all around it, that is under 10 s. */
const MAX_WAIT = 8000;
/** Who opens a link so soon again means the same one: a second click, or a page that is sent twice; in ms. */
const LINK_REUSE_MS = 5000;
/**
 * How often there is a fresh one: who comes back from a link that has run out gets another at once. Only the newest few are
 * polled, so that somebody who opens it again and again, or takes it over, must not push out the one that a person is just
 * logging in through.
 */
const NEW_LINK_LIMIT: RateLimit = { burst: 2, interval: 60_000 };
/** Whoever tries again sooner after the portal did not answer gets the same answer, in ms. */
const FAILURE_REUSE_MS = 2000;

/** How one pairing gets its links of the portal. */
export class LinkRequests {
  readonly #context: PairingContext;
  readonly #state: PairingStateMachine;
  readonly #linkBuckets = new TokenBuckets();
  #inFlight: { readonly signal: AbortSignal; readonly result: Promise<LoginLinkResult> } | null = null;
  /** The result that serves until then, on the boot clock in ms. */
  #lastResult: { readonly result: LoginLinkResult; readonly until: number; readonly link: LoginLink | null } | null =
    null;
  /** Where the portal would bring no code when it was asked for a link beside those at hand. */
  #rejectedRedirect: string | null = null;

  constructor(context: PairingContext, state: PairingStateMachine) {
    this.#context = context;
    this.#state = state;
  }

  /** Asks once. @param failures how often that has failed in a row. @returns whether the portal answered */
  async requestOnce(failures: number): Promise<boolean> {
    const { signal, retryAfterMs: askedDelay } = this.#state;
    const backoff = failures === 0 ? 0 : backoffDelay(BACKOFF, failures, this.#context.environment.random.fraction());
    if (!(await this.#state.pause(Math.max(backoff, askedDelay), signal))) return true;
    return (await this.#requestShared(signal)).kind !== 'unreachable';
  }

  /**
   * A fresh link for a person who opens the pairing: the portal's own may end long before the pairing does. All who come
   * at the same time, or shortly after one another, get the same.
   */
  async open(): Promise<LoginLinkResult> {
    const serving = this.#reusableResult;
    if (this.#canOpen && serving !== null) return serving;
    let result: LoginLinkResult = { kind: 'unreachable' };
    const opened = this.#open().then((its) => {
      result = its;
    });
    await withTimeout(opened, MAX_WAIT, this.#context.environment.timers);
    return result;
  }

  /** Whether the hub has moved since, so that an installer's link leads a person to where it no longer is. */
  get needsRenewal(): boolean {
    const { pairing, redirect } = this.#state;
    if (pairing.step.kind !== 'waiting' || !isInstallerInitiated(pairing) || redirect === this.#rejectedRedirect)
      return false;
    const link = preferredLink(pairing.step, redirect);
    return link !== undefined && isStaleLink(link, redirect);
  }

  /**
   * Asks for a link that leads to where the hub is now, beside those at hand. Where the portal has something against it, they
   * serve on: polling brings their code all the same. @returns whether the portal answered
   */
  async renew(): Promise<boolean> {
    return (await this.#requestShared(this.#state.signal, 'beside')).kind !== 'unreachable';
  }

  /** Whether the newest link is the one that whoever opens the pairing now would get. */
  get hasUsableLink(): boolean {
    return this.#reusableResult?.kind === 'link';
  }

  /** A login came through the newest link, so that it can't serve once more. */
  invalidate(): void {
    this.#lastResult = null;
  }

  /** Another step may come between, and the pairing may be opened all the same: an installer has taken it over. */
  async #open(): Promise<LoginLinkResult> {
    for (let result: LoginLinkResult = { kind: 'over' }; ; ) {
      const { signal } = this.#state;
      if (!this.#canOpen) return result;
      result = await this.#requestShared(signal);
      if (result.kind !== 'over' || !signal.aborted) return result;
    }
  }

  /** All who want a link at the same step get it by one request. */
  #requestShared(signal: AbortSignal, place: 'first' | 'beside' = 'first'): Promise<LoginLinkResult> {
    if (this.#inFlight?.signal === signal) return this.#inFlight.result;
    const underWay = {
      signal,
      result: this.#request(place).finally(() => {
        if (this.#inFlight === underWay) this.#inFlight = null;
      }),
    };
    this.#inFlight = underWay;
    return underWay.result;
  }

  get #reusableResult(): LoginLinkResult | null {
    const last = this.#lastResult;
    if (last === null || this.#context.environment.clock.now().uptime >= last.until) return null;
    return last.link !== null && isStaleLink(last.link, this.#state.redirect) ? null : last.result;
  }

  get #canOpen(): boolean {
    const { stopping, timeLeft, pairing } = this.#state;
    return !stopping && timeLeft > 0 && (pairing.step.kind === 'asking' || pairing.step.kind === 'waiting');
  }

  /** @param place whether the link stands beside others, through which a person may log in all the same */
  async #request(place: 'first' | 'beside'): Promise<LoginLinkResult> {
    const progress = this.#state;
    const { signal, redirect } = progress;
    const found = this.#context.portalOf(progress.pairing.portal);
    if (found === undefined) {
      await progress.dispatch({ kind: 'failed', reason: 'misconfigured' });
      return { kind: 'over' };
    }
    const outcome = await this.#requestFromPortal(found, signal);
    if (signal.aborted) return { kind: 'over' };
    // What the polls of the links at hand find out counts for more.
    if (place === 'first') progress.recordReachability(outcome.kind === 'unreachable' ? outcome : null);
    switch (outcome.kind) {
      case 'unreachable':
        return this.#remember({ kind: 'unreachable' }, Math.max(FAILURE_REUSE_MS, outcome.retryAfter ?? 0));
      case 'link':
        if (!(await this.#saveLink(outcome.link))) return { kind: 'over' };
        return this.#remember(
          { kind: 'link', authorizeUrl: outcome.link.authorizeUrl },
          this.#takeLinkPermit(),
          outcome.link,
        );
      default:
        if (place === 'beside') {
          this.#rejectedRedirect = redirect;
          progress.log.warn('login_link_rejected', { appliance: progress.name, detail: outcome.detail });
          return { kind: 'over' };
        }
        progress.log.warn('pairing_rejected', { appliance: progress.name, detail: outcome.detail });
        await progress.dispatch({ kind: 'failed', reason: failureReason(outcome) });
        return { kind: 'over' };
    }
  }

  /** Where the portal will not have the redirect address, polling alone brings the code. */
  async #requestFromPortal(
    { portal, redirectUrl }: ConnectedPortal,
    signal: AbortSignal,
  ): Promise<LoginLinkOutcome<LoginLink>> {
    const address = redirectUrl(this.#state.pairing.nonce);
    const redirect = redirectUrl('');
    const ask = async (to: string | null): Promise<LoginLinkOutcome<LoginLink>> => {
      const outcome = await portal.requestLink(to, signal);
      this.#context.referenceClock.recordPortalTime(outcome.portalTime);
      if (outcome.kind !== 'link') return outcome;
      return { ...outcome, link: { ...outcome.link, redirect: to === null ? null : redirect } };
    };
    const outcome = await ask(address);
    if (outcome.kind !== 'rejected' || address === null || signal.aborted) return outcome;
    const polled = await ask(null);
    if (polled.kind === 'link') {
      this.#state.log.info('redirect_address_rejected', { appliance: this.#state.name, detail: outcome.detail });
    }
    return polled;
  }

  /**
   * Writes a link down before anybody sees it: after a power cut it is the one that a person logs in through.
   * @returns false where the pairing has moved on
   */
  async #saveLink(link: LoginLink): Promise<boolean> {
    for (;;) {
      const before = this.#state.pairing;
      const next = advance(before, { kind: 'link', link });
      if (next === before) return false;
      await this.#state.saveIfPossible(next);
      // The codes of a device flow may have come to it meanwhile; a login does not want this link any more.
      const now = this.#state.pairing;
      if (now.step.kind !== before.step.kind) return false;
      if (now !== before) continue;
      this.#state.setInMemory(next);
      return true;
    }
  }

  /** Takes one of the fresh links. @returns milliseconds until the next */
  #takeLinkPermit(): number {
    const bucket = this.#linkBuckets.refill('', NEW_LINK_LIMIT, this.#context.environment.clock.now().uptime);
    bucket.tokens = Math.max(0, bucket.tokens - 1);
    return Math.max(LINK_REUSE_MS, (1 - bucket.tokens) * NEW_LINK_LIMIT.interval);
  }

  #remember(result: LoginLinkResult, ms: number, link: LoginLink | null = null): LoginLinkResult {
    this.#lastResult = { result, until: this.#context.environment.clock.now().uptime + ms, link };
    return result;
  }
}

function failureReason(
  outcome: Extract<LoginLinkOutcome, { kind: 'rejected' | 'foreign_origin' }>,
): PairingFailureReason {
  if (outcome.kind === 'foreign_origin') return 'foreign_origin';
  return outcome.clientUnknown ? 'client_unknown' : 'portal_rejected';
}
