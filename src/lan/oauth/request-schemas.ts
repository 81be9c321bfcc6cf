import * as v from 'valibot';

/** `grant_type` of the device flow (RFC 8628, 3.4). */
export const DEVICE_CODE_GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:device_code';

const text = (description: string) => v.pipe(v.string(), v.description(description));

/** Client authentication parameters (RFC 6749, 2.3.1; RFC 7521, 4.2). */
const clientMembers = {
  client_id: v.optional(text('The client_id, unless it is in the Authorization header or in the assertion')),
  client_secret: v.optional(text('For client_secret_post; client_secret_basic uses the Authorization header instead')),
  client_assertion_type: v.optional(
    text('For private_key_jwt: urn:ietf:params:oauth:client-assertion-type:jwt-bearer'),
  ),
  client_assertion: v.optional(text('For private_key_jwt: a JWT signed with a registered key of the appliance')),
};

const MIN_TTL_MESSAGE = 'must be a whole number of seconds from 1 to 86400';

const resource = v.optional(
  text(
    'The address of a connection on the hub, https://HUB:8443/connections/NAME (RFC 8707): required of an appliance that uses several. May be repeated; other addresses are ignored',
  ),
);

const tokenMembers = {
  ...clientMembers,
  resource,
  scope: v.optional(
    text(
      "Space-separated; nothing beyond the scope of the grant, which the response has: the hub can't narrow the token",
    ),
  ),
  min_ttl: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[1-9]\d{0,4}$/, MIN_TTL_MESSAGE),
      v.description('Latchkey extension: shortest acceptable remaining lifetime of the token, 1 to 86400 s'),
      v.transform(Number),
      v.maxValue(86_400, MIN_TTL_MESSAGE),
    ),
  ),
};

/** RFC 6749, 4.4. */
const ClientCredentialsFormSchema = v.object({ grant_type: v.literal('client_credentials'), ...tokenMembers });

/** RFC 6749, 6. */
const RefreshTokenFormSchema = v.object({
  grant_type: v.literal('refresh_token'),
  refresh_token: text('The refresh token that the hub issued at the end of the device flow; it does not rotate'),
  ...tokenMembers,
});

/** RFC 8628, 3.4. */
const DeviceCodeFormSchema = v.object({
  grant_type: v.literal(DEVICE_CODE_GRANT_TYPE),
  device_code: text('The device_code from the device authorization response'),
  ...tokenMembers,
});

/** `POST /oauth/token`: one schema per `grant_type`, for validation. */
export const TOKEN_FORM_SCHEMAS = {
  client_credentials: ClientCredentialsFormSchema,
  refresh_token: RefreshTokenFormSchema,
  [DEVICE_CODE_GRANT_TYPE]: DeviceCodeFormSchema,
};
/** The same as one schema, for the OpenAPI document. */
export const TokenFormSchema = v.variant('grant_type', [
  ClientCredentialsFormSchema,
  RefreshTokenFormSchema,
  DeviceCodeFormSchema,
]);

/** `POST /oauth/device_authorization` (RFC 8628, 3.1). */
export const DeviceAuthorizationFormSchema = v.object({
  ...clientMembers,
  resource,
  scope: v.optional(text('Space-separated; nothing beyond the scope that the appliance is registered with')),
});

/** `POST /oauth/revoke` (RFC 7009, 2.1). */
export const RevocationFormSchema = v.object({
  ...clientMembers,
  token: text('The access token that the cloud rejected, or a refresh token that the hub issued'),
  token_type_hint: v.optional(text('access_token or refresh_token; the hub ignores it and tries both')),
});

/** The parameters of a form, or an `error_description` that says what is wrong (RFC 6749, 5.2). */
type FormValidation<Form> =
  | { readonly kind: 'read'; readonly form: Form }
  | { readonly kind: 'malformed'; readonly description: string };

/** Validates a form. An error description names the parameter but never contains its value. */
export function validateForm<Schema extends v.GenericSchema<Record<string, unknown>>>(
  schema: Schema,
  form: ReadonlyMap<string, string>,
): FormValidation<v.InferOutput<Schema>> {
  const parsed = v.safeParse(schema, Object.fromEntries(form));
  if (parsed.success) return { kind: 'read', form: parsed.output };
  const [issue] = parsed.issues;
  const name = v.getDotPath(issue) ?? 'the form';
  return { kind: 'malformed', description: form.has(name) ? `${name}: ${issue.message}` : `${name} is missing` };
}
