import { backoffDelay } from '../../core/grants/backoff.ts';
import type { LoginLinkResult } from '../../core/lan-service.ts';
import {
  isInstallerInitiated,
  isStaleLink,
  type PairingFailureReason,
  preferredLink,
} from '../../core/pairings/pairing.ts';
import { type LoginLink, toShownLink } from '../../core/portals/login-link.ts';
import type { LoginLinkOutcome } from '../../core/portals/portal.ts';
import { withTimeout } from '../../system/clock.ts';
import { type RateLimit, TokenBuckets } from '../../system/limits/token-buckets.ts';
import type { PairingContext } from './login-completion.ts';
import type { PairingRunner } from './pairing-runner.ts';

const BACKOFF = { base: 2000, cap: 30_000 };
/**
 * A person who opens a link waits at most this long for the portal, in ms, so that the whole response takes less than
 * 10 s.
 */
const MAX_LINK_WAIT = 8000;
/**
 * Opening a link again within this time, in ms, returns the same link: it is a second click, or a page that is sent
 * twice.
 */
const LINK_REUSE_MS = 5000;
/**
 * Limits fresh links; a person who returns from an expired link gets another one at once. Only the newest few links are
 * polled, so repeated opening or taking over must not push out the link that a person is using to log in.
 */
const NEW_LINK_LIMIT: RateLimit = { burst: 2, interval: 60_000 };
/** If the portal did not respond, requests within this time get the same result, in ms. */
const FAILURE_REUSE_MS = 2000;
/** Address changes cause fresh links at most this often, in ms. */
const MIN_RENEWAL_INTERVAL_MS = 10_000;

/** The result that is reused until `until`, on the boot clock in ms, and how many codes had come before it. */
interface LastResult {
  readonly result: LoginLinkResult;
  readonly until: number;
  readonly link: LoginLink | null;
  readonly codes: number;
}

/** Requests the portal's links for one pairing. */
export class LinkRequests {
  readonly #context: PairingContext;
  readonly #state: PairingRunner;
  readonly #linkBuckets = new TokenBuckets();
  #inFlight: { readonly signal: AbortSignal; readonly result: Promise<LoginLinkResult> } | null = null;
  #lastResult: LastResult | null = null;
  /** The redirect address that the portal rejected when it was asked for an additional link. */
  #rejectedRedirect: string | null = null;
  /** When a link was last renewed, on the boot clock in ms. */
  #lastRenewalAt = Number.NEGATIVE_INFINITY;
  /** Ends the wait of a renewal. */
  #addressChange = new AbortController();

  constructor(context: PairingContext, state: PairingRunner) {
    this.#context = context;
    this.#state = state;
  }

