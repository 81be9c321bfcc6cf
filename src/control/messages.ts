import * as v from 'valibot';
import { CONNECTION_STATES } from '../core/connections/connection-status.ts';
import {
  APPLIANCE_CONDITION_CODES,
  CONNECTION_CONDITION_CODES,
  HUB_CONDITION_CODES,
  SEVERITIES,
} from '../core/health/condition.ts';
import { PAIRING_FAILURE_REASONS } from '../core/pairings/pairing.ts';
import { SKIP_REASONS } from '../core/pairings/pairing-batch.ts';
import { CHECK_RESULTS, PORTAL_CHECK_NAMES } from '../core/portals/portal-status.ts';
import { HISTORY_KINDS } from '../core/reports/history.ts';
import { HUB_PROBLEM_CODES, NOTICE_CODES } from '../core/reports/notice.ts';
import { PROBLEM_CODES } from '../core/reports/problem.ts';

/**
 * The responses on the control socket, which `--json` prints. Times are in seconds, instants in RFC 3339 UTC. The types
 * of src/core that they are made from document each member.
 */

const text = v.string();
const textOrNull = v.nullable(text);
const number = v.number();
const optional = v.exactOptional;

const reason = v.picklist(PAIRING_FAILURE_REASONS);

const problem = v.object({ code: v.picklist(PROBLEM_CODES), message: text, since: text });

/** What a connection and the appliances that use it have in common, in `status`. */
const loginMembers = {
  state: v.picklist(CONNECTION_STATES),
  scope: textOrNull,
  expires_in: v.nullable(number),
  refresh_in: v.nullable(number),
  last_refresh: textOrNull,
  problem: v.nullable(problem),
  portal: text,
  account: textOrNull,
  authorize_url: optional(text),
  user_code: optional(text),
  pairing_failed: optional(v.object({ reason, message: text, at: text })),
  wanted_scope: optional(textOrNull),
  missing_scope: optional(v.array(text)),
};

/** How a grant was ended; `portal_told` is null if there was none. */
export const grantEndResponseSchema = v.object({ portal_told: v.nullable(v.boolean()) });

/** A connection, in `status`. */
export const connectionResponseSchema = v.object({
  name: text,
  ...loginMembers,
  login_ends: textOrNull,
  login_ending_since: optional(text),
  appliances: v.array(text),
  declared: optional(v.literal(true)),
  own: optional(v.literal(true)),
});
export type ConnectionResponse = v.InferOutput<typeof connectionResponseSchema>;

/** An appliance, in `status`. */
export const applianceResponseSchema = v.object({
  name: text,
  client_id: text,
  ...loginMembers,
  connection: text,
  last_token: textOrNull,
  tokens: v.object({ today: number, last_14_days: number }),
  declared: optional(v.literal(true)),
  waiting_for_approval: optional(
    v.object({ since: text, software_id: textOrNull, comparison_code: text, address: text }),
  ),
  without_credentials: optional(v.literal(true)),
  credentials_damaged: optional(v.literal(true)),
});
export type ApplianceResponse = v.InferOutput<typeof applianceResponseSchema>;

const hubResponseSchema = v.object({
  id: text,
  name: text,
  version: text,
  address: textOrNull,
  http_port: number,
  https_port: number,
  metrics_port: optional(number),
  ca_fingerprint: text,
  ca_rotation: optional(v.object({ old_fingerprint: text, until: textOrNull })),
  uptime: number,
  config_file: optional(text),
  test_mode: optional(v.literal(true)),
  registration_open_for: optional(number),
  registration_asked: optional(number),
  problems: optional(v.array(v.object({ code: v.picklist(HUB_PROBLEM_CODES), message: text, since: text }))),
});

export type HubResponse = v.InferOutput<typeof hubResponseSchema>;

const noticeResponseSchema = v.object({
  code: v.picklist(NOTICE_CODES),
  severity: v.picklist(['error', 'warning']),
  appliance: textOrNull,
  connection: textOrNull,
  appliances: v.array(text),
  message: text,
  what_to_do: text,
  since: text,
});

const conditionResponseSchema = v.object({
  code: v.picklist([...HUB_CONDITION_CODES, ...CONNECTION_CONDITION_CODES, ...APPLIANCE_CONDITION_CODES]),
  severity: v.picklist(SEVERITIES),
  appliance: textOrNull,
  connection: textOrNull,
  appliances: v.array(text),
  message: text,
  what_to_do: text,
  since: textOrNull,
  until: textOrNull,
});
export type ConditionResponse = v.InferOutput<typeof conditionResponseSchema>;

const siteResponseSchema = v.object({
  id: text,
  hubs: v.array(
    v.object({
      id: text,
      name: text,
      address: textOrNull,
      version: text,
      last_seen: text,
      this_hub: optional(v.literal(true)),
    }),
  ),
});
export type SiteResponse = v.InferOutput<typeof siteResponseSchema>;

export const statusResponseSchema = v.object({
  hub: hubResponseSchema,
  site: optional(siteResponseSchema),
  connections: v.array(connectionResponseSchema),
  appliances: v.array(applianceResponseSchema),
  conditions: v.array(conditionResponseSchema),
  notices: v.array(noticeResponseSchema),
});
export type StatusResponse = v.InferOutput<typeof statusResponseSchema>;

const certificateMembers = { certificate: text, fingerprint: text };

export const authorityResponseSchema = v.object({
  ...certificateMembers,
  old: optional(v.object({ ...certificateMembers, until: textOrNull })),
});

