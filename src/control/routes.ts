import * as v from 'valibot';
import type { Backup, CaStatus, SnapshotReport } from '../core/administration.ts';
import type { HookTestResult } from '../core/health/notice.ts';
import type { PairingFailureReason } from '../core/pairings/pairing.ts';
import type { PairingBatch } from '../core/pairings/pairing-batch.ts';
import type { PortalCheck } from '../core/portals/portal-status.ts';
import type { ReloadOutcome } from '../core/reload.ts';
import type { HistoryEntry } from '../core/reports/history.ts';
import type {
  ApplianceResponse,
  ConnectionResponse,
  CredentialsResponse,
  InviteResponse,
  OpenRegistrationResponse,
  PairingEventMessage,
  PortalsResponse,
  RestoreResponse,
  SetupCodeResponse,
  StatusResponse,
  StoreKeyRotationResponse,
} from './messages.ts';

/** The header of each response with the version of the running hub. */
export const VERSION_HEADER = 'latchkey-version';

/** A request of the command line to the running hub: JSON over HTTP on a Unix socket. */
export interface Route {
  readonly method: 'DELETE' | 'GET' | 'POST' | 'PUT';
  /** `:name` is replaced by the member `name` of the request. */
  readonly path: string;
  /** All members that the path does not contain are in the body. */
  readonly request: v.GenericSchema<Record<string, unknown>>;
  readonly response: Returns<unknown>;
  /** The status of a response with a body; without one it is 204. */
  readonly status: number;
}

/** The type of a response. There is no value of it: the hub makes the response from types of its own. */
interface Returns<Response> {
  readonly none?: Response;
}

const text = v.string();
const textOrNull = v.optional(v.nullable(text), null);
const flag = v.optional(v.boolean(), false);
const seconds = v.pipe(v.number(), v.integer('whole seconds'));

/** How a grant was ended; `portal_told` is null if there was none. */
const grantEnd = returns<{ readonly portal_told: boolean | null }>();
const appliance = returns<ApplianceResponse>();
const connection = returns<ConnectionResponse>();
const credentials = returns<CredentialsResponse>();
const authority = returns<CaStatus>();
const batch = returns<PairingBatch>();
const setupCode = returns<SetupCodeResponse>();

