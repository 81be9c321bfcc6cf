import * as v from 'valibot';
import {
  accessTokenResponseSchema,
  applianceResponseSchema,
  authorityResponseSchema,
  backupResponseSchema,
  connectionResponseSchema,
  credentialsResponseSchema,
  grantEndResponseSchema,
  historyResponseSchema,
  inviteResponseSchema,
  labelResponseSchema,
  openRegistrationResponseSchema,
  pairingBatchResponseSchema,
  pairingEventMessageSchema,
  pasteAddressResponseSchema,
  portalChecksResponseSchema,
  portalsResponseSchema,
  reloadOutcomeResponseSchema,
  reloadResponseSchema,
  restoreResponseSchema,
  setupCodeResponseSchema,
  snapshotResponseSchema,
  startPairingResponseSchema,
  statusResponseSchema,
  storeKeyRotationResponseSchema,
  testNoticesResponseSchema,
} from './messages.ts';

/** A request of the command line to the running hub: JSON over HTTP on a Unix socket. */
export interface Route {
  readonly method: 'DELETE' | 'GET' | 'POST' | 'PUT';
  /** `:name` is replaced by the member `name` of the request. */
  readonly path: string;
  /** All members that the path does not contain are in the body. */
  readonly request: v.GenericSchema<Record<string, unknown>>;
  readonly response: v.GenericSchema;
  /** The status of a response with a body; without one it is 204. */
  readonly status: number;
}

const textOrNull = v.optional(v.nullable(v.string()), null);
const seconds = v.pipe(v.number(), v.integer('whole seconds'));

const emptyRequest = v.strictObject({});
const nameRequest = v.strictObject({ name: v.string() });
const idRequest = v.strictObject({ id: v.string() });
const keepAuthorityRequest = v.strictObject({ keep: seconds });
const addApplianceRequest = v.strictObject({
  name: v.string(),
  connection: textOrNull,
  scope: textOrNull,
  portal: textOrNull,
});
const moveApplianceRequest = v.strictObject({ name: v.string(), connection: v.string() });
const addConnectionRequest = v.strictObject({ name: v.string(), scope: textOrNull, portal: textOrNull });
const removeConnectionRequest = v.strictObject({ name: v.string(), even_if_used: v.optional(v.boolean(), false) });
const importGrantRequest = v.strictObject({
  name: v.string(),
  scope: textOrNull,
  portal: textOrNull,
  refresh_token: v.string(),
  replace: v.optional(v.boolean(), false),
});
const rotateSecretRequest = v.strictObject({ name: v.string(), replace_keys: v.optional(v.boolean(), false) });
const approveApplianceRequest = v.strictObject({ name: v.string(), code: textOrNull, connection: textOrNull });
const pasteAddressRequest = v.strictObject({ name: v.string(), address: v.string() });
const inviteRequest = v.strictObject({
  name: textOrNull,
  scope: textOrNull,
  portal: textOrNull,
  connection: textOrNull,
  ttl: seconds,
});
const openRegistrationRequest = v.strictObject({ open_for: seconds });
const backupRequest = v.strictObject({ passphrase: v.string() });
const restoreRequest = v.strictObject({ copy: v.string(), passphrase: v.string() });
const noContent = v.void();

