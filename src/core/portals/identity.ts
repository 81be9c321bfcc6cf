/**
 * What identifies a portal and the hub as its client, whatever name the configuration uses. It decides which portal a
 * grant is valid at: the hub must not send a refresh token to another origin or with another client_id.
 */
export interface PortalIdentity {
  /** Of a helper portal, the origin of its frontend; of any other, its issuer (RFC 8414, 2) or token endpoint. */
  readonly origin: string;
  /** The client_id of the hub at this portal. */
  readonly clientId: string;
  /** The portal's name in the configuration. */
  readonly name: string;
}

/** Where a person corrects the client_id and the client secret that the hub uses at a portal. */
export interface CredentialLocation {
  /** The portal's name in the configuration. */
  readonly portal: string;
  /** The file of the client secret; left out if it is not in a file. */
  readonly secretFile?: string;
  /** How corrected credentials take effect; left out if by a reload. */
  readonly appliedBy?: ApplyMethod;
}

/**
 * A reload reads files again, but systemd passes a credential only when it starts the service, Home Assistant writes the
 * options of an app only when it starts the app, and test mode reads nothing again. Those of an added portal are in no file.
 */
export type ApplyMethod = 'reload' | 'service_restart' | 'app_restart' | 'new_start' | 'enter_again';

const APPLY_INSTRUCTIONS: Record<ApplyMethod, string> = {
  reload: 'run "latchkey reload"',
  service_restart: 'restart the hub ("sudo systemctl restart latchkey")',
  app_restart: 'restart the app in Home Assistant',
  new_start: 'stop the hub and start it again',
  enter_again: 'enter both again (on the hub\'s page, or with "latchkey portal add … --replace")',
};

/** How a person makes corrected credentials take effect, in the imperative. */
export function howToApplyCorrection({ appliedBy = 'reload' }: Pick<CredentialLocation, 'appliedBy'>): string {
  return APPLY_INSTRUCTIONS[appliedBy];
}

/** The same for the client_id alone, which a systemd credential never contains. */
export function clientIdApplyMethod({ appliedBy }: Pick<CredentialLocation, 'appliedBy'>): ApplyMethod {
  return appliedBy === 'app_restart' || appliedBy === 'enter_again' ? appliedBy : 'reload';
}

/** The client_id with its location, as part of a sentence. */
export function describeClientId({ portal, appliedBy }: CredentialLocation): string {
  return appliedBy === 'enter_again' ? `the client ID of ${portal}` : `portals.${portal}.client_id`;
}

/** The client_id and the client secret with their locations, as part of a sentence. */
export function describeCredentials(location: CredentialLocation, conjunction: 'and' | 'or'): string {
  const { secretFile } = location;
  return `${describeClientId(location)}, ${conjunction} the client secret${secretFile === undefined ? '' : ` in ${secretFile}`}`;
}

/** A configured portal. */
export interface ConfiguredPortal extends PortalIdentity {
  /** The origins of the other configured portals. */
  readonly otherOrigins: readonly string[];
}

/** Whether two identities are the same portal and the same client. */
export function samePortal(a: PortalIdentity, b: PortalIdentity): boolean {
  return a.origin === b.origin && a.clientId.toLowerCase() === b.clientId.toLowerCase();
}

/**
 * Whether a configured portal is the issuer of a grant. It also is if it has the issuer's name and client_id at another
 * origin, and no other configured portal has the old origin: then the portal has moved.
 */
export function isSameIssuer(issuer: PortalIdentity, portal: ConfiguredPortal): boolean {
  if (samePortal(issuer, portal)) return true;
  const moved = { ...issuer, origin: portal.origin };
  return issuer.name === portal.name && samePortal(moved, portal) && !portal.otherOrigins.includes(issuer.origin);
}

/**
 * Whether an issuer identifier in an authorization response (RFC 9207, 2) is that of another configured portal: then the
 * code is not for this one (RFC 9700, 4.4). Either portal may be configured only by its token endpoint. Several may be of
 * one server, each with a client of its own.
 */
export function isIssuerOfAnother(issuer: string, { origin, otherOrigins }: ConfiguredPortal): boolean {
  if (origin === issuer || origin.startsWith(`${issuer.replace(/\/$/, '')}/`)) return false;
  const originOf = (address: string) => URL.parse(address)?.origin;
  return otherOrigins.some(
    (other) => other === issuer || (originOf(other) === originOf(issuer) && originOf(other) !== originOf(origin)),
  );
}

/** The issuer to store with a grant of this portal. */
export function portalIdentityOf({ origin, clientId, name }: ConfiguredPortal): PortalIdentity {
  return { origin, clientId, name };
}
