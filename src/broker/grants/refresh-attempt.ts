import type { Instant } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import { distrustOf, type Grant, grantFromTokenResponse } from '../../core/grants/grant.ts';
import { afterFailure, type RefreshFailure, type RefreshState } from '../../core/grants/refresh.ts';
import { throttledUntil } from '../../core/grants/schedule.ts';
import type { TokenOutcome } from '../../core/grants/token-outcome.ts';
import { giverOf } from '../../core/portal.ts';
import type { Store } from '../../core/store.ts';
import { sha256 } from '../../system/compare.ts';
import type { Environment } from '../environment.ts';
import type { PortalClock } from '../time/portal-clock.ts';
import type { GrantNotices } from './grant-notices.ts';
import type { GrantTimes } from './grant-times.ts';
import type { GrantHolder, Held } from './held-grant.ts';

/** What an attempt asks of whoever keeps the grants. */
export interface GrantKeeper {
  /** Whether this is still the grant of its appliance, which may have been paired anew, or removed. */
  keeps(held: Held): boolean;
  /** Takes what is stored in its place: another hub has written it. */
  reload(held: Held): Promise<void>;
  /** A setback that leaves nothing to write. */
  apply(held: Held, outcome: RefreshFailure): void;
  settle(held: Held, state: RefreshState): void;
}

/** One attempt to refresh: written ahead, sent once, and its outcome committed before anybody sees it. */
export class RefreshAttempts {
  readonly #environment: Pick<Environment, 'clock' | 'log'>;
  readonly #store: Store;
  readonly #portalClock: PortalClock;
  readonly #times: GrantTimes;
  readonly #notices: GrantNotices;
  readonly #keeper: GrantKeeper;

  constructor(
    environment: Pick<Environment, 'clock' | 'log'>,
    store: Store,
    portalClock: PortalClock,
    times: GrantTimes,
    notices: GrantNotices,
    keeper: GrantKeeper,
  ) {
    this.#environment = environment;
    this.#store = store;
    this.#portalClock = portalClock;
    this.#times = times;
    this.#notices = notices;
    this.#keeper = keeper;
  }

  async run(held: Held, { name, portal, identity }: GrantHolder): Promise<void> {
    const { clock, log } = this.#environment;
    const { generation, refreshToken } = held.grant;
    if (!(await this.#writtenAhead(held))) return;
    // A token's age counts from before the portal can have issued it: an answer may be long under way.
    const sent = clock.now();
    held.throttledUntil = throttledUntil(held.throttledUntil, sent.uptime);
    if (held.grant.distrusted !== null) held.lastForcedRefresh = sent.uptime;
    const outcome = await portal.refresh(refreshToken).catch((error: unknown): TokenOutcome => {
      this.#notices.unexpected(held.grant.appliance, error);
      return { kind: 'ambiguous', detail: messageOf(error) };
    });
    if ('portalTime' in outcome) this.#portalClock.learn(outcome.portalTime);
    // The generation, and not the grant: its token may have been distrusted while the answer was under way.
    if (!this.#keeper.keeps(held) || held.grant.generation !== generation) {
      log.info('refresh came too late for its grant', { appliance: name });
      return;
    }
    await (outcome.kind === 'granted' ? this.#succeed(held, identity, outcome, sent) : this.#fail(held, outcome, sent));
  }

  /** Commits the attempt. A rotation is not started when its result could not be kept. */
  async #writtenAhead(held: Held): Promise<boolean> {
    const { clock } = this.#environment;
    try {
      if (held.unsaved !== null && !(await held.unsaved())) {
        await this.#keeper.reload(held);
        return false;
      }
      const { appliance, generation, distrusted } = held.grant;
      // The mark may be in memory alone, because it could not be written, or its grant could not.
      if (distrusted !== null) await this.#store.distrust(appliance, generation, distrusted);
      if (held.unsaved !== null) {
        held.unsaved = null;
        this.#notices.written();
        held.health = { kind: 'good' };
        if ((this.#times.dueAt(held) ?? 0) > clock.now().uptime) return false;
      }
      const attempt = { token: sha256(held.grant.refreshToken.reveal()), at: clock.now() };
      if (await this.#store.beginAttempt(held.grant, attempt)) return true;
      await this.#keeper.reload(held);
    } catch (error) {
      this.#keeper.apply(held, { kind: 'store_unwritable', detail: messageOf(error) });
      this.#notices.attemptFailed(held, null);
    }
    return false;
  }

  async #succeed(
    held: Held,
    identity: GrantHolder['identity'],
    { tokens, portalTime }: Extract<TokenOutcome, { kind: 'granted' }>,
    sent: Instant,
  ): Promise<void> {
    const previous = { ...held.grant, givenBy: giverOf(identity) };
    const successor = grantFromTokenResponse(
      previous,
      tokens.refreshToken ?? held.grant.refreshToken,
      tokens,
      sent,
      portalTime,
    );
    try {
      if (!(await this.#store.replaceGrant(successor))) {
        await this.#keeper.reload(held);
        return;
      }
    } catch (error) {
      take(held, successor);
      held.unsaved = () => this.#store.replaceGrant(held.grant);
      this.#keeper.apply(held, { kind: 'store_unwritable', detail: messageOf(error) });
      this.#notices.attemptFailed(held, this.#since(sent));
      return;
    }
    take(held, successor);
    held.health = { kind: 'good' };
    this.#notices.refreshed(successor, tokens.lifetime, this.#since(sent));
  }

  async #fail(held: Held, outcome: RefreshFailure, sent: Instant): Promise<void> {
    const { appliance, generation } = held.grant;
    const state = afterFailure(held.grant, held.health, outcome, this.#times.context(appliance));
    const { doubt, refused } = state;
    // `invalid_grant` counts only if the token refused is still the one stored.
    const current = await this.#store.endAttempt({ appliance, generation, doubt, refused }).catch((error: unknown) => {
      this.#notices.unwritable(held, error);
      return true;
    });
    if (!current) return this.#keeper.reload(held);
    this.#keeper.settle(held, state);
    this.#notices.attemptFailed(held, outcome.kind === 'not_sent' ? null : this.#since(sent));
  }

  /** Milliseconds on the boot clock. */
  #since({ uptime }: Instant): number {
    return this.#environment.clock.now().uptime - uptime;
  }
}

/** The token at hand may have been distrusted while a successor with the very same one was being written. */
function take(held: Held, successor: Grant): void {
  held.grant = { ...successor, distrusted: distrustOf(successor.accessToken, held.grant) };
}
