// The grant of one connection under events in any order: what its store, the portal and another hub do is drawn at random.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Grant } from '../../src/core/grants/grant.ts';
import {
  type GrantEffect,
  type GrantEvent,
  type GrantState,
  heldGrant,
  isAhead,
  isBusy,
  type StepContext,
  versionOf,
  type WriteResult,
} from '../../src/core/grants/grant-state.ts';
import { step } from '../../src/core/grants/grant-step.ts';
import { Secret } from '../../src/core/secret.ts';
import { HOUR, instantAt, MINUTE, sampleGrant } from './samples.ts';

const context: StepContext = {
  now: instantAt(50 * MINUTE),
  confirmed: null,
  retryLostAnswer: 'early',
  fraction: 0.5,
  hashOf: (token) => token.reveal(),
};
const unwritable = { error: new Error('away'), detail: 'away' };

/** What happens next: an effect that is under way ends, and how; or something from outside. */
const action = fc.record({
  what: fc.constantFrom(
    ...(['end', 'end', 'end', 'end', 'refresh', 'refresh'] as const),
    ...(['write', 'reject', 'other hub', 'news', 'forget'] as const),
  ),
  which: fc.nat(7),
  how: fc.constantFrom('well', 'well', 'well', 'badly', 'lost' as const),
});
type How = 'well' | 'badly' | 'lost';

/** A hub with one grant, its store and its portal. */
class World {
  state: GrantState = heldGrant(sampleGrant({ generation: 1 }), true);
  /** What the store has; null if the grant was deleted. */
  stored: Grant | null = sampleGrant({ generation: 1 });
  /** Effects that are under way. */
  readonly pending: GrantEffect[] = [];
  /** The access tokens that the portal has issued to this hub, and those that it was told to revoke. */
  readonly issued: string[] = [];
  readonly revoked = new Set<string>();
  /** Access tokens that were the grant of the hub at some time. */
  readonly held = new Set<string>();
  /** Whether another hub has refreshed the grant: it is of the same login, which a revocation could end. */
  hasOtherTokens = false;
  #tokens = 0;

  dispatch(event: GrantEvent): void {
    const before = this.state.grant.generation;
    const { state, effects } = step(this.state, event, context);
    this.state = state;
    expect(state.grant.generation).toBeGreaterThanOrEqual(before);
    this.held.add(state.grant.accessToken.reveal());
    for (const effect of effects) {
      if (effect.kind === 'revoke') this.revoked.add(effect.tokens.accessToken.reveal());
      else if (['prepare', 'begin', 'send', 'commit', 'write', 'load', 'mark'].includes(effect.kind))
        this.pending.push(effect);
      else if (effect.kind === 'refresh') this.dispatch({ kind: 'refresh', isDue: true });
    }
    const exclusive = this.pending.filter(({ kind }) => kind !== 'prepare' && kind !== 'mark');
    expect(exclusive.length).toBeLessThanOrEqual(1);
    if (!isBusy(state) && state.activity.kind !== 'none') expect(exclusive).toEqual([]);
  }

  /** Ends an effect. @param how `lost`: it is done, but the hub does not learn that */
  end(index: number, how: How): void {
    const [effect] = this.pending.splice(index % Math.max(1, this.pending.length), 1);
    const event = effect === undefined ? null : this.#resultOf(effect, how);
    if (event !== null) this.dispatch(event);
  }