/** An appliance's credentials, shown once. */
export const credentialsResponseSchema = v.object({
  name: text,
  client_id: text,
  client_secret: text,
  token_endpoint: text,
  ca_fingerprint: text,
});
export type CredentialsResponse = v.InferOutput<typeof credentialsResponseSchema>;

const registrationTarget = { registration_endpoint: text, ca_fingerprint: text };

/** An initial access token, shown once. */
export const inviteResponseSchema = v.object({
  token: text,
  name: textOrNull,
  scope: textOrNull,
  expires_in: number,
  ...registrationTarget,
});
export type InviteResponse = v.InferOutput<typeof inviteResponseSchema>;

export const openRegistrationResponseSchema = v.object({ open_for: number, ...registrationTarget });
export type OpenRegistrationResponse = v.InferOutput<typeof openRegistrationResponseSchema>;

/** `sign_in` is a one-time address that signs a browser in; valid for `expires_in` seconds. */
export const setupCodeResponseSchema = v.object({ code: text, page: text, sign_in: text, expires_in: number });
export type SetupCodeResponse = v.InferOutput<typeof setupCodeResponseSchema>;

/** An RFC 6749 token response; `scope` is left out if there is none. */
export const accessTokenResponseSchema = v.object({
  access_token: text,
  token_type: v.literal('Bearer'),
  expires_in: number,
  scope: optional(text),
});

/** The entries of a connection's history; the one that was updated last comes first. */
export const historyResponseSchema = v.array(
  v.object({
    kind: v.picklist(HISTORY_KINDS),
    why: v.nullable(v.picklist([...PAIRING_FAILURE_REASONS, ...PROBLEM_CODES])),
    first: text,
    last: text,
    count: number,
    user: optional(text),
  }),
);

/** The id of the pairing that was started. */
export const startPairingResponseSchema = v.object({ pairing: text });

/**
 * The pairing that a pasted address belongs to. `failure`: why its login yielded nothing, while the pairing goes on with
 * another link; null if the pairing has ended, or the hub still waits for the portal.
 */
export const pasteAddressResponseSchema = v.object({ pairing: text, failure: v.nullable(reason) });

/** One event of a pairing; `latchkey pair --json` prints most of it. */
export const pairingEventMessageSchema = v.variant('event', [
  v.object({ event: v.literal('connecting'), problem: textOrNull, expires_in: number }),
  v.object({
    event: v.literal('waiting'),
    authorize_url: text,
    short_url: optional(text),
    user_code: optional(text),
    contains_user_code: optional(v.literal(true)),
    accepts_address: optional(v.literal(true)),
    expires_in: number,
    reason: optional(v.picklist(['link_ended', 'address_changed'])),
    last_failure: optional(reason),
    unconfirmed: optional(v.array(v.object({ id: text, address: text }))),
  }),
  v.object({ event: v.literal('paired'), scope: textOrNull, missing_scope: optional(v.array(text)) }),
  v.object({ event: v.literal('failed'), reason, message: text }),
]);
export type PairingEventMessage = v.InferOutput<typeof pairingEventMessageSchema>;

export const pairingBatchResponseSchema = v.object({
  id: text,
  current: v.nullable(v.object({ pairing: text, connection: text })),
  next: textOrNull,
  connected: v.array(text),
  skipped: v.array(v.object({ name: text, pairing: textOrNull, reason: v.picklist(SKIP_REASONS) })),
  differentAccounts: v.array(v.object({ connection: text, account: text })),
});

/** The configured portals, as `latchkey portals --json` prints them. */
export const portalsResponseSchema = v.object({
  portals: v.array(
    v.object({
      name: text,
      type: v.picklist(['helper', 'oauth2']),
      login: v.nullable(v.picklist(['device', 'redirect', 'paste', 'poll'])),
      redirect_uri: textOrNull,
      reached: textOrNull,
    }),
  ),
});
export type PortalsResponse = v.InferOutput<typeof portalsResponseSchema>;

export const portalChecksResponseSchema = v.object({
  checks: v.array(v.object({ name: v.picklist(PORTAL_CHECK_NAMES), result: v.picklist(CHECK_RESULTS), detail: text })),
});

export const labelResponseSchema = v.object({ name: text, hub_name: text, link: text, by_address: textOrNull });

export const testNoticesResponseSchema = v.array(
  v.object({ hook: v.picklist(['command', 'webhook']), target: text, ok: v.boolean(), detail: text }),
);

export const storeKeyRotationResponseSchema = v.object({
  leftovers: v.array(text),
  snapshot_problem: textOrNull,
  is_credential: v.boolean(),
});
export type StoreKeyRotationResponse = v.InferOutput<typeof storeKeyRotationResponseSchema>;

export const snapshotResponseSchema = v.object({ file: text, made: text });

export const backupResponseSchema = v.object({ copy: text, made: text, appliances: number, grants: number });

export const restoreResponseSchema = v.object({
  made: text,
  hub_id: text,
  restored: v.array(text),
  kept: v.array(text),
});
export type RestoreResponse = v.InferOutput<typeof restoreResponseSchema>;

/** The id of the reload that was started. */
export const reloadResponseSchema = v.object({ reload: text });

export const reloadOutcomeResponseSchema = v.variant('state', [
  v.object({ state: v.picklist(['under_way', 'done', 'unknown']) }),
  v.object({ state: v.literal('failed'), message: text }),
]);

/** Every response that is not 2xx. */
export const failureResponseSchema = v.object({ code: text, message: text });
