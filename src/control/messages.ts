import * as v from 'valibot';
import type { FailureCode } from '../core/failure.ts';

/** The control socket's requests: JSON over HTTP on a Unix socket, below `/v1`. */

/** `POST /v1/appliances` */
export const addRequest = v.strictObject({
  name: v.string(),
  scope: v.optional(v.nullable(v.string()), null),
  portal: v.optional(v.nullable(v.string()), null),
});

/** `POST /v1/appliances/{name}/secret`: whether the secret may take the place of the appliance's own keys. */
export const secretRequest = v.strictObject({ replace_keys: v.optional(v.boolean(), false) });

/** `POST /v1/appliances/{name}/approval`: the comparison code that the installer saw; null where none is to be checked. */
export const approvalRequest = v.strictObject({ code: v.optional(v.nullable(v.string()), null) });

/** `POST /v1/invites`; `ttl` in seconds. */
export const inviteRequest = v.strictObject({
  name: v.optional(v.nullable(v.string()), null),
  scope: v.optional(v.nullable(v.string()), null),
  portal: v.optional(v.nullable(v.string()), null),
  ttl: v.pipe(v.number(), v.integer('whole seconds')),
});

/** `PUT /v1/registration`: held open for so many seconds; 0 closes it. */
export const registrationRequest = v.strictObject({ open_for: v.pipe(v.number(), v.integer('whole seconds')) });

/** `POST /v1/backup`; the answer is a `Backup`. */
export const backupRequest = v.strictObject({ passphrase: v.string() });

/** `POST /v1/restore`; the answer is a `RestoreReport`. */
export const restoreRequest = v.strictObject({ copy: v.string(), passphrase: v.string() });

/** The answer to `POST /v1/appliances` and `…/{name}/secret`, as `latchkey appliance add --json` prints it. */
export interface CredentialsAnswer {
  readonly name: string;
  readonly client_id: string;
  readonly client_secret: string;
  readonly token_endpoint: string;
  readonly ca_fingerprint: string;
}

/** The answer to `POST /v1/invites`, as `latchkey invite --json` prints it. */
export interface InviteAnswer {
  readonly token: string;
  readonly name: string | null;
  readonly scope: string | null;
  /** Seconds. */
  readonly expires_in: number;
  readonly registration_endpoint: string;
  readonly ca_fingerprint: string;
}

/** The answer to `GET` and `POST /v1/setup-code`, as `latchkey setup-code --json` prints it. */
export interface SetupCodeAnswer {
  readonly code: string;
  /** The address of the installer's page. */
  readonly page: string;
  /** A one-time address that signs a browser in; good for `expires_in` seconds. */
  readonly sign_in: string;
  readonly expires_in: number;
}

/** The answer to `PUT /v1/registration`. */
export interface RegistrationAnswer {
  /** Seconds. */
  readonly open_for: number;
  readonly registration_endpoint: string;
  readonly ca_fingerprint: string;
}

/** The answer to `POST /v1/appliances/{name}/pairings`. */
export interface PairingStarted {
  readonly pairing: string;
}

/** The answer to `POST /v1/reload`; that of `GET /v1/reloads/{id}` is a `ReloadOutcome`. */
export interface ReloadStarted {
  readonly reload: string;
}

/** The answer to `GET /v1/appliances/{name}/token`: an RFC 6749 token response; `scope` is left out where there is none. */
export interface TokenAnswer {
  readonly access_token: string;
  readonly token_type: 'Bearer';
  readonly expires_in: number;
  readonly scope?: string;
}

/** The answer to `GET /v1/appliances/{name}/label`; those of `/v1/rounds` are a `Round`. */
export interface LabelAnswer {
  readonly name: string;
  readonly hub_name: string;
  readonly link: string;
  readonly by_address: string | null;
}

/** `POST /v1/ca` (a rotation) and `PUT /v1/ca/old`: for how many seconds the old CA is kept. The answers are an `AuthorityReport`. */
export const keepRequest = v.strictObject({ keep: v.pipe(v.number(), v.integer('whole seconds')) });

/** Every answer that is not 2xx. */
export interface FailureAnswer {
  readonly code: FailureCode;
  readonly message: string;
}
