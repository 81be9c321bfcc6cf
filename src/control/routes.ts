import * as v from 'valibot';
import {
  accessTokenResponseSchema,
  applianceResponseSchema,
  authorityResponseSchema,
  backupResponseSchema,
  credentialsResponseSchema,
  historyResponseSchema,
  inviteResponseSchema,
  labelResponseSchema,
  openRegistrationResponseSchema,
  pairingBatchResponseSchema,
  pairingEventMessageSchema,
  reloadOutcomeResponseSchema,
  reloadResponseSchema,
  restoreResponseSchema,
  setupCodeResponseSchema,
  startPairingResponseSchema,
  statusResponseSchema,
  storeKeyRotationResponseSchema,
  testNoticesResponseSchema,
} from './messages.ts';

/** Something that the command line may ask of the running hub: JSON over HTTP on a Unix socket. */
export interface Route {
  readonly method: 'DELETE' | 'GET' | 'POST' | 'PUT';
  /** `:name` is where the member `name` of the request goes. */
  readonly path: string;
  /** All members that the path has no place for are the body's. */
  readonly request: v.GenericSchema<Record<string, unknown>>;
  readonly answer: v.GenericSchema;
  /** The status of the answer; 204 if there is none. */
  readonly status: number;
}

const textOrNull = v.optional(v.nullable(v.string()), null);
const seconds = v.pipe(v.number(), v.integer('whole seconds'));

const emptyRequest = v.strictObject({});
const nameRequest = v.strictObject({ name: v.string() });
const idRequest = v.strictObject({ id: v.string() });
const keepAuthorityRequest = v.strictObject({ keep: seconds });
const addApplianceRequest = v.strictObject({ name: v.string(), scope: textOrNull, portal: textOrNull });
const rotateSecretRequest = v.strictObject({ name: v.string(), replace_keys: v.optional(v.boolean(), false) });
const approveApplianceRequest = v.strictObject({ name: v.string(), code: textOrNull });
const inviteRequest = v.strictObject({ name: textOrNull, scope: textOrNull, portal: textOrNull, ttl: seconds });
const openRegistrationRequest = v.strictObject({ open_for: seconds });
const backupRequest = v.strictObject({ passphrase: v.string() });
const restoreRequest = v.strictObject({ copy: v.string(), passphrase: v.string() });
const noContent = v.void();

/** The one table of what the control socket serves; the server and the client both follow it. */
export const routes = {
  status: route('GET', '/v1/status', emptyRequest, statusResponseSchema),
  testNotices: route('POST', '/v1/notices/test', emptyRequest, testNoticesResponseSchema),
  authority: route('GET', '/v1/ca', emptyRequest, authorityResponseSchema),
  /** `keep`: for how many seconds appliances that trust no other than the old CA are served. */
  rotateAuthority: route('POST', '/v1/ca', keepAuthorityRequest, authorityResponseSchema),
  keepOldAuthority: route('PUT', '/v1/ca/old', keepAuthorityRequest, authorityResponseSchema),
  addAppliance: route('POST', '/v1/appliances', addApplianceRequest, credentialsResponseSchema, 201),
  removeAppliance: route('DELETE', '/v1/appliances/:name', nameRequest, noContent),
  /** `replace_keys`: whether the secret may take the place of the appliance's own keys. */
  rotateSecret: route('POST', '/v1/appliances/:name/secret', rotateSecretRequest, credentialsResponseSchema),
  /** `code`: the comparison code that the installer saw; null where none is to be checked. */
  approveAppliance: route('POST', '/v1/appliances/:name/approval', approveApplianceRequest, applianceResponseSchema),
  invite: route('POST', '/v1/invites', inviteRequest, inviteResponseSchema, 201),
  /** `open_for`: for how many seconds registration is open; 0 closes it. */
  openRegistration: route('PUT', '/v1/registration', openRegistrationRequest, openRegistrationResponseSchema),
  pair: route('POST', '/v1/appliances/:name/pairings', nameRequest, startPairingResponseSchema, 201),
  label: route('GET', '/v1/appliances/:name/label', nameRequest, labelResponseSchema),
  pairAll: route('POST', '/v1/rounds', emptyRequest, pairingBatchResponseSchema, 201),
  nextPairing: route('POST', '/v1/rounds/:id/next', idRequest, pairingBatchResponseSchema),
  unpair: route('DELETE', '/v1/appliances/:name/grant', nameRequest, noContent),
  token: route('GET', '/v1/appliances/:name/token', nameRequest, accessTokenResponseSchema),
  history: route('GET', '/v1/appliances/:name/history', nameRequest, historyResponseSchema),
  refresh: route('POST', '/v1/appliances/:name/refresh', nameRequest, applianceResponseSchema),
  setupCode: route('GET', '/v1/setup-code', emptyRequest, setupCodeResponseSchema),
  rotateSetupCode: route('POST', '/v1/setup-code', emptyRequest, setupCodeResponseSchema),
  rotateStoreKey: route('POST', '/v1/store-key', emptyRequest, storeKeyRotationResponseSchema),
  backUp: route('POST', '/v1/backup', backupRequest, backupResponseSchema),
  restore: route('POST', '/v1/restore', restoreRequest, restoreResponseSchema),
  reload: route('POST', '/v1/reload', emptyRequest, reloadResponseSchema, 202),
  reloadOutcome: route('GET', '/v1/reloads/:id', idRequest, reloadOutcomeResponseSchema),
};

/** A pairing's events as NDJSON, one {@link Route.answer} a line, until it has ended. */
export const pairingEventsRoute = route('GET', '/v1/pairings/:id/events', idRequest, pairingEventMessageSchema);

export type Routes = typeof routes;

function route<Request extends Route['request'], Answer extends Route['answer']>(
  method: Route['method'],
  path: string,
  request: Request,
  answer: Answer,
  status = 200,
) {
  return { method, path, request, answer, status } satisfies Route;
}
