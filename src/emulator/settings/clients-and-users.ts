import * as v from 'valibot';
import { validate } from '../json.ts';
import type { ClientOptions, UserOptions } from '../options.ts';
import { OptionError } from './validation.ts';

const texts = v.array(v.string());
const claims = v.record(v.string(), v.unknown());

const ClientBody = v.strictObject({
  id: v.string(),
  secret: v.exactOptional(v.string()),
  jwks: v.exactOptional(v.looseObject({ keys: v.array(v.looseObject({ kty: v.string() })) })),
  name: v.exactOptional(v.string()),
  redirect_url: v.exactOptional(v.picklist(['accept', 'refuse'])),
  redirect_uris: v.exactOptional(texts),
  post_logout_redirect_uris: v.exactOptional(texts),
  claims: v.exactOptional(claims),
});

const UserBody = v.strictObject({ name: v.string(), password: v.string(), claims: v.exactOptional(claims) });

/**
 * Parses a client of an options file, whose members are in snake_case.
 * @throws OptionError if it is invalid
 */
export function parseClient(value: unknown): ClientOptions {
  const { redirect_url, redirect_uris, post_logout_redirect_uris, ...client } = parse(value, ClientBody);
  return {
    ...client,
    redirectUrl: redirect_url,
    redirectUris: redirect_uris,
    postLogoutRedirectUris: post_logout_redirect_uris,
  };
}

/**
 * Parses a user of an options file.
 * @throws OptionError if it is invalid
 */
export function parseUser(value: unknown): UserOptions {
  return parse(value, UserBody);
}

function parse<Body>(value: unknown, schema: v.GenericSchema<unknown, Body>): Body {
  const parsed = validate(value, schema);
  if ('problem' in parsed) throw new OptionError(parsed.problem);
  return parsed.value;
}
