import * as v from 'valibot';
import type { OAuthErrorCode } from '../oauth/errors.ts';

const text = (description: string) => v.pipe(v.string(), v.description(description));
const url = (description: string) => v.pipe(v.string(), v.url(), v.description(description));
const seconds = (description: string) => v.pipe(v.number(), v.integer(), v.minValue(0), v.description(description));
const scope = v.optional(text('Space-separated; omitted if there is none'));

/** The token response (RFC 6749, 5.1). */
export const TokenResponseSchema = v.strictObject({
  access_token: text('Access token of the portal, for calls to the cloud API'),
  token_type: v.literal('Bearer'),
  expires_in: seconds('Remaining lifetime in seconds'),
  refresh_token: v.optional(
    text('Refresh token that the hub issued at the end of the device flow; it does not rotate'),
  ),
  scope,
  id_token: v.optional(
    text('ID token of the portal (OpenID Connect Core 1.0, 2); omitted if it issued none, or the scope has no openid'),
  ),
});

/** The device authorization response (RFC 8628, 3.2). */
export const DeviceAuthorizationResponseSchema = v.strictObject({
  device_code: text('The code with which the appliance polls the token endpoint'),
  user_code: text('The code that a person enters at verification_uri'),
  verification_uri: url("The hub's page that asks for the code"),
  verification_uri_complete: url('verification_uri with the user_code, for a QR code or a link'),
  expires_in: seconds('Lifetime of both codes in seconds'),
  interval: seconds('Shortest time between two polls in seconds'),
});

/** The registration response (RFC 7591, 3.2.1). */
export const RegistrationResponseSchema = v.strictObject({
  client_id: v.string(),
  client_id_issued_at: v.optional(seconds('Seconds since 1970; omitted while the hub does not know the time')),
  client_secret: v.optional(text('Shown only once; omitted for an appliance with jwks')),
  client_secret_expires_at: v.optional(v.pipe(v.literal(0), v.description('0: the secret does not expire'))),
  client_name: text('The NAME of the appliance on the hub'),
  token_endpoint_auth_method: v.string(),
  grant_types: v.array(v.string()),
  response_types: v.array(v.string()),
  scope,
  software_id: v.optional(v.string()),
  jwks: v.optional(v.strictObject({ keys: v.array(v.record(v.string(), v.unknown())) })),
  ca_fingerprint: text("The pin of the hub's CA: base64url SHA-256 of its public key (SPKI)"),
  comparison_code: v.optional(
    text('Show it to the installer, who compares it before approval; omitted if no approval is needed'),
  ),
});

/** The revocation response. RFC 7009, 2.2 defines no body, but some libraries parse it. */
export const RevocationResponseSchema = v.strictObject({});

/** The authorization server metadata (RFC 8414, 2). */
export const MetadataResponseSchema = v.strictObject({
  issuer: url('The origin of the request'),
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

/** An error response (RFC 6749, 5.2). @param errors the possible values of `error` */
export const errorResponseSchema = (...errors: OAuthErrorCode[]) =>
  v.strictObject({
    error: v.picklist(errors),
    error_description: text('For logs: what is wrong, and what to do'),
    error_uri: v.optional(url("The hub's page, where a person can fix the problem")),
  });
