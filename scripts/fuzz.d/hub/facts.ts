import { Pool } from '../facts.ts';

/** An appliance that proves who it is by a secret. */
export interface Credentials {
  readonly id: string;
  readonly secret: string;
}

/** What requests to a hub are made from. Nothing of the victim's is here but its client_id. */
export interface HubFacts {
  /** Paired; nothing that it sends makes its token worthless. */
  readonly own: Credentials;
  /** Paired; the tokens that it holds are revoked all the time. */
  readonly doubter: Credentials;
  /** Paired; it signs assertions. */
  readonly keyed: { readonly id: string; readonly publicKey: string };
  /** Registered, and waiting to be approved. */
  readonly waiting: Credentials;
  readonly victimId: string;
  /** A device flow that came to its end, and what it gave. */
  readonly session: { readonly client: Credentials; readonly deviceCode: string; readonly refreshToken: string };
  /** Initial access tokens. */
  readonly invites: readonly string[];
  readonly accessTokens: readonly string[];
  /** Of the hub's own. */
  readonly refreshTokens: readonly string[];
  readonly deviceCodes: readonly string[];
  readonly userCodes: readonly string[];
  /** Of pairings' callbacks. */
  readonly nonces: readonly string[];
  /** Those that registered themselves. */
  readonly registered: readonly string[];
  /** Of the keyed appliance's, used before. */
  readonly assertions: readonly string[];
  /** Seconds since 1970. */
  now(): number;
  /** A JWT of the keyed appliance's: signed with its private key. */
  sign(header: object, claims: object): string;
}

const POOLED = [
  'invites',
  'accessTokens',
  'refreshTokens',
  'deviceCodes',
  'userCodes',
  'nonces',
  'registered',
  'assertions',
] as const;

type Pooled = (typeof POOLED)[number];

/** What the attacker knows at first, and learns from answers. */
export class LearnedOfHub implements HubFacts {
  readonly #pools: Readonly<Record<Pooled, Pool>>;
  readonly own: Credentials;
  readonly doubter: Credentials;
  readonly keyed: HubFacts['keyed'];
  readonly waiting: Credentials;
  readonly victimId: string;
  readonly session: HubFacts['session'];
  readonly now: () => number;
  readonly sign: (header: object, claims: object) => string;

  constructor(first: HubFacts) {
    this.own = first.own;
    this.doubter = first.doubter;
    this.keyed = first.keyed;
    this.waiting = first.waiting;
    this.victimId = first.victimId;
    this.session = first.session;
    this.now = () => first.now();
    this.sign = (header, claims) => first.sign(header, claims);
    const pools = POOLED.map((name) => [name, new Pool(first[name])]);
    this.#pools = Object.fromEntries(pools) as Record<Pooled, Pool>;
  }

  get invites() {
    return this.#pools.invites.values;
  }

  get accessTokens() {
    return this.#pools.accessTokens.values;
  }

  get refreshTokens() {
    return this.#pools.refreshTokens.values;
  }

  get deviceCodes() {
    return this.#pools.deviceCodes.values;
  }

  get userCodes() {
    return this.#pools.userCodes.values;
  }

  get nonces() {
    return this.#pools.nonces.values;
  }

  get registered() {
    return this.#pools.registered.values;
  }

  get assertions() {
    return this.#pools.assertions.values;
  }

  /** Takes what was issued in an answer below 400, and the assertion that its request carried. */
  learn(request: { readonly path: string; readonly bytes: string }, answer: string): void {
    const found = (pattern: RegExp, text = answer) => pattern.exec(text)?.[1];
    const pools = this.#pools;
    pools.assertions.add(found(/client_assertion=([\w.-]+)/, request.bytes));
    if (request.path.startsWith('/oauth/token')) {
      pools.accessTokens.add(found(/"access_token":"([^"]+)"/));
      pools.refreshTokens.add(found(/"refresh_token":"([^"]+)"/));
    } else if (request.path.startsWith('/oauth/device_authorization')) {
      pools.deviceCodes.add(found(/"device_code":"([^"]+)"/));
      pools.userCodes.add(found(/"user_code":"([^"]+)"/));
    } else if (request.path.startsWith('/oauth/register')) {
      const secret = found(/"client_secret":"([^"]+)"/);
      if (secret !== undefined) pools.registered.add(`${found(/"client_id":"([^"]+)"/)} ${secret}`);
    }
  }
}
