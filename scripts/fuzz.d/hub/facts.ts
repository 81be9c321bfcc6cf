// What an attacker on the LAN knows about a hub.
import type { ExtractionRule, KnownValues } from '../known-values.ts';

/** The credentials of an appliance that authenticates with a secret. */
export interface FuzzCredentials {
  readonly id: string;
  readonly secret: string;
}

/** The kinds of values that are learned from responses and requests. */
export type LearnedKind =
  /** Initial access tokens. */
  | 'invites'
  | 'accessTokens'
  /** Refresh tokens of the hub. */
  | 'refreshTokens'
  | 'deviceCodes'
  | 'userCodes'
  /** From the callback addresses of pairings. */
  | 'nonces'
  /** Registered appliances: id and secret, separated by a space. */
  | 'registered'
  /** Used assertions of the keyed appliance. */
  | 'assertions';

/** What requests to a hub are made from. Of the victim it has only the client_id. */
export interface HubFacts {
  /** A paired appliance that never revokes its tokens. */
  readonly own: FuzzCredentials;
  /** A paired appliance whose tokens are revoked repeatedly. */
  readonly doubter: FuzzCredentials;
  /** A paired appliance that authenticates with assertions. */
  readonly keyed: { readonly id: string; readonly publicKey: string };
  /** A registered appliance that waits for approval. */
  readonly waiting: FuzzCredentials;
  readonly victimId: string;
  /** A completed device flow, and its result. */
  readonly session: { readonly client: FuzzCredentials; readonly deviceCode: string; readonly refreshToken: string };
  readonly known: KnownValues<LearnedKind>;
  /** The time in seconds since 1970. */
  now(): number;
  /** Signs a JWT with the private key of the keyed appliance. */
  sign(header: object, claims: object): string;
}

/** The values that responses below 400 issue. */
const EXTRACTION_RULES: readonly ExtractionRule<LearnedKind>[] = [
  ['/oauth/token', 'accessTokens', /"access_token":"([^"]+)"/],
  ['/oauth/token', 'refreshTokens', /"refresh_token":"([^"]+)"/],
  ['/oauth/device_authorization', 'deviceCodes', /"device_code":"([^"]+)"/],
  ['/oauth/device_authorization', 'userCodes', /"user_code":"([^"]+)"/],
];

/** Adds the values that a response below 400 issued, and the assertion of its request. */
export function learnFromExchange(
  { known }: HubFacts,
  { path, bytes }: { readonly path: string; readonly bytes: string },
  answer: string,
): void {
  known.learn(EXTRACTION_RULES, path, answer);
  known.add('assertions', /client_assertion=([\w.-]+)/.exec(bytes)?.[1]);
  const [id, secret] = ['client_id', 'client_secret'].map(
    (name) => new RegExp(`"${name}":"([^"]+)"`).exec(answer)?.[1],
  );
  if (path.startsWith('/oauth/register') && secret !== undefined) known.add('registered', `${id} ${secret}`);
}
