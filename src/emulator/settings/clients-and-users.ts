import * as v from 'valibot';
import { camelCase, renameKeys, snakeCase, validate } from '../json.ts';
import type { ClientOptions, EmulatorOptions, UserOptions } from '../options.ts';
import { redirectUri } from './client-registry.ts';
import { OptionError, rejectUnknownKeys } from './validation.ts';

type Members = Readonly<Record<string, v.GenericSchema>>;

const texts = v.optional(v.array(v.string(), 'a list'));
const uris = v.optional(v.array(redirectUri, 'a list'));
const claims = v.optional(v.record(v.string(), v.unknown()));

/** The members of a client, and of a user, by their library names. */
const CLIENT = {
  id: v.string(),
  secret: v.optional(v.string()),
  jwks: v.optional(v.looseObject({ keys: v.array(v.looseObject({ kty: v.string() })) })),
  name: v.optional(v.string()),
  redirectUrl: v.optional(v.picklist(['accept', 'refuse'])),
  redirectUris: uris,
  postLogoutRedirectUris: uris,
  claims,
} satisfies Record<keyof ClientOptions, v.GenericSchema>;
const USER = { name: v.string(), password: v.string(), claims } satisfies Record<keyof UserOptions, v.GenericSchema>;

const LISTS = { allowedHosts: texts, issuers: texts, redirectUris: uris };

/**
 * Parses a client of an options file, whose members are in snake_case.
 * @throws OptionError if it is invalid
 */
export function parseClient(value: object): ClientOptions {
  return renameKeys(check(value, renameKeys(CLIENT, snakeCase)), camelCase) as unknown as ClientOptions;
}

/**
 * Parses a user of an options file.
 * @throws OptionError if it is invalid
 */
export function parseUser(value: object): UserOptions {
  return check(value, USER) as unknown as UserOptions;
}

/**
 * Checks the lists among the library's options: plain JavaScript has no compiler that does.
 * @throws OptionError
 */
export function checkLists({ allowedHosts, issuers, redirectUris, clients = [], users = [] }: EmulatorOptions): void {
  check({ allowedHosts, issuers, redirectUris }, LISTS);
  checkObjects('clients', clients, CLIENT);
  checkObjects('users', users, USER);
}

/** The value is not shown: it may be a secret. */
function checkObjects(option: string, values: readonly object[], members: Members): void {
  if (!Array.isArray(values) || values.some((value) => typeof value !== 'object' || value === null))
    throw new OptionError(`${option}: must be a list of objects`);
  for (const value of values) check(value, members, `${option}: `);
}

/** @param prefix text before the name in the message */
function check(value: object, members: Members, prefix = ''): Record<string, unknown> {
  rejectUnknownKeys(value, members, prefix);
  const parsed = validate(value, v.strictObject(members));
  if ('problem' in parsed) throw new OptionError(`${prefix}${parsed.problem}`);
  return parsed.value;
}
