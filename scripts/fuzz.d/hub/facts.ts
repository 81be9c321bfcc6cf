// What an attacker at home knows of a hub.
import type { ExtractionRule, KnownValues } from '../known-values.ts';

/** An appliance that proves who it is by a secret. */
export interface FuzzCredentials {
  readonly id: string;
  readonly secret: string;
}

/** What is learned from answers, and from requests. */
export type LearnedKind =
  /** Initial access tokens. */
  | 'invites'
  | 'accessTokens'
  /** Of the hub's own. */
  | 'refreshTokens'
  | 'deviceCodes'
  | 'userCodes'
  /** Of pairings' callbacks. */
  | 'nonces'
  /** Those that registered themselves: id and secret, with a space between. */
  | 'registered'
  /** Of the keyed appliance's, used before. */
  | 'assertions';

/** What requests to a hub are made from. Nothing of the victim's is here but its client_id. */
export interface HubFacts {
  /** Paired; nothing that it sends makes its token worthless. */
  readonly own: FuzzCredentials;
  /** Paired; the tokens that it holds are revoked all the time. */
  readonly doubter: FuzzCredentials;
  /** Paired; it signs assertions. */
  readonly keyed: { readonly id: string; readonly publicKey: string };
  /** Registered, and waiting to be approved. */
  readonly waiting: FuzzCredentials;
  readonly victimId: string;
  /** A device flow that came to its end, and what it gave. */
  readonly session: { readonly client: FuzzCredentials; readonly deviceCode: string; readonly refreshToken: string };
  readonly known: KnownValues<LearnedKind>;
  /** Seconds since 1970. */
  now(): number;
  /** A JWT of the keyed appliance's: signed with its private key. */
  sign(header: object, claims: object): string;
}

/** What answers below 400 issue. */
const EXTRACTION_RULES: readonly ExtractionRule<LearnedKind>[] = [
  ['/oauth/token', 'accessTokens', /"access_token":"([^"]+)"/],
  ['/oauth/token', 'refreshTokens', /"refresh_token":"([^"]+)"/],
  ['/oauth/device_authorization', 'deviceCodes', /"device_code":"([^"]+)"/],
  ['/oauth/device_authorization', 'userCodes', /"user_code":"([^"]+)"/],
];

/** Takes what was issued in an answer below 400, and the assertion that its request carried. */
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