/** All routes of the control socket, for the server and the client. */
export const routes = {
  status: route('GET', '/v1/status', {}, returns<StatusResponse>()),
  removeHub: route('DELETE', '/v1/site/hubs/:name', { name: text }, returns<void>()),
  portals: route('GET', '/v1/portals', {}, returns<PortalsResponse>()),
  checkPortal: route(
    'POST',
    '/v1/portals/:name/check',
    { name: text },
    returns<{ readonly checks: readonly PortalCheck[] }>(),
  ),
  /** `keys`: those of a table `[portals.NAME]`, without files. `replace`: whether it may replace an added portal. */
  addPortal: route(
    'POST',
    '/v1/portals',
    { name: text, keys: v.record(text, v.unknown()), client_secret: textOrNull, replace: flag },
    returns<{ readonly reload: string; readonly checks: readonly PortalCheck[] }>(),
    202,
  ),
  removePortal: route('DELETE', '/v1/portals/:name', { name: text }, returns<{ readonly reload: string }>(), 202),
  testNotices: route('POST', '/v1/notices/test', {}, returns<readonly HookTestResult[]>()),
  authority: route('GET', '/v1/ca', {}, authority),
  /** `keep`: for how many seconds appliances that trust only the old CA are still served. */
  rotateAuthority: route('POST', '/v1/ca', { keep: seconds }, authority),
  keepOldAuthority: route('PUT', '/v1/ca/old', { keep: seconds }, authority),
  /** `connections`: the names of those that it uses; empty for one of its own. */
  addAppliance: route(
    'POST',
    '/v1/appliances',
    {
      name: text,
      connections: v.optional(v.array(text), []),
      scope: textOrNull,
      portal: textOrNull,
      ignore_scope: flag,
    },
    credentials,
    201,
  ),
  removeAppliance: route('DELETE', '/v1/appliances/:name', { name: text }, grantEnd),
  moveAppliance: route(
    'PUT',
    '/v1/appliances/:name/connections',
    { name: text, connections: v.pipe(v.array(text), v.minLength(1)) },
    appliance,
  ),
  renameAppliance: route('PUT', '/v1/appliances/:name/title', { name: text, title: text }, appliance),
  /** `replace_keys`: whether the secret may replace the appliance's own keys. */
  rotateSecret: route('POST', '/v1/appliances/:name/secret', { name: text, replace_keys: flag }, credentials),
  /** `code`: the comparison code that the installer saw; null if no code is checked. `portal`: of its own connection. */
  approveAppliance: route(
    'POST',
    '/v1/appliances/:name/approval',
    { name: text, code: textOrNull, connection: textOrNull, portal: textOrNull },
    appliance,
  ),
  invite: route(
    'POST',
    '/v1/invites',
    { name: textOrNull, scope: textOrNull, portal: textOrNull, connection: textOrNull, ttl: seconds },
    returns<InviteResponse>(),
    201,
  ),
  /** `open_for`: for how many seconds registration is open; 0 closes it. */
  openRegistration: route('PUT', '/v1/registration', { open_for: seconds }, returns<OpenRegistrationResponse>()),
  addConnection: route(
    'POST',
    '/v1/connections',
    { name: text, scope: textOrNull, portal: textOrNull },
    connection,
    201,
  ),
  renameConnection: route('PUT', '/v1/connections/:name/title', { name: text, title: text }, connection),
  /** `even_if_used`: appliances that use it get connections of their own. */
  removeConnection: route('DELETE', '/v1/connections/:name', { name: text, even_if_used: flag }, grantEnd),
  /** `replace`: whether the grant may replace the one that the connection has. */
  importGrant: route(
    'POST',
    '/v1/connections/:name/import',
    { name: text, scope: textOrNull, portal: textOrNull, refresh_token: text, replace: flag },
    connection,
  ),
  /** `pairing`: the id of the one that was started. */
  pair: route('POST', '/v1/connections/:name/pairings', { name: text }, returns<{ readonly pairing: string }>(), 201),
  /**
   * `address`: the one on which a browser ended after a login. `pairing`: the one that it belongs to; `failure`: why its
   * login yielded nothing, while the pairing goes on with another link; null if the pairing has ended, or the hub still
   * waits for the portal.
   */
  pasteAddress: route(
    'POST',
    '/v1/connections/:name/paste',
    { name: text, address: text },
    returns<{ readonly pairing: string; readonly failure: PairingFailureReason | null }>(),
  ),
  label: route(
    'GET',
    '/v1/appliances/:name/label',
    { name: text },
    returns<{
      readonly name: string;
      readonly title: string;
      readonly hub_name: string;
      readonly link: string;
      readonly by_address: string | null;
    }>(),
  ),
  pairAll: route('POST', '/v1/batches', {}, batch, 201),
  nextPairing: route('POST', '/v1/batches/:id/next', { id: text }, batch),
  unpair: route('DELETE', '/v1/connections/:name/grant', { name: text }, grantEnd),
  /**
   * `rejected`: the token that the cloud has refused. The response is a token response (RFC 6749, 5.1); `scope` is left out
   * if there is none.
   */
  token: route(
    'POST',
    '/v1/connections/:name/token',
    { name: text, min_ttl: v.optional(seconds, 0), rejected: textOrNull },
    returns<{
      readonly access_token: string;
      readonly token_type: 'Bearer';
      readonly expires_in: number;
      readonly scope?: string;
    }>(),
  ),
  /** The entries, the one that was updated last first. */
  history: route('GET', '/v1/connections/:name/history', { name: text }, returns<readonly HistoryEntry[]>()),
  refresh: route('POST', '/v1/connections/:name/refresh', { name: text }, connection),
  setupCode: route('GET', '/v1/setup-code', {}, setupCode),
  rotateSetupCode: route('POST', '/v1/setup-code', {}, setupCode),
  rotateStoreKey: route('POST', '/v1/store-key', {}, returns<StoreKeyRotationResponse>()),
  takeSnapshot: route('POST', '/v1/snapshot', {}, returns<SnapshotReport>()),
  backUp: route('POST', '/v1/backup', { passphrase: text }, returns<Backup>()),
  restore: route('POST', '/v1/restore', { copy: text, passphrase: text }, returns<RestoreResponse>()),
  /** `reload`: the id of the one that was started. */
  reload: route('POST', '/v1/reload', {}, returns<{ readonly reload: string }>(), 202),
  reloadOutcome: route('GET', '/v1/reloads/:id', { id: text }, returns<ReloadOutcome>()),
};

/** The events of a pairing as NDJSON, one {@link Route.response} per line, until the pairing has ended. */
export const pairingEventsRoute = route('GET', '/v1/pairings/:id/events', { id: text }, returns<PairingEventMessage>());

export type RouteName = keyof typeof routes;
/** The request of a route as the client sends it, and as the server reads it. */
export type RouteInput<Name extends RouteName> = v.InferInput<(typeof routes)[Name]['request']>;
export type RouteRequest<Name extends RouteName> = v.InferOutput<(typeof routes)[Name]['request']>;
export type RouteResponse<Name extends RouteName> =
  (typeof routes)[Name]['response'] extends Returns<infer Response> ? Response : never;

function route<Members extends v.ObjectEntries, Response>(
  method: Route['method'],
  path: string,
  members: Members,
  response: Returns<Response>,
  status = 200,
) {
  return { method, path, request: v.strictObject(members), response, status };
}

function returns<Response>(): Returns<Response> {
  return {};
}
