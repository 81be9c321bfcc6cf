import * as v from 'valibot';

/** `grant_type` of the device flow (RFC 8628, 3.4). */
export const DEVICE_CODE_GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:device_code';

const text = (description: string) => v.pipe(v.string(), v.description(description));

/** How an appliance says in a form who it is (RFC 6749, 2.3.1; RFC 7521, 4.2). */
const clientMembers = {
  client_id: v.optional(text('The appliance, unless it is in an Authorization header or in the assertion')),
  client_secret: v.optional(text('client_secret_post; client_secret_basic has it in the Authorization header')),
  client_assertion_type: v.optional(text('private_key_jwt: urn:ietf:params:oauth:client-assertion-type:jwt-bearer')),
  client_assertion: v.optional(text('private_key_jwt: a JWT signed with a key that the appliance was registered with')),
};

const MIN_TTL_MESSAGE = 'give a whole number of seconds from 1 to 86400';

const tokenMembers = {
  ...clientMembers,
  scope: v.optional(text("Space-separated names; the grant's own, as the hub can't narrow a portal's token")),
  min_ttl: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[1-9]\d{0,4}$/, MIN_TTL_MESSAGE),
      v.description("The hub's own: how many seconds the token should last at least, 1 to 86400"),
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
  refresh_token: text("The hub's own, which the device flow gave; it stays the same"),
  ...tokenMembers,
});

/** RFC 8628, 3.4. */
const DeviceCodeFormSchema = v.object({
  grant_type: v.literal(DEVICE_CODE_GRANT_TYPE),
  device_code: text('That of the device authorization'),
  ...tokenMembers,
});

/** `POST /oauth/token`, each `grant_type` by itself: what checks a request. */
export const TOKEN_FORM_SCHEMAS = {
  client_credentials: ClientCredentialsFormSchema,
  refresh_token: RefreshTokenFormSchema,
  [DEVICE_CODE_GRANT_TYPE]: DeviceCodeFormSchema,
};
/** The same as one schema: what the OpenAPI document is made from. */
export const TokenFormSchema = v.variant('grant_type', [
  ClientCredentialsFormSchema,
  RefreshTokenFormSchema,
  DeviceCodeFormSchema,
]);

/** `POST /oauth/device_authorization` (RFC 8628, 3.1). */
export const DeviceAuthorizationFormSchema = v.object({
  ...clientMembers,
  scope: v.optional(text('Space-separated names; the scope that the appliance was registered with')),
});

/** `POST /oauth/revoke` (RFC 7009, 2.1). */
export const RevocationFormSchema = v.object({
  ...clientMembers,
  token: text("The access token that the cloud refused, or a refresh token of the hub's own"),
  token_type_hint: v.optional(text('access_token or refresh_token; the hub looks at both')),
});

/** What the verification page sends, or a link to it holds (RFC 8628, 3.3). */
export const UserCodeFormSchema = v.object({
  user_code: v.optional(text('That of the device authorization, however it was typed; the page asks for it otherwise')),
});

/** A form's members, or what is wrong with it in the words of an `error_description` (RFC 6749, 5.2). */
export type FormValidation<Form> =
  | { readonly kind: 'read'; readonly form: Form }
  | { readonly kind: 'malformed'; readonly description: string };

/** Checks a form; the description of what is wrong names the parameter and never holds its value. */
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