  #resultOf(effect: GrantEffect, how: How): GrantEvent | null {
    const { grant, stored } = this.state;
    const isCurrent = this.stored?.generation === grant.generation;
    switch (effect.kind) {
      case 'prepare': {
        const problem = how === 'badly' ? ({ kind: 'not_sent', detail: 'no route' } as const) : null;
        return { kind: 'prepared', isWanted: how !== 'lost', problem };
      }
      case 'begin': {
        const begun = isCurrent ? ({ kind: 'begun', sendBefore: null } as const) : ({ kind: 'superseded' } as const);
        return { kind: 'begun', result: how === 'well' ? begun : unwritable };
      }
      case 'send':
        return this.#answer(how);
      case 'commit':
        return { kind: 'committed', result: this.#write(effect.grant, effect.hasTokens, how) };
      case 'write': {
        const version = versionOf(this.state);
        return { kind: 'written', version, result: this.#write(grant, stored.generation < grant.generation, how) };
      }
      case 'load':
        return how === 'well'
          ? { kind: 'found', why: 'asked', found: this.#found }
          : { kind: 'not_found', detail: 'away' };
      case 'mark':
        return how === 'well' && isCurrent ? { kind: 'marked', generation: grant.generation } : null;
      default:
        return null;
    }
  }

  /** Another hub refreshes the grant. */
  refreshElsewhere(): void {
    if (this.stored === null) return;
    this.hasOtherTokens = true;
    const generation = this.stored.generation + 1;
    const name = `other-${generation}`;
    this.stored = { ...this.stored, generation, accessToken: new Secret(name), refreshToken: new Secret(name) };
  }

  news(): void {
    if (this.#found !== null) this.dispatch({ kind: 'found', why: 'news', found: this.#found });
  }

  /** Everything works from now on. */
  drain(): void {
    for (let turn = 0; turn < 50 && this.pending.length > 0; turn++) this.end(0, 'well');
    expect(this.pending).toEqual([]);
  }

  get #found() {
    return this.stored && { stored: { grant: this.stored, attempt: null }, hasLostWrites: false };
  }

  #answer(how: How): GrantEvent {
    const { issuer } = this.state.grant;
    const base = { kind: 'answered', issuer, portal: 'home', time: null } as const;
    if (how !== 'well') return { ...base, outcome: { kind: 'ambiguous', detail: 'HTTP 500' } };
    const name = `new-${++this.#tokens}`;
    this.issued.push(name);
    const [accessToken, refreshToken] = [new Secret(name), new Secret(name)];
    const tokens = { accessToken, refreshToken, scope: null, lifetime: HOUR };
    return { ...base, outcome: { kind: 'granted', tokens, portalTime: null } };
  }

  #write(grant: Grant, hasTokens: boolean, how: How): WriteResult {
    if (how === 'badly') return unwritable;
    const isCurrent = this.stored?.generation === grant.generation - (hasTokens ? 1 : 0);
    if (isCurrent) this.stored = grant;
    return how === 'lost' ? unwritable : isCurrent;
  }
}

test('in every order of events one write or request is under way, no generation comes back, and no token gets lost', () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 60, size: 'max' }), (actions) => {
      const world = new World();
      for (const { what, which, how } of actions) {
        if (what === 'end' && world.pending.length > 0) world.end(which, how);
        if (what === 'refresh') world.dispatch({ kind: 'refresh', isDue: true });
        if (what === 'write') world.dispatch({ kind: 'write' });
        if (what === 'reject') world.dispatch({ kind: 'rejected' });
        if (what === 'other hub') world.refreshElsewhere();
        if (what === 'news') world.news();
        if (what === 'forget') {
          world.stored = null;
          world.dispatch({ kind: 'ended' });
        }
      }
      world.drain();
      world.dispatch({ kind: 'write' });
      world.drain();
      world.news();
      world.drain();
      const { state, stored, issued, held, revoked } = world;
      if (state.activity.kind !== 'none') {
        expect(state.grant.generation).toBe(stored?.generation);
        expect(state.grant.accessToken.reveal()).toBe(stored?.accessToken.reveal());
        expect(isAhead({ ...state, grant: { ...state.grant, accessTokenRejectedAt: null } })).toBe(false);
      }
      const lost = issued.filter((token) => !held.has(token) && !revoked.has(token));
      if (!world.hasOtherTokens) expect(lost).toEqual([]);
    }),
    { numRuns: 1000 },
  );
});
