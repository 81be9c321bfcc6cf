import * as v from 'valibot';
import {
  applianceAnswer,
  authorityAnswer,
  backupAnswer,
  credentialsAnswer,
  historyAnswer,
  inviteAnswer,
  labelAnswer,
  pairingAnswer,
  pairingEvent,
  registrationAnswer,
  reloadAnswer,
  reloadOutcomeAnswer,
  restoreAnswer,
  roundAnswer,
  setupCodeAnswer,
  statusAnswer,
  storeKeyAnswer,
  tokenAnswer,
  trialsAnswer,
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

const everything = v.strictObject({});
const named = v.strictObject({ name: v.string() });
const identified = v.strictObject({ id: v.string() });
const kept = v.strictObject({ keep: seconds });
const registered = v.strictObject({ name: v.string(), scope: textOrNull, portal: textOrNull });
const secret = v.strictObject({ name: v.string(), replace_keys: v.optional(v.boolean(), false) });
const approved = v.strictObject({ name: v.string(), code: textOrNull });
const invited = v.strictObject({ name: textOrNull, scope: textOrNull, portal: textOrNull, ttl: seconds });
const opened = v.strictObject({ open_for: seconds });
const sealed = v.strictObject({ passphrase: v.string() });
const unsealed = v.strictObject({ copy: v.string(), passphrase: v.string() });
const nothing = v.void();

/** The one table of what the control socket serves; the server and the client both follow it. */
export const routes = {
  status: route('GET', '/v1/status', everything, statusAnswer),
  testNotices: route('POST', '/v1/notices/test', everything, trialsAnswer),
  authority: route('GET', '/v1/ca', everything, authorityAnswer),
  /** `keep`: for how many seconds appliances that trust no other than the old CA are served. */
  rotateAuthority: route('POST', '/v1/ca', kept, authorityAnswer),
  keepOldAuthority: route('PUT', '/v1/ca/old', kept, authorityAnswer),
  addAppliance: route('POST', '/v1/appliances', registered, credentialsAnswer, 201),
  removeAppliance: route('DELETE', '/v1/appliances/:name', named, nothing),
  /** `replace_keys`: whether the secret may take the place of the appliance's own keys. */
  rotateSecret: route('POST', '/v1/appliances/:name/secret', secret, credentialsAnswer),
  /** `code`: the comparison code that the installer saw; null where none is to be checked. */
  approveAppliance: route('POST', '/v1/appliances/:name/approval', approved, applianceAnswer),
  invite: route('POST', '/v1/invites', invited, inviteAnswer, 201),
  /** `open_for`: for how many seconds registration is open; 0 closes it. */
  openRegistration: route('PUT', '/v1/registration', opened, registrationAnswer),
  pair: route('POST', '/v1/appliances/:name/pairings', named, pairingAnswer, 201),
  label: route('GET', '/v1/appliances/:name/label', named, labelAnswer),
  pairAll: route('POST', '/v1/rounds', everything, roundAnswer, 201),
  nextPairing: route('POST', '/v1/rounds/:id/next', identified, roundAnswer),
  unpair: route('DELETE', '/v1/appliances/:name/grant', named, nothing),
  token: route('GET', '/v1/appliances/:name/token', named, tokenAnswer),
  history: route('GET', '/v1/appliances/:name/history', named, historyAnswer),
  refresh: route('POST', '/v1/appliances/:name/refresh', named, applianceAnswer),
  setupCode: route('GET', '/v1/setup-code', everything, setupCodeAnswer),
  rotateSetupCode: route('POST', '/v1/setup-code', everything, setupCodeAnswer),
  rotateStoreKey: route('POST', '/v1/store-key', everything, storeKeyAnswer),
  backUp: route('POST', '/v1/backup', sealed, backupAnswer),
  restore: route('POST', '/v1/restore', unsealed, restoreAnswer),
  reload: route('POST', '/v1/reload', everything, reloadAnswer, 202),
  reloadOutcome: route('GET', '/v1/reloads/:id', identified, reloadOutcomeAnswer),
};

/** A pairing's events as NDJSON, one {@link Route.answer} a line, until it has ended. */
export const followRoute = route('GET', '/v1/pairings/:id/events', identified, pairingEvent);

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
