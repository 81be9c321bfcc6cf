import type {
  HubStatus,
  IssuedCredentials,
  IssuedInvite,
  RestoreReport,
  StatusReport,
  StoreKeyRotationResult,
} from '../core/administration.ts';
import type { ApplianceStatus } from '../core/appliances/appliance-status.ts';
import type { ConnectionStatus, LoginStatus } from '../core/connections/connection-status.ts';
import type { PairingStatus } from '../core/pairings/pairing-administration.ts';
import type { PortalStatus } from '../core/portals/portal-status.ts';
import type { Secret } from '../core/secret.ts';

/**
 * The responses on the control socket, which `--json` prints: the types of src/core, which document each member, with
 * their members in snake_case. Times are in seconds, instants in RFC 3339 UTC.
 */

/** A domain value in its form on the control socket: with the names of its members in snake_case, and secrets as texts. */
type Wire<Value> = Value extends Secret
  ? string
  : Value extends readonly (infer Item)[]
    ? readonly Wire<Item>[]
    : Value extends object
      ? { readonly [Key in keyof Value as SnakeCase<Key & string>]: Wire<Value[Key]> }
      : Value;

type SnakeCase<Name extends string, Before extends string = ''> = Name extends `${infer Letter}${infer Rest}`
  ? `${BeginsWord<Letter, Before> extends true ? '_' : ''}${Lowercase<Letter>}${SnakeCase<Rest, Letter>}`
  : Name;

/** Whether a word of a name begins with this letter or digit. */
type BeginsWord<Letter extends string, Before extends string> = Letter extends Digit
  ? Before extends Digit
    ? false
    : true
  : Letter extends Lowercase<Letter>
    ? false
    : true;

type Digit = '0' | '1' | '2' | '3' | '4' | '5' | '6' | '7' | '8' | '9';

/**
 * Converts the names of a domain value's members to snake_case.
 * @param value must be JSON-compatible and contain no secrets
 */
export function toWire<Value>(value: Value): Wire<Value>;
export function toWire(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => toWire(item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [snakeCase(name), toWire(member)]));
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]|(?<!\d)\d/g, (letter) => `_${letter.toLowerCase()}`);
}

/** What the status of a login says only within the hub: where files are, and what the conditions are derived from. */
type InternalMember = 'credentialLocation' | 'withoutRefreshToken';

/** The status of a login, without what is said only within the hub. */
type PublicStatus<Status extends LoginStatus, Internal extends string = InternalMember> = Omit<
  Status,
  Internal | 'problem'
> & { readonly problem: Omit<NonNullable<LoginStatus['problem']>, 'condition'> | null };

/** A connection, in `status`; `appliances` are the names of those that use it. */
export type ConnectionResponse = Wire<PublicStatus<Omit<ConnectionStatus, 'users'>>> & {
  readonly appliances: readonly string[];
};
/** An appliance, in `status`. What is unusual about its usage is in the conditions. */
export type ApplianceResponse = Wire<
  PublicStatus<ApplianceStatus, InternalMember | 'unusualUsage' | 'unusualConnection'>
>;
export type HubResponse = Wire<HubStatus>;
export type SiteResponse = NonNullable<StatusResponse['site']>;
export type ConditionResponse = StatusResponse['conditions'][number];
export type StatusResponse = Wire<Omit<StatusReport, 'connections' | 'appliances'>> & {
  readonly connections: readonly ConnectionResponse[];
  readonly appliances: readonly ApplianceResponse[];
};

/** An appliance's credentials, shown once. */
export type CredentialsResponse = Wire<IssuedCredentials>;
/** An initial access token, shown once. */
export type InviteResponse = Wire<IssuedInvite>;
/** Registration for all appliances; `open_for` in seconds. */
export type OpenRegistrationResponse = Pick<InviteResponse, 'registration_endpoint' | 'ca_fingerprint'> & {
  readonly open_for: number;
};
/** `sign_in` is a one-time address that signs a browser in; valid for `expires_in` seconds. */
export interface SetupCodeResponse {
  readonly code: string;
  readonly page: string;
  /** `page` with a host that stays when the hub's address changes. */
  readonly stable_page: string;
  readonly sign_in: string;
  readonly expires_in: number;
}
/** One event of a pairing; `latchkey pair --json` prints most of it. */
export type PairingEventMessage = Wire<PairingStatus>;
/** The configured portals, as `latchkey portals --json` prints them. */
export interface PortalsResponse {
  readonly portals: readonly Wire<PortalStatus>[];
}
export type RestoreResponse = Wire<RestoreReport>;
export type StoreKeyRotationResponse = Wire<StoreKeyRotationResult>;
