import * as v from 'valibot';
import type { OAuthErrorCode } from '../oauth/errors.ts';

const text = (description: string) => v.pipe(v.string(), v.description(description));
const url = (description: string) => v.pipe(v.string(), v.url(), v.description(description));
const seconds = (description: string) => v.pipe(v.number(), v.integer(), v.minValue(0), v.description(description));
const scope = v.optional(text('Space-separated names; left out where there is none'));

/** The answer to a token request (RFC 6749, 5.1). */
export const TokenResponseSchema = v.strictObject({
  access_token: text("The portal's own: it authenticates calls to the cloud API"),
  token_type: v.literal('Bearer'),
  expires_in: seconds('What is left of it'),
  refresh_token: v.optional(text("The hub's own, which the device flow gives; it stays the same")),
  scope,
});

/** The answer to a device authorization request (RFC 8628, 3.2). */
export const DeviceAuthorizationResponseSchema = v.strictObject({
  device_code: text('What the appliance polls the token endpoint with'),
  user_code: text('What a person types at the verification_uri'),
  verification_uri: url("The hub's page that takes the code"),
  verification_uri_complete: url('The same with the code in it, for a QR code'),
  expires_in: seconds('Lifetime of both codes'),
  interval: seconds('Between two polls'),
});

/** The answer to a registration (RFC 7591, 3.2.1). */
export const RegistrationResponseSchema = v.strictObject({
  client_id: v.string(),
  client_id_issued_at: v.optional(seconds('Since 1970; left out while the hub does not know the time')),
  client_secret: v.optional(text('Told this once; left out where the appliance has keys of its own')),
  client_secret_expires_at: v.optional(v.pipe(v.literal(0), v.description('Never'))),
  client_name: text('The NAME that the appliance has on the hub'),
  token_endpoint_auth_method: v.string(),
  grant_types: v.array(v.string()),
  response_types: v.array(v.string()),
  scope,
  software_id: v.optional(v.string()),
  jwks: v.optional(v.strictObject({ keys: v.array(v.record(v.string(), v.unknown())) })),
  ca_fingerprint: text("The pin of the hub's CA: base64url SHA-256 of its public key (SPKI)"),
  comparison_code: v.optional(
    text('To be shown to the installer, who compares it before approving; left out where no approval is needed'),
  ),
});

/** The answer to a revocation: some libraries read its body all the same (RFC 7009, 2.2 has none). */
export const RevocationResponseSchema = v.strictObject({});

/** RFC 8414, 2. */
export const MetadataResponseSchema = v.strictObject({
  issuer: url('The address that was asked'),
  token_endpoint: v.pipe(v.string(), v.url()),
  device_authorization_endpoint: v.pipe(v.string(), v.url()),
  registration_endpoint: v.pipe(v.string(), v.url()),
  revocation_endpoint: v.pipe(v.string(), v.url()),
  grant_types_supported: v.array(v.string()),
  response_types_supported: v.array(v.string()),
  token_endpoint_auth_methods_supported: v.array(v.string()),
  token_endpoint_auth_signing_alg_values_supported: v.array(v.string()),
  revocation_endpoint_auth_methods_supported: v.array(v.string()),
  revocation_endpoint_auth_signing_alg_values_supported: v.array(v.string()),
});

/** RFC 6749, 5.2. @param errors those that this answer may name */
export const errorResponseSchema = (...errors: OAuthErrorCode[]) =>
  v.strictObject({
    error: v.picklist(errors),
    error_description: text('For people: what was wrong, and what to do'),
    error_uri: v.optional(url("The hub's page, where a person can help")),
  });