  /**
   * Requests a link until there is one and the pairing changes its step. Without an installer it waits until a person
   * opens the pairing.
   */
  async requestFirst(): Promise<void> {
    const { random } = this.#context.environment;
    const { signal } = this.#state;
    for (let failures = 0; !signal.aborted && this.#state.isRunning; ) {
      const isWanted = isInstallerInitiated(this.#state.pairing);
      const backoff = failures === 0 ? 0 : backoffDelay(BACKOFF, failures, random.fraction());
      const delay = isWanted ? Math.max(backoff, this.#state.retryAfterMs) : Number.POSITIVE_INFINITY;
      if (!(await this.#state.pause(delay, signal)) || !isWanted) continue;
      failures = (await this.#requestShared(signal)).kind === 'unreachable' ? failures + 1 : 0;
    }
  }

  /**
   * A fresh link for a person who opens the pairing: a link may expire long before its pairing. Everybody who opens it
   * within a short time gets the same link.
   */
  async open(): Promise<LoginLinkResult> {
    const reusable = this.#reusableResult;
    if (this.#canOpen && reusable !== null) return reusable;
    const opened = await withTimeout(this.#open(), MAX_LINK_WAIT, this.#context.environment.timers);
    return opened ?? { kind: 'unreachable' };
  }

  /** The hub has another address, or none. */
  onAddressChanged(): void {
    this.#addressChange.abort();
    this.#addressChange = new AbortController();
  }

  /**
   * Requests a link that redirects to the hub's current address whenever that has changed, in addition to the existing
   * ones, until the pairing changes its step. If the portal rejects it, the existing links stay in use: polling still
   * yields their code. No request is sent while there is no address, or if the address returns to one that an existing
   * link redirects to.
   */
  async renewStale(): Promise<void> {
    const { clock, random } = this.#context.environment;
    const { signal } = this.#state;
    // A pairing that has just expired stays in its step until that is written.
    const isActive = () => !signal.aborted && this.#state.isRunning && this.#state.pairing.step.kind === 'waiting';
    for (let failures = 0; isActive(); ) {
      const ended = AbortSignal.any([signal, this.#addressChange.signal]);
      const backoff = failures === 0 ? 0 : backoffDelay(BACKOFF, failures, random.fraction());
      const delay = this.#needsRenewal
        ? this.#lastRenewalAt + Math.max(MIN_RENEWAL_INTERVAL_MS, backoff) - clock.now().uptime
        : Number.POSITIVE_INFINITY;
      if (delay > 0) {
        if (!(await this.#state.pause(delay, ended))) failures = 0;
        continue;
      }
      this.#lastRenewalAt = clock.now().uptime;
      const { kind } = await this.#requestShared(signal, 'beside');
      failures = kind === 'unreachable' ? failures + 1 : 0;
    }
  }

  /** Whether the hub's address has changed, so that an installer's link redirects to an old one. */
  get #needsRenewal(): boolean {
    const { pairing, redirect } = this.#state;
    if (pairing.step.kind !== 'waiting' || !isInstallerInitiated(pairing) || redirect === this.#rejectedRedirect)
      return false;
    const link = preferredLink(pairing.step, redirect);
    return link !== undefined && isStaleLink(link, redirect);
  }

  /** Whether opening the pairing now would return the newest link. */
  get hasUsableLink(): boolean {
    return this.#reusableResult?.kind === 'link';
  }

  /** Retries if the step changes meanwhile and the pairing can still be opened: an installer has taken it over. */
  async #open(): Promise<LoginLinkResult> {
    for (let result: LoginLinkResult = { kind: 'over' }; ; ) {
      const { signal } = this.#state;
      if (!this.#canOpen) return result;
      result = await this.#requestShared(signal);
      if (result.kind !== 'over' || !signal.aborted) return result;
    }
  }

  /** All requests for a link in the same step share one request to the portal. */
  #requestShared(signal: AbortSignal, place: 'first' | 'beside' = 'first'): Promise<LoginLinkResult> {
    if (this.#inFlight?.signal === signal) return this.#inFlight.result;
    const request = {
      signal,
      result: this.#request(place).finally(() => {
        if (this.#inFlight === request) this.#inFlight = null;
      }),
    };
    this.#inFlight = request;
    return request.result;
  }

  get #reusableResult(): LoginLinkResult | null {
    const last = this.#lastResult;
    if (last === null || this.#context.environment.clock.now().uptime >= last.until) return null;
    // A login came through it.
    if (last.codes !== this.#state.pairing.spentCodes.length) return null;
    return last.link !== null && isStaleLink(last.link, this.#state.redirect) ? null : last.result;
  }

  get #canOpen(): boolean {
    const { isRunning, timeLeft, pairing } = this.#state;
    return isRunning && timeLeft > 0 && (pairing.step.kind === 'asking' || pairing.step.kind === 'waiting');
  }

  /** @param place whether the link is in addition to others, through which a person may still log in */
  async #request(place: 'first' | 'beside'): Promise<LoginLinkResult> {
    const progress = this.#state;
    const { signal, redirect } = progress;
    const connected = this.#context.portalOf(progress.pairing.portal);
    if (connected === undefined) {
      await progress.dispatch({ kind: 'failed', reason: 'misconfigured' });
      return { kind: 'over' };
    }
    const { nonce, scope } = progress.pairing;
    const outcome = await connected.portal.requestLink({ nonce, scope }, signal);
    if (signal.aborted) return { kind: 'over' };
    // If there are other links, their polls show more reliably whether the portal is reachable.
    if (place === 'first') progress.recordReachability(outcome.kind === 'unreachable' ? outcome : null);
    switch (outcome.kind) {
      case 'unreachable':
        return this.#remember({ kind: 'unreachable' }, Math.max(FAILURE_REUSE_MS, outcome.retryAfter ?? 0));
      case 'link':
        if (outcome.redirectRejected !== undefined) {
          progress.log.info('redirect_address_rejected', {
            connection: progress.name,
            detail: outcome.redirectRejected,
          });
        }
        // It is written before anybody sees it: after a power cut a person may log in through it.
        if (!(await progress.dispatch({ kind: 'link', link: outcome.link }, signal))) return { kind: 'over' };
        return this.#remember(toLinkResult(outcome.link), this.#takeLinkPermit(), outcome.link);
      default:
        if (place === 'beside') {
          this.#rejectedRedirect = redirect;
          progress.log.warn('login_link_rejected', { connection: progress.name, detail: outcome.detail });
          return { kind: 'over' };
        }
        progress.log.warn('pairing_rejected', { connection: progress.name, detail: outcome.detail });
        await progress.dispatch({ kind: 'failed', reason: failureReason(outcome), detail: outcome.detail }, signal);
        return { kind: 'over' };
    }
  }

  /** Takes a token from the bucket for fresh links. @returns milliseconds until the next fresh link */
  #takeLinkPermit(): number {
    const bucket = this.#linkBuckets.refill('', NEW_LINK_LIMIT, this.#context.environment.clock.now().uptime);
    bucket.tokens = Math.max(0, bucket.tokens - 1);
    return Math.max(LINK_REUSE_MS, (1 - bucket.tokens) * NEW_LINK_LIMIT.interval);
  }

  #remember(result: LoginLinkResult, ms: number, link: LoginLink | null = null): LoginLinkResult {
    const until = this.#context.environment.clock.now().uptime + ms;
    this.#lastResult = { result, until, link, codes: this.#state.pairing.spentCodes.length };
    return result;
  }
}

/** A link as the result of a request for one. */
export function toLinkResult(link: LoginLink): Extract<LoginLinkResult, { kind: 'link' }> {
  return { kind: 'link', ...toShownLink(link) };
}

function failureReason(
  outcome: Extract<LoginLinkOutcome, { kind: 'rejected' | 'foreign_origin' | 'misconfigured' }>,
): PairingFailureReason {
  if (outcome.kind !== 'rejected') return outcome.kind;
  return outcome.clientUnknown ? 'client_unknown' : 'portal_rejected';
}