/** All routes of the control socket, for the server and the client. */
export const routes = {
  status: route('GET', '/v1/status', emptyRequest, statusResponseSchema),
  removeHub: route('DELETE', '/v1/site/hubs/:name', nameRequest, noContent),
  portals: route('GET', '/v1/portals', emptyRequest, portalsResponseSchema),
  checkPortal: route('POST', '/v1/portals/:name/check', nameRequest, portalChecksResponseSchema),
  testNotices: route('POST', '/v1/notices/test', emptyRequest, testNoticesResponseSchema),
  authority: route('GET', '/v1/ca', emptyRequest, authorityResponseSchema),
  /** `keep`: for how many seconds appliances that trust only the old CA are still served. */
  rotateAuthority: route('POST', '/v1/ca', keepAuthorityRequest, authorityResponseSchema),
  keepOldAuthority: route('PUT', '/v1/ca/old', keepAuthorityRequest, authorityResponseSchema),
  addAppliance: route('POST', '/v1/appliances', addApplianceRequest, credentialsResponseSchema, 201),
  removeAppliance: route('DELETE', '/v1/appliances/:name', nameRequest, grantEndResponseSchema),
  moveAppliance: route('PUT', '/v1/appliances/:name/connection', moveApplianceRequest, applianceResponseSchema),
  /** `replace_keys`: whether the secret may replace the appliance's own keys. */
  rotateSecret: route('POST', '/v1/appliances/:name/secret', rotateSecretRequest, credentialsResponseSchema),
  /** `code`: the comparison code that the installer saw; null if no code is checked. */
  approveAppliance: route('POST', '/v1/appliances/:name/approval', approveApplianceRequest, applianceResponseSchema),
  invite: route('POST', '/v1/invites', inviteRequest, inviteResponseSchema, 201),
  /** `open_for`: for how many seconds registration is open; 0 closes it. */
  openRegistration: route('PUT', '/v1/registration', openRegistrationRequest, openRegistrationResponseSchema),
  addConnection: route('POST', '/v1/connections', addConnectionRequest, connectionResponseSchema, 201),
  /** `even_if_used`: appliances that use it get connections of their own. */
  removeConnection: route('DELETE', '/v1/connections/:name', removeConnectionRequest, grantEndResponseSchema),
  /** `replace`: whether the grant may replace the one that the connection has. */
  importGrant: route('POST', '/v1/connections/:name/import', importGrantRequest, connectionResponseSchema),
  pair: route('POST', '/v1/connections/:name/pairings', nameRequest, startPairingResponseSchema, 201),
  /** `address`: the one on which a browser ended after a login. */
  pasteAddress: route('POST', '/v1/connections/:name/paste', pasteAddressRequest, pasteAddressResponseSchema),
  label: route('GET', '/v1/appliances/:name/label', nameRequest, labelResponseSchema),
  pairAll: route('POST', '/v1/batches', emptyRequest, pairingBatchResponseSchema, 201),
  nextPairing: route('POST', '/v1/batches/:id/next', idRequest, pairingBatchResponseSchema),
  unpair: route('DELETE', '/v1/connections/:name/grant', nameRequest, grantEndResponseSchema),
  token: route('GET', '/v1/connections/:name/token', nameRequest, accessTokenResponseSchema),
  history: route('GET', '/v1/connections/:name/history', nameRequest, historyResponseSchema),
  refresh: route('POST', '/v1/connections/:name/refresh', nameRequest, connectionResponseSchema),
  setupCode: route('GET', '/v1/setup-code', emptyRequest, setupCodeResponseSchema),
  rotateSetupCode: route('POST', '/v1/setup-code', emptyRequest, setupCodeResponseSchema),
  rotateStoreKey: route('POST', '/v1/store-key', emptyRequest, storeKeyRotationResponseSchema),
  takeSnapshot: route('POST', '/v1/snapshot', emptyRequest, snapshotResponseSchema),
  backUp: route('POST', '/v1/backup', backupRequest, backupResponseSchema),
  restore: route('POST', '/v1/restore', restoreRequest, restoreResponseSchema),
  reload: route('POST', '/v1/reload', emptyRequest, reloadResponseSchema, 202),
  reloadOutcome: route('GET', '/v1/reloads/:id', idRequest, reloadOutcomeResponseSchema),
};

/** The events of a pairing as NDJSON, one {@link Route.response} per line, until the pairing has ended. */
export const pairingEventsRoute = route('GET', '/v1/pairings/:id/events', idRequest, pairingEventMessageSchema);

export type Routes = typeof routes;

function route<Request extends Route['request'], Response extends Route['response']>(
  method: Route['method'],
  path: string,
  request: Request,
  response: Response,
  status = 200,
) {
  return { method, path, request, response, status } satisfies Route;
}
