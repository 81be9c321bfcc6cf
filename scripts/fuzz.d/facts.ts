/** What requests are made from. Nothing of the victim's is here but its id and the middle part of one of its states. */
export interface Facts {
  readonly baseUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly victimId: string;
  readonly user: string;
  readonly password: string;
  /** Of the attacker's own client, used and unused; always as many, so that a number finds its request again. */
  readonly states: readonly string[];
  readonly codes: readonly string[];
  readonly accessTokens: readonly string[];
  readonly refreshTokens: readonly string[];
  readonly grants: readonly string[];
  readonly faults: readonly string[];
  /** The middle part of a state whose code waits at the helper. */
  readonly victimPayload: string;
}

/** Values of one kind that are known at a time. */
const KNOWN = 8;

/** The newest values of a kind; there are always {@link KNOWN} of them. */
export class Pool {
  readonly values: string[];
  #next = 0;

  constructor(first: readonly string[]) {
    this.values = Array.from({ length: KNOWN }, (_, index) => first[index % first.length] ?? '');
  }

  add(value: string | undefined): void {
    if (value === undefined) return;
    this.values[this.#next] = value;
    this.#next = (this.#next + 1) % KNOWN;
  }
}

/** What the attacker knows at first, and learns from answers: what is issued to it is used in later requests. */
export class Learned implements Facts {
  readonly #pools: Record<'states' | 'codes' | 'accessTokens' | 'refreshTokens' | 'grants' | 'faults', Pool>;
  readonly baseUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly victimId: string;
  readonly user: string;
  readonly password: string;
  readonly victimPayload: string;

  constructor(first: Facts) {
    this.baseUrl = first.baseUrl;
    this.clientId = first.clientId;
    this.clientSecret = first.clientSecret;
    this.victimId = first.victimId;
    this.user = first.user;
    this.password = first.password;
    this.victimPayload = first.victimPayload;
    const { states, codes, accessTokens, refreshTokens, grants, faults } = first;
    this.#pools = {
      states: new Pool(states),
      codes: new Pool(codes),
      accessTokens: new Pool(accessTokens),
      refreshTokens: new Pool(refreshTokens),
      grants: new Pool(grants),
      faults: new Pool(faults),
    };
  }

  get states() {
    return this.#pools.states.values;
  }

  get codes() {
    return this.#pools.codes.values;
  }

  get accessTokens() {
    return this.#pools.accessTokens.values;
  }

  get refreshTokens() {
    return this.#pools.refreshTokens.values;
  }

  get grants() {
    return this.#pools.grants.values;
  }

  get faults() {
    return this.#pools.faults.values;
  }

  /** Takes from an answer below 400 what was issued in it. @param path of its request */
  learn(path: string, answer: string): void {
    const found = (pattern: RegExp) => pattern.exec(answer)?.[1];
    const { states, codes, accessTokens, refreshTokens, grants, faults } = this.#pools;
    if (path.startsWith('/_emulator/grants')) grants.add(found(/"id":"([^"]+)"/));
    else if (path.startsWith('/_emulator/faults')) faults.add(found(/"id":"(\d+)"/));
    else if (path.startsWith('/sso/token')) {
      accessTokens.add(found(/"access_token":"([^"]+)"/));
      refreshTokens.add(found(/"refresh_token":"([^"]+)"/));
    } else if (path.startsWith('/external/oauth2helper/config')) {
      states.add(found(/code_url":"[^"]*state=([^"&]+)"/));
    } else if (path.startsWith('/external/oauth2helper/code/get')) codes.add(found(/"code":"([^"]+)"/));
    else if (path.startsWith('/sso/authorize') || path.startsWith('/_emulator/login')) {
      codes.add(found(/[?&]code=([^&\s"\\]+)/));
    }
  }
}
