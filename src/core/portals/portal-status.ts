import type { CredentialLocation } from './identity.ts';

/** What is wrong with a hub without a portal, and what to do. */
export const NO_PORTAL = {
  message: 'No portal is chosen yet',
  advice: 'Choose one on the hub\'s page, or with "latchkey portal add"',
} as const;

/** How a person logs in at a portal, and what has to be registered there for that. */
export interface PortalLogin {
  /**
   * `poll`: the hub polls for the result, and the portal redirects nowhere; null if it is not known before the hub has
   * reached the portal.
   */
  readonly login: 'device' | 'redirect' | 'paste' | 'poll' | null;
  /** The redirect URI exactly as it must be registered; null if none is, or while the hub has no address. */
  readonly redirectUri: string | null;
}

/** A configured portal, as people see it. */
export interface PortalStatus extends PortalLogin {
  readonly name: string;
  /** What people call it; the name if nothing else is known. */
  readonly title: string;
  readonly type: 'helper' | 'oauth2';
  /** RFC 3339 UTC: when it last responded in normal service; null if it has not since the daemon was started. */
  readonly reached: string | null;
  /** The name of its preset; left out if it has none. */
  readonly preset?: string;
  /** A person has added it, and can remove it; left out if the configuration declares it. */
  readonly added?: true;
}

/** The result of one check of a portal. `warn`: something that may become a failure, or that could not be checked. */
export interface PortalCheck {
  /** The part of the portal; they are checked in this order. */
  readonly name: 'discovery' | 'endpoints' | 'tls' | 'clock' | 'client' | 'logins';
  readonly result: 'ok' | 'warn' | 'fail';
  /** One line: what was found, and what to do if something must be done. */
  readonly detail: string;
  /**
   * The key of the portal's table that is wrong: `client_id` if the portal does not accept the client, and otherwise an
   * address at which something else answers, or nothing while another address of the portal does. Left out if none is
   * known to be wrong.
   */
  readonly wrongKey?: 'client_id' | 'base_url' | 'frontend_url' | 'issuer' | 'token_endpoint';
}

/** An endpoint that the portal's metadata has moved to another origin. The hub uses the former one meanwhile. */
export interface MovedEndpoint {
  /** The endpoint's name in the metadata and key in the configuration. */
  readonly key: string;
  /** The origin until now. */
  readonly from: string;
  /** The new address. */
  readonly to: string;
}

/** What has happened, and how a person confirms it. */
export function describeMovedEndpoint(
  { portal, appliedBy }: CredentialLocation,
  { key, from, to }: MovedEndpoint,
): string {
  const confirm =
    appliedBy === 'enter_again'
      ? 'enter its data again (on the hub\'s page, or with "latchkey portal add … --replace")'
      : `set portals.${portal}.${key} = "${to}" and run "latchkey reload"`;
  return `the portal ${portal} has moved its ${key} from ${from} to ${new URL(to).origin}, and the hub does not follow before a person has confirmed it: if its operator says the same, ${confirm}`;
}

/** What people can ask a portal, beside its service. No method throws because of the portal or the network. */
export interface InspectedPortal {
  /** Null if the portal has moved no endpoint, or has no metadata. */
  readonly movedEndpoint: MovedEndpoint | null;
  /** What is known of it now; never waits for the portal. */
  describeLogin(): PortalLogin;
  /**
   * Checks the portal without a login, and sends no token that it has issued.
   * @param wall the hub's clock, in ms since 1970
   */
  check(wall: () => number): Promise<readonly PortalCheck[]>;
  /**
   * Asks the portal once, with a made-up refresh token, whether it accepts the hub as its client. Some portals look at
   * the token first: they are `accepted`, too, because only a login shows more.
   */
  probeClient(): Promise<'accepted' | 'rejected' | 'no_answer'>;
}
